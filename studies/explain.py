"""Why a job waited: what limited it when, which reservation and priority it had, who passed it."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, Final

import numpy as np
from msgspec import Struct

from pipistrelle.studies.explain_files import Floats, JobLine, RunFiles
from pipistrelle.studies.explain_replay import Happening, Limit, Look, Seen

#: {what limits a job: in words, after "for 2 h"}
WORDS: Final[Mapping[Limit, str]] = {
    "dependency": "it was kept back, as a job that it depends on had not come so far",
    "class": "its class or its user had reached a limit",
    "limit": "a limit of the scheduler kept it back",
    "units": "fewer units were free than it needs",
    "down": "enough units would have been free, but some were out of service",
    "window": "enough units were free, but announced maintenance would have ended it",
    "order": "enough units were free, but they were kept for jobs before it in the queue",
    "poll": "nothing kept it back, but the scheduler looks only now and then",
    "other": "enough units were free and it was the first in the queue, but a rule of the scheduler kept it back",
    "unknown": "enough units were free; why it was not started then is not known",
}
_MOST_SAMPLES: Final = 100


class Stretch(Struct):
    """A part of the wait in which the same thing limited the job, from ``begin`` to ``end`` (s).

    Of what changed in between there are the least and the most (``free``), or the first and the last value.
    """

    begin: float
    end: float
    limit: Limit
    detail: str = ""
    free: tuple[int, int] | None = None
    place: tuple[int, int] | None = None
    first: str | None = None
    reservation: tuple[float | None, float | None] = (None, None)
    priority: tuple[float | None, float | None] = (None, None)


class Passing(Struct):
    """A job that was submitted later and started earlier; times in seconds.

    ``reservation`` is the one that the explained job had when this one started, ``may_delay`` whether this one may
    have delayed it (docs/explain.md has the rule).
    """

    job: str
    size: int
    requested: float | None
    submitted: float
    started: float
    ended: float | None
    why: str
    reservation: float | None
    may_delay: bool


class Sample(Struct):
    """What the job's place in the queue depended on at a time (s)."""

    time: float
    place: int | None
    terms: Mapping[str, float]


class Promise(Struct):
    """From ``time`` (s) on the job was to start by ``start`` (s; None: it had no reservation, or no one could tell)."""

    time: float
    start: float | None


class Explanation(Struct):
    """Why a job waited; times in seconds, None where something did not happen or is not known."""

    job: str
    size: int
    requested: float | None
    submitted: float
    started: float | None
    ended: float | None
    state: str
    waited: float
    scheduler: str
    answer: str
    #: why the run was not repeated; None if it was
    not_replayed: str | None
    #: {what limited it: for how long (s)}
    limits: dict[Limit, float]
    timeline: list[Stretch]
    reservations: list[Promise]
    priorities: list[Sample]
    passed_by: list[Passing]
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

    Parameters
    ----------
    line
        the job; without a start it waited until the outputs end.
    seen
        what a replay showed; None: ``not_replayed`` says why there is none.
    depends_on
        which jobs it was to wait for, in words.
    polls
        whether the scheduler looks only at fixed steps.
    """
    begin = line.submit
    end = begin if line.state == "REJECTED" else files.until if line.start is None else line.start
    timeline = _timeline(files, line, seen, begin, end, depends_on, polls)
    looks = [] if seen is None else [look for look in seen.looks if look.time < end]
    promises = _promises(looks)
    passed_by = _passed_by(files, line, seen, begin, end, promises)
    limits: dict[Limit, float] = {}
    for stretch in timeline:
        limits[stretch.limit] = limits.get(stretch.limit, 0.0) + stretch.end - stretch.begin
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
        _answer(files, line, end - begin, limits, passed_by),
        not_replayed,
        limits,
        timeline,
        promises,
        _samples(looks),
        passed_by,
        [] if seen is None else [one for one in seen.happenings if begin <= one.time <= end],
        _remarks(files, line),
    )


def look_at(seen: Seen, time: float) -> Look | None:
    """Return the last look not after ``time`` (s), None if there was none."""
    at = bisect_right([look.time for look in seen.looks], time)
    return seen.looks[at - 1] if at else None


def duration(seconds: float) -> str:
    """Return a length of time in its two largest units, as ``3 h 12 min``."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    for unit, name, part, part_name in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= unit:
            rest = whole % unit // part
            return f"{whole // unit} {name} {rest} {part_name}" if rest else f"{whole // unit} {name}"
    raise AssertionError("unreachable")


# ---------------------------------------------------------------------------------------------------- what limited it


def _timeline(
    files: RunFiles, line: JobLine, seen: Seen | None, begin: float, end: float, depends_on: str, polls: bool
) -> list[Stretch]:
    found: list[Stretch] = []
    if seen is None:
        _fill(found, files, line, begin, end, "unknown")
        return found
    queued = min(begin if seen.queued is None else max(seen.queued, begin), end)
    if queued - begin > 1e-6:  # the outputs have six decimals
        found.append(Stretch(begin, queued, "dependency", depends_on))
    else:
        queued = begin
    looks = [look for look in seen.looks if look.time < end]
    # Nobody asked the scheduler, as its answer was clear: nothing had changed for the better.
    _fill(found, files, line, queued, looks[0].time if looks else end, "poll" if polls else "order")
    for number, look in enumerate(looks):
        until = looks[number + 1].time if number + 1 < len(looks) else end
        priority = None if look.terms is None else look.terms.get("priority")
        _join(
            found,
            Stretch(
                max(look.time, queued),
                until,
                look.limit,
                look.detail,
                (look.free, look.free),
                None if look.place is None else (look.place, look.place),
                look.first,
                (_known(look.reservation), _known(look.reservation)),
                (priority, priority),
            ),
        )
    return found


def _fill(found: list[Stretch], files: RunFiles, line: JobLine, begin: float, end: float, otherwise: Limit) -> None:
    """Add stretches by what the outputs tell of free units."""
    states = files.states
    if end <= begin or not len(states.times):
        if end > begin:
            _join(found, Stretch(begin, end, otherwise))
        return
    at = max(int(np.searchsorted(states.times, begin, side="right")) - 1, 0)
    last = int(np.searchsorted(states.times, end, side="left"))
    for row in range(at, max(last, at + 1)):
        free, down = int(states.idle[row]), int(states.down[row])
        limit: Limit = otherwise
        if free < line.size:
            limit = "down" if free + down >= line.size else "units"
        until = float(states.times[row + 1]) if row + 1 < last else end
        since = max(float(states.times[row]), begin) if row > at else begin
        _join(
            found, Stretch(since, until, limit, f"{down:,} out" if limit == "down" else "", (free, free))
        )


def _join(found: list[Stretch], fresh: Stretch) -> None:
    """Add a stretch, to the last one if the same thing limited the job there."""
    if fresh.end <= fresh.begin:
        return
    if not found or found[-1].limit != fresh.limit:
        found.append(fresh)
        return
    last = found[-1]
    last.end = fresh.end
    last.detail = fresh.detail or last.detail
    last.first = fresh.first or last.first
    if fresh.free is not None:
        last.free = (
            fresh.free if last.free is None else (min(last.free[0], fresh.free[0]), max(last.free[1], fresh.free[1]))
        )
    if fresh.place is not None:
        last.place = fresh.place if last.place is None else (last.place[0], fresh.place[1])
    last.reservation = _extended(last.reservation, fresh.reservation)
    last.priority = _extended(last.priority, fresh.priority)


def _extended(
    old: tuple[float | None, float | None], new: tuple[float | None, float | None]
) -> tuple[float | None, float | None]:
    if new[1] is None:
        return old
    return new if old[0] is None else (old[0], new[1])


def _known(time: float | None) -> float | None:
    return None if time == inf else time


def _promises(looks: Sequence[Look]) -> list[Promise]:
    """Return how the reservation changed."""
    found: list[Promise] = []
    for look in looks:
        start = _known(look.reservation)
        # A scheduler does not reckon where nothing is free, or nobody waits whom a reservation would keep back.
        if look.reservation is None and look.place in (None, 1):
            continue
        if (found and found[-1].start != start) or (not found and start is not None):
            found.append(Promise(look.time, start))
    return found


def _samples(looks: Sequence[Look]) -> list[Sample]:
    """Return places and terms over time: all, or as many as are of use."""
    known = [Sample(look.time, look.place, look.terms) for look in looks if look.terms is not None]
    if len(known) <= _MOST_SAMPLES:
        return known
    rows = np.linspace(0, len(known) - 1, _MOST_SAMPLES).round().astype(int)
    return [known[row] for row in rows.tolist()]


# -------------------------------------------------------------------------------------------------------- who passed it


def _passed_by(
    files: RunFiles, line: JobLine, seen: Seen | None, begin: float, end: float, promises: Sequence[Promise]
) -> list[Passing]:
    times = [promise.time for promise in promises]
    # Those that were submitted at the same instant queue in the order of the workload, which the outputs do not tell.
    order = {} if seen is None else {name: number for number, name in enumerate(seen.submitted)}
    mine = (line.queued, order.get(line.id, inf))
    found = []
    for other in _others(files, seen):
        is_later = (other.queued, order.get(other.id, -inf)) > mine
        if not is_later or other.start is None or not begin <= other.start < end:
            continue
        at = bisect_right(times, other.start)
        promised = promises[at - 1].start if at else None
        found.append(
            Passing(
                other.id,
                other.size,
                other.requested,
                other.submit,
                other.start,
                other.end,
                files.whys.get(other.id, ""),
                promised,
                False,
            )
        )
    found.sort(key=lambda passing: passing.started)
    could = _held_enough(files, line, found, begin, end)
    for passing, held in zip(found, could, strict=True):
        ended = inf if passing.ended is None else passing.ended
        if passing.reservation is None:
            passing.may_delay = held
        else:
            passing.may_delay = ended > passing.reservation and end > passing.reservation + 1e-6
    return found


def _others(files: RunFiles, seen: Seen | None) -> list[JobLine]:
    """Return all jobs that started, as far as is known when they were submitted."""
    found = [other for other in files.jobs.values() if other.start is not None]
    if seen is not None:
        for name, (submit, size, walltime) in seen.submitted.items():
            if name not in files.jobs and name in files.starts:
                found.append(JobLine(name, size, submit, submit, walltime, "RUNNING", files.starts[name], None))
    return found


def _held_enough(files: RunFiles, line: JobLine, passing: Sequence[Passing], begin: float, end: float) -> list[bool]:
    """Tell of each that passed whether it ran at a time when it, and others that passed, held what the job lacked."""
    states = files.states
    if not passing or not len(states.times):
        return [False] * len(passing)
    starts = np.array([one.started for one in passing])
    ends = np.array([end if one.ended is None else min(one.ended, end) for one in passing])
    sizes = np.array([one.size for one in passing], dtype=np.float64)
    within = states.times[(states.times > begin) & (states.times < end)]
    times: Floats = np.unique(np.concatenate([[begin], within, starts, ends[ends < end]]))
    idle = states.idle[np.maximum(np.searchsorted(states.times, times, side="right") - 1, 0)]
    by_end = np.argsort(ends, kind="stable")
    taken = np.concatenate([[0.0], np.cumsum(sizes)])
    given = np.concatenate([[0.0], np.cumsum(sizes[by_end])])
    held = (
        taken[np.searchsorted(starts, times, side="right")] - given[np.searchsorted(ends[by_end], times, side="right")]
    )
    critical = np.concatenate([[0], np.cumsum((idle < line.size) & (idle + held >= line.size))])
    first, after = np.searchsorted(times, starts), np.searchsorted(times, ends)
    could: list[bool] = (critical[after] > critical[first]).tolist()
    return could


# ------------------------------------------------------------------------------------------------------------- in words


def _answer(
    files: RunFiles, line: JobLine, waited: float, limits: Mapping[Limit, float], passed_by: Sequence[Passing]
) -> str:
    if line.state == "REJECTED":
        why = files.whys.get(line.id) or line.metadata
        return f"{line.id}, submitted at {line.submit:.10g} s, was rejected: {why or 'nothing tells why'}."
    if waited <= 0 and line.start is not None:
        return f"{line.id} did not wait: it started when it was submitted, at {line.start:.10g} s."
    parts = []
    for limit, seconds in limits.items():
        words = WORDS[limit]
        if limit == "units":
            words = "no unit was free" if line.size == 1 else f"fewer units were free than the {line.size:,} it needs"
        parts.append(f"for {duration(seconds)} {words}")
    parts.append(_passed_words(passed_by))
    still = "" if line.start is not None else ", and still did when the run ended"
    return f"{line.id} waited {duration(waited)}{still}: {'; '.join(parts)}."


def _passed_words(passed_by: Sequence[Passing]) -> str:
    if not passed_by:
        return "nobody who was submitted later passed it"
    jobs = "1 job" if len(passed_by) == 1 else f"{len(passed_by):,} jobs"
    text = f"it was passed by {jobs} submitted later"
    delaying = sum(one.may_delay for one in passed_by)
    if not delaying:
        return f"{text}, which did not delay it" if len(passed_by) == 1 else f"{text}, none of which delayed it"
    if len(passed_by) == 1:
        return f"{text}, which may have delayed it"
    return f"{text}, {'all' if delaying == len(passed_by) else f'{delaying:,}'} of which may have delayed it"


def _remarks(files: RunFiles, line: JobLine) -> list[str]:
    remarks = []
    root, mark, number = line.id.rpartition("#")
    if mark and number.isdigit() and root in files.jobs:
        remarks.append(f"It is attempt {number} of {root}, which lost its nodes and was submitted again.")
    tries = sum(1 for name in files.jobs if name.startswith(f"{line.id}#"))
    if tries:
        more = "1 more attempt" if tries == 1 else f"{tries} more attempts"
        remarks.append(f"It lost its nodes and had {more} after this one: {line.id}#1{' ...' if tries > 1 else ''}.")
    if line.queued != line.submit:
        remarks.append(f"It queued as of {line.queued:.10g} s, when its first attempt was submitted.")
    if files.summary is None:
        remarks.append("The run has no out_summary.json: it was killed, or still goes on; its outputs are incomplete.")
    return remarks


def as_json(explanation: Explanation, look: Look | None = None) -> dict[str, Any]:
    """Return an explanation as JSON can have it, with one moment of it, if that was asked for, as ``moment``."""
    from msgspec import to_builtins
    from msgspec.structs import asdict, replace

    found: dict[str, Any] = to_builtins(explanation)
    if look is not None:
        known = replace(look, reservation=_known(look.reservation))
        found["moment"] = {name: to_builtins(value) for name, value in asdict(known).items()}
    return found
