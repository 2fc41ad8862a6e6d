"""Record the events that a scheduler receives if it takes over a run."""

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
    """Records the started and the queued jobs, in order of these events."""

    def __init__(self) -> None:
        self._events: list[tuple[str, Event]] = []
        self._gone: set[str] = set()

    def submitted(self, now: float, job: Job) -> None:
        """Record a submission."""
        self._events.append((job.id, JobSubmitted(now, job.announcement())))

    def started(self, now: float, job: Job) -> None:
        """Record a start."""
        self._events.append((job.id, JobStarted(now, JobStartedData(job.id, str(job.alloc)))))

    def ended(self, now: float, job: Job) -> None:
        """Record the end of a job that ran; forget jobs that never started."""
        if job.alloc:
            state: Any = str(job.state)
            self._events.append((job.id, JobCompleted(now, JobCompletedData(job.id, state, str(job.alloc)))))
        else:
            self._gone.add(job.id)

    def events(self) -> list[Event]:
        """Return the events for the new scheduler."""
        return [event for job_id, event in self._events if job_id not in self._gone]
