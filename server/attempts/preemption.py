"""Jobs whose units can be taken away for others: what is asked for, the grace that they have, and what they keep."""

from typing import Any

from pipistrelle.protocol.decisions import PreemptJobData
from pipistrelle.protocol.fields import PREEMPTED
from pipistrelle.server.attempts.attempts import FailingLives, attempt_of
from pipistrelle.server.attempts.last_dump import LastDump
from pipistrelle.server.engine.agenda import PREEMPTION, Entry, Handlers
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.errors import Illegal


class PreemptibleLives(FailingLives):
    """Jobs that may lose their units by a decision, too, on a machine whose nodes may fail or not.

    A job that is to be preempted goes on for its grace. If it ends by itself meanwhile, or at the very end of it, that
    is how it has ended, and one in its epilogue does so whatever its grace; so it is if its nodes fail. Then, or after
    a last dump, its attempt is over, and it comes back to the queue at the same instant unless it was to be cancelled.
    """

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        #: {job id: agenda entry} of those that have been told to go: the end of their grace, or of their last dump
        self._going: dict[str, Entry] = {}

    def handlers(self) -> Handlers:
        """Return what is done with which class of what stands on the agenda."""
        return {**super().handlers(), PREEMPTION: self._grace_over}

    def state(self) -> dict[str, Any]:
        """Return who is going, too, by the number of the entry on the agenda."""
        return {**super().state(), "going": {job_id: entry[2] for job_id, entry in self._going.items()}}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from such a state."""
        super().restore(state)
        entries = self._agenda.entries()
        self._going = {job_id: entries[number] for job_id, number in state["going"].items()}

    def preempt(self, order: PreemptJobData) -> None:
        """Take a running job's units away when its grace is over; Illegal if that cannot be."""
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

    def is_going(self, job: Job) -> bool:
        """Tell whether a running job is being preempted."""
        return job.id in self._going

    def check_invariants(self) -> None:
        """Assert also that each job that was told to go runs, and that its time to go is to come."""
        super().check_invariants()
        entries = self._agenda.entries()
        asked = {job.id for job in self._cluster.running.values() if attempt_of(job).preempting is not None}
        coming = {entry[3] for entry in entries.values() if entry[1] == PREEMPTION}
        assert self._going.keys() == asked == coming, f"to go: {sorted(self._going)}, {sorted(asked)}, {sorted(coming)}"
        for job_id, entry in self._going.items():
            assert entries.get(entry[2]) is entry, f"the end of the grace of {job_id} is not on the agenda"

    def _leaves(self, job: Job) -> None:
        """Take note that a job ends now; whoever was to go has gone."""
        entry = self._going.pop(job.id, None)
        if entry is not None:
            self._agenda.cancel(entry)
        super()._leaves(job)

    def _grace_over(self, job_id: str) -> None:
        """Take a job's units away whose grace, or last dump, is over."""
        del self._going[job_id]
        self._take_away(self._cluster.running[job_id])

    def _take_away(self, job: Job) -> None:
        attempt, now = attempt_of(job), self._clockwork.now
        if now >= attempt.work_ends:  # in its epilogue: it goes by itself
            self._going[job.id] = self._agenda.put(now + job.epilogue, PREEMPTION, job.id)
            return
        progress = attempt.progress
        dumps = attempt.preempting == "checkpoint" and attempt.resilience.interval is not None
        if dumps and progress is not None and now >= attempt.began and not isinstance(progress, LastDump):
            left, team = progress.left_of_dump(now, attempt.resilience.dump)
            progress = attempt.progress = LastDump(progress, now, now + left, team)
            if left > 0:
                self._await_end(job)
                self._going[job.id] = self._agenda.put(now + left, PREEMPTION, job.id)
                return
        if isinstance(progress, LastDump):
            attempt.dumped_last = progress.saves
        if progress is not None:
            progress.give_up(self._work_time(job))
        attempt.cause, attempt.preempted = PREEMPTED, True
        most = self._options.max_attempts
        attempt.retried = attempt.preempting != "cancel" and (most is None or attempt.number + 1 < most)
        self.kill(job)
        if attempt.retried:
            again = self._next(job)
            new = attempt_of(again)
            new.fruitless = attempt.fruitless  # it was not its nodes that cost it its work
            if self._options.requeue != "back":
                new.queued = attempt.origin
            self._clockwork.queue_at(now, again)

    def _not_running(self, job_id: str) -> Illegal:
        cluster = self._cluster
        if job_id in cluster.waiting or job_id in cluster.coming:
            return Illegal("wrong_state", f"{job_id} waits; only a running job can be preempted")
        if job_id in cluster.finished:
            return Illegal("wrong_state", f"{job_id} has ended already")
        return Illegal("unknown_job", f"no job {job_id} was submitted")
