"""The metrics of a run's summary as a table of names and texts."""

from collections.abc import Callable
from typing import Final

from msgspec import UNSET

from pipistrelle.protocol.resources.amounts import CORES
from pipistrelle.server.outputs.metrics import Summary
from pipistrelle.server.outputs.reliability_book import PreemptionSummary
from pipistrelle.server.setup.recorded import RecordedFigures

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


def figure_text(value: float | None, form: str, unit: str = "") -> str:
    """Format a metric and add its unit.

    ``form`` is one of Python's format specifications. None becomes "-".
    """
    return "-" if value is None else f"{value:{form}}{unit}"


def figure_rows(summary: Summary) -> list[tuple[str, str]]:
    """Return the name and the text of each metric of a summary.

    Spaces before a name mean that the metric is a part of the metric in the row above.
    """
    rows: list[tuple[str, str]] = []

    def row(name: str, value: float | None, form: str, unit: str = "") -> None:
        rows.append((name, figure_text(value, form, unit)))

    _ways(summary, row)
    row("makespan", summary.makespan, ",.0f", " s")
    row("utilisation", _percent(summary.utilisation), ".2f", " %")
    for name, resource in ({} if summary.resources is UNSET else summary.resources).items():
        if name != CORES:  # the utilisation above is of cores
            row(f"  of {name}", _percent(resource.utilisation), ".2f", " %")
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
    return rows


def _ways(summary: Summary, row: Callable[..., None]) -> None:
    """Add rows to a table about how jobs ended.

    They are the number of jobs, and for each reason the number of jobs that did not complete.
    """
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
    """Add rows to a table: numbers of preempted jobs, and the work that they lost."""
    row("preempted", preemption.preempted, ",")
    row("  requeued", preemption.requeued, ",")
    row("    after a last dump", preemption.dumped, ",")
    row("  cancelled", preemption.cancelled, ",")
    row("completed in their grace period", preemption.ended_before, ",")
    row("work lost by preemption", preemption.lost / 3600, ",.2f", " unit h")


def _recorded(recorded: RecordedFigures, row: Callable[..., None]) -> None:
    """Add rows to a table that say how closely the run repeats the starts in the log."""
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


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
