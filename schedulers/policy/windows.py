"""Windows: periods during which some jobs may not use some units."""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from math import inf
from typing import Any, NamedTuple

from msgspec import Struct
from sortedcontainers import SortedList

from pipistrelle.protocol.units.masks import mask_of
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.policy.ends_and_shadow import Closed, Span, cut_short, end_of
from pipistrelle.schedulers.policy.jobs import SchedulerJob


class Closure(NamedTuple):
    """A period (s) during which a job must not hold any of ``units``, a bit mask."""

    begin: float
    end: float
    units: int


class Window(Struct, frozen=True, eq=False, dict=True):
    """A period (s) during which only jobs that ``admits`` accepts may use ``units``.

    ``end`` is inf if unknown. A window without ``admits`` is maintenance: no job may hold the units, and the server
    kills jobs that hold them at ``begin``. A window with ``admits`` kills no job.
    """

    id: str
    begin: float
    end: float
    units: NodeSet
    admits: Callable[[SchedulerJob], bool] | None = None

    @cached_property
    def closure(self) -> Closure:
        """The period and the units that the window closes to the jobs that it excludes."""
        return Closure(self.begin, self.end, mask_of(self.units))

    def closed_to(self, job: SchedulerJob) -> bool:
        """Return whether the window excludes the job."""
        return self.admits is None or not self.admits(job)


def span(begin: float, end: float) -> str:
    """Return a message's text for the period from ``begin`` to ``end`` (s)."""
    return f"from {begin:.15g} s " + ("for ever" if end == inf else f"to {end:.15g} s")


class Windows:
    """The current and future windows, sorted by (begin, end, id)."""

    __slots__ = ("_by_begin", "_maintenance", "by_id", "changes")

    def __init__(self) -> None:
        #: {id: window}
        self.by_id: dict[str, Window] = {}
        self._by_begin: SortedList[tuple[float, float, str]] = SortedList()
        #: the maintenance windows as `cut_short` takes them; None until needed
        self._maintenance: Closed | None = None
        #: number of windows added and removed so far
        self.changes = 0

    def __len__(self) -> int:
        return len(self.by_id)

    def __iter__(self) -> Iterator[Window]:
        """Iterate over the windows, sorted by start."""
        return (self.by_id[key[2]] for key in self._by_begin)

    def get(self, window_id: str) -> Window | None:
        """Return the window with this id; None if unknown."""
        return self.by_id.get(window_id)

    def add(self, window: Window) -> None:
        """Add a window; it replaces a window with the same id."""
        self.remove(window.id)
        self.by_id[window.id] = window
        self._by_begin.add((window.begin, window.end, window.id))
        self._maintenance = None
        self.changes += 1

    def remove(self, window_id: str) -> None:
        """Remove the window with this id, if it exists."""
        window = self.by_id.pop(window_id, None)
        if window is not None:
            self._by_begin.remove((window.begin, window.end, window.id))
            self._maintenance = None
            self.changes += 1

    def state(self) -> dict[str, Any]:
        """Return the maintenance windows, and how often windows changed, as plain values.

        Other windows, which exclude only some jobs, are not saved. After a restore, the objects that added them add
        them again.
        """
        plain = [[one.id, one.begin, one.end, str(one.units)] for one in self if one.admits is None]
        return {"windows": plain, "changes": self.changes}

    def restore(self, state: dict[str, Any], *made: object) -> None:
        """Restore the state that the method `state` returned."""
        for window_id, begin, end, units in state["windows"]:
            self.add(Window(window_id, begin, end, NodeSet.parse(units)))
        self.changes = state["changes"]

    def next_change(self, now: float) -> float:
        """Return when (s), after ``now``, a window next begins or ends; inf if none does.

        The server announces maintenance. A policy that adds its own windows must itself ask for a call at these times.
        """
        return min((time for key in self._by_begin for time in key[:2] if time > now), default=inf)

    def next_end(self, now: float) -> float:
        """Return when (s), after ``now``, the next window ends; inf if none does."""
        return min((end for _, end, _ in self._by_begin if end > now), default=inf)

    def against(self, job: SchedulerJob, begin: float, end: float = inf) -> Iterator[Window]:
        """Yield the windows that exclude ``job`` and overlap a period, by start.

        The period is from ``begin`` to ``end`` (s).
        """
        for opens, closes, window_id in self._by_begin:
            if opens >= end:
                return
            if closes > begin and (window := self.by_id[window_id]).closed_to(job):
                yield window

    def closed(self, job: SchedulerJob, begin: float) -> NodeSet:
        """Return the units closed to ``job`` during its whole run.

        The job starts at ``begin`` (s). The result has the units of all windows that exclude the job and overlap its
        time.
        """
        found = NodeSet.EMPTY
        if self._by_begin:
            for window in self.against(job, begin, end_of(begin, job.occupies)):
                found |= window.units
        return found

    def ends_at(self, job: SchedulerJob, now: float) -> float:
        """Return the latest end (s) of a running job.

        The job ends by its walltime, or earlier if maintenance kills it.
        """
        if not self._by_begin:
            return job.expected_end
        if self._maintenance is None:
            self._maintenance = closed_by(window for window in self if window.admits is None)
        if not self._maintenance.windows:
            return job.expected_end
        return cut_short(job.expected_end, now, [mask_of(job.alloc)], 0, 1, self._maintenance)


def closed_by(windows: Iterable[Window]) -> Closed:
    """Convert windows, sorted by start, to a `Closed` with bit masks for their units."""
    closures = [window.closure for window in windows]
    spans = [Span(closure.begin, closure.end, which) for which, closure in enumerate(closures)]
    return Closed(spans, [closure.units for closure in closures])
