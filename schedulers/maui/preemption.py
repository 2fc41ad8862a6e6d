"""Preemption under Maui by jobs with the flag PREEMPTOR."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from pipistrelle.protocol.fields import PreemptMode
from pipistrelle.protocol.units.masks import mask_of, units_of
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.maui.config.settings import PREEMPTEE, PREEMPTOR, MauiSettings
from pipistrelle.schedulers.maui.priority.credentials import Credentials
from pipistrelle.schedulers.plan.access import AccessPlan
from pipistrelle.schedulers.plan.slices import Place
from pipistrelle.schedulers.policy.ends_and_shadow import end_of
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.preemption.victims import Candidate, preempt_for

#: {PREEMPTPOLICY: the protocol's mode}
_MODES: Final[dict[str, PreemptMode]] = {"REQUEUE": "requeue", "CHECKPOINT": "checkpoint", "CANCEL": "cancel"}


class KeptForJob(NamedTuple):
    """Units (a bit mask) kept free for a job until the jobs preempted for it (ids) have ended."""

    units: int
    victims: tuple[str, ...]


class MauiPreemption:
    """Decides which running jobs are preempted for which waiting jobs, in one simulation."""

    def __init__(self, view: View, settings: MauiSettings, credentials: Credentials, plan: AccessPlan) -> None:
        self._view = view
        self._settings = settings
        self._credentials = credentials
        self._plan = plan
        #: whether any job may preempt others
        self.active = settings.preempts
        self._mode = _MODES.get(settings.text("PREEMPTPOLICY"), "requeue")
        #: {number of a running job that may be preempted: its priority at its start}
        self._priorities: dict[int, float] = {}
        #: {number of a waiting job: its kept units}
        self.kept: dict[int, KeptForJob] = {}

    def state(self) -> dict[str, Any]:
        """Return the state as plain values."""
        kept = [[number, str(units_of(one.units)), list(one.victims)] for number, one in self.kept.items()]
        return {"priorities": [list(one) for one in self._priorities.items()], "kept": kept}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state."""
        self._priorities = {int(number): priority for number, priority in state["priorities"]}
        self.kept = {
            int(number): KeptForJob(mask_of(NodeSet.parse(units)), tuple(victims))
            for number, units, victims in state["kept"]
        }

    def started(self, job: SchedulerJob, code: int, priority: float) -> None:
        """Record a job that starts with this priority."""
        if PREEMPTEE in self._settings.flags(self._credentials.combinations[code]):
            self._priorities[job.number] = priority

    def ended(self, number: int) -> None:
        """Record the end of a running job."""
        self._priorities.pop(number, None)

    def keep_all(self, now: float, walltime_of: Any) -> None:
        """Reserve all units that are kept for preempting jobs.

        ``walltime_of`` returns a job's planned walltime (s).
        """
        for number, one in self.kept.items():
            self._plan.keep(Place(now, end_of(now, walltime_of(number)), one.units))

    def ready(self) -> list[tuple[int, KeptForJob]]:
        """Return the jobs (by number) whose kept units are all free now; drop those that can no longer start."""
        view = self._view
        found = []
        for number, one in list(self.kept.items()):
            units = units_of(one.units)
            if not units.isdisjoint(view.unavailable):
                del self.kept[number]
            elif not view.free.missing(units):
                found.append((number, one))
        return found

    def make_room(self, job: SchedulerJob, code: int, access: int, walltime: float, priority: float) -> bool:
        """Preempt enough running jobs for a job that may preempt; return whether that worked."""
        view, plan, now = self._view, self._plan, self._view.now
        if PREEMPTOR not in self._settings.flags(self._credentials.combinations[code]):
            return False
        going = view.going
        candidates = [
            Candidate(other, self._priorities[other.number], other.alloc)
            for other in view.running
            if self._priorities.get(other.number, priority) < priority and other.start < now and other.id not in going
        ]
        if view.free.count + sum(one.worth for one in candidates) < job.size:
            return False

        def units_with(some: Sequence[Candidate]) -> int:
            return plan.units_without(access, job, walltime, [one.job.number for one in some])

        chosen = preempt_for(view, job, candidates, lambda some: bool(units_with(some)), lambda one: (self._mode, 0.0))
        if chosen is None:
            return False
        self.kept[job.number] = KeptForJob(units_with(chosen), tuple(one.job.id for one in chosen))
        return True
