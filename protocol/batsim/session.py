"""A session of the batsim dialect as a state machine without I/O.

The server sends first, and then both sides take turns. There is no greeting: the first notice begins with
SIMULATION_BEGINS. The last notice has SIMULATION_ENDS, and the scheduler answers it with an empty reply.
"""

from dataclasses import dataclass
from typing import Final, Literal

from pipistrelle.protocol.base.errors import LocalProtocolError, ProtocolError, RemoteProtocolError
from pipistrelle.protocol.batsim import codec
from pipistrelle.protocol.events import SimulationBegins, SimulationEnds
from pipistrelle.protocol.messages import Notice, Reply
from pipistrelle.protocol.session import check_times

BatsimState = Literal["IDLE", "SCHEDULER_TURN", "SERVER_TURN", "FAREWELL", "CLOSED"]
BatsimKind = Literal["FIRST_NOTICE", "NOTICE", "LAST_NOTICE", "REPLY"]

#: {state: {kind of message: next state}}; all other messages are illegal
BATSIM_TRANSITIONS: Final[dict[BatsimState, dict[BatsimKind, BatsimState]]] = {
    "IDLE": {"FIRST_NOTICE": "SCHEDULER_TURN"},
    "SCHEDULER_TURN": {"REPLY": "SERVER_TURN"},
    "SERVER_TURN": {"NOTICE": "SCHEDULER_TURN", "LAST_NOTICE": "FAREWELL"},
    "FAREWELL": {"REPLY": "CLOSED"},
    "CLOSED": {},
}


@dataclass(slots=True)
class _Session:
    """State common to both sides of a session.

    A forbidden message leaves the state unchanged.
    """

    state: BatsimState = "IDLE"
    #: number of the last notice, from 1; numbers are not sent
    seq: int = 0

    def _after(self, kind: BatsimKind, error: type[ProtocolError]) -> BatsimState:
        state = BATSIM_TRANSITIONS[self.state].get(kind)
        if state is None:
            legal = " or ".join(BATSIM_TRANSITIONS[self.state]) or "nothing, the session is over"
            raise error(f"{kind} is not allowed in state {self.state}", expected=legal, found=kind)
        return state

    def _after_notice(self, notice: Notice, error: type[ProtocolError]) -> BatsimState:
        kind: BatsimKind = "NOTICE"
        events = notice.events
        if events:
            if type(events[-1]) is SimulationEnds:
                kind = "LAST_NOTICE"
            elif type(events[0]) is SimulationBegins:
                kind = "FIRST_NOTICE"
        return self._after(kind, error)


@dataclass(slots=True)
class BatsimServerSession(_Session):
    """The server's end of a session with one scheduler."""

    _notice: Notice | None = None
    #: the frame of the last notice, if it was passed on undecoded
    _frame: bytes = b""

    def pass_on(self, seq: int, frame: bytes) -> None:
        """Record that notice ``seq``, recorded in another session, was sent in this one.

        The frame is sent as it was recorded.
        """
        self.state = self._after("NOTICE" if self.seq else "FIRST_NOTICE", LocalProtocolError)
        self.seq, self._frame, self._notice = seq, frame, None

    def answered(self) -> None:
        """Record that the last notice was answered, without decoding the reply.

        The caller has found that the reply equals the recorded one.
        """
        self.state = self._after("REPLY", RemoteProtocolError)

    def send_notice(self, notice: Notice) -> bytes:
        """Return the frame of a notice; its ``seq`` must be the next number."""
        state = self._after_notice(notice, LocalProtocolError)
        if notice.seq != self.seq + 1:
            raise LocalProtocolError(
                "notices are numbered without gaps", where="$.seq", expected=str(self.seq + 1), found=str(notice.seq)
            )
        frame = codec.encode_notice(notice)
        self.state = state
        self.seq = notice.seq
        self._notice = notice
        return frame

    def receive_reply(self, frame: bytes) -> Reply:
        """Read a reply to the last notice; RemoteProtocolError if invalid or not due.

        Decisions in the reply to SIMULATION_ENDS come too late; the server drops them.
        """
        state = self._after("REPLY", RemoteProtocolError)
        notice = self._notice  # a reply is legal only after a notice
        reply = codec.decode_reply(frame, codec.decode_notice(self._frame, self.seq) if notice is None else notice)
        self.state = state
        return reply if state != "CLOSED" else Reply(reply.reply_to, reply.now)


@dataclass(slots=True)
class BatsimSchedulerSession(_Session):
    """The scheduler's end of a session with one server."""

    #: whether the server is Pipistrelle's, which accepts the reasons of decisions
    ours: bool = False
    #: simulated time of the last notice, in seconds
    now: float = 0.0
    _profiles: bool = False

    def receive_notice(self, frame: bytes) -> Notice:
        """Read a notice; RemoteProtocolError if it is invalid or out of turn."""
        notice = codec.decode_notice(frame, self.seq + 1, profiles=self._profiles)
        state = self._after_notice(notice, RemoteProtocolError)
        check_times(notice, self.now)
        if self.seq == 0:
            self._begin(frame, notice)
        self.state, self.seq, self.now = state, notice.seq, notice.now
        return notice

    def _begin(self, frame: bytes, notice: Notice) -> None:
        self.ours = codec.is_ours(frame)
        first = notice.events[0]
        if isinstance(first, SimulationBegins):
            self._profiles = first.data.config.get("profiles-forwarded-on-submission") is True

    def send_reply(self, reply: Reply) -> bytes:
        """Return the frame of a reply to the latest notice; the reply to SIMULATION_ENDS must be empty."""
        state = self._after("REPLY", LocalProtocolError)
        if reply.reply_to != self.seq:
            raise LocalProtocolError(
                "a reply answers the last notice", where="$.reply_to", expected=str(self.seq), found=str(reply.reply_to)
            )
        if state == "CLOSED" and reply.events:
            raise LocalProtocolError(
                "the simulation is over, nothing can be decided", where="$.events", found=str(len(reply.events))
            )
        frame = codec.encode_reply(reply, why=self.ours)
        self.state = state
        return frame
