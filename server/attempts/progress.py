"""How one attempt of a job goes on on its allocation, worked out from one failure to the next.

No dump is an event of its own: between two failures work, dumps and reads follow each other by rule, so that the state
at any time is arithmetic (`pipistrelle.server.attempts.segment`). Nodes that fail are not replaced from outside, and
what is repaired does not come back, before the allocation is given up.
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
    """What became of an attempt's time.

    ``saved`` and ``unsaved`` are seconds of the job's work on its whole allocation: what another attempt could begin
    from (all of it once the work is done), and what came after that. All that begins with ``node_`` is in node-seconds;
    together they are the allocation's nodes times the time since the start.
    """

    saved: float
    unsaved: float
    dumps: int
    reads: int
    #: failures that the allocation survived, and nodes that it has lost
    survived: int
    nodes_lost: int
    #: work that is saved or done, work since then, and work that was rolled back
    node_useful: float
    node_unsaved: float
    node_lost: float
    node_dumping: float
    node_reading: float
    #: nodes that were up and did nothing, and nodes that were down and held
    node_spare: float
    node_down: float
    #: seconds that went on with dumps and reads
    dumping: float
    reading: float
    #: nodes of the allocation
    nodes: int

    @property
    def node_seconds(self) -> float:
        """All node-seconds together."""
        work = self.node_useful + self.node_unsaved + self.node_lost
        return work + self.node_dumping + self.node_reading + self.node_spare + self.node_down


#: how far a segment has come that has not begun
NOTHING: Final = WorkPhase(0.0, 0.0, 0.0, 0.0, 0)


class AttemptProgress(Kept):
    """How one attempt goes on, whatever of its allocation it can do without.

    Parameters
    ----------
    resilience
        how the job meets failures.
    start
        when it begins, in seconds of simulated time.
    work
        how long the job takes on its whole allocation, in seconds.
    saved
        how much of that earlier attempts have kept, in seconds.
    nodes, rates
        the allocation's nodes, by number, and how often each fails, in failures per second, or, where the first failure
        ends the attempt, how often all fail together; needed only where the interval between dumps comes from them.
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
        #: what each node's rate is if all have the same: together they have the product (`failure_rate`)
        self._each = 0.0
        self._rates: dict[int, float] = {}
        if isinstance(rates, float | int):
            self._rate = rates
        elif resilience.rates_matter and len(rates) == len(nodes) == rates.count(next(iter(rates), 0.0)):
            self._each = rates[0]
        elif resilience.rates_matter:
            self._rates = dict(zip(nodes, rates, strict=True))
        self._down: set[int] = set()
        #: the side lengths of the grid
        self._rows = self._columns = 0
        #: how many nodes work in the present segment
        self._team = self._nodes
        #: which do, and which are idle; not known, nor needed, where the first failure ends the attempt
        self._active: set[int] = set()
        self._spare: list[int] = []
        if self._tolerated:
            self._active, self._spare = self._first_team(list(nodes))
            self._team = len(self._active)
        self._useful = self._lost = self._node_dumping = self._node_reading = 0.0
        self._node_spare = self._node_down = self._dumping = self._reading = 0.0
        self._dumps = self._reads = self._survived = 0
        #: up to when the time of idle and dead nodes is added up
        self._changed = self._start = start
        self._given_up = False
        self._segment = self._begin(start)

    @property
    def finish(self) -> float:
        """When the work will be done if nothing fails any more, in seconds of simulated time; inf if never."""
        return self._segment.finish

    @property
    def slower(self) -> float:
        """How many times as long work, dumps and reads take as on the whole allocation."""
        return self._nodes / self._team

    def duration(self, work: Floats) -> Floats:
        """Return how long work (s on the whole allocation, shape (n,)) takes with its dumps, if nothing fails."""
        slower, interval = self.slower, self.interval
        dump = self._resilience.dump * slower
        work = work * slower
        if isinf(interval):
            return work
        dumps = np.maximum(np.ceil(work / interval * NEARLY) - 1, 0)
        return np.asarray(work + dumps * dump, dtype=np.float64)

    # -- who works --------------------------------------------------------------------------------------------------

    def _first_team(self, nodes: list[int]) -> tuple[set[int], list[int]]:
        """Return the nodes that work at first, and those that do not."""
        working = len(nodes)
        if self._resilience.kind == "spares":
            working -= self._tolerated
        elif self._resilience.kind == "grid":
            self._rows = self._columns = isqrt(len(nodes))
            working = self._rows * self._columns
        return set(nodes[:working]), nodes[working:]

    def _replace(self, node: int) -> bool:
        """Let a node that has failed leave those that work; return whether the others can go on."""
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
        # A row or column leaves the grid, and its other nodes are spares; which they are makes no difference.
        if self._rows == self._columns:
            self._rows -= 1
        else:
            self._columns -= 1
        alive = sorted(self._active - self._down)
        dead = sorted(self._active & self._down)  # these fail in the same instant, and are to be replaced next
        keep = self._rows * self._columns
        ordered = alive + dead
        self._active = set(ordered[:keep])
        self._spare = [other for other in ordered[keep:] if other not in self._down]
        return True

    # -- how long things take ---------------------------------------------------------------------------------------

    def _begin(self, start: float) -> Segment:
        """Return the segment that begins now with the nodes that work now, with a read if something is saved."""
        # Each node writes and reads at a rate of its own: fewer of them take longer, for work and state alike.
        slower, dumping = self.slower, self._resilience
        self._reads += self._saved > 0
        read = read_first(self._saved, dumping.read * slower)
        return Segment(start, read, work_left(self._work, self._saved) * slower, self.interval, dumping.dump * slower)

    @property
    def interval(self) -> float:
        """The time of work between two dumps on the nodes that work now, in seconds."""
        rate = self._rate + self._each * self._team
        if self._rates:
            rate = failure_rate(self._rates[node] for node in sorted(self._active or self._rates))
        return interval_of(self._resilience, self._resilience.dump * self.slower, rate)

    # -- what happens -----------------------------------------------------------------------------------------------

    def strike(self, now: float, nodes: Sequence[int]) -> bool:
        """Let nodes of the allocation fail at ``now`` (s), together; each fails once.

        Returns whether the job goes on, from its last dump if one of them worked; if not, the allocation must be given
        up now, with all that was not saved. Work that is done by then stays done.
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
        """Let the allocation be given up at ``now`` (s), with all that was not saved; the work is not done by then."""
        self._pass_time(now)
        self._roll_back(now)
        self._given_up = True

    def left_of_dump(self, now: float, dump: float) -> tuple[float, int]:
        """Return how long (s) one more dump takes from ``now`` (s) on, or the rest of the present one, and its nodes.

        It takes no time if nothing was worked since the last. ``dump`` (s) is that on the whole allocation.
        """
        phase = self._segment.at(now)
        return _left_of(phase, dump * self.slower), self._team

    def _pass_time(self, now: float) -> None:
        """Add up what idle and dead nodes have spent since the last change."""
        passed = now - self._changed
        self._node_spare += passed * (self._nodes - self._team - len(self._down))
        self._node_down += passed * len(self._down)
        self._changed = now

    def _roll_back(self, now: float) -> None:
        """Close the present segment: what is saved is kept, what came after it is lost."""
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
        """Return what became of the time until ``now`` (s); it changes nothing."""
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
        """Return one that goes on from such a state."""
        self = cls.__new__(cls)
        self.restore(state[0])
        return self


register(AttemptProgress, lambda progress: [progress.state()], AttemptProgress.of_state)


class RigidProgress:
    """How an attempt goes on that ends with its first failure: most are such, and this one is quick.

    A job that dumps its state, or not, and loses its allocation with any of its nodes.

    Parameters
    ----------
    start
        when it begins, in seconds of simulated time.
    work, saved
        how long the job takes, and how much of that earlier attempts have kept, in seconds.
    nodes
        the number of nodes of the allocation.
    interval, dump, read
        the time of work between two dumps, and how long dumps and reads take, in seconds.
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
        #: when the work will be done if nothing fails, in seconds of simulated time
        self.finish = self._segment.finish

    def strike(self, now: float, nodes: Sequence[int]) -> bool:
        """Let nodes of the allocation fail at ``now`` (s).

        Returns False: it must be given up now, with all that was not saved; True only if the work is done by then.
        """
        if now >= self.finish:
            return True
        self._given_up = len(nodes)
        return False

    def give_up(self, now: float) -> None:
        """Let the allocation be given up, with all that was not saved; no node of it has failed."""
        self._lost = True

    def left_of_dump(self, now: float, dump: float) -> tuple[float, int]:
        """Return how long one more dump takes, and on how many nodes; as of `AttemptProgress`."""
        return _left_of(self._segment.at(now) if now >= self._start else NOTHING, dump), self._nodes

    def account(self, now: float) -> Account:
        """Return what became of the time until ``now`` (s), which is that of the failure once one has struck."""
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
        """Return what it is made with, by name; one that was given up has ended."""
        start, read, _, interval, dump = self._segment.made()
        made = {"start": start, "work": self._work, "saved": self._saved, "nodes": self._nodes}
        return [{**made, "interval": interval, "dump": dump, "read": read}]


register(RigidProgress, RigidProgress.made, lambda state: RigidProgress(**state[0]))


def _left_of(phase: WorkPhase, dump: float) -> float:
    """Return how long (s) it takes until all that was worked by then is in a dump, which takes ``dump`` s."""
    return dump - (phase.dumping - phase.dumps * dump) if phase.working > phase.saved else 0.0


def interval_of(resilience: Resilience, dump: float, rate: float) -> float:
    """Return the time of work (s) between two dumps of ``dump`` s on nodes that together fail at a rate (1/s)."""
    wanted = resilience.interval
    if wanted is None:
        return inf
    return dump_interval(wanted, dump, mtbf_of(rate)) if isinstance(wanted, str) else wanted
