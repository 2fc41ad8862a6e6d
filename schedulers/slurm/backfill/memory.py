"""Results of backfill passes, kept as long as later passes would find the same."""

from collections.abc import Hashable
from math import inf
from typing import Any, Final

from msgspec import Struct

from pipistrelle.schedulers.slurm.backfill.results import BackfillResult
from pipistrelle.schedulers.slurm.cluster.jobs import SlurmJob
from pipistrelle.schedulers.slurm.nodes.asked import Chosen, Selector
from pipistrelle.schedulers.slurm.passes.controller import Controller
from pipistrelle.schedulers.slurm.passes.job_order import QueueEntry

#: most results to keep
_MOST = 20_000
#: the set of all nodes of any machine
_ALL: Final = -1
#: (begin, end, nodes) of a reservation in the table of node space
Reserved = tuple[int, int, int]


class Found(Struct, frozen=True):
    """The result of the search for a job's start.

    Attributes:
        tested: whether enough nodes were open at some time, so that the job counts as tested.
        delayed: whether reservations delayed the start.
        chosen: the allocation at ``start``, or the last one tested if there is no start.
        start: earliest start, s; None: none.
        nodes: nodes open to a job that starts now.
    """

    tested: bool
    delayed: bool
    chosen: Chosen | None
    start: int | None = None
    nodes: int = 0


class _LastPass(Struct):
    """A pass in which no job started.

    Attributes:
        how: whether the pass was complete, and whether it renewed expected starts.
        marks: (job, partition, CPUs, expected start) as the pass left them.
        left: what earlier tests had left on the nodes when the pass began, and what the pass left there.
        until: time before which a pass over the same queue has the same result, s.
    """

    queue: list[QueueEntry]
    how: tuple[bool, bool]
    result: BackfillResult
    marks: list[tuple[SlurmJob, int, int, int]]
    left: tuple[Hashable, Hashable]
    until: float


class Memory:
    """Results of earlier searches, valid until a job starts or ends.

    A result depends on the request, the machine, the reservations made before in the same pass, and the time. The
    reservations are known by a number: 0 for none, and one number for each sequence of reservations.

    Attributes:
        usable: whether results may be kept at all in the present pass.
        version: the number of the reservations made so far in the present pass.
    """

    def __init__(self) -> None:
        self.usable = False
        #: node selector, and what earlier tests have left on the nodes when the present pass begins
        self._selector: Selector | None = None
        self._left: Hashable = ()
        self.version = 0
        self._versions = 0
        self._machine: tuple[Any, ...] = ()
        #: {(version, what is asked): (result, time before which it is valid)}
        self._results: dict[tuple[Any, ...], tuple[Any, float]] = {}
        #: {(version, reservation): (the version with this reservation, time before which it is valid)}
        self._after: dict[tuple[int, Reserved], tuple[int, float]] = {}
        self._now = 0
        #: time before which all results used in the present pass are valid
        self._until: float = inf
        self._last: _LastPass | None = None

    def begin(self, controller: Controller, now: int) -> None:
        """Begin a pass at ``now`` (s)."""
        self._now = now
        self.version = 0
        self._until = inf
        self._selector = controller.selector
        self._left = self._selector.left(_ALL)
        self.renew(controller)

    def renew(self, controller: Controller) -> None:
        """Forget all results if the machine has changed since they were found."""
        machine = controller.machine
        running = controller.running_jobs()
        known = (machine.down, machine.completing, id(controller))
        if not self._machine or self._machine[0] is not running or self._machine[1:] != known:
            self._machine = (running, *known)
            self.forget()
        elif len(self._results) + len(self._after) > _MOST:
            self.forget()
        self.usable = not (
            controller.reservations.all or (controller.running and controller.running[0][0] <= self._now)
        )

    def forget(self) -> None:
        """Forget all results."""
        self._results.clear()
        self._after.clear()
        self._last = None

    def recall(self, *asked: Any) -> Any:
        """Return the result that `keep` stored for an equal search; None if none is valid."""
        if not self.usable:
            return None
        found = self._results.get((self.version, *asked))
        if found is None or self._now >= found[1]:
            return None
        self._until = min(self._until, found[1])
        return found[0]

    def keep(self, result: Any, until: float, *asked: Any) -> None:
        """Keep a result that is valid before ``until`` (s)."""
        self._until = min(self._until, until)
        if self.usable and until > self._now:
            self._results[self.version, *asked] = (result, until)

    def leave_out(self) -> None:
        """Record that a search of the present pass has a result that cannot be kept."""
        self._until = -inf

    def reserved(self, reserved: Reserved, until: float) -> None:
        """Record a reservation that the present pass has made.

        Before ``until`` (s), an equal reservation changes the table of open nodes in the same way.
        """
        key = (self.version, reserved)
        found = self._after.get(key)
        if found is None or self._now >= found[1]:
            self._versions += 1
            found = self._after[key] = (self._versions, until if self.usable else -inf)
        self.version = found[0]
        self._until = min(self._until, found[1])

    def recall_pass(self, queue: list[QueueEntry], *, complete: bool, expects: bool) -> BackfillResult | None:
        """Return the result of the last pass; None if this pass might have another result.

        If there is a result, set the attributes of jobs that the last pass set.
        """
        last = self._last
        if last is None or not self.usable or self._now >= last.until or last.how != (complete, expects):
            return None
        if last.left[0] != self._left:
            return None
        if last.queue is not queue and [(one.job, one.part) for one in last.queue] != [
            (one.job, one.part) for one in queue
        ]:
            return None
        for job, part, cpus, expected in last.marks:
            job.part, job.cpus, job.expected = part, cpus, expected
        if last.left[0] != last.left[1]:
            assert self._selector is not None
            self._selector.leave(_ALL, last.left[1])
        return last.result

    def keep_pass(self, queue: list[QueueEntry], result: BackfillResult, *, complete: bool, expects: bool) -> None:
        """Keep the result of the present pass, in which no job started."""
        if self.usable and self._until > self._now:
            assert self._selector is not None
            marks = [(one.job, one.job.part, one.job.cpus, one.job.expected) for one in result.outcomes]
            left = (self._left, self._selector.left(_ALL))
            self._last = _LastPass(queue, (complete, expects), result, marks, left, self._until)
