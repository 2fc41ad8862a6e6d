"""The policy ``slurm``: the decisions of slurmctld on a machine whose jobs get whole nodes."""

from collections.abc import Callable
from math import inf
from typing import Any, Final

from msgspec.structs import replace

from pipistrelle.protocol.events import JobDescription
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.order import Order
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.slurm.cluster.bits import indices_of
from pipistrelle.schedulers.slurm.cluster.jobs import (
    COMPLETED,
    COMPLETING,
    PENDING,
    PREEMPTED,
    RUNNING,
    TIMEOUT,
    SlurmJob,
)
from pipistrelle.schedulers.slurm.config.settings import SlurmConfig
from pipistrelle.schedulers.slurm.daemon import Daemon
from pipistrelle.schedulers.slurm.files.submission import submission_of
from pipistrelle.schedulers.slurm.passes.controller import Controller
from pipistrelle.schedulers.slurm.tables import factors_table, shares_table

#: s from a completion to its request for a pass: the nodes' answers to the controller
ANSWER: Final = 0.035
_CALL: Final = "slurm"
#: numbers of jobs whose ids are not numbers begin here
_UNNUMBERED: Final = 1_000_000_000
#: machines of more nodes skip the backfill passes that can start nothing
_SMALL: Final = 64


class SlurmPolicy:
    """Decides as slurmctld does with a centre's configuration.

    Args:
        config: the settings of the cluster; node names are those of the machine.
        answer: returns the time (s) from a job's end until the controller requests a pass, given the job's number of
            nodes.

    Raises:
        PolicyError: jobs share nodes (select/cons_tres without exclusive partitions).
    """

    name = "slurm"
    features = ("labels", "options", "preemption")

    def __init__(self, config: SlurmConfig, answer: Callable[[int], float] = lambda nodes: ANSWER) -> None:
        self.order: Order = Fcfs()
        self._config = config
        self._answer = answer
        self._daemon: Daemon | None = None
        self._view: View | None = None
        #: {server's id: record}; {server's id: job in the view}
        self._records: dict[str, SlurmJob] = {}
        self._jobs: dict[str, SchedulerJob] = {}
        #: server's ids of the jobs that run
        self._running: set[str] = set()
        self._units: list[int] = []
        self._called = inf

    def decide(self, view: View) -> None:
        """Run slurmctld's activities that are due now, and carry out their decisions."""
        if self._view is not view:
            self._begin(view)
        daemon = self._daemon
        assert daemon is not None
        now = view.now
        if view.calls:
            self._called = inf
        self._nodes(view)
        if daemon.next_time() <= now:
            self._advance(view, now)
        daemon.catch_up(now)
        self._ended(view, now)
        self._cancelled(view, now)
        self._submitted(view, now)
        while daemon.next_time() <= now:
            self._advance(view, now)
        due = daemon.next_time()
        if due < inf and due != self._called:
            if self._called < inf:
                view.cancel_call(_CALL)
            view.call_me_later(due, _CALL)
            self._called = due

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
        self._units = [numbers[name] for name in controller.machine.names]
        self._daemon = Daemon(controller, complete=controller.machine.count <= _SMALL)
        self._view = view
        while (due := self._daemon.next_time()) < view.now:  # what it did before the first job
            self._daemon.advance(due)

    @property
    def controller(self) -> Controller:
        """The controller with all its tables; RuntimeError before the first decision."""
        if self._daemon is None:
            raise RuntimeError("the policy has not decided anything yet")
        return self._daemon.controller

    def _nodes(self, view: View) -> None:
        """Copy from the view which nodes are out of service."""
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

    def _advance(self, view: View, now: float) -> None:
        assert self._daemon is not None
        actions = self._daemon.advance(now)
        for job in actions.killed:
            view.kill(self._jobs[job.ids[0]], why="time limit")
        for job, mode, grace in actions.preempted:
            view.preempt(self._jobs[job.ids[0]], "requeue" if mode == "REQUEUE" else "cancel", grace)
        for job in actions.started:
            alloc = NodeSet.of(self._units[at] for at in indices_of(job.nodes))
            mine = self._jobs[job.ids[0]]
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
        """Release the jobs that have ended."""
        daemon = self._daemon
        assert daemon is not None
        ended = [job_id for job_id in self._running if job_id not in view.running]
        for job_id in sorted(ended, key=lambda one: self._records[one].serial):
            self._running.discard(job_id)
            job = self._records[job_id]
            if job.state != RUNNING:
                continue  # killed or preempted by the controller itself
            if job.preempted_by:
                daemon.kill(job, PREEMPTED, now, again=self.controller.preemption.mode_of(job) == "REQUEUE")
            elif now >= job.start + job.limit:
                daemon.kill(job, TIMEOUT, now)
            else:
                daemon.ended(job, COMPLETED, now, now + self._answer(job.nodes.bit_count()))

    def _cancelled(self, view: View, now: float) -> None:
        for mine in view.cancelled:
            job = self._records.pop(mine.id, None)
            self._jobs.pop(mine.id, None)
            if job is None or job.state != PENDING:
                continue
            if len(job.ids) > 1:
                at = job.ids.index(mine.id)
                del job.ids[at], job.tasks_waiting[at]
                self.controller.limits.count_submitted(job, -1)
            else:
                self.controller.cancel(job, int(now))

    def _submitted(self, view: View, now: float) -> None:
        """Queue the jobs submitted since the last decision; tasks of one array become one record."""
        daemon = self._daemon
        assert daemon is not None
        arrays: dict[str, list[SchedulerJob]] = {}
        for mine in list(view.arrivals):
            known = self._records.get(mine.id)
            self._jobs[mine.id] = mine
            if known is not None and known.state in (PENDING, COMPLETING, RUNNING):
                continue  # the next incarnation of a preempted job
            options = {} if mine.description is None else mine.description.options
            if "array-job" in options:
                arrays.setdefault(options["array-job"], []).append(mine)
            else:
                self._queue([mine], view, now)
        for tasks in arrays.values():
            self._queue(tasks, view, now)

    def _queue(self, jobs: list[SchedulerJob], view: View, now: float) -> None:
        assert self._daemon is not None
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
        job, refused = self.controller.submit([mine.id for mine in jobs], sub, int(now), tasks)
        if refused:
            for mine in jobs:
                view.reject(mine, refused)
                self._jobs.pop(mine.id, None)
            return
        for mine in jobs:
            self._records[mine.id] = job
        self._daemon.submitted(now)

    def reservation(self, job: SchedulerJob) -> float | None:
        """Return the expected start (s) of a waiting job by the last backfill pass; None without one."""
        record = self._records.get(job.id)
        return float(record.expected) if record is not None and record.expected else None

    def held_back_by(self, job: SchedulerJob) -> str | None:
        """Return Slurm's reason for which a job waits; None if Slurm gives none."""
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

    def state(self) -> Any:
        """Return the policy's state; None before the first decision."""
        if self._daemon is None:
            return None
        return {
            "controller": self.controller.state(),
            "daemon": self._daemon.state(),
            "records": {job_id: job.serial for job_id, job in self._records.items()},
            "running": sorted(self._running),
            "called": None if self._called == inf else self._called,
        }

    def restore(self, state: Any, view: View) -> None:
        """Restore a state, into a view restored to the same instant."""
        if state is None:
            return
        self._begin(view)
        assert self._daemon is not None
        self.controller.restore(state["controller"])
        self._daemon.restore(state["daemon"])
        by_serial = {job.serial: job for some in self.controller.by_number.values() for job in some}
        self._records = {job_id: by_serial[serial] for job_id, serial in state["records"].items()}
        self._jobs = {job.id: job for job in (*view.waiting.each(), *view.running)}
        self._running = set(state["running"])
        self._called = inf if state["called"] is None else state["called"]
