"""Preemption under Maui by jobs with the flag PREEMPTOR."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from pipistrelle.protocol.fields import PreemptMode
from pipistrelle.schedulers.maui.config.settings import PREEMPTEE, PREEMPTOR, MauiSettings
from pipistrelle.schedulers.maui.machine import PlannedMachine
from pipistrelle.schedulers.maui.priority.credentials import Credentials
from pipistrelle.schedulers.policy.ends_and_shadow import end_of
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.preemption.victims import Candidate, preempt_for

#: {PREEMPTPOLICY: the protocol's mode}
_MODES: Final[dict[str, PreemptMode]] = {"REQUEUE": "requeue", "CHECKPOINT": "checkpoint", "CANCEL": "cancel"}


class KeptForJob(NamedTuple):
    """The units kept for a waiting job until all jobs preempted for it have ended.

    Attributes:
        taken: what the job will take: units, or parts of nodes.
        victims: ids of the jobs that are preempted for it.
    """

    taken: Any
    victims: tuple[str, ...]


class MauiPreemption:
    """The choice of running jobs to preempt for waiting jobs, in one simulation."""

    def __init__(
        self, view: View, settings: MauiSettings, credentials: Credentials, machine: PlannedMachine[Any, Any]
    ) -> None:
        self._view = view
        self._settings = settings
        self._credentials = credentials
        self._machine = machine
        #: whether any job may preempt others
        self.active = settings.preempts
        self._mode = _MODES.get(settings.text("PREEMPTPOLICY"), "requeue")
        #: {number of a running job that may be preempted: its priority at its start}
        self._priorities: dict[int, float] = {}
        #: {number of a waiting job: what is kept for it}
        self.kept: dict[int, KeptForJob] = {}

    def state(self) -> dict[str, Any]:
        """Return the state as plain values."""
        kept = [[number, self._machine.plain(one.taken), list(one.victims)] for number, one in self.kept.items()]
        return {"priorities": [list(one) for one in self._priorities.items()], "kept": kept}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the values that the method `state` returned."""
        self._priorities = {int(number): priority for number, priority in state["priorities"]}
        self.kept = {
            int(number): KeptForJob(self._machine.parse(told), tuple(victims))
            for number, told, victims in state["kept"]
        }

    def started(self, job: SchedulerJob, code: int, priority: float) -> None:
        """Record a starting job, with its priority, as one that may be preempted."""
        if PREEMPTEE in self._settings.flags(self._credentials.combinations[code]):
            self._priorities[job.number] = priority

    def ended(self, number: int) -> None:
        """Record the end of a running job."""
        self._priorities.pop(number, None)

    def keep_all(self, now: float, job_of: Callable[[int], tuple[SchedulerJob, float]]) -> None:
        """Reserve all kept units for their waiting jobs until the next decision.

        ``job_of`` takes a job's number and returns (waiting job, its planned walltime in s).
        """
        for number, one in self.kept.items():
            job, walltime = job_of(number)
            self._machine.keep(self._machine.place(job, one.taken, now, end_of(now, walltime)))

    def ready(self, job_of: Callable[[int], tuple[SchedulerJob, float]]) -> list[tuple[int, KeptForJob]]:
        """Return the waiting jobs (by number) for which all kept units are free now.

        If a unit kept for a job is out of service, nothing is kept for this job any more.
        """
        found = []
        for number, one in list(self.kept.items()):
            if self._machine.is_lost(one.taken):
                del self.kept[number]
            elif self._machine.is_free_now(job_of(number)[0], one.taken):
                found.append((number, one))
        return found

    def make_room(self, job: SchedulerJob, code: int, access: int, walltime: float, priority: float) -> bool:
        """Preempt enough running jobs for a waiting job to start.

        Return False if that is impossible, or if the job may not preempt others.

        Args:
            code: number of the job's combination of credentials.
            access: number shared by the jobs that the same reservations admit.
            walltime: the job's planned walltime, s.
            priority: the job's priority; only jobs of lower priority are preempted.
        """
        view, machine, now = self._view, self._machine, self._view.now
        if PREEMPTOR not in self._settings.flags(self._credentials.combinations[code]):
            return False
        going = view.going
        candidates = [
            Candidate(other, self._priorities[other.number], other.alloc, machine.size(other))
            for other in view.running
            if self._priorities.get(other.number, priority) < priority and other.start < now and other.id not in going
        ]
        if machine.free + sum(one.worth for one in candidates) < machine.size(job):
            return False

        def fit_without(some: Sequence[Candidate]) -> Any:
            return machine.fit_without(access, job, walltime, [one.job.number for one in some])

        def fits(some: Sequence[Candidate]) -> bool:
            return fit_without(some) is not None

        chosen = preempt_for(view, job, candidates, fits, lambda one: (self._mode, 0.0))
        if chosen is None:
            return False
        self.kept[job.number] = KeptForJob(fit_without(chosen), tuple(one.job.id for one in chosen))
        return True
