"""Print the tables of Slurm's commands at one time of a run."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click

from pipistrelle.cli.terminal.console import print_table, show
from pipistrelle.cli.terminal.dates import Dates
from pipistrelle.reports.estimates.slurm_then import SlurmThen

#: columns with text, which are left-aligned
_TEXTS: Final = (
    *("PARTITION", "NAME", "USER", "ACCOUNT", "STATE", "NODELIST(REASON)", "QOSNAME", "TRES", "Account", "User"),
    "JOBID",
)
_HEADINGS: Final = {"PARTITIONFACTOR": "PARTITION"}
_TITLES: Final = {"sprio": "sprio -l", "sshare": "sshare -l"}


def print_tables(found: SlurmThen, tables: Sequence[str]) -> None:
    """Print the named tables."""
    dates = Dates(found.epoch, found.timezone)
    show(f"Slurm at {dates.beside(found.at)}, as it had decided at {dates.beside(found.as_of)}", "bold")
    for name in tables:
        click.echo()
        if name == "sdiag":
            _sections(found.sdiag, dates)
            continue
        rows: list[dict[str, Any]] = getattr(found, name)
        title = _TITLES.get(name, name)
        if not rows:
            show(f"{title}: no rows")
            continue
        cells = [{key: _cell(key, value, dates) for key, value in _of(name, row).items()} for row in rows]
        columns = [key for key in cells[0] if key != "NAME" or any(row[key] for row in cells)]
        shown = [_HEADINGS.get(key, key) for key in columns]
        print_table(
            title, shown, [[row[key] for key in columns] for row in cells], _TEXTS if name != "sprio" else _TEXTS[1:]
        )


def _of(table: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the printed cells of a row, by column.

    The row is of one of Slurm's tables, such as squeue.
    """
    if table == "squeue":
        kept = {key: value for key, value in row.items() if key not in ("NODELIST", "REASON")}
        kept["NODELIST(REASON)"] = f"({row['REASON']})" if row["STATE"] == "PENDING" else row["NODELIST"]
        return kept
    if table == "sprio" and "TRES" in row:
        return {**row, "TRES": ",".join(f"{name}={value:.0f}" for name, value in row["TRES"].items())}
    return dict(row)


def _cell(key: str, value: Any, dates: Dates) -> str:
    if value is None:
        return "N/A" if key == "START_TIME" else ""
    if key == "START_TIME":
        return dates.at(value) or f"{value:g}"
    return value if isinstance(value, str) else _KINDS.get(key, _number)(value)


def _number(value: float) -> str:
    """Return a number as sprio prints it: rounded to a whole number."""
    return f"{value:.0f}"


def _fraction(value: float) -> str:
    return f"{value:.6f}"


def _clock(seconds: float) -> str:
    """Return a time as Slurm writes it, such as 1-02:03:04 or 5:00."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}-{hours:02}:{minutes:02}:{rest:02}"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


_KINDS: Final[dict[str, Callable[[Any], str]]] = {
    **dict.fromkeys(("NormShares", "NormUsage", "EffectvUsage", "FairShare", "LevelFS"), _fraction),
    **dict.fromkeys(("TIME", "TIME_LIMIT"), _clock),
}


def _sections(sections: Mapping[str, Mapping[str, Any]], dates: Dates) -> None:
    show("sdiag", "bold")
    for title, values in sections.items():
        show(f"  {title}:")
        for name, value in values.items():
            if value is None:
                text = "never"
            elif name == "Last cycle when":
                text = dates.beside(value)
            else:
                text = f"{value:.2f}" if isinstance(value, float) else f"{value}"
            show(f"    {name}: {text}")
