"""Nothing is created or lost: work, nodes and time, at every instant of runs with failures."""

from collections.abc import Iterator
from math import fsum, inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.description import homogeneous
from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.platforms.maintenance.plan import MaintenancePlan
from pipistrelle.platforms.maintenance.text import parse_maintenance
from pipistrelle.protocol.events import SimulationBeginsData
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.server.attempts.attempt import spending_of
from pipistrelle.server.engine.engine import Engine
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.errors import Stalled
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.outputs.node_book import NodeBook
from pipistrelle.server.outputs.reliability_book import ReliabilityBook
from pipistrelle.server.simulation.assembly import native_engine
from pipistrelle.traces.resilience import Resilience

NODES = 6

RESILIENCES = st.builds(
    Resilience,
    kind=st.sampled_from(["none", "checkpoint", "spares", "moldable", "grid"]),
    interval=st.one_of(st.none(), st.integers(2, 20).map(float)),
    dump=st.integers(0, 2).map(float),
    read=st.integers(0, 3).map(float),
    spares=st.integers(1, 3),
)
#: (node, begin, length): outages of one node do not overlap
OUTAGES = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, 30), st.integers(1, 15)), max_size=12)
#: (submit, size, run time, walltime)
JOBS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, NODES), st.integers(0, 40), st.integers(1, 60)), min_size=1, max_size=8
)


def outages_of(rows: list[tuple[int, int, int]]) -> Outages:
    """Return outages that do not overlap: each begins so long after the end of the node's last."""
    end = [0.0] * NODES
    made = []
    for node, gap, length in rows:
        down = end[node] + gap
        end[node] = down + length
        made.append(Outage(node, down, end[node]))
    return Outages.of(made)


class Auditor(Observer):
    """Checks every job and node at the end of each instant."""

    def __init__(self) -> None:
        self.engine: Engine | None = None
        self.ended_jobs: list[Job] = []
        self.down: set[int] = set()
        self.instants = 0

    def ended(self, now: float, job: Job) -> None:
        """Keep it, and compare what its units spent with the time that it held them."""
        self.ended_jobs.append(job)
        if job.state != "REJECTED":
            spent = spending_of(job)
            total = fsum(getattr(spent, kind) for kind in spent.__struct_fields__)
            assert total == pytest.approx(len(job.alloc) * (job.end - job.start))

    def went_down(self, now: float, nodes: Any, units: Any, planned: bool, why: Any) -> None:
        """Note nodes that were up."""
        assert self.down.isdisjoint(nodes)
        self.down.update(nodes)

    def came_up(self, now: float, nodes: Any, units: Any) -> None:
        """Note nodes that were down."""
        assert self.down.issuperset(nodes)
        self.down.difference_update(nodes)

    def settled(self, now: float, idle: int, down: int) -> None:
        """Add everything up."""
        assert self.engine is not None
        self.instants += 1
        running = self.engine.cluster.running.values()
        held = {unit for job in running for unit in job.alloc}
        assert idle + down + len(held) == NODES
        assert down == len(self.down - held)
        for job in running:
            attempt = job.attempt
            assert attempt is not None
            if attempt.progress is None:
                continue
            account = attempt.progress.account(now)
            assert account.node_seconds == pytest.approx(len(job.alloc) * (now - attempt.began))
            done, lost = account.saved + account.unsaved, account.node_lost / len(job.alloc)
            worked = (account.node_useful + account.node_unsaved + account.node_lost) / len(job.alloc)
            assert attempt.saved + worked == pytest.approx(done + lost)
            assert done <= job.runtime * (1 + 1e-12)


def jobs_of(rows: list[tuple[int, int, int, int]]) -> Iterator[Job]:
    """Yield the jobs by their submit times."""
    for number, (submit, size, runtime, walltime) in enumerate(sorted(rows)):
        yield Job(f"w0!{number}", float(submit), size, float(walltime), float(runtime), "p")


@given(
    rows=JOBS,
    outages=OUTAGES,
    resilience=RESILIENCES,
    policy=st.sampled_from(["fcfs", "easy", "conservative"]),
    aware=st.booleans(),
    requeue=st.sampled_from(["original", "back", "never"]),
    restart=st.sampled_from(["full", "rest"]),
    maintained=st.booleans(),
)
@settings(max_examples=300)
def test_work_nodes_and_time_add_up(
    rows: Any, outages: Any, resilience: Any, policy: str, aware: bool, requeue: Any, restart: Any, maintained: bool
) -> None:
    """For any failures, any handling and any scheduler: at each instant and at the end."""
    machine = homogeneous(NODES, "m")
    rules = [parse_maintenance("@25 +10s 0-2", machine, where="test", epoch=None, timezone=None)] if maintained else []
    reliability = Reliability(
        outages=outages_of(outages),
        maintenance=MaintenancePlan(tuple(rules)) if rules else None,
        resilience=resilience,
        requeue=requeue,
        restart_walltime=restart,
        max_attempts=30,
    )
    auditor, nodes = Auditor(), NodeBook(machine)
    book = ReliabilityBook(nodes)
    features = ("failures", "wake_filter") if aware else ("wake_filter",)
    begins = SimulationBeginsData(NODES, workloads={"w0": "test"})
    engine = native_engine(
        begins,
        machine,
        jobs_of(rows),
        features=features,
        strict=True,
        observers=[nodes, book, auditor],
        reliability=reliability,
    )
    auditor.engine = engine
    runtime = Runtime(make_policy(policy))
    try:
        while (notice := engine.advance()) is not None:
            engine.apply(runtime.answer(notice))
            engine.check_invariants()
    except Stalled:
        pytest.fail("the run stalled")
    engine.end("completed")
    engine.close()

    attempts: dict[str, list[Job]] = {}
    for job in auditor.ended_jobs:
        assert job.attempt is not None
        attempts.setdefault(job.attempt.root, []).append(job)
    assert len(attempts) == len(rows)
    for jobs in attempts.values():
        assert [job.attempt.number for job in jobs if job.attempt] == list(range(len(jobs)))
        last = jobs[-1]
        assert last.attempt is not None
        assert not last.attempt.retried
        useful = fsum(spending_of(job).useful / len(job.alloc) for job in jobs)
        if last.state == "COMPLETED_SUCCESSFULLY":
            assert useful == pytest.approx(last.runtime)
        else:
            assert useful <= last.runtime * (1 + 1e-12)
    summary = book.summary()
    seconds = summary.node_seconds
    assert seconds["all"] == NODES * engine.now
    assert min(seconds.values()) >= -1e-6
    assert seconds["busy"] + seconds["idle"] + seconds["down"] + seconds["maintenance"] == pytest.approx(seconds["all"])
    held = fsum(len(job.alloc) * (job.end - job.start) for job in auditor.ended_jobs if job.alloc)
    assert seconds["busy"] <= held * (1 + 1e-12) + 1e-9
    assert sum(summary.unit_seconds.values()) == pytest.approx(held)
    assert not any(job.end == inf for job in auditor.ended_jobs)
