"""Conditions on jobs: which jobs they select, and invalid conditions."""

from collections.abc import Callable

import pytest

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.events import JobDescription
from pipistrelle.schedulers.placement.selections import Selection
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.policy.jobs import SchedulerJob

MakeJob = Callable[..., SchedulerJob]
MACHINE = Machine(64)


@pytest.mark.parametrize(
    ("texts", "sizes"),
    [
        (["nodes<=16"], {1, 16}),
        (["nodes<16"], {1}),
        (["nodes >= 17"], {17, 40}),
        (["units=17"], {17}),
        (["nodes=1 or nodes>20"], {1, 40}),
        (["nodes=1", "nodes>20"], {1, 40}),
        (["  nodes = 1   or   nodes = 16  "], {1, 16}),
        (["nodes=2"], set()),
        ([], set()),
    ],
)
def test_sizes(waiting_job: MakeJob, texts: list[str], sizes: set[int]) -> None:
    """Comparisons, joined by `or` or given one by one."""
    selection = Selection(texts, "--dual-ended")

    assert bool(selection) == bool(texts)
    assert not selection.asks_labels
    assert {size for size in (1, 16, 17, 40) if selection.has(waiting_job(0, size=size), MACHINE)} == sizes


def test_walltimes(waiting_job: MakeJob) -> None:
    """A length of time has a unit; a job without a walltime is longer than any."""
    short, long = Selection(["walltime<2h"], ""), Selection(["walltime>=120 min"], "")

    for walltime, expected in ((7199.0, True), (7200.0, False), (float("inf"), False)):
        job = waiting_job(0, walltime=walltime)
        assert (short.has(job, MACHINE), long.has(job, MACHINE)) == (expected, not expected)


def test_names(waiting_job: MakeJob) -> None:
    """Jobs by their owners, and by their ids."""
    told = JobDescription("w0!3", 1, user="ann", account="climate", queue="Bin20")
    job, bare = waiting_job(3, description=told), waiting_job(4)

    for text in ("accounts=fusion,climate", "users=ann", "queues = Bin20", "qos=x or users=ann"):
        selection = Selection([text], "")
        assert selection.asks_labels
        assert (selection.has(job, MACHINE), selection.has(bare, MACHINE)) == (True, False)
    assert not Selection(["groups=ann"], "").has(job, MACHINE)
    by_id = Selection(["jobs=w0!4,w0!9"], "")
    assert not by_id.asks_labels
    assert (by_id.has(job, MACHINE), by_id.has(bare, MACHINE)) == (False, True)


def test_nodes_of_several_units(waiting_job: MakeJob) -> None:
    """Nodes are those that the job's units need at least."""
    machine = Machine(32, Platform(name="m", pools=(Pool(name="all", nodes=4, units_per_node=8, unit="core"),)).info)
    two = Selection(["nodes=2"], "")

    assert [size for size in range(1, 33) if two.has(waiting_job(0, size=size), machine)] == [*range(9, 17)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "invalid condition on jobs"),
        ("nodes", "invalid condition on jobs"),
        ("nodes<", "invalid condition on jobs"),
        ("nodes<=16 or", "invalid number of nodes: expected a whole number, such as 16, found '16 or'"),
        ("nodes<=16 or or nodes=3", "invalid condition on jobs"),
        ("nodes<1.5", "invalid number of nodes"),
        ("units<-1", "invalid number of units"),
        ("walltime<2x", "unknown unit"),
        ("node<3", "Did you mean 'nodes'?"),
        ("accounts<a", "invalid accounts in a condition on jobs"),
        ("accounts=a,,b", "invalid accounts in a condition on jobs"),
    ],
)
def test_what_cannot_be_read(text: str, says: str) -> None:
    """The message names the option, its value and the valid ones."""
    with pytest.raises(PolicyError) as caught:
        Selection([text], "--dual-ended")

    assert "--dual-ended" in str(caught.value)
    assert says in str(caught.value)
