"""The machine fails and is repaired and maintained; what that does to its units and to the jobs on them."""

from collections.abc import Iterable
from math import inf
from typing import TYPE_CHECKING, Final, Literal

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.failures.outage import Outage
from pipistrelle.platforms.maintenance import Maintenance
from pipistrelle.platforms.topology.numbering import NodeUnits
from pipistrelle.protocol.events import (
    MaintenanceAnnounced,
    MaintenanceAnnouncedData,
    MaintenanceBegins,
    MaintenanceBeginsData,
    MaintenanceEnds,
    MaintenanceEndsData,
    NodesFailed,
    NodesFailedData,
    NodesRepaired,
    NodesRepairedData,
)
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.attempts.attempts import Trials
from pipistrelle.server.engine.agenda import FAILURE, MAINTENANCE, REPAIR
from pipistrelle.server.engine.stalls import MAX_FRUITLESS, describe_waiting
from pipistrelle.server.errors import Stalled
from pipistrelle.server.outages.feed import OutageFeed
from pipistrelle.server.outages.reliability import Reliability

if TYPE_CHECKING:
    from pipistrelle.server.engine.engine import Engine


#: what the scheduler is told of nodes: nothing; why they go and come back, failures and maintenance apart; or only that
Tells = Literal["nothing", "reasons", "changes"]


def let_fail(engine: "Engine", platform: Platform, reliability: Reliability, *, tells: Tells, holds: bool) -> None:
    """Let the nodes of an engine fail and be repaired, and its jobs live with it; see `Failures`."""
    places = NodeUnits.of(platform)
    engine.trials = Trials(engine, platform, places, reliability)
    engine.stalls.fails = True
    Failures(engine, places, reliability, engine.trials, tells=tells, holds=holds)


#: so many times as many outages pass before a run has stalled in which jobs are kept back for others
_PATIENCE: Final = 10


class _Down:
    """Nodes that are down for one kind of reason, each perhaps several times over."""

    def __init__(self) -> None:
        self._times: dict[int, int] = {}

    def more(self, nodes: Iterable[int]) -> NodeSet:
        """Count a reason for each node; return those that had none."""
        times = self._times
        new = []
        for node in nodes:
            before = times.get(node, 0)
            times[node] = before + 1
            if not before:
                new.append(node)
        return NodeSet.of(new)

    def less(self, nodes: Iterable[int]) -> NodeSet:
        """Take a reason from each node; return those that have none left."""
        times = self._times
        old = []
        for node in nodes:
            times[node] -= 1
            if not times[node]:
                del times[node]
                old.append(node)
        return NodeSet.of(old)

    def without(self, nodes: NodeSet) -> NodeSet:
        """Return those of the nodes that are not down for this kind of reason."""
        return NodeSet.of(node for node in nodes if node not in self._times) if self._times else nodes


class Failures:
    """Replays outages and maintenance on an engine.

    Parameters
    ----------
    engine
        the engine; its agenda has the next outage only, so that streams without an end are no matter.
    places
        which units belong to which node.
    reliability
        what happens.
    tells
        what the scheduler is told of nodes.
    holds
        whether a job may be started on units that are down, and then waits there for their repair: so that a scheduler
        that knows nothing of failures still works. Else such a decision is illegal.
    """

    def __init__(
        self,
        engine: "Engine",
        places: NodeUnits,
        reliability: Reliability,
        trials: Trials,
        *,
        tells: Tells,
        holds: bool,
    ) -> None:
        self._engine = engine
        self._places = places
        self._trials = trials
        self._reasons = tells == "reasons"
        self._changes = tells == "changes"
        self._holds = holds
        self._feed = OutageFeed(reliability.streams())
        self._planned = reliability.planned()
        self._failed = _Down()
        self._maintained = _Down()
        self._fruitless = 0
        self._steps = -1
        engine.handlers[FAILURE] = self._fail
        engine.handlers[REPAIR] = self._repair
        engine.handlers[MAINTENANCE] = self._maintain
        self._put_next_failure()
        self._put_next_announcement()

    # -- what comes unexpected --------------------------------------------------------------------------------------

    def _put_next_failure(self) -> None:
        outages = self._feed.next_instant()
        if outages:
            self._engine.agenda.put(outages[0].down, FAILURE, outages)

    def _fail(self, outages: list[Outage]) -> None:
        """Let nodes go down: all that do at one time, so that a job loses them together."""
        self._watch()
        engine = self._engine
        repairs: dict[float, list[int]] = {}
        for outage in outages:
            if outage.up < inf:
                repairs.setdefault(outage.up, []).append(outage.node)
        for time, nodes in repairs.items():
            engine.agenda.put(time, REPAIR, nodes)
        new = self._failed.more(outage.node for outage in outages)
        causes: dict[int, str] = {}
        for outage in outages:
            if outage.node in new:
                causes.setdefault(outage.node, outage.cause)
        self._go_down(self._maintained.without(new), causes, planned=False)
        self._bury(NodeSet.of(outage.node for outage in outages if outage.up == inf))
        if self._reasons:
            self._tell_failed(causes)
        self._put_next_failure()

    def _repair(self, nodes: list[int]) -> None:
        up = self._failed.less(nodes)
        if not up:
            return
        self._come_up(self._maintained.without(up))
        if self._reasons:
            self._tell_repaired(up)

    def _tell_failed(self, causes: dict[int, str]) -> None:
        together: dict[str, list[int]] = {}
        for node, cause in causes.items():
            together.setdefault(cause, []).append(node)
        for cause, numbers in together.items():
            nodes = NodeSet.of(numbers)
            units = self._places.units_of(nodes)
            self._engine.tell(NodesFailed(self._engine.now, NodesFailedData(str(nodes), str(units), cause)))

    def _tell_repaired(self, nodes: NodeSet) -> None:
        units = self._places.units_of(nodes)
        self._engine.tell(NodesRepaired(self._engine.now, NodesRepairedData(str(nodes), str(units))))

    def _bury(self, nodes: NodeSet) -> None:
        """Take note of nodes that never come back: no job can be held for them."""
        if nodes and self._holds:
            self._engine.cluster.ledger.block(self._places.units_of(nodes))
            self._trials.forsake(nodes, "a node that is not repaired any more")

    def _watch(self) -> None:
        """Raise Stalled if outages go on for ever, but nothing that a job does."""
        engine = self._engine
        cluster = engine.cluster
        if cluster.steps != self._steps or not (engine.exhausted or engine.held):
            self._steps = cluster.steps
            self._fruitless = 0
        self._fruitless += 1
        # Jobs that are kept back may wait for nothing but time, and others may be to come.
        most = MAX_FRUITLESS if engine.exhausted else MAX_FRUITLESS * _PATIENCE
        if self._fruitless > most and not self._trials.at_work:
            raise Stalled(
                f"{most:,} outages passed, and no job made a step",
                where=f"simulated time {engine.now!r}",
                found=describe_waiting(cluster),
                hint="The scheduler starts nothing on the nodes that are up, or jobs wait for nodes that stay down.",
            )

    # -- what is planned --------------------------------------------------------------------------------------------

    def _put_next_announcement(self) -> None:
        plan = next(self._planned, None)
        if plan is not None:
            self._engine.agenda.put(plan.announced, MAINTENANCE, (plan, self._announce))

    def _maintain(self, subject: "tuple[Maintenance, object]") -> None:
        plan, action = subject
        action(plan)  # type: ignore[operator]

    def _announce(self, plan: Maintenance) -> None:
        engine = self._engine
        engine.agenda.put(plan.begin, MAINTENANCE, (plan, self._begin))
        engine.agenda.put(plan.end, MAINTENANCE, (plan, self._finish))
        if self._reasons:
            units = str(self._places.units_of(plan.nodes))
            data = MaintenanceAnnouncedData(plan.id, plan.begin, plan.end, str(plan.nodes), units, plan.cause)
            engine.tell(MaintenanceAnnounced(engine.now, data))
        self._put_next_announcement()

    def _begin(self, plan: Maintenance) -> None:
        self._watch()
        engine = self._engine
        new = self._failed.without(self._maintained.more(plan.nodes))
        self._go_down(new, dict.fromkeys(new, plan.cause), planned=True)
        if self._reasons:
            data = MaintenanceBeginsData(plan.id, str(plan.nodes), str(self._places.units_of(plan.nodes)))
            engine.tell(MaintenanceBegins(engine.now, data))

    def _finish(self, plan: Maintenance) -> None:
        engine = self._engine
        self._come_up(self._failed.without(self._maintained.less(plan.nodes)))
        if self._reasons:
            data = MaintenanceEndsData(plan.id, str(plan.nodes), str(self._places.units_of(plan.nodes)))
            engine.tell(MaintenanceEnds(engine.now, data))

    # -- the machine and its jobs -----------------------------------------------------------------------------------

    def _go_down(self, nodes: NodeSet, causes: dict[int, str], *, planned: bool) -> None:
        """Take nodes that are up out of service, together."""
        if not nodes:
            return
        engine = self._engine
        self._trials.set_down(self._trials.down | nodes)
        units = self._places.units_of(nodes)
        if not self._holds:
            engine.cluster.ledger.block(units)
        for availability in engine.cluster.hooks.availability:
            availability(engine.now, units, False)
        for went_down in engine.cluster.hooks.went_down:
            went_down(engine.now, nodes, units, planned)
        self._trials.strike(nodes, causes)
        if self._changes:
            self._tell_failed({node: causes[node] for node in nodes})

    def _come_up(self, nodes: NodeSet) -> None:
        """Bring nodes back into service."""
        if not nodes:
            return
        engine = self._engine
        self._trials.set_down(self._trials.down - nodes)
        units = self._places.units_of(nodes)
        if not self._holds:
            engine.cluster.ledger.unblock(units)
        for availability in engine.cluster.hooks.availability:
            availability(engine.now, units, True)
        for came_up in engine.cluster.hooks.came_up:
            came_up(engine.now, nodes, units)
        self._trials.repaired(nodes)
        if self._changes:
            self._tell_repaired(nodes)
