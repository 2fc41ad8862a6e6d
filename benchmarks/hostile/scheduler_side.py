"""Hostile messages to a scheduler, in both dialects: through its sessions to its runtime and policies."""

import json
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

from hostile import runs
from hostile.mutator import Mutator, Words
from hostile.tally import Tally

from pipistrelle.protocol import codec
from pipistrelle.protocol.base.errors import RemoteProtocolError
from pipistrelle.protocol.batsim import codec as batsim_codec
from pipistrelle.protocol.batsim.session import BatsimSchedulerSession
from pipistrelle.protocol.events import DecisionRejected
from pipistrelle.protocol.messages import HelloData, Notice, Refused, WelcomeData
from pipistrelle.protocol.session import SchedulerSession
from pipistrelle.schedulers.catalogue.names import library_names
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.policy.errors import PolicyFailed
from pipistrelle.schedulers.policy.runtime import Runtime
from pipistrelle.schedulers.wire.batsim.runtime import BatsimRuntime
from pipistrelle.server.setup import Setup
from pipistrelle.server.simulation import simulate
from pipistrelle.server.transport.in_process import InProcessTransport

KINDS = (
    *(
        "JOB_SUBMITTED",
        "JOB_COMPLETED",
        "JOB_KILLED",
        "REQUESTED_CALL",
        "NO_MORE_JOBS",
        "NODES_FAILED",
        "NODES_REPAIRED",
        "JOB_STARTED",
    ),
    *("MAINTENANCE_ANNOUNCED", "MAINTENANCE_BEGINS", "MAINTENANCE_ENDS", "DECISION_REJECTED", "SIMULATION_BEGINS"),
    *("SIMULATION_ENDS", "EXECUTE_JOB", "NOTIFY", "QUERY", "ANSWER", "RESOURCE_STATE_CHANGED", "job_submitted"),
)
WELCOME = b'{"type": "WELCOME", "data": {"protocol": 1, "features": [], "run_id": "0123456789abcdef", "server": "s"}}'
#: so many notices of the true server a scheduler is told after one that was hostile
_AFTER = 4


@dataclass(frozen=True)
class Talk:
    """What a server says to a scheduler, frame by frame, in a run with nothing wrong."""

    scheduler: str
    welcome: WelcomeData
    frames: list[bytes]
    notices: list[Notice]


class _Listening(InProcessTransport):
    """Keeps what is said, as it stands on the wire."""

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


def heard(scheduler: str, setup: Setup) -> Talk:
    """Return what a scheduler is told in a run."""
    batsim = setup.batsim is not None
    runtime = BatsimRuntime(make_policy(scheduler)) if batsim else Runtime(make_policy(scheduler))
    transport = _Listening(runtime, batsim=batsim)
    result = simulate(setup, transport, clock=lambda: 0.0)
    assert result.failure is None, result.failure
    assert transport.agreed is not None
    return Talk(scheduler, transport.agreed[1], transport.frames, transport.notices)


class Victim:
    """One run's scheduler, that is told the truth up to some notice, and something hostile instead of it."""

    def __init__(self, talk: Talk, tally: Tally, mutator: Mutator, *, batsim: bool) -> None:
        self.talk = talk
        self.tally = tally
        self.mutator = mutator
        self.batsim = batsim
        self.session: Any = BatsimSchedulerSession() if batsim else SchedulerSession()
        self.runtime = self._new()

    def _new(self) -> Runtime:
        policy = make_policy(self.talk.scheduler)
        runtime = BatsimRuntime(policy) if self.batsim else Runtime(policy)
        runtime.welcome(self.talk.welcome)
        return runtime

    def greet(self) -> None:
        """Say HELLO, and hear some answers that are none."""
        hello = self.runtime.hello()
        for _ in range(self.mutator.random.choice((0, 1, 2, 6))):
            good = WELCOME.replace(b"[]", json.dumps(list(hello.features)).encode())
            frame = self.mutator.mutate(good)
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
        self.session.receive_greeting(codec.encode(codec.decode_greeting(WELCOME)))
        self._send(None)

    def _send(self, reply: Any) -> None:
        if reply is None:
            self.session.state = "SERVER_TURN"
        else:
            self.session.send_reply(reply)

    def hear(self, at: int) -> None:
        """Hear some hostile frames instead of the ``at``-th, and then that."""
        frames, pick = self.talk.frames, self.mutator.random
        good, notice = frames[at], self.talk.notices[at]
        self.mutator.words = Words(
            [job.id for job in self._jobs()[:8]] + ["w0!1", "w0!99"],
            [str(job.alloc) for job in self._jobs()[:3] if job.alloc],
            (notice.now, notice.now, notice.now + 1, notice.now - 1, 1e18),
            frames[max(0, at - 3) : at + 3],
            KINDS,
        )
        for _ in range(pick.choice((0, 1, 2, 4)) if at else 20):
            frame = self.mutator.mutate(good)
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
                if isinstance(told, Refused):
                    continue
                self._goes_on(told, at)
        answer = self.session.receive_notice(good)
        reply = self.runtime.answer(answer)
        if self.runtime.ended is None:
            self._send(reply)

    def _jobs(self) -> list[Any]:
        view = self.runtime.view
        return [] if view is None else [*view.waiting, *view.running]

    def _goes_on(self, told: Notice, at: int) -> None:
        """Let a scheduler like this one hear that, and then the truth; it may end with an error of the server's."""
        runtime = self._new()
        if not self.batsim and at:
            runtime.restore(self.runtime.state())
        else:  # in Batsim's dialect it gives no state
            for notice in self.talk.notices[:at]:
                runtime.answer(notice)
        try:
            self._hears(runtime, told)
            # The true one was said as well, or that in its place.
            begin = at + self.mutator.random.choice((0, 1, 1))
            for notice in self.talk.notices[begin : begin + _AFTER]:
                if runtime.ended is not None:
                    return
                self._hears(runtime, notice)
        except RemoteProtocolError as error:
            self.tally.refused += 1
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
    """Return what carries out one run, by its number: schedulers take turns."""
    setups = (
        [runs.batsim(one) for one in (False, True)] if batsim else [runs.native(one, 500.0) for one in (False, True)]
    )
    names = [name for name in library_names() if _runs(name, setups[0])]
    talks: dict[tuple[str, int], Talk] = {}

    def once(tally: Tally, number: int) -> None:
        name, which = names[number % len(names)], number // len(names) % len(setups)
        if (name, which) not in talks:
            talks[name, which] = heard(name, setups[which])
        talk = talks[name, which]
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


def _runs(name: str, setup: Setup) -> bool:
    """Tell whether a scheduler needs no more than a name."""
    try:
        heard(name, setup)
    except Exception:
        return False
    return True
