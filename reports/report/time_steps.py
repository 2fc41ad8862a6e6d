"""Measure the error of making decisions only at multiples of a time step.

The method is from G. Zitzlsberger, B. Jansik and J. Martinovic, "Feasibility analysis of using the Maui scheduler for
job simulation of large-scale PBS based clusters" (2018), section 3.4.2.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from pipistrelle.reports.report.accuracy import WEEK, measures
from pipistrelle.runs.description.setup import Inputs, load_inputs
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.folders.run_jobs import ReportError
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.setup.recorded import starts_of
from pipistrelle.traces.transforms.start import begun_at
from pipistrelle.traces.workload import Workload

#: the time steps in the paper's order
STEPS: Final = ("60s", "30s", "10s", "5s", "1s")


class FirstWaits(Observer):
    """An observer that records each job's wait for its first start (s).

    It is recorded by the job's name in the workload.
    """

    def __init__(self) -> None:
        self.of: dict[str, float] = {}

    def started(self, now: float, job: Job) -> None:
        """Record the wait of a job's first attempt."""
        if job.attempt is None or not job.attempt.number:
            self.of[job.id.partition("!")[2].partition("#")[0]] = now - job.submit


def week_of(workload: Workload, week: int, warm_up: float) -> Workload:
    """Return the jobs submitted in week number ``week`` (from 1).

    Jobs submitted at most ``warm_up`` s before the week are included.

    Raises:
        PipistrelleError: if the log has no job in that week.
    """
    begin = float(workload.submit[0]) + (week - 1) * WEEK
    part = workload.select(workload.submit < begin + WEEK)
    if not len(part) or float(part.submit[-1]) < begin:
        weeks = int((float(workload.submit[-1]) - float(workload.submit[0])) // WEEK) + 1
        raise ReportError(
            f"no job was submitted in week {week}", where=workload.source, expected=f"one of its weeks 1 to {weeks}"
        )
    return begun_at(part, max(begin - warm_up, float(workload.submit[0])), warm=False)


def time_steps(
    spec: RunSpec,
    weeks: Sequence[int],
    steps: Sequence[str] = STEPS,
    *,
    warm_up: float = WEEK,
    tell: Callable[[str], None] = lambda text: None,
) -> Iterator[dict[str, Any]]:
    """Simulate weeks of a log, event-driven and with time steps; yield results.

    Each result has the errors of waits for jobs of the week itself: against the log (None if it has no starts), and
    against the event-driven run. ``seconds`` is wall-clock time, ``asked`` the number of notices to the scheduler.

    Args:
        spec: the description of the runs, without time step and week.
        weeks: numbers of weeks, counted from 1 at the first job.
        steps: time steps, such as ``5s``.
        warm_up: time simulated before each week (s).
        tell: called with a progress text before each run.

    Raises:
        PipistrelleError: if a run is impossible or fails.
    """
    if spec.outages is not None or spec.until is not None or spec.from_ is not None:
        raise ReportError("weeks begin and end where they do", expected="no --outages, --until and --from")
    trace, machine = load_inputs(spec)
    for week in weeks:
        part = week_of(trace, week, warm_up)
        begin = _begin(trace, part, week)
        chosen = [name for name, time in zip(part.ids, part.submit.tolist(), strict=True) if time >= begin]
        real = dict(zip(part.ids, (starts_of(part) - part.submit).tolist(), strict=True))
        exact: dict[str, float] = {}
        for step in (None, *steps):
            tell(f"week {week}, {'events' if step is None else f'a step of {step}'}")
            one, watch = replace(spec, poll=step), FirstWaits()
            result = run(one, RunOptions(given=Inputs(workload=part, machine=machine), observers=[watch]))
            exact = exact or watch.of
            yield {
                "week": week,
                "step": step,
                "jobs": len(chosen),
                "against_log": _apart(real, watch.of, chosen),
                "against_events": _apart(exact, watch.of, chosen),
                "seconds": result.times.total,
                "asked": result.times.round_trips,
            }


def _begin(whole: Workload, part: Workload, week: int) -> float:
    """Return when a week begins (s).

    The time counts from time 0 of the selected part of the log.
    """
    moved = whole.submit[whole.ids.index(part.ids[0])] - part.submit[0]
    return float(whole.submit[0] + (week - 1) * WEEK - moved)


def _apart(before: dict[str, float], after: dict[str, float], names: list[str]) -> dict[str, Any] | None:
    """Return statistics of how the waits ``after`` differ from ``before``.

    They are for the jobs ``names`` that have both. Return None if there are none.
    """
    both = [name for name in names if name in after and not np.isnan(before.get(name, np.nan))]
    if not both:
        return None
    return measures(np.array([before[name] for name in both]), np.array([after[name] for name in both]))
