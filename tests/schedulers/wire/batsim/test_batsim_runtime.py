"""The runtime's handling of Batsim's events and of features its dialect lacks; test_runtime.py has the shared part."""

from collections.abc import Callable
from math import inf
from typing import Any

import pytest

from pipistrelle.protocol.base.errors import RemoteProtocolError
from pipistrelle.protocol.batsim import codec as batsim_codec
from pipistrelle.protocol.batsim.messages import (
    Answer,
    AnswerServer,
    BatsimBeginsData,
    Notify,
    NotifyServer,
    Query,
    ResourceStateChanged,
    ResourceStateChangedData,
)
from pipistrelle.protocol.decisions import CallMeLater, Decision, ExecuteJob, RegisterJob, RejectJob
from pipistrelle.protocol.events import (
    Event,
    JobCompleted,
    JobCompletedData,
    JobDescription,
    JobSubmitted,
    JobSubmittedData,
    NoMoreJobs,
    RequestedCall,
    SimulationBegins,
    SimulationEnds,
)
from pipistrelle.protocol.fields import LONGEST
from pipistrelle.protocol.messages import Notice, Reply
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.catalogue.parts import compose
from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.schedulers.policy.errors import PolicyFailed
from pipistrelle.schedulers.policy.order import Order
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.wire.batsim.runtime import BatsimRuntime, estimated_wait

Act = Callable[[View], None]
FINISHED = {"type": "registration_finished"}


class Puppet:
    """A policy that returns the given actions, one per notice, and then none; it keeps the view."""

    name = "puppet"
    features: tuple[str, ...] = ()

    def __init__(self, *acts: Act) -> None:
        self.order: Order = Fcfs()
        self.acts = list(acts)
        self.calls: list[list[str]] = []
        self.view: View | None = None

    def decide(self, view: View) -> None:
        """Do the next thing."""
        self.view = view
        self.calls.append(view.calls)
        if self.acts:
            self.acts.pop(0)(view)


class Registrar(Puppet):
    """A puppet that wants to register jobs."""

    features = ("dynamic_jobs",)


class Talk:
    """A runtime and Batsim's part in its conversation; every reply must be one that can be written."""

    def __init__(self, policy: Any, *, units: int = 4, **config: object) -> None:
        self.runtime = BatsimRuntime(policy, "1.2")
        self.seq = 0
        settings = {name.replace("_", "-"): value for name, value in config.items()}
        self.first = self.tell(0.0, SimulationBegins(0.0, BatsimBeginsData(nb_resources=units, config=settings)))

    def tell(self, now: float, *events: Event) -> list[Decision]:
        """Send a notice and return the decisions."""
        self.seq += 1
        notice = Notice(self.seq, now, list(events))  # type: ignore[arg-type]
        reply = self.runtime.answer(notice)
        assert (reply.reply_to, reply.now, reply.wake) == (self.seq, now, None)
        batsim_codec.encode_reply(Reply(reply.reply_to, reply.now, reply.events))
        return list(reply.events)


def submitted(name: str, size: int = 1, walltime: float | None = 60.0, at: float = 0.0) -> Event:
    """Return a submission."""
    return JobSubmitted(at, JobSubmittedData(f"w0!{name}", JobDescription(f"w0!{name}", size, walltime, at)))


def completed(name: str, at: float) -> Event:
    """Return an end."""
    return JobCompleted(at, JobCompletedData(f"w0!{name}", "COMPLETED_SUCCESSFULLY", "0"))


def machines(kind: str, units: object, at: float) -> Event:
    """Return news of machines."""
    return Notify(at, {"type": f"event_machine_{kind}", "resources": units, "timestamp": at})


def started(decisions: list[Decision]) -> list[tuple[str, str]]:
    """Return (job, units) of the started jobs."""
    return [(d.data.job_id, d.data.alloc) for d in decisions if isinstance(d, ExecuteJob)]


def easy() -> Any:
    """Return EASY backfilling."""
    return compose(backfill="easy")


# -- machines ---------------------------------------------------------------------------------------------------------


def test_unavailable_machines_are_not_used() -> None:
    """Machines that leave are not free; returned ones are."""
    talk = Talk(easy())
    talk.tell(1.0, machines("unavailable", "0 2", 1.0))

    assert started(talk.tell(2.0, submitted("1", 2), submitted("2", 1))) == [("w0!1", "1 3")]
    assert started(talk.tell(3.0, machines("available", "0", 3.0))) == [("w0!2", "0")]


def test_a_machine_that_leaves_under_a_job_is_not_free_after_it() -> None:
    """The job continues; its unit stays away until it is available again."""
    talk = Talk(easy())
    talk.tell(1.0, submitted("1", 4))
    talk.tell(2.0, machines("unavailable", "1-2", 2.0))

    assert started(talk.tell(5.0, completed("1", 5.0), submitted("2", 3, at=5.0))) == []
    assert started(talk.tell(6.0, machines("available", "2", 6.0))) == [("w0!2", "0 2-3")]


def test_a_machine_that_comes_back_under_a_job_is_free_after_it() -> None:
    """Not before: the job still holds it."""
    talk = Talk(easy(), units=1)
    talk.tell(1.0, submitted("1"))
    talk.tell(2.0, machines("unavailable", "0", 2.0))

    assert started(talk.tell(3.0, machines("available", "0", 3.0), submitted("2", at=3.0))) == []
    assert started(talk.tell(4.0, completed("1", 4.0))) == [("w0!2", "0")]


def test_news_of_machines_may_repeat_and_name_others() -> None:
    """Duplicates, machines that never left, and hosts that do not compute have no effect."""
    talk = Talk(easy())
    for _ in range(2):
        talk.tell(1.0, machines("unavailable", "0-1", 1.0), machines("unavailable", "7-9", 1.0))
    for _ in range(2):
        talk.tell(2.0, machines("available", "0-9", 2.0))

    assert started(talk.tell(3.0, submitted("1", 4))) == [("w0!1", "0-3")]


def test_reservation_is_replanned_when_machines_leave() -> None:
    """EASY's reservation counted units that have left."""
    talk = Talk(easy(), units=8)
    # 1 holds four units until 61; 2 wants six and would leave two over at 61; the four free ones wait for that.
    assert started(talk.tell(1.0, submitted("1", 4), submitted("2", 6))) == [("w0!1", "0-3")]
    talk.tell(2.0, machines("unavailable", "4-5", 2.0))

    assert started(talk.tell(3.0, submitted("3", 1, walltime=100.0, at=3.0))) == []


@pytest.mark.parametrize("units", [None, 3, "x", "5-1", "1,2"])
def test_units_that_cannot_be_read_break_the_protocol(units: object) -> None:
    """The news is not acted upon by half."""
    talk = Talk(easy())
    with pytest.raises(RemoteProtocolError, match="event_machine_unavailable"):
        talk.tell(1.0, machines("unavailable", units, 1.0))


def test_other_news_concerns_no_policy() -> None:
    """Unknown notifications, changed states and answers are all ignored."""
    talk = Talk(easy())
    talk.tell(
        1.0,
        Notify(1.0, {"type": "unheard_of"}),
        Notify(1.0, {"type": ["no", "text"]}),
        Notify(1.0, {}),
        ResourceStateChanged(1.0, ResourceStateChangedData("0", "13")),
        Answer(1.0, {"consumed_energy": 3.0}),
    )

    assert started(talk.tell(2.0, submitted("1", 4))) == [("w0!1", "0-3")]


def test_a_job_larger_than_the_machine_is_rejected() -> None:
    """Batsim submits it all the same."""
    (rejection,) = Talk(easy()).tell(1.0, submitted("1", 5))

    assert isinstance(rejection, RejectJob)


def test_events_of_an_instant_come_in_any_order() -> None:
    """A completion may stand before or behind a submission: the same job starts."""
    for events in ([completed("1", 9.0), submitted("2", 4, at=9.0)], [submitted("2", 4, at=9.0), completed("1", 9.0)]):
        talk = Talk(easy())
        talk.tell(1.0, submitted("1", 4))
        assert started(talk.tell(9.0, *events)) == [("w0!2", "0-3")]


# -- waiting times ----------------------------------------------------------------------------------------------------


def asked(size: object) -> Event:
    """Return a question for a waiting time."""
    return Query(9.0, {"requests": {"estimate_waiting_time": {"job_id": "x!1", "job": {"res": size, "walltime": 9}}}})


def test_a_waiting_time_is_estimated_from_what_runs_and_waits() -> None:
    """One runs until 61, one waits for it until 121, the asked one is behind both."""
    talk = Talk(compose())
    talk.tell(1.0, submitted("1", 3), submitted("2", 2))

    (answer,) = talk.tell(9.0, asked(3))
    assert isinstance(answer, AnswerServer)
    assert answer.data == {"estimate_waiting_time": {"job_id": "x!1", "estimated_waiting_time": 112.0}}


def test_a_waiting_time_without_end_is_the_longest_duration() -> None:
    """JSON has no infinity; a client that looks for the shortest wait is served all the same."""
    talk = Talk(compose())
    talk.tell(1.0, submitted("1", 3, walltime=None))

    (answer,) = talk.tell(9.0, asked(2))
    assert isinstance(answer, AnswerServer)
    assert answer.data["estimate_waiting_time"]["estimated_waiting_time"] == LONGEST
    assert talk.runtime._view is not None
    assert estimated_wait(talk.runtime._view, 1) == 0.0
    assert estimated_wait(talk.runtime._view, 5) == inf


@pytest.mark.parametrize("about", [None, {}, {"job_id": "x"}, {"job_id": "x", "job": {"res": "many"}}])
def test_a_question_that_cannot_be_read_breaks_the_protocol(about: object) -> None:
    """The text describes the form of a question."""
    with pytest.raises(RemoteProtocolError, match="waiting time"):
        Talk(easy()).tell(9.0, Query(9.0, {"requests": {"estimate_waiting_time": about}}))


@pytest.mark.parametrize("data", [{}, {"requests": 3}, {"requests": {"weather": {}}}])
def test_other_questions_are_not_answered(data: dict[str, Any]) -> None:
    """No policy here could handle it."""
    assert Talk(easy()).tell(9.0, Query(9.0, data)) == []


# -- calls ------------------------------------------------------------------------------------------------------------


def test_calls_get_their_names_back() -> None:
    """By the time they are due, and of those at one time by the order in which they were asked for."""

    def ask(view: View) -> None:
        for time, name in ((30.0, "c"), (20.0, "a"), (20.0, "b"), (40.0, "")):
            view.call_me_later(time, name)

    policy = Puppet(ask)
    talk = Talk(policy)
    assert len(talk.tell(10.0, submitted("1"))) == 4
    talk.tell(20.0, RequestedCall(20.0), RequestedCall(20.0))
    talk.tell(30.0, RequestedCall(30.0))
    talk.tell(40.0, RequestedCall(40.0))
    talk.tell(50.0, RequestedCall(50.0))

    assert policy.calls == [[], ["a", "b"], ["c"], [""], [""]]


def test_cancelled_call_does_not_happen() -> None:
    """Batsim calls all the same; it gets no CANCEL_CALL, which it does not support."""
    policy = Puppet(lambda view: view.call_me_later(20.0, "a"), lambda view: view.cancel_call("a"))
    talk = Talk(policy)
    assert [type(decision) for decision in talk.tell(10.0)] == [CallMeLater]
    assert talk.tell(11.0) == []
    talk.tell(20.0, RequestedCall(20.0))

    assert policy.calls[-1] == []


def test_wrong_calls_fail_the_policy_as_in_the_native_dialect() -> None:
    """A second one of a name, and one that is cancelled but not pending."""

    def twice(view: View) -> None:
        view.call_me_later(20.0, "a")
        view.call_me_later(30.0, "a")

    with pytest.raises(PolicyFailed, match="pending"):
        Talk(Puppet(twice)).tell(1.0)
    with pytest.raises(PolicyFailed, match="not pending"):
        Talk(Puppet(lambda view: view.cancel_call("a"))).tell(1.0)


# -- dynamic jobs -----------------------------------------------------------------------------------------------------


def test_batsim_with_dynamic_jobs_learns_at_once_that_none_follow() -> None:
    """Else it would wait for them forever; without the option nothing is sent."""
    (told,) = Talk(easy(), dynamic_jobs_enabled=True).first

    assert isinstance(told, NotifyServer)
    assert told.data == FINISHED
    assert Talk(easy()).first == []
    assert Talk(Registrar(), dynamic_jobs_enabled=True).first == []


def register(view: View) -> None:
    """Register a job of two units."""
    view.register("dyn!1", 2, 10.0, 20.0)


def start_all(view: View) -> None:
    """Start every waiting job."""
    for job in view.waiting:
        view.start(job)


def test_a_job_that_is_not_acknowledged_waits_at_once() -> None:
    """Nothing would come of it otherwise: the policy is asked again in the same notice."""
    policy = Registrar(register, start_all)
    talk = Talk(policy, dynamic_jobs_enabled=True)

    registered, start = talk.tell(1.0)
    assert isinstance(registered, RegisterJob)
    assert started([start]) == [("dyn!1", "0-1")]


def test_a_job_that_is_acknowledged_waits_when_it_is_submitted() -> None:
    """As in the native dialect."""
    policy = Registrar(register, start_all)
    talk = Talk(policy, dynamic_jobs_enabled=True, dynamic_jobs_acknowledged=True)

    assert [type(decision) for decision in talk.tell(1.0)] == [RegisterJob]
    job = JobDescription("dyn!1", 2, 20.0)
    assert started(talk.tell(1.0, JobSubmitted(1.0, JobSubmittedData("dyn!1", job)))) == [("dyn!1", "0-1")]


def test_registration_finishes_when_nothing_follows() -> None:
    """No static job, no queued or running job, no call: it is sent once."""
    policy = Registrar(start_all, lambda view: view.call_me_later(30.0), start_all, register, start_all)
    talk = Talk(policy, dynamic_jobs_enabled=True)
    talk.tell(1.0, submitted("1"))
    assert len(talk.tell(1.0, NoMoreJobs(1.0))) == 1
    assert talk.tell(9.0, completed("1", 9.0)) == []
    assert [type(decision) for decision in talk.tell(30.0, RequestedCall(30.0))] == [RegisterJob, ExecuteJob]

    done = JobCompleted(40.0, JobCompletedData("dyn!1", "COMPLETED_SUCCESSFULLY", "0-1"))
    (told,) = talk.tell(40.0, done)
    assert isinstance(told, NotifyServer)
    assert told.data == FINISHED
    assert talk.tell(41.0) == []
    assert talk.tell(41.0, SimulationEnds(41.0)) == []


def test_registering_without_the_option_fails_the_policy() -> None:
    """Before Batsim would end over it."""
    with pytest.raises(PolicyFailed, match="--enable-dynamic-jobs"):
        Talk(Registrar(register)).tell(1.0)


def test_view_returns_withdrawn_units() -> None:
    """Withdrawing and restoring leave the free units as they were."""
    policy = Puppet()
    Talk(policy).tell(1.0)
    view = policy.view
    assert view is not None
    view.withdraw(NodeSet.parse("1 3"))
    assert str(view.free.snapshot()) == "0 2"
    view.put_back(NodeSet.parse("0-3"))

    assert (str(view.free.snapshot()), view.unavailable) == ("0-3", NodeSet.EMPTY)
