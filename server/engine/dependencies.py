"""What jobs wait for: the server keeps them back, so that every scheduler obeys."""

from collections import deque
from collections.abc import Mapping
from math import inf
from typing import Any, Final, NamedTuple

from pipistrelle.protocol.base.state import Kept
from pipistrelle.server.engine.clockwork import Clockwork
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer

#: written to the jobs file as the metadata of a job that can never start
NEVER: Final = "dependency never satisfied"
#: {kind: what of the other job fulfils it}
KINDS: Final = {
    "after": "its start",
    "afterok": "its success",
    "afterany": "its end",
    "afternotok": "its end without success",
}


class Condition(NamedTuple):
    """What a job waits for: ``delay`` seconds after another's start or end, as ``kind`` says (`KINDS`)."""

    kind: str
    job_id: str
    delay: float = 0.0


class Dependencies(Kept, Observer):
    """Keeps jobs back until their conditions are fulfilled.

    A job whose conditions can no longer be fulfilled is rejected at once, by the server: its scheduler never hears of
    it. A job that lost its nodes and comes back has neither ended nor failed yet.

    Parameters
    ----------
    clockwork
        the run's; this must be among its cluster's observers.
    conditions
        {job id: what it waits for}, all of it jobs of the run, without circles; empty: no job depends on another.
    """

    _kept = ("_started", "_ended", "_held")

    def __init__(self, clockwork: Clockwork, conditions: Mapping[str, tuple[Condition, ...]]) -> None:
        self._clockwork = clockwork
        self._conditions = conditions
        #: whether any job waits for others
        self.exist = bool(conditions)
        #: of the jobs that others wait for: when each started, and (when it ended, whether it succeeded), in seconds
        self._started: dict[str, float] = {}
        self._ended: dict[str, tuple[float, bool]] = {}
        #: {id of a job that others wait for: those that are submitted and do, by id}
        self._waiting: dict[str, dict[str, Job]] = {
            condition.job_id: {} for some in conditions.values() for condition in some
        }
        #: ids of the jobs that are kept back
        self._held: set[str] = set()
        self._changed: deque[str] = deque()
        self._busy = False

    @property
    def held(self) -> int:
        """How many jobs are kept back."""
        return len(self._held)

    def listens(self, hook: str) -> bool:
        """Tell whether the hook is of interest: none is where no job depends on another."""
        return bool(self._conditions) and super().listens(hook)

    def state(self) -> dict[str, Any]:
        """Return who is kept back for whom, and what became of those."""
        waiting = {job.id: job for jobs in self._waiting.values() for job in jobs.values()}
        return {
            **super().state(),
            "jobs": [job.as_plain() for job in waiting.values()],
            "waiting": {job_id: list(jobs) for job_id, jobs in self._waiting.items() if jobs},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from such a state."""
        super().restore(state)
        cluster = self._clockwork.cluster
        made = [cluster.job_type.of_plain(one, cluster.work_of) for one in state["jobs"]]
        jobs = {job.id: job for job in made}
        for job_id, names in state["waiting"].items():
            self._waiting[job_id].update((name, jobs[name]) for name in names)

    def each(self) -> list[Job]:
        """Return the jobs that wait for others to start or end."""
        return [job for jobs in self._waiting.values() for job in jobs.values()]

    def hold(self, job: Job) -> bool:
        """Tell whether a job that is submitted now is kept back, or rejected."""
        if job.id not in self._conditions:
            return False
        time = self._fulfilled(job.id)
        if time is not None and time <= self._clockwork.now:
            return False
        self._held.add(job.id)
        self._clockwork.pending += 1
        if time is None:
            for condition in self._conditions[job.id]:
                self._waiting[condition.job_id][job.id] = job
        else:
            self._settle(job, time)
        return True

    def started(self, now: float, job: Job) -> None:
        """Look who waited for this job's start."""
        if job.id in self._waiting:
            self._started[job.id] = now
            self._look(job.id)

    def ended(self, now: float, job: Job) -> None:
        """Look who waited for this job's end."""
        attempt = job.attempt
        if attempt is not None and attempt.retried:
            return
        root = job.id if attempt is None else attempt.root
        if root in self._waiting:
            self._ended[root] = (now, job.state == "COMPLETED_SUCCESSFULLY")
            self._look(root)

    def _look(self, job_id: str) -> None:
        """Let go, or reject, who has waited for this job; a rejection can be what others have waited for."""
        self._changed.append(job_id)
        if self._busy:
            return
        self._busy = True
        while self._changed:
            for job in list(self._waiting[self._changed.popleft()].values()):
                time = self._fulfilled(job.id)
                if time is not None:
                    for condition in self._conditions[job.id]:
                        self._waiting[condition.job_id].pop(job.id, None)
                    self._settle(job, time)
        self._busy = False

    def _fulfilled(self, job_id: str) -> float | None:
        """Return when the conditions are fulfilled (s), inf if never, None if no one can tell yet."""
        times = [self._time_of(condition) for condition in self._conditions[job_id]]
        if inf in times:
            return inf
        return None if None in times else max(time for time in times if time is not None)

    def _time_of(self, condition: Condition) -> float | None:
        ended = self._ended.get(condition.job_id)
        if condition.kind == "after":
            start = self._started.get(condition.job_id)
            if start is None and ended is not None:  # it was rejected
                start = ended[0]
            return None if start is None else start + condition.delay
        if ended is None:
            return None
        time, succeeded = ended
        if (condition.kind == "afterok" and not succeeded) or (condition.kind == "afternotok" and succeeded):
            return inf
        return time + condition.delay

    def _settle(self, job: Job, time: float) -> None:
        """Let a job that is kept back queue at ``time`` (s), or reject it if that is never."""
        now, cluster = self._clockwork.now, self._clockwork.cluster
        if time < inf:
            self._clockwork.queue_at(max(time, now), job)
            return
        self.let_go(job.id)
        job.metadata = f"{NEVER}: {' '.join(f'{c.kind}:{c.job_id}' for c in self._conditions[job.id])}"
        cluster.submit(now, job)
        cluster.reject(now, job)

    def let_go(self, job_id: str) -> None:
        """Take note that a job is not kept back any more, if it was."""
        if job_id in self._held:
            self._held.discard(job_id)
            self._clockwork.pending -= 1
