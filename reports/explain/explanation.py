"""Explain why a job waited: limits, reservations, priorities, passing jobs."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct, to_builtins
from msgspec.structs import asdict, replace

from pipistrelle.reports.explain.limits import Stretch, timeline_of
from pipistrelle.reports.explain.looks import Happening, Limit, Look, RunIndex, Seen
from pipistrelle.reports.explain.passing import (
    Holder,
    Passed,
    Passing,
    Promise,
    holders_of,
    known,
    passed_by,
    passed_of,
    promises_of,
)
from pipistrelle.reports.explain.words import answer, remarks
from pipistrelle.runs.folders.files import ExplainError, JobLine, RunFiles, find_job

_MOST_SAMPLES: Final = 100
_MOST_HOLDERS: Final = 100


class Sample(Struct):
    """A job's position in the queue at a time (s).

    It also has the terms of the priority that gave the job this position.
    """

    time: float
    place: int | None
    terms: Mapping[str, float]


class Explanation(Struct):
    """The explanation of a job's wait.

    Times are in seconds; None means that a time is unknown or that the event did not happen.
    """

    job: str
    size: int
    requested: float | None
    submitted: float
    started: float | None
    ended: float | None
    state: str
    waited: float
    scheduler: str
    #: Unix time (s) of time 0 and the time zone's name; None if the workload lacks them
    epoch: float | None
    timezone: str | None
    answer: str
    #: the scheduler's reason for starting or rejecting the job, or ""
    why: str
    #: why the run was not repeated; None if it was repeated
    not_replayed: str | None
    #: {limit: how long it kept the job waiting (s)}
    limits: dict[Limit, float]
    timeline: list[Stretch]
    reservations: list[Promise]
    priorities: list[Sample]
    passed_by: list[Passing]
    #: jobs submitted earlier that were still waiting when this job started
    passed: list[Passed]
    #: the main jobs that held units while this job lacked some, largest share first
    holders: list[Holder]
    meanwhile: list[Happening]
    remarks: list[str]


def explain(
    files: RunFiles,
    line: JobLine,
    seen: Seen | None,
    *,
    not_replayed: str | None = None,
    depends_on: str = "",
    polls: bool = False,
) -> Explanation:
    """Return why a job waited.

    Args:
        line: the job. If it did not start, its wait ends with its rejection or at the end of the outputs.
        seen: what was observed of the job when the run was simulated again; None if that was not possible.
        not_replayed: why the run could not be simulated again.
        depends_on: names of the jobs that the job waits for.
        polls: whether the scheduler decides only at fixed steps.
    """
    begin = line.submit
    end = files.wait_ends(line)
    timeline = timeline_of(files, line, seen, begin, end, depends_on, polls)
    looks = [] if seen is None else [look for look in seen.looks if look.time < end]
    promises = promises_of(looks)
    passing = passed_by(files, line, seen, begin, end, promises)
    limits: dict[Limit, float] = {}
    short: dict[str, tuple[float, str]] = {}
    for stretch in timeline:
        limits[stretch.limit] = limits.get(stretch.limit, 0.0) + stretch.end - stretch.begin
        if stretch.limit == "resources":
            resource, _, text = stretch.detail.partition(": ")
            short[resource] = (short.get(resource, (0.0, ""))[0] + stretch.end - stretch.begin, text)
    limits = dict(sorted(limits.items(), key=lambda item: -item[1]))
    return Explanation(
        line.id,
        line.size,
        line.requested,
        begin,
        line.start,
        line.end,
        line.state,
        end - begin,
        files.scheduler,
        files.of_workload("epoch"),
        files.of_workload("timezone"),
        answer(files, line, end - begin, limits, passing, short),
        files.whys.get(line.id, ""),
        not_replayed,
        limits,
        timeline,
        promises,
        _samples(looks),
        passing,
        passed_of(files, line, seen),
        holders_of(files, line, seen, _lacking(timeline))[:_MOST_HOLDERS],
        [] if seen is None else [one for one in seen.happenings if begin <= one.time <= end],
        remarks(files, line),
    )


def _lacking(timeline: Sequence[Stretch]) -> list[tuple[float, float]]:
    return [(one.begin, one.end) for one in timeline if one.limit in ("units", "down")]


def look_at(seen: Seen, time: float) -> Look | None:
    """Return the last observation of a job at or before ``time`` (s).

    Return None if there is none.
    """
    at = bisect_right([look.time for look in seen.looks], time)
    return seen.looks[at - 1] if at else None


def _samples(looks: Sequence[Look]) -> list[Sample]:
    """Return a job's queue positions and priority terms over time.

    There are at most `_MOST_SAMPLES` of them.
    """
    found = [Sample(look.time, look.place, look.terms) for look in looks if look.terms is not None]
    if len(found) <= _MOST_SAMPLES:
        return found
    rows = np.linspace(0, len(found) - 1, _MOST_SAMPLES).round().astype(int)
    return [found[row] for row in rows.tolist()]


def as_json(explanation: Explanation, look: Look | None = None) -> dict[str, Any]:
    """Return an explanation as JSON values.

    Args:
        look: an observation of the job, added under the key ``moment``; None: add nothing.
    """
    found: dict[str, Any] = to_builtins(explanation)
    if look is not None:
        moment = replace(look, reservation=known(look.reservation))
        found["moment"] = {name: to_builtins(value) for name, value in asdict(moment).items()}
    return found


def account(index: RunIndex, job: str, at: float | None) -> tuple[Explanation, Look | None]:
    """Return why a job waited, and its state at the time ``at`` (s).

    The state is None if ``at`` is None or the run was not repeated. ``job`` is the job's id, with or without the
    prefix.

    Raises:
        ExplainError: if the job does not exist or did not wait at ``at``.
    """
    files, replayed = index.files, index.replayed
    known = dict.fromkeys([*files.jobs, *files.starts, *(replayed.submitted if replayed else ()), *index.others])
    name = find_job(job, list(known), str(files.folder), files.left_out)
    line = files.jobs.get(name)
    seen = None if replayed is None else replayed.of(name)
    if line is not None and files.wait_ends(line) <= line.submit:
        if at is not None:
            happened = "was rejected" if line.start is None else "started"
            raise ExplainError(f"{name} did not wait: it {happened} at submission ({line.submit:.10g} s)")
        return explain(files, line, None), None
    line = line or unfinished(files, name, seen)
    end = files.wait_ends(line)
    if at is not None and not line.submit <= at < end:
        raise _not_then(f"{name} did not wait then", at, f"a time from {line.submit:.10g} s to before {end:.10g} s")
    explanation = explain(
        files,
        line,
        seen,
        not_replayed=index.not_replayed,
        depends_on=index.depends_on.get(name.partition("#")[0], ""),
        polls=index.polls,
    )
    return explanation, None if at is None or seen is None else look_at(seen, at)


def unfinished(files: RunFiles, name: str, seen: Seen | None) -> JobLine:
    """Return what is known of a job that was queued or running at the run's end.

    ``name`` is the name of the job.

    Raises:
        ExplainError: if the run was not repeated (``seen`` is None), or the job never joined the queue.
    """
    if seen is None or name not in seen.submitted:
        raise ExplainError(
            f"{name} had not {'ended' if seen is None else 'joined the queue'} when the run ended",
            where=str(files.folder),
            hint="No output has its submit time." if seen is None else None,
        )
    start = files.starts.get(name)
    return replace(seen.submitted[name], state="SUBMITTED" if start is None else "RUNNING", start=start)


def _not_then(what: str, at: float, expected: str) -> ExplainError:
    return ExplainError(what, where="--at", expected=expected, found=f"{at:.10g} s")
