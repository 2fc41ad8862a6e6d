"""What a scheduler that takes a run over is told of it."""

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
    """Notes the jobs that were started, and those that wait, in the order in which that happened."""

    def __init__(self) -> None:
        self._events: list[tuple[str, Event]] = []
        self._gone: set[str] = set()

    def submitted(self, now: float, job: Job) -> None:
        """Note it."""
        self._events.append((job.id, JobSubmitted(now, job.announcement())))

    def started(self, now: float, job: Job) -> None:
        """Note it."""
        self._events.append((job.id, JobStarted(now, JobStartedData(job.id, str(job.alloc)))))

    def ended(self, now: float, job: Job) -> None:
        """Note the end of a job that ran; the others are as if they had never been."""
        if job.alloc:
            state: Any = str(job.state)
            self._events.append((job.id, JobCompleted(now, JobCompletedData(job.id, state, str(job.alloc)))))
        else:
            self._gone.add(job.id)

    def events(self) -> list[Event]:
        """Return what is told."""
        return [event for job_id, event in self._events if job_id not in self._gone]
