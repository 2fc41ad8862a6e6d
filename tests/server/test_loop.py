"""The run itself: server and scheduler in turn, and every way in which it can end."""

from collections.abc import Callable
from typing import Any

import pytest

from pipistrelle.platforms.description import homogeneous
from pipistrelle.protocol.base.errors import LocalProtocolError, RemoteProtocolError
from pipistrelle.protocol.events import SimulationBeginsData
from pipistrelle.protocol.messages import HelloData, Notice, Reply, WelcomeData
from pipistrelle.schedulers.policy.errors import PolicyFailed
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.errors import Interrupted, OutputFailed, RunError, SchedulerFailed
from pipistrelle.server.simulation.assembly import native_engine
from pipistrelle.server.simulation.loop import LoopTimes, run
from pipistrelle.server.transport.in_process import InProcessTransport

Answer = Callable[[Notice], Reply]


class Line:
    """A transport to a function; it keeps what went over it, in order, and takes 10 s of its own clock to reply."""

    apart = True

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.clock = 0.0
        self.log: list[str] = []
        self.last: Notice | None = None
        self._notice: Notice | None = None

    def greet(self, run_id: str, server: str) -> tuple[HelloData, WelcomeData]:
        """Not used here."""
        raise NotImplementedError

    def send(self, notice: Notice) -> None:
        """Keep the notice."""
        self.log.append(f"send {notice.seq}")
        self._notice = notice

    def receive(self) -> Reply:
        """Ask the function."""
        assert self._notice is not None
        self.log.append(f"receive {self._notice.seq}")
        self.clock += 10.0
        return self.answer(self._notice)

    def farewell(self, notice: Notice) -> None:
        """Keep the last notice."""
        assert self.last is None, "there is one farewell"
        self.log.append(f"farewell {notice.seq}")
        self.last = notice

    def close(self) -> None:
        """Do nothing."""


def patient(notice: Notice) -> Reply:
    """Answer with nothing."""
    return Reply(notice.seq, notice.now)


def failing(error: BaseException, at: int = 2) -> Answer:
    """Return an answer that fails at the notice of this number."""

    def answer(notice: Notice) -> Reply:
        if notice.seq == at:
            raise error
        return patient(notice)

    return answer


def driven(make_job: Any, answer: Answer, *observers: Observer, strict: bool = False) -> tuple[Line, LoopTimes, Any]:
    """Run one job's simulation against a function; return transport, times and results."""
    begins, machine = SimulationBeginsData(2), homogeneous(2, "m")
    engine = native_engine(begins, machine, iter([make_job()]), strict=strict, observers=observers)
    line, times = Line(answer), LoopTimes()

    def meanwhile() -> None:
        line.log.append("meanwhile")
        line.clock += 1000.0

    try:
        run(engine, line, lambda: line.clock, times, meanwhile)
    except RunError as error:
        return line, times, error
    return line, times, None


def test_notice_meanwhile_reply_until_the_farewell(make_job: Any, play: Any, event_line: Any) -> None:
    """The turns alternate; deferrable work is done while the scheduler thinks; the last notice is sent once."""
    game = play(2)

    def answer(notice: Notice) -> Reply:
        decisions = [game.execute("1", "0", at=0)] if notice.seq == 2 else []
        return Reply(notice.seq, notice.now, decisions)

    line, times, failure = driven(make_job, answer)

    assert failure is None
    assert line.log == [
        *("send 1", "meanwhile", "receive 1"),
        *("send 2", "meanwhile", "receive 2"),
        *("send 3", "meanwhile", "receive 3"),
        "farewell 4",
    ]
    assert line.last is not None
    assert [event_line(event) for event in line.last.events] == ["10 ends completed"]
    assert times.round_trips == 3
    assert times.scheduler == 3 * 10.0, "waiting, without what is done meanwhile"
    assert times.total == 3 * 1010.0


@pytest.mark.parametrize(
    ("error", "kind", "reason", "says"),
    [
        (SchedulerFailed("it died", reason="scheduler_killed"), SchedulerFailed, "scheduler_killed", "it died."),
        (PolicyFailed("it raised"), SchedulerFailed, "scheduler_error", "it raised."),
        (RemoteProtocolError("it babbled"), SchedulerFailed, "protocol_error", "it babbled."),
        (KeyboardInterrupt(), Interrupted, "interrupted", "simulated time 0.0: interrupted."),
    ],
)
def test_failure_is_reported_to_both_sides_and_raised(
    make_job: Any, diary: Any, error: BaseException, kind: type[RunError], reason: str, says: str
) -> None:
    """The scheduler gets SIMULATION_ENDS with reason and text, the observers their end, the caller the error."""
    line, times, failure = driven(make_job, failing(error), diary)

    assert type(failure) is kind
    assert str(failure) == says
    assert failure.reason == reason
    assert line.last is not None
    ends: Any = line.last.events[-1]
    assert (ends.data.reason, ends.data.message) == (reason, says)
    assert diary.lines[-1] == f"0 ends {reason}"
    assert [text for text in diary.lines if " ends " in text] == [f"0 ends {reason}"]
    assert times.round_trips == 1
    assert times.total > 0


def test_a_stall_ends_like_any_failure(make_job: Any, diary: Any) -> None:
    """Jobs that are never started: exit code 5, reason 'stalled', reported to both sides."""
    line, _, failure = driven(make_job, patient, diary)

    assert (failure.exit_code, failure.reason) == (5, "stalled")
    assert diary.lines[-1] == "0 ends stalled"
    assert line.last is not None


def test_an_illegal_decision_ends_a_strict_run(make_job: Any, play: Any, diary: Any) -> None:
    """Exit code 3, reason 'strict'; the observers have the earlier effects of the reply."""
    game = play(2)

    def answer(notice: Notice) -> Reply:
        decisions = [game.execute("1", "0", at=0), game.execute("1", "1", at=0)] if notice.seq == 2 else []
        return Reply(notice.seq, notice.now, decisions)

    _, _, failure = driven(make_job, answer, diary, strict=True)

    assert (failure.exit_code, failure.reason) == (3, "strict")
    assert [text for text in diary.lines if "settled" in text][-1] == "0 settled 1"
    assert diary.lines[-1] == "0 ends strict"


class Full(Observer):
    """An output that fails at a hook."""

    def __init__(self, *hooks: str) -> None:
        self._hooks = hooks

    def _write(self, hook: str) -> None:
        if hook in self._hooks:
            raise OutputFailed("the disk is full", where=hook)

    def begins(self, now: float, units: int) -> None:
        """Fail on request."""
        self._write("begins")

    def submitted(self, now: float, job: Job) -> None:
        """Fail on request."""
        self._write("submitted")

    def ends(self, now: float, reason: str, message: str) -> None:
        """Fail on request."""
        self._write("ends")


@pytest.mark.parametrize("hook", ["begins", "submitted"])
def test_an_output_that_fails_ends_the_run(make_job: Any, diary: Any, hook: str) -> None:
    """Exit code 6; the scheduler is informed, the other observers too."""
    line, _, failure = driven(make_job, patient, diary, Full(hook))

    assert (type(failure), failure.exit_code, failure.where) == (OutputFailed, 6, hook)
    assert line.last is not None
    assert diary.lines[-1] == "0 ends error"


def test_an_output_that_fails_at_the_end_is_a_failure_of_its_own(make_job: Any, play: Any) -> None:
    """A run that was complete until its files were closed has failed."""
    game = play(2)
    _, _, failure = driven(
        make_job, lambda n: Reply(n.seq, n.now, [game.reject("1", at=0)] if n.seq == 2 else []), Full("ends")
    )

    assert type(failure) is OutputFailed


def test_an_output_that_fails_at_the_end_does_not_hide_what_ended_the_run(make_job: Any) -> None:
    """The first cause is the one to report."""
    _, _, failure = driven(make_job, failing(SchedulerFailed("it died")), Full("ends"))

    assert str(failure) == "it died."


class Clerk:
    """A scheduler for the in-process transport."""

    def __init__(self, hello: HelloData) -> None:
        self._hello = hello
        self.told: list[Any] = []

    def hello(self) -> HelloData:
        """Return its own argument."""
        return self._hello

    def welcome(self, data: WelcomeData) -> None:
        """Keep it."""
        self.told.append(data)

    def answer(self, notice: Notice) -> Reply:
        """Keep the notice."""
        self.told.append(notice)
        return patient(notice)


def test_the_in_process_transport_agrees_on_what_both_sides_know() -> None:
    """Unknown features are left out; both sides get the same WELCOME."""
    clerk = Clerk(HelloData("clerk", "1.0", features=("telepathy", "wake_filter")))
    hello, welcome = InProcessTransport(clerk).greet("run", "server 1")

    assert hello.name == "clerk"
    assert welcome == WelcomeData(
        protocol=1,
        features=("wake_filter",),
        run_id="run",
        server="server 1",
        max_decisions=1_000_000,
        max_rejections=10_000,
        max_texts=5_000_000,
    )
    assert clerk.told == [welcome]


def test_the_in_process_transport_refuses_another_protocol() -> None:
    """Without a common version there is no run."""
    clerk = Clerk(HelloData("clerk", protocol_min=7, protocol_max=9))

    with pytest.raises(SchedulerFailed, match="no common protocol version"):
        InProcessTransport(clerk).greet("run", "server")
    assert clerk.told == []


def test_the_in_process_transport_asks_once_for_each_notice() -> None:
    """The scheduler is asked when the reply is wanted; a reply without a notice is the caller's mistake."""
    clerk = Clerk(HelloData("clerk"))
    transport = InProcessTransport(clerk)
    notice, last = Notice(1, 0.0, []), Notice(2, 5.0, [])
    transport.send(notice)
    before = list(clerk.told)
    reply = transport.receive()
    with pytest.raises(LocalProtocolError, match="no notice was sent"):
        transport.receive()
    transport.farewell(last)
    transport.close()

    assert before == []
    assert reply == Reply(1, 0.0)
    assert clerk.told == [notice, last]
