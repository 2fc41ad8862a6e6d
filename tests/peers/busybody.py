"""A scheduler on pybatsim that uses rarely used decisions: `pybatsim busybody.py`.

First come, first served, lowest units first. Each job of the workload is killed 30 s after its start if it still runs.
The first kill leads to a job of 5 s of the scheduler's own, whose metadata says why.
"""

from itertools import islice

from batsim.batsim import BatsimScheduler
from procset import ProcSet


class Busybody(BatsimScheduler):
    """Kills jobs, registers jobs, sends metadata."""

    def onSimulationBegins(self):  # noqa: N802 - pybatsim's names here and below
        """Begin with all units free."""
        self.free = ProcSet((0, self.bs.nb_compute_resources - 1))
        self.queue = []
        self.running = {}
        self.told = False

    def onJobSubmission(self, job):  # noqa: N802
        """Queue the job, or reject it."""
        if job.requested_resources > self.bs.nb_compute_resources:
            self.bs.reject_jobs([job])
        else:
            self.queue.append(job)

    def onJobCompletion(self, job):  # noqa: N802
        """Free the units; pybatsim also reports killed jobs here."""
        self.free |= job.allocation
        del self.running[job.id]

    def onJobsKilled(self, jobs):  # noqa: N802
        """Report their progress, and register a job once."""
        for job in jobs:
            print("killed", job.id, job.progress["progress"], flush=True)
        if "own" not in self.bs.profiles:
            self.bs.register_profiles("own", {"short": {"type": "delay", "delay": 5}})
            self.bs.register_job("own!1", 1, 10, "short")
            self.bs.set_job_metadata("own!1", "after " + jobs[0].id)

    def onRequestedCall(self):  # noqa: N802
        """Kill the jobs that have run for 30 s."""
        now = self.bs.time()
        old = [job for job, start in self.running.values() if start + 30 <= now and job.workload == "w0"]
        if old:
            self.bs.kill_jobs(old)

    def onNoMoreEvents(self):  # noqa: N802
        """Start the jobs that fit, and say when registration is finished."""
        while self.queue and self.queue[0].requested_resources <= len(self.free):
            job = self.queue.pop(0)
            job.allocation = ProcSet(*islice(self.free, job.requested_resources))
            self.free -= job.allocation
            self.running[job.id] = (job, self.bs.time())
            self.bs.execute_job(job)
            self.bs.wake_me_up_at(self.bs.time() + 30)
        if self.bs.no_more_static_jobs and not self.queue and not self.running and not self.told:
            self.told = True
            self.bs.notify_registration_finished()
