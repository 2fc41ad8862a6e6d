"""The same run once more, with a witness beside its policy that looks what becomes of one job."""

from collections.abc import Mapping
from math import inf
from typing import Any, Final, Literal

from msgspec import Struct

from pipistrelle.protocol.base.errors import printable
from pipistrelle.protocol.decisions import Decision, ExecuteJob, RejectJob
from pipistrelle.protocol.events import DecisionRejectedData
from pipistrelle.protocol.fields import package_version
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.plan.slices import end_of
from pipistrelle.schedulers.policy.interfaces import Policy
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.order import Order
from pipistrelle.schedulers.policy.polling import Polling
from pipistrelle.schedulers.policy.view import View
from pipistrelle.server.engine.jobs import Job, Labels
from pipistrelle.server.engine.observers import Observer, Reasons
from pipistrelle.server.errors import Interrupted
from pipistrelle.server.setup import Setup
from pipistrelle.studies.explain.files import ExplainError, JobLine, RunFiles
from pipistrelle.studies.runs.connection import InProcess
from pipistrelle.studies.runs.run import run
from pipistrelle.studies.runs.spec import RunSpec

Limit = Literal["dependency", "class", "limit", "units", "down", "window", "order", "poll", "other", "unknown"]
_NAMELESS: Final[Labels] = (None, None, None, None, None)
_DONE: Final = "what was to be explained is known"


class Look(Struct, frozen=True):
    """What a witness saw of a waiting job once the scheduler had decided.

    ``limit`` is what limited it, ``detail`` which one. ``free`` are the units that were free and open to its class;
    ``place`` its place in the queue, from 1, of ``waiting`` jobs, and ``first`` who is first, None where nothing was
    free and nobody looked at the queue. ``reservation`` is by when it will start (s; inf: no one can tell), None where
    the scheduler does not tell; ``terms`` what its place depends on.
    """

    time: float
    limit: Limit
    detail: str
    free: int
    place: int | None = None
    waiting: int | None = None
    first: str | None = None
    reservation: float | None = None
    terms: Mapping[str, float] | None = None


class Happening(Struct, frozen=True):
    """Nodes that went down or came up, at ``time`` (s), and how many units they have."""

    time: float
    what: Literal["failed", "maintenance", "repaired"]
    nodes: str
    units: int


class Seen(Struct):
    """What came out of a replay.

    ``queued`` is when the job joined the queue (s), later than its submission where it waited for others before; None:
    it never did. ``rejected`` is when it was rejected (s), None if it was not. ``submitted`` are all jobs that joined
    the queue until the replay ended, by id.
    """

    looks: list[Look]
    queued: float | None
    rejected: float | None
    happenings: list[Happening]
    submitted: dict[str, JobLine]


class Witness:
    """A policy that decides as another does, and looks after each decision what becomes of one waiting job.

    It asks the policy, where it has them, for ``reservation(job)``, ``held_back_by(job)``, ``ahead(job)`` and
    ``breakdown(job)`` (docs/explain.md), and the policy's order for ``terms(job, now)``. Where nothing was free it asks
    for no terms and no place: the policy has not looked at the queue either, and what looks brings a fairshare's
    account to the present, which must not happen at other instants than in the run itself.
    """

    def __init__(self, policy: Policy, job_id: str, until: float = inf) -> None:
        self._policy = policy
        self._job_id = job_id
        self._until = until
        self.features: tuple[str, ...] = tuple(getattr(policy, "features", ()))
        self._job: SchedulerJob | None = None
        self.looks: list[Look] = []

    @property
    def name(self) -> str:
        """The policy's."""
        return self._policy.name

    @property
    def order(self) -> Order:
        """The policy's."""
        return self._policy.order

    def decide(self, view: View) -> None:
        """Let the policy decide, then look; end the simulation once the job runs, or after ``until`` (s)."""
        if view.now > self._until:
            view.stop(_DONE)
            return
        had_free = view.free.count > 0
        if self._job is None:
            self._job = self._find(view)
        self._policy.decide(view)
        job = self._job or self._find(view)
        if job is None:
            return
        self._job = job
        if job.waits:
            self.looks.append(self._look(view, job, had_free))
        else:
            view.stop(_DONE)

    def _find(self, view: View) -> SchedulerJob | None:
        return next((job for job in (*view.arrivals, *view.set_aside) if job.id == self._job_id), None)

    def _look(self, view: View, job: SchedulerJob, had_free: bool) -> Look:
        limit, detail, free = _limit(view, job, self._ask("held_back_by", job))
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
        return Look(view.now, limit, detail, free, place, waiting, first, reservation, terms)

    def _reserved_before(self, view: View, job: SchedulerJob, begin: float) -> str:
        """Return who of those behind a job has the first of all reservations before ``begin`` (s), in words."""
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
        first = view.waiting.first
        place = next((number for number, one in enumerate(view.waiting, 1) if one is job), None)
        return place, None if first is None else first.id

    def _terms(self, view: View, job: SchedulerJob) -> Mapping[str, float] | None:
        breakdown = self._ask("breakdown", job)
        if breakdown is not None:
            values: dict[str, float] = breakdown.values()
            return values
        tell = getattr(self._policy.order, "terms", None)
        terms: Mapping[str, float] | None = None if tell is None else tell(job, view.now)
        return terms


def _limit(view: View, job: SchedulerJob, held_back: str | None) -> tuple[Limit, str, int]:
    """Return what limits a waiting job now, which one, and how many free units are open to its class."""
    now = view.now
    windows = list(view.windows.against(job, now, end_of(now, job.occupies)))
    free = view.free.snapshot()
    for window in windows:
        if window.admits is not None:
            free -= window.units
    count = len(free)
    of_class = view.held_back_by(job)
    if of_class is not None:
        return "class", of_class, count
    if held_back is not None:
        return "limit", held_back, count
    if count < job.size:
        out = len(view.unavailable) - view.lost
        return ("down", f"{out:,} out", count) if count + out >= job.size else ("units", "", count)
    maintenance = [window for window in windows if window.admits is None]
    for window in maintenance:
        free -= window.units
    if len(free) < job.size:
        return "window", " ".join(window.id for window in maintenance), count
    return "order", "", count


class _Book(Observer):
    """Notes what the scheduler is not told, and compares the starts with those of the run."""

    def __init__(self, job_id: str, starts: Mapping[str, float]) -> None:
        self._job_id = job_id
        self._expected = iter(starts.items())
        self.queued: float | None = None
        self.rejected: float | None = None
        self.jobs: dict[str, JobLine] = {}
        self.happenings: list[Happening] = []
        #: the first start that the run did not have
        self.astray: str | None = None

    def submitted(self, now: float, job: Job) -> None:
        """Note it."""
        walltime = None if job.walltime == inf else job.walltime
        self.jobs[job.id] = JobLine(
            job.id, job.size, job.submit, job.submit, walltime, "SUBMITTED", None, None, labels=job.labels or _NAMELESS
        )
        if job.id == self._job_id:
            self.queued = now

    def ended(self, now: float, job: Job) -> None:
        """Note a rejection, be it the scheduler's or the server's."""
        if job.id == self._job_id and job.state == "REJECTED":
            self.rejected = now

    def decided(self, now: float, decision: Decision, rejected: DecisionRejectedData | None) -> None:
        """Compare a start."""
        if type(decision) is ExecuteJob and rejected is None and self.astray is None:
            found = (decision.data.job_id, now)
            expected = next(self._expected, found)
            if found != expected:
                self.astray = f"{found[0]} at {found[1]:.10g} s, in the run {expected[0]} at {expected[1]:.10g} s"
            elif found[0] == self._job_id:
                self._expected = iter(())  # what comes after is not repeated
        elif type(decision) is RejectJob and rejected is None and decision.data.job_id == self._job_id:
            self._expected = iter(())

    def miss(self) -> None:
        """Note a start that the run had, and this one has not, now that it is over."""
        missed = next(self._expected, None)
        if self.astray is None and missed is not None:
            self.astray = f"no start of {missed[0]}, in the run at {missed[1]:.10g} s"

    def went_down(self, now: float, nodes: NodeSet, units: NodeSet, planned: bool, why: Reasons) -> None:
        """Note it."""
        self.happenings.append(Happening(now, "maintenance" if planned else "failed", str(nodes), len(units)))

    def came_up(self, now: float, nodes: NodeSet, units: NodeSet) -> None:
        """Note it."""
        self.happenings.append(Happening(now, "repaired", str(nodes), len(units)))


def replay(setup: Setup, policy: Policy, files: RunFiles, job_id: str, *, poll: float | None, until: float) -> Seen:
    """Run a simulation again until a job starts, at most until ``until`` (s), and return what was seen of the job.

    Parameters
    ----------
    policy
        as it was in the run, but without polling: ``poll`` is the step (s), None without.

    Raises
    ------
    ExplainError
        when it does not start the same jobs at the same times as the run did.
    KeyboardInterrupt
        when the user interrupts.
    """
    witness = Witness(policy, job_id, until)
    book = _Book(job_id, files.starts)
    deciding = witness if poll is None else Polling(witness, poll)
    result = run(RunSpec(), setup=setup, connection=InProcess(deciding), observers=[book], check=False)
    if isinstance(result.failure, Interrupted):
        raise KeyboardInterrupt from result.failure
    book.miss()
    if book.astray is not None:
        made = files.config.get("versions")
        version = made.get("pipistrelle") if isinstance(made, dict) else None
        raise ExplainError(
            "the run cannot be repeated: the same scheduler decides otherwise now",
            where=str(files.folder),
            found=book.astray,
            hint=f"The run was made by pipistrelle {printable(str(version))}, this is {package_version()}; --no-replay "
            "explains what the outputs alone tell.",
        )
    return Seen(witness.looks, book.queued, book.rejected, book.happenings, book.jobs)
