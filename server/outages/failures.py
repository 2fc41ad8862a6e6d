"""Failures, repairs and maintenance, and their effects on units and jobs."""

from collections import Counter
from collections.abc import Iterable
from math import inf
from typing import Any, Final, Literal

import numpy as np

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.failures.outage import Outage
from pipistrelle.platforms.maintenance.plan import Maintenance
from pipistrelle.platforms.naming.numbering import NodeUnits
from pipistrelle.protocol.base.state import Kept
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
from pipistrelle.server.attempts.attempt import AttemptRules
from pipistrelle.server.attempts.attempts import Attempts
from pipistrelle.server.engine.agenda import FAILURE, MAINTENANCE, REPAIR, Handlers, Part
from pipistrelle.server.engine.arrivals import Arrivals
from pipistrelle.server.engine.clockwork import Clockwork
from pipistrelle.server.engine.dependencies import Dependencies
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.lives import Dilation, JobLives, LimitChecks, Overheads, Work
from pipistrelle.server.engine.observers import Reasons
from pipistrelle.server.engine.stalls import MAX_FRUITLESS, describe_waiting
from pipistrelle.server.errors import Stalled
from pipistrelle.server.outages.feed import OutageFeed
from pipistrelle.server.outages.reliability import Reliability

#: node events for the scheduler: none; failures and maintenance with reasons; or only changes of availability
Tells = Literal["nothing", "reasons", "changes"]
_ANNOUNCED: Final = 0
_BEGINS: Final = 1
_ENDS: Final = 2
#: while jobs are held or not yet submitted, a run stalls after this many times as many outages without progress
_PATIENCE: Final = 10


def lives_of(
    clockwork: Clockwork,
    platform: Platform,
    work: Work | None,
    reliability: Reliability | None,
    jobs: Iterable[Job],
    dependencies: Dependencies,
    *,
    tells: Tells,
    holds: bool,
    dilation: Dilation | None = None,
    preempts: bool = False,
    checks: LimitChecks | None = None,
) -> "tuple[JobLives, Arrivals, list[Failures]]":
    """Return the engine parts that handle jobs, arrivals and failures in a run.

    They are `JobLives`, `Arrivals` and a list with `Failures`. Without ``reliability`` the list is empty. For
    ``holds``, see `Failures`.
    """
    lives = JobLives(clockwork, Overheads(platform), work, dilation, checks)
    arrivals = Arrivals(clockwork, lives, jobs, dependencies)
    if reliability is None and not preempts:
        return lives, arrivals, []
    node_units = NodeUnits.told(platform.info.pools)
    rules = reliability or AttemptRules()
    rates = np.zeros(platform.nodes) if reliability is None else reliability.rates(platform)
    plan = None if reliability is None else reliability.failures
    lives.attempts = attempts = Attempts(
        clockwork,
        lives,
        platform,
        node_units,
        rules,
        rates,
        failures=plan,
        work=work,
        dilation=dilation,
        checks=checks,
    )
    if preempts:
        from pipistrelle.server.attempts.preemption import Preemption  # most runs do not need it

        lives.preemption = Preemption(clockwork, attempts, rules)
    if reliability is None:
        return lives, arrivals, []
    failures = Failures(clockwork, attempts, arrivals, node_units, reliability, tells=tells, holds=holds)
    return lives, arrivals, [failures]


class _Down(Kept):
    """The nodes that are down.

    For each, the number of failures and maintenances that keep it down is known.
    """

    _kept = ("_times",)

    def __init__(self) -> None:
        self._times: Counter[int] = Counter()

    @property
    def nodes(self) -> list[int]:
        return sorted(self._times)

    def more(self, nodes: Iterable[int]) -> NodeSet:
        """Count one more failure or maintenance of each node.

        Return the nodes that had none before.
        """
        new = []
        for node in nodes:
            self._times[node] += 1
            if self._times[node] == 1:
                new.append(node)
        return NodeSet.of(new)

    def less(self, nodes: Iterable[int]) -> NodeSet:
        """Count one failure or maintenance of each node as ended.

        Return the nodes that have none left.
        """
        old = []
        for node in nodes:
            self._times[node] -= 1
            if not self._times[node]:
                del self._times[node]
                old.append(node)
        return NodeSet.of(old)

    def without(self, nodes: NodeSet) -> NodeSet:
        """Return those of ``nodes`` that no failure or maintenance keeps down."""
        return NodeSet.of(node for node in nodes if node not in self._times) if self._times else nodes


class Failures(Part):
    """The engine part that applies outages and maintenance to the nodes of a run.

    Only the next outage is on the agenda, so that streams of outages may be endless. With ``holds``, a job may start on
    down units and waits for their repair; this is for schedulers that do not support failures. Without ``holds``, such
    a start is illegal.
    """

    _kept = ("_failed", "_maintained", "_fruitless", "_steps")

    def __init__(
        self,
        clockwork: Clockwork,
        attempts: Attempts,
        arrivals: Arrivals,
        node_units: NodeUnits,
        reliability: Reliability,
        *,
        tells: Tells,
        holds: bool,
    ) -> None:
        self._clockwork = clockwork
        self._attempts = attempts
        self._arrivals = arrivals
        self._node_units = node_units
        self._reasons = tells == "reasons"
        self._changes = tells == "changes"
        self._holds = holds
        self._feed = OutageFeed(reliability.streams())
        self._planned = reliability.planned()
        self._failed = _Down()
        self._maintained = _Down()
        self._fruitless = 0
        self._steps = -1
        #: next outages, whose time is on the agenda; number of instants taken from the feed
        self._next: list[Outage] = []
        self._instants = 0
        #: {number: maintenance} that is announced, or the next to be announced, and not over
        self._plans: dict[int, Maintenance] = {}
        self._planned_so_far = 0
        self._put_next_failure()
        self._put_next_announcement()

    def handlers(self) -> Handlers:
        """Return {event class: function that handles its events}."""
        return {FAILURE: self._fail, REPAIR: self._repair, MAINTENANCE: self._maintain}

    def state(self) -> dict[str, Any]:
        """Return the state of outages and maintenance as plain values, for a snapshot."""
        taken = {"instants": self._instants, "planned": self._planned_so_far, "plans": list(self._plans)}
        return {**super().state(), **taken}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a saved state; skip outages and maintenance that the saved run had read."""
        while self._instants < state["instants"]:
            self._next = self._feed.next_instant()
            self._instants += 1
        while self._planned_so_far < state["planned"]:
            self._planned_so_far += 1
            self._plans[self._planned_so_far] = next(self._planned)
        self._plans = {number: self._plans[number] for number in state["plans"]}
        super().restore(state)

    def _put_next_failure(self) -> None:
        self._next = self._feed.next_instant()
        self._instants += 1
        if self._next:
            self._clockwork.agenda.put(self._next[0].down, FAILURE, len(self._next))

    def _fail(self, _: int) -> None:
        """Take down all nodes that fail now, in one step.

        So a job that holds several of these nodes ends only once.
        """
        self._watch()
        outages = self._next
        repairs: dict[float, list[int]] = {}
        for outage in outages:
            if outage.up < inf:
                repairs.setdefault(outage.up, []).append(outage.node)
        for time, nodes in repairs.items():
            self._clockwork.agenda.put(time, REPAIR, nodes)
        new = self._failed.more(outage.node for outage in outages)
        why: dict[int, tuple[str, float]] = {}
        for outage in outages:
            if outage.node in new:
                cause, up = why.get(outage.node, (outage.cause, outage.up))
                why[outage.node] = cause, max(up, outage.up)
        self._go_down(self._maintained.without(new), why, planned=False)
        self._bury(NodeSet.of(outage.node for outage in outages if outage.up == inf))
        if self._reasons:
            self._tell_failed(why)
        self._put_next_failure()

    def _repair(self, nodes: list[int]) -> None:
        up = self._failed.less(nodes)
        if not up:
            return
        self._come_up(self._maintained.without(up))
        if self._reasons:
            self._tell_repaired(up)

    def _tell_failed(self, why: Reasons) -> None:
        together: dict[str, list[int]] = {}
        for node, (cause, _) in why.items():
            together.setdefault(cause, []).append(node)
        for cause, numbers in together.items():
            nodes = NodeSet.of(numbers)
            units = self._node_units.units_of(nodes)
            self._clockwork.tell(NodesFailed(self._clockwork.now, NodesFailedData(str(nodes), str(units), cause)))

    def _tell_repaired(self, nodes: NodeSet) -> None:
        units = self._node_units.units_of(nodes)
        self._clockwork.tell(NodesRepaired(self._clockwork.now, NodesRepairedData(str(nodes), str(units))))

    def _bury(self, nodes: NodeSet) -> None:
        """Record that nodes will never be repaired, and end the jobs that wait for them."""
        if nodes and self._holds:
            self._clockwork.cluster.ledger.block(self._node_units.units_of(nodes))
            self._attempts.forsake(nodes, "a node that is not repaired any more")

    def _watch(self) -> None:
        """Raise Stalled if outages continue for ever but no job makes progress."""
        clockwork, arrivals = self._clockwork, self._arrivals
        cluster = clockwork.cluster
        if cluster.steps != self._steps or not (arrivals.exhausted or arrivals.held):
            self._steps = cluster.steps
            self._fruitless = 0
        self._fruitless += 1
        # Held jobs may wait for a time, and more jobs may still be submitted.
        most = MAX_FRUITLESS if arrivals.exhausted else MAX_FRUITLESS * _PATIENCE
        if self._fruitless > most and not self._attempts.at_work:
            raise Stalled(
                f"{most:,} outages passed, and no job made a step",
                where=f"simulated time {clockwork.now!r}",
                found=describe_waiting(cluster),
                hint="The scheduler starts nothing on the nodes that are up, or jobs wait for nodes that stay down.",
            )

    def tell_present(self) -> None:
        """Report down nodes and announced maintenance to a new scheduler."""
        if not self._reasons:
            return
        if self._failed.nodes:
            self._tell_failed(dict.fromkeys(self._failed.nodes, ("", inf)))
        entries = self._clockwork.agenda.entries().values()
        to_come = [tuple(entry[3]) for entry in entries if entry[1] == MAINTENANCE]
        for number, plan in self._plans.items():
            if (number, _ANNOUNCED) in to_come:
                continue
            self._tell_announced(plan)
            if (number, _BEGINS) not in to_come:
                self._tell_begun(plan)

    def _put_next_announcement(self) -> None:
        plan = next(self._planned, None)
        if plan is not None:
            self._planned_so_far += 1
            self._plans[self._planned_so_far] = plan
            self._clockwork.agenda.put(plan.announced, MAINTENANCE, (self._planned_so_far, _ANNOUNCED))

    def _maintain(self, subject: tuple[int, int]) -> None:
        number, step = subject
        if step == _ANNOUNCED:
            self._announce(number, self._plans[number])
        elif step == _BEGINS:
            self._begin(self._plans[number])
        else:
            self._finish(self._plans.pop(number))

    def _announce(self, number: int, plan: Maintenance) -> None:
        clockwork = self._clockwork
        clockwork.agenda.put(plan.begin, MAINTENANCE, (number, _BEGINS))
        clockwork.agenda.put(plan.end, MAINTENANCE, (number, _ENDS))
        if self._reasons:
            self._tell_announced(plan)
        self._put_next_announcement()

    def _tell_announced(self, plan: Maintenance) -> None:
        units = str(self._node_units.units_of(plan.nodes))
        data = MaintenanceAnnouncedData(plan.id, plan.begin, plan.end, str(plan.nodes), units, plan.cause)
        self._clockwork.tell(MaintenanceAnnounced(self._clockwork.now, data))

    def _begin(self, plan: Maintenance) -> None:
        self._watch()
        new = self._failed.without(self._maintained.more(plan.nodes))
        self._go_down(new, dict.fromkeys(new, (plan.cause, plan.end)), planned=True)
        if self._reasons:
            self._tell_begun(plan)

    def _tell_begun(self, plan: Maintenance) -> None:
        data = MaintenanceBeginsData(plan.id, str(plan.nodes), str(self._node_units.units_of(plan.nodes)))
        self._clockwork.tell(MaintenanceBegins(self._clockwork.now, data))

    def _finish(self, plan: Maintenance) -> None:
        clockwork = self._clockwork
        self._come_up(self._failed.without(self._maintained.less(plan.nodes)))
        if self._reasons:
            data = MaintenanceEndsData(plan.id, str(plan.nodes), str(self._node_units.units_of(plan.nodes)))
            clockwork.tell(MaintenanceEnds(clockwork.now, data))

    def _go_down(self, nodes: NodeSet, why: Reasons, *, planned: bool) -> None:
        if not nodes:
            return
        clockwork = self._clockwork
        self._attempts.set_down(self._attempts.down | nodes)
        units = self._node_units.units_of(nodes)
        if not self._holds:
            clockwork.cluster.ledger.block(units)
        for availability in clockwork.cluster.hooks.availability:
            availability(clockwork.now, units, False)
        for went_down in clockwork.cluster.hooks.went_down:
            went_down(clockwork.now, nodes, units, planned, why)
        self._attempts.strike(nodes, why)
        if self._changes:
            self._tell_failed({node: why[node] for node in nodes})

    def _come_up(self, nodes: NodeSet) -> None:
        if not nodes:
            return
        clockwork = self._clockwork
        self._attempts.set_down(self._attempts.down - nodes)
        units = self._node_units.units_of(nodes)
        if not self._holds:
            clockwork.cluster.ledger.unblock(units)
        for availability in clockwork.cluster.hooks.availability:
            availability(clockwork.now, units, True)
        for came_up in clockwork.cluster.hooks.came_up:
            came_up(clockwork.now, nodes, units)
        self._attempts.repaired(nodes)
        if self._changes:
            self._tell_repaired(nodes)
