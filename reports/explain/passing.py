"""Find jobs that passed a waiting job: submitted later, but started earlier."""

from bisect import bisect_right
from collections.abc import Sequence
from math import inf
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from pipistrelle.reports.explain.looks import Look, Seen
from pipistrelle.runs.folders.files import Floats, JobLine, RunFiles
from pipistrelle.server.engine.jobs import NEVER_RAN

#: {part of a limit's text: index in `Labels` of the label by which the limit groups jobs}
_COUNTED_TOGETHER: Final = {
    "class '": 3,
    "max_nodes_per_user": 0,
    "USERCFG[": 0,
    "GROUPCFG[": 1,
    "ACCOUNTCFG[": 2,
    "CLASSCFG[": 3,
    "PERUSER": 0,
}
#: tolerance in seconds, because the outputs have six decimals
_ROUNDING: Final = 1e-6


class Passing(Struct):
    """A job that passed the explained job; times in seconds.

    It was submitted later and started earlier.

    Attributes:
        reservation: the start reserved for the explained job when the passing job started; None: no reservation.
        may_delay: whether the passing job may have delayed the explained job, by the rule in docs/how-to/explain.md.
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


class Passed(Struct):
    """A job that the explained job passed.

    It was submitted earlier, and still waited when the explained job started. Times are in seconds.
    """

    job: str
    size: int
    submitted: float
    started: float | None


class Holder(Struct):
    """A job that held units while the explained job lacked some; times in seconds.

    ``held`` are the job's unit-seconds while the explained job lacked units. ``share`` is this number divided by the
    unit-seconds that all jobs held in that time.
    """

    job: str
    user: str | None
    size: int
    started: float
    ended: float | None
    held: float
    share: float


class Promise(Struct):
    """A reservation for the explained job, made at ``time`` (s).

    The reserved start is ``start`` (s); None: unknown.
    """

    time: float
    start: float | None


def known(time: float | None) -> float | None:
    """Return ``time`` (s), or None if it is infinite.

    An infinite time stands for an unknown time.
    """
    return None if time == inf else time


def promises_of(looks: Sequence[Look]) -> list[Promise]:
    """Return each change of a job's reserved start, from the observations of the job."""
    found: list[Promise] = []
    for look in looks:
        start = known(look.reservation)
        # A scheduler makes no reservation if no unit is free, or if a reservation would hold back no waiting job.
        if look.reservation is None and look.place in (None, 1):
            continue
        if (found and found[-1].start != start) or (not found and start is not None):
            found.append(Promise(look.time, start))
    return found


def passed_by(
    files: RunFiles, line: JobLine, seen: Seen | None, begin: float, end: float, promises: Sequence[Promise]
) -> list[Passing]:
    """Return the jobs that passed the job ``line`` during its wait.

    The wait is from ``begin`` to ``end`` (s).
    """
    times = [promise.time for promise in promises]
    # Jobs submitted at the same instant queue in the workload's order, but the outputs do not have this order.
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
    could = _held_enough(line, found, *_lacking(files, line, seen, begin), begin, end)
    limited = [] if seen is None else _held_back(seen, end)
    for passing, held in zip(found, could, strict=True):
        ended = inf if passing.ended is None else passing.ended
        if passing.reservation is None:
            passing.may_delay = held or (seen is not None and _took_room(passing, line, seen, limited))
        else:
            passing.may_delay = ended > passing.reservation and end > passing.reservation + _ROUNDING
    if promises and seen is not None:
        _ask_of_the_first(promises[0].time, line, seen, found)
    return found


def passed_of(files: RunFiles, line: JobLine, seen: Seen | None) -> list[Passed]:
    """Return the jobs that the explained job passed: submitted earlier, but still queued when it started.

    Args:
        line: the explained job.
    """
    if line.start is None:
        return []
    order = {} if seen is None else {name: number for number, name in enumerate(seen.submitted)}
    mine = (line.queued, order.get(line.id, -inf))
    found = []
    for other in _others(files, seen, waiting=True):
        theirs = (other.queued, order.get(other.id, inf))
        if theirs < mine and other.state not in NEVER_RAN and (other.start is None or other.start > line.start):
            found.append((theirs, Passed(other.id, other.size, other.submit, other.start)))
    return [passed for _, passed in sorted(found, key=lambda one: one[0])]


def holders_of(
    files: RunFiles, line: JobLine, seen: Seen | None, lacking: Sequence[tuple[float, float]]
) -> list[Holder]:
    """Return the jobs that held units while the explained job lacked some, largest share first.

    Args:
        line: the explained job.
        lacking: the periods in which it lacked units, ascending: (begin, end) in seconds.
    """
    others = [other for other in _others(files, seen) if other.id != line.id and other.start is not None]
    if not lacking or not others:
        return []
    edges = np.array(lacking, dtype=np.float64).ravel()
    lengths = np.cumsum(np.diff(edges, prepend=edges[0]) * (np.arange(edges.size) % 2))
    starts = np.array([other.start for other in others], dtype=np.float64)
    ends = np.array([inf if other.end is None else other.end for other in others])
    held = np.interp(ends, edges, lengths) - np.interp(starts, edges, lengths)
    held *= np.array([other.size for other in others], dtype=np.float64)
    rows = np.flatnonzero(held > 0)
    rows = rows[np.argsort(-held[rows], kind="stable")]
    whole = float(held[rows].sum())
    users = {} if seen is None else {name: job.labels[0] for name, job in seen.submitted.items() if job.labels}
    return [
        Holder(
            other.id,
            users.get(other.id),
            other.size,
            float(starts[row]),
            other.end,
            float(held[row]),
            float(held[row]) / whole,
        )
        for row in rows.tolist()
        for other in (others[row],)
    ]


def _ask_of_the_first(time: float, line: JobLine, seen: Seen, passing: Sequence[Passing]) -> None:
    """Correct ``may_delay`` of some jobs.

    This reservation already takes the started jobs into account. Without them, the explained job could perhaps have
    started at once.

    Args:
        time: when it got the reservation (s).
        passing: the jobs that passed the explained job.
    """
    look = next(look for look in seen.looks if look.time == time)
    started = [one for one in passing if one.started == time]
    if look.limit in ("units", "down") and look.free + sum(one.size for one in started) >= line.size:
        for one in started:
            one.may_delay = True


def _others(files: RunFiles, seen: Seen | None, *, waiting: bool = False) -> list[JobLine]:
    """Return all jobs of a run that started.

    With ``waiting``, also return all that never started.
    """
    found = [other for other in files.jobs.values() if waiting or other.start is not None]
    if seen is not None:
        for name, job in seen.submitted.items():
            start = files.starts.get(name)
            if name not in files.jobs and (waiting or start is not None):
                found.append(replace(job, state="SUBMITTED" if start is None else "RUNNING", start=start))
    return found


def _lacking(files: RunFiles, line: JobLine, seen: Seen | None, begin: float) -> tuple[Floats, Floats]:
    """Return how many units were free during the wait of the job ``line``.

    The result has times (s), and the number of free units from each time on. The number is infinite at times when more
    free units would not help the job.
    """
    states = files.states
    if seen is None or not len(states.times):
        return states.times, states.idle
    queued = inf if seen.queued is None else seen.queued
    if queued - begin < _ROUNDING:
        queued = begin
    looked = seen.looks[0].time if seen.looks else inf
    row = max(int(np.searchsorted(states.times, queued, side="right")) - 1, 0)
    early = [row, *np.flatnonzero((states.times > queued) & (states.times < looked)).tolist()]
    times = [begin, *([] if queued == inf else [queued]), *states.times[early[1:]], *(look.time for look in seen.looks)]
    # If some nodes do not suit the job, any held unit may be the missing one.
    late = [
        line.size - 1.0 if look.limit == "nodes" else float(look.free) if look.limit in ("units", "down") else inf
        for look in seen.looks
    ]
    free = [inf, *([] if queued == inf else [states.idle[row]]), *states.idle[early[1:]], *late]
    return np.array(times, dtype=np.float64), np.array(free, dtype=np.float64)


def _held_enough(
    line: JobLine, passing: Sequence[Passing], since: Floats, free: Floats, begin: float, end: float
) -> list[bool]:
    """Return for each passing job whether it held units that the explained job lacked.

    The explained job waited from ``begin`` to ``end`` (s).

    ``free`` has the number of free units from each of the times ``since`` (s, ascending) on.
    """
    if not passing or not len(since):
        return [False] * len(passing)
    starts = np.array([one.started for one in passing])
    ends = np.array([end if one.ended is None else min(one.ended, end) for one in passing])
    sizes = np.array([one.size for one in passing], dtype=np.float64)
    within = since[(since > begin) & (since < end)]
    times: Floats = np.unique(np.concatenate([[begin], within, starts, ends[ends < end]]))
    free = free[np.maximum(np.searchsorted(since, times, side="right") - 1, 0)]
    by_end = np.argsort(ends, kind="stable")
    taken = np.concatenate([[0.0], np.cumsum(sizes)])
    given = np.concatenate([[0.0], np.cumsum(sizes[by_end])])
    held = (
        taken[np.searchsorted(starts, times, side="right")] - given[np.searchsorted(ends[by_end], times, side="right")]
    )
    critical = np.concatenate([[0], np.cumsum((free < line.size) & (free + held >= line.size))])
    first, after = np.searchsorted(times, starts), np.searchsorted(times, ends)
    could: list[bool] = (critical[after] > critical[first]).tolist()
    return could


class _Held(Struct):
    """A period in which a limit, such as one of a queue or user, held a job back.

    Attributes:
        begin, end: the period (s).
        queued: whether the limit counts queued jobs as well as running ones.
        labels: indices in `Labels`; the limit counts all jobs together that have equal values of these labels.
    """

    begin: float
    end: float
    queued: bool
    labels: tuple[int, ...]


def _held_back(seen: Seen, end: float) -> list[_Held]:
    """Return the periods until ``end`` (s) in which a limit, such as one of a queue or user, held a job back."""
    found: list[_Held] = []
    for number, look in enumerate(seen.looks):
        if look.limit not in ("class", "limit"):
            continue
        until = seen.looks[number + 1].time if number + 1 < len(seen.looks) else end
        labels = tuple(place for text, place in _COUNTED_TOGETHER.items() if text in look.detail)
        fresh = _Held(look.time, until, look.limit == "class", labels)
        last = found[-1] if found else None
        if last is not None and (last.end, last.queued, last.labels) == (fresh.begin, fresh.queued, fresh.labels):
            last.end = until
        else:
            found.append(fresh)
    return found


def _took_room(passing: Passing, line: JobLine, seen: Seen, held: Sequence[_Held]) -> bool:
    """Return whether a passing job may have used up a limit.

    The limit kept the explained job from starting.
    """
    mine, its = (seen.submitted[name].labels if name in seen.submitted else None for name in (line.id, passing.job))
    if mine is None or its is None:
        return False
    ended = inf if passing.ended is None else passing.ended
    for one in held:
        since = passing.submitted if one.queued else passing.started
        if since < one.end and one.begin < ended and all(mine[at] == its[at] for at in one.labels):
            return True
    return False
