"""Replay the log of a recording, and compare each of our scheduling passes with the real one.

The log is replayed step by step: submissions, ends, kills and requeues change the state of our controller as the log
says. Our controller decides each pass of the main loop and of backfill, and the result is compared with the log. If a
pass differs, the controller returns to the state before it and starts the log's jobs instead, so a difference has no
later effects.

The comparison covers the jobs that each main pass starts, with their nodes; backfill's outcome for each tested job
(nothing, start, or reservation with its time); priorities; and the nodes of all starts.
"""

import json
from collections import Counter
from typing import Any, NamedTuple

from pipistrelle.protocol.base.errors import quoted
from pipistrelle.runs.recordings.decisions import LogStep, PassLog
from pipistrelle.runs.recordings.errors import RecordingError
from pipistrelle.runs.recordings.recording import Recording
from pipistrelle.schedulers.slurm.backfill.backfill_pass import backfill_pass
from pipistrelle.schedulers.slurm.cluster.jobs import COMPLETED, COMPLETING, PENDING, RUNNING, TIMEOUT, SlurmJob
from pipistrelle.schedulers.slurm.nodes.asked import Alloc
from pipistrelle.schedulers.slurm.passes.controller import Controller
from pipistrelle.schedulers.slurm.passes.main_pass import main_pass


class Difference(NamedTuple):
    """A step of the log at which our controller decides differently: time (s), what differs, and file and line."""

    time: float
    text: str
    where: str


class Player:
    """Replays the log of one recording and counts equal results.

    Attributes:
        counts: {name: number} of compared and of equal results, such as ``priorities`` and ``priorities equal``.
        differences: in the order of the log.
    """

    def __init__(self, recording: Recording) -> None:
        self.config = recording.config
        self.jobs = recording.jobs
        self.steps = recording.steps
        self.controller = Controller(self.config)
        self.counts: Counter[str] = Counter()
        self.differences: list[Difference] = []
        index = self.controller.machine.index
        self.alloc: dict[str, Alloc] = {
            job: {index[node]: amounts for node, amounts in nodes.items()}
            for job, nodes in recording.allocations.items()
        }
        self.starts = Counter[str]()
        self.restarts = recording.incarnations
        self.epilogs: dict[str, set[str]] = {}
        self.now = 0
        self.where = ""

    def job(self, name: str, *states: str) -> SlurmJob:
        """Return the record of a job or array task that is in one of ``states``.

        Args:
            name: id of the job, or of an array's task, such as ``34_0``.
            states: Slurm's names of states.

        Raises:
            RecordingError: the controller has no such record in one of these states.
        """
        number, _, task = name.partition("_")
        found = [one for one in self.records(number) if one.state in states]
        if task:
            found = [one for one in found if int(task) in one.tasks_waiting or one.array_task == int(task)]
        if not found:
            raise RecordingError(
                f"the job cannot be in this line of the log because it is not {' or '.join(states).lower()}",
                where=self.where,
                found=quoted(name),
            )
        return found[0]

    def records(self, number: str) -> list[SlurmJob]:
        """Return the records of a job or of an array's tasks; raise RecordingError if it was not submitted."""
        found = self.controller.by_number.get(int(number))
        if not found:
            raise RecordingError("the log uses a job before its submission", where=self.where, found=quoted(number))
        return found

    def play(self) -> None:
        """Replay all steps of the log."""
        for step in self.steps:
            self.where = step.where
            getattr(self, f"on_{step.kind}")(step)

    def on_submit(self, step: LogStep) -> None:
        """Submit a job and compare its first priority with the log; then give the job the recorded priority."""
        sub, tasks, _ = self.jobs[step.job]
        ids = [f"{step.job}_{task}" for task in tasks] or [step.job]
        job, refused = self.controller.submit(ids, sub, int(step.time), tasks)
        if refused:
            self.note(step, f"submission {step.job} is refused: {refused}")
        self.counts["priorities"] += 1
        self.counts["priorities equal"] += job.priority == step.data
        if job.priority != step.data:
            self.note(step, f"priority of {step.job} at submission is {step.data}, ours {job.priority}")
            job.priority = step.data

    def on_priority(self, step: LogStep) -> None:
        """Compare a recalculated priority of a pending job with the log; then give the job the recorded priority."""
        number = int(step.job)
        found = [one for one in self.controller.by_number.get(number, []) if one.state == PENDING]
        if not found:
            return
        job = found[0]
        self.counts["priorities"] += 1
        self.counts["priorities equal"] += job.priority == step.data
        if job.priority != step.data:
            self.note(step, f"priority of {step.job} is {step.data}, ours {job.priority}")
            job.priority = step.data

    def on_complete(self, step: LogStep) -> None:
        """Release the nodes of a job that completed."""
        self.controller.release(self.job(step.job, RUNNING), COMPLETED, int(step.time))

    def on_timeout(self, step: LogStep) -> None:
        """Kill a job that reached its time limit."""
        self.controller.release(self.job(step.job, RUNNING), TIMEOUT, int(step.time), completing=True)

    def on_epilog(self, step: LogStep) -> None:
        """Return a node of a killed job to service.

        The job has ended when its last node is returned.
        """
        job = (
            self.job(step.job, COMPLETING, PENDING)
            if any(one.state == COMPLETING for one in self.records(step.job.split("_")[0]))
            else None
        )
        if job is None or job.state != COMPLETING:
            return
        done = self.epilogs.setdefault(step.job, set())
        done.add(step.data)
        self.controller.machine.completing &= ~(1 << self.controller.machine.index[step.data])
        if len(done) == job.nodes.bit_count():
            self.controller.clean(job)
            del self.epilogs[step.job]

    def on_requeue(self, step: LogStep) -> None:
        """Requeue a preempted job."""
        self.requeued(self.records(step.job.split("_")[0])[0], int(step.time))

    def requeued(self, job: SlurmJob, now: int) -> None:
        """Requeue a preempted job unless it is pending already."""
        if job.state != PENDING:
            if job.state == COMPLETING:
                self.controller.clean(job)
            self.epilogs.pop(job.ids[0], None)
            self.controller.requeue(job, now)

    def on_usage(self, step: LogStep) -> None:
        """Apply the decay to past usage and add the recent usage."""
        self.controller.count_usage(int(step.time))

    def on_recalculate(self, step: LogStep) -> None:
        """Recalculate fairshare and priorities."""
        self.controller.set_priorities(int(step.time))

    def preempt(self, victim: SlurmJob, _: SlurmJob) -> None:
        """Kill the preempted job ``victim``; a later line of the log says when it is requeued."""
        self.controller.release(victim, "PREEMPTED", self.now, completing=True)

    def on_main(self, step: LogStep) -> None:
        """Run a pass of the main loop and compare its starts with the log."""
        seen: PassLog = step.data
        self.now = int(step.time)
        before = self.controller.state()
        result = main_pass(self.controller, self.now, full=seen.full, preempt=self.preempt)
        self._compare_starts(step, seen, result.started, result.preempted, before, "main")

    def on_backfill(self, step: LogStep) -> None:
        """Run a backfill pass and compare its outcomes and starts with the log."""
        seen: PassLog = step.data
        self.now = int(step.time)
        before = self.controller.state()
        result = backfill_pass(self.controller, self.now, preempt=self.preempt)
        ours: list[list[Any]] = []
        for found in result.outcomes:
            name = found.job.ids[0] if found.kind == "start" else str(found.job.number)
            nodes = tuple(self.controller.machine.names_of(found.nodes))
            ours.append([name, found.kind, found.start, found.end, nodes])
        theirs = [[name.split("_")[0] if kind != "start" else name, kind, *rest] for name, kind, *rest in seen.outcomes]
        same_pass = True
        by_job: dict[str, list[Any]] = {}
        for one in ours:
            by_job.setdefault(one[0].split("_")[0], []).append(one)
        first = ""
        for one in theirs:
            self.counts["outcomes"] += 1
            queue = by_job.get(one[0].split("_")[0]) or [[one[0], "untested", 0, 0, ()]]
            mine = queue.pop(0) if len(queue) > 1 or queue[0][1] == "untested" else queue[0]
            equal = mine[1] == one[1] and (one[1] not in ("reserve", "window") or mine[2] == one[2])
            if one[1] == "start":
                equal = equal and set(mine[4]) == set(one[4])
            self.counts["outcomes equal"] += equal
            self.counts["outcomes equal with nodes"] += equal and set(mine[4]) == set(one[4]) and mine[3] == one[3]
            if not equal and not first:
                first = f"{one}, ours {mine}"
            same_pass = same_pass and equal
        if [one[0] for one in ours] != [one[0] for one in theirs]:
            same_pass = False
            first = first or f"tested {[one[0] for one in theirs]}, ours {[one[0] for one in ours]} {result.note}"
        self.counts["backfill passes"] += 1
        self.counts["backfill passes equal"] += same_pass
        if first:
            self.note(step, first)
        self._compare_starts(step, seen, result.started, result.preempted, before, "backfill")

    def _compare_starts(
        self,
        step: LogStep,
        seen: PassLog,
        started: list[SlurmJob],
        preempted: list[tuple[SlurmJob, SlurmJob]],
        before: dict[str, Any],
        kind: str,
    ) -> None:
        names = self.controller.machine.names_of
        ours = [(job.ids[0], tuple(names(job.nodes))) for job in started]
        victims = [(one.ids[0], other.ids[0]) for one, other in preempted]
        same = sorted(ours) == sorted((name, tuple(sorted(nodes))) for name, nodes in seen.started)
        same = same and sorted(victims) == sorted(seen.preempted)
        if kind == "main":
            self.counts["main passes"] += 1
            self.counts["main passes equal"] += same
        known = dict(ours)
        for name, nodes in seen.started:
            self.counts["starts"] += 1
            self.counts["starts on the same nodes"] += known.get(name) == tuple(sorted(nodes))
        if not same:
            self.note(step, f"{kind} starts {seen.started}, ours {ours}; preempts {seen.preempted}, ours {victims}")
            self.controller = Controller(self.config)
            self.controller.restore(json.loads(json.dumps(before)))
            for name, nodes in seen.started:
                job = self.job(name, PENDING)
                part = self.controller.machine.partitions[job.part]
                mask = self.controller.machine.mask_of_names(nodes)
                index = self.controller.machine.index
                nothing: dict[str, int] = {}
                alloc: Alloc = self.real(name) or next(
                    (
                        found
                        for way in self.controller.requests.asked(job, part)
                        if (found := self.controller.selector.now(way, mask)) is not None
                    ),
                    {index[node]: (self.controller.machine.cpus[index[node]], 0, nothing) for node in nodes},
                )
                while job.tasks_waiting and job.ids[0] != name:  # tasks of an array start in order
                    job.ids.append(job.ids.pop(0))
                    job.tasks_waiting.append(job.tasks_waiting.pop(0))
                self.controller.start(job, alloc, self.now)
                self.starts[name] += 1
            for name, _ in seen.preempted:
                self.preempt(self.job(name, RUNNING), self.job(name, RUNNING))
            return
        for job in started:
            name = job.ids[0]
            self.starts[name] += 1
            real = self.real(name)
            if real is not None and real.keys() == job.alloc.keys():
                self.counts["allocations"] += 1
                same_cpus = {at: one[0] for at, one in real.items()} == {at: one[0] for at, one in job.alloc.items()}
                self.counts["allocations with the same CPUs"] += same_cpus
                if not same_cpus:
                    self.force(job, real)

    def real(self, name: str) -> Alloc | None:
        """Return the recorded allocation of a job's current start.

        The recording has only the allocation of a job's last start. Return None if the job will be restarted later, or
        if no allocation was recorded.
        """
        if self.restarts[name] > 1 and self.starts[name] + 1 < self.restarts[name]:
            return None
        return self.alloc.get(name)

    def force(self, job: SlurmJob, alloc: Alloc) -> None:
        """Replace the nodes and resources of a running job by those in the recording (``alloc``)."""
        controller = self.controller
        part = controller.machine.partitions[job.part]
        controller.machine.give(job.alloc)
        controller.limits.end(job)
        if controller.rows is not None:
            controller.rows.remove(job)
        job.alloc = alloc
        job.cpus = sum(cpus for cpus, _, _ in alloc.values())
        job.tres = controller.requests.tres(job, part, alloc)
        controller.machine.take(alloc, whole=job.whole or part.exclusive)
        controller.limits.begin(job)
        if controller.rows is not None:
            controller.rows.add(job)

    def note(self, step: LogStep, text: str) -> None:
        """Append to `differences` that our controller differs at this step; ``text`` says how."""
        self.differences.append(Difference(step.time, text, step.where))

    def shares(self) -> dict[str, float]:
        """Return {kind of result: share of our results that equal the recording}."""
        counts = self.counts
        return {
            name: counts[equal] / counts[name] if counts[name] else 1.0
            for name, equal in (
                ("main passes", "main passes equal"),
                ("outcomes", "outcomes equal"),
                ("priorities", "priorities equal"),
                ("starts", "starts on the same nodes"),
            )
        }
