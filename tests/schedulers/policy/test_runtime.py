"""Between protocol and policy: the policy's view, its actions, and exceptions and node failures."""

from collections.abc import Callable
from math import inf
from typing import Any

import pytest
from msgspec import convert

from pipistrelle.protocol.base.errors import PipistrelleError, RemoteProtocolError
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
    RegisterJob,
    RegisterJobData,
    RejectJob,
    RejectJobData,
    SetJobMetadata,
    SetJobMetadataData,
    Stop,
    StopData,
)
from pipistrelle.protocol.events import (
    DecisionRejected,
    DecisionRejectedData,
    Event,
    JobCompleted,
    JobCompletedData,
    JobDescription,
    JobKilled,
    JobKilledData,
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
    PlatformInfo,
    RequestedCall,
    RequestedCallData,
    SimulationBegins,
    SimulationBeginsData,
    SimulationEnds,
    SimulationEndsData,
)
from pipistrelle.protocol.messages import Notice, Reply, WelcomeData
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.catalogue.parts import compose
from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.schedulers.policy.errors import PolicyFailed
from pipistrelle.schedulers.policy.order import Order
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.policy.windows import Window
from pipistrelle.schedulers.runtime.runtime import Runtime, view_of

Act = Callable[[View], None]


class Puppet:
    """A policy that returns the given actions, one per notice, and then none."""

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


def test_hello_names_the_policy_and_its_features() -> None:
    """The wake filter, failures and others' starts are always requested; the policy's own features too."""

    class Plain:
        name = "plain"
        order: Order = Fcfs()

        def decide(self, view: View) -> None: ...

    assert Runtime(Puppet(), "1.2").hello().features == (
        "wake_filter",
        "failures",
        "resources",
        "takeover",
        "dynamic_jobs",
    )
    assert Runtime(Plain()).hello().features == ("wake_filter", "failures", "resources", "takeover")
    assert (Runtime(Puppet(), "1.2").hello().name, Runtime(Puppet(), "1.2").hello().version) == ("puppet", "1.2")


def test_the_first_and_the_last_notice_are_not_for_the_policy() -> None:
    """The policy is asked for each notice in between; the end is kept."""
    asked: list[float] = []
    talk = Talk(Puppet(*[lambda view: asked.append(view.now)] * 5))
    talk.tell(3.0, submitted("1", at=3.0))
    talk.tell(5.0, NoMoreJobs(5.0))
    before = talk.runtime.ended
    talk.tell(9.0, SimulationEnds(9.0, SimulationEndsData("stopped", "why")))

    assert asked == [3.0, 5.0]
    assert (before, talk.runtime.ended) == (None, SimulationEndsData("stopped", "why"))


def test_a_policy_sees_the_machine_as_the_events_tell_it() -> None:
    """Queue, running jobs, free units, arrivals and calls are kept up to date from notice to notice."""
    seen: list[tuple[object, ...]] = []

    def look(view: View) -> None:
        seen.append(
            (
                view.now,
                [job.id for job in view.waiting],
                [(job.id, job.expected_end) for job in view.running],
                str(view.free.snapshot()),
                [job.id for job in view.arrivals],
                view.released,
                list(view.calls),
            )
        )

    def look_and_start(view: View) -> None:
        look(view)
        first = view.waiting.first
        assert first is not None
        view.start(first)

    talk = Talk(Puppet(look_and_start, look, look, look))
    talk.tell(1.0, submitted("1", 2, at=0.5), submitted("2", 1, None, at=1.0))
    talk.tell(2.0, RequestedCall(2.0, RequestedCallData("x")), RequestedCall(2.0))
    talk.tell(3.0, completed("1", 3.0), submitted("3", at=3.0), JobKilled(3.0, JobKilledData(("w0!1",))))
    talk.tell(4.0, NoMoreJobs(4.0))

    assert seen == [
        (1.0, ["w0!1", "w0!2"], [], "0-3", ["w0!1", "w0!2"], True, []),
        (2.0, ["w0!2"], [("w0!1", 61.0)], "2-3", [], False, ["x", ""]),
        (3.0, ["w0!2", "w0!3"], [], "0-3", ["w0!3"], True, []),
        (4.0, ["w0!2", "w0!3"], [], "0-3", [], False, []),
    ]


def test_a_job_waits_since_its_own_submission_not_since_the_notice() -> None:
    """Events that were held back keep their time, and the queue its order."""
    times: list[tuple[str, float, int]] = []
    talk = Talk(Puppet(lambda view: times.extend((j.id, j.submit, j.number) for j in view.waiting)))
    talk.tell(9.0, submitted("b", at=2.0), submitted("a", at=2.0), submitted("c", at=7.5))

    assert times == [("w0!b", 2.0, 0), ("w0!a", 2.0, 1), ("w0!c", 7.5, 2)]


def test_every_action_is_a_decision_dated_now() -> None:
    """Each method of the view puts one decision into the reply, in order."""

    def act(view: View) -> None:
        one, two, three = view.waiting
        view.start(one, why="first")
        view.start(two, view.free.take_lowest(1))
        view.reject(three, "too late")
        view.kill(one, two, why="enough")
        view.call_me_later(70.0, "x")
        view.call_me_later(80.0)
        view.cancel_call("x")
        view.register("dyn!1", 2, 5.0)
        view.register("dyn!2", 2, 5.0, walltime=6.0)
        view.set_metadata(one, "text")
        view.stop("seen enough")

    expected: list[Decision] = [
        ExecuteJob(5.0, ExecuteJobData("w0!1", "0-1", "first")),
        ExecuteJob(5.0, ExecuteJobData("w0!2", "2")),
        RejectJob(5.0, RejectJobData("w0!3", "too late")),
        KillJob(5.0, KillJobData(("w0!1", "w0!2"), "enough")),
        CallMeLater(5.0, CallMeLaterData(70.0, "x")),
        CallMeLater(5.0, CallMeLaterData(80.0)),
        CancelCall(5.0, CancelCallData("x")),
        RegisterJob(5.0, RegisterJobData("dyn!1", JobDescription("dyn!1", 2), 5.0)),
        RegisterJob(5.0, RegisterJobData("dyn!2", JobDescription("dyn!2", 2, 6.0), 5.0)),
        SetJobMetadata(5.0, SetJobMetadataData("w0!1", "text")),
        Stop(5.0, StopData("seen enough")),
    ]
    talk = Talk(Puppet(act))
    reply = talk.tell(5.0, submitted("1", 2), submitted("2"), submitted("3"))
    nothing = talk.tell(6.0, NoMoreJobs(6.0))

    assert list(reply.events) == expected
    assert list(nothing.events) == [], "decisions are sent once"


def test_a_start_takes_effect_in_the_view_at_once() -> None:
    """Units leave the free ones, the job leaves the queue and runs, with its expected end."""

    def act(view: View) -> None:
        job = view.waiting.first
        assert job is not None
        waits = [job.waits]
        view.start(job)
        assert [*waits, job.waits] == [True, False]
        assert (job.start, job.expected_end, str(job.alloc)) == (5.0, 65.0, "0-2")
        assert (view.free.count, len(view.waiting), job.id in view.running) == (1, 0, True)

    Talk(Puppet(act)).tell(5.0, submitted("1", 3))


def test_a_start_without_enough_units_is_the_policys_mistake() -> None:
    """The view refuses it before anything is sent."""
    talk = Talk(Puppet(start_all))

    with pytest.raises(PolicyFailed, match=r"policy 'puppet' raised ValueError: cannot take 3 units from 1"):
        talk.tell(5.0, submitted("1", 3), submitted("2", 3))


def test_starting_a_job_twice_is_the_policys_mistake() -> None:
    """It does not wait any more."""

    def act(view: View) -> None:
        job = view.waiting.first
        assert job is not None
        view.start(job)
        view.start(job)

    with pytest.raises(PolicyFailed, match="raised KeyError: 'w0!1'"):
        Talk(Puppet(act)).tell(5.0, submitted("1"))


def test_a_policy_that_raises_is_named_with_time_and_place() -> None:
    """The user sees which policy, when, in which file and line; not a traceback."""

    def act(view: View) -> None:
        raise ZeroDivisionError("oops")

    with pytest.raises(PolicyFailed) as caught:
        Talk(Puppet(act)).tell(7.0, submitted("1"))
    assert caught.value.exit_code == 4
    assert caught.value.what == "policy 'puppet' raised ZeroDivisionError: oops"
    assert (caught.value.where or "").startswith("simulated time 7.0, ")
    assert "test_runtime.py:" in (caught.value.where or "")


def test_a_policys_own_user_error_passes_through() -> None:
    """An error of our own form needs no further text."""

    class MyError(PipistrelleError): ...

    def act(view: View) -> None:
        raise MyError("the model file is missing")

    with pytest.raises(MyError, match="the model file is missing"):
        Talk(Puppet(act)).tell(7.0, submitted("1"))


def test_a_rejected_decision_ends_the_policy() -> None:
    """The view would be wrong from then on: the error names the decision and the reason."""
    talk = Talk(Puppet())
    data = DecisionRejectedData("busy_unit", "units are taken: 1", reply_to=3, index=2, decision="EXECUTE_JOB")

    with pytest.raises(PolicyFailed, match=r"decision 2 \(EXECUTE_JOB\) of the reply to notice 3.*busy_unit.*taken: 1"):
        talk.tell(7.0, DecisionRejected(7.0, data))


def test_rejection_text_is_escaped_for_a_terminal() -> None:
    """Nothing in it moves a cursor or begins a line, and it is no longer than a message may be."""
    talk = Talk(Puppet())
    data = DecisionRejectedData("malformed", "\x1b[2J" + "x" * 100_000, reply_to=3, index=2, decision="\n\r\u202e")

    with pytest.raises(PolicyFailed) as caught:
        talk.tell(7.0, DecisionRejected(7.0, data))

    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 2000


def test_a_job_larger_than_the_machine_is_rejected_for_the_policy() -> None:
    """The policy never sees it; the reply states the reason."""
    seen: list[str] = []
    talk = Talk(Puppet(lambda view: seen.extend(job.id for job in [*view.waiting, *view.arrivals])))
    reply = talk.tell(5.0, submitted("1", 5), submitted("2", 4))

    assert list(reply.events) == [RejectJob(5.0, RejectJobData("w0!1", "needs 5 units, the machine has 4"))]
    assert seen == ["w0!2", "w0!2"]


@pytest.mark.parametrize("features", [(), ("wake_filter",)])
def test_a_filter_is_sent_only_if_agreed_on_and_for_one_reply(features: tuple[str, ...]) -> None:
    """A policy's entries in ``wake`` count once."""

    def act(view: View) -> None:
        assert view.wake is None
        view.wake = ("JOB_COMPLETED",)

    talk = Talk(Puppet(act), features=features)

    assert talk.tell(5.0, submitted("1")).wake == (("JOB_COMPLETED",) if features else None)
    assert talk.tell(6.0, submitted("2")).wake is None


def test_a_killed_job_leaves_the_view_with_its_completion() -> None:
    """Its units stay busy until the server reports them free."""

    def kill(view: View) -> None:
        view.kill(*view.running)
        assert (view.free.count, len(view.running)) == (2, 1)

    free: list[int] = []
    talk = Talk(Puppet(start_all, kill, lambda view: free.append(view.free.count)))
    talk.tell(0.0, submitted("1", 2))
    talk.tell(5.0, NoMoreJobs(5.0))
    talk.tell(5.0, completed("1", 5.0), JobKilled(5.0, JobKilledData(("w0!1",))))

    assert free == [4]


def test_registered_jobs_are_requeued_like_any_other(run_policy: Any) -> None:
    """In a whole run: a policy that registers a job for each of the workload's sees and starts them all."""

    class Doubler(Puppet):
        def decide(self, view: View) -> None:
            for job in view.arrivals:
                if job.id.startswith("w0"):
                    view.register(f"dyn!{job.number}", job.size, 2.0, walltime=3.0)
            for job in view.waiting:
                if job.size <= view.free.count:
                    view.start(job)

    rows = [(float(number), 1 + number % 3, 4.0, 5.0) for number in range(10)]
    summary = run_policy(Doubler(), 8, rows).result.summary

    assert (summary.jobs, summary.completed, summary.unfinished) == (20, 20, 0)


def test_a_job_without_walltime_is_expected_to_run_for_ever() -> None:
    """The policy sees inf, and sends none when it registers one."""
    seen: list[float] = []

    def act(view: View) -> None:
        start_all(view)
        seen.extend(job.expected_end for job in view.running)

    Talk(Puppet(act)).tell(5.0, submitted("1", walltime=None))

    assert seen == [inf]


def test_view_has_the_machines_size_and_the_servers_data() -> None:
    """The first notice's data is kept for policies that use pools."""
    view = view_of(SimulationBeginsData(7), Fcfs())

    assert (view.units, view.free.snapshot(), view.begins.nb_resources) == (7, NodeSet.interval(0, 6), 7)


# -- nodes that fail, are repaired and are maintained -----------------------------------------------------------------


def seen_of(view: View) -> tuple[str, str, str, list[tuple[str, float, float]], bool]:
    """Return a policy's view of the machine's state."""
    windows = [(window.id, window.begin, window.end) for window in view.windows]
    return str(view.free.snapshot()), str(view.gone), str(view.returning), windows, view.released


def test_a_policy_sees_failures_and_maintenance() -> None:
    """Units leave and return; one that failed and is under maintenance is back when both are over."""
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


def test_unannounced_maintenance() -> None:
    """Its end is not known; a withdrawn announcement leaves nothing behind."""
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


@pytest.mark.parametrize(("begin", "units"), [(1.0, "0-1"), (2.0, "0-2")])
def test_maintenance_begins_as_it_was_announced(begin: float, units: str) -> None:
    """Not before its time, and on no other units: plans rely on the announcement."""
    talk = Talk(Puppet(*[lambda view: None] * 2))
    talk.tell(0.0, MaintenanceAnnounced(0.0, MaintenanceAnnouncedData("m", 2.0, 8.0, "0-1", "0-1")))

    with pytest.raises(RemoteProtocolError, match=r"'m' was announced for units 0-1 from 2\.0 s on"):
        talk.tell(begin, MaintenanceBegins(begin, MaintenanceBeginsData("m", units, units)))


@pytest.mark.parametrize("ended", ["", "0"])
def test_maintenance_that_has_begun_is_not_announced(ended: str) -> None:
    """A future window would promise its units until then; a past one may be announced again."""
    talk = Talk(Puppet(*[lambda view: None] * 4))
    talk.tell(1.0, MaintenanceBegins(1.0, MaintenanceBeginsData("m", "0-1", "0-1")))
    if ended:
        talk.tell(2.0, MaintenanceEnds(2.0, MaintenanceEndsData("m", ended, ended)))

    with pytest.raises(RemoteProtocolError, match=r"maintenance 'm' has begun already, and is announced"):
        talk.tell(3.0, MaintenanceAnnounced(3.0, MaintenanceAnnouncedData("m", 9.0, 10.0, "0-3", "0-3")))

    talk.tell(4.0, MaintenanceEnds(4.0, MaintenanceEndsData("m", "0-1", "0-1")))
    talk.tell(5.0, MaintenanceAnnounced(5.0, MaintenanceAnnouncedData("m", 9.0, 10.0, "0-3", "0-3")))


@pytest.mark.parametrize(
    "event",
    [
        MaintenanceAnnounced(2.0, MaintenanceAnnouncedData("mine", 9.0, 10.0, "0", "0")),
        MaintenanceBegins(2.0, MaintenanceBeginsData("mine", "0", "0")),
        MaintenanceEnds(2.0, MaintenanceEndsData("mine", "0", "0")),
    ],
)
def test_maintenance_by_the_name_of_a_policys_own_window(event: Event) -> None:
    """It must neither take that one's place nor end it."""

    def add(view: View) -> None:
        view.windows.add(Window("mine", 0.0, inf, NodeSet.parse("1"), lambda job: False))

    talk = Talk(Puppet(add, add))
    talk.tell(1.0, submitted("1"))
    with pytest.raises(RemoteProtocolError, match=r"a maintenance cannot be named 'mine': a window of the"):
        talk.tell(2.0, event)


@pytest.mark.parametrize("told", [True, False])
def test_requeued_job_returns_to_its_old_place(told: bool) -> None:
    """It counts as waiting since its first submission, before later jobs, among arrivals, too."""
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
    """A job that lost its nodes may return to the head of the queue at any time."""
    talk = Talk(compose(backfill="none"))
    assert talk.tell(1.0, submitted("1", 3), submitted("2", 3)).wake == ("JOB_COMPLETED",)
    assert talk.tell(2.0, NodesFailed(2.0, NodesFailedData("3", "3"))).wake == ("JOB_COMPLETED",), "no unit is free"
    assert talk.tell(3.0, NodesRepaired(3.0, NodesRepairedData("3", "3"))).wake is None


def test_easy_counts_on_no_unit_that_is_lost() -> None:
    """A job that continues without a failed node does not free it: no job passes that would delay the first."""
    talk = Talk(compose(backfill="easy"))
    talk.tell(0.0, submitted("wide", 2, 10.0), submitted("long", 1, 50.0))
    failed = NodesFailed(1.0, NodesFailedData("0", "0"))
    reply = talk.tell(1.0, failed, submitted("first", 3, 10.0), submitted("small", 1, 20.0))

    # At 10 only units 1 and 3 are free, so that the first cannot start before 50, and the small one does not delay it.
    started = ExecuteJobData("w0!small", "3", "backfilled before w0!first")
    assert list(reply.events) == [ExecuteJob(1.0, started)]


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (completed("7", 5.0), "JOB_COMPLETED names a job that does not run"),
        (NodesFailed(5.0, NodesFailedData("0-3", "0-4")), "'units' names 4, but the machine has 4 units"),
        (NodesFailed(5.0, NodesFailedData("0", "3 3")), "overlaps another"),
        (NodesRepaired(5.0, NodesRepairedData("0", "nonsense")), "nonsense"),
        (MaintenanceEnds(5.0, MaintenanceEndsData("m", "0", "9")), "'units' names 9"),
        (submitted("1", at=5.0), "'w0!1' waits or runs already"),
        (
            JobSubmitted(5.0, JobSubmittedData("w0!2", JobDescription("w0!3", 1))),
            "'job_id' and 'id' differ: 'w0!2', 'w0!3'",
        ),
        (JobCompleted(5.0, JobCompletedData("x" * 9999, "COMPLETED_FAILED")), "'xxx"),
    ],
)
def test_events_that_make_no_sense_are_the_servers_fault(event: Event, says: str) -> None:
    """The error has exit code 4, and names the notice and the event."""
    talk = Talk(Puppet())
    with pytest.raises(RemoteProtocolError) as caught:
        talk.tell(5.0, submitted("1", at=5.0), event)
    assert caught.value.exit_code == 4
    assert f"notice 2, $.events[1] ({event.__struct_config__.tag})" in str(caught.value)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("platform", "says"),
    [
        ({"pools": [{"name": "a", "nodes": "0-1", "units": "0-2"}]}, "a pool's nodes and units do not match"),
        ({"pools": [{"name": "a", "nodes": "0-1", "units": "0-1"}]}, "the pools' units are not those of the machine"),
        (
            {"pools": [{"name": "a", "nodes": "0-3", "units": "0-3"}], "topology": {"kind": "torus", "shape": [3]}},
            "a topology does not match the nodes",
        ),
    ],
)
def test_a_machine_that_does_not_go_together_is_the_servers_fault(platform: dict[str, Any], says: str) -> None:
    """The error occurs at the notice, not when a placement asks."""
    told = convert({"name": "m", **platform}, PlatformInfo)
    with pytest.raises(RemoteProtocolError, match=says):
        Runtime(Puppet()).answer(Notice(1, 0.0, [SimulationBegins(0.0, SimulationBeginsData(4, told))]))
