"""Preemption in front of any backfilling rule, with any order and placement."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, cast

from pipistrelle.platforms.resources.shape import Takes
from pipistrelle.platforms.resources.takes import parsed_takes, plain_takes
from pipistrelle.protocol.fields import PreemptMode
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.placement.pickers import picked
from pipistrelle.schedulers.policy.interfaces import Backfill, Placement, state_of
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.policy.windows import Window
from pipistrelle.schedulers.preemption.nodes import fit_without, is_free
from pipistrelle.schedulers.preemption.options import PreemptionOptions, PreemptionRules
from pipistrelle.schedulers.preemption.victims import Candidate, Fits, preempt_for
from pipistrelle.schedulers.sharing.open_nodes import OpenNodes, opened
from pipistrelle.schedulers.sharing.rules import on_nodes

#: a job that starts now can be preempted after this time, s
_SOON: Final = 1.0


class KeptUnits(NamedTuple):
    """The units kept free for a queued job until the jobs preempted for it have ended.

    Attributes:
        units: the units kept free; if jobs share nodes, the nodes on which something is kept free.
        victims: ids of the jobs that are being preempted for it.
        takes: what the job will take of shared nodes.
    """

    job: SchedulerJob
    units: NodeSet
    victims: tuple[str, ...]
    takes: Takes = ()


class Preempting:
    """A backfilling rule that first preempts running jobs, then applies another rule.

    Waiting jobs that may preempt are tried first: highest tier first, then in the order of the queue. Such a job starts
    on free units if there are enough, even on units that the rule has reserved. Otherwise running jobs are preempted
    for it (`choose`), and a window reserves the victims' units for it until the victims have ended. The first job for
    which neither is possible ends the attempt: no job behind it preempts.

    Args:
        rule: the backfilling rule.
        anew: creates a new rule of this kind, because a preemption invalidates the old rule's reservations.
        options: which job may preempt which, and how.
        where: source of the options, for messages.
    """

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
        #: {number: job} of waiting jobs that may preempt others
        self._able: dict[int, SchedulerJob] = {}
        #: {number: the units kept for the job}
        self._promises: dict[int, KeptUnits] = {}
        #: time (s) of the pending call; past if there is none
        self._due = -1.0

    def on_nodes(self) -> Backfill:
        """Return this rule's version for machines on which jobs share nodes."""
        return PreemptingOnNodes(on_nodes(self.rule), lambda: on_nodes(self._anew()), self._options, self._where)

    def schedule(self, view: View, placement: Placement) -> None:
        """Start jobs that may preempt, or preempt others for them; then apply the rule."""
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
        view.wake = None  # any arrival may preempt a job

    def reservation(self, job: SchedulerJob) -> float | None:
        """Return the latest expected start (s) of a waiting job.

        Return None if the job has no reservation under the rule.
        """
        tell = getattr(self.rule, "reservation", None)
        when: float | None = None if tell is None else tell(job)
        return when

    def state(self) -> dict[str, Any]:
        """Return the state of the rule, and the units kept for jobs.

        Jobs that no longer wait are stored in full.
        """
        waiting = set() if self._view is None else {job.id for job in self._view.waiting.each()}
        promises = [
            [one.job.id if one.job.id in waiting else one.job.state(), str(one.units), list(one.victims)]
            + ([plain_takes(one.takes)] if one.takes else [])
            for one in self._promises.values()
        ]
        return {"rule": state_of(self.rule, "backfilling rule"), "promises": promises, "due": self._due}

    def restore(self, state: dict[str, Any], view: View, placement: Placement) -> None:
        """Restore a saved state; `view` must already be restored to that state's time."""
        self._begin(view)
        waiting = {job.id: job for job in view.waiting.each()}
        arrivals = {job.number for job in view.arrivals}
        for job in sorted(waiting.values(), key=lambda job: job.number):
            if job.number not in arrivals and self._rules.may_ever(job):
                self._able[job.number] = job
        changes = view.windows.changes
        for told, units, victims, *takes in state["promises"]:
            # The rule may have started the job elsewhere since; it may have ended, or been cancelled.
            job = waiting[told] if isinstance(told, str) else SchedulerJob.restored(told)
            promise = KeptUnits(job, NodeSet.parse(units), tuple(victims), *map(parsed_takes, takes))
            self._promises[promise.job.number] = promise
            self._guard(view, promise)
        view.windows.changes = changes
        self._due = state["due"]
        cast(Any, self.rule).restore(state["rule"], view, placement)

    def _begin(self, view: View) -> None:
        """Prepare for a new run.

        Raise PolicyError if no job can preempt another on this machine.
        """
        self._view, self._able, self._promises, self._due = view, {}, {}, -1.0
        self._rules = PreemptionRules(self._options, self._where)
        platform = view.begins.platform
        classes = () if platform is None else platform.classes
        self._rules.learn_classes({one.name: one.priority for one in classes})

    # -- jobs with kept units ---------------------------------------------------------------------------------------

    def _keep_promises(self, view: View) -> bool:
        """Start waiting jobs on the units kept for them; return whether anything changed.

        Units that can no longer be kept are released.
        """
        changed = False
        for number, promise in list(self._promises.items()):
            job = promise.job
            lasts = number in self._able and job.waits and self._is_open(view, promise)
            if lasts and not self._start(view, job, promise, f"preempts {' '.join(promise.victims)}"):
                self._guard(view, promise)
                continue
            del self._promises[number]
            view.windows.remove(_name(job))
            changed = True
        return changed

    @staticmethod
    def _is_open(view: View, promise: KeptUnits) -> bool:
        """Return whether no failure or window excludes a job from the units kept for it."""
        return promise.units.isdisjoint(view.unavailable | view.closed(promise.job))

    def _guard(self, view: View, promise: KeptUnits) -> None:
        """Close the units kept for a job to all other jobs, by a window.

        The window lasts for the longest grace period plus the job's walltime. It is renewed if it ends before the job
        starts.
        """
        window = view.windows.get(_name(promise.job))
        if window is not None and window.end > view.now:
            return
        graces = [self._rules.terms(job).grace for job in view.running if job.id in promise.victims]
        end = view.now + max(graces, default=0.0) + max(promise.job.occupies, _SOON)
        admitted = promise.job
        view.windows.add(Window(_name(promise.job), view.now, end, promise.units, lambda job: job is admitted))

    # -- waiting jobs -----------------------------------------------------------------------------------------------

    def _help_all(self, view: View, placement: Placement) -> bool:
        """Start the jobs that may preempt, or preempt other jobs for them.

        Return whether anything changed.
        """
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
        """Start a waiting job, or preempt other jobs for it.

        Return whether one of the two was possible.
        """
        found = self._fit(view, placement, job, ())
        if found is not None:
            self._start(view, job, found)
            return True
        candidates = self._candidates(view, job)
        fits = self._question(view, placement, job)
        rules = self._rules
        terms = cast(Callable[[SchedulerJob], tuple[PreemptMode, float]], rules.terms)  # no candidate is 'off'
        chosen = preempt_for(view, job, candidates, fits, terms, youngest_first=rules.youngest_first)
        if chosen is None:
            return False
        promise = self._fit(view, placement, job, chosen)
        assert promise is not None, f"{job.id} fits, but the placement finds no units"
        self._promises[job.number] = promise
        self._guard(view, promise)
        return True

    def _question(self, view: View, placement: Placement, job: SchedulerJob) -> Fits:
        """Return a function that tests whether a job fits once other jobs have ended.

        The argument of the function is the jobs to preempt.
        """
        by_count = placement.fits_by_count and not job.by_nodes
        missing = job.size - len(view.open_to(job))

        def fits(some: Sequence[Candidate]) -> bool:
            if sum(one.worth for one in some) < missing:
                return False
            return by_count or self._fit(view, placement, job, some) is not None

        return fits

    def _fit(self, view: View, placement: Placement, job: SchedulerJob, some: Sequence[Candidate]) -> KeptUnits | None:
        """Return the units that a job would get once the given candidates have ended.

        On shared nodes, these are parts of nodes. Return None if the job would not fit.
        """
        units = view.open_to(job)
        for one in some:
            units |= one.units
        if len(units) < job.size:
            return None
        found = picked(placement, job, units, view.machine)
        return None if found is None else KeptUnits(job, found, tuple(one.job.id for one in some))

    def _start(self, view: View, job: SchedulerJob, promise: KeptUnits, why: str | None = None) -> bool:
        """Start a job on the units kept for it, if all of these are free.

        Return whether the job was started. On shared nodes, parts of nodes are kept.
        """
        if view.free.missing(promise.units):
            return False
        view.free.remove(promise.units)
        view.start(job, promise.units, why)
        return True

    def _worth(self, job: SchedulerJob, units: NodeSet) -> int:
        """Return how many units become free if a job on ``units`` is preempted.

        On shared nodes the result is a number of cores.
        """
        return len(units)

    def _candidates(self, view: View, job: SchedulerJob) -> list[Candidate]:
        """Return the running jobs that may be preempted now for a waiting job.

        If more jobs may be preempted later, also request a call at that time.
        """
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
                found.append(Candidate(other, self._rules.tier(other), units, self._worth(other, units)))
        if earliest is not None and not view.now < self._due <= earliest:
            self._due = earliest
            view.call_me_later(earliest)
        return found


class PreemptingOnNodes(Preempting):
    """Preemption on nodes that jobs share.

    While jobs are being preempted for a waiting job, no other job starts on the nodes that the waiting job will use.
    """

    def __init__(self, *made: Any) -> None:
        super().__init__(*made)
        self._open: OpenNodes | None = None

    def _question(self, view: View, placement: Placement, job: SchedulerJob) -> Fits:
        return lambda some: self._fit(view, placement, job, some) is not None

    def _fit(self, view: View, placement: Placement, job: SchedulerJob, some: Sequence[Candidate]) -> KeptUnits | None:
        if some:
            takes = fit_without(view, job, [one.job for one in some])
        else:
            self._open = opened(self._open, view, placement)
            takes = self._open.pick(job)
        if takes is None:
            return None
        nodes = NodeSet.of([take.node for take in takes])
        return KeptUnits(job, nodes, tuple(one.job.id for one in some), takes)

    def _start(self, view: View, job: SchedulerJob, promise: KeptUnits, why: str | None = None) -> bool:
        if not is_free(view, job, promise.takes):
            return False
        view.start(job, promise.takes, why)
        return True

    def _worth(self, job: SchedulerJob, units: NodeSet) -> int:
        return job.processors


def _name(job: SchedulerJob) -> str:
    return f"preemption for {job.id}"
