"""The progress of one attempt on its allocation, from failure to failure.

Checkpoints are not events. Between two failures, an attempt reads, works and writes in a fixed order, so the
state at any time is computed directly (`pipistrelle.server.attempts.segment`). No node outside the allocation replaces
a failed node, and a repaired node does not rejoin the allocation.
"""

from collections.abc import Sequence
from math import inf, isinf, isqrt
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.failures.checkpointing import (
    NEARLY,
    WorkPhase,
    dump_interval,
    failure_rate,
    mtbf_of,
)
from pipistrelle.protocol.base.state import Kept, register
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.attempts.accounting import node_time, read_first, split_work, work_kept, work_left
from pipistrelle.server.attempts.segment import Segment
from pipistrelle.traces.resilience import Resilience

Floats = NDArray[np.float64]


class Account(NamedTuple):
    """How the time of an attempt was spent.

    ``saved`` is the work from which another attempt could continue, in seconds on the whole allocation. ``unsaved`` is
    the work done since the last checkpoint. The ``node_`` fields are node-seconds. Their sum is the number of nodes in
    the allocation times the duration of the attempt.
    """

    saved: float
    unsaved: float
    dumps: int
    reads: int
    #: failures survived, and nodes lost
    survived: int
    nodes_lost: int
    #: work that is saved or complete, work since the last dump, and work rolled back
    node_useful: float
    node_unsaved: float
    node_lost: float
    node_dumping: float
    node_reading: float
    #: idle nodes that were up, and held nodes that were down
    node_spare: float
    node_down: float
    #: time spent on dumps and on reads (s)
    dumping: float
    reading: float
    nodes: int

    @property
    def node_seconds(self) -> float:
        """Sum of the attempt's node-seconds over all uses."""
        work = self.node_useful + self.node_unsaved + self.node_lost
        return work + self.node_dumping + self.node_reading + self.node_spare + self.node_down


#: progress in a segment that has not begun
NOTHING: Final = WorkPhase(0.0, 0.0, 0.0, 0.0, 0)


class AttemptProgress(Kept):
    """Progress of an attempt with any resilience options.

    Args:
        start: when the attempt begins (simulated s).
        work: the job's total work (s) on its whole allocation.
        saved: the part of ``work`` that earlier attempts saved (s).
        nodes: node numbers of the allocation.
        rates: failure rate of each node (1/s), or their sum if the first failure ends the attempt.
    """

    _kept = (
        *("_resilience", "_nodes", "_work", "_saved", "_tolerated", "_rate", "_each", "_rates", "_down", "_rows"),
        *("_columns", "_team", "_active", "_spare", "_useful", "_lost", "_node_dumping", "_node_reading"),
        *("_node_spare", "_node_down", "_dumping", "_reading", "_dumps", "_reads", "_survived", "_changed", "_start"),
        *("_given_up", "_segment"),
    )

    def __init__(
        self,
        resilience: Resilience,
        *,
        start: float,
        work: float,
        saved: float,
        nodes: Sequence[int] | NodeSet,
        rates: Sequence[float] | float,
    ) -> None:
        self._resilience = resilience
        self._nodes = len(nodes)
        self._work = work
        self._saved = saved
        self._tolerated = resilience.tolerated(len(nodes))
        self._rate = 0.0
        #: failure rate of each node if all are equal; their sum is then a product (`failure_rate`)
        self._each = 0.0
        self._rates: dict[int, float] = {}
        if isinstance(rates, float | int):
            self._rate = rates
        elif resilience.rates_matter and len(rates) == len(nodes) == rates.count(next(iter(rates), 0.0)):
            self._each = rates[0]
        elif resilience.rates_matter:
            self._rates = dict(zip(nodes, rates, strict=True))
        self._down: set[int] = set()
        self._rows = self._columns = 0
        #: number of nodes that work in the current segment
        self._team = self._nodes
        #: which nodes work and which are idle; empty if the first failure ends the attempt
        self._active: set[int] = set()
        self._spare: list[int] = []
        if self._tolerated:
            self._active, self._spare = self._first_team(list(nodes))
            self._team = len(self._active)
        self._useful = self._lost = self._node_dumping = self._node_reading = 0.0
        self._node_spare = self._node_down = self._dumping = self._reading = 0.0
        self._dumps = self._reads = self._survived = 0
        #: time until which idle and failed nodes are accounted
        self._changed = self._start = start
        self._given_up = False
        self._segment = self._begin(start)

    @property
    def finish(self) -> float:
        """Time (s) at which the work completes if no more nodes fail; inf: never."""
        return self._segment.finish

    @property
    def slower(self) -> float:
        """Factor by which work, checkpoints and reads take longer than on all nodes."""
        return self._nodes / self._team

    def duration(self, work: Floats) -> Floats:
        """Return how long (s) some amounts of work (s) take without failures.

        The result includes the time for checkpoints. Argument and result have shape (n,).
        """
        slower, interval = self.slower, self.interval
        dump = self._resilience.dump * slower
        work = work * slower
        if isinf(interval):
            return work
        dumps = np.maximum(np.ceil(work / interval * NEARLY) - 1, 0)
        return np.asarray(work + dumps * dump, dtype=np.float64)

    def _first_team(self, nodes: list[int]) -> tuple[set[int], list[int]]:
        working = len(nodes)
        if self._resilience.kind == "spares":
            working -= self._tolerated
        elif self._resilience.kind == "grid":
            self._rows = self._columns = isqrt(len(nodes))
            working = self._rows * self._columns
        return set(nodes[:working]), nodes[working:]

    def _replace(self, node: int) -> bool:
        """Remove a failed node from the working nodes.

        Return whether the job can continue.
        """
        if node not in self._active:
            return True
        self._active.discard(node)
        kind = self._resilience.kind
        if self._spare:
            self._active.add(self._spare.pop(0))
            return True
        if kind == "moldable":
            return bool(self._active)
        if kind != "grid" or self._rows * self._columns <= 1:
            return False
        # A row or column leaves the process grid, and its other nodes become spares. Any row or column would do.
        if self._rows == self._columns:
            self._rows -= 1
        else:
            self._columns -= 1
        alive = sorted(self._active - self._down)
        dead = sorted(self._active & self._down)  # these nodes fail in the same instant and are replaced next
        keep = self._rows * self._columns
        ordered = alive + dead
        self._active = set(ordered[:keep])
        self._spare = [other for other in ordered[keep:] if other not in self._down]
        return True

    def _begin(self, start: float) -> Segment:
        # Each node works, writes and reads at its own rate, so fewer nodes take longer.
        slower, dumping = self.slower, self._resilience
        self._reads += self._saved > 0
        read = read_first(self._saved, dumping.read * slower)
        return Segment(start, read, work_left(self._work, self._saved) * slower, self.interval, dumping.dump * slower)

    @property
    def interval(self) -> float:
        """Working time (s) between two checkpoints, for the nodes that have not failed."""
        rate = self._rate + self._each * self._team
        if self._rates:
            rate = failure_rate(self._rates[node] for node in sorted(self._active or self._rates))
        return interval_of(self._resilience, self._resilience.dump * self.slower, rate)

    def strike(self, now: float, nodes: Sequence[int]) -> bool:
        """Record that nodes of the allocation fail together at ``now`` (s).

        Return whether the job continues. If a working node failed, the job continues from its last checkpoint. If the
        job cannot continue, the caller must end the allocation now, and all unsaved work is lost. Failures after the
        work is complete have no effect. Each node fails at most once.
        """
        if now >= self._segment.finish:
            return True
        self._pass_time(now)
        struck = [node for node in nodes if node not in self._down]
        rolls_back = not self._tolerated or not self._active.isdisjoint(struck)
        self._down.update(struck)
        if self._tolerated and not self._active.issuperset(struck):
            self._spare = [node for node in self._spare if node not in self._down]
        goes_on = len(self._down) <= self._tolerated and all(map(self._replace, struck))
        if rolls_back or not goes_on:
            self._roll_back(now)
        if goes_on:
            self._survived += 1
            if rolls_back:
                self._team = len(self._active)
                self._segment = self._begin(now)
        else:
            self._given_up = True
        return goes_on

    def give_up(self, now: float) -> None:
        """End the allocation at ``now`` (s) and lose all unsaved work."""
        self._pass_time(now)
        self._roll_back(now)
        self._given_up = True

    def left_of_dump(self, now: float, dump: float) -> tuple[float, int]:
        """Return the time (s) that one more checkpoint needs, and how many nodes write it.

        The time is 0 if no work was done since the last checkpoint. ``dump`` is the time (s) that writing a checkpoint
        takes on the whole allocation.
        """
        phase = self._segment.at(now)
        return _left_of(phase, dump * self.slower), self._team

    def _pass_time(self, now: float) -> None:
        passed = now - self._changed
        self._node_spare += passed * (self._nodes - self._team - len(self._down))
        self._node_down += passed * len(self._down)
        self._changed = now

    def _roll_back(self, now: float) -> None:
        """End the current segment: keep the saved work and lose the rest."""
        phase = self._segment.at(now)
        spent = node_time(phase, self._team)
        self._saved += phase.saved * (self._team / self._nodes)
        self._useful += spent.saved
        self._lost += spent.unsaved
        self._node_dumping += spent.dumping
        self._node_reading += spent.reading
        self._dumping += phase.dumping
        self._reading += phase.reading
        self._dumps += phase.dumps

    def account(self, now: float) -> Account:
        """Return how the time until ``now`` (s) was spent; the progress is unchanged."""
        phase = NOTHING if self._given_up else self._segment.at(now)
        passed, team = now - self._changed, self._team
        share, spent = team / self._nodes, node_time(phase, team)
        done = not self._given_up and now >= self._segment.finish
        return Account(
            saved=work_kept(self._work, self._saved, phase.saved * share, done),
            unsaved=(phase.working - phase.saved) * share,
            dumps=self._dumps + phase.dumps,
            reads=self._reads if now > self._start else 0,
            survived=self._survived,
            nodes_lost=len(self._down),
            node_useful=self._useful + spent.saved,
            node_unsaved=spent.unsaved,
            node_lost=self._lost,
            node_dumping=self._node_dumping + spent.dumping,
            node_reading=self._node_reading + spent.reading,
            node_spare=self._node_spare + passed * (self._nodes - team - len(self._down)),
            node_down=self._node_down + passed * len(self._down),
            dumping=self._dumping + phase.dumping,
            reading=self._reading + phase.reading,
            nodes=self._nodes,
        )

    @classmethod
    def of_state(cls, state: list[Any]) -> Self:
        """Return an attempt's progress from ``state``, as saved in a snapshot."""
        self = cls.__new__(cls)
        self.restore(state[0])
        return self


register(AttemptProgress, lambda progress: [progress.state()], AttemptProgress.of_state)


class RigidProgress:
    """The progress of an attempt that ends when one of its nodes fails.

    Most jobs are of this kind.
    """

    __slots__ = ("_given_up", "_lost", "_nodes", "_saved", "_segment", "_start", "_work", "finish")

    def __init__(
        self, *, start: float, work: float, saved: float, nodes: int, interval: float, dump: float, read: float
    ) -> None:
        self._start = start
        self._work = work
        self._saved = saved
        self._nodes = nodes
        self._given_up = 0
        self._lost = False
        self._segment = Segment(start, read_first(saved, read), work_left(work, saved), interval, dump)
        #: when the work completes if nothing fails (s)
        self.finish = self._segment.finish

    def strike(self, now: float, nodes: Sequence[int]) -> bool:
        """Record that nodes of the allocation fail at ``now`` (s).

        Return whether the job continues.
        """
        if now >= self.finish:
            return True
        self._given_up = len(nodes)
        return False

    def give_up(self, now: float) -> None:
        """End the allocation without a failure and lose all unsaved work."""
        self._lost = True

    def left_of_dump(self, now: float, dump: float) -> tuple[float, int]:
        """Return the time (s) that one more checkpoint needs, and how many nodes write it.

        ``dump`` is the time (s) that writing a whole checkpoint takes.
        """
        return _left_of(self._segment.at(now) if now >= self._start else NOTHING, dump), self._nodes

    def account(self, now: float) -> Account:
        """Return how the time until ``now`` (s), or until the failure, was spent."""
        nodes = self._nodes
        phase = self._segment.at(now) if now >= self._start else NOTHING
        spent, lost = node_time(phase, nodes), self._lost or bool(self._given_up)
        rest = split_work(spent.unsaved, False, lost)
        return Account(
            work_kept(self._work, self._saved, phase.saved, now >= self.finish),
            0.0 if lost else phase.working - phase.saved,
            phase.dumps,
            int(self._saved > 0 and now > self._start),
            0,
            self._given_up,
            spent.saved,
            rest.unsaved,
            rest.lost,
            spent.dumping,
            spent.reading,
            0.0,
            0.0,
            phase.dumping,
            phase.reading,
            nodes,
        )

    def made(self) -> list[Any]:
        """Return the constructor's arguments as [{name: value}], for a snapshot.

        The attempt must not have ended.
        """
        start, read, _, interval, dump = self._segment.made()
        made = {"start": start, "work": self._work, "saved": self._saved, "nodes": self._nodes}
        return [{**made, "interval": interval, "dump": dump, "read": read}]


register(RigidProgress, RigidProgress.made, lambda state: RigidProgress(**state[0]))


def _left_of(phase: WorkPhase, dump: float) -> float:
    """Return how long (s) it takes until a checkpoint contains all work done so far.

    A whole checkpoint takes ``dump`` s to write, a checkpoint in progress only the rest of that time. The result is 0
    if all work is saved already.
    """
    return dump - (phase.dumping - phase.dumps * dump) if phase.working > phase.saved else 0.0


def interval_of(resilience: Resilience, dump: float, rate: float) -> float:
    """Return the working time (s) between two checkpoints.

    A checkpoint takes ``dump`` s to write; ``rate`` is the failure rate (1/s) of the nodes.
    """
    wanted = resilience.interval
    if wanted is None:
        return inf
    return dump_interval(wanted, dump, mtbf_of(rate)) if isinstance(wanted, str) else wanted
