"""The machine with its jobs: which wait, which run where, and each step."""

from collections.abc import Sequence
from typing import Any, NoReturn

from pipistrelle.platforms.requests.requests import NodeRequest, RequestBook
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.protocol.units.text import NodeSetError
from pipistrelle.server.engine.jobs import LIFE, Job, JobIds, Step, WorkOf
from pipistrelle.server.engine.ledger import Ledger
from pipistrelle.server.engine.observers import Hooks, Observer
from pipistrelle.server.errors import Illegal


def _no_work(job_id: str, profile: str) -> NoReturn:
    raise AssertionError(f"{job_id} has work, but no part of the run does work")


class Cluster:
    """Jobs and units together; every change of either goes through its methods.

    Args:
        requests: what jobs can ask of nodes; needed if some do.
        ledger: keeps account of the units; None: one job per unit.
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
        #: returns the work of a job; set by the jobs' lives if jobs have work
        self.work_of: WorkOf = _no_work
        self.ledger = Ledger(units) if ledger is None else ledger
        self.requests = requests
        self._observers = tuple(observers)
        self.hooks = Hooks(self._observers)
        #: {job id: job}. Held, or requeued after a loss of nodes; the time is on the agenda.
        self.coming: dict[str, Job] = {}
        #: {job id: job}. Submitted, neither started nor rejected, in order of submission.
        self.waiting: dict[str, Job] = {}
        #: {job id: job}. Started, not ended, in order of start.
        self.running: dict[str, Job] = {}
        #: ids of jobs in a final state; the jobs themselves are forgotten
        self.finished = JobIds()
        #: {job id: job}. Cancelled while queued without the scheduler's knowledge, so it may still start them.
        self.ghosts: dict[str, Job] = {}
        #: number of steps that jobs took so far; shows whether anything happened in between
        self.steps = 0
        #: what the scheduler's last reply keeps units for while jobs wait, in words
        self.keeps: tuple[str, ...] = ()

    def watch(self, observers: Sequence[Observer]) -> None:
        """Add observers, after the present ones."""
        self._observers += tuple(observers)
        self.hooks = Hooks(self._observers)

    def submit(self, now: float, job: Job) -> None:
        """Queue a job."""
        self.waiting[job.id] = job
        self.steps += 1
        for hook in self.hooks.submitted:
            hook(now, job)

    def execute(self, now: float, job: Job, alloc_text: str) -> None:
        """Start a waiting job on the units of ``alloc_text``, or raise Illegal."""
        if job.request is not None:
            self._check_request(job, job.request, alloc_text)
        alloc = self.ledger.take(job, alloc_text)
        job.state = LIFE[job.state]["execute"]
        job.alloc = alloc
        job.start = now
        del self.waiting[job.id]
        self.running[job.id] = job
        self.steps += 1
        for hook in self.hooks.started:
            hook(now, job)

    def _check_request(self, job: Job, request: NodeRequest, text: str) -> None:
        """Raise Illegal if units do not satisfy a request; the ledger checks the rest."""
        assert self.requests is not None, f"{job.id} asks for {request}, but this machine has no request book"
        try:
            alloc = NodeSet.parse(text)
        except NodeSetError:
            return
        if len(alloc) != job.size or alloc.last >= self.ledger.units:
            return
        fault = self.requests.fault(request, job.size, alloc)
        if fault is not None:
            raise Illegal("wrong_units", f"'alloc' of {job.id} has {fault}")

    def run_elsewhere(self, now: float, job: Job) -> None:
        """Mark a waiting job as running, on no units, as its scheduler declared."""
        job.state = LIFE[job.state]["execute"]
        job.start = now
        del self.waiting[job.id]
        self.running[job.id] = job
        self.steps += 1

    def end(self, now: float, job: Job, step: Step) -> None:
        """End a running job and free its units."""
        job.state = LIFE[job.state][step]
        job.end = now
        self.ledger.give_back(job)
        del self.running[job.id]
        self.finished.add(job.id)
        self.steps += 1
        for hook in self.hooks.ended:
            hook(now, job)

    def reject(self, now: float, job: Job) -> None:
        """Reject a waiting job for good."""
        job.state = LIFE[job.state]["reject"]
        del self.waiting[job.id]
        self.finished.add(job.id)
        self.steps += 1
        for hook in self.hooks.ended:
            hook(now, job)

    def cancel(self, now: float, job: Job, *, told: bool) -> None:
        """Cancel a waiting job; ``told``: whether the scheduler is notified."""
        job.state = LIFE[job.state]["cancel"]
        job.end = now
        del self.waiting[job.id]
        self.finished.add(job.id)
        if not told:
            self.ghosts[job.id] = job
        self.steps += 1
        for hook in self.hooks.ended:
            hook(now, job)

    def lay(self, job: Job, alloc_text: str) -> NodeSet:
        """Start and end a silently cancelled job at once; return its units, or Illegal."""
        if job.request is not None:
            self._check_request(job, job.request, alloc_text)
        job.alloc = self.ledger.take(job, alloc_text)
        self.ledger.give_back(job)
        del self.ghosts[job.id]
        return job.alloc

    def knows(self, job_id: str) -> bool:
        """Return whether a job with this id was ever submitted."""
        return job_id in self.waiting or job_id in self.running or job_id in self.finished

    def state(self) -> dict[str, Any]:
        """Return all jobs in order, and the ledger's state."""
        queues = {"coming": self.coming, "waiting": self.waiting, "running": self.running, "ghosts": self.ghosts}
        return {
            **{name: [job.as_plain() for job in jobs.values()] for name, jobs in queues.items()},
            "finished": self.finished.state(),
            "steps": self.steps,
            "keeps": list(self.keeps),
            "ledger": self.ledger.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a saved state."""
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
