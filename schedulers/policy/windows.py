"""Windows: times during which some units are not for every job, such as announced maintenance."""

from collections.abc import Callable, Iterator
from functools import cached_property
from math import inf
from typing import Any, NamedTuple

from msgspec import Struct
from sortedcontainers import SortedList

from pipistrelle.protocol.units.masks import mask_of
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.policy.ends_and_shadow import end_of
from pipistrelle.schedulers.policy.jobs import SchedulerJob


class Closure(NamedTuple):
    """``units`` (a mask) that a job must not hold at any time from ``begin`` until ``end`` (s)."""

    begin: float
    end: float
    units: int


class Window(Struct, frozen=True, eq=False, dict=True):
    """From ``begin`` until ``end`` (s; inf if nobody knows) ``units`` are only for the jobs that ``admits`` lets in.

    Without ``admits`` it is maintenance: no job may hold the units then, and one that still does at ``begin`` is ended
    by the server. A window with ``admits`` ends no job.
    """

    id: str
    begin: float
    end: float
    units: NodeSet
    admits: Callable[[SchedulerJob], bool] | None = None

    @cached_property
    def closure(self) -> Closure:
        """What it closes, to those whom it does not let in."""
        return Closure(self.begin, self.end, mask_of(self.units))

    def closed_to(self, job: SchedulerJob) -> bool:
        """Tell whether the window does not let the job in."""
        return self.admits is None or not self.admits(job)


def span(begin: float, end: float) -> str:
    """Return a time in words."""
    return f"from {begin:.15g} s " + ("for ever" if end == inf else f"to {end:.15g} s")


class Windows:
    """The windows in force or to come, by (begin, end, id)."""

    __slots__ = ("_by_begin", "by_id", "changes")

    def __init__(self) -> None:
        #: {name: window}
        self.by_id: dict[str, Window] = {}
        self._by_begin: SortedList[tuple[float, float, str]] = SortedList()
        #: how often a window was added or removed
        self.changes = 0

    def __len__(self) -> int:
        return len(self.by_id)

    def __iter__(self) -> Iterator[Window]:
        """Iterate by begin."""
        return (self.by_id[key[2]] for key in self._by_begin)

    def get(self, window_id: str) -> Window | None:
        """Return the window of this name, None if there is none."""
        return self.by_id.get(window_id)

    def add(self, window: Window) -> None:
        """Add a window; one of the same name is replaced."""
        self.remove(window.id)
        self.by_id[window.id] = window
        self._by_begin.add((window.begin, window.end, window.id))
        self.changes += 1

    def remove(self, window_id: str) -> None:
        """Remove the window of this name, if there is one."""
        window = self.by_id.pop(window_id, None)
        if window is not None:
            self._by_begin.remove((window.begin, window.end, window.id))
            self.changes += 1

    def state(self) -> dict[str, Any]:
        """Return the maintenance, and how often a window came or went; whoever adds other windows adds them again."""
        plain = [[one.id, one.begin, one.end, str(one.units)] for one in self if one.admits is None]
        return {"windows": plain, "changes": self.changes}

    def restore(self, state: dict[str, Any], *made: object) -> None:
        """Go on from a state."""
        for window_id, begin, end, units in state["windows"]:
            self.add(Window(window_id, begin, end, NodeSet.parse(units)))
        self.changes = state["changes"]

    def next_change(self, now: float) -> float:
        """Return when (s), after ``now``, the next window begins or ends; inf if none does.

        The server tells of maintenance; a policy that adds windows of its own asks to be called then.
        """
        return min((time for key in self._by_begin for time in key[:2] if time > now), default=inf)

    def next_end(self, now: float) -> float:
        """Return when (s), after ``now``, the next window ends; inf if none does."""
        return min((end for _, end, _ in self._by_begin if end > now), default=inf)

    def against(self, job: SchedulerJob, begin: float, end: float = inf) -> Iterator[Window]:
        """Iterate over the windows, by begin, that do not let ``job`` in and overlap the time from begin to end (s)."""
        for opens, closes, window_id in self._by_begin:
            if opens >= end:
                return
            if closes > begin and (window := self.by_id[window_id]).closed_to(job):
                yield window

    def closed(self, job: SchedulerJob, begin: float) -> NodeSet:
        """Return the units that ``job`` must not hold if it starts at ``begin`` (s) and lasts as long as it may."""
        found = NodeSet.EMPTY
        if self._by_begin:
            for window in self.against(job, begin, end_of(begin, job.occupies)):
                found |= window.units
        return found

    def killed_at(self, job: SchedulerJob, now: float) -> float:
        """Return when (s), after ``now``, maintenance ends a running job that lasts as long as it may; inf if never."""
        for opens, _, window_id in self._by_begin:
            if opens >= job.expected_end:
                break
            if opens > now:
                window = self.by_id[window_id]
                if window.admits is None and not window.units.isdisjoint(job.alloc):
                    return opens
        return inf
