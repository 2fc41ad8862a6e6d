"""Past events for a scheduler that takes over a running simulation."""

from typing import Any

from pipistrelle.protocol.events import (
    Event,
    JobCompleted,
    JobCompletedData,
    JobStarted,
    JobStartedData,
    JobSubmitted,
)
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer


class History(Observer):
    """Records submissions, starts and ends of jobs as protocol events, in order.

    Jobs that left the queue without running are dropped.
    """

    def __init__(self) -> None:
        self._events: list[tuple[str, Event]] = []
        self._gone: set[str] = set()

    def submitted(self, now: float, job: Job) -> None:
        """Record the submission of a job as an event."""
        self._events.append((job.id, JobSubmitted(now, job.announcement())))

    def started(self, now: float, job: Job) -> None:
        """Record the start of a job as an event."""
        self._events.append((job.id, JobStarted(now, JobStartedData(job.id, str(job.alloc)))))

    def ended(self, now: float, job: Job) -> None:
        """Record the end of a job that ran.

        If the job never ran, mark it so that `events` omits it.
        """
        if job.alloc:
            state: Any = str(job.state)
            self._events.append((job.id, JobCompleted(now, JobCompletedData(job.id, state, str(job.alloc)))))
        else:
            self._gone.add(job.id)

    def events(self) -> list[Event]:
        """Return the recorded events, without those of jobs that never ran."""
        return [event for job_id, event in self._events if job_id not in self._gone]
