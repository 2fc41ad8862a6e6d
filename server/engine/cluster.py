"""The machine with its queued and running jobs, and all changes of a job's state."""

from collections.abc import Sequence
from typing import Any, NoReturn

from pipistrelle.platforms.requests.requests import NodeRequest, RequestBook
from pipistrelle.protocol.resources.nodes import NodeTake
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.protocol.units.text import NodeSetError
from pipistrelle.server.engine.jobs import LIFE, Job, JobIds, Step, WorkOf
from pipistrelle.server.engine.ledger import Ledger
from pipistrelle.server.engine.observers import Hooks, Observer
from pipistrelle.server.errors import Illegal


def _no_work(job_id: str, profile: str) -> NoReturn:
    raise AssertionError(f"{job_id} has work, but no part of the run does work")


class Cluster:
    """The jobs and units of the machine; only this class changes them.

    Args:
        requests: says which nodes satisfy a job's node request; needed if a job has a node request.
        ledger: records which job holds each unit; None: at most one job per unit.
    """

    def __init__(
        self,
        units: int,
        observers: Sequence[Observer] = (),
        ledger: Ledger | None = None,
        job_type: type[Job] = Job,
        requests: RequestBook | None = None,
    ) -> None:
        self.job_type = job_type
        #: returns the work of a job; set by `JobLives` if jobs have work
        self.work_of: WorkOf = _no_work
        self.ledger = Ledger(units) if ledger is None else ledger
        self.requests = requests
        self._observers = tuple(observers)
        self.hooks = Hooks(self._observers)
        #: {job id: job} of jobs that are held, or requeued after a loss of nodes; the time is on the agenda.
        self.coming: dict[str, Job] = {}
        #: {job id: job} of jobs that are submitted and neither started nor rejected, in order of submission.
        self.waiting: dict[str, Job] = {}
        #: {job id: job} of jobs that have started and not ended, in order of start.
        self.running: dict[str, Job] = {}
        #: ids of jobs in a final state; their other data are dropped
        self.finished = JobIds()
        #: {job id: job} of jobs cancelled while queued without a notice, so the scheduler may still start them.
        self.ghosts: dict[str, Job] = {}
        #: number of state changes of jobs so far; shows whether anything has happened
        self.steps = 0
        #: what the scheduler keeps units for while jobs wait, as text in its last reply
        self.keeps: tuple[str, ...] = ()

    def watch(self, observers: Sequence[Observer]) -> None:
        """Add observers, which are called after the existing observers."""
        self._observers += tuple(observers)
        self.hooks = Hooks(self._observers)

    def submit(self, now: float, job: Job) -> None:
        """Add a job to the queue."""
        self.waiting[job.id] = job
        self.steps += 1
        for hook in self.hooks.submitted:
            hook(now, job)

    def execute(self, now: float, job: Job, alloc_text: str, takes: Sequence[NodeTake] = ()) -> None:
        """Start a queued job on the units of ``alloc_text``, or raise Illegal.

        ``takes`` divides the job's tasks and GPUs among nodes with resources.
        """
        if job.request is not None:
            self._check_request(job, job.request, alloc_text)
        alloc = self.ledger.take(job, alloc_text, takes)
        job.state = LIFE[job.state]["execute"]
        job.alloc = alloc
        job.start = now
        del self.waiting[job.id]
        self.running[job.id] = job
        self.steps += 1
        for hook in self.hooks.started:
            hook(now, job)

    def _check_request(self, job: Job, request: NodeRequest, text: str) -> None:
        """Raise Illegal if the units in ``text`` violate the job's node request.

        The units may be in use, and the text may be malformed.
        """
        assert self.requests is not None, f"{job.id} asks for {request}, but this machine has no request book"
        try:
            alloc = NodeSet.parse(text)
        except NodeSetError:
            return
        if not alloc or alloc.last >= self.ledger.units:
            return
        size = job.size if self.ledger.shares_nodes else len(alloc)
        if not job.admits(size):
            return
        fault = self.requests.fault(request, size, alloc)
        if fault is not None:
            raise Illegal("wrong_units", f"'alloc' of {job.id} has {fault}")

    def run_elsewhere(self, now: float, job: Job) -> None:
        """Mark a queued job as running outside this machine, on none of its units.

        The job's scheduler declares that the job runs.
        """
        job.state = LIFE[job.state]["execute"]
        job.start = now
        del self.waiting[job.id]
        self.running[job.id] = job
        self.steps += 1

    def end(self, now: float, job: Job, step: Step) -> None:
        """End a running job and free its units; ``step`` says why it ends."""
        job.state = LIFE[job.state][step]
        job.end = now
        self.ledger.give_back(job)
        del self.running[job.id]
        self.finished.add(job.id)
        self.steps += 1
        for hook in self.hooks.ended:
            hook(now, job)

    def reject(self, now: float, job: Job) -> None:
        """Reject a queued job permanently."""
        job.state = LIFE[job.state]["reject"]
        del self.waiting[job.id]
        self.finished.add(job.id)
        self.steps += 1
        for hook in self.hooks.ended:
            hook(now, job)

    def cancel(self, now: float, job: Job, *, told: bool) -> None:
        """Cancel a queued job; ``told`` says whether the scheduler is notified."""
        job.state = LIFE[job.state]["cancel"]
        job.end = now
        del self.waiting[job.id]
        self.finished.add(job.id)
        if not told:
            self.ghosts[job.id] = job
        self.steps += 1
        for hook in self.hooks.ended:
            hook(now, job)

    def lay(self, job: Job, alloc_text: str, takes: Sequence[NodeTake] = ()) -> NodeSet:
        """Allocate units to a cancelled job and free them at once; return these units.

        This carries out the start of a job by a scheduler that was not notified of the job's cancellation.

        Raises:
            Illegal: if the job could not start on these units.
        """
        if job.request is not None:
            self._check_request(job, job.request, alloc_text)
        job.alloc = self.ledger.take(job, alloc_text, takes)
        self.ledger.give_back(job)
        del self.ghosts[job.id]
        return job.alloc

    def knows(self, job_id: str) -> bool:
        """Return whether a job with this id was ever submitted."""
        return job_id in self.waiting or job_id in self.running or job_id in self.finished

    def state(self) -> dict[str, Any]:
        """Return all jobs in order, and the ledger's state, for a snapshot."""
        queues = {"coming": self.coming, "waiting": self.waiting, "running": self.running, "ghosts": self.ghosts}
        return {
            **{name: [job.as_plain() for job in jobs.values()] for name, jobs in queues.items()},
            "finished": self.finished.state(),
            "steps": self.steps,
            "keeps": list(self.keeps),
            "ledger": self.ledger.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore all jobs and the ledger from a snapshot."""
        queues = {"coming": self.coming, "waiting": self.waiting, "running": self.running, "ghosts": self.ghosts}
        for name, jobs in queues.items():
            made = (self.job_type.of_plain(one, self.work_of) for one in state[name])
            jobs.clear()
            jobs.update((job.id, job) for job in made)
        self.finished.restore(state["finished"])
        self.steps = state["steps"]
        self.keeps = tuple(state["keeps"])
        self.ledger.restore(state["ledger"])

    def check_invariants(self) -> None:
        """Assert that units and jobs agree; tests call this at every event."""
        self.ledger.check_invariants(self.running.values())
        assert all(job.state == "SUBMITTED" and job.alloc == NodeSet.EMPTY for job in self.waiting.values())
        assert all(job.state == "RUNNING" for job in self.running.values())
        assert self.waiting.keys().isdisjoint(self.running)
        assert self.finished.isdisjoint(self.waiting)
        assert self.finished.isdisjoint(self.running)
        assert all(job.state == "CANCELLED" and job.id in self.finished for job in self.ghosts.values())
