"""The limits that kept a job waiting, as consecutive stretches of time."""

from itertools import pairwise

import numpy as np
from msgspec import Struct

from pipistrelle.reports.explain.looks import Limit, Seen
from pipistrelle.reports.explain.passing import known
from pipistrelle.runs.folders.files import JobLine, RunFiles


class Stretch(Struct):
    """A part of a job's wait in which the same limit kept the job waiting.

    Attributes:
        begin, end: its time span (s).
        limit, detail: the kind of limit, and a text that names the limit.
        free: the least and the greatest number of free units in this time.
        place: the job's position in the queue at ``begin`` and at ``end``.
        first: id of the first job in the queue.
        reservation: the start reserved for the job (s), as it was at ``begin`` and at ``end``.
        priority: the job's priority at ``begin`` and at ``end``.
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


def timeline_of(
    files: RunFiles, line: JobLine, seen: Seen | None, begin: float, end: float, depends_on: str, polls: bool
) -> list[Stretch]:
    """Return the limits that kept the job ``line`` waiting.

    Its wait is from ``begin`` to ``end`` (s). The other arguments are those of `explain`.
    """
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
    # The server did not ask the scheduler, because nothing had changed for the better.
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
                (known(look.reservation), known(look.reservation)),
                (priority, priority),
            ),
        )
    return found


def _fill(found: list[Stretch], files: RunFiles, line: JobLine, begin: float, end: float, otherwise: Limit) -> None:
    """Append the limits of a job's wait from ``begin`` to ``end`` (s).

    They are found from the number of free units. While enough units were free for the job, the limit is ``otherwise``.
    """
    states = files.states
    if end <= begin or not len(states.times):
        if end > begin:
            _join(found, Stretch(begin, end, otherwise))
        return
    at = max(int(np.searchsorted(states.times, begin, side="right")) - 1, 0)
    last = int(np.searchsorted(states.times, end, side="left"))
    rows = slice(at, max(last, at + 1))
    free, down = states.idle[rows].astype(np.int64), states.down[rows].astype(np.int64)
    since = np.maximum(states.times[rows], begin)
    since[0] = begin
    until = np.append(states.times[rows][1:], end)
    lasting = np.flatnonzero(until > since)
    free, down, since, until = free[lasting], down[lasting], since[lasting], until[lasting]
    kinds: tuple[Limit, ...] = (otherwise, "units", "down")
    kind = np.where(free >= line.size, 0, np.where(free + down >= line.size, 2, 1))
    # Merge neighbours with the same limit.
    edges = np.flatnonzero(np.diff(kind, prepend=-1, append=-1)).tolist()
    for first, after in pairwise(edges):
        limit = kinds[kind[first]]
        detail = f"{down[after - 1]:,} out" if limit == "down" else ""
        span = int(free[first:after].min()), int(free[first:after].max())
        _join(found, Stretch(float(since[first]), float(until[after - 1]), limit, detail, span))


def _join(found: list[Stretch], fresh: Stretch) -> None:
    """Append ``fresh`` to ``found``.

    If the last stretch of time has the same reason, it is extended instead.
    """
    if fresh.end <= fresh.begin:
        return
    if not found or found[-1].limit != fresh.limit or _reason(found[-1]) != _reason(fresh):
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


def _reason(one: Stretch) -> str:
    """Return the resource that the job lacked, or the scheduler's reason.

    The text is empty if the limit is of another kind. Numbers are left out of a reason, because they may change all the
    time.
    """
    if one.limit == "limit":
        return "".join(letter for letter in one.detail if not letter.isdigit())
    return one.detail.partition(":")[0] if one.limit == "resources" else ""


def _extended(
    old: tuple[float | None, float | None], new: tuple[float | None, float | None]
) -> tuple[float | None, float | None]:
    if new[1] is None:
        return old
    return new if old[0] is None else (old[0], new[1])
