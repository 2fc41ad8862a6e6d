"""``pipistrelle workload describe``: what a workload is like, as tables, JSON and pictures."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipistrelle.cli.console import plain, print_facts
from pipistrelle.cli.guard import FilledPath, refuse_overwriting

# The steps of `pipistrelle workload`, and help, need none of these.
if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_QUANTITIES = (("size", "size, units"), ("runtime", "run time"), ("walltime", "requested time"))
_SPREAD = (
    ("mean", "mean"),
    ("least", "least"),
    ("p05", "5 %"),
    ("p25", "25 %"),
    ("median", "median"),
    ("p75", "75 %"),
    ("p95", "95 %"),
    ("greatest", "greatest"),
)


@click.command("describe")
@click.argument("source", metavar="IN")
@click.option("--sort", is_flag=True, help="Accept an SWF log whose submit times are not ascending, and sort it.")
@click.option("--units", type=click.IntRange(1, 2**31), help="The machine's size; default: what the workload says.")
@click.option("--timezone", metavar="ZONE", help="Zone of hours and weekdays; default: the trace's, else UTC.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option("--picture", type=FilledPath(path_type=Path, dir_okay=False), help="Draw a picture, too: an .svg file.")
def describe_command(
    source: str, sort: bool, units: int | None, timezone: str | None, as_json: bool, picture: Path | None
) -> None:
    """Describe the workload IN, a bundled name or a file: jobs, sizes, times, load, users, arrivals."""
    from pipistrelle.studies.inputs.named import load_workload
    from pipistrelle.studies.workloads.options import zone_of
    from pipistrelle.studies.workloads.pictures import svg
    from pipistrelle.studies.workloads.summary import summarise
    from pipistrelle.traces.describe import describe
    from pipistrelle.traces.files import write_trace

    if picture is not None:
        if picture.suffix != ".svg":
            raise click.UsageError(f"--picture draws SVG: name an .svg file, not '{picture.name}'.")
        refuse_overwriting([source], [picture])
    workload = load_workload(source, sort=sort)
    if units is not None:
        workload = replace(workload, machine_size=units)
    figures = summarise(workload, zone_of(workload, timezone))
    if picture is not None:
        write_trace(picture, [svg(figures).encode()])
    if as_json:
        click.echo(json.dumps(figures, indent=2, allow_nan=False))
        return
    from rich.console import Console

    console = Console(highlight=False, emoji=False)
    print_facts(describe(workload))
    if figures["runnable"]:
        _print_tables(figures, console)
    if picture is not None:
        console.print(plain(f"picture in {picture}"), soft_wrap=True)


def _print_tables(figures: dict[str, Any], console: "Console") -> None:
    from pipistrelle.studies.workloads.pictures import arrivals_text

    table = _table("Spread of the jobs that can run", "", *(name for _, name in _QUANTITIES))
    for row, name in _SPREAD:
        table.add_row(name, *(_value(figures[key][row], key) for key, _ in _QUANTITIES))
    console.print(table)
    if figures["accuracy"] is not None:
        console.print(_accuracy(figures["accuracy"]))
    for name, top in figures["busiest"].items():
        table = _table(f"{name}: {top['values']:,} in all", name, "jobs", "% of jobs", "% of unit-seconds")
        for line in top["top"]:
            share = line["share_of_work"]
            of_jobs = f"{100 * line['jobs'] / figures['runnable']:.1f}"
            work = "-" if share is None else f"{100 * share:.1f}"
            table.add_row(plain(line["value"]), f"{line['jobs']:,}", of_jobs, work)
        console.print(table)
    console.print(_sizes(figures["by_size_and_runtime"]))
    if figures["arrivals"] is not None:
        console.print(plain(f"Submissions by weekday and hour ({figures['zone']}), darker is more", "bold"))
        for line in arrivals_text(figures["arrivals"]):
            console.print(plain(line), soft_wrap=True)


def _accuracy(accuracy: dict[str, Any]) -> "Table":
    """Return how much of their requested time jobs use."""
    table = _table("Run time over requested time", "up to", "jobs", "%")
    classes = accuracy["classes"]
    total = sum(line["jobs"] for line in classes)
    for line in classes:
        bound = "more: killed" if line["up_to"] is None else f"{line['up_to']:g}"
        table.add_row(bound, f"{line['jobs']:,}", f"{100 * line['jobs'] / total:.1f}")
    table.caption = f"mean {accuracy['ratio']['mean']:.3f}, median {accuracy['ratio']['median']:.3f}"
    return table


def _sizes(grid: dict[str, Any]) -> "Table":
    """Return the jobs by size and run time, in percent."""
    import numpy as np

    from pipistrelle.studies.workloads.summary import shares

    share = shares(np.array(grid["counts"], dtype=np.int64))
    table = _table("Jobs by size and run time, %", "units", *(_below(name) for name in grid["runtimes_below"]), "all")
    for name, line in zip(grid["sizes"], share, strict=True):
        table.add_row(name, *map(_percent, line), _percent(line.sum()))
    table.add_row("all", *map(_percent, share.sum(axis=0)), _percent(share.sum()))
    return table


def _below(name: str) -> str:
    return name if name == "more" else f"<{name}"


def _percent(value: float) -> str:
    return "" if value == 0 else "<0.1" if value < 0.05 else f"{value:.1f}"


def _value(value: float | None, key: str) -> str:
    if value is None:
        return "-"
    if key != "size":
        from pipistrelle.studies.failures.outage_summary import time_text

        return time_text(value)
    return f"{value:,.0f}" if value.is_integer() else f"{value:,.2f}"


def _table(title: str, *columns: str) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", caption_justify="left", box=SIMPLE_HEAD)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    return table
