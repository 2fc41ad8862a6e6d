"""Send hostile frames to our schedulers in both dialects.

Hostile frames are malformed or unexpected. Each frame passes through the session, the runtime and the policy.
"""

import json
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from math import inf
from typing import Any

from hostile import runs
from hostile.history import History
from hostile.mutator import Mutator, Words
from hostile.tables import (
    BATSIM_DATA,
    BATSIM_EVENTS,
    EVENTS,
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
from pipistrelle.protocol.base.errors import PipistrelleError, RemoteProtocolError
from pipistrelle.protocol.batsim import codec as batsim_codec
from pipistrelle.protocol.batsim.session import BatsimSchedulerSession
from pipistrelle.protocol.events import DecisionRejected
from pipistrelle.protocol.messages import HelloData, Notice, Refused, Restore, Save, Welcome, WelcomeData
from pipistrelle.protocol.session import SchedulerSession, check_times
from pipistrelle.schedulers.catalogue.names import OWN, library_names
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.policy.errors import PolicyFailed
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.schedulers.wire.batsim.runtime import BatsimRuntime
from pipistrelle.schedulers.wire.state import give_state, take_back
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import Simulation, simulate
from pipistrelle.server.transport.in_process import InProcessTransport

_KINDS = (*EVENTS, *BATSIM_EVENTS, "EXECUTE_JOB", *STRANGE_KINDS)
#: simulated time at which a second scheduler takes over a run (s)
_TAKEN_OVER_AT = 16.0
#: fingerprint that a saved state carries, in place of one of the policy's options
_MARK = "hostile"
#: number of genuine notices that follow a hostile one
_AFTER = 4


@dataclass(frozen=True)
class Talk:
    """All messages that a scheduler received from the server in an undisturbed run.

    ``frames`` holds the notices as bytes, ``notices`` the same notices decoded.
    """

    scheduler: str
    hello: HelloData
    welcome: WelcomeData
    frames: list[bytes]
    notices: list[Notice]


class _Listening(InProcessTransport):
    """A transport to a scheduler in this process that records the notices.

    Each notice is recorded as bytes and in decoded form.
    """

    def __init__(self, runtime: Runtime, *, batsim: bool) -> None:
        super().__init__(runtime)
        self._batsim = batsim
        self.frames: list[bytes] = []
        self.notices: list[Notice] = []
        self.agreed: tuple[HelloData, WelcomeData] | None = None

    def greet(self, run_id: str, server: str) -> tuple[HelloData, WelcomeData]:
        self.agreed = super().greet(run_id, server)
        return self.agreed

    def send(self, notice: Notice) -> None:
        super().send(self._heard(notice))

    def farewell(self, notice: Notice) -> None:
        self._heard(notice)

    def _heard(self, notice: Notice) -> Notice:
        if self._batsim:
            frame = batsim_codec.encode_notice(notice)
            told = batsim_codec.decode_notice(frame, notice.seq, profiles=True)
        else:
            frame, told = codec.encode(notice), notice
        self.frames.append(frame)
        self.notices.append(told)
        return told

    def hand_over(self, runtime: Runtime) -> None:
        """Replace the scheduler by ``runtime``.

        Of the recording, only the first notice is kept. The new scheduler receives the WELCOME and the first notice
        here.
        """
        assert self.agreed is not None
        runtime.welcome(self.agreed[1])
        runtime.answer(self.notices[0])
        self.scheduler = runtime
        del self.frames[1:], self.notices[1:]


def new_runtime(scheduler: str, *, batsim: bool) -> Runtime:
    """Return a new runtime of the named scheduler.

    A native runtime also requests the feature ``cancellations``.
    """
    policy = make_policy(scheduler)
    return BatsimRuntime(policy) if batsim else Runtime(policy, cancellations=True)


def heard(scheduler: str, setup: Setup, *, taken_over_at: float = inf) -> Talk:
    """Run a simulation undisturbed and return the messages to its scheduler.

    If ``taken_over_at`` (s) is finite, a second scheduler of the same kind takes over at that time. The messages are
    then those to the second scheduler, which include the past events.
    """
    batsim = setup.batsim is not None
    transport = _Listening(new_runtime(scheduler, batsim=batsim), batsim=batsim)
    history = History()
    taken_over = False

    def between(simulation: Simulation) -> None:
        nonlocal taken_over
        if simulation.engine.now >= taken_over_at and not taken_over:
            taken_over = True
            transport.hand_over(new_runtime(scheduler, batsim=batsim))
            simulation.engine.hand_over(history.events)

    result = simulate(setup, transport, clock=lambda: 0.0, observers=[history], between=between)
    assert result.failure is None, result.failure
    assert transport.agreed is not None
    return Talk(scheduler, *transport.agreed, transport.frames, transport.notices)


class Victim:
    """A scheduler under test.

    It receives genuine notices, and hostile (malformed or unexpected) frames between them.

    Args:
        talk: the genuine messages of the run.
        tally: counts what becomes of the hostile frames.
        mutator: makes the hostile frames.
        batsim: whether the dialect is Batsim's.
    """

    def __init__(self, talk: Talk, tally: Tally, mutator: Mutator, *, batsim: bool) -> None:
        self.talk = talk
        self.tally = tally
        self.mutator = mutator
        self.batsim = batsim
        self.session: Any = BatsimSchedulerSession() if batsim else SchedulerSession()
        self.runtime = self._new()

    def _new(self) -> Runtime:
        runtime = new_runtime(self.talk.scheduler, batsim=self.batsim)
        runtime.welcome(self.talk.welcome)
        return runtime

    def greet(self) -> None:
        """Receive some malformed or unexpected greetings, then the genuine WELCOME.

        Each of these greetings is tried in a new session.
        """
        hello, pick = self.talk.hello, self.mutator.random
        good = codec.encode(Welcome(self.talk.welcome))
        self.mutator.words = Words(HELLO_FEATURES, frames=vectors("greeting"))
        for _ in range(pick.choice((0, 1, 2, 6))):
            frame = self.mutator.mutate(good if pick.random() < 0.8 else pick.choice(vectors("greeting")))
            session = SchedulerSession()
            session.send_hello(hello)
            with self.tally.trial(frame):
                try:
                    greeting = session.receive_greeting(frame)
                except RemoteProtocolError as error:
                    self.tally.refuse(error, RemoteProtocolError)
                    continue
                self.tally.taken += 1
                if not isinstance(greeting, Refused):
                    self._new().welcome(greeting.data)
        self.session.send_hello(hello)
        self.session.receive_greeting(good)
        self._send(None)

    def _send(self, reply: Any) -> None:
        if reply is None:
            self.session.state = "SERVER_TURN"
        else:
            self.session.send_reply(reply)

    def hear(self, at: int) -> None:
        """Receive some hostile frames, then a genuine notice.

        Hostile frames are malformed or unexpected. ``at`` is the number of the notice (from 0).
        """
        frames, pick = self.talk.frames, self.mutator.random
        good, notice = frames[at], self.talk.notices[at]
        self.mutator.words = Words(
            [job.id for job in self._jobs()[:8]] + ["w0!1", "w0!99"],
            [str(job.alloc) for job in self._jobs()[:3] if job.alloc],
            (notice.now, notice.now, notice.now + 1, notice.now - 1, 1e18),
            [*frames[max(0, at - 3) : at + 3], *vectors("notice")],
            _KINDS,
        )
        self.tally.kinds.update(kinds_in(good))
        for _ in range(pick.choice((0, 1, 2, 4)) if at else 20):
            frame = self.mutator.mutate(good) if pick.random() < 0.85 else self._out_of_place(notice)
            with self.tally.trial(frame):
                session = copy(self.session)
                try:
                    told = session.receive_notice(frame)
                except RemoteProtocolError as error:
                    self.tally.refuse(error, RemoteProtocolError)
                    if session != self.session:
                        self.tally.find("a refused frame has changed the session")
                    continue
                self.tally.taken += 1
                if isinstance(told, Notice):
                    self._goes_on(told, at)
                else:
                    self._instead(session, told)
        answer = self.session.receive_notice(good)
        reply = self.runtime.answer(answer)
        if self.runtime.ended is None:
            self._send(reply)

    def _out_of_place(self, notice: Notice) -> bytes:
        """Return a frame that the server would not send at this moment.

        It is an earlier or later notice, or a notice with the least tried type of event.
        """
        pick, tried = self.mutator.random, self.tally.kinds
        if pick.random() < 0.3:
            frame = pick.choice(self.talk.frames)
        elif self.batsim:
            kind = least_tried(BATSIM_DATA.keys() & {*BATSIM_EVENTS}, tried)
            event = {"timestamp": notice.now, "type": kind, "data": BATSIM_DATA[kind]}
            frame = json.dumps({"now": notice.now, "events": [event]}).encode()
        else:
            frame = pick.choice(with_kind("notice", least_tried(EVENTS, tried)))
        tried.update(kinds_in(frame))
        frame = dated(frame, notice.now, **({} if self.batsim else {"seq": notice.seq}))
        return self.mutator.mutate(frame) if pick.random() < 0.5 else frame

    def _jobs(self) -> list[Any]:
        view = self.runtime.view
        return [] if view is None else [*view.waiting, *view.running]

    def _goes_on(self, told: Notice, at: int) -> None:
        """Give a notice that the session accepted to a copy of this scheduler.

        The notice is malformed or unexpected. Some genuine notices follow. The copy may report an error of the server;
        every other exception is recorded as a `Find`.
        """
        runtime = self._new()
        if not self.batsim and at:
            runtime.restore(self.runtime.state())
        else:  # schedulers cannot save their state in Batsim's dialect
            for notice in self.talk.notices[:at]:
                runtime.answer(notice)
        try:
            self._hears(runtime, told)
            # The genuine notice either follows the hostile one or is replaced by it.
            begin = at + self.mutator.random.choice((0, 1, 1))
            now = told.now
            for notice in self.talk.notices[begin : begin + _AFTER]:
                if runtime.ended is not None:
                    return
                check_times(notice, now)  # as the session would
                now = notice.now
                self._hears(runtime, notice)
        except RemoteProtocolError as error:
            self.tally.refused += 1
            self.tally.check_text(error)

    def _instead(self, session: Any, told: Refused | Save | Restore) -> None:
        """Process a message that the session accepted in place of a notice.

        SAVE and RESTORE are processed; REFUSED is ignored.
        """
        if isinstance(told, Save):
            session.send_saved(give_state(self.runtime, told.data.seq, _MARK))
        elif isinstance(told, Restore):
            try:
                take_back(self._new(), bytes(told.data.state), _MARK, told.data.seq)
            except PolicyFailed as error:
                self.tally.check_text(error)

    def _hears(self, runtime: Runtime, notice: Notice) -> None:
        try:
            reply = runtime.answer(notice)
            if self.batsim:
                batsim_codec.encode_reply(reply, why=True)
            else:
                codec.encode(reply)
        except PolicyFailed as error:
            if not any(isinstance(event, DecisionRejected) for event in notice.events):
                cause = error.__cause__
                self.tally.find(f"{self.talk.scheduler}: {error} ({type(cause).__name__})")
            self.tally.check_text(error)


def scheduler_run(seed: int, *, batsim: bool) -> Callable[[Tally, int], None]:
    """Return a function that tests one scheduler in one run.

    The run number selects the scheduler and the run.
    """
    setups = (
        [runs.batsim(one) for one in (False, True)] if batsim else [runs.native(one, 500.0) for one in (False, True)]
    )
    #: times at which the scheduler takes over (s); infinity if it has the run from the start
    times = (inf,) if batsim else (inf, _TAKEN_OVER_AT)
    cases = [(name, setup, since) for setup in setups for name in names_for(setup) for since in times]
    talks: dict[int, Talk] = {}

    def once(tally: Tally, number: int) -> None:
        which = number % len(cases)
        name, setup, since = cases[which]
        talk = talks.get(which)
        if talk is None:
            talk = talks[which] = heard(name, setup, taken_over_at=since)
        mutator = Mutator(f"{seed}:{batsim}:{number}")
        victim = Victim(talk, tally, mutator, batsim=batsim)
        tally.runs += 1
        tally.where = f"seed {seed}, run {number}, {name}, greeting"
        if not batsim:
            victim.greet()
        for at in range(len(talk.frames)):
            tally.where = f"seed {seed}, run {number}, {name}, notice {at + 1}"
            victim.hear(at)
            if tally.done:
                return

    return once


def names_for(setup: Setup) -> list[str]:
    """Return the names of the schedulers that can complete this run.

    Schedulers that need further options are left out.
    """
    return [name for name in (*library_names(), *OWN) if _runs(name, setup)]


def _runs(name: str, setup: Setup) -> bool:
    try:
        heard(name, setup)
    except PipistrelleError:
        return False
    return True
