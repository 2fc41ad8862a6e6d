"""What jobs' units consume while they run."""

from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.hosts.hosts import Hosts


class JobMeter(Observer):
    """Sets each job's ``energy``: joules of its units from its start to its end, all of them, whoever else runs there.

    It must be told at once, and before those who read it.
    """

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        #: {job id: joules of its units from time 0 to its start}
        self._before: dict[str, float] = {}

    def started(self, now: float, job: Job) -> None:
        """Read the meter."""
        self._before[job.id] = self._hosts.energy(now, job.alloc)

    def ended(self, now: float, job: Job) -> None:
        """Read it again."""
        before = self._before.pop(job.id, None)
        if before is not None:
            job.energy = self._hosts.energy(now, job.alloc) - before
