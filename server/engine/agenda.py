"""The agenda: the event queue of the simulation, in a total order."""

from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from typing import Any, Final

from mypy_extensions import mypyc_attr

from pipistrelle.protocol.base.state import Kept

# The classes order the entries of one instant. Work comes first, so that work done exactly at the walltime counts. Ends
# come before failures, so that a job that is done when its node fails is done. Ends come before decisions, so that the
# scheduler sees every free unit. Failures come before repairs, so that a node repaired at once has failed. Preemptions
# come after failures: if nodes fail at the end of a job's grace period, the job has lost them. Requeued jobs queue
# before new ones, and cancellations follow both. Dated decisions see the final state of their instant. READY, the end
# of the scheduler's thinking time, is last.
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

#: [time, class, sequence, subject]; the sequence is unique, so subjects are never compared. None: a cancelled entry
Entry = list[Any]
#: {class: handler of its subjects}
Handlers = Mapping[int, Callable[[Any], None]]


class Agenda:
    """The queue of future events.

    Its order is by time (s), then by class, then by order of insertion.
    """

    __slots__ = ("_number", "heap")

    def __init__(self) -> None:
        #: the first entry is the next one, unless it was cancelled; read only
        self.heap: list[Entry] = []
        self._number = 0

    def put(self, time: float, kind: int, subject: object) -> Entry:
        """Add an event of class ``kind`` for a subject (such as a job id).

        Return the entry. Pass it to `cancel` to cancel the event.
        """
        entry = [time, kind, self._number, subject]
        self._number += 1
        heappush(self.heap, entry)
        return entry

    @staticmethod
    def cancel(entry: Entry) -> None:
        """Cancel a future event; the simulation no longer stops at its time."""
        entry[3] = None

    def pop(self) -> Entry | None:
        """Remove and return the first entry; None if the agenda is empty."""
        heap = self.heap
        while heap:
            entry = heappop(heap)
            if entry[3] is not None:
                return entry
        return None

    def next_time(self) -> float | None:
        """Return the time (s) of the first entry; None if the agenda is empty."""
        heap = self.heap
        while heap and heap[0][3] is None:
            heappop(heap)
        return heap[0][0] if heap else None

    def happen(self, time: float, handlers: Handlers) -> None:
        """Handle all entries at exactly this time.

        This includes entries that the handlers add.
        """
        heap = self.heap
        while heap and heap[0][0] == time:
            _, kind, _, subject = heappop(heap)
            if subject is not None:
                handlers[kind](subject)

    def entries(self) -> dict[int, Entry]:
        """Return {sequence number: entry} of all entries, in agenda order."""
        return {entry[2]: entry for entry in sorted(self.heap) if entry[3] is not None}

    def of(self, kind: int) -> dict[Any, Entry]:
        """Return {subject: entry} of all entries of one class.

        Engine parts use it after `restore`, to find their entries again.
        """
        return {entry[3]: entry for entry in self.heap if entry[1] == kind and entry[3] is not None}

    def state(self) -> dict[str, Any]:
        """Return the next sequence number and the entries, for a snapshot."""
        return {"number": self._number, "entries": list(map(list, self.entries().values()))}

    def restore(self, state: dict[str, Any]) -> None:
        """Replace all entries by those of a snapshot."""
        self._number = state["number"]
        self.heap = list(map(list, state["entries"]))  # the list is sorted, so it is a heap


@mypyc_attr(allow_interpreted_subclasses=True)
class Part(Kept):
    """Interface of an optional part of the engine, such as failures.

    Snapshots restore such a part before the jobs and the agenda.
    """

    def handlers(self) -> Handlers:
        """Return {event class: function that handles its events}.

        These are the event classes of this part.
        """
        return {}

    def tell_present(self) -> None:
        """Report the part's current state to a scheduler that takes over the run."""
