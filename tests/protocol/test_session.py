"""The session: every message in every state at both ends, both ends connected, and what they negotiate."""

import math
from collections.abc import Callable
from itertools import product
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from pipistrelle.protocol import codec, session
from pipistrelle.protocol.base.errors import LocalProtocolError, RemoteProtocolError
from pipistrelle.protocol.decisions import Stop, StopData
from pipistrelle.protocol.events import NoMoreJobs, RequestedCall, RequestedCallData, SimulationEnds
from pipistrelle.protocol.fields import FEATURES, PROTOCOL_OLDEST, PROTOCOL_VERSION
from pipistrelle.protocol.messages import (
    Hello,
    HelloData,
    Notice,
    Refused,
    RefusedData,
    Reply,
    Restore,
    RestoreData,
    Save,
    Saved,
    SaveData,
    SavedData,
    Welcome,
    WelcomeData,
)
from pipistrelle.protocol.session import TRANSITIONS, Kind, SchedulerSession, ServerSession, State, negotiate

HELLO = HelloData("test", features=("wake_filter",))
WELCOME = Welcome(WelcomeData(PROTOCOL_VERSION, ("wake_filter",), "run", "server"))
REFUSED = Refused(RefusedData("protocol_error", "no"))
STATE = Raw(b'{"any": [1, "json"]}')
KINDS: tuple[Kind, ...] = get_args(Kind)
STATES: tuple[State, ...] = get_args(State)
#: who sends which messages; REFUSED can also be forced, see `ServerSession.refuse`
FROM_SCHEDULER = {"HELLO", "REPLY", "LEAVING", "SAVED"}

Session = ServerSession | SchedulerSession


def notice(seq: int, *, last: bool = False) -> Notice:
    """Return a notice, perhaps the last one."""
    return Notice(seq, 1.0, [SimulationEnds(1.0) if last else NoMoreJobs(1.0)])


def frame_of(kind: Kind, seq: int) -> bytes:
    """Return a well-formed frame of a kind: a reply to message ``seq``, or a notice that follows it."""
    messages: dict[Kind, Any] = {
        "HELLO": Hello(HELLO),
        "WELCOME": WELCOME,
        "REFUSED": REFUSED,
        "REPLY": Reply(seq, 1.0),
        "LEAVING": Reply(seq, 1.0, leaves="error"),
        "NOTICE": notice(seq + 1),
        "LAST_NOTICE": notice(seq + 1, last=True),
        "SAVE": Save(SaveData(seq)),
        "SAVED": Saved(SavedData(seq, STATE)),
        "RESTORE": Restore(RestoreData(seq + 2, 1.0, STATE)),
    }
    return codec.encode(messages[kind])


def server_acts(server: ServerSession, kind: Kind) -> Any:
    """Let the server send, or receive, a message of a kind."""
    receive = server.receive_saved if server.state == "SAVING" else server.receive_reply
    actions: dict[str, Callable[[], Any]] = {
        "HELLO": lambda: server.receive_hello(frame_of("HELLO", 0)),
        "WELCOME": lambda: server.greet(WELCOME),
        "REFUSED": lambda: server.greet(REFUSED),
        "REPLY": lambda: server.receive_reply(frame_of("REPLY", server.seq)),
        "LEAVING": lambda: receive(frame_of("LEAVING", max(server.seq - 1, 0))),
        "NOTICE": lambda: server.send_notice(notice(server.seq + 1)),
        "LAST_NOTICE": lambda: server.send_notice(notice(server.seq + 1, last=True)),
        "SAVE": server.send_save,
        "SAVED": lambda: server.receive_saved(frame_of("SAVED", server.seq)),
        "RESTORE": lambda: server.send_restore(RestoreData(server.seq + 2, 1.0, STATE)),
    }
    return actions[kind]()


def scheduler_acts(scheduler: SchedulerSession, kind: Kind) -> Any:
    """Let the scheduler send, or receive, a message of a kind."""
    receive = scheduler.receive_greeting if scheduler.state in ("IDLE", "GREETED") else scheduler.receive_notice
    actions: dict[str, Callable[[], Any]] = {
        "HELLO": lambda: scheduler.send_hello(HELLO),
        "WELCOME": lambda: scheduler.receive_greeting(frame_of("WELCOME", 0)),
        "REFUSED": lambda: receive(frame_of("REFUSED", 0)),
        "REPLY": lambda: scheduler.send_reply(Reply(scheduler.seq, 1.0)),
        "LEAVING": lambda: scheduler.send_reply(Reply(max(scheduler.seq - 1, 0), 0.0, leaves="interrupted")),
        "NOTICE": lambda: scheduler.receive_notice(frame_of("NOTICE", scheduler.seq)),
        "LAST_NOTICE": lambda: scheduler.receive_notice(frame_of("LAST_NOTICE", scheduler.seq)),
        "SAVE": lambda: scheduler.receive_notice(frame_of("SAVE", scheduler.seq)),
        "SAVED": lambda: scheduler.send_saved(SavedData(scheduler.seq, STATE)),
        "RESTORE": lambda: scheduler.receive_notice(frame_of("RESTORE", scheduler.seq)),
    }
    return actions[kind]()


def make(side: str, state: State, seq: int = 0) -> Session:
    """Return a session in a state, as if it had reached it normally."""
    if side == "server":
        return ServerSession(state=state, seq=seq)
    return SchedulerSession(state=state, seq=seq, hello=None if state == "IDLE" else HELLO)


def act(end: Session, kind: Kind) -> Any:
    """Let either end send or receive a message of a kind."""
    return server_acts(end, kind) if isinstance(end, ServerSession) else scheduler_acts(end, kind)


def snapshot(end: Session) -> tuple[Any, ...]:
    """Return the whole state of a session."""
    return end.state, end.seq, end.welcome, end.quiet


# -- the table --------------------------------------------------------------------------------------------------------


def test_the_table_is_whole() -> None:
    """Every state has its row; each can be reached; CLOSED is the only final state."""
    assert set(TRANSITIONS) == set(STATES)
    assert {after for kinds in TRANSITIONS.values() for after in kinds.values()} == set(STATES) - {"IDLE"}
    assert [state for state, kinds in TRANSITIONS.items() if not kinds] == ["CLOSED"]
    assert {kind for kinds in TRANSITIONS.values() for kind in kinds} == set(KINDS)


@pytest.mark.parametrize(("side", "state", "kind"), list(product(("server", "scheduler"), STATES, KINDS)))
def test_every_message_in_every_state(side: str, state: State, kind: Kind) -> None:
    """What the table allows leads to its state; anything else is an error of the caller or the peer, without effect."""
    end = make(side, state, seq=3)
    before = snapshot(end)
    after = TRANSITIONS[state].get(kind)

    if after is not None:
        act(end, kind)
        assert end.state == after
        return
    sends = (kind in FROM_SCHEDULER) == (side == "scheduler")
    with pytest.raises(LocalProtocolError if sends else RemoteProtocolError) as caught:
        act(end, kind)
    assert snapshot(end) == before
    assert caught.value.found == kind
    assert state in caught.value.what
    assert all(legal in (caught.value.expected or "") for legal in TRANSITIONS[state] or ["the session is over"])


@pytest.mark.parametrize("state", STATES)
def test_a_server_may_refuse_at_any_time(state: State) -> None:
    """After a peer's mistake the server ends the session from whatever state it is in."""
    server = ServerSession(state=state)

    assert codec.decode_greeting(server.refuse(REFUSED)) == REFUSED
    assert server.state == "CLOSED"


# -- both ends connected ----------------------------------------------------------------------------------------------


class Wire:
    """Both ends, and the last frame between them."""

    def __init__(self) -> None:
        self.server = ServerSession()
        self.scheduler = SchedulerSession()

    def shake(self) -> None:
        """Bring both to the scheduler's first turn."""
        hello = self.server.receive_hello(self.scheduler.send_hello(HELLO)).data
        answer = negotiate(hello, run_id="run", server="server")
        assert self.scheduler.receive_greeting(self.server.greet(answer)) == answer

    def exchange(self, told: Notice, decided: Reply) -> None:
        """Deliver a notice, and the reply."""
        assert self.scheduler.receive_notice(self.server.send_notice(told)) == told
        assert list(self.server.receive_reply(self.scheduler.send_reply(decided)).events) == list(decided.events)


@pytest.fixture
def wire() -> Wire:
    """Return both ends before their first message."""
    return Wire()


def test_a_whole_conversation(wire: Wire) -> None:
    """Handshake, turns and end: both ends go through the same states with the same numbers."""
    wire.shake()
    assert wire.server.welcome == wire.scheduler.welcome
    assert wire.server.welcome is not None
    assert wire.server.welcome.features == ("wake_filter",)

    wire.server.receive_reply(wire.scheduler.send_reply(Reply(0, 0.0)))
    for seq in range(1, 5):
        wire.exchange(notice(seq), Reply(seq, 1.0, [Stop(1.0, StopData(str(seq)))]))
    wire.scheduler.receive_notice(wire.server.send_notice(notice(5, last=True)))

    assert (wire.server.state, wire.scheduler.state) == ("CLOSED", "CLOSED")
    assert (wire.server.seq, wire.scheduler.seq) == (5, 5)


@given(st.lists(st.sampled_from(KINDS), max_size=40))
def test_ends_that_follow_the_table_cause_no_error(kinds: list[Kind]) -> None:
    """What one side's session lets it send, the other side accepts, and both stay in the same state."""
    wire = Wire()
    for kind in kinds:
        first, second = wire.server, wire.scheduler
        sender, receiver = (second, first) if kind in FROM_SCHEDULER else (first, second)
        try:
            act(sender, kind)
        except LocalProtocolError:
            assert kind not in TRANSITIONS[receiver.state]
        else:
            act(receiver, kind)
        assert snapshot(wire.server) == snapshot(wire.scheduler)


@given(st.lists(st.sampled_from([kind for kind in KINDS if kind not in FROM_SCHEDULER]), max_size=20))
def test_a_server_out_of_turn_causes_remote_errors_only(kinds: list[Kind]) -> None:
    """A scheduler that receives frames in any order rejects what is out of turn and keeps its state."""
    scheduler = SchedulerSession()
    scheduler.send_hello(HELLO)
    for kind in kinds:
        before = snapshot(scheduler)
        try:
            scheduler_acts(scheduler, kind)
        except RemoteProtocolError:
            assert kind not in TRANSITIONS[before[0]]
            assert snapshot(scheduler) == before
        if scheduler.state == "SCHEDULER_TURN":
            scheduler.send_reply(Reply(scheduler.seq, 1.0))
        elif scheduler.state == "SAVING":
            scheduler.send_saved(SavedData(scheduler.seq, STATE))


@given(
    st.binary(max_size=60).filter(lambda frame: b'"reply_to"' not in frame)
)  # bytes that contain it might be a reply
def test_garbage_changes_nothing(frame: bytes) -> None:
    """A frame that cannot be read is the peer's error in every state, and the session keeps its state."""
    for state in STATES:
        server, scheduler = make("server", state), make("scheduler", state)
        assert isinstance(server, ServerSession)
        assert isinstance(scheduler, SchedulerSession)
        for read in (server.receive_hello, server.receive_reply, scheduler.receive_greeting, scheduler.receive_notice):
            with pytest.raises(RemoteProtocolError):
                read(frame)
        assert (server.state, scheduler.state) == (state, state)


# -- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reply_to", [0, 2, 4, 10**30])
def test_a_reply_answers_the_last_message(reply_to: int) -> None:
    """A reply with another number is rejected at both ends with the right number, and nothing changes."""
    server, scheduler = ServerSession("SCHEDULER_TURN", 3), SchedulerSession("SCHEDULER_TURN", 3)

    with pytest.raises(RemoteProtocolError, match=f"expected 3, found {reply_to}"):
        server.receive_reply(codec.encode(Reply(reply_to, 1.0)))
    with pytest.raises(LocalProtocolError, match=f"expected 3, found {reply_to}"):
        scheduler.send_reply(Reply(reply_to, 1.0))
    assert (server.state, scheduler.state) == ("SCHEDULER_TURN", "SCHEDULER_TURN")


@pytest.mark.parametrize("seq", [0, 3, 5])
def test_notices_have_no_gaps(seq: int) -> None:
    """A notice with a number other than the next is rejected at both ends, and nothing changes."""
    server, scheduler = ServerSession("SERVER_TURN", 3), SchedulerSession("SERVER_TURN", 3)

    with pytest.raises(LocalProtocolError, match=f"expected 4, found {seq}"):
        server.send_notice(notice(seq))
    with pytest.raises(RemoteProtocolError, match=f"expected 4, found {seq}"):
        scheduler.receive_notice(codec.encode(notice(seq)))
    assert (snapshot(server), snapshot(scheduler)) == (("SERVER_TURN", 3, None, 0),) * 2


def test_the_reply_to_welcome_is_empty() -> None:
    """Decisions before the simulation has begun are rejected at both ends instead of being lost."""
    early = Reply(0, 0.0, [Stop(0.0, StopData())])
    server, scheduler = ServerSession("SCHEDULER_TURN"), SchedulerSession("SCHEDULER_TURN")

    with pytest.raises(RemoteProtocolError, match="has not begun"):
        server.receive_reply(codec.encode(early))
    with pytest.raises(LocalProtocolError, match="has not begun"):
        scheduler.send_reply(early)


def test_a_state_is_saved_and_restored(wire: Wire) -> None:
    """SAVE changes no number; RESTORE is a message with a later number and an empty reply; notices continue."""
    wire.shake()
    wire.server.receive_reply(wire.scheduler.send_reply(Reply(0, 0.0)))
    wire.scheduler.receive_notice(wire.server.send_restore(RestoreData(7, 4.0, STATE)))
    early = Reply(7, 4.0, [Stop(4.0, StopData())])
    with pytest.raises(RemoteProtocolError, match="the reply to RESTORE carries decisions"):
        wire.server.receive_reply(codec.encode(early))
    with pytest.raises(LocalProtocolError, match="the reply to RESTORE carries decisions"):
        wire.scheduler.send_reply(early)
    wire.server.receive_reply(wire.scheduler.send_reply(Reply(7, 4.0)))
    with pytest.raises(RemoteProtocolError, match="time goes back"):
        wire.scheduler.receive_notice(codec.encode(Notice(8, 3.0, [])))
    wire.exchange(Notice(8, 4.0, []), Reply(8, 4.0))

    assert wire.scheduler.receive_notice(wire.server.send_save()) == Save(SaveData(8))
    assert wire.server.receive_saved(wire.scheduler.send_saved(SavedData(8, STATE))) == SavedData(8, STATE)
    wire.exchange(Notice(9, 5.0, []), Reply(9, 5.0))
    with pytest.raises(RemoteProtocolError, match="RESTORE goes back in time"):
        wire.scheduler.receive_notice(codec.encode(Restore(RestoreData(9, 5.0, STATE))))


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (codec.encode(Saved(SavedData(2, STATE))), "another notice: expected 3, found 2"),
        (codec.encode(Reply(3, 1.0)), "expected SAVED, found a reply"),
        (codec.encode(Hello(HELLO)), "expected SAVED, found HELLO"),
        (b'{"type":"SAVED","data":{"reply_to":3}}', "state"),
        (b'{"type":"SAVED","data":{"reply_to":3,"state":[}}', "malformed"),
        (b'{"type":"SAVED","data":{"reply_to":3,"state":"\xff"}}', "cannot be read"),
        (b'{"type":"SAVED","data":{"reply_to":3,"state":' + b"[" * 100_000 + b"]" * 100_000 + b"}}", "cannot be read"),
    ],
)
def test_an_invalid_state_is_rejected(frame: bytes, says: str) -> None:
    """Another message than SAVED, one about another notice, or one whose state is not JSON; nothing changes."""
    server = ServerSession("SAVING", 3)
    with pytest.raises(RemoteProtocolError, match=says):
        server.receive_saved(frame)
    assert snapshot(server) == ("SAVING", 3, None, 0)


def test_a_state_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """WELCOME has the limit for subscribed schedulers; a longer state is rejected."""
    asked = negotiate(HelloData("s", features=("state",)), run_id="", server="", saves=True)
    assert isinstance(asked, Welcome)
    assert (asked.data.max_state, asked.data.features) == (60 * 1024 * 1024, ())
    for hello, saves in ((HelloData("s", features=("state",)), False), (HelloData("s"), True)):
        answer = negotiate(hello, run_id="", server="", saves=saves)
        assert isinstance(answer, Welcome)
        assert answer.data.max_state is None
    monkeypatch.setattr(codec, "MAX_STATE", 10)
    with pytest.raises(RemoteProtocolError, match="state is too long: expected at most 10 bytes, found 20"):
        ServerSession("SAVING", 3).receive_saved(codec.encode(Saved(SavedData(3, STATE))))


def test_only_the_last_event_ends_the_simulation() -> None:
    """SIMULATION_ENDS before the end of a notice does not close the session; a notice may be empty."""
    for told in (Notice(1, 1.0, [SimulationEnds(1.0), NoMoreJobs(1.0)]), Notice(1, 1.0, [])):
        server = ServerSession("SERVER_TURN")
        server.send_notice(told)
        assert server.state == "SCHEDULER_TURN"


def test_what_cannot_be_encoded_was_not_sent() -> None:
    """A message with NaN leaves a session unchanged: the last message can still be sent."""
    bad = Notice(1, 1.0, [RequestedCall(math.nan, RequestedCallData())])
    server, scheduler = ServerSession("SERVER_TURN"), SchedulerSession("SCHEDULER_TURN")

    with pytest.raises(LocalProtocolError, match="not finite"):
        server.send_notice(bad)
    with pytest.raises(LocalProtocolError, match="not finite"):
        scheduler.send_reply(Reply(0, math.nan))
    assert (server.state, server.seq, scheduler.state) == ("SERVER_TURN", 0, "SCHEDULER_TURN")
    server.send_notice(notice(1, last=True))
    assert server.state == "CLOSED"


# -- negotiation ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lowest", "highest", "agreed"),
    [
        (3, 5, 5),  # the same
        (5, 5, 5),
        (3, 3, 3),
        (1, 4, 4),  # an older scheduler
        (1, 3, 3),
        (4, 9, 5),  # a newer one
        (5, 9, 5),
        (1, 9, 5),
        (-1, 10**30, 5),
        (1, 2, "version"),  # too old
        (-7, -7, "version"),
        (6, 9, "version"),  # too new
        (5, 4, "malformed"),
        (9, 1, "malformed"),
    ],
)
def test_the_highest_common_version_is_agreed_on(
    monkeypatch: pytest.MonkeyPatch, lowest: int, highest: int, agreed: int | str
) -> None:
    """A server that speaks 3 to 5 welcomes with the highest version that both support, or rejects with a text."""
    monkeypatch.setattr(session, "PROTOCOL_OLDEST", 3)
    monkeypatch.setattr(session, "PROTOCOL_VERSION", 5)
    answer = negotiate(HelloData("bat", protocol_min=lowest, protocol_max=highest), run_id="run", server="server")

    if isinstance(answer, Welcome):
        assert answer.data == WelcomeData(agreed, (), "run", "server", 1_000_000, 10_000, 5_000_000)  # type: ignore[arg-type]
    else:
        assert answer.data.code == agreed
        if agreed == "version":
            assert f"the server speaks 3 to 5, bat speaks {lowest} to {highest}" in answer.data.message


def test_the_default_hello_is_accepted() -> None:
    """The default HELLO is accepted, and the range of versions is in order."""
    assert PROTOCOL_OLDEST <= PROTOCOL_VERSION
    answer = negotiate(HelloData("x"), run_id="run", server="server")
    assert isinstance(answer, Welcome)
    assert answer.data.protocol == PROTOCOL_VERSION


@pytest.mark.parametrize(
    ("wanted", "offered", "agreed"),
    [
        ((), FEATURES, ()),
        (FEATURES, FEATURES, FEATURES),
        (tuple(reversed(FEATURES)), FEATURES, FEATURES),
        (("wake_filter",), FEATURES, ("wake_filter",)),
        (("wake_filter", "wake_filter"), FEATURES, ("wake_filter",)),
        (("telepathy", "dynamic_jobs"), FEATURES, ("dynamic_jobs",)),
        (("telepathy",), FEATURES, ()),
        (FEATURES, (), ()),
        (FEATURES, ("wake_filter",), ("wake_filter",)),
    ],
)
def test_common_features_are_agreed_on(wanted: Any, offered: Any, agreed: Any) -> None:
    """Features both wanted and offered are agreed on, in the server's order; unknown wishes are not an error."""
    answer = negotiate(HelloData("x", features=wanted), run_id="run", server="server", offered=offered)

    assert isinstance(answer, Welcome)
    assert answer.data.features == agreed


@pytest.mark.parametrize(
    ("welcome", "text"),
    [
        (WelcomeData(2, (), "run"), r"version that was not offered: expected 1 to 1, found 2"),
        (WelcomeData(0, (), "run"), r"version that was not offered: expected 1 to 1, found 0"),
        (WelcomeData(1, ("wake_filter", "dynamic_jobs"), "run"), r"feature that was not requested: found dynamic_jobs"),
    ],
)
def test_a_scheduler_checks_its_welcome(welcome: WelcomeData, text: str) -> None:
    """A server that agrees on a feature that was not offered is rejected."""
    scheduler = SchedulerSession()
    scheduler.send_hello(HelloData("x", protocol_min=1, protocol_max=1, features=("wake_filter",)))

    with pytest.raises(RemoteProtocolError, match=text):
        scheduler.receive_greeting(codec.encode(Welcome(welcome)))
    assert (scheduler.state, scheduler.welcome) == ("GREETED", None)


def test_both_ends_are_closed_after_refused(wire: Wire) -> None:
    """After REFUSED both ends are closed, and the code has arrived."""
    wire.server.receive_hello(wire.scheduler.send_hello(HelloData("x", protocol_min=8, protocol_max=9)))
    answer = negotiate(HelloData("x", protocol_min=8, protocol_max=9), run_id="run", server="server")

    greeting = wire.scheduler.receive_greeting(wire.server.greet(answer))
    assert isinstance(greeting, Refused)
    assert greeting.data.code == "version"
    assert (wire.server.state, wire.scheduler.state) == ("CLOSED", "CLOSED")
