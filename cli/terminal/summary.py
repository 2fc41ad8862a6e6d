"""Print the table of results at the end of a run."""

from pathlib import Path
from typing import Any, Final, Literal

import click
from msgspec import UNSET, to_builtins

from pipistrelle.cli.terminal.console import results, show
from pipistrelle.cli.terminal.dates import Dates
from pipistrelle.reports.report.figures import figure_rows, figure_text
from pipistrelle.server.errors import OutputFailed
from pipistrelle.server.outputs.metrics import Summary
from pipistrelle.server.outputs.once import to_json, write_output
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import Result

#: form of the printed results
Form = Literal["table", "json", "quiet"]
_SHOWN_NAME: Final = 60


def report(result: Result, setup: Setup, out: Path, timings_file: Path | None, form: Form = "table") -> None:
    """Print the results, write the timings, and raise the error of the run, if any."""
    if form == "table":
        print_summary(result, setup, out)
    elif form == "json":
        told = {"out": str(out), "scheduler": result.scheduler.name, **to_builtins(result.summary)}
        click.echo(to_json({**told, "timings": timings(result)}), nl=False)
    if timings_file is not None:
        try:
            write_output(timings_file, to_json(timings(result)))
        except OutputFailed as error:
            raise result.failure or error from None
    if result.failure is not None:
        raise result.failure


def print_summary(result: Result, setup: Setup, out: Path | None) -> None:
    """Print the metrics of a run and the folder of its outputs."""
    from rich.table import Table  # slow import, not needed without a table

    summary, times = result.summary, result.times
    machine = setup.platform
    name = result.scheduler.name[:_SHOWN_NAME]
    title = f"{setup.name} on {machine.name} ({machine.units:,} units), {name}"
    show(title, "bold")
    table = Table()
    table.add_column("figure")
    table.add_column("value", justify="right")

    for line in figure_rows(summary):
        table.add_row(*line)
    table.add_row("round trips", figure_text(times.round_trips, ","))
    table.add_row("wall time", figure_text(times.total, ".2f", " s"))
    waited = 100 * times.scheduler / times.total if times.total else None
    table.add_row("  of it waiting for the scheduler", figure_text(waited, ".0f", " %"))
    results().print(table)
    _print_end(summary, setup, out)


def _print_end(summary: Summary, setup: Setup, out: Path | None) -> None:
    """Print when and why the run ended, and the output folder.

    The reason is printed only if the run ended before its last job. Dates are printed if they are known.
    """
    dates = Dates(setup.epoch, setup.timezone)
    end = summary.makespan if summary.horizon is UNSET else summary.horizon
    if end is not None and dates.at(end):
        show(f"time 0 is {dates.at(0.0)}, the end {dates.at(end)}")
    if summary.horizon is not UNSET:
        jobs = f"{summary.running_at_end:,} jobs running and {summary.waiting_at_end:,} queued"
        show(f"stopped at {dates.beside(summary.horizon)} as asked with --until: {jobs}")
    elif summary.reason != "completed":
        # The message of a failure follows as an error.
        show(f"ended early: {summary.reason}" + (f" ({summary.message})" if summary.reason == "stopped" else ""))
    if out is not None:
        show(f"outputs in {out}")


def timings(result: Result) -> dict[str, Any]:
    """Return the wall-clock times of a run (s) by name."""
    times = result.times
    return {"round_trips": times.round_trips, "wall_time": times.total, "waiting_for_scheduler": times.scheduler}
