"""Jobs that wait for others: the server keeps them back, so that every scheduler respects their dependencies."""

from collections import deque
from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Final

from pipistrelle.server.engine.agenda import REQUEUE
from pipistrelle.server.engine.dependency_plan import Condition
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer

if TYPE_CHECKING:
    from pipistrelle.server.engine.engine import Engine

#: written to the jobs file as the metadata of a job that can never start
NEVER: Final = "dependency never satisfied"


class Dependencies(Observer):
    """Keeps jobs back until their conditions are fulfilled.

    A job whose conditions can no longer be fulfilled is rejected at once, by the server: its scheduler never hears of
    it. A job that lost its nodes and comes back has neither ended nor failed yet.

    Parameters
    ----------
    conditions
        {job id: what it waits for}, all of it jobs of the run, without circles.
    """

    def __init__(self, conditions: Mapping[str, tuple[Condition, ...]]) -> None:
        self._conditions = conditions
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
        self._engine: Engine | None = None

    def attach(self, engine: "Engine") -> None:
        """Keep jobs of this engine back from now on; it must have this among its observers."""
        self._engine = engine
        engine.dependencies = self
        engine.handlers[REQUEUE] = self._queue

    def hold(self, job: Job) -> bool:
        """Tell whether a job that is submitted now is kept back, or rejected."""
        if job.id not in self._conditions:
            return False
        engine = self._engine
        assert engine is not None
        time = self._fulfilled(job.id)
        if time is not None and time <= engine.now:
            return False
        self._held.add(job.id)
        engine.held += 1
        engine.pending += 1
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
        engine = self._engine
        assert engine is not None
        if time < inf:
            engine.agenda.put(max(time, engine.now), REQUEUE, job)
            return
        self._let_go(job)
        job.metadata = f"{NEVER}: {' '.join(f'{c.kind}:{c.job_id}' for c in self._conditions[job.id])}"
        engine.cluster.submit(engine.now, job)
        engine.cluster.reject(engine.now, job)

    def _queue(self, job: Job) -> None:
        """Let a job queue: one that was kept back, or one that comes back."""
        assert self._engine is not None
        if job.id in self._held:
            self._let_go(job)
        self._engine.queue(job)

    def _let_go(self, job: Job) -> None:
        assert self._engine is not None
        self._held.discard(job.id)
        self._engine.held -= 1
        self._engine.pending -= 1
