"""Node requests of jobs on the server's side: fixed before the run, announced, and checked at each start."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.requests.requests import NodeRequest
from pipistrelle.protocol.decisions import ExecuteJob, ExecuteJobData, RegisterJob, RegisterJobData
from pipistrelle.protocol.events import DecisionRejected, JobDescription, JobSubmitted
from pipistrelle.protocol.messages import Reply
from pipistrelle.protocol.resources.request import Request
from pipistrelle.server.errors import DecisionRefused
from pipistrelle.server.setup.requests import UNMET, requests_of, settle_requests
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.assembly import make_engine
from pipistrelle.traces.workload import Workload

ZEUS = Platform(
    name="zeus",
    pools=(
        Pool(name="cpu", nodes=2),
        Pool(name="gpu", nodes=2, units_per_node=4, unit="gpu", properties={"model": "a100"}),
        Pool(name="old", nodes=2, units_per_node=2, unit="gpu", properties={"model": "k80"}),
    ),
)
#: (size, constraint, units a node, whole nodes)
Ask = tuple[int, str, int, bool]


def workload(*asks: Ask) -> Workload:
    """Return jobs 1, 2, ... that ask so, submitted at time 0."""
    size, constraint, each, whole = zip(*asks, strict=True)
    return Workload(
        name="t",
        source="t",
        ids=[str(number) for number in range(1, len(asks) + 1)],
        submit=np.zeros(len(asks)),
        size=np.array(size, dtype=np.int64),
        walltime=np.full(len(asks), 10.0),
        runtime=np.full(len(asks), 10.0),
        columns={
            "units_per_node": np.array(each, dtype=np.int64),
            "whole_nodes": np.array(whole, dtype=np.int64),
        },
        labels={"constraint": list(constraint)},
    )


@pytest.mark.parametrize(
    ("ask", "size", "request_"),
    [
        ((3, "", -1, False), 3, None),
        ((3, "a100", -1, False), 3, NodeRequest("a100")),
        ((4, "", 2, False), 4, NodeRequest(None, 2)),
        ((2, "pool=cpu", 1, False), 2, NodeRequest("pool=cpu")),  # every node of that pool has one unit
        ((2, "pool=cpu", -1, True), 2, NodeRequest("pool=cpu")),
        ((1, "model=a100", -1, True), 4, NodeRequest("model=a100", 4, True)),
        ((1, "unit=gpu", -1, True), 2, NodeRequest("unit=gpu", 2, True)),
        ((5, "unit=gpu", -1, True), 8, NodeRequest("unit=gpu", 4, True)),  # there are no three nodes of two
        ((4, "unit=gpu", 3, True), 8, NodeRequest("unit=gpu", 4, True)),
        ((4, "unit=gpu", 2, True), 4, NodeRequest("unit=gpu", 2, True)),
        # Slurm's brackets and counts, for a known number of nodes
        ((2, "[a100|k80]", 2, False), 2, NodeRequest("a100|k80", 2)),
        ((8, "[pool=cpu|a100]", 4, False), 8, NodeRequest("a100", 4)),
        ((4, "a100*1&unit=gpu", 4, False), 4, NodeRequest("a100&unit=gpu", 4)),
    ],
)
def test_requests_are_settled(ask: Ask, size: int, request_: NodeRequest | None) -> None:
    """A job with exclusive nodes has all units of the fewest possible nodes; redundant requests are left out."""
    setup = Setup.of(ZEUS, workload(ask))
    settled = setup.workloads["w0"]

    assert settled.size.tolist() == [size]
    assert requests_of(settled) == (None if request_ is None else [request_])
    assert any("more units than asked for" in remark for remark in setup.remarks) == (size != ask[0])


def test_brackets_and_counts_that_have_no_plain_form() -> None:
    """They are left out, each by its reason."""
    setup = Setup.of(ZEUS, workload((4, "[a100|k80]", 2, False), (4, "a100*1", 2, False), (4, "[a100|k80]", -1, False)))

    assert setup.dropped == {UNMET: 3}
    told = [remark.partition("the constraint ")[2] for remark in setup.remarks]
    assert told[0].startswith("wants nodes of one alternative, and of several there are enough, which is not supported")
    assert told[0].endswith("'[a100|k80]': '1', '3'")
    assert told[1] == "counts 1 nodes of 2 (a100*1), which is not supported: 'a100*1': '2'"


def test_impossible_jobs_are_left_out_and_reported() -> None:
    """Such jobs are counted under one reason; each reason lists the jobs' names."""
    setup = Setup.of(
        ZEUS,
        workload(
            (1, "h100", -1, False),
            (1, "h100", -1, True),
            (1, "pool=gpus", -1, False),
            (8, "", 8, False),
            (1, "a100&&", -1, False),
            (9, "unit=gpu", 4, False),
            (2, "", -1, False),
        ),
    )

    assert setup.workloads["w0"].ids == ["7"]
    assert setup.dropped == {UNMET: 6}
    assert setup.remarks == (
        "2 jobs are left out, no pool meets its constraint 'h100': '1', '2'",
        "1 job is left out, there is no pool 'gpus' for its constraint 'pool=gpus' (did you mean 'gpu'?): '3'",
        "1 job is left out, it asks for 8 units a node, the nodes of the machine have 1 or 2 or 4: '4'",
        "1 job is left out, the constraint lacks a word: 'a100&&': '5'",
        "1 job is left out, it asks for 3 nodes with 4 units, constraint 'unit=gpu' has 2: '6'",
    )


def test_a_job_of_one_node_does_not_span_nodes() -> None:
    """A job of one node, as its log says, has all its units on one node; if no node is large enough, that is said."""
    one = Request(nodes=1, most_nodes=1, tasks=3)
    jobs = replace(
        workload((3, "", -1, False), (3, "model=k80", -1, False), (3, "", -1, False)), requests=[one, one, None]
    )
    settled, dropped, said = settle_requests(jobs, ZEUS)
    assert (settled.columns["units_per_node"].tolist(), dropped) == ([3, -1, -1], 0)
    assert said == ["1 job is given several nodes, though the log says one: no node has so many units: '2'"]


def test_many_reasons_are_summed_up() -> None:
    """At most five are listed."""
    setup = Setup.of(ZEUS, workload(*((1, f"h{number}", -1, False) for number in range(9)), (1, "", -1, False)))

    assert len(setup.remarks) == 6
    assert setup.remarks[-1] == "jobs are left out for 4 further such reasons"


def begun(*asks: Ask, strict: bool = False) -> Any:
    """Return an engine whose scheduler has received these jobs, and that notice."""
    engine = make_engine(Setup.of(ZEUS, workload(*asks), strict=strict), ("dynamic_jobs",), [])
    notice = engine.advance()
    if not any(isinstance(event, JobSubmitted) for event in notice.events):
        engine.apply(Reply(notice.seq, notice.now, []))
        notice = engine.advance()
    return engine, notice


def test_the_scheduler_is_told() -> None:
    """JOB_SUBMITTED has the job's node request; without a request it has none of the three fields."""
    _, notice = begun((5, "unit=gpu", -1, True), (3, "a100", 2, False), (1, "", -1, False))

    assert [event.data.job for event in notice.events if isinstance(event, JobSubmitted)] == [
        JobDescription("w0!1", 8, 10.0, constraint="unit=gpu", units_per_node=4, whole_nodes=True),
        JobDescription("w0!2", 3, 10.0, constraint="a100", units_per_node=2),
        JobDescription("w0!3", 1, 10.0),
    ]


@pytest.mark.parametrize(
    ("ask", "alloc", "says"),
    [
        ((2, "a100", -1, False), "0-1", "'alloc' of w0!1 has units of nodes that will not do, 0-1: it asks for"),
        ((4, "unit=gpu", 2, False), "2-5", "'alloc' of w0!1 has 4 units a node: it asks for constraint 'unit=gpu', 2"),
        ((2, "", 2, False), "0-1", "units of nodes that will not do, 0-1: it asks for 2 units a node"),
        (
            (4, "unit=gpu", -1, True),
            "10-11 2-3",
            "not do, 2-3: it asks for constraint 'unit=gpu', 2 units a node, whole",
        ),
    ],
)
def test_other_units_are_rejected(ask: Ask, alloc: str, says: str) -> None:
    """The code is wrong_units, the decision changes nothing; a strict engine ends the run."""
    engine, notice = begun(ask)
    start = ExecuteJob(notice.now, ExecuteJobData("w0!1", alloc))
    before = engine.cluster.state()
    engine.apply(Reply(notice.seq, notice.now, [start]))
    (event,) = engine.advance().events

    assert engine.cluster.state() == before
    assert isinstance(event, DecisionRejected)
    assert event.data.code == "wrong_units"
    assert says in event.data.message

    engine, notice = begun(ask, strict=True)
    with pytest.raises(DecisionRefused, match=r"\(wrong_units\)"):
        engine.apply(Reply(notice.seq, notice.now, [start]))


@pytest.mark.parametrize(
    ("alloc", "code"), [("two", "bad_allocation"), ("2", "wrong_size"), ("13-14", "unknown_unit"), ("2-3", "busy_unit")]
)
def test_other_errors_are_reported_first(alloc: str, code: str) -> None:
    """Units that are none, too few, unknown or taken have their own codes."""
    engine, notice = begun((2, "a100", -1, False), (2, "a100", 2, False))
    starts = [ExecuteJob(notice.now, ExecuteJobData(*pair)) for pair in (("w0!1", "2-3"), ("w0!2", alloc))]
    engine.apply(Reply(notice.seq, notice.now, starts))

    assert [event.data.code for event in engine.advance().events] == [code]


@pytest.mark.parametrize(
    ("job", "code"),
    [
        (JobDescription("dyn!1", 2, 10.0, constraint="a100", units_per_node=2), None),
        (JobDescription("dyn!1", 2, 10.0, constraint="h100"), "too_large"),
        (JobDescription("dyn!1", 2, 10.0, whole_nodes=True), "malformed"),
        (JobDescription("dyn!1", 3, 10.0, units_per_node=2, whole_nodes=True), "malformed"),
        (JobDescription("dyn!1", 2, 10.0, units_per_node=2, whole_nodes=True), None),
    ],
)
def test_registered_jobs_ask_too(job: JobDescription, code: str | None) -> None:
    """Impossible node requests are rejected; possible ones are repeated in the job's JOB_SUBMITTED."""
    engine, notice = begun((1, "", -1, False))
    engine.apply(Reply(notice.seq, notice.now, [RegisterJob(notice.now, RegisterJobData("dyn!1", job, 5.0))]))
    (event,) = engine.advance().events

    assert (event.data.code if isinstance(event, DecisionRejected) else None) == code
    assert code is not None or event.data.job == job
