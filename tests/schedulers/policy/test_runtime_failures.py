"""What the runtime makes of nodes that fail, are repaired and are maintained."""

from collections.abc import Callable
from math import inf
from typing import Any

import pytest

from pipistrelle.protocol.decisions import (
    ExecuteJob,
    ExecuteJobData,
)
from pipistrelle.protocol.events import (
    Event,
    JobCompleted,
    JobCompletedData,
    JobDescription,
    JobSubmitted,
    JobSubmittedData,
    MaintenanceAnnounced,
    MaintenanceAnnouncedData,
    MaintenanceBegins,
    MaintenanceBeginsData,
    MaintenanceEnds,
    MaintenanceEndsData,
    NodesFailed,
    NodesFailedData,
    NodesRepaired,
    NodesRepairedData,
    NoMoreJobs,
    SimulationBegins,
    SimulationBeginsData,
)
from pipistrelle.protocol.messages import Notice, Reply, WelcomeData
from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.schedulers.policy.compose import compose
from pipistrelle.schedulers.policy.order import Order
from pipistrelle.schedulers.policy.runtime import Runtime
from pipistrelle.schedulers.policy.view import View

Act = Callable[[View], None]


class Puppet:
    """A policy that does what it is given, one action a notice, and then nothing."""

    name = "puppet"
    features = ("dynamic_jobs",)

    def __init__(self, *acts: Act) -> None:
        self.order: Order = Fcfs()
        self.acts = list(acts)

    def decide(self, view: View) -> None:
        """Do the next thing."""
        if self.acts:
            self.acts.pop(0)(view)


class Talk:
    """A runtime and the server's part in its conversation."""

    def __init__(self, policy: Any, *, features: tuple[Any, ...] = ("wake_filter",), units: int = 4) -> None:
        self.runtime = Runtime(policy, "1.2")
        self.seq = 0
        self.runtime.welcome(WelcomeData(1, features, "run"))
        self.tell(0.0, SimulationBegins(0.0, SimulationBeginsData(units)))

    def tell(self, now: float, *events: Event) -> Reply:
        """Send a notice and return the reply."""
        self.seq += 1
        reply = self.runtime.answer(Notice(self.seq, now, list(events)))  # type: ignore[arg-type]
        assert (reply.reply_to, reply.now) == (self.seq, now)
        return reply


def submitted(name: str, size: int = 1, walltime: float | None = 60.0, at: float = 0.0) -> Event:
    """Return a submission."""
    return JobSubmitted(at, JobSubmittedData(f"w0!{name}", JobDescription(f"w0!{name}", size, walltime)))


def completed(name: str, at: float) -> Event:
    """Return an end."""
    return JobCompleted(at, JobCompletedData(f"w0!{name}", "COMPLETED_SUCCESSFULLY", "0"))


def start_all(view: View) -> None:
    """Start every waiting job."""
    for job in view.waiting:
        view.start(job)


def seen_of(view: View) -> tuple[str, str, str, list[tuple[str, float, float]], bool]:
    """Return what a policy sees of the machine's state."""
    windows = [(window.id, window.begin, window.end) for window in view.windows]
    return str(view.free.snapshot()), str(view.gone), str(view.returning), windows, view.released


def test_a_policy_sees_failures_and_maintenance() -> None:
    """Units leave and come back; one that failed and is under maintenance is back when both are over."""
    seen: list[Any] = []
    talk = Talk(Puppet(*[lambda view: seen.append(seen_of(view))] * 7))
    talk.tell(0.0, MaintenanceAnnounced(0.0, MaintenanceAnnouncedData("m", 2.0, 8.0, "0-1", "0-1")))
    talk.tell(1.0, NodesFailed(1.0, NodesFailedData("1-2", "1-2", "fan")))
    talk.tell(2.0, MaintenanceBegins(2.0, MaintenanceBeginsData("m", "0-1", "0-1")))
    talk.tell(3.0, NodesRepaired(3.0, NodesRepairedData("2", "2")))
    talk.tell(4.0, NodesRepaired(4.0, NodesRepairedData("1", "1")))
    talk.tell(5.0, NoMoreJobs(5.0))
    talk.tell(8.0, MaintenanceEnds(8.0, MaintenanceEndsData("m", "0-1", "0-1")))

    window = [("m", 2.0, 8.0)]
    assert seen == [
        ("0-3", "", "", window, True),
        ("0 3", "1-2", "", window, True),
        ("3", "1-2", "0", window, True),
        ("2-3", "1", "0", window, True),
        ("2-3", "", "0-1", window, True),
        ("2-3", "", "0-1", window, False),
        ("0-3", "", "", [], True),
    ]


def test_maintenance_that_nobody_announced() -> None:
    """Its end is not known; what was announced and is called off leaves nothing behind."""
    seen: list[Any] = []
    talk = Talk(Puppet(*[lambda view: seen.append(seen_of(view))] * 4))
    talk.tell(1.0, MaintenanceBegins(1.0, MaintenanceBeginsData("x", "0", "0")))
    talk.tell(2.0, MaintenanceEnds(2.0, MaintenanceEndsData("x", "0", "0")))
    talk.tell(3.0, MaintenanceAnnounced(3.0, MaintenanceAnnouncedData("y", 9.0, 10.0, "0-1", "0-1")))
    talk.tell(4.0, MaintenanceEnds(4.0, MaintenanceEndsData("y", "0-1", "0-1")))

    assert [(free, windows) for free, _, _, windows, _ in seen] == [
        ("1-3", [("x", 1.0, inf)]),
        ("0-3", []),
        ("0-3", [("y", 9.0, 10.0)]),
        ("0-3", []),
    ]


@pytest.mark.parametrize("told", [True, False])
def test_a_job_that_comes_back_goes_to_its_old_place(told: bool) -> None:
    """It waits since its first submission, before what was submitted later, among arrivals, too."""
    seen: list[list[str]] = []

    def look(view: View) -> None:
        seen.append([job.id for job in view.waiting])
        seen.append([job.id for job in view.waiting.in_order(view.arrivals)])

    def again(name: str, at: float, first: float) -> Event:
        return JobSubmitted(at, JobSubmittedData(f"w0!{name}", JobDescription(f"w0!{name}", 1, 60.0, first, attempt=1)))

    talk = Talk(Puppet(start_all, look, look))
    talk.tell(1.0, submitted("1", at=1.0))
    failed = [NodesFailed(5.0, NodesFailedData("0", "0"))] if told else []
    again_1 = again("1#1", 5.0, 1.0)
    talk.tell(5.0, submitted("2", at=4.0), completed("1", 5.0), *failed, submitted("3", at=5.0), again_1)
    talk.tell(6.0, submitted("4", at=6.0), again("0#1", 6.0, 0.5))

    assert seen[:2] == [["w0!1#1", "w0!2", "w0!3"]] * 2
    assert seen[2:] == [["w0!0#1", "w0!1#1", "w0!2", "w0!3", "w0!4"], ["w0!0#1", "w0!4"]]


def test_fcfs_waits_for_units_alone_until_nodes_have_gone_down() -> None:
    """A job that lost its nodes may come back to the head of the queue at any time."""
    talk = Talk(compose(backfill="none"))
    assert talk.tell(1.0, submitted("1", 3), submitted("2", 3)).wake == ("JOB_COMPLETED",)
    assert talk.tell(2.0, NodesFailed(2.0, NodesFailedData("3", "3"))).wake == ("JOB_COMPLETED",), "no unit is free"
    assert talk.tell(3.0, NodesRepaired(3.0, NodesRepairedData("3", "3"))).wake is None


def test_easy_counts_on_no_unit_that_is_lost() -> None:
    """A job that goes on without a failed node does not give it back: who would delay the first does not pass."""
    talk = Talk(compose(backfill="easy"))
    talk.tell(0.0, submitted("wide", 2, 10.0), submitted("long", 1, 50.0))
    failed = NodesFailed(1.0, NodesFailedData("0", "0"))
    reply = talk.tell(1.0, failed, submitted("first", 3, 10.0), submitted("small", 1, 20.0))

    # At 10 only units 1 and 3 are free, so that the first cannot start before 50, and the small one does not delay it.
    started = ExecuteJobData("w0!small", "3", "backfilled before w0!first")
    assert list(reply.events) == [ExecuteJob(1.0, started)]
