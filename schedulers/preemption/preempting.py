"""Preemption as a part of a policy: around any backfilling rule, under any order, with any placement."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, cast

from pipistrelle.protocol.fields import PreemptMode
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.placement.pickers import picked
from pipistrelle.schedulers.policy.interfaces import Backfill, Placement, state_of
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.policy.windows import Window
from pipistrelle.schedulers.preemption.options import PreemptionOptions, PreemptionRules
from pipistrelle.schedulers.preemption.victims import Candidate, preempt_for

#: a job that was started at this very instant can be preempted so much later, in seconds
_SOON: Final = 1.0


class KeptUnits(NamedTuple):
    """A waiting job, the units that it will start on, and the ids of the jobs that go for it."""

    job: SchedulerJob
    units: NodeSet
    victims: tuple[str, ...]


class Preempting:
    """Takes units from running jobs for waiting ones; a backfilling rule decides of all else.

    Before the rule is asked, the waiting jobs that may preempt are looked at, those of the highest tier first, then in
    the order of the queue. Each starts on free units if they will do, also on those that a reservation of the rule
    counts on; else jobs are preempted for it (`choose`), and until these have gone its units are kept for it in a
    window. The first that cannot be helped ends that: nobody preempts past it.

    Parameters
    ----------
    rule
        the backfilling rule, and ``anew`` makes another such: what it has promised does not hold any more then.
    options
        who may preempt whom, and how.
    where
        what says so, for messages.
    """

    #: what it wants of the protocol
    features = ("labels", "preemption")

    def __init__(
        self, rule: Backfill, anew: Callable[[], Backfill], options: PreemptionOptions, where: str | None = None
    ) -> None:
        self.rule = rule
        self._anew = anew
        self._options = options
        self._where = where
        self._rules = PreemptionRules(options, where)
        self._view: View | None = None
        #: {number: job} of those that wait and may preempt others
        self._able: dict[int, SchedulerJob] = {}
        #: {number: what is kept for the job}
        self._promises: dict[int, KeptUnits] = {}
        #: when a call is due that was asked for (s); it lies in the past if none was
        self._due = -1.0

    def schedule(self, view: View, placement: Placement) -> None:
        """Let those start that may preempt, take units away for them, and let the rule do the rest."""
        if view is not self._view:
            self._begin(view)
        for job in view.arrivals:
            if self._rules.may_ever(job):
                self._able[job.number] = job
        for job in view.cancelled:
            self._able.pop(job.number, None)
        acted = self._keep_promises(view)
        acted |= self._help_all(view, placement)
        if acted:
            self.rule = self._anew()
            view.released = True
        self.rule.schedule(view, placement)
        view.wake = None  # whoever comes may preempt somebody

    def reservation(self, job: SchedulerJob) -> float | None:
        """Return by when (s) a waiting job will start, as the rule tells; None if it does not tell."""
        tell = getattr(self.rule, "reservation", None)
        when: float | None = None if tell is None else tell(job)
        return when

    def state(self) -> dict[str, Any]:
        """Return the rule's state, and what is kept for whom: in full where that one does not wait any more."""
        waiting = set() if self._view is None else {job.id for job in self._view.waiting.each()}
        promises = [
            [job.id if job.id in waiting else job.state(), str(units), list(victims)]
            for job, units, victims in self._promises.values()
        ]
        return {"rule": state_of(self.rule, "backfilling rule"), "promises": promises, "due": self._due}

    def restore(self, state: dict[str, Any], view: View, placement: Placement) -> None:
        """Go on from a state, in a view that is as it was then."""
        self._begin(view)
        waiting = {job.id: job for job in view.waiting.each()}
        arrivals = {job.number for job in view.arrivals}
        for job in sorted(waiting.values(), key=lambda job: job.number):
            if job.number not in arrivals and self._rules.may_ever(job):
                self._able[job.number] = job
        changes = view.windows.changes
        for told, units, victims in state["promises"]:
            # The rule may have started it elsewhere since, it may even have ended by now, or have been cancelled.
            job = waiting[told] if isinstance(told, str) else SchedulerJob.restored(told)
            promise = KeptUnits(job, NodeSet.parse(units), tuple(victims))
            self._promises[promise.job.number] = promise
            self._guard(view, promise)
        view.windows.changes = changes
        self._due = state["due"]
        cast(Any, self.rule).restore(state["rule"], view, placement)

    def _begin(self, view: View) -> None:
        """Forget the run before; PolicyError if nobody can preempt anybody on this machine."""
        self._view, self._able, self._promises, self._due = view, {}, {}, -1.0
        self._rules = PreemptionRules(self._options, self._where)
        platform = view.begins.platform
        classes = () if platform is None else platform.classes
        self._rules.learn_classes({one.name: one.priority for one in classes})

    # -- those for whom others go -----------------------------------------------------------------------------------

    def _keep_promises(self, view: View) -> bool:
        """Start those whose units are free by now; forget what cannot be kept. Tell whether anything has changed."""
        changed = False
        for number, promise in list(self._promises.items()):
            job, units = promise.job, promise.units
            if number in self._able and job.waits and self._is_open(view, promise):
                if view.free.missing(units):
                    self._guard(view, promise)
                    continue
                view.free.remove(units)
                view.start(job, units, f"preempts {' '.join(promise.victims)}")
            del self._promises[number]
            view.windows.remove(_name(job))
            changed = True
        return changed

    @staticmethod
    def _is_open(view: View, promise: KeptUnits) -> bool:
        """Tell whether a job may still have the units that are kept for it."""
        return promise.units.isdisjoint(view.unavailable | view.closed(promise.job))

    def _guard(self, view: View, promise: KeptUnits) -> None:
        """Let nobody else have the units of a job, for as long as it would run from now on; again when that is over."""
        window = view.windows.get(_name(promise.job))
        if window is not None and window.end > view.now:
            return
        graces = [self._rules.terms(job).grace for job in view.running if job.id in promise.victims]
        end = view.now + max(graces, default=0.0) + max(promise.job.occupies, _SOON)
        admitted = promise.job
        view.windows.add(Window(_name(promise.job), view.now, end, promise.units, lambda job: job is admitted))

    # -- those that wait --------------------------------------------------------------------------------------------

    def _help_all(self, view: View, placement: Placement) -> bool:
        """Start jobs, or have others go for them, in turn; tell whether anything has changed."""
        for number in [number for number, job in self._able.items() if not job.waits]:
            del self._able[number]
        if not self._able:
            return False
        changed = False
        waiting = sorted(self._able.values(), key=lambda job: job.number)
        for job in sorted(view.waiting.in_order(waiting), key=lambda job: -self._rules.tier(job)):
            if job.number in self._promises:
                continue
            if not self._help(view, placement, job):
                break
            changed = True
        return changed

    def _help(self, view: View, placement: Placement, job: SchedulerJob) -> bool:
        """Start a job, or have others go for it; tell whether either could be done."""
        free = view.open_to(job)
        units = self._units_in(free, view, placement, job)
        if units is not None:
            view.free.remove(units)
            view.start(job, units)
            return True
        candidates = self._candidates(view, job)
        by_count = placement.fits_by_count and not job.by_nodes
        missing = job.size - len(free)

        def fits(some: Sequence[Candidate]) -> bool:
            if sum(one.worth for one in some) < missing:
                return False
            return by_count or self._units_in(_joined(free, some), view, placement, job) is not None

        rules = self._rules
        terms = cast(Callable[[SchedulerJob], tuple[PreemptMode, float]], rules.terms)  # of candidates none is 'off'
        chosen = preempt_for(view, job, candidates, fits, terms, youngest_first=rules.youngest_first)
        if chosen is None:
            return False
        units = self._units_in(_joined(free, chosen), view, placement, job)
        assert units is not None, f"{job.id} fits, but finds no units"
        promise = KeptUnits(job, units, tuple(one.job.id for one in chosen))
        self._promises[job.number] = promise
        self._guard(view, promise)
        return True

    @staticmethod
    def _units_in(units: NodeSet, view: View, placement: Placement, job: SchedulerJob) -> NodeSet | None:
        return None if len(units) < job.size else picked(placement, job, units, view.machine)

    def _candidates(self, view: View, job: SchedulerJob) -> list[Candidate]:
        """Return whom a job may preempt now; ask to be called when more of them may be preempted."""
        found: list[Candidate] = []
        kept = view.unavailable | view.closed(job)
        earliest, going = None, view.going
        for other in view.running:
            if other.id in going or not self._rules.may(job, other):
                continue
            due = other.start + self._rules.exempt
            if due <= other.start:
                due = other.start + (_SOON if other.start == view.now else 0.0)
            if due > view.now:
                earliest = due if earliest is None else min(earliest, due)
                continue
            units = other.alloc - kept
            if units:
                found.append(Candidate(other, self._rules.tier(other), units))
        if earliest is not None and not view.now < self._due <= earliest:
            self._due = earliest
            view.call_me_later(earliest)
        return found


def _joined(units: NodeSet, candidates: Sequence[Candidate]) -> NodeSet:
    for one in candidates:
        units |= one.units
    return units


def _name(job: SchedulerJob) -> str:
    return f"preemption for {job.id}"
