"""Print the table of results at the end of a run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal

import click
from msgspec import UNSET, to_builtins
from rich.table import Table

from pipistrelle.cli.terminal.console import results, show
from pipistrelle.cli.terminal.dates import Dates
from pipistrelle.server.errors import OutputFailed
from pipistrelle.server.outputs.metrics import Summary
from pipistrelle.server.outputs.once import to_json, write_output
from pipistrelle.server.outputs.reliability_book import PreemptionSummary
from pipistrelle.server.setup.recorded import RecordedFigures
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import Result

#: form of the printed results
Form = Literal["table", "json", "quiet"]
_SHOWN_NAME: Final = 60
#: {use of unit-seconds: text}
_SPENT: Final = {
    "useful": "useful work",
    "unsaved": "work cut off by a walltime or a kill",
    "lost": "work lost to failures",
    "dumping": "dumps",
    "reading": "reading dumps",
    "spare": "idle spares",
    "down": "failed nodes held",
    "waiting": "waiting for repairs",
    "overhead": "prologue and epilogue",
}


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
    """Print the figures of a run and the folder of its outputs."""
    summary, times = result.summary, result.times
    machine = setup.platform
    name = result.scheduler.name[:_SHOWN_NAME]
    title = f"{setup.name} on {machine.name} ({machine.units:,} units), {name}"
    show(title, "bold")
    table = Table()
    table.add_column("figure")
    table.add_column("value", justify="right")

    def row(name: str, value: float | None, form: str, unit: str = "") -> None:
        table.add_row(name, "-" if value is None else f"{value:{form}}{unit}")

    _ways(summary, row)
    row("makespan", summary.makespan, ",.0f", " s")
    row("utilisation", _percent(summary.utilisation), ".2f", " %")
    row("mean wait", summary.mean_wait, ",.3f", " s")
    row("median wait", summary.median_wait, ",.3f", " s")
    row("95th percentile of wait", summary.p95_wait, ",.3f", " s")
    row("mean bounded slowdown (10 s)", summary.mean_bounded_slowdown, ",.4f")
    if summary.reliability is not None:
        figures = summary.reliability
        row("failures of nodes", figures.node_failures, ",")
        row("availability of nodes", _percent(figures.availability), ".4f", " %")
        row("attempts", figures.attempts, ",")
        row("  of them ended by failures", figures.interrupted_attempts, ",")
        row("failures that jobs survived", figures.survived_failures, ",")
        row("jobs not retried", figures.given_up, ",")
        spent = figures.unit_seconds
        total = sum(spent.values())
        texts = _SPENT if summary.preemption is UNSET else {**_SPENT, "lost": "work lost to failures and preemption"}
        for kind, text in texts.items():
            if kind == "useful" or spent[kind]:
                row(f"jobs' time: {text}", 100 * spent[kind] / total if total else None, ".3f", " %")
    if summary.preemption is not UNSET:
        _preemption(summary.preemption, row)
    if summary.fragmentation is not UNSET:
        row("idle GPUs that fit no waiting job, mean", summary.fragmentation.mean, ",.2f")
        row("  share of idle GPUs while jobs wait", _percent(summary.fragmentation.share), ".2f", " %")
    if summary.recorded is not UNSET:
        _recorded(summary.recorded, row)
    row("round trips", times.round_trips, ",")
    row("wall time", times.total, ".2f", " s")
    row("  of it waiting for the scheduler", 100 * times.scheduler / times.total if times.total else None, ".0f", " %")
    results().print(table)
    _print_end(summary, setup, out)


def _ways(summary: Summary, row: Callable[..., None]) -> None:
    """Add table rows with the number of jobs, and of jobs that did not complete, by the way they ended."""
    row("jobs", summary.jobs, ",")
    row("rejected", summary.rejected, ",")
    for reason, count in summary.dropped.items():
        row(f"dropped: {reason}", count, ",")
    if summary.cancelled is not UNSET:
        row("cancelled while queued", summary.cancelled, ",")
    row("killed at their walltime", summary.killed_at_walltime, ",")
    if summary.killed:
        row("killed by the scheduler", summary.killed, ",")
    if summary.running_at_end is not UNSET and summary.waiting_at_end is not UNSET:
        row("running at the end, in no mean", summary.running_at_end, ",")
        row("queued at the end, in no mean", summary.waiting_at_end, ",")
    elif summary.unfinished:
        row("unfinished", summary.unfinished, ",")


def _preemption(preemption: PreemptionSummary, row: Callable[..., None]) -> None:
    """Add table rows with the numbers of preempted jobs and the work they lost."""
    row("preempted", preemption.preempted, ",")
    row("  requeued", preemption.requeued, ",")
    row("    after a last dump", preemption.dumped, ",")
    row("  cancelled", preemption.cancelled, ",")
    row("completed in their grace period", preemption.ended_before, ",")
    row("work lost by preemption", preemption.lost / 3600, ",.2f", " unit h")


def _recorded(recorded: RecordedFigures, row: Callable[..., None]) -> None:
    """Add table rows that say how closely the run repeats the starts in the log."""
    row("started as recorded", recorded.on_time, ",")
    row("  later", recorded.late, ",")
    row("    for lack of free units", recorded.no_room, ",")
    if recorded.late:
        row("  mean delay", recorded.mean_delay, ",.3f", " s")
    row("  without a recorded start", recorded.unrecorded, ",")
    if recorded.own_nodes or recorded.other_nodes or recorded.unknown_nodes:
        row("on their recorded nodes", recorded.own_nodes, ",")
        row("  on others", recorded.other_nodes, ",")
        row("  recorded nodes that the machine lacks", recorded.unknown_nodes, ",")


def _print_end(summary: Summary, setup: Setup, out: Path | None) -> None:
    """Print the dates of the run, why it ended before its last job, and the output folder."""
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


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def timings(result: Result) -> dict[str, Any]:
    """Return the wall-clock times of a run (s) by name."""
    times = result.times
    return {"round_trips": times.round_trips, "wall_time": times.total, "waiting_for_scheduler": times.scheduler}
