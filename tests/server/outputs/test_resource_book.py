"""Use, fragmentation and stranding of the resources of shared nodes."""

import pytest

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.resources.shape import Take
from pipistrelle.platforms.resources.takes import Taken
from pipistrelle.protocol.resources.request import Request
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.outputs.resource_book import ResourceBook

#: two nodes of 8 cores and 8 GiB, one of them with two GPUs
MACHINE = Platform(
    name="m",
    pools=(
        Pool(name="std", nodes=1, resources={"cores": 8, "memory": "8 GiB"}),
        Pool(name="gpu", nodes=1, resources={"cores": 8, "memory": "8 GiB", "gpu": 2}),
    ),
)
ALL_MEMORY = Request(tasks=2, memory_per_node=8192)
ALL_CORES = Request(tasks=8, memory_per_node=1024)
ONE_GPU = Request(tasks=1, gpus=1, memory_per_node=1024)


def job_of(name: str, request: Request) -> Job:
    """Return a queued job."""
    job = Job(name, 0.0, 1, 100.0, 100.0, "")
    job.resources = request
    return job


def start(book: ResourceBook, now: float, job: Job, node: int, tasks: int, gpus: tuple[int, ...] = ()) -> None:
    """Start a job on one node."""
    job.alloc = NodeSet.of([node])
    job.taken = Taken(1000 * tasks, 0, 1000 * len(gpus), (Take(node, tasks, gpus),))
    book.started(now, job)


def test_use_and_stranding_are_summed_over_time() -> None:
    """Cores beside a job with all memory are stranded without memory; GPUs on a node without cores, too."""
    book = ResourceBook(MACHINE, [ALL_MEMORY, ALL_CORES, ONE_GPU])
    first, second = job_of("a", ALL_MEMORY), job_of("b", ALL_CORES)
    for job in (first, second):
        book.submitted(0.0, job)
    start(book, 0.0, first, 0, 2)
    start(book, 10.0, second, 1, 8)
    for now, job in ((30.0, first), (40.0, second)):
        book.ended(now, job)
    book.ends(50.0, "completed", "")
    found = book.summary()

    assert found["cores"].total == 16
    assert found["cores"].used == 2 * 30 + 8 * 30
    assert found["cores"].utilisation == pytest.approx(300 / (16 * 50))
    assert found["memory"].used == 8192 * 30 + 1024 * 30
    assert found["cores"].stranded == {"memory": 6 * 30, "gpu": 0}
    assert found["gpu"].stranded == {"cores": 2 * 30, "memory": 0}
    assert found["gpu"].utilisation == 0


def test_what_fits_no_queued_job_is_fragmented() -> None:
    """Only while jobs are queued, and only on nodes that are up."""
    book = ResourceBook(MACHINE, [ALL_MEMORY, ONE_GPU])
    first, second = job_of("a", ALL_MEMORY), job_of("b", ONE_GPU)
    book.submitted(0.0, first)
    start(book, 0.0, first, 1, 2)
    book.submitted(10.0, second)  # it fits on neither node: no GPU, no memory
    found = book.summary()
    assert found["cores"].idle == 0
    book.went_down(20.0, NodeSet.of([0]), NodeSet.of([0]), False, {0: ("", 0.0)})
    book.came_up(25.0, NodeSet.of([0]), NodeSet.of([0]))
    book.ended(30.0, first)  # now it fits on the node with GPUs
    book.ends(40.0, "horizon", "")
    found = book.summary()

    assert found["cores"].idle == 14 * 15 + 6 * 5 + 16 * 10
    assert found["cores"].fragmented == 14 * 15 + 6 * 5 + 8 * 10
    assert found["cores"].unavailable == 8 * 5
    assert found["gpu"].fragmented == 2 * 20


def test_a_saved_state_restores_to_the_same() -> None:
    """The book of a resumed run goes on with the same sums."""
    book = ResourceBook(MACHINE, [ALL_MEMORY, ONE_GPU])
    first, second = job_of("a", ALL_MEMORY), job_of("b", ONE_GPU)
    book.submitted(0.0, first)
    start(book, 5.0, first, 1, 2)
    book.submitted(10.0, second)
    again = ResourceBook(MACHINE, [ALL_MEMORY, ONE_GPU])
    again.restore(book.state())
    for one in (book, again):
        one.ended(25.0, first)
        one.ends(40.0, "horizon", "")

    assert again.summary() == book.summary()
    assert again.state() == book.state()
