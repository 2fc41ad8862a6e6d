"""GPU fragmentation: GPUs that are idle on nodes that fit no waiting job."""

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from pipistrelle.platforms.classes import JobClass
from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.protocol.base.state import from_json, to_json
from pipistrelle.schedulers.catalogue.parts import compose
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer, Reasons
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.outputs.fragmentation_book import Fragmentation, FragmentationBook
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import Result, simulate
from pipistrelle.server.transport.in_process import InProcessTransport
from pipistrelle.traces.workload import Workload

POOLS = (
    Pool(name="cpu", nodes=2),
    Pool(name="gpu", nodes=2, units_per_node=4, unit="gpu", properties={"model": "a100"}),
    Pool(name="old", nodes=2, units_per_node=2, unit="gpu", properties={"model": "k80"}),
)
ZEUS = Platform(name="zeus", pools=POOLS, classes=(JobClass(name="x", pools=("old",)),))
#: each node's pool, and its units
NODES = [(pool, each) for pool in POOLS for each in [pool.units_per_node] * pool.nodes]
UNITS = [node for node, (_, each) in enumerate(NODES) for _ in range(each)]
MEETS = {"": {"cpu", "gpu", "old"}, "a100": {"gpu"}, "unit=gpu": {"gpu", "old"}, "pool=cpu": {"cpu"}}
#: submit, size, runtime (s), constraint, units a node (0: any), whole nodes, queue
Row = tuple[float, int, float, str, int, bool, str]


def play(rows: list[Row], placement: str = "lowest", broken: dict[int, float] | None = None) -> tuple[Result, "Diary"]:
    """Simulate jobs under EASY."""
    submit, size, runtime, constraint, each, whole, queue = zip(*rows, strict=True)
    workload = Workload(
        name="t",
        source="t",
        ids=[str(number) for number in range(len(rows))],
        submit=np.array(submit),
        size=np.array(size, dtype=np.int64),
        walltime=np.array(runtime),
        runtime=np.array(runtime),
        columns={
            "units_per_node": np.array([one or -1 for one in each], dtype=np.int64),
            "whole_nodes": np.array([1 if one else -1 for one in whole], dtype=np.int64),
        },
        labels={"constraint": list(constraint), "queue": list(queue)},
    )
    outages = Outages.of([Outage(node, down, down + 2.5) for node, down in sorted((broken or {}).items())])
    diary = Diary()
    result = simulate(
        Setup.of(ZEUS, workload, strict=True, reliability=Reliability(outages=outages) if broken else None),
        InProcessTransport(Runtime(compose(backfill="easy", placement=placement))),
        clock=lambda: 0.0,
        observers=[diary],
    )
    if result.failure is not None:
        raise result.failure
    return result, diary


class Diary(Observer):
    """Keeps all that happens, and adds up by looking at each node and job between any two instants."""

    def __init__(self) -> None:
        self.times: list[float] = [0.0]
        self.waiting: dict[str, Job] = {}
        self.held = [0] * len(NODES)
        self.down: set[int] = set()
        self.waited = self.idle = self.stranded = 0.0
        self.most = 0

    def _until(self, now: float) -> None:
        span = now - self.times[-1]
        if span and self.waiting:
            idle = stranded = 0
            for node, (pool, each) in enumerate(NODES):
                free = each - self.held[node]
                if pool.unit == "gpu" and node not in self.down:
                    idle += free
                    stranded += 0 if any(fits(job, pool, free) for job in self.waiting.values()) else free
            self.waited += span
            self.idle += idle * span
            self.stranded += stranded * span
            self.most = max(self.most, stranded)
        self.times.append(now)

    def submitted(self, now: float, job: Job) -> None:
        """Keep it."""
        self._until(now)
        self.waiting[job.id] = job

    def started(self, now: float, job: Job) -> None:
        """Keep it."""
        self._until(now)
        del self.waiting[job.id]
        for unit in job.alloc:
            self.held[UNITS[unit]] += 1

    def ended(self, now: float, job: Job) -> None:
        """Keep it."""
        self._until(now)
        self.waiting.pop(job.id, None)
        for unit in job.alloc:
            self.held[UNITS[unit]] -= 1

    def went_down(self, now: float, nodes: object, units: object, planned: bool, why: Reasons) -> None:
        """Keep it."""
        self._until(now)
        self.down |= set(nodes)  # type: ignore[call-overload]

    def came_up(self, now: float, nodes: object, units: object) -> None:
        """Keep it."""
        self._until(now)
        self.down -= set(nodes)  # type: ignore[call-overload]


def fits(job: Job, pool: Pool, free: int) -> bool:
    """Return whether a node with this many free units would suffice for a job."""
    request = job.request
    if job.queue == "x" and pool.name != "old":
        return False
    if request is None:
        return free > 0
    if request.constraint is not None and pool.name not in MEETS[request.constraint]:
        return False
    if request.whole_nodes:
        return free == pool.units_per_node
    return free >= min(request.units_per_node or 1, job.size)


rows = st.lists(
    st.tuples(
        st.integers(0, 12).map(float),
        st.integers(1, 8),
        st.sampled_from([1.0, 2.0, 3.0, 5.0, 8.0]),
        st.sampled_from(sorted(MEETS)),
        st.sampled_from([0, 0, 1, 2, 3, 4]),
        st.sampled_from([False, False, True]),
        st.sampled_from(["x", "y"]),
    ),
    min_size=1,
    max_size=20,
).map(sorted)
failures = st.dictionaries(st.integers(0, len(NODES) - 1), st.integers(0, 20).map(float), max_size=3)


@settings(max_examples=60, deadline=None)
@given(jobs=rows, broken=failures, placement=st.sampled_from(["lowest", "pack", "spread"]))
def test_figures_agree_with_looking_at_every_node_and_job(
    jobs: list[Row], broken: dict[int, float], placement: str
) -> None:
    """GPU-seconds and the most at a time, with failures, classes and every shape."""
    result, diary = play([*jobs, (0.0, 1, 1.0, "a100", 0, False, "y")], placement, broken)
    found = result.summary.fragmentation

    assert isinstance(found, Fragmentation)
    assert found.gpus == 12
    assert (found.waiting_time, found.idle, found.stranded) == pytest.approx(
        (diary.waited, diary.idle, diary.stranded), abs=1e-9
    )
    assert found.most == diary.most
    assert sum(found.pools.values()) == pytest.approx(found.stranded)
    assert found.share == (found.stranded / found.idle if found.idle else None)


def test_a_case_by_hand() -> None:
    """From 1 to 10 s one GPU is free on one node of four, two on the other: a job that wants three cannot use them."""
    result, _ = play(
        [
            (0.0, 3, 10.0, "a100", 3, False, "y"),
            (0.0, 2, 10.0, "a100", 2, False, "y"),
            (1.0, 3, 5.0, "a100", 3, False, "y"),
        ]
    )
    found = result.summary.fragmentation

    assert found == Fragmentation(
        gpus=12,
        waiting_time=9.0,
        idle=63.0,
        stranded=63.0,
        share=1.0,
        mean=7.0,
        most=7,
        pools={"gpu": 27.0, "old": 36.0},
    )


def test_without_requests_or_gpus_there_are_no_figures() -> None:
    """The summary has none then."""
    assert play([(0.0, 3, 10.0, "", 0, False, "y")])[0].summary.fragmentation is UNSET
    assert FragmentationBook.suits(ZEUS)
    assert not FragmentationBook.suits(Platform(name="m", pools=(Pool(name="a", nodes=1),)))


def test_the_state_is_whole() -> None:
    """A book restored from another's state continues as that one."""
    book = FragmentationBook(ZEUS)
    job = Job("w0!1", 0.0, 2, inf, 5.0, "5")
    book.submitted(1.0, job)
    book.submitted(3.0, Job("w0!2", 3.0, 2, inf, 5.0, "5"))
    again = FragmentationBook(ZEUS)
    again.restore(from_json(to_json(book.state())))
    for one in (book, again):
        one.ends(9.0, "completed", "")

    assert book.summary() == again.summary()
    assert book.summary().idle == 8 * 12
