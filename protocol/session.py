"""The conversation between server and scheduler as a state machine without I/O, used by both sides.

Everything that changes a session's state is in this file, and the table does not know which side it serves, so that
both are held to the same rules.
"""

from dataclasses import dataclass, field
from typing import Final, Literal

from pipistrelle.protocol import codec
from pipistrelle.protocol.errors import LocalProtocolError, ProtocolError, RemoteProtocolError
from pipistrelle.protocol.events import SimulationEnds
from pipistrelle.protocol.fields import FEATURES, PROTOCOL_OLDEST, PROTOCOL_VERSION, Feature
from pipistrelle.protocol.messages import (
    Hello,
    HelloData,
    Notice,
    Refused,
    RefusedData,
    Reply,
    Welcome,
    WelcomeData,
)

State = Literal["IDLE", "GREETED", "SCHEDULER_TURN", "SERVER_TURN", "CLOSED"]
Kind = Literal["HELLO", "WELCOME", "REFUSED", "REPLY", "NOTICE", "LAST_NOTICE"]

#: {state: {kind of message: next state}}; what is not in it is illegal.
TRANSITIONS: Final[dict[State, dict[Kind, State]]] = {
    "IDLE": {"HELLO": "GREETED"},
    "GREETED": {"WELCOME": "SCHEDULER_TURN", "REFUSED": "CLOSED"},
    "SCHEDULER_TURN": {"REPLY": "SERVER_TURN"},
    "SERVER_TURN": {"NOTICE": "SCHEDULER_TURN", "LAST_NOTICE": "CLOSED", "REFUSED": "CLOSED"},
    "CLOSED": {},
}


def negotiate(
    hello: HelloData, *, run_id: str, server: str, offered: tuple[Feature, ...] = FEATURES
) -> Welcome | Refused:
    """Return the answer to a HELLO: the highest common version and the features that both sides know."""
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
    agreed = tuple(feature for feature in offered if feature in hello.features)
    return Welcome(WelcomeData(protocol=version, features=agreed, run_id=run_id, server=server))


@dataclass(slots=True)
class _Session:
    """State that both sides keep: whose turn it is, and the number of the last message of the server."""

    state: State = "IDLE"
    #: number of the server's last message; WELCOME is 0
    seq: int = 0
    #: what was agreed; None before the WELCOME
    welcome: WelcomeData | None = field(default=None)

    def _step(self, kind: Kind, error: type[ProtocolError]) -> None:
        try:
            self.state = TRANSITIONS[self.state][kind]
        except KeyError:
            legal = " or ".join(TRANSITIONS[self.state]) or "nothing, the session is over"
            raise error(f"{kind} is not allowed in state {self.state}", expected=legal, found=kind) from None

    def _greeting(self, message: Welcome | Refused, error: type[ProtocolError]) -> None:
        if isinstance(message, Welcome):
            self._step("WELCOME", error)
            self.welcome = message.data
        else:
            self._step("REFUSED", error)


class ServerSession(_Session):
    """The server's end of a conversation with one scheduler."""

    __slots__ = ()

    def receive_hello(self, frame: bytes) -> Hello:
        """Read the scheduler's first frame; RemoteProtocolError if it is not a HELLO."""
        hello = codec.decode_hello(frame)
        self._step("HELLO", RemoteProtocolError)
        return hello

    def greet(self, answer: Welcome | Refused) -> bytes:
        """Return the frame of the answer to the HELLO."""
        self._greeting(answer, LocalProtocolError)
        return codec.encode(answer)

    def receive_reply(self, frame: bytes) -> Reply:
        """Read a reply; RemoteProtocolError if it is none, or does not answer the last message."""
        reply = codec.decode_reply(frame)
        self._step("REPLY", RemoteProtocolError)
        if reply.reply_to != self.seq:
            raise RemoteProtocolError(
                "the reply answers another message",
                where="$.reply_to",
                expected=str(self.seq),
                found=str(reply.reply_to),
                hint="Send back the 'seq' of the last notice (0 after WELCOME).",
            )
        return reply

    def send_notice(self, notice: Notice) -> bytes:
        """Return the frame of a notice, whose ``seq`` must be the next number."""
        last = bool(notice.events) and type(notice.events[-1]) is SimulationEnds
        self._step("LAST_NOTICE" if last else "NOTICE", LocalProtocolError)
        if notice.seq != self.seq + 1:
            raise LocalProtocolError(
                "notices are numbered without gaps", expected=str(self.seq + 1), found=str(notice.seq)
            )
        self.seq = notice.seq
        return codec.encode(notice)

    def refuse(self, refused: Refused) -> bytes:
        """Return the frame that ends the conversation because of the peer's mistake; the state becomes CLOSED."""
        self.state = "CLOSED"
        return codec.encode(refused)


class SchedulerSession(_Session):
    """The scheduler's end."""

    __slots__ = ()

    def send_hello(self, hello: HelloData) -> bytes:
        """Return the first frame."""
        self._step("HELLO", LocalProtocolError)
        return codec.encode(Hello(hello))

    def receive_greeting(self, frame: bytes) -> Welcome | Refused:
        """Read the answer to HELLO; RemoteProtocolError if it is none."""
        message = codec.decode_greeting(frame)
        self._greeting(message, RemoteProtocolError)
        return message

    def send_reply(self, reply: Reply) -> bytes:
        """Return the frame of a reply to the last message."""
        self._step("REPLY", LocalProtocolError)
        if reply.reply_to != self.seq:
            raise LocalProtocolError(
                "a reply answers the last message", expected=str(self.seq), found=str(reply.reply_to)
            )
        return codec.encode(reply)

    def receive_notice(self, frame: bytes) -> Notice | Refused:
        """Read a notice (or REFUSED); RemoteProtocolError if it is none or a notice is missing."""
        message = codec.decode_notice(frame)
        if isinstance(message, Refused):
            self._step("REFUSED", RemoteProtocolError)
            return message
        last = bool(message.events) and type(message.events[-1]) is SimulationEnds
        self._step("LAST_NOTICE" if last else "NOTICE", RemoteProtocolError)
        if message.seq != self.seq + 1:
            raise RemoteProtocolError(
                "a notice is missing", where="$.seq", expected=str(self.seq + 1), found=str(message.seq)
            )
        self.seq = message.seq
        return message
