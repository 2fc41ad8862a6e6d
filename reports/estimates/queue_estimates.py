"""Expected starts of queued jobs, why they wait, and the errors of the estimates."""

from collections.abc import Mapping, Sequence
from math import fsum, inf
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from msgspec import Struct, to_builtins

from pipistrelle.reports.estimates.ahead import EstimateError
from pipistrelle.reports.estimates.moments import Glimpse, glimpses
from pipistrelle.reports.explain.index import kept_index
from pipistrelle.reports.explain.looks import Limit
from pipistrelle.reports.explain.making import described, setup_again, why_not_repeated
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.folders.files import ExplainError, JobLine, RunFiles, read_run
from pipistrelle.server.engine.jobs import LABEL_NAMES, Labels
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.setup.workload_jobs import labels_of

Outcome = Literal["started", "rejected", "cancelled", "none"]
_NAMELESS: Final[Labels] = (None, None, None, None, None)
#: a start later or earlier than the estimate by at most this counts as on time (s)
_PUNCTUAL: Final = 60.0


class QueueEstimate(Struct):
    """A job queued at some time of a run; times in seconds, None if unknown.

    Attributes:
        expected: the start if every job ran for its full walltime; None if unknown, or if this job would be rejected.
        refusal: why the scheduler would reject the job; None if it would not.
        why: the scheduler's reason for the expected start.
        outcome, happened: what actually happened to the job, and when.
        error: actual minus expected start.
    """

    job: str
    size: int
    requested: float | None
    submitted: float
    waited: float
    labels: dict[str, str]
    place: int | None
    limit: Limit | None
    detail: str
    expected: float | None
    why: str
    refusal: str | None
    outcome: Outcome
    happened: float | None
    error: float | None


class ErrorFigures(Struct):
    """Statistics of the errors of start estimates, in seconds.

    The statistics are None if no job started. ``later`` counts the jobs that started more than a minute after their
    estimate; ``earlier`` counts those that started more than a minute before it.
    """

    jobs: int
    mean: float | None
    median: float | None
    mean_absolute: float | None
    least: float | None
    most: float | None
    later: int
    earlier: int


class QueueThen(Struct):
    """The queue of a run at the time ``at`` (s).

    It is the queue after the scheduler's decisions at ``as_of`` (s).
    """

    run: str
    scheduler: str
    epoch: float | None
    timezone: str | None
    at: float
    as_of: float
    free: int
    of: dict[str, str]
    jobs: list[QueueEstimate]
    errors: ErrorFigures


def require_under_way(files: RunFiles, at: float) -> None:
    """Raise ExplainError unless the run was under way at a time (s)."""
    if not 0 <= at <= files.until:
        raise ExplainError(
            "the run was not under way then",
            where=f"--at, {files.folder}",
            expected=f"a time from 0 s to {files.until:.10g} s",
            found=f"{at:.10g} s",
        )


def queue_then(folder: Path, at: float, of: Mapping[str, str], *, trust: bool = False) -> QueueThen:
    """Return the jobs queued at a time (s) with their expected starts.

    Args:
        folder: output folder of a run that can be repeated.
        of: return only jobs with these labels, such as {"user": "17"}.
        trust: whether Python code that the folder names as the scheduler may run.

    Raises:
        PipistrelleError: if there are no outputs, the run cannot be repeated with the same results, or no job was
            queued.
    """
    spec, files = repeatable(folder, trust=trust)
    require_under_way(files, at)
    setup = setup_again(spec, files)
    (glimpse,) = glimpses(spec, setup, files, [at], looks=True)
    estimates = _estimates(files, setup, glimpse)
    if not estimates:
        raise _nobody(files, at)
    chosen_ones = [one for one in estimates if all(one.labels.get(name) == value for name, value in of.items())]
    if not chosen_ones:
        whose = " and ".join(f"{name} {value}" for name, value in of.items())
        raise ExplainError(
            f"none of the {len(estimates):,} jobs that waited then are of {whose}"
            if len(estimates) > 1
            else f"the only job that waited then is not of {whose}",
            where=f"--at {at:.10g}, {files.folder}",
        )
    return QueueThen(
        str(files.folder),
        files.scheduler,
        files.of_workload("epoch"),
        files.of_workload("timezone"),
        at,
        glimpse.as_of,
        glimpse.free,
        dict(of),
        chosen_ones,
        error_figures([one.error for one in chosen_ones if one.error is not None]),
    )


def repeatable(folder: Path, *, trust: bool = False) -> tuple[RunSpec, RunFiles]:
    """Return the description and outputs of a run.

    Raise EstimateError if the run cannot be simulated again.
    """
    index = kept_index(folder)
    files = read_run(folder) if index is None else index.files
    spec = described(files)
    reason = why_not_repeated(spec, trust=trust)
    if spec is None or reason is not None:
        raise EstimateError(
            f"starts cannot be estimated: {reason}",
            where=str(folder),
            expected="a scheduler that can be asked again in this process: one of pipistrelle's, or a Python class",
            hint="No output has its state at that time, and it cannot be set in another program.",
        )
    return spec, files


def error_figures(errors: Sequence[float]) -> ErrorFigures:
    """Return statistics of the errors (actual minus expected starts, s)."""
    if not errors:
        return ErrorFigures(0, None, None, None, None, None, 0, 0)
    return ErrorFigures(
        len(errors),
        fsum(errors) / len(errors),
        float(np.median(np.array(errors))),
        fsum(map(abs, errors)) / len(errors),
        min(errors),
        max(errors),
        sum(error > _PUNCTUAL for error in errors),
        sum(error < -_PUNCTUAL for error in errors),
    )


def as_json(found: QueueThen) -> dict[str, Any]:
    """Return a queue and the expected starts of its jobs as JSON values."""
    told: dict[str, Any] = to_builtins(found)
    return told


def _estimates(files: RunFiles, setup: Setup, glimpse: Glimpse) -> list[QueueEstimate]:
    """Return the queued jobs sorted by expected start.

    Jobs without an expected start come last.
    """
    labels = _labels(setup)
    found = []
    for name, job in glimpse.jobs.items():
        look = glimpse.looks.get(name)
        time, why = glimpse.foreseen.starts.get(name, (None, ""))
        refused = glimpse.foreseen.refusals.get(name)
        line = files.jobs.get(name)
        estimate = _estimate(files, name, job.size, job.walltime, job.submit if line is None else line.submit, glimpse)
        estimate.place = None if look is None else look.place
        estimate.limit, estimate.detail = (None, "") if look is None else (look.limit, look.detail)
        estimate.expected, estimate.why = time, why
        estimate.refusal = None if refused is None else refused[1]
        if time is not None and estimate.outcome == "started" and estimate.happened is not None:
            estimate.error = estimate.happened - time
        found.append(estimate)
    for name, held in _held_back(files, setup, glimpse).items():
        walltime = inf if held.requested is None else held.requested
        estimate = _estimate(files, name, held.size, walltime, held.submit, glimpse)
        estimate.limit, some = "dependency", setup.conditions[name.partition("#")[0]]
        estimate.detail = " ".join(f"{one.kind}:{one.job_id}" for one in some)
        found.append(estimate)
    for one in found:
        names = labels.get(one.job.partition("#")[0], _NAMELESS)
        one.labels = {name: value for name, value in zip(LABEL_NAMES, names, strict=True) if value is not None}
    last = len(found)
    return sorted(
        found,
        key=lambda one: (
            inf if one.expected is None else one.expected,
            one.limit == "dependency",
            last if one.place is None else one.place,
        ),
    )


def _estimate(files: RunFiles, name: str, size: int, walltime: float, submit: float, glimpse: Glimpse) -> QueueEstimate:
    outcome, happened = outcome_of(files, name)
    requested = walltime if walltime < inf else None
    waited = glimpse.time - submit
    return QueueEstimate(
        name, size, requested, submit, waited, {}, None, None, "", None, "", None, outcome, happened, None
    )


def outcome_of(files: RunFiles, name: str) -> tuple[Outcome, float | None]:
    """Return what happened to a queued job, and when (s).

    Both are read from the outputs.
    """
    start = files.starts.get(name)
    if start is not None:
        return "started", start
    line = files.jobs.get(name)
    if line is not None and line.state == "CANCELLED":
        return "cancelled", line.end
    if name in files.rejections or (line is not None and line.state == "REJECTED"):
        return "rejected", files.rejections.get(name)
    return "none", None


def _held_back(files: RunFiles, setup: Setup, glimpse: Glimpse) -> dict[str, JobLine]:
    """Return {id: job} of the jobs that wait for dependencies.

    The scheduler does not know these jobs yet.
    """
    if not setup.conditions:
        return {}
    return {
        name: line
        for name, line in files.jobs.items()
        if name.partition("#")[0] in setup.conditions
        and name not in glimpse.jobs
        and line.submit <= glimpse.time < files.wait_ends(line)
    }


def _labels(setup: Setup) -> dict[str, Labels]:
    return {
        f"{prefix}!{one}": labels
        for prefix, workload in setup.workloads.items()
        for one, labels in zip(workload.ids, labels_of(workload), strict=True)
    }


def _nobody(files: RunFiles, at: float) -> ExplainError:
    """Return the error that no job was queued at the time ``at`` (s).

    Its message names the nearest times at which jobs were queued.
    """
    spans = sorted((line.submit, files.wait_ends(line)) for line in files.jobs.values())
    spans = [(begin, end) for begin, end in spans if end > begin]
    before = max((end for _, end in spans if end <= at), default=None)
    after = min((begin for begin, _ in spans if begin > at), default=None)
    near = []
    if before is not None:
        near.append(f"the last before had waited until {before:.10g} s")
    if after is not None:
        near.append(f"the next waited from {after:.10g} s on")
    hint = "; ".join(near) if near else "no job of this run waited"
    return ExplainError(
        "no job waited then",
        where=f"--at {at:.10g}, {files.folder}",
        hint=f"{hint[0].upper()}{hint[1:]}.",
    )
