"""Jobs held in the server until their dependencies are fulfilled.

This works under any scheduler.
"""

from collections import deque
from collections.abc import Mapping
from math import inf
from typing import Any, Final, NamedTuple

from pipistrelle.protocol.base.state import Kept
from pipistrelle.server.engine.clockwork import Clockwork
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer

#: metadata in the jobs file for a job that can never start
NEVER: Final = "dependency never satisfied"
#: {kind of dependency: when it is fulfilled}
KINDS: Final = {
    "after": "its start",
    "afterok": "its success",
    "afterany": "its end",
    "afternotok": "its end without success",
}
#: kind of the condition that a job may begin at a time; its delay is that time (s)
BEGIN: Final = "begin"


class Condition(NamedTuple):
    """A condition for a job's start: an event of another job, or a time.

    It is fulfilled ``delay`` seconds after the other job's event of kind ``kind`` (`KINDS`). For kind `BEGIN`,
    ``delay`` is the earliest start time (s) and there is no other job.
    """

    kind: str
    job_id: str
    delay: float = 0.0


class Dependencies(Kept, Observer):
    """The jobs held until their dependencies are fulfilled.

    This is an observer of the cluster. The server rejects a job at once when its dependencies can no longer be
    fulfilled. The scheduler never sees that job. A job that lost its nodes and is requeued has neither ended nor
    failed. The dependencies must not have cycles.
    """

    _kept = ("_started", "_ended", "_held")

    def __init__(self, clockwork: Clockwork, conditions: Mapping[str, tuple[Condition, ...]]) -> None:
        self._clockwork = clockwork
        self._conditions = conditions
        self.exist = bool(conditions)
        #: for jobs that others wait for: the start (s), and (the end (s), whether the job succeeded)
        self._started: dict[str, float] = {}
        self._ended: dict[str, tuple[float, bool]] = {}
        #: {id of a job that others wait for: {id: submitted job that waits for it}}
        self._waiting: dict[str, dict[str, Job]] = {
            condition.job_id: {} for some in conditions.values() for condition in some if condition.kind != BEGIN
        }
        self._held: set[str] = set()
        self._changed: deque[str] = deque()
        self._busy = False

    @property
    def held(self) -> int:
        """Number of held jobs."""
        return len(self._held)

    def listens(self, hook: str) -> bool:
        """Return whether the engine must call the observer's method ``hook``.

        It need not if no job has dependencies.
        """
        return bool(self._conditions) and super().listens(hook)

    def state(self) -> dict[str, Any]:
        """Return the state as JSON values for a snapshot, including the held jobs."""
        waiting = {job.id: job for jobs in self._waiting.values() for job in jobs.values()}
        return {
            **super().state(),
            "jobs": [job.as_plain() for job in waiting.values()],
            "waiting": {job_id: list(jobs) for job_id, jobs in self._waiting.items() if jobs},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the held jobs and their dependencies from a snapshot."""
        super().restore(state)
        cluster = self._clockwork.cluster
        made = [cluster.job_type.of_plain(one, cluster.work_of) for one in state["jobs"]]
        jobs = {job.id: job for job in made}
        for job_id, names in state["waiting"].items():
            self._waiting[job_id].update((name, jobs[name]) for name in names)

    def each(self) -> list[Job]:
        """Return the held jobs.

        A job that waits for several other jobs is listed once for each of them.
        """
        return [job for jobs in self._waiting.values() for job in jobs.values()]

    def hold(self, job: Job) -> bool:
        """Hold or reject a submitted job if its dependencies require it.

        Return whether the job was held or rejected.
        """
        if job.id not in self._conditions:
            return False
        time = self._fulfilled(job.id)
        if time is not None and time <= self._clockwork.now:
            return False
        self._held.add(job.id)
        self._clockwork.pending += 1
        if time is None:
            for condition in self._conditions[job.id]:
                if condition.kind != BEGIN:
                    self._waiting[condition.job_id][job.id] = job
        else:
            self._settle(job, time)
        return True

    def started(self, now: float, job: Job) -> None:
        """Release the jobs that waited for this job's start."""
        if job.id in self._waiting:
            self._started[job.id] = now
            self._look(job.id)

    def ended(self, now: float, job: Job) -> None:
        """Release or reject the jobs that waited for this job's end."""
        attempt = job.attempt
        if attempt is not None and attempt.retried:
            return
        root = job.id if attempt is None else attempt.root
        if root in self._waiting:
            self._ended[root] = (now, job.state == "COMPLETED_SUCCESSFULLY")
            self._look(root)

    def _look(self, job_id: str) -> None:
        """Release or reject the jobs that waited for this job, and then their dependents."""
        self._changed.append(job_id)
        if self._busy:
            return
        self._busy = True
        while self._changed:
            for job in list(self._waiting[self._changed.popleft()].values()):
                time = self._fulfilled(job.id)
                if time is not None:
                    for condition in self._conditions[job.id]:
                        if condition.kind != BEGIN:
                            self._waiting[condition.job_id].pop(job.id, None)
                    self._settle(job, time)
        self._busy = False

    def _fulfilled(self, job_id: str) -> float | None:
        """Return the time (s) at which a job's dependencies are fulfilled.

        Return inf if they can never be fulfilled, and None if the time is not known yet.
        """
        times = [self._time_of(condition) for condition in self._conditions[job_id]]
        if inf in times:
            return inf
        return None if None in times else max(time for time in times if time is not None)

    def _time_of(self, condition: Condition) -> float | None:
        if condition.kind == BEGIN:
            return condition.delay
        ended = self._ended.get(condition.job_id)
        if condition.kind == "after":
            start = self._started.get(condition.job_id)
            if start is None and ended is not None:  # the other job was rejected
                start = ended[0]
            return None if start is None else start + condition.delay
        if ended is None:
            return None
        time, succeeded = ended
        if (condition.kind == "afterok" and not succeeded) or (condition.kind == "afternotok" and succeeded):
            return inf
        return time + condition.delay

    def _settle(self, job: Job, time: float) -> None:
        now, cluster = self._clockwork.now, self._clockwork.cluster
        if time < inf:
            self._clockwork.queue_at(max(time, now), job)
            return
        self.let_go(job.id)
        job.metadata = (
            f"{NEVER}: {' '.join(f'{c.kind}:{c.job_id}' for c in self._conditions[job.id] if c.kind != BEGIN)}"
        )
        cluster.submit(now, job)
        cluster.reject(now, job)

    def let_go(self, job_id: str) -> None:
        """Stop counting a job among the held jobs."""
        if job_id in self._held:
            self._held.discard(job_id)
            self._clockwork.pending -= 1
