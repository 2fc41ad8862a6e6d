"""Preemption of running jobs: grace period, last checkpoint and requeue."""

from typing import Any

from pipistrelle.protocol.decisions import PreemptJobData
from pipistrelle.protocol.fields import PREEMPTED
from pipistrelle.server.attempts.attempt import AttemptRules, attempt_of
from pipistrelle.server.attempts.attempts import Attempts
from pipistrelle.server.attempts.last_dump import LastDump
from pipistrelle.server.engine.agenda import PREEMPTION, Entry, Handlers
from pipistrelle.server.engine.clockwork import Clockwork
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.errors import Illegal


class Preemption:
    """The engine part that preempts running jobs.

    It works on machines with and without failures. With a grace period the job keeps running for that long. If the job
    ends in time, even at the last instant, it counts as ended, not as preempted. The same holds for a job in its
    epilogue and a job whose nodes fail. Otherwise the attempt ends, possibly after a last checkpoint. The job is then
    requeued at once, unless the scheduler wants it cancelled.
    """

    def __init__(self, clockwork: Clockwork, attempts: Attempts, rules: AttemptRules) -> None:
        self._clockwork = clockwork
        self._cluster = clockwork.cluster
        self._agenda = clockwork.agenda
        self._attempts = attempts
        self._rules = rules
        #: {job id: agenda entry} of jobs being preempted; the entry is the end of the grace period or last dump
        self._going: dict[str, Entry] = {}

    def handlers(self) -> Handlers:
        """Return {event class: function that handles its events}."""
        return {PREEMPTION: self._grace_over}

    def state(self) -> None:
        """Return None: the preemptions have no state of their own.

        The events on the agenda describe them, and the agenda is saved elsewhere in a snapshot.
        """

    def restore(self, state: Any) -> None:
        """Find the events of jobs that are being preempted on the restored agenda.

        ``state`` is not used.
        """
        self._going = self._agenda.of(PREEMPTION)

    def preempt(self, order: PreemptJobData) -> None:
        """Preempt a running job after its grace period, or raise Illegal."""
        job = self._cluster.running.get(order.job_id)
        if job is None:
            raise self._not_running(order.job_id)
        attempt, now = attempt_of(job), self._clockwork.now
        if attempt.preempting is not None:
            raise Illegal("wrong_state", f"{job.id} is being preempted already")
        if job.start == now:
            raise Illegal("wrong_state", f"{job.id} was started at this very instant; it can be preempted later")
        attempt.preempting = order.mode
        if order.grace:
            self._going[job.id] = self._agenda.put(now + order.grace, PREEMPTION, job.id)
        else:
            self._take_away(job)

    def check_invariants(self) -> None:
        """Assert that each job that is being preempted runs.

        The end of its grace period must be on the agenda.
        """
        coming = self._agenda.of(PREEMPTION)
        asked = {job.id for job in self._cluster.running.values() if attempt_of(job).preempting is not None}
        assert self._going.keys() == asked == coming.keys(), f"being preempted: {self._going}, {asked}, {coming}"
        for job_id, entry in self._going.items():
            assert coming[job_id] is entry, f"the end of the grace of {job_id} is not on the agenda"

    def leaves(self, job: Job) -> None:
        """Delete the data about the preemption of a job that ends now."""
        entry = self._going.pop(job.id, None)
        if entry is not None:
            self._agenda.cancel(entry)

    def _grace_over(self, job_id: str) -> None:
        del self._going[job_id]
        self._take_away(self._cluster.running[job_id])

    def _take_away(self, job: Job) -> None:
        attempt, now = attempt_of(job), self._clockwork.now
        if now >= attempt.work_ends:  # the job is in its epilogue and ends by itself
            self._going[job.id] = self._agenda.put(now + job.epilogue, PREEMPTION, job.id)
            return
        progress = attempt.progress
        dumps = attempt.preempting == "checkpoint" and attempt.resilience.interval is not None
        if dumps and progress is not None and now >= attempt.began and not isinstance(progress, LastDump):
            left, team = progress.left_of_dump(now, attempt.resilience.dump)
            progress = attempt.progress = LastDump(progress, now, now + left, team)
            if left > 0:
                self._attempts.await_end(job)
                self._going[job.id] = self._agenda.put(now + left, PREEMPTION, job.id)
                return
        if isinstance(progress, LastDump):
            attempt.dumped_last = progress.saves
        if progress is not None:
            progress.give_up(self._attempts.work_time(job))
        attempt.preempted = True
        again = self._attempts.give_up(job, PREEMPTED, "kill", comes_back=attempt.preempting != "cancel")
        if again is not None:
            new = attempt_of(again)
            new.fruitless = attempt.fruitless  # preemption is not a failure of nodes
            if self._rules.requeue != "back":
                new.queued = attempt.origin
            self._clockwork.queue_at(now, again)

    def _not_running(self, job_id: str) -> Illegal:
        cluster = self._cluster
        if job_id in cluster.waiting or job_id in cluster.coming:
            return Illegal("wrong_state", f"{job_id} waits; only a running job can be preempted")
        if job_id in cluster.finished:
            return Illegal("wrong_state", f"{job_id} has ended already")
        return Illegal("unknown_job", f"no job {job_id} was submitted")
