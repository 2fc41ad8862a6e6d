"""What will happen when: the event queue, with its total order."""

from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from math import inf
from typing import Any, Final

from mypy_extensions import mypyc_attr

from pipistrelle.protocol.base.state import Kept

# The class of an event decides among those of one instant. Work comes first, so that what is done at the very
# walltime counts as done; then ends, because a job that is done when its node fails is done, and because a scheduler
# must see every unit that is free; failures strike before repairs, so that what fails and is repaired at once has
# failed; who loses its nodes at the end of its grace has lost them, so that preemptions come after; jobs come back to
# the queue before new ones join it, and leave it after that if they are cancelled; decisions that were dated ahead
# come after all that happens by itself, so that they meet the instant's final state; READY, the end of the
# scheduler's thinking time, is last.
PHASE: Final = -1
END: Final = 0
FAILURE: Final = 1
REPAIR: Final = 2
MAINTENANCE: Final = 3
PREEMPTION: Final = 4
SWITCH: Final = 5
OUTSIDE: Final = 6
REQUEUE: Final = 7
SUBMISSION: Final = 8
CANCELLATION: Final = 9
CALL: Final = 10
DECISION: Final = 11
READY: Final = 12

#: [time, class, sequence, subject]: no two are equal before the subject is reached; None marks a cancelled entry.
Entry = list[Any]
#: {class: what is done with its subjects}
Handlers = Mapping[int, Callable[[Any], None]]


class Agenda:
    """A queue of subjects, ordered by (time in seconds, class, sequence of insertion)."""

    __slots__ = ("_number", "heap")

    def __init__(self) -> None:
        #: its first is the next that comes up, unless it was cancelled; read that, and change nothing
        self.heap: list[Entry] = []
        self._number = 0

    def put(self, time: float, kind: int, subject: object) -> Entry:
        """Add a subject, which must not be None; the returned entry serves to cancel it."""
        entry = [time, kind, self._number, subject]
        self._number += 1
        heappush(self.heap, entry)
        return entry

    @staticmethod
    def cancel(entry: Entry) -> None:
        """Make an entry void; it will not come up, nor will its time."""
        entry[3] = None

    def next_time(self) -> float:
        """Return the time of the first entry in seconds, inf when there is none."""
        heap = self.heap
        while heap:
            first = heap[0]
            if first[3] is not None:
                time: float = first[0]
                return time
            heappop(heap)
        return inf

    def pop(self) -> Entry | None:
        """Remove and return the first entry, None when there is none."""
        heap = self.heap
        while heap:
            entry = heappop(heap)
            if entry[3] is not None:
                return entry
        return None

    def happen(self, time: float, handlers: Handlers) -> None:
        """Let all entries of exactly this time happen, in order, also those that are added meanwhile."""
        heap = self.heap
        while heap and heap[0][0] == time:
            _, kind, _, subject = heappop(heap)
            if subject is not None:
                handlers[kind](subject)

    def entries(self) -> dict[int, Entry]:
        """Return what is to come by its number, in order: {number: entry}."""
        return {entry[2]: entry for entry in sorted(self.heap) if entry[3] is not None}

    def of(self, kind: int) -> dict[Any, Entry]:
        """Return what is to come of a class by its subject; others find their entries so after `restore`."""
        return {entry[3]: entry for entry in self.heap if entry[1] == kind and entry[3] is not None}

    def state(self) -> dict[str, Any]:
        """Return the number of the next entry and those that are to come."""
        return {"number": self._number, "entries": list(map(list, self.entries().values()))}

    def restore(self, state: dict[str, Any]) -> None:
        """Let these entries be all that is to come."""
        self._number = state["number"]
        self.heap = list(map(list, state["entries"]))  # in order: a heap


@mypyc_attr(allow_interpreted_subclasses=True)
class Part(Kept):
    """Something that not every run has, and that happens by itself; it is restored before jobs and agenda are."""

    def handlers(self) -> Handlers:
        """Return what is done with which class of what stands on the agenda; nothing, if it has no part in it."""
        return {}

    def tell_present(self) -> None:
        """Tell a scheduler that takes the run over how things stand."""
