"""The policy ``slurm``: the decisions of slurmctld on the simulated machine."""

from collections import Counter
from collections.abc import Sequence
from math import inf
from typing import Any, Final

from msgspec import convert, to_builtins
from msgspec.structs import replace

from pipistrelle.protocol.base.log import logger
from pipistrelle.protocol.events import JobDescription
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.policy.interfaces import PastStep
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.order import Order
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.slurm.cluster.bits import indices_of, mask_of
from pipistrelle.schedulers.slurm.cluster.jobs import (
    CANCELLED,
    COMPLETED,
    ENDED,
    FAILED,
    PENDING,
    PREEMPTED,
    RUNNING,
    TIMEOUT,
    SlurmJob,
)
from pipistrelle.schedulers.slurm.config.settings import SlurmConfig
from pipistrelle.schedulers.slurm.config.submission import Submission
from pipistrelle.schedulers.slurm.daemon import Daemon
from pipistrelle.schedulers.slurm.files.submission import submission_of
from pipistrelle.schedulers.slurm.passes.controller import Controller
from pipistrelle.schedulers.slurm.passes.pinning import chosen_on, even_on
from pipistrelle.schedulers.slurm.tables import (
    Diagnostics,
    diagnostics_table,
    factors_table,
    queue_table,
    shares_table,
)
from pipistrelle.schedulers.slurm.takes import takes_of

_CALL: Final = "slurm"
#: final state in the protocol of a job that reached its walltime
_LATE: Final = "COMPLETED_WALLTIME_REACHED"
#: {final state in the protocol: Slurm's state of a job that the controller did not end}
_STATES: Final = {"COMPLETED_FAILED": FAILED, "COMPLETED_KILLED": CANCELLED, _LATE: TIMEOUT}
#: numbers of jobs whose ids are not numbers begin here
_UNNUMBERED: Final = 1_000_000_000
#: machines of more nodes skip the backfill passes that can start nothing
_SMALL: Final = 64


class SlurmPolicy:
    """Decides as slurmctld does with the configuration of a cluster.

    Args:
        config: the settings of the cluster; node names are those of the machine. ``config.answers`` is the delay from
            a job's end to the request for a pass of the main loop.
    """

    name = "slurm"
    features = ("labels", "options", "preemption")

    def __init__(self, config: SlurmConfig) -> None:
        self.order: Order = Fcfs()
        self._config = config
        self._daemon: Daemon | None = None
        self._view: View | None = None
        #: {server's id: record}; {server's id: job in the view}
        self._records: dict[str, SlurmJob] = {}
        self._jobs: dict[str, SchedulerJob] = {}
        #: {id of a job's first attempt: id of its latest one}
        self._latest: dict[str, str] = {}
        #: server's ids of the jobs that run
        self._running: set[str] = set()
        self._units: list[int] = []
        self._called = inf
        self._no_more = False
        self._counts = Diagnostics()

    def decide(self, view: View) -> None:
        """Run slurmctld's activities that are due now, and carry out their decisions."""
        if self._view is not view:
            self._begin(view)
        daemon = self._daemon
        assert daemon is not None
        now = view.now
        if _CALL in view.calls:
            self._called = inf
        self._nodes(view)
        if daemon.next_time() <= now:
            self._advance(view, now)
        daemon.catch_up(now)
        self._ended(view, now)
        self._cancelled(view, now)
        self._submitted(view, now)
        while (due := daemon.next_time()) <= now:
            self._advance(view, now)
        if self._no_more and not view.running and not view.unavailable and daemon.stuck(now):
            self._give_up(view, now)
            due = daemon.next_time()
        if due < inf and due != self._called:
            if self._called < inf:
                view.cancel_call(_CALL)
            view.call_me_later(due, _CALL)
            self._called = due

    def learn_past(self, view: View, steps: Sequence[PastStep]) -> None:
        """Repeat the starts and ends of jobs under the scheduler before a take-over.

        Usage counts from the starts on; what happened in the queue before is unknown.
        """
        self._begin(view)
        daemon = self._daemon
        assert daemon is not None
        for step in steps:
            mine, now = step.job, int(step.time)
            if not step.starts:
                self._running.discard(mine.id)
                if self._records[mine.id].state == RUNNING:
                    self.controller.release(self._records[mine.id], COMPLETED, now)
                continue
            self._records[mine.id], self._jobs[mine.id] = self._adopted(mine, now), mine
            self._running.add(mine.id)
        daemon.touch(view.now)
        daemon.request(view.now)

    def _adopted(self, mine: SchedulerJob, now: int) -> SlurmJob:
        """Start a job in the controller on the nodes that it already has.

        Return its record.
        """
        controller = self.controller
        sub, tasks = self._submission([mine], mine.submit)
        job, _ = controller.submit([mine.id], sub, int(mine.submit), tasks, accepted=True)
        controller.pending[job.serial] = job  # whatever the configuration says, it runs
        at_unit = {unit: at for at, unit in enumerate(self._units)}
        nodes = sorted(at_unit[unit] for unit in mine.alloc)
        alloc = chosen_on(controller, job, mask_of(nodes), None) or even_on(job, nodes, job.min_cpus)
        return controller.start(job, alloc, now)

    def no_more_jobs(self) -> None:
        """Record that no further job will be submitted."""
        self._no_more = True

    def _give_up(self, view: View, now: float) -> None:
        """Reject the jobs that Slurm would keep waiting forever, so that the run ends."""
        counts: Counter[str] = Counter()
        for job in list(self.controller.pending.values()):
            for job_id in job.ids:
                view.reject(self._jobs.pop(job_id), f"still waits at the end: {job.reason}")
                del self._records[job_id]
            counts[job.reason] += len(job.ids)
            self.controller.cancel(job, int(now))
        logger().warning(
            "{:,} jobs still wait at the end, and nothing can start them: {}",
            counts.total(),
            ", ".join(f"{count:,} {reason}" for reason, count in sorted(counts.items())),
        )

    def _begin(self, view: View) -> None:
        machine = view.machine
        controller = Controller(self._config)
        names = list(machine.nodes.names) if machine.named else []
        numbers = {name: at for at, name in enumerate(names)}
        missing = [name for name in controller.machine.names if name not in numbers]
        if missing or view.units != len(names):
            raise PolicyError(
                "the machine is not that of the slurm.conf",
                expected=f"{controller.machine.count} nodes, each one unit, named as in the file",
                found=f"{view.units} units" + (f", without node {missing[0]}" if missing else ""),
                hint="Give the same slurm.conf with --platform and --config.",
            )
        if view.shared is None and not controller.whole_nodes:
            raise PolicyError(
                "jobs share nodes by the slurm.conf, but not on the machine",
                expected="a machine whose nodes have resources",
                hint="Give the slurm.conf with --platform, too.",
            )
        self._units = [numbers[name] for name in controller.machine.names]
        self._daemon = Daemon(controller, keep=True, complete=controller.machine.count <= _SMALL)
        self._view = view
        while (due := self._daemon.next_time()) < view.now:  # what it did before the first job
            self._daemon.advance(due)

    @property
    def has_begun(self) -> bool:
        """Whether a decision was made; before the first decision, there is no `controller`."""
        return self._daemon is not None

    @property
    def controller(self) -> Controller:
        """The controller with all its tables.

        Raise RuntimeError before the first decision.
        """
        if self._daemon is None:
            raise RuntimeError("the policy has not decided anything yet")
        return self._daemon.controller

    def _nodes(self, view: View) -> None:
        """Update the controller's set of nodes that are out of service from the view."""
        assert self._daemon is not None
        machine = self.controller.machine
        gone = view.unavailable
        down = 0
        if gone:
            for at, unit in enumerate(self._units):
                if unit in gone:
                    down |= 1 << at
        if down != machine.down:
            machine.down = down
            self._daemon.touch(view.now)
            self._daemon.request(view.now)
            self._daemon.barren = 0  # jobs may start on nodes that are back

    def _advance(self, view: View, now: float) -> None:
        assert self._daemon is not None
        actions = self._daemon.advance(now)
        counts = self._counts
        counts.started += len(actions.started)
        counts.preempted += len(actions.preempted)
        for _, result in actions.passes:
            counts.count_pass(int(now), result, len(self.controller.pending))
        for job in actions.killed:
            counts.completed += 1
            if job.ids[0] in view.running:  # else the server, which checks limits at the same times, has ended it
                view.kill(self._jobs[job.ids[0]], why="time limit")
        for job, mode, grace in actions.preempted:
            view.preempt(self._jobs[job.ids[0]], "requeue" if mode == "REQUEUE" else "cancel", grace)
        for job in actions.started:
            mine = self._jobs[job.ids[0]]
            if view.shared is not None:
                view.start(mine, takes_of(view.shared, mine, job.alloc, self._units))
            else:
                alloc = NodeSet.of(self._units[at] for at in indices_of(job.nodes))
                view.free.remove(alloc)
                view.start(mine, alloc)
            self._records[mine.id] = job
            self._running.add(mine.id)
        for job in self.controller.dropped:
            for job_id in job.ids:
                view.reject(self._jobs.pop(job_id), "dependency never satisfied")
                self._records.pop(job_id, None)
        self.controller.dropped = []

    def _ended(self, view: View, now: float) -> None:
        """Release the nodes of the jobs that have ended since the last decision."""
        daemon = self._daemon
        assert daemon is not None
        states = {one.job.id: one.state for one in view.ended}
        for job_id in sorted(self._running.intersection(states), key=lambda one: self._records[one].serial):
            self._running.discard(job_id)
            job = self._records[job_id]
            if job.state != RUNNING:
                continue  # killed or preempted by the controller itself
            if not job.preempted_by:
                self._count_end(states[job_id])
            if job.preempted_by:
                daemon.kill(job, PREEMPTED, now, again=self.controller.preemption.mode_of(job) == "REQUEUE")
            elif states[job_id] == _LATE and self._is_check(self._jobs[job_id], now):
                daemon.kill(job, TIMEOUT, now)
            else:
                daemon.ended(
                    job,
                    _STATES.get(states[job_id], COMPLETED),
                    now,
                    now + self._config.answers.delay(job.nodes.bit_count()),
                )

    def _count_end(self, state: str) -> None:
        """Count a job that ended by itself in the statistics of sdiag, by its final state.

        sdiag counts jobs killed at their time limit as completed, too.
        """
        if state == "COMPLETED_FAILED":
            self._counts.failed += 1
        elif state == "COMPLETED_KILLED":
            self._counts.cancelled += 1
        else:
            self._counts.completed += 1

    def _is_check(self, mine: SchedulerJob, now: float) -> bool:
        """Return whether the server may kill a job for its time limit at ``now`` (s).

        Such times are the job's walltime and the checks of time limits.
        """
        if now <= mine.start + mine.walltime:
            return True
        return (now - self._config.start) % self._config.limit_check == 0

    def _cancelled(self, view: View, now: float) -> None:
        for mine in view.cancelled:
            job = self._records.pop(mine.id, None)
            self._jobs.pop(mine.id, None)
            if job is None or job.state != PENDING:
                continue
            self._counts.cancelled += 1
            if len(job.ids) > 1:
                at = job.ids.index(mine.id)
                del job.ids[at], job.tasks_waiting[at]
                self.controller.limits.count_submitted(job, -1)
                self.controller.changed += 1
                self.controller.reordered += 1
            else:
                self.controller.cancel(job, int(now))

    def _submitted(self, view: View, now: float) -> None:
        """Queue the jobs submitted since the last decision.

        The tasks of an array get one record.
        """
        daemon = self._daemon
        assert daemon is not None
        #: submissions in order; the tasks of an array are one
        groups: dict[str, list[SchedulerJob]] = {}
        for mine in list(view.arrivals):
            self._jobs[mine.id] = mine
            if self._again(mine, now):
                continue
            options = {} if mine.description is None else mine.description.options
            groups.setdefault(options.get("array-job", "") or f"job {mine.id}", []).append(mine)
        for jobs in groups.values():
            self._queue(jobs, view, now)

    def _again(self, mine: SchedulerJob, now: float) -> bool:
        """Return whether a job is a further attempt of a job that Slurm already knows.

        If so, give the record of that job the new id.
        """
        description = mine.description
        if description is None or not description.attempt:
            return False
        root = mine.id.rpartition("#")[0]
        job_id = self._latest.get(root, root)
        self._latest[root] = mine.id
        job = self._records.pop(job_id, None)
        self._jobs.pop(job_id, None)
        if job is None:
            return False
        self._records[mine.id] = job
        job.ids[job.ids.index(job_id)] = mine.id
        if job.state in ENDED:  # its nodes failed; the controller itself queues preempted jobs
            self.controller.requeue(job, int(now))
            assert self._daemon is not None
            self._daemon.submitted(now)
        return True

    def _queue(self, jobs: list[SchedulerJob], view: View, now: float) -> None:
        assert self._daemon is not None
        sub, tasks = self._submission(jobs, now)
        job, refused = self.controller.submit([mine.id for mine in jobs], sub, int(now), tasks)
        if refused:
            for mine in jobs:
                view.reject(mine, refused)
                self._jobs.pop(mine.id, None)
            return
        for mine in jobs:
            self._records[mine.id] = job
        self._counts.submitted += len(jobs)
        self._daemon.submitted(now)

    @staticmethod
    def _submission(jobs: Sequence[SchedulerJob], now: float) -> tuple[Submission, list[int]]:
        """Return the submission of a job or array, and the indices of the array's tasks."""
        first = jobs[0]
        walltime = None if first.walltime == inf else first.walltime
        sub = submission_of(first.description or JobDescription(first.id, first.size, walltime), now)
        if not sub.number:
            sub = replace(sub, number=_UNNUMBERED + first.number)
        tasks = []
        for mine in jobs:
            task = mine.description.options.get("array-task", "") if mine.description is not None else ""
            if task.isdecimal():
                tasks.append(int(task))
        return sub, tasks

    def reservation(self, job: SchedulerJob) -> float | None:
        """Return the start (s) that the last backfill pass expected for a job.

        Return None if it expected none.
        """
        if self._daemon is not None and self._view is not None:
            self._daemon.expect(self._view.now)
        record = self._records.get(job.id)
        return float(record.expected) if record is not None and record.expected else None

    def held_back_by(self, job: SchedulerJob) -> str | None:
        """Return Slurm's reason why a job waits.

        Return None if Slurm gives none.
        """
        record = self._records.get(job.id)
        return None if record is None or record.reason == "None" else record.reason

    def reservations(self) -> list[str]:
        """Return the advance reservations, each as a text."""
        if self._daemon is None:
            return []
        found = self.controller.reservations.all
        return [f"reservation '{one.settings.name}' ({one.start} to {one.end} s)" for one in found]

    def factors(self, now: float) -> list[dict[str, Any]]:
        """Return the priorities of waiting jobs by factor, as ``sprio -l`` shows them."""
        return factors_table(self.controller, int(now))

    def shares(self) -> list[dict[str, Any]]:
        """Return shares and usage of all associations, as ``sshare -l`` shows them."""
        return shares_table(self.controller)

    def queue(self, now: float) -> list[dict[str, Any]]:
        """Return all jobs with reasons and expected starts, as ``squeue`` shows them."""
        return queue_table(self.controller, int(now))

    def diagnostics(self, now: float) -> dict[str, dict[str, Any]]:
        """Return counts of passes and started jobs since the run began, as ``sdiag`` does."""
        return diagnostics_table(self.controller, self._counts, int(now))

    def state(self) -> Any:
        """Return the policy's state; None before the first decision."""
        if self._daemon is None:
            return None
        return {
            "controller": self.controller.state(),
            "daemon": self._daemon.state(),
            "records": {job_id: job.serial for job_id, job in self._records.items()},
            "latest": self._latest,
            "running": sorted(self._running),
            "called": None if self._called == inf else self._called,
            "no_more": self._no_more,
            "counts": to_builtins(self._counts),
        }

    def restore(self, state: Any, view: View) -> None:
        """Restore a result of the method `state`, in a view restored to the same instant."""
        if state is None:
            return
        self._begin(view)
        assert self._daemon is not None
        self.controller.restore(state["controller"])
        self._daemon.restore(state["daemon"])
        by_serial = {job.serial: job for some in self.controller.by_number.values() for job in some}
        self._records = {job_id: by_serial[serial] for job_id, serial in state["records"].items()}
        self._jobs = {job.id: job for job in (*view.waiting.each(), *view.running)}
        self._latest = dict(state["latest"])
        self._running = set(state["running"])
        self._called = inf if state["called"] is None else state["called"]
        self._no_more = state["no_more"]
        self._counts = convert(state["counts"], Diagnostics)
