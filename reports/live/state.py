"""How a run stands at one moment: what a terminal or a page shows of it."""

from collections.abc import Iterable, Sequence
from itertools import islice
from math import fsum, isfinite
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pipistrelle.platforms.naming.numbering import NodeUnits
from pipistrelle.protocol.base.errors import legible
from pipistrelle.protocol.decisions import Decision, ExecuteJob, KillJob, Malformed
from pipistrelle.protocol.events import DecisionRejectedData
from pipistrelle.protocol.fields import EndReason
from pipistrelle.protocol.units.indices import flags, pieces
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.protocol.units.text import NodeSetError
from pipistrelle.reports.live.owners import JobOwners
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import Simulation

#: jobs that wait longest
_WAITING: Final = 12
#: running jobs that are told of one by one
_RUNNING: Final = 4000
#: characters of a name, of a reason, of a set of units
_NAME: Final = 60
_WHY: Final = 240
#: what a scheduler keeps units for
_KEEPS: Final = 3
#: a set of units that is longer as text is not counted again
_LONGEST_ALLOC: Final = 4000
#: a decision as the engine tells of it: when (s), what, and why it was not carried out
Decided = tuple[float, Decision, DecisionRejectedData | None]


class SeenWaiting(Struct, frozen=True):
    """A job that waits: its size in units, since when it does and how long it asked for (s; None: no limit)."""

    id: str
    size: int
    since: float
    walltime: float | None
    user: str
    queue: str


class SeenRunning(Struct, frozen=True, array_like=True):
    """A job that runs: its size in units, since when it does and how long it asked for (s; None: no limit)."""

    id: str
    size: int
    since: float
    walltime: float | None
    user: str


class SeenDecision(Struct, frozen=True):
    """A decision: when it was carried out (s), of which job, on which units, and the scheduler's reason.

    ``refused`` is why it was not carried out, "" if it was; ``size`` is in units, None where there is none.
    """

    time: float
    what: str
    job: str
    size: int | None
    units: str
    why: str
    refused: str


class MachineNow(Struct, frozen=True):
    """What the nodes do; shapes (nodes,).

    ``on`` is the place of a job there among those that run, negative if there is none; ``used`` the share of the
    node's units that jobs hold; ``down`` whether it is out of service. ``colours`` has a number for each job that
    runs, which it keeps. Of all units ``held`` are held by jobs, ``idle`` free and in service.
    """

    held: int
    idle: int
    on: NDArray[np.int64]
    used: NDArray[np.float64]
    down: NDArray[np.bool_]
    colours: list[int]


class LiveState(Struct, frozen=True, kw_only=True):
    """A run at simulated time ``now`` (s); ``wall`` seconds have passed since it began.

    ``speed`` is in simulated seconds a second, ``notice_rate`` in notices a second, both of late. ``backlog`` is the
    work that waits in unit-seconds: units times run time, or the time asked for where hosts decide how long jobs take.
    ``reason`` is "" while the run goes on.
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
    reason: EndReason | str = ""
    message: str = ""

    @property
    def down(self) -> int:
        """How many units are out of service."""
        return self.units - self.machine.held - self.machine.idle

    @property
    def utilisation(self) -> float:
        """Which share of the machine's units jobs hold."""
        return self.machine.held / self.units


class Onlooker:
    """Makes `LiveState` of a run, between two of its steps.

    Parameters
    ----------
    setup
        of the run.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._node_units = NodeUnits.told(setup.platform.info.pools)
        self._nodes = setup.platform.nodes
        self._owners = JobOwners(setup.workloads)
        #: {job id: what is shown of it} of the jobs that ran when it was looked last
        self._shown: dict[str, SeenRunning] = {}
        #: {job id: its colour} of the jobs that run, and how many there have been
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
        """Return how a run stands; the arguments besides are what its own state does not tell."""
        engine, metrics = simulation.engine, simulation.metrics
        cluster = engine.cluster
        reason, message = end or ("", "")
        running = list(cluster.running.values())
        self._shown = {job.id: self._running(job) for job in running[:_RUNNING]}
        waiting = cluster.waiting.values()
        return LiveState(
            scheduler=_text(simulation.hello.name, _NAME),
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
            backlog=fsum([_work(job) for job in waiting]),
            keeps=tuple(_text(text, _WHY) for text in cluster.keeps[:_KEEPS]),
            longest=tuple(map(self._waiting, islice(waiting, _WAITING))),
            on_machine=tuple(self._shown.values()),
            decisions=tuple(_taken(*one, cluster.running) for one in decided),
            machine=self._machine(running, cluster.ledger.blocked),
            reason=reason,
            message=_text(message, _WHY),
        )

    def _machine(self, running: Sequence[Job], blocked: NodeSet) -> MachineNow:
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
        if self._setup.reliability is None:  # what is out of service is not taken from those who have it
            down &= on < 0
        else:
            on[down] = -1
        taken = on >= 0
        held, idle = int(np.count_nonzero(taken)), int(np.count_nonzero(~(taken | down)))
        used = taken.astype(np.float64)
        if not self._node_units.same:
            on, used, down = self._of_nodes(on, used, down)
        return MachineNow(held, idle, on, used, down, self._colours_of(running))

    def _of_nodes(
        self, on: NDArray[np.int64], used: NDArray[np.float64], down: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
        """Return of each node what was told of its units: its last job, the mean of their use, whether all are down."""
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
            _text(job.id, _NAME), job.size, job.submit, _limit(job), _text(user, _NAME), _text(queue, _NAME)
        )

    def _running(self, job: Job) -> SeenRunning:
        known = self._shown.get(job.id)
        if known is None or known.since != job.start:
            user, _ = self._owners.of(job)
            known = SeenRunning(_text(job.id, _NAME), job.size, job.start, _limit(job), _text(user, _NAME))
        return known

    def _colours_of(self, running: Iterable[Job]) -> list[int]:
        before, self._colours = self._colours, {}
        for job in running:
            colour = before.get(job.id)
            if colour is None:
                colour, self._coloured = self._coloured, self._coloured + 1
            self._colours[job.id] = colour
        return list(self._colours.values())


def _work(job: Job) -> float:
    """Return the work of a job in unit-seconds, 0.0 if nobody knows it."""
    length = job.runtime if job.runtime <= job.walltime else job.walltime
    return job.size * length if isfinite(length) else 0.0


def _text(text: str, length: int) -> str:
    """Return a text of a log or a scheduler so that it can neither fill nor steer what shows it."""
    return legible(text, length)


def _limit(job: Job) -> float | None:
    return job.walltime if isfinite(job.walltime) else None


def _taken(
    now: float, decision: Decision, rejected: DecisionRejectedData | None, running: dict[str, Job]
) -> SeenDecision:
    """Return what is shown of a decision."""
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
        now, _text(name, _NAME), _text(job_id, _NAME), size, _text(units, _NAME), _text(why, _WHY), _text(refused, _WHY)
    )


def _count(alloc: str) -> int | None:
    """Return how many units a text names, None if it is none or very long."""
    try:
        return len(NodeSet.parse(alloc)) if len(alloc) <= _LONGEST_ALLOC else None
    except NodeSetError:
        return None
