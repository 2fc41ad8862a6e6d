"""A run's state, taken at any time, through JSON and into a new engine: the rest of the run is the same."""

from collections.abc import Callable, Iterator, Sequence
from math import inf
from random import Random
from typing import Any
from unittest.mock import patch

from hypothesis import event, given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.failures.models import FailureModel
from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.platforms.failures.plan import FailurePlan, Source
from pipistrelle.platforms.failures.text import parse_durations
from pipistrelle.platforms.maintenance.plan import MaintenancePlan
from pipistrelle.platforms.maintenance.text import parse_maintenance
from pipistrelle.protocol.base.state import from_json, plain, to_json
from pipistrelle.protocol.decisions import (
    CallMeLater,
    CallMeLaterData,
    CancelCall,
    CancelCallData,
    Decision,
    ExecuteJob,
    ExecuteJobData,
    KillJob,
    KillJobData,
    Malformed,
    RegisterJob,
    RegisterJobData,
    RejectJob,
    RejectJobData,
)
from pipistrelle.protocol.events import JobDescription, SimulationBeginsData
from pipistrelle.protocol.messages import Notice, Reply
from pipistrelle.server.engine.dependencies import Condition
from pipistrelle.server.engine.engine import Engine
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.errors import Stalled
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.outputs.metrics import Metrics
from pipistrelle.server.outputs.node_book import NodeBook
from pipistrelle.server.outputs.reliability_book import ReliabilityBook
from pipistrelle.server.simulation.assembly import native_engine
from pipistrelle.traces.resilience import Resilience

NODES = 6
MOST_NOTICES = 120
WAKES: Any = (None, None, (), ("JOB_SUBMITTED",), ("JOB_COMPLETED", "NO_MORE_JOBS"))

ROWS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, NODES), st.integers(0, 40), st.sampled_from([5, 20, 60, inf])),
    min_size=1,
    max_size=9,
)
RESILIENCES = st.builds(
    Resilience,
    kind=st.sampled_from(["none", "checkpoint", "spares", "moldable", "grid"]),
    interval=st.one_of(st.none(), st.integers(2, 20).map(float), st.sampled_from(["young", "daly"])),
    dump=st.integers(0, 2).map(float),
    read=st.integers(0, 3).map(float),
    spares=st.integers(1, 3),
)
OUTAGES = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, 30), st.integers(1, 15)), max_size=12)
KINDS = st.sampled_from(["after", "afterok", "afterany", "afternotok"])


class Story(Observer):
    """Records all observers' calls."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def submitted(self, now: float, job: Job) -> None:
        """Write it down."""
        self.lines.append(f"{now!r} submitted {job.as_plain()}")

    def started(self, now: float, job: Job) -> None:
        """Write it down."""
        self.lines.append(f"{now!r} started {job.id} {job.alloc}")

    def ended(self, now: float, job: Job) -> None:
        """Record it, with the use of its time."""
        attempt = job.attempt
        account = None if attempt is None else (attempt.account, attempt.cause, attempt.began, str(attempt.waited))
        self.lines.append(f"{now!r} ended {job.id} {job.state} {job.energy!r} {job.metadata} {account}")

    def settled(self, now: float, idle: int, down: int) -> None:
        """Write it down."""
        self.lines.append(f"{now!r} settled {idle} {down}")

    def decided(self, now: float, decision: Decision, rejected: Any) -> None:
        """Write it down."""
        self.lines.append(f"{now!r} decided {plain(decision)} {plain(rejected)}")

    def availability(self, now: float, units: Any, available: bool) -> None:
        """Write it down."""
        self.lines.append(f"{now!r} {units} {available}")


def answer(engine: Engine, notice: Notice, seed: int) -> Reply:
    """Return the decisions of a stateless scheduler: random, from the engine's waiting and running jobs."""
    chance = Random(seed * 1000 + notice.seq)  # noqa: S311 - a test's dice
    now, cluster = notice.now, engine.cluster
    made: list[Decision] = []

    def at() -> float:
        return now + chance.choice([0, 0, 0, 0, 2, 5])

    free = sorted(set(range(cluster.ledger.units)).difference(*(job.alloc for job in cluster.running.values())))
    free = [unit for unit in free if unit not in cluster.ledger.blocked or chance.random() < 0.1]
    for job in cluster.waiting.values():
        if len(free) >= job.size and chance.random() < 0.8:
            made.append(ExecuteJob(at(), ExecuteJobData(job.id, " ".join(map(str, free[: job.size])))))
            del free[: job.size]
        elif chance.random() < 0.03:
            made.append(RejectJob(at(), RejectJobData(job.id)))
    if cluster.running and chance.random() < 0.1:
        made.append(KillJob(at(), KillJobData((chance.choice(list(cluster.running)),))))
    if chance.random() < 0.2:
        made.append(CallMeLater(now, CallMeLaterData(now + chance.randrange(9), chance.choice(["", "a", "b"]))))
    if chance.random() < 0.1:
        made.append(CancelCall(at(), CancelCallData(chance.choice("ab"))))
    if chance.random() < 0.05:
        made.append(Malformed(at(), decision="DANCE", code="unknown_type", message="no such type"))
    if chance.random() < 0.05:
        name = f"dyn!{notice.seq}"
        made.append(RegisterJob(now, RegisterJobData(name, JobDescription(name, 1, 9.0), 4.0)))
    return Reply(notice.seq, max([now, *(one.timestamp for one in made)]), made, chance.choice(WAKES))


class Books:
    """All that keeps account of a run."""

    def __init__(self, machine: Platform) -> None:
        self.nodes = NodeBook(machine)
        self.reliability = ReliabilityBook(self.nodes)
        self.metrics = Metrics(books={"reliability": self.reliability})

    def observers(self) -> list[Observer]:
        """Return them in the order of their calls."""
        return [self.nodes, self.reliability, self.metrics]

    def state(self) -> list[Any]:
        """Return the states of all."""
        return [self.nodes.state(), self.reliability.state(), self.metrics.state()]

    def restore(self, state: list[Any], running: Any) -> None:
        """Continue from these states."""
        self.nodes.restore(state[0], running)
        self.reliability.restore(state[1])
        self.metrics.restore(state[2])


def played(
    build: Callable[[Sequence[Observer]], Engine], machine: Platform, seed: int, resume_at: int | None = None
) -> tuple[list[Any], list[str], Any, list[str]]:
    """Return the notices, the observers' calls and the books' figures.

    At a notice engine and books are replaced by new ones restored from their states.
    """
    story, books = Story(), Books(machine)
    engine = build([story, *books.observers()])
    told: list[Any] = []
    try:
        while (notice := engine.advance()) is not None and notice.seq < MOST_NOTICES:
            told.append(plain(notice.events))
            engine.check_invariants()
            engine.apply(answer(engine, notice, seed))
            engine.check_invariants()
            if notice.seq == resume_at:
                state, kept = to_json(engine.state()), to_json(books.state())
                books = Books(machine)
                engine = build([story, *books.observers()])
                engine.restore(from_json(state))
                books.restore(from_json(kept), engine.cluster.running)
                assert to_json(engine.state()) == state
                assert to_json(books.state()) == kept
                engine.check_invariants()
    except Stalled as stalled:
        told.append(str(stalled))
    told.append(plain(engine.end("completed").events))
    engine.close()
    return told, story.lines, books.metrics.summary(), books.nodes.lines()


def outages_of(rows: list[tuple[int, int, int]]) -> Outages:
    """Return outages that do not overlap: each begins so long after the end of the node's last."""
    end = [0.0] * NODES
    made = []
    for node, gap, length in rows:
        down = end[node] + gap
        end[node] = down + length
        made.append(Outage(node, down, end[node]))
    return Outages.of(made)


@given(
    rows=ROWS,
    outages=OUTAGES,
    resilience=RESILIENCES,
    conditions=st.lists(st.tuples(st.integers(1, 8), st.integers(0, 7), KINDS, st.integers(0, 5)), max_size=4),
    modelled=st.booleans(),
    fails=st.booleans(),
    aware=st.booleans(),
    requeue=st.sampled_from(["original", "back", "never"]),
    walltime=st.sampled_from(["asked", "extended"]),
    maintained=st.booleans(),
    overheads=st.booleans(),
    seed=st.integers(0, 2**20),
    resume_at=st.integers(1, 20),
)
@settings(max_examples=100)
def test_run_resumes_from_its_state(
    rows: Any,
    outages: Any,
    resilience: Any,
    conditions: Any,
    modelled: bool,
    fails: bool,
    aware: bool,
    requeue: Any,
    walltime: Any,
    maintained: bool,
    overheads: bool,
    seed: int,
    resume_at: int,
) -> None:
    """Failures, dumps, spares, maintenance, dependencies, dated decisions, calls: whatever is under way."""
    beside = {"prologue": 1.5, "epilogue": 0.25} if overheads else {}
    machine = Platform(name="m", pools=(Pool(name="a", nodes=2), Pool(name="b", nodes=NODES - 2, **beside)))
    rules = [parse_maintenance("@25 +10s 0-2", machine, where="test", epoch=None, timezone=None)] if maintained else []
    model = FailureModel(parse_durations("exponential,mttr=60"), parse_durations("exponential,mttr=5"))
    reliability = Reliability(
        failures=FailurePlan((Source(model, range(NODES)),)) if modelled else None,
        outages=outages_of(outages),
        maintenance=MaintenancePlan(tuple(rules)) if rules else None,
        resilience=resilience,
        requeue=requeue,
        walltime=walltime,
        max_attempts=20,
    )
    waits: dict[str, tuple[Condition, ...]] = {}
    for job, other, kind, delay in conditions:
        if other < job < len(rows):
            name = f"w0!{job}"
            waits[name] = (*waits.get(name, ()), Condition(kind, f"w0!{other}", float(delay)))

    def jobs() -> Iterator[Job]:
        for number, (submit, size, runtime, limit) in enumerate(sorted(rows)):
            yield Job(f"w0!{number}", float(submit), size, float(limit), float(runtime), "p")

    def build(observers: Sequence[Observer]) -> Engine:
        return native_engine(
            SimulationBeginsData(NODES, workloads={"w0": "test"}),
            machine,
            jobs(),
            features=("wake_filter", *(("failures",) if aware else ())),
            observers=observers,
            reliability=reliability if fails else None,
            conditions=waits,
        )

    with patch("pipistrelle.server.outages.failures.MAX_FRUITLESS", 30):  # not ten thousand outages without a job
        straight = played(build, machine, seed)
        event(f"resumed: {len(straight[0]) > resume_at}")
        assert played(build, machine, seed, resume_at) == straight
