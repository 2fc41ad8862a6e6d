"""The ledger of nodes with cores, memory, GPUs and licences, of which jobs take parts."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.resources.shared_nodes import SharedNodes
from pipistrelle.protocol.events import JobDescription
from pipistrelle.protocol.resources.nodes import NodeTake
from pipistrelle.protocol.resources.request import Request
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.errors import Illegal
from pipistrelle.server.hosts.node_ledger import NodeLedger

MakeJob = Callable[..., Job]
#: 4 nodes of 8 cores and 16 GiB; nodes 2 and 3 have two GPUs
NODES = SharedNodes(
    ("cores", "memory"),
    np.array([[8000, 16384]] * 4),
    gpu_counts=np.array([0, 0, 2, 2]),
    models=("a100",),
    model_of=np.array([-1, -1, 0, 0]),
    names=("n0", "n1", "n2", "n3"),
    licenses={"matlab": 2},
)


def job_of(make_job: MakeJob, name: str, request: Request) -> Job:
    """Return a queued job with this request."""
    job = make_job(name, size=request.least_nodes)
    job.resources = request
    return job


def start(ledger: NodeLedger, job: Job, alloc: str, takes: Sequence[NodeTake] = ()) -> None:
    """Give a job its nodes."""
    job.alloc = ledger.take(job, alloc, takes)


def test_two_jobs_share_a_node_and_give_it_back(make_job: MakeJob) -> None:
    """A node counts as idle only without jobs; what a job took is free again at its end."""
    ledger = NodeLedger(NODES)
    first = job_of(make_job, "1", Request(tasks=3, memory_per_node=4096))
    second = job_of(make_job, "2", Request(tasks=5, memory_per_node=12288))
    start(ledger, first, "0")
    start(ledger, second, "0")
    assert ledger.idle == 3
    assert ledger.free.amounts[0].tolist() == [0, 0]
    ledger.check_invariants([first, second])
    ledger.give_back(first)
    assert ledger.free.amounts[0].tolist() == [3000, 4096]
    ledger.give_back(second)

    assert ledger.idle == 4
    assert ledger.changed
    ledger.check_invariants([])


def test_tasks_and_gpus_are_divided_as_told(make_job: MakeJob) -> None:
    """Each node gives what its tasks need, and exactly the GPUs with these numbers."""
    ledger = NodeLedger(NODES)
    job = job_of(make_job, "1", Request(tasks=6, cores_per_task=2000, memory_per_core=1024, gpus=3))
    start(ledger, job, "2-3", [NodeTake("2", 4, "0-1"), NodeTake("3", 2, "1")])

    assert ledger.free.amounts.tolist() == [[8000, 16384], [8000, 16384], [0, 8192], [4000, 12288]]
    assert ledger.free.gpus.tolist() == [[0, 0], [0, 0], [0, 0], [1000, 0]]
    assert ledger.told_takes(job) == (NodeTake("2", 4, "0-1"), NodeTake("3", 2, "1"))
    assert job.taken is not None
    assert job.taken[:3] == (12000, 12288, 3000)
    ledger.check_invariants([job])


def test_the_server_picks_the_fullest_gpu_that_suffices(make_job: MakeJob) -> None:
    """A share of a GPU without 'takes' goes to a GPU that is shared already."""
    ledger = NodeLedger(NODES)
    jobs = [job_of(make_job, str(place), Request(tasks=1, gpus=1, gpu_share=300)) for place in range(4)]
    for job in jobs:
        start(ledger, job, "2")

    assert ledger.free.gpus[2].tolist() == [100, 700]
    ledger.check_invariants(jobs)


def test_an_exclusive_job_takes_all_of_idle_nodes(make_job: MakeJob) -> None:
    """It needs nodes without jobs, and no job starts beside it."""
    ledger = NodeLedger(NODES)
    small, whole = job_of(make_job, "1", Request(tasks=1)), job_of(make_job, "2", Request(nodes=2, exclusive=True))
    start(ledger, small, "3")
    with pytest.raises(Illegal, match="node n3 is not idle") as caught:
        ledger.take(whole, "2-3")
    assert caught.value.code == "wrong_resources"
    start(ledger, whole, "1-2")
    assert ledger.free.gpus.tolist() == [[0, 0], [0, 0], [0, 0], [1000, 1000]]
    with pytest.raises(Illegal, match=r"node 'n1' has too little free of cores.*at least 1.*0"):
        ledger.take(job_of(make_job, "3", Request(tasks=1)), "1")
    ledger.check_invariants([small, whole])


@pytest.mark.parametrize(
    ("request_", "alloc", "takes", "code", "says"),
    [
        (Request(tasks=9), "0", (), "wrong_resources", "node 'n0' has too little free of cores"),
        (Request(tasks=1, memory_per_node=20480), "0", (), "wrong_resources", "of memory.*20 GiB.*16 GiB"),
        (Request(tasks=1, gpus=3), "2", (), "wrong_resources", "node n2 has too few free GPUs.*3, 2 are free"),
        (Request(tasks=1, gpus=1), "2", [NodeTake("2", 1, "2")], "wrong_resources", "does not have these GPUs"),
        (Request(tasks=1, gpus=2), "2", [NodeTake("2", 1, "0")], "wrong_resources", "1 GPUs in all; it asks for 2"),
        (Request(tasks=4), "0 2", [NodeTake("0", 2), NodeTake("2", 1)], "wrong_resources", "3 tasks in all"),
        (Request(tasks=4), "0 2", [NodeTake("0", 4)], "wrong_resources", "other nodes than 'alloc', 0 2"),
        (Request(tasks=3), "0 2", (), "wrong_resources", "tell them in 'takes'"),
        (Request(nodes=1, most_nodes=1, tasks=2), "0 2", (), "wrong_resources", "2 nodes; it asks for 1"),
        (Request(tasks=4, tasks_per_node=2), "0 2", [NodeTake("0", 3), NodeTake("2", 1)], "wrong_resources", "1 to 2"),
        (Request(tasks=1, licenses={"matlab": 3}), "0", (), "wrong_resources", "too few licences 'matlab'.*3.*2"),
        (Request(tasks=1), "0-x", (), "bad_allocation", "no set of nodes"),
        (Request(tasks=1), "4", (), "unknown_unit", "names node 4; the machine has 0-3"),
        (Request(tasks=1), "1", (), "busy_unit", "down or unavailable: 1"),
        (Request(nodes=2, tasks_per_node=1), "0", (), "wrong_size", "needs 2 nodes, 'alloc' has 1"),
        (Request(tasks=1), "0", [NodeTake("0", 1, "a")], "bad_allocation", "'takes' of w0!1 cannot be read"),
    ],
)
def test_a_refusal_names_the_resource_and_changes_nothing(
    make_job: MakeJob, request_: Request, alloc: str, takes: Sequence[NodeTake], code: str, says: str
) -> None:
    """Node, resource, asked and free amount are in the message; the ledger is as before."""
    ledger = NodeLedger(NODES)
    ledger.block(NodeSet.parse("1"))
    with pytest.raises(Illegal, match=says) as caught:
        ledger.take(job_of(make_job, "w0!1", request_), alloc, takes)

    assert caught.value.code == code
    assert (ledger.free.amounts == NODES.amounts).all()
    assert (ledger.free.gpus == NODES.gpus).all()
    assert ledger.free.licenses == {"matlab": 2}
    ledger.check_invariants([])


def test_a_registered_job_gets_its_request(make_job: MakeJob) -> None:
    """Without a request it takes whole nodes; a job that never fits is refused with the resource."""
    ledger = NodeLedger(NODES)
    assert ledger.resources_of(JobDescription("a", 2), None) == Request(nodes=2, most_nodes=2, exclusive=True)
    asked = Request(tasks=2, memory_per_node=1024)
    assert ledger.resources_of(JobDescription("a", 1, request=asked), None) == asked
    for request, code, says in (
        (Request(tasks=1, memory_per_node=20480), "too_large", "20 GiB of memory on a node"),
        (Request(tasks=1, gpus=1, gpu_models=("v100",)), "wrong_resources", "no node has GPUs of the model v100"),
        (Request(nodes=2), "wrong_size", "needs 2 nodes"),
    ):
        with pytest.raises(Illegal, match=says) as caught:
            ledger.resources_of(JobDescription("a", 1, request=request), None)
        assert caught.value.code == code


REQUESTS = (
    st.builds(
        Request,
        tasks=st.integers(1, 6),
        cores_per_task=st.sampled_from([500, 1000, 3000]),
        memory_per_node=st.sampled_from([None, 1024, 9000]),
        gpus=st.just(0),
        licenses=st.sampled_from([{}, {"matlab": 1}]),
    )
    | st.builds(Request, tasks=st.integers(1, 4), gpus=st.just(1), gpu_share=st.sampled_from([250, 600, 1000]))
    | st.builds(Request, nodes=st.integers(1, 2), exclusive=st.just(True))
)


@settings(max_examples=120)
@given(st.lists(st.tuples(st.booleans(), REQUESTS, st.sets(st.integers(0, 3), min_size=1, max_size=2)), max_size=30))
def test_no_node_is_overcommitted_and_nothing_is_lost(steps: list[tuple[bool, Request, set[int]]]) -> None:
    """After any starts, ends and blocks, taken and free make up the nodes; a saved state restores to the same."""
    ledger = NodeLedger(NODES)
    running: list[Job] = []
    for place, (ends, request, nodes) in enumerate(steps):
        if ends and running:
            ledger.give_back(running.pop(place % len(running)))
        job = Job(f"w0!{place}", 0.0, request.least_nodes, 10.0, 5.0, "")
        job.resources = request
        try:
            job.alloc = ledger.take(job, str(NodeSet.of(nodes)))
        except Illegal:
            (ledger.unblock if place % 2 else ledger.block)(NodeSet.of(nodes))
        else:
            running.append(job)
        ledger.check_invariants(running)
        again = NodeLedger(NODES)
        again.restore(ledger.state())
        again.check_invariants(running)
        assert again.state() == ledger.state()
