"""The simulation loop, without input and output.

Its methods are ``advance() -> notice`` and ``apply(reply)``. At each instant, the engine handles all agenda entries in
order, sends a notice to the scheduler, and carries out the decisions in its reply. A decision with a later date waits
on the agenda. No notice is sent until the scheduler is ready again.
"""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, ClassVar, Final

from pipistrelle.protocol.base.errors import LocalProtocolError
from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.decisions import Decision
from pipistrelle.protocol.events import (
    Event,
    NoMoreJobs,
    SimulationBegins,
    SimulationBeginsData,
    SimulationEnds,
    SimulationEndsData,
)
from pipistrelle.protocol.fields import MAX_REJECTIONS, EndReason
from pipistrelle.protocol.messages import Notice, Reply
from pipistrelle.server.engine.agenda import CALL, DECISION, READY, REQUEUE, Handlers, Part
from pipistrelle.server.engine.arrivals import Arrivals
from pipistrelle.server.engine.clockwork import Clockwork
from pipistrelle.server.engine.lives import JobLives
from pipistrelle.server.engine.stalls import StallDetector, describe_waiting
from pipistrelle.server.engine.verdicts import Verdicts
from pipistrelle.server.errors import DecisionRefused, Illegal, SchedulerFailed

#: number of agenda entries handled between two checks whether the user wants to stop
_LOOK: Final = 2048


def table_of(*handlers: Handlers) -> dict[int, Callable[[Any], None]]:
    """Merge tables of event handlers.

    Raise RuntimeError if a class of events has two handlers.
    """
    table: dict[int, Callable[[Any], None]] = {}
    for some in handlers:
        for kind, handler in some.items():
            if kind in table:
                raise RuntimeError(f"class {kind} on the agenda has two handlers: {table[kind]} and {handler}")
            table[kind] = handler
    return table


class Engine(Kept):
    """A simulated cluster that a scheduler's decisions control.

    Save snapshots only between calls of `advance` and `apply`. They do not include observers or the last notice.

    Args:
        strict: whether an illegal decision ends the run (`DecisionRefused`) instead of being rejected.
        until: horizon (s), above 0. The run ends before any event at or after this time.
    """

    _kept: ClassVar[tuple[str, ...]] = (
        *("_begins", "_parts", "clockwork", "lives", "arrivals", "verdicts", "_dated", "_dated_so_far", "_told_at"),
        *("_settled", "_busy_until", "_rejected", "_stalls"),
    )

    def __init__(
        self,
        begins: SimulationBeginsData,
        clockwork: Clockwork,
        lives: JobLives,
        arrivals: Arrivals,
        verdicts: Verdicts,
        parts: Sequence[Part] = (),
        *,
        strict: bool = False,
        until: float = inf,
    ) -> None:
        self.cluster = clockwork.cluster
        self.lives = lives
        self.arrivals = arrivals
        self.clockwork = clockwork
        self._agenda = clockwork.agenda
        self.verdicts = verdicts
        self._parts = tuple(parts)
        self._strict = strict
        self._until = until
        #: called regularly while time passes without a notice; True ends the run as Ctrl-C does
        self.regularly: Callable[[], bool] = lambda: False
        self._begins: SimulationBeginsData | None = begins
        self._handlers = table_of(
            {DECISION: self._decide, READY: self._ready},
            lives.handlers(),
            arrivals.handlers(),
            verdicts.handlers(),
            *(part.handlers() for part in parts),
        )
        #: {number: (decision, number of the answered notice, index in the reply)} of decisions with a later date
        self._dated: dict[int, tuple[Decision, int, int]] = {}
        self._dated_so_far = 0
        self._told_at = -1.0
        #: number of free units at the end of the last instant
        self._settled = -1
        self._busy_until = 0.0
        self._rejected = 0
        self._ended: tuple[EndReason, str] = ("error", "")
        self._stalls = StallDetector(retries=lives.retries)
        #: whether notices have the time of the next event, and each event causes a notice
        self._lookahead = "lookahead" in clockwork.features

    @property
    def now(self) -> float:
        """Simulated time in seconds."""
        return self.clockwork.now

    def advance(self) -> Notice | None:
        """Advance time to the next notice and return it; None when the run is over.

        Raises:
            Stalled: the run would never end, for example because jobs wait and no event is left.
            KeyboardInterrupt: `regularly` returned True.
        """
        if self._begins is not None:
            return self._first_notice(self._begins)
        clockwork, arrivals, ledger, lives = self.clockwork, self.arrivals, self.cluster.ledger, self.lives
        agenda, handlers = self._agenda, self._handlers
        heap, now = agenda.heap, clockwork.now
        left = _LOOK
        while clockwork.stopped is None:
            drained = arrivals.drained
            if drained and not arrivals.exhausted:
                arrivals.tell_the_last()  # the last held job may have been rejected
            if clockwork.must_wake and now >= self._busy_until:
                return self._notice()
            if drained and arrivals.exhausted and self._all_done():
                return None
            entry = agenda.pop()
            if entry is None:
                if clockwork.outbox:  # the wake filter held these events back, but no other event is left
                    return self._notice()
                owed = clockwork.registering and clockwork.rules.waits_for_word
                self._stalls.nothing_to_come(clockwork.now, self.cluster, registering=owed)
                return None
            time, kind, _, subject = entry
            if time != now:
                if ledger.idle != self._settled or ledger.changed or lives.unsettled:
                    self._settle()
                if time >= self._until:
                    clockwork.now = self._until
                    return None
                clockwork.now = now = time
            handlers[kind](subject)
            if heap and heap[0][0] == now:
                agenda.happen(now, handlers)
            if self._lookahead:
                clockwork.must_wake = True
            left -= 1
            if not left:
                left = _LOOK
                if self.regularly():
                    raise KeyboardInterrupt
        return None

    def _first_notice(self, begins: SimulationBeginsData) -> Notice:
        self._begins = None
        now = self.clockwork.now
        for hook in self.cluster.hooks.begins:
            hook(now, begins.nb_resources)
        self.clockwork.tell(SimulationBegins(now, begins))
        notice = self._notice()
        self.arrivals.put_next()
        return Notice(notice.seq, notice.now, notice.events, self._next()) if self._lookahead else notice

    def _notice(self) -> Notice:
        clockwork = self.clockwork
        now = clockwork.now
        if now == self._told_at:
            self._stalls.same_instant(now, self.cluster)
        self._told_at = now
        if self.arrivals.exhausted and not self.cluster.running:
            self._stalls.idle(now, self.cluster)
        clockwork.seq += 1
        events, clockwork.outbox, clockwork.news = clockwork.outbox, clockwork.news, []
        clockwork.must_wake = bool(clockwork.outbox)
        self._rejected = 0
        return Notice(clockwork.seq, now, events, self._next() if self._lookahead else None)  # type: ignore[arg-type]

    def _next(self) -> float | None:
        """Return the time of the next event (s), for a scheduler that asked for it."""
        time = self._agenda.next_time()
        return None if time is None else min(time, self._until)

    def apply(self, reply: Reply) -> None:
        """Carry out the decisions of a reply.

        Decisions with a later date are put on the agenda.

        Raises:
            SchedulerFailed: the reply's ``now`` is before the notice's, or too many decisions are illegal.
            DecisionRefused: a decision is illegal and the engine is strict.
        """
        clockwork = self.clockwork
        now = clockwork.now
        if not now <= reply.now < inf:
            raise SchedulerFailed(
                "the reply is dated before its notice",
                where="$.now",
                expected=f"at least {now!r}",
                found=repr(reply.now),
                hint="Take the time from the notice, never from a clock.",
            )
        if reply.wake_when is not None or clockwork.when is not None or reply.wake != clockwork.wanted:
            clockwork.wake_on(reply.wake, reply.wake_when)
        self.cluster.keeps = reply.keeps
        events = reply.events
        busy_until = reply.now
        for index, decision in enumerate(events):
            if decision.timestamp <= now:
                self._carry_out(decision, reply.reply_to, index)
            else:
                # The codec of a socket rejects non-finite numbers; an in-process scheduler has no codec.
                if not decision.timestamp < inf:
                    raise LocalProtocolError("a decision's time is not a finite number", found=str(decision.timestamp))
                busy_until = max(busy_until, decision.timestamp)
                self._dated_so_far += 1
                self._dated[self._dated_so_far] = (decision, reply.reply_to, index)
                self._agenda.put(decision.timestamp, DECISION, self._dated_so_far)
        if busy_until > now:
            self._busy_until = busy_until
            self._agenda.put(busy_until, READY, 0)
        if events:
            heap = self._agenda.heap
            if heap and heap[0][0] == now and clockwork.stopped is None:
                self._agenda.happen(now, self._handlers)  # entries that the decisions added for this instant

    def _ready(self, alarm: int) -> None:
        if alarm:
            self.clockwork.look_again()

    def _decide(self, number: int) -> None:
        self._carry_out(*self._dated.pop(number))

    def _carry_out(self, decision: Decision, reply_to: int, index: int) -> None:
        now = self.clockwork.now
        try:
            if decision.timestamp < now:
                text = f"the decision is dated {decision.timestamp!r}, before the notice's now, {now!r}"
                raise Illegal("past_time", text)
            self.verdicts.table[type(decision)](decision)
        except Illegal as illegal:
            rejected = illegal.event(now, decision, reply_to, index)
        else:
            for hook in self.cluster.hooks.decided:
                hook(now, decision, None)
            return
        data = rejected.data
        for hook in self.cluster.hooks.decided:
            hook(now, decision, data)
        if self._strict:
            raise DecisionRefused(
                f"illegal decision ({data.code}): {data.message}",
                where=f"decision {index} ({data.decision}) of the reply to notice {reply_to}",
                hint=self.clockwork.rules.strict_hint,
            )
        self._rejected += 1
        if self._rejected > MAX_REJECTIONS:
            raise SchedulerFailed(
                "too many decisions were illegal before the next notice",
                where=f"the reply to notice {reply_to}",
                expected=f"at most {MAX_REJECTIONS:,}",
                found=f"one more ({data.code}): {data.message}",
            )
        self.clockwork.tell(rejected)

    def _settle(self) -> None:
        ledger = self.cluster.ledger
        self._settled, ledger.changed = ledger.idle, False
        idle, down = self.lives.idle_and_down()
        for hook in self.cluster.hooks.settled:
            hook(self.clockwork.now, idle, down)

    def introduction(self) -> Notice:
        """Return the first notice for a scheduler that will take over this run."""
        assert self._begins is not None
        return Notice(1, 0.0, [SimulationBegins(0.0, self._begins)])

    def hand_over(self, past: Callable[[], list[Event]]) -> None:
        """Replace the scheduler by another one, which decides from now on.

        Call this between a reply and the next notice, after sending the new scheduler its first notice. Wake-up calls,
        dated decisions and wake conditions of the previous scheduler are dropped. ``past`` returns the events with
        which the second notice to the new scheduler begins.
        """
        clockwork = self.clockwork
        for entry in self._agenda.entries().values():
            if entry[1] in (CALL, DECISION, READY):
                self._agenda.cancel(entry)
        self.verdicts.forget_calls()
        self._dated.clear()
        self._busy_until, self._rejected, self._told_at = clockwork.now, 0, -1.0
        self._stalls = StallDetector(retries=self.lives.retries)
        self.cluster.keeps = ()
        self.arrivals.label(self.cluster.waiting, self.cluster.running, self.cluster.coming)
        clockwork.wake_on(None)
        clockwork.registering = "dynamic_jobs" in clockwork.features
        clockwork.seq, clockwork.outbox, clockwork.news, clockwork.must_wake = 1, list(past()), [], True
        for part in self._parts:
            part.tell_present()
        if self.arrivals.exhausted:
            clockwork.tell(NoMoreJobs(clockwork.now))

    def _all_done(self) -> bool:
        cluster, clockwork = self.cluster, self.clockwork
        if cluster.running or cluster.waiting or clockwork.pending or clockwork.must_wake:
            return False
        if clockwork.rules.waits_for_calls and clockwork.now < self._busy_until:
            return False
        # A scheduler that may register jobs can still add work.
        return not clockwork.registering

    def end(self, reason: EndReason, message: str = "") -> Notice:
        """Return the last notice, with the reason why the run ended."""
        clockwork = self.clockwork
        if reason == "completed" and (clockwork.stopped is not None or clockwork.now == self._until):
            reason, message = "stopped", clockwork.stopped or ""
            if clockwork.now == self._until:  # a STOP decision ends the run before the horizon
                reason, message = "horizon", f"simulated time {clockwork.now!r} is the run's horizon"
            if self.cluster.waiting or self.cluster.running:
                message = f"{message} ({describe_waiting(self.cluster)})"
        self._ended = (reason, message)
        clockwork.seq += 1
        ends = SimulationEnds(clockwork.now, SimulationEndsData(reason, message))
        return Notice(clockwork.seq, clockwork.now, [*clockwork.outbox, ends])  # type: ignore[list-item]

    def close(self) -> None:
        """Report the end of the run to the observers, with the reason given to `end`."""
        failed: Exception | None = None
        # Before the first reply the observers have not seen the beginning.
        ledger = self.cluster.ledger
        if self.clockwork.seq > 1 and (ledger.idle != self._settled or self.lives.unsettled or ledger.changed):
            try:
                self._settle()
            except Exception as error:
                failed = error
        for hook in self.cluster.hooks.ends:  # every observer is called, even if another fails
            try:
                hook(self.clockwork.now, *self._ended)
            except Exception as error:
                failed = failed or error
        if failed is not None:
            raise failed

    def check_invariants(self) -> None:
        """Assert that units, jobs and agenda agree; tests call this at every step."""
        self.cluster.check_invariants()
        self.lives.check_invariants()
        coming = {entry[3] for entry in self._agenda.entries().values() if entry[1] == REQUEUE}
        assert coming == self.cluster.coming.keys(), f"jobs to requeue and agenda differ: {coming}"
