"""The session between server and scheduler as a state machine without I/O.

All changes of a session's state are in this file, and both sides use the same table of transitions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pipistrelle.protocol import codec
from pipistrelle.protocol.base.errors import LocalProtocolError, ProtocolError, RemoteProtocolError
from pipistrelle.protocol.events import SimulationEnds
from pipistrelle.protocol.fields import (
    FEATURES,
    MAX_DECISIONS,
    MAX_REJECTIONS,
    MAX_STATE,
    MAX_TEXTS,
    PROTOCOL_OLDEST,
    PROTOCOL_VERSION,
    STATE,
    Feature,
)
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

State = Literal["IDLE", "GREETED", "SCHEDULER_TURN", "SAVING", "SERVER_TURN", "CLOSED"]
Kind = Literal["HELLO", "WELCOME", "REFUSED", "REPLY", "LEAVING", "NOTICE", "LAST_NOTICE", "SAVE", "SAVED", "RESTORE"]

#: {state: {kind of message: next state}}; all other messages are illegal
TRANSITIONS: Final[dict[State, dict[Kind, State]]] = {
    "IDLE": {"HELLO": "GREETED"},
    "GREETED": {"WELCOME": "SCHEDULER_TURN", "REFUSED": "CLOSED"},
    "SCHEDULER_TURN": {"REPLY": "SERVER_TURN", "LEAVING": "CLOSED"},
    "SAVING": {"SAVED": "SERVER_TURN", "LEAVING": "CLOSED"},
    "SERVER_TURN": {
        "NOTICE": "SCHEDULER_TURN",
        "LAST_NOTICE": "CLOSED",
        "SAVE": "SAVING",
        "RESTORE": "SCHEDULER_TURN",
        "REFUSED": "CLOSED",
        "LEAVING": "CLOSED",
    },
    "CLOSED": {},
}


def negotiate(
    hello: HelloData,
    *,
    run_id: str,
    server: str,
    offered: tuple[Feature, ...] = FEATURES,
    saves: bool = False,
    needed: Mapping[Feature, str] | None = None,
) -> Welcome | Refused:
    """Return the answer to a HELLO.

    A WELCOME has the highest version, and all features, that both sides support.

    Args:
        saves: whether the server will ask the scheduler for its state, if the scheduler supports that.
        needed: {feature: why the run needs it}; a scheduler that lacks one of these features is refused.
    """
    if hello.protocol_min > hello.protocol_max:
        return Refused(RefusedData("malformed", "protocol_min is above protocol_max"))
    version = min(hello.protocol_max, PROTOCOL_VERSION)
    if version < max(hello.protocol_min, PROTOCOL_OLDEST):
        return Refused(
            RefusedData(
                "version",
                f"no common protocol version: the server speaks {PROTOCOL_OLDEST} to {PROTOCOL_VERSION}, "
                f"{hello.name or 'the scheduler'} speaks {hello.protocol_min} to {hello.protocol_max}",
            )
        )
    for feature, why in (needed or {}).items():
        if feature not in hello.features:
            name = hello.name or "the scheduler"
            text = f"{name} does not request the feature '{feature}' in HELLO, but this run needs it: {why}"
            return Refused(RefusedData("feature", text))
    agreed = tuple(feature for feature in offered if feature in hello.features)
    longest = MAX_STATE if saves and STATE in hello.features else None
    return Welcome(WelcomeData(version, agreed, run_id, server, MAX_DECISIONS, MAX_REJECTIONS, MAX_TEXTS, longest))


def check_times(notice: Notice, before: float) -> None:
    """Raise RemoteProtocolError if the times in a notice are wrong.

    They are wrong if the notice is earlier than ``before`` (s), or if its events are not in order of time.
    """
    if notice.now < before:
        raise RemoteProtocolError(
            "time goes back", where="$.now", expected=f"at least {before!r}", found=repr(notice.now)
        )
    last = 0.0
    for index, event in enumerate(notice.events):
        if not last <= event.timestamp <= notice.now:
            raise RemoteProtocolError(
                "an event's time is out of order",
                where=f"$.events[{index}].timestamp",
                expected=f"from {last!r} to {notice.now!r}",
                found=repr(event.timestamp),
            )
        last = event.timestamp


@dataclass(slots=True)
class _Session:
    """State common to both sides: whose turn it is, and the last message's number.

    A message that is not allowed changes nothing.
    """

    state: State = "IDLE"
    #: number of the server's last message; the WELCOME has number 0
    seq: int = 0
    #: the data of the WELCOME; None before the WELCOME
    welcome: WelcomeData | None = None
    #: number of the WELCOME or RESTORE, whose reply must be empty
    quiet: int = 0

    def _after(self, kind: Kind, error: type[ProtocolError]) -> State:
        state = TRANSITIONS[self.state].get(kind)
        if state is None:
            legal = " or ".join(TRANSITIONS[self.state]) or "nothing, the session is over"
            raise error(f"{kind} is not allowed in state {self.state}", expected=legal, found=kind)
        return state

    def _after_greeting(self, message: Welcome | Refused, error: type[ProtocolError]) -> State:
        return self._after("WELCOME" if isinstance(message, Welcome) else "REFUSED", error)

    def _after_notice(self, notice: Notice, error: type[ProtocolError], what: str) -> State:
        kind: Kind = "LAST_NOTICE" if notice.events and type(notice.events[-1]) is SimulationEnds else "NOTICE"
        state = self._after(kind, error)
        if notice.seq != self.seq + 1:
            raise error(what, where="$.seq", expected=str(self.seq + 1), found=str(notice.seq))
        return state

    def _after_reply(self, reply: Reply, error: type[ProtocolError], what: str) -> State:
        if reply.leaves is not None:  # a scheduler may leave in reply to any notice
            return self._after("LEAVING", error)
        state = self._after("REPLY", error)
        if reply.reply_to != self.seq:
            raise error(
                what,
                where="$.reply_to",
                expected=str(self.seq),
                found=str(reply.reply_to),
                hint="Send back the 'seq' of the last notice (0 after WELCOME).",
            )
        if self.seq == self.quiet and reply.events:
            # No simulation has begun yet: without this error the decisions would be lost silently.
            raise error(
                "the reply to RESTORE carries decisions, but nothing has happened"
                if self.seq
                else "the reply to WELCOME carries decisions, but the simulation has not begun",
                where="$.events",
                expected="none",
                found=str(len(reply.events)),
                hint="Decide in the reply to a notice.",
            )
        return state

    def _after_restore(self, data: RestoreData, error: type[ProtocolError]) -> State:
        state = self._after("RESTORE", error)
        if data.seq <= self.seq:
            expected = f"a number above {self.seq}"
            raise error("RESTORE goes back in time", where="$.data.seq", expected=expected, found=str(data.seq))
        return state

    def _after_save(self, kind: Kind, seq: int, error: type[ProtocolError], where: str) -> State:
        state = self._after(kind, error)
        if seq != self.seq:
            raise error(f"{kind} is about another notice", where=where, expected=str(self.seq), found=str(seq))
        return state


class ServerSession(_Session):
    """The server's end of a session with one scheduler."""

    __slots__ = ()

    def receive_hello(self, frame: bytes) -> Hello:
        """Read the scheduler's first frame; RemoteProtocolError if it is not a HELLO."""
        hello = codec.decode_hello(frame)
        self.state = self._after("HELLO", RemoteProtocolError)
        return hello

    def greet(self, answer: Welcome | Refused) -> bytes:
        """Return the frame that answers the HELLO."""
        state = self._after_greeting(answer, LocalProtocolError)
        frame = codec.encode(answer)
        self.state = state
        if isinstance(answer, Welcome):
            self.welcome = answer.data
        return frame

    def receive_reply(self, frame: bytes) -> Reply:
        """Read a reply; RemoteProtocolError if it is invalid or answers another message."""
        reply = codec.decode_reply(frame)
        self.state = self._after_reply(reply, RemoteProtocolError, "the reply answers another message")
        return reply

    def send_notice(self, notice: Notice) -> bytes:
        """Return the frame of a notice; its ``seq`` must be the next number."""
        state = self._after_notice(notice, LocalProtocolError, "notices are numbered without gaps")
        frame = codec.encode(notice)
        self.state = state
        self.seq = notice.seq
        return frame

    def send_save(self) -> bytes:
        """Return the frame that asks for the scheduler's state."""
        self.state = self._after("SAVE", LocalProtocolError)
        return codec.encode(Save(SaveData(self.seq)))

    def receive_saved(self, frame: bytes) -> SavedData | Reply:
        """Read a SAVED or a leaving scheduler's reply, or raise RemoteProtocolError."""
        data = codec.decode_saved(frame)
        if isinstance(data, Reply):
            self.state = self._after("LEAVING", RemoteProtocolError)
        else:
            self.state = self._after_save("SAVED", data.reply_to, RemoteProtocolError, "$.data.reply_to")
        return data

    def send_restore(self, data: RestoreData) -> bytes:
        """Return the frame of a RESTORE.

        Pass the scheduler's empty reply to `receive_reply`.
        """
        state = self._after_restore(data, LocalProtocolError)
        frame = codec.encode(Restore(data))
        self.state, self.seq, self.quiet = state, data.seq, data.seq
        return frame

    def pass_on(self, seq: int, frame: bytes) -> None:
        """Record that notice ``seq``, recorded in another session, was sent in this one.

        The frame is sent as it was recorded.
        """
        self.state, self.seq = self._after("NOTICE", LocalProtocolError), seq

    def answered(self) -> None:
        """Record that the last notice was answered, without decoding the reply.

        The caller has found that the reply equals the recorded one.
        """
        self.state = self._after("REPLY", RemoteProtocolError)

    def refuse(self, refused: Refused) -> bytes:
        """Close the session; return the frame that tells the peer its mistake."""
        self.state = "CLOSED"
        return codec.encode(refused)


@dataclass(slots=True)
class SchedulerSession(_Session):
    """The scheduler's end of a session with one server."""

    #: the data of the HELLO; None before the HELLO
    hello: HelloData | None = None
    #: simulated time of the last notice, in seconds
    now: float = 0.0

    def send_hello(self, hello: HelloData) -> bytes:
        """Return the frame of the HELLO."""
        state = self._after("HELLO", LocalProtocolError)
        frame = codec.encode(Hello(hello))
        self.state = state
        self.hello = hello
        return frame

    def receive_greeting(self, frame: bytes) -> Welcome | Refused:
        """Read the answer to HELLO.

        Raises:
            RemoteProtocolError: if the answer is invalid, or names a version or feature that the HELLO did not offer.
        """
        message = codec.decode_greeting(frame)
        state = self._after_greeting(message, RemoteProtocolError)
        if isinstance(message, Welcome):
            self._check_welcome(message.data)
            self.welcome = message.data
        self.state = state
        return message

    def _check_welcome(self, welcome: WelcomeData) -> None:
        hello = self.hello
        assert hello is not None  # a WELCOME is legal only after the HELLO
        if not hello.protocol_min <= welcome.protocol <= hello.protocol_max:
            raise RemoteProtocolError(
                "the server welcomes with a version that was not offered",
                where="$.data.protocol",
                expected=f"{hello.protocol_min} to {hello.protocol_max}",
                found=str(welcome.protocol),
            )
        unwanted = [feature for feature in welcome.features if feature not in hello.features]
        if unwanted:
            raise RemoteProtocolError(
                "the server welcomes with a feature that was not requested",
                where="$.data.features",
                found=unwanted[0],
            )

    def send_reply(self, reply: Reply) -> bytes:
        """Return the frame of a reply to the last message."""
        state = self._after_reply(reply, LocalProtocolError, "a reply answers the last message")
        frame = codec.encode(reply)
        self.state = state
        return frame

    def send_saved(self, data: SavedData) -> bytes:
        """Return the frame that answers a SAVE."""
        state = self._after_save("SAVED", data.reply_to, LocalProtocolError, "$.data.reply_to")
        frame = codec.encode(Saved(data))
        self.state = state
        return frame

    def receive_notice(self, frame: bytes) -> Notice | Refused | Save | Restore:
        """Read a notice or the frame sent instead.

        Raise RemoteProtocolError if a notice is missing.
        """
        message = codec.decode_notice(frame)
        if not isinstance(message, Notice):
            return self._receive_other(message)
        state = self._after_notice(message, RemoteProtocolError, "a notice is missing")
        check_times(message, self.now)
        self.state, self.seq, self.now = state, message.seq, message.now
        return message

    def _receive_other(self, message: Refused | Save | Restore) -> Refused | Save | Restore:
        if isinstance(message, Refused):
            self.state = self._after("REFUSED", RemoteProtocolError)
        elif isinstance(message, Save):
            self.state = self._after_save("SAVE", message.data.seq, RemoteProtocolError, "$.data.seq")
        else:
            data = message.data
            state = self._after_restore(data, RemoteProtocolError)
            self.state, self.seq, self.quiet, self.now = state, data.seq, data.seq, data.now
        return message
