"""Send hostile (malformed or unexpected) replies to the server in both dialects.

Each reply passes through the session, the transport and the engine.
"""

import json
import random
from collections.abc import Callable
from math import inf
from typing import Any

from hostile.history import History
from hostile.mutator import Mutator, Words
from hostile.tables import (
    BATSIM_DATA,
    BATSIM_DECISIONS,
    DECISIONS,
    HELLO_FEATURES,
    STRANGE_KINDS,
    dated,
    kinds_in,
    least_tried,
    vectors,
    with_kind,
)
from hostile.tally import Tally

from pipistrelle.protocol import codec
from pipistrelle.protocol.base.errors import RemoteProtocolError
from pipistrelle.protocol.batsim.session import BatsimServerSession
from pipistrelle.protocol.messages import HelloData, Notice, Refused, RefusedData, Reply, WelcomeData
from pipistrelle.protocol.session import ServerSession, negotiate
from pipistrelle.server.engine.engine import Engine
from pipistrelle.server.errors import RunError
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import Simulation, simulate
from pipistrelle.server.transport.peer import Peer

#: number of notices after which the scheduler ends the run
LONGEST_RUN = 120
#: exit codes of the documented early ends: 3 illegal decision with --strict, 4 scheduler's fault, 5 stalled
DOCUMENTED = {3: "strict", 4: "scheduler", 5: "stalled"}
#: simulated time at which another scheduler takes over some of the runs (s)
_TAKEN_OVER_AT = 16.0
_TURN = 6


class _HostilePeer(Peer[Any]):
    """The server's connection to a simulated scheduler with hostile replies.

    Hostile replies are malformed or unexpected. For each notice it tries some hostile replies, then a valid one. The
    first reply that the session accepts counts.
    """

    def __init__(self, session: Any, tally: Tally, mutator: Mutator) -> None:
        super().__init__("nowhere", session, hello_timeout=inf, decision_timeout=inf)
        self.tally = tally
        self.mutator = mutator
        self.pick = mutator.random
        self.engine: Engine | None = None
        self._frame = b""
        self._refusal: bytes | None = None
        self._turns = 0
        self._recent: list[bytes] = []

    def send(self, notice: Notice) -> None:
        """Encode the notice, as a real connection would, and remember it for the reply."""
        self._session.send_notice(notice)
        self._notice = notice
        self._owed_reply = True

    def receive(self) -> Reply:
        """Return the first reply that the session accepts.

        Some replies are malformed or unexpected; the last is valid. A few hostile frames go through the real
        `Peer.receive`, where a refusal ends the run.
        """
        self._turns += 1
        good = self._good_reply()
        self.tally.kinds.update(kinds_in(good))
        self._recent = [*self._recent[-5:], good]
        if self._turns > LONGEST_RUN:
            self._frame = self._last_word()
            return super().receive()
        attempts = self.pick.choice((0, 1, 1, _TURN))
        for _ in range(attempts):
            frame = self.mutator.mutate(good) if self.pick.random() < 0.85 else self._out_of_place()
            state, seq = self._session.state, self._session.seq
            with self.tally.trial(frame):
                if self.pick.random() < 0.04:  # a refusal ends the run
                    self._frame = frame
                    reply = super().receive()
                    self.tally.taken += 1
                    return reply
                try:
                    reply = self._session.receive_reply(frame)
                except RemoteProtocolError as error:
                    self.tally.refuse(error, RemoteProtocolError)
                    codec.encode(Refused(RefusedData("protocol_error", str(error))))
                    if (self._session.state, self._session.seq) != (state, seq):
                        self.tally.find("a refused frame has changed the session")
                    continue
            self.tally.taken += 1
            if reply.leaves is not None:
                raise self._left(reply.leaves)
            return reply  # type: ignore[no-any-return]
        self._frame = good
        self.tally.frame = good
        return super().receive()

    def taken_over(self, engine: Engine, history: History) -> None:
        """Act from now on as a new scheduler that has received only the first notice."""
        engine.hand_over(history.events)
        self._session.seq = 1

    # -- differences between the dialects ---------------------------------------------------------------------------

    def greet(self, run_id: str, server: str) -> tuple[HelloData, WelcomeData]:
        """Carry out the handshake; return the scheduler's HELLO and the server's WELCOME."""
        raise NotImplementedError

    def _good_reply(self) -> bytes:
        raise NotImplementedError

    def _out_of_place(self) -> bytes:
        """Return a reply with the least tried type of decision, which may be illegal now."""
        raise NotImplementedError

    def _last_word(self) -> bytes:
        raise NotImplementedError

    def _take_frame(self, now: float) -> bytes:
        return self._frame

    def _note_connections(self, now: float) -> None:
        """Do nothing, because there are no connections."""

    def _hand_over(self, frame: bytes) -> None:
        """Do nothing, because no other process reads the frame."""

    def _holds_more(self) -> bool:
        return False

    def _lost(self) -> None:
        return None

    def _broke(self, error: RemoteProtocolError) -> None:
        self._refusal = codec.encode(Refused(RefusedData("protocol_error", str(error))))

    def _last_sent(self) -> str:
        return f"notice {self._session.seq}"

    def farewell(self, notice: Notice) -> None:
        """Encode the last notice, if it is the server's turn and no REFUSED was sent."""
        if self._refusal is None and self._session.state == "SERVER_TURN":
            self._session.send_notice(notice)

    def close(self) -> None:
        """Do nothing, because no resources are held."""

    # -- decisions --------------------------------------------------------------------------------------------------

    def _words(self) -> Words:
        engine, pick = self.engine, self.pick
        assert engine is not None
        now, cluster = engine.now, engine.cluster
        jobs = [*list(cluster.waiting)[:5], *list(cluster.running)[:5], "w0!1", "w0!7", "w0!99", "dyn!1", "dyn!2"]
        free = _free(engine)
        sets = [_text(free[:size]) for size in (1, 2, 3, 5, len(free))]
        sets += [str(job.alloc) for job in list(cluster.running.values())[:3]]
        times = (now, now, now + 1, now + pick.random() * 20, 0.0, 1e18)
        return Words(jobs, sets, times, [*self._recent, *vectors("reply")], self.mutator.words.kinds)


def _free(engine: Engine) -> list[int]:
    held = engine.cluster.ledger._held  # a scheduler can derive the same from its notices
    return [unit for unit, taken in enumerate(held) if not taken]


def _text(units: list[int]) -> str:
    return " ".join(map(str, units))


class NativePeer(_HostilePeer):
    """A scheduler that sends malformed or unexpected messages in the native dialect.

    ``features`` are those of its HELLO.
    """

    KINDS = (*DECISIONS, "JOB_COMPLETED", *STRANGE_KINDS)

    def __init__(self, tally: Tally, mutator: Mutator, features: tuple[str, ...]) -> None:
        super().__init__(ServerSession(), tally, mutator)
        mutator.words = Words(HELLO_FEATURES, frames=vectors("hello"), kinds=self.KINDS)
        self._features = features

    def greet(self, run_id: str, server: str) -> tuple[HelloData, WelcomeData]:
        """Try some hostile HELLOs and first replies, then complete a valid handshake.

        Hostile messages are malformed or unexpected.
        """
        frame = json.dumps({"type": "HELLO", "data": {"name": "hostile", "version": "1", "features": self._features}})
        for _ in range(self.pick.choice((0, 0, 1, 2))):
            good = frame.encode() if self.pick.random() < 0.7 else self.pick.choice(vectors("hello"))
            hostile = self.mutator.mutate(good)
            with self.tally.trial(hostile):
                session = ServerSession()
                try:
                    hello = session.receive_hello(hostile).data
                    session.greet(negotiate(hello, run_id=run_id, server=server))
                    self.tally.taken += 1
                except RemoteProtocolError as error:
                    self.tally.refuse(error, RemoteProtocolError)
        hello = self._session.receive_hello(frame.encode()).data
        answer = negotiate(hello, run_id=run_id, server=server)
        self._session.greet(answer)
        assert not isinstance(answer, Refused)
        for _ in range(self.pick.choice((0, 0, 1))):
            hostile = self.mutator.mutate(b'{"reply_to": 0, "now": 0.0, "events": []}')
            with self.tally.trial(hostile):
                try:
                    reply = self._session.receive_reply(hostile)
                    self.tally.taken += 1
                    if reply.leaves is not None:
                        raise self._left(reply.leaves)
                    return hello, answer.data
                except RemoteProtocolError as error:
                    self.tally.refuse(error, RemoteProtocolError)
        self._session.receive_reply(b'{"reply_to": 0, "now": 0.0, "events": []}')
        return hello, answer.data

    def _last_word(self) -> bytes:
        return b'{"reply_to": 0, "now": 0, "leaves": "error"}'

    def _out_of_place(self) -> bytes:
        kind = least_tried(DECISIONS, self.tally.kinds)
        frame = self.pick.choice(with_kind("reply", kind))
        self.tally.kinds.update(kinds_in(frame))
        frame = dated(frame, self._notice.now, reply_to=self._notice.seq)
        return self.mutator.mutate(frame) if self.pick.random() < 0.5 else frame

    def _good_reply(self) -> bytes:
        notice, pick, engine = self._notice, self.pick, self.engine
        assert engine is not None
        now = notice.now
        self.mutator.words = self._words()
        events: list[dict[str, Any]] = []

        def say(kind: str, at: float | None = None, **data: Any) -> None:
            events.append({"timestamp": now if at is None else at, "type": kind, "data": data})

        cluster, free = engine.cluster, _free(engine)
        for job in list(cluster.waiting.values())[:8]:
            if job.size <= len(free):
                taken = free[: job.size] if pick.random() < 0.8 else sorted(pick.sample(free, job.size))
                free = [unit for unit in free if unit not in taken]
                say("EXECUTE_JOB", job_id=job.id, alloc=_text(taken), why="it fits")
            elif pick.random() < 0.05:
                say("REJECT_JOB", job_id=job.id)
        running = list(cluster.running)
        what = pick.random()
        if running and what < 0.1:
            say("KILL_JOB", job_ids=pick.sample(running, min(2, len(running))), why="in the way")
        elif running and what < 0.2:
            say("SET_JOB_METADATA", job_id=pick.choice(running), metadata="seen")
        elif what < 0.3:
            say("CALL_ME_LATER", at=now + pick.choice((0, 2)), timestamp=now + 4.0, id=pick.choice(("", "a", "b")))
        elif what < 0.35:
            say("CANCEL_CALL", id="a")
        elif what < 0.45:
            name = f"dyn!{pick.randint(1, 9)}"
            say("REGISTER_JOB", job_id=name, job={"id": name, "res": pick.randint(1, 5), "walltime": 9.0}, runtime=3.5)
        elif what < 0.455:
            say("STOP", reason="enough")
        reply: dict[str, Any] = {"reply_to": notice.seq, "now": now + pick.choice((0, 0, 0, 1.5)), "events": events}
        if pick.random() < 0.3:
            reply["wake"] = pick.choice((None, [], ["JOB_COMPLETED"], ["JOB_SUBMITTED", "JOB_COMPLETED"]))
        if pick.random() < 0.2:
            reply["keeps"] = ["maintenance"]
        if pick.random() < 0.2:
            reply["leaves"] = None
        return json.dumps(reply).encode()


class BatsimPeer(_HostilePeer):
    """A scheduler that sends malformed or unexpected messages in Batsim's dialect.

    ``rich`` enables registrations and queries.
    """

    KINDS = (*BATSIM_DECISIONS, *STRANGE_KINDS)
    STATES = ("RUNNING", "REJECTED", "COMPLETED_SUCCESSFULLY", "COMPLETED_KILLED", "COMPLETED_FAILED")

    def __init__(self, tally: Tally, mutator: Mutator, rich: bool) -> None:
        super().__init__(BatsimServerSession(), tally, mutator)
        mutator.words = Words(kinds=self.KINDS)
        self._rich = rich
        self._registered = 0

    def greet(self, run_id: str, server: str) -> tuple[HelloData, WelcomeData]:
        """Return a made-up HELLO and WELCOME, because Batsim's dialect has no handshake."""
        return HelloData("hostile"), WelcomeData(1, (), run_id, server)

    def _last_word(self) -> bytes:
        return json.dumps({"now": self._notice.now, "events": [], "leaves": "error"}).encode()

    def _out_of_place(self) -> bytes:
        now, kind = self._notice.now, least_tried(BATSIM_DATA.keys() & {*BATSIM_DECISIONS}, self.tally.kinds)
        self.tally.kinds[kind] += 1
        event = {"timestamp": now, "type": kind, "data": BATSIM_DATA[kind]}
        frame = json.dumps({"now": now, "events": [event]}).encode()
        return self.mutator.mutate(frame) if self.pick.random() < 0.5 else frame

    def _broke(self, error: RemoteProtocolError) -> None:
        """Do nothing, because Batsim's dialect has no message for a protocol error."""

    def farewell(self, notice: Notice) -> None:
        """Send the last notice, and try one malformed or unexpected reply to it.

        If it is not the server's turn, do nothing.
        """
        session = self._session
        if session.state == "SERVER_TURN":
            session.send_notice(Notice(session.seq + 1, notice.now, notice.events[-1:]))
            hostile = self.mutator.mutate(json.dumps({"now": notice.now, "events": []}).encode())
            with self.tally.trial(hostile):
                try:
                    session.receive_reply(hostile)
                    self.tally.taken += 1
                except RemoteProtocolError as error:
                    self.tally.refuse(error, RemoteProtocolError)

    def _good_reply(self) -> bytes:
        notice, pick, engine = self._notice, self.pick, self.engine
        assert engine is not None
        now = notice.now
        self.mutator.words = self._words()
        events: list[dict[str, Any]] = []

        def say(kind: str, at: float | None = None, **data: Any) -> None:
            events.append({"timestamp": now if at is None else at, "type": kind, "data": data})

        cluster, free = engine.cluster, _free(engine)
        for job in list(cluster.waiting.values())[:6]:
            if job.size <= len(free):
                taken, free = free[: job.size], free[job.size :]
                more: dict[str, Any] = (
                    {"mapping": {str(one): "0" for one in range(job.size)}} if pick.random() < 0.1 else {}
                )
                say("EXECUTE_JOB", job_id=job.id, alloc=_text(taken), **more)
        running, what = list(cluster.running), pick.random()
        if running and what < 0.1:
            say("KILL_JOB", job_ids=[pick.choice(running)])
        elif running and what < 0.15:
            say("CHANGE_JOB_STATE", job_id=pick.choice(running), job_state=pick.choice(self.STATES[2:]), kill_reason="")
        elif running and what < 0.2:
            say("SET_JOB_METADATA", job_id=pick.choice(running), metadata="seen")
        elif what < 0.3:
            say("CALL_ME_LATER", timestamp=now + 4.0)
        elif free and what < 0.4:
            say("SET_RESOURCE_STATE", resources=str(free[0]), state=pick.choice(("0", "1", "2", 0)))
        elif self._rich and what < 0.6:
            self._registered += 1
            prefix = pick.choice(("w0", "dyn"))
            profile = {"type": "delay", "delay": 3.0}
            new = {"id": f"{prefix}!n{self._registered}", "subtime": now, "res": 1, "profile": f"p{self._registered}"}
            if pick.random() < 0.5:
                say("REGISTER_PROFILE", workload_name=prefix, profile_name=new["profile"], profile=profile)
                say("REGISTER_JOB", job_id=new["id"], job=new)
            else:
                say("REGISTER_JOB", job_id=new["id"], job=new, profile=profile)
        elif self._rich and what < 0.65:
            say("QUERY", requests={"consumed_energy": {}})
        if self._rich and now > 30 and pick.random() < 0.5:
            say("NOTIFY", type="registration_finished")
        reply: dict[str, Any] = {"now": now + pick.choice((0, 0, 0, 1.5)), "events": events}
        if pick.random() < 0.2:
            reply |= {"leaves": None, "keeps": []}
        return json.dumps(reply).encode()


def native_run(setups: list[Setup], seed: int) -> Callable[[Tally, int], None]:
    """Return a function that carries out the native-dialect run of a given number."""

    def once(tally: Tally, number: int) -> None:
        pick = random.Random(f"{seed}:native:{number}")
        features = tuple(feature for feature in HELLO_FEATURES if pick.random() < 0.6)
        tally.where = f"seed {seed}, run {number}"
        peer = NativePeer(tally, Mutator(f"{seed}:native:{number}"), features)
        _simulated(tally, setups[number % len(setups)], peer, _TAKEN_OVER_AT if pick.random() < 0.3 else inf)

    return once


def batsim_run(setups: list[Setup], seed: int) -> Callable[[Tally, int], None]:
    """Return a function that carries out the Batsim-dialect run of a given number."""

    def once(tally: Tally, number: int) -> None:
        setup = setups[number % len(setups)]
        tally.where = f"seed {seed}, run {number}"
        assert setup.batsim is not None
        peer = BatsimPeer(tally, Mutator(f"{seed}:batsim:{number}"), setup.batsim.dynamic_jobs)
        _simulated(tally, setup, peer)

    return once


def _simulated(tally: Tally, setup: Setup, peer: _HostilePeer, taken_over_at: float = inf) -> None:
    """Carry out a run, and record a `Find` if it ends in an undocumented way.

    If ``taken_over_at`` (s) is finite, another scheduler takes over at that time.
    """
    history = History()
    taken_over = False

    def begun(simulation: Simulation) -> None:
        peer.engine = simulation.engine

    def between(simulation: Simulation) -> None:
        nonlocal taken_over
        simulation.engine.check_invariants()
        if simulation.engine.now >= taken_over_at and not taken_over:
            taken_over = True
            peer.taken_over(simulation.engine, history)

    tally.runs += 1
    try:
        failure: RunError | None = simulate(
            setup, peer, clock=lambda: 0.0, observers=[history], begun=begun, between=between
        ).failure
    except RunError as error:
        failure = error
    if failure is None:
        tally.ends["done"] += 1
        return
    tally.ends[failure.reason] += 1
    tally.check_text(failure)
    if failure.exit_code not in DOCUMENTED:
        tally.find(f"ends with exit code {failure.exit_code}: {failure}")
