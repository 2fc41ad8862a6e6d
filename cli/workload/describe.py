"""``pipistrelle workload describe``: tables, JSON and pictures of a workload."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from pipistrelle.cli.options.fields import SvgFile
from pipistrelle.cli.options.files import json_option, reading_but_zone, strict_option
from pipistrelle.cli.options.names import completed
from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.terminal.console import print_below, print_facts, print_json, show
from pipistrelle.cli.terminal.guard import refuse_overwriting

_QUANTITIES = (("size", "size, units"), ("runtime", "run time"), ("walltime", "requested time"))
_SPREAD = (
    *(("mean", "mean"), ("least", "least"), ("p05", "5 %"), ("p25", "25 %"), ("median", "median")),
    *(("p75", "75 %"), ("p95", "95 %"), ("greatest", "greatest")),
)


@click.command("describe", cls=Command)
@click.argument("source", metavar="IN", shell_complete=completed("workload", or_file=True))
@reading_but_zone
@strict_option
@click.option(
    "--machine-size",
    type=click.IntRange(1, 2**31),
    show_default="as in IN",
    help="Size of the machine in units (nodes or processors).",
)
@click.option(
    "--timezone",
    metavar="ZONE",
    show_default="as in IN, or UTC",
    help="Time zone of the log, and of the printed hours and weekdays.",
)
@json_option
@click.option("--picture", type=SvgFile(), help="Also draw the description as an .svg picture.")
def describe_command(
    source: str, machine_size: int | None, timezone: str | None, as_json: bool, picture: Path | None, **reading: Any
) -> None:
    """Describe a workload: sizes, times, load, users, arrivals.

    IN is a bundled name or a file.
    """
    from pipistrelle.models.workloads.options import zone_of
    from pipistrelle.models.workloads.pictures import svg
    from pipistrelle.models.workloads.summary import summarise
    from pipistrelle.runs.inputs.named import clock_zone, load_workload
    from pipistrelle.traces.describe import describe
    from pipistrelle.traces.files import write_trace

    if picture is not None:
        refuse_overwriting([source], [picture])
    workload = load_workload(source, timezone=clock_zone(source, timezone, reading["columns"]), **reading)
    if machine_size is not None:
        workload = replace(workload, machine_size=machine_size)
    figures = summarise(workload, zone_of(workload, timezone))
    if picture is not None:
        write_trace(picture, [svg(figures).encode()])
    if as_json:
        print_json(figures)
        return
    print_facts(describe(workload))
    if figures["runnable"]:
        _print_tables(figures)
    if picture is not None:
        show(f"picture in {picture}")


def _print_tables(figures: dict[str, Any]) -> None:
    from pipistrelle.models.workloads.pictures import arrivals_text

    spread = [[name, *(_value(figures[key][row], key) for key, _ in _QUANTITIES)] for row, name in _SPREAD]
    print_below("Spread of the jobs that can run", ["", *(name for _, name in _QUANTITIES)], spread)
    if (accuracy := figures["accuracy"]) is not None:
        print_below("Run time over requested time", ["up to", "jobs", "%"], _accuracy(accuracy["classes"]))
        show(f"  mean {accuracy['ratio']['mean']:.3f}, median {accuracy['ratio']['median']:.3f}")
    for name, top in figures["busiest"].items():
        rows = []
        for line in top["top"]:
            share = line["share_of_work"]
            of_jobs = f"{100 * line['jobs'] / figures['runnable']:.1f}"
            rows.append([line["value"], f"{line['jobs']:,}", of_jobs, "-" if share is None else f"{100 * share:.1f}"])
        print_below(f"{name}: {top['values']:,} in all", [name, "jobs", "% of jobs", "% of unit-seconds"], rows)
    grid = figures["by_size_and_runtime"]
    columns = ["units", *map(_below, grid["runtimes_below"]), "all"]
    print_below("Jobs by size and run time, %", columns, _sizes(grid))
    if figures["arrivals"] is not None:
        click.echo()
        show(f"Submissions by weekday and hour ({figures['zone']}), darker is more", "bold")
        for text in arrivals_text(figures["arrivals"]):
            show(text)


def _accuracy(classes: list[dict[str, Any]]) -> list[list[str]]:
    """Return table rows about how much of the requested time jobs used.

    A row has a share of the requested time, and the number of jobs.
    """
    total = sum(line["jobs"] for line in classes)
    return [
        [
            "more: killed" if line["up_to"] is None else f"{line['up_to']:g}",
            f"{line['jobs']:,}",
            f"{100 * line['jobs'] / total:.1f}",
        ]
        for line in classes
    ]


def _sizes(grid: dict[str, Any]) -> list[list[str]]:
    """Return table rows with the share of jobs (%) by size and run time."""
    import numpy as np

    from pipistrelle.models.workloads.summary import shares

    share = shares(np.array(grid["counts"], dtype=np.int64))
    return [
        [name, *map(_percent, line), _percent(line.sum())]
        for name, line in zip([*grid["sizes"], "all"], [*share, share.sum(axis=0)], strict=True)
    ]


def _below(name: str) -> str:
    return name if name == "more" else f"<{name}"


def _percent(value: float) -> str:
    return "" if value == 0 else "<0.1" if value < 0.05 else f"{value:.1f}"


def _value(value: float | None, key: str) -> str:
    if value is None:
        return "-"
    if key != "size":
        from pipistrelle.protocol.base.lengths import length_text

        return length_text(value)
    return f"{value:,.0f}" if value.is_integer() else f"{value:,.2f}"
