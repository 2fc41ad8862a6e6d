"""Jobs and units together, and the observers of each step."""

from collections.abc import Callable
from typing import Any

import pytest

from pipistrelle.server.engine.cluster import Cluster
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Hooks, Observer
from pipistrelle.server.errors import Illegal

MakeJob = Callable[..., Job]


def test_a_job_goes_from_queue_to_machine_to_memory(make_job: MakeJob, diary: Any) -> None:
    """Submitted, started, ended: each step moves the job, counts, and tells the observers afterwards."""
    cluster = Cluster(4, [diary])
    job = make_job("1", size=2)
    places = []
    steps: list[Callable[[], None]] = [
        lambda: cluster.submit(1.0, job),
        lambda: cluster.execute(2.0, job, "1-2"),
        lambda: cluster.end(5.0, job, "finish"),
    ]
    for step in steps:
        step()
        cluster.check_invariants()
        places.append((list(cluster.waiting), list(cluster.running), sorted(cluster.finished), cluster.ledger.idle))

    assert places == [
        (["w0!1"], [], [], 4),
        ([], ["w0!1"], [], 2),
        ([], [], ["w0!1"], 4),
    ]
    assert diary.lines == ["1 submitted 1", "2 started 1 1-2", "5 ended 1 COMPLETED_SUCCESSFULLY"]
    assert (job.start, job.end, job.state, cluster.steps) == (2.0, 5.0, "COMPLETED_SUCCESSFULLY", 3)


def test_a_rejected_job_never_held_units(make_job: MakeJob, diary: Any) -> None:
    """Rejecting ends a job that waits."""
    cluster = Cluster(4, [diary])
    job = make_job("1")
    cluster.submit(1.0, job)
    cluster.reject(3.0, job)

    assert diary.lines == ["1 submitted 1", "3 ended 1 REJECTED"]
    assert cluster.finished == {"w0!1"}
    cluster.check_invariants()


def test_a_refused_allocation_leaves_the_job_waiting(make_job: MakeJob, diary: Any) -> None:
    """An illegal start changes neither job nor queue nor count, and no observer is called."""
    cluster = Cluster(4, [diary])
    job = make_job("1", size=2)
    cluster.submit(1.0, job)
    with pytest.raises(Illegal):
        cluster.execute(2.0, job, "3-4")

    assert (job.state, list(cluster.waiting), cluster.running, cluster.steps) == ("SUBMITTED", ["w0!1"], {}, 1)
    assert diary.lines == ["1 submitted 1"]
    cluster.check_invariants()


def test_known_jobs_are_all_ever_submitted(make_job: MakeJob) -> None:
    """A job is known while it waits, while it runs and after its end; not before."""
    cluster = Cluster(4)
    job = make_job("1")
    known = [cluster.knows("w0!1")]
    cluster.submit(0.0, job)
    known.append(cluster.knows("w0!1"))
    cluster.execute(0.0, job, "0")
    known.append(cluster.knows("w0!1"))
    cluster.end(1.0, job, "kill")
    known.append(cluster.knows("w0!1"))

    assert known == [False, True, True, True]


@pytest.mark.parametrize("step", ["finish", "fail", "reach_walltime", "kill"])
def test_a_job_that_waits_cannot_end(make_job: MakeJob, step: Any) -> None:
    """The life cycle's table guards the cluster: ending a waiting job is a bug."""
    cluster = Cluster(4)
    job = make_job("1")
    cluster.submit(0.0, job)
    with pytest.raises(KeyError):
        cluster.end(1.0, job, step)


def test_observers_are_called_in_the_order_given(make_job: MakeJob) -> None:
    """The first observer gets each step first."""
    heard: list[str] = []

    class Ear(Observer):
        def __init__(self, name: str) -> None:
            self.name = name

        def submitted(self, now: float, job: Job) -> None:
            heard.append(f"{self.name} {job.id}")

    cluster = Cluster(4, [Ear("a"), Ear("b")])
    cluster.submit(0.0, make_job("1"))
    cluster.submit(0.0, make_job("2"))

    assert heard == ["a w0!1", "b w0!1", "a w0!2", "b w0!2"]


def test_a_hook_that_is_not_overridden_is_not_called() -> None:
    """Observers cost only what they override, inherited overrides included."""

    class Starts(Observer):
        def started(self, now: float, job: Job) -> None: ...

    class Both(Starts):
        def ended(self, now: float, job: Job) -> None: ...

    hooks = Hooks([Observer(), Starts(), Both()])

    assert (len(hooks.started), len(hooks.ended)) == (2, 1)
    assert [hooks.begins, hooks.submitted, hooks.decided, hooks.settled, hooks.ends] == [()] * 5


def test_an_observer_without_overrides_can_be_told_everything(make_job: MakeJob, play: Any) -> None:
    """Each hook of the base class exists and does nothing."""
    job, observer, decision = make_job(), Observer(), play(1).reject("1")
    calls: list[Callable[[], None]] = [
        lambda: observer.begins(0.0, 4),
        lambda: observer.submitted(0.0, job),
        lambda: observer.started(0.0, job),
        lambda: observer.ended(0.0, job),
        lambda: observer.decided(0.0, decision, None),
        lambda: observer.settled(0.0, 4, 0),
        lambda: observer.ends(0.0, "completed", ""),
    ]
    for call in calls:
        call()
