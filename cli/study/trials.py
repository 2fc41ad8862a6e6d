"""Options and output shared by commands that read the results of a study."""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from pipistrelle.cli.options.fields import Choice, ShareNumber, together
from pipistrelle.cli.study.latex import latex_table
from pipistrelle.cli.terminal.console import print_json, print_table, show
from pipistrelle.cli.terminal.guard import FILE, FILE_OR_FOLDER

if TYPE_CHECKING:
    from pipistrelle.studies.inference.trials import TrialTable, Value

#: remark about means of one replica
ALONE: Final = "one replica gives no interval: run the study with more ([replicas] count or precision)"
_C = TypeVar("_C", bound=Callable[..., Any])
_PICTURES: Final = (".pdf", ".svg", ".png")


def _conditions(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> list[tuple[str, str]]:
    found = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise click.BadParameter(f"'{text}' is not AXIS=VALUE, such as policy=easy.")
        found.append((name, value))
    return found


def _picture(ctx: click.Context, param: click.Parameter, path: Path) -> Path:
    if path.suffix not in _PICTURES:
        raise click.UsageError(f"pictures are PDF, SVG or PNG: name such a file, not '{path.name}'.", ctx)
    return path


jobs_option: Final = click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    show_default="one per processor core",
    help="Number of processes that simulate at the same time.",
)
trials_argument: Final = click.argument("place", metavar="DIR", type=FILE_OR_FOLDER)
where_option: Final = click.option(
    "--where",
    "conditions",
    metavar="AXIS=VALUE",
    multiple=True,
    callback=_conditions,
    help="Use only simulations with AXIS=VALUE, such as policy=easy (AXIS is a varied parameter); repeatable.",
)
metrics_option: Final = click.option(
    "--metric",
    "metrics",
    metavar="COLUMN",
    multiple=True,
    show_default="mean_wait, mean_bounded_slowdown and utilisation",
    help="Column of the study's results to use, such as mean_wait; repeatable.",
)
metric_option: Final = click.option(
    "--metric", metavar="COLUMN", default="mean_wait", help="Column of the study's results to use."
)
level_option: Final = click.option(
    "--level", metavar="PERCENTAGE", type=ShareNumber(), default="95%", help="Confidence level of the intervals."
)
method_option: Final = click.option(
    "--interval",
    "method",
    type=Choice(["t", "bootstrap"]),
    default="t",
    help="Method for the confidence intervals: Student's t, or bootstrap with a fixed seed.",
)
form_options: Final = together(
    click.option("--json", "form", flag_value="json", help="Print JSON instead of tables."),
    click.option("--csv", "form", flag_value="csv", help="Print CSV instead of tables."),
    click.option("--latex", "form", flag_value="latex", help="Print tables for LaTeX (package booktabs)."),
)
picture_option: Final = click.option(
    "-o",
    "--output",
    "--out",
    "output",
    type=FILE,
    required=True,
    callback=_picture,
    help="File to write: .pdf, .svg or .png.",
)


def read_trials(place: Path, conditions: Sequence[tuple[str, str]]) -> "TrialTable":
    """Return the trials (simulations) of a study that meet all ``conditions``.

    A condition is a pair (axis, value).
    """
    from pipistrelle.cli.terminal.console import import_numpy

    import_numpy()
    from pipistrelle.studies.inference.trials import TrialTable

    return TrialTable.read(place).only(conditions)


def chosen_axes(
    trials: "TrialTable", x: str | None, by: str | None, panels: str | None = None
) -> tuple[str, str | None]:
    """Return the study's axis along the curves, and its axis with one curve per value.

    An axis of a study is an option that it varies. The first axis has numeric values. The second is None if there is
    only one curve. ``x`` and ``by`` name the two axes; None: choose one. The axis that ``panels`` names is used only if
    ``x`` or ``by`` names it too.
    """
    from pipistrelle.studies.pictures import choices

    try:
        return choices.chosen_axes(trials, x, by, panels)
    except choices.PictureChoice as error:
        raise click.UsageError(error.what) from None


def is_timed(trials: "TrialTable", axis: str) -> bool:
    """Return whether the values of an axis (varied parameter) are durations."""
    return all(isinstance(value, str) for value in trials.values(axis))


def number_text(value: float | None) -> str:
    """Return a number as text for a table; "-" if it is None."""
    if value is None:
        return "-"
    if value in (float("inf"), float("-inf")):
        return "none"
    size = abs(value)
    if size < 100 or size >= 1e6:
        return f"{value:.4g}"
    return f"{value:,.0f}" if size >= 1000 else f"{value:.1f}"


def marked(count: int, missing: int, value: str) -> list[str]:
    """Return the table cells for a mean over replicas (repetitions).

    They are the number of replicas, and the mean. ``count`` replicas have a value, ``missing`` have none, and ``value``
    is the mean as text. If some have none, the number is, for example, "3 of 5", and the mean has a star.
    """
    if not missing:
        return [str(count), value]
    return [f"{count} of {count + missing}", value if value == "-" else f"{value}*"]


def probability_text(p: float | None) -> str:
    """Return a p-value as text for a table."""
    return "-" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def percent_text(share: float | None, sign: str = "") -> str:
    """Return a share (1 is 100 %) as a percentage for a table, "-" for None.

    With ``sign`` "+", positive numbers have a plus sign.
    """
    return "-" if share is None else f"{100 * share:{sign}.2f}" if abs(share) < 0.01 else f"{100 * share:{sign},.1f}"


def grouped(cells: Iterable[tuple[dict[str, "Value"], list[str]]]) -> list[list[str]]:
    """Return table rows, one per cell, grouped under headings.

    A cell is a combination of axis values. A row begins with the value of the last axis. A heading names the values of
    the other axes, which are equal in all rows of the group.
    """
    from pipistrelle.studies.inference.trials import label

    lines: list[list[str]] = []
    before: list[str] | None = None
    for cell, figures in cells:
        *others, last = [*cell.items()] or [("", "all")]
        now = [f"{name} {label(value)}" for name, value in others]
        if now != before and now:
            lines.append([", ".join(now)])
        before = now
        lines.append([label(last[1]), *figures])
    return lines


def print_rows(
    form: str | None, rows: Sequence[dict[str, Any]], tables: Iterable[tuple[str, list[str], list[list[str]]]]
) -> None:
    """Print the results of a study in the format ``form``.

    Args:
        form: "json" and "csv" print ``rows``, "latex" and None (text) print ``tables``.
        tables: (title, columns, rows) of each.
    """
    if form == "json":
        print_json(rows)
        return
    if form == "csv":
        flat = [_flat(row) for row in rows]
        text = io.StringIO()
        writer = csv.DictWriter(text, list(dict.fromkeys(name for row in flat for name in row)), lineterminator="\n")
        writer.writeheader()
        writer.writerows(flat)
        click.echo(text.getvalue(), nl=False)
        return

    for number, (title, columns, lines) in enumerate(tables):
        if number:
            click.echo()
        if form == "latex":
            click.echo(latex_table(_caption(title, rows), columns, lines), nl=False)
        else:
            print_table(title, columns, lines, columns[:1])


def _caption(title: str, rows: Sequence[dict[str, Any]]) -> str:
    """Return a table's title that begins with the metric in words and its unit.

    An example of this beginning is ``mean wait (s)``.
    """
    from pipistrelle.studies.inference.words import words_of

    metrics = {str(row["metric"]) for row in rows if "metric" in row}
    name = max((one for one in metrics if title.startswith(one)), key=len, default="")
    words = words_of(name)
    unit = f" ({words.unit})" if words.unit not in ("", "share") else ""
    return f"{words.name}{unit}{title.removeprefix(name)}"


def remark(form: str | None, text: str) -> None:
    """Print a line below a table; for LaTeX as a comment."""
    if form is None:
        show(text)
    elif form == "latex":
        click.echo(f"% {text.strip()}")


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            found |= {name if part == "value" else f"{name}_{part}": one for part, one in value.items()}
        else:
            found[name] = value
    return found
