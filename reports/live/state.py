"""The state of a run at one moment, for a terminal or a page."""

from collections.abc import Iterable, Sequence
from itertools import islice
from math import fsum, isfinite
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pipistrelle.platforms.naming.numbering import NodeUnits
from pipistrelle.platforms.resources.free_resources import amounts_of
from pipistrelle.platforms.resources.shared_nodes import shared_nodes_of
from pipistrelle.protocol.base.errors import legible
from pipistrelle.protocol.decisions import Decision, ExecuteJob, KillJob, Malformed
from pipistrelle.protocol.events import DecisionRejectedData
from pipistrelle.protocol.fields import EndReason
from pipistrelle.protocol.resources.amounts import CORES, base_of
from pipistrelle.protocol.units.indices import flags, pieces
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.protocol.units.text import NodeSetError
from pipistrelle.reports.live.owners import JobOwners
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.ledger import Ledger
from pipistrelle.server.hosts.node_ledger import NodeLedger
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import Simulation

#: maximum number of queued jobs shown, oldest first
_WAITING: Final = 12
#: maximum number of running jobs shown
_RUNNING: Final = 4000
#: maximum number of characters: of a name or set of units, and of a reason
_NAME: Final = 60
_WHY: Final = 240
#: maximum number of reservations shown
_KEEPS: Final = 3
#: the units in a text longer than this are not counted
_LONGEST_ALLOC: Final = 4000
#: a decision with its time (s) and, if it was rejected, its rejection
Decided = tuple[float, Decision, DecisionRejectedData | None]


class SeenWaiting(Struct, frozen=True):
    """A queued job as live views show it.

    The size is in units, submit time and walltime in seconds (None: no limit).
    """

    id: str
    size: int
    since: float
    walltime: float | None
    user: str
    queue: str


class SeenRunning(Struct, frozen=True, array_like=True):
    """A running job as live views show it.

    ``since`` is its start time (s); all other fields are as in `SeenWaiting`.
    """

    id: str
    size: int
    since: float
    walltime: float | None
    user: str


class SeenDecision(Struct, frozen=True):
    """A decision as live views show it.

    It has the time (s) when the server applied or rejected it. ``why`` is the scheduler's reason. ``refused`` is the
    reason for the rejection, or "". ``size`` is None if unknown.
    """

    time: float
    what: str
    job: str
    size: int | None
    units: str
    why: str
    refused: str


class SeenResource(Struct, frozen=True):
    """A resource of nodes that jobs share: what all nodes have and what jobs hold.

    Amounts are numbers of cores or GPUs, and MiB of memory.
    """

    name: str
    total: float
    held: float

    @property
    def share(self) -> float:
        """The share of the resource that jobs hold."""
        return self.held / self.total if self.total else 0.0


class MachineNow(Struct, frozen=True):
    """The state of the nodes; arrays of shape (nodes,).

    Attributes:
        held: number of units that jobs hold; on shared nodes, the number of nodes with jobs.
        idle: number of free units in service.
        on: index, among the running jobs, of a job on the node; negative without a job.
        used: share of the node's units that jobs hold; on shared nodes, of its cores.
        down: whether the node is out of service.
        colours: a number for each running job, constant while it runs.
    """

    held: int
    idle: int
    on: NDArray[np.int64]
    used: NDArray[np.float64]
    down: NDArray[np.bool_]
    colours: list[int]


class LiveState(Struct, frozen=True, kw_only=True):
    """The state of a run at simulated time ``now`` (s).

    Attributes:
        wall: seconds since the run began.
        speed: simulated seconds per second, over the last seconds.
        notice_rate: notices per second, over the last seconds.
        backlog: queued work in unit-seconds: units times run time, or times walltime if the run time is unknown. On
            shared nodes, the units of a job are the number of nodes times the job's share of all cores.
        resources: the resources of shared nodes; empty on other machines.
        reason: why the run ended; "" while it is in progress.
    """

    scheduler: str
    now: float
    wall: float
    speed: float
    notice_rate: float
    notices: int
    jobs: int
    ended: int
    units: int
    queue: int
    running: int
    waiting_units: int
    backlog: float
    keeps: tuple[str, ...]
    longest: tuple[SeenWaiting, ...]
    on_machine: tuple[SeenRunning, ...]
    decisions: tuple[SeenDecision, ...]
    machine: MachineNow
    resources: tuple[SeenResource, ...] = ()
    reason: EndReason | str = ""
    message: str = ""

    @property
    def down(self) -> int:
        """Number of units out of service."""
        return self.units - self.machine.held - self.machine.idle

    @property
    def utilisation(self) -> float:
        """Share of the machine's units, or of the cores of shared nodes, that jobs hold."""
        cores = next((one.share for one in self.resources if one.name == CORES), None)
        return self.machine.held / self.units if cores is None else cores


class Onlooker:
    """Makes the `LiveState` of a run.

    Call it only between two notices to the scheduler.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._node_units = NodeUnits.told(setup.platform.info.pools)
        self._nodes = setup.platform.nodes
        #: the resources of shared nodes, and the cores of all nodes together, in thousandths
        self._shared = shared_nodes_of(setup.platform.info)
        self._cores = 0 if self._shared is None else int(amounts_of(self._shared)[CORES].sum())
        self._owners = JobOwners(setup.workloads)
        #: {job id: record shown} of the jobs that were running at the previous look
        self._shown: dict[str, SeenRunning] = {}
        #: {job id: its colour} of running jobs, and the number of colours used so far
        self._colours: dict[str, int] = {}
        self._coloured = 0

    def look(
        self,
        simulation: Simulation,
        decided: Iterable[Decided],
        *,
        wall: float,
        speed: float,
        notice_rate: float,
        end: tuple[EndReason, str] | None = None,
    ) -> LiveState:
        """Return the present state of a run.

        Args:
            decided: the latest decisions.
            wall, speed, notice_rate: as in `LiveState`.
            end: why the run ended, and a message; None while it is in progress.
        """
        engine, metrics = simulation.engine, simulation.metrics
        cluster = engine.cluster
        reason, message = end or ("", "")
        running = list(cluster.running.values())
        self._shown = {job.id: self._running(job) for job in running[:_RUNNING]}
        waiting = cluster.waiting.values()
        return LiveState(
            scheduler=legible(simulation.hello.name, _NAME),
            now=engine.now,
            wall=wall,
            speed=speed,
            notice_rate=notice_rate,
            notices=engine.clockwork.seq,
            jobs=max(self._setup.jobs, metrics.submitted_jobs),
            ended=metrics.ended_jobs,
            units=self._setup.platform.units,
            queue=len(waiting),
            running=len(running),
            waiting_units=sum([job.size for job in waiting]),
            backlog=fsum([self._work(job) for job in waiting]),
            resources=self._resources(cluster.ledger),
            keeps=tuple(legible(text, _WHY) for text in cluster.keeps[:_KEEPS]),
            longest=tuple(map(self._waiting, islice(waiting, _WAITING))),
            on_machine=tuple(self._shown.values()),
            decisions=tuple(_taken(*one, cluster.running) for one in decided),
            machine=self._machine(running, cluster.ledger),
            reason=reason,
            message=legible(message, _WHY),
        )

    def _resources(self, ledger: Ledger | NodeLedger) -> tuple[SeenResource, ...]:
        if self._shared is None or not isinstance(ledger, NodeLedger):
            return ()
        has, free = amounts_of(self._shared), amounts_of(ledger.free)
        sums = {name: (int(has[name].sum()), int((has[name] - free[name]).sum())) for name in has}
        return tuple(
            SeenResource(name, all_ / base_of(name), held / base_of(name)) for name, (all_, held) in sums.items()
        )

    def _work(self, job: Job) -> float:
        """Return the work of a job in unit-seconds.

        It is 0.0 if neither the job's run time nor its walltime is known.
        """
        length = job.runtime if job.runtime <= job.walltime else job.walltime
        if not isfinite(length):
            return 0.0
        size = float(job.size)
        if self._cores and job.resources is not None and not job.resources.exclusive:
            size = self._setup.platform.units * job.resources.all_cores / self._cores
        return size * length

    def _machine(self, running: Sequence[Job], ledger: Ledger | NodeLedger) -> MachineNow:
        blocked = ledger.blocked
        units = self._setup.platform.units
        on = np.full(units, -1, dtype=np.int64)
        for place, job in enumerate(running):
            known = job.alloc.numbered
            if known is not None:
                on[known] = place
            else:
                for part in pieces(job.alloc):
                    on[part] = place
        down = flags(blocked, units) if blocked else np.zeros(units, dtype=np.bool_)
        if self._setup.reliability is None:  # jobs keep their units when these are taken out of service
            down &= on < 0
        else:
            on[down] = -1
        taken = on >= 0
        held, idle = int(np.count_nonzero(taken)), int(np.count_nonzero(~(taken | down)))
        used = taken.astype(np.float64)
        if self._shared is not None and isinstance(ledger, NodeLedger):
            has = amounts_of(self._shared)[CORES]
            used = np.where(taken, 1 - amounts_of(ledger.free)[CORES] / np.maximum(has, 1), 0.0)
        if not self._node_units.same:
            on, used, down = self._of_nodes(on, used, down)
        return MachineNow(held, idle, on, used, down, self._colours_of(running))

    def _of_nodes(
        self, on: NDArray[np.int64], used: NDArray[np.float64], down: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
        """Combine values per unit to values per node.

        They are the highest job index, the mean use, and whether all units are down.
        """
        jobs, shares, out = np.empty(self._nodes, np.int64), np.empty(self._nodes), np.empty(self._nodes, np.bool_)
        for node, count, unit, each in self._node_units.pools:
            here, there = slice(node, node + count), slice(unit, unit + count * each)
            jobs[here] = on[there].reshape(count, each).max(axis=1)
            shares[here] = used[there].reshape(count, each).mean(axis=1)
            out[here] = down[there].reshape(count, each).all(axis=1)
        return jobs, shares, out

    def _waiting(self, job: Job) -> SeenWaiting:
        user, queue = self._owners.of(job)
        return SeenWaiting(
            legible(job.id, _NAME), job.size, job.submit, _limit(job), legible(user, _NAME), legible(queue, _NAME)
        )

    def _running(self, job: Job) -> SeenRunning:
        known = self._shown.get(job.id)
        if known is None or known.since != job.start:
            user, _ = self._owners.of(job)
            known = SeenRunning(legible(job.id, _NAME), job.size, job.start, _limit(job), legible(user, _NAME))
        return known

    def _colours_of(self, running: Iterable[Job]) -> list[int]:
        before, self._colours = self._colours, {}
        for job in running:
            colour = before.get(job.id)
            if colour is None:
                colour, self._coloured = self._coloured, self._coloured + 1
            self._colours[job.id] = colour
        return list(self._colours.values())


def _limit(job: Job) -> float | None:
    return job.walltime if isfinite(job.walltime) else None


def _taken(
    now: float, decision: Decision, rejected: DecisionRejectedData | None, running: dict[str, Job]
) -> SeenDecision:
    """Return a decision, and why it was made or rejected, as live views show it."""
    data: Any = getattr(decision, "data", None)
    if isinstance(decision, Malformed):
        name, job_id = decision.decision, ""
    else:
        name = str(decision.__struct_config__.tag)
        job_id = " ".join(data.job_ids) if isinstance(decision, KillJob) else getattr(data, "job_id", "")
    size, units = None, ""
    if isinstance(decision, ExecuteJob):
        units, job = decision.data.alloc, running.get(job_id)
        size = job.size if job is not None else _count(units)
    why = str(getattr(data, "why", None) or getattr(data, "reason", ""))
    refused = "" if rejected is None else f"{rejected.code}: {rejected.message}"
    return SeenDecision(
        now,
        legible(name, _NAME),
        legible(job_id, _NAME),
        size,
        legible(units, _NAME),
        legible(why, _WHY),
        legible(refused, _WHY),
    )


def _count(alloc: str) -> int | None:
    """Return the number of units in a unit set such as ``0-3 8``.

    Return None if the text is invalid or too long.
    """
    try:
        return len(NodeSet.parse(alloc)) if len(alloc) <= _LONGEST_ALLOC else None
    except NodeSetError:
        return None
