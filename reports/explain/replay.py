"""Simulate a run again, and observe its queued jobs after each decision."""

from collections.abc import Callable, Collection, Mapping
from math import inf
from typing import Any, Final

from msgspec.structs import replace

from pipistrelle.protocol.base.errors import printable
from pipistrelle.protocol.decisions import Decision, ExecuteJob
from pipistrelle.protocol.events import DecisionRejectedData
from pipistrelle.protocol.fields import package_version
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.reports.explain.looks import Happening, Limit, Look, Replayed, TooMuch, Wanted, packed
from pipistrelle.runs.description.policy import step_of
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.connection import InProcess
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.folders.files import ExplainError, JobLine, RunFiles
from pipistrelle.schedulers.placement.lowest import LowestIds
from pipistrelle.schedulers.placement.pickers import picked
from pipistrelle.schedulers.policy.ends_and_shadow import end_of
from pipistrelle.schedulers.policy.interfaces import Policy
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.order import Order
from pipistrelle.schedulers.policy.shortage import shortage
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.runtime.polling import Polling
from pipistrelle.server.engine.jobs import NEVER_RAN, Job, Labels
from pipistrelle.server.engine.observers import Observer, Reasons
from pipistrelle.server.errors import Interrupted
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.setup.workload_jobs import labels_of

#: maximum number of records of waiting jobs: more would fill the memory and take hours
MOST_LOOKS: Final = 20_000_000
_NAMELESS: Final[Labels] = (None, None, None, None, None)
_DONE: Final = "what was to be explained is known"


class Witness:
    """A policy that lets another policy decide, and then observes the queued jobs.

    To observe a job, it calls the deciding policy's methods ``reservation(job)``, ``held_back_by(job)``, ``ahead(job)``
    and ``breakdown(job)`` (docs/how-to/explain.md), and ``terms(job, now)`` of the policy's queue order. Methods that
    do not exist are skipped.

    If no unit was free, it asks neither for the terms nor for the position in the queue. The policy has not examined
    the queue then. The questions would make it update fairshare usage at other times than in the original run.

    Args:
        policy: the policy that decides.
        only: chooses jobs by id and labels; None for all jobs, up to `MOST_LOOKS` observations.
        until: when the simulation ends (s).
    """

    def __init__(self, policy: Policy, only: Callable[[str], bool] | None = None, until: float = inf) -> None:
        self._policy = policy
        self._only = only
        self._until = until
        self._left = MOST_LOOKS
        self.too_much = False
        self.features: tuple[str, ...] = tuple(getattr(policy, "features", ()))
        #: numbers of the jobs that were recorded
        self._met: set[int] = set()
        #: {number: (a waiting job, its records)}
        self._waiting: dict[int, tuple[SchedulerJob, list[Look]]] = {}
        self._packed: dict[str, bytes] = {}
        #: {number: current place in the queue}, computed on request
        self._places: dict[int, int] | None = None

    @property
    def name(self) -> str:
        """Return the name of the policy that decides."""
        return self._policy.name

    @property
    def order(self) -> Order:
        """Return the queue order of the policy that decides."""
        return self._policy.order

    def decide(self, view: View) -> None:
        """Let the policy decide, then observe the queued jobs.

        End the simulation after ``until`` (s).
        """
        if view.now > self._until:
            view.stop(_DONE)
            return
        had_free = view.free.count > 0
        self._meet(view)
        self._policy.decide(view)
        self._meet(view)
        self._places = None
        free = view.free.snapshot()
        for number, (job, looks) in list(self._waiting.items()):
            if job.waits:
                looks.append(self._look(view, job, free, had_free))
                self._left -= 1
            else:
                self._keep(self._waiting.pop(number))
        if self._left < 0 and self._only is None:
            self.too_much = True
            view.stop(_DONE)

    def kept(self) -> dict[str, bytes]:
        """Return the packed observations of each job, after the run."""
        while self._waiting:
            self._keep(self._waiting.popitem()[1])
        return self._packed

    def moment(self, view: View, unseen: Collection[SchedulerJob] = ()) -> dict[str, Look]:
        """Return {job id: observation} for all queued jobs after the policy decided.

        A job that is not in the view, or not in the policy's own queue, has no ``place``.

        Args:
            view: a copy of the scheduler's view, because this method sorts its whole queue.
            unseen: jobs that were queued after the policy's last decision.
        """
        self._places = None
        free = view.free.snapshot()
        new = {job.number for job in unseen}
        waiting = [*view.waiting, *view.set_aside]
        known = {job.number for job in waiting}
        found = {}
        for job in (*waiting, *(one for one in unseen if one.number not in known)):
            if job.number in known and not (job.number in new and hasattr(self._policy, "ahead")):
                look = self._look(view, job, free, True)
            else:
                limit, detail, count = _limit(view, job, free, None)
                look = Look(view.now, limit, detail, count)
            if job.number in new and look.limit in ("order", "other"):
                look = replace(look, limit="poll", detail="")
            found[job.id] = look
        return found

    def _keep(self, seen: tuple[SchedulerJob, list[Look]]) -> None:
        job, looks = seen
        if looks:
            self._packed[job.id] = packed(looks)

    def _meet(self, view: View) -> None:
        for job in (*view.arrivals, *view.set_aside):
            if job.number not in self._met:
                self._met.add(job.number)
                if self._only is None or self._only(job.id):
                    self._waiting[job.number] = job, []

    def _look(self, view: View, job: SchedulerJob, free: NodeSet, had_free: bool) -> Look:
        limit, detail, count = _limit(view, job, free, self._ask("held_back_by", job))
        place = waiting = first = terms = None
        if had_free and view.held_back_by(job) is None:
            place, first = self._place(view, job)
            waiting = len(view.waiting)
            terms = self._terms(view, job)
        if limit == "order" and place == 1:
            limit = "other"
        reservation = self._ask("reservation", job)
        if limit == "other" and reservation is not None:
            detail = self._reserved_before(view, job, reservation)
        return Look(view.now, limit, detail, count, place, waiting, first, reservation, terms)

    def _reserved_before(self, view: View, job: SchedulerJob, begin: float) -> str:
        """Return a text that names a queued job with an earlier reservation.

        The reservation begins before ``begin`` (s). The text is empty if there is none.
        """
        found = [
            (theirs, other.number, other.id)
            for other in view.waiting
            if other is not job and (theirs := self._ask("reservation", other)) is not None and theirs < begin
        ]
        return f"{min(found)[2]}, behind it, has an earlier reservation" if found else ""

    def _ask(self, question: str, job: SchedulerJob) -> Any:
        answer = getattr(self._policy, question, None)
        return None if answer is None else answer(job)

    def _place(self, view: View, job: SchedulerJob) -> tuple[int | None, str | None]:
        ahead = self._ask("ahead", job)
        if ahead is not None:
            return ahead[0] + 1, ahead[1].id
        if self._places is None:
            self._places = {one.number: place for place, one in enumerate(view.waiting, 1)}
        first = view.waiting.first
        return self._places.get(job.number), None if first is None else first.id

    def _terms(self, view: View, job: SchedulerJob) -> Mapping[str, float] | None:
        breakdown = self._ask("breakdown", job)
        if breakdown is not None:
            values: dict[str, float] = breakdown.values()
            return values
        tell = getattr(self._policy.order, "terms", None)
        terms: Mapping[str, float] | None = None if tell is None else tell(job, view.now)
        return terms


def _limit(view: View, job: SchedulerJob, free: NodeSet, held_back: str | None) -> tuple[Limit, str, int]:
    """Return what keeps a queued job waiting.

    The result is the kind of limit, its name, and the free units that the job may use.
    """
    now = view.now
    windows = list(view.windows.against(job, now, end_of(now, job.occupies)))
    for window in windows:
        if window.admits is not None:
            free -= window.units
    count = len(free)
    of_class = view.held_back_by(job)
    if of_class is not None:
        return "class", of_class, count
    if held_back is not None:
        return "limit", held_back, count
    if view.shared is not None:
        allowed = view.shared.open(view.shut(job))
        short = shortage(view.shared.shape(job), view.shared.free, allowed)
        return ("order", "", count) if short is None else ("resources", f"{short.resource}: {short.text}", count)
    if count < job.size:
        out = len(view.unavailable) - view.lost
        return ("down", f"{out:,} out", count) if count + out >= job.size else ("units", "", count)
    if not _suffice(view, job, free):
        return "nodes", str(job.request), count
    maintenance = [window for window in windows if window.admits is None]
    for window in maintenance:
        free -= window.units
    if len(free) < job.size or not _suffice(view, job, free):
        return "window", " ".join(window.id for window in maintenance), count
    return "order", "", count


def _suffice(view: View, job: SchedulerJob, units: NodeSet) -> bool:
    """Return whether ``units`` has enough units for the job.

    Only units on nodes that meet the job's node request count.
    """
    return not job.by_nodes or picked(LowestIds(), job, units, view.machine) is not None


class ExpectedStarts:
    """A check that a repeated run starts jobs as the original run did.

    It must start the same jobs at the same times. ``starts`` are the starts of the original run, in order: {job id:
    start (s)}.
    """

    def __init__(self, starts: Mapping[str, float]) -> None:
        self._expected = iter(starts.items())
        #: the first start that differs
        self._astray: str | None = None

    def started(self, job_id: str, now: float) -> None:
        """Compare a start of the repeated run with the next start of the original run.

        The job and the time (s) must be the same.
        """
        if self._astray is None:
            found = (job_id, now)
            expected = next(self._expected, found)
            if found != expected:
                self._astray = f"{found[0]} at {found[1]:.10g} s, in the run {expected[0]} at {expected[1]:.10g} s"

    def miss(self) -> None:
        """Record a difference if the original run has a further start.

        The repeated run does not have this start.
        """
        missed = next(self._expected, None)
        if self._astray is None and missed is not None:
            self._astray = f"no start of {missed[0]}, in the run at {missed[1]:.10g} s"

    def check(self, files: RunFiles) -> None:
        """Raise ExplainError if a difference has been recorded.

        The difference is between the starts of this run and of the original run.
        """
        if self._astray is None:
            return
        made = files.config.get("versions")
        version = made.get("pipistrelle") if isinstance(made, dict) else None
        raise ExplainError(
            "the run cannot be repeated: the same scheduler decides differently now",
            where=str(files.folder),
            found=self._astray,
            hint=f"The run was made by pipistrelle {printable(str(version))}, this is {package_version()}; --no-replay "
            "explains what the outputs alone tell.",
        )


class _Book(Observer):
    """An observer that records submissions, rejections and node failures.

    It also compares starts with the original run.
    """

    def __init__(self, setup: Setup, starts: Mapping[str, float]) -> None:
        # A scheduler may not need labels; then the jobs of a run have none.
        self._labels = {
            f"{prefix}!{one}": labels
            for prefix, workload in setup.workloads.items()
            for one, labels in zip(workload.ids, labels_of(workload), strict=True)
        }
        self._starts = ExpectedStarts(starts)
        self.queued: dict[str, float] = {}
        self.rejected: dict[str, float] = {}
        self.jobs: dict[str, JobLine] = {}
        self.happenings: list[Happening] = []

    def submitted(self, now: float, job: Job) -> None:
        """Record a job's submission."""
        walltime = None if job.walltime == inf else job.walltime
        labels = job.labels or self._labels.get(job.id.partition("#")[0], _NAMELESS)
        self.jobs[job.id] = JobLine(
            job.id, job.size, job.submit, job.submit, walltime, "SUBMITTED", None, None, labels=labels
        )
        self.queued[job.id] = now

    def ended(self, now: float, job: Job) -> None:
        """Record the end of a job that never ran.

        It was rejected, or cancelled while queued.
        """
        if job.state in NEVER_RAN:
            self.rejected[job.id] = now

    def decided(self, now: float, decision: Decision, rejected: DecisionRejectedData | None) -> None:
        """Compare the start of a job, if the decision is one, with the original run's."""
        if type(decision) is ExecuteJob and rejected is None:
            self._starts.started(decision.data.job_id, now)

    def check(self, files: RunFiles) -> None:
        """Raise ExplainError if the repeated run's starts differ from the original run's."""
        self._starts.miss()
        self._starts.check(files)

    def went_down(self, now: float, nodes: NodeSet, units: NodeSet, planned: bool, why: Reasons) -> None:
        """Record that nodes went down."""
        self.happenings.append(Happening(now, "maintenance" if planned else "failed", str(nodes), len(units)))

    def came_up(self, now: float, nodes: NodeSet, units: NodeSet) -> None:
        """Record that nodes came up."""
        self.happenings.append(Happening(now, "repaired", str(nodes), len(units)))


def replay(
    spec: RunSpec,
    setup: Setup,
    policy: Policy,
    files: RunFiles,
    *,
    until: float,
    only: Wanted | None = None,
) -> Replayed:
    """Simulate a run again, and return the observations of its jobs.

    The simulation ends at ``until`` (s) at the latest.

    Args:
        spec, setup: the run's description and inputs.
        policy: the policy of the run, without polling.
        only: chooses jobs by id and labels; None for all jobs.

    Raises:
        ExplainError: if other jobs start than in the original run, or at other times.
        TooMuch: if all jobs would take too much memory.
        KeyboardInterrupt: if the user interrupts.
    """
    book = _Book(setup, files.starts)
    witness = Witness(policy, only and (lambda job_id: only(job_id, book.jobs[job_id].labels or _NAMELESS)), until)
    deciding = witness if spec.poll is None else Polling(witness, step_of(spec.poll))
    result = run(spec, RunOptions(setup=setup, connection=InProcess(deciding), observers=[book], check=False))
    if isinstance(result.failure, Interrupted):
        raise KeyboardInterrupt from result.failure
    if witness.too_much:
        raise TooMuch
    book.check(files)
    return Replayed(witness.kept(), book.queued, book.rejected, book.happenings, book.jobs)
