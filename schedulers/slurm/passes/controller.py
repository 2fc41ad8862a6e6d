"""The state of slurmctld, and the operations that change it.

The operations are submit, start, release, requeue and recalculate.
"""

from bisect import insort
from collections.abc import Callable, Sequence
from typing import Any, Final

from pipistrelle.schedulers.slurm.accounts.limits import SlurmLimits
from pipistrelle.schedulers.slurm.accounts.records import Accounts, Tres
from pipistrelle.schedulers.slurm.cluster.jobs import (
    CANCELLED,
    COMPLETING,
    PENDING,
    RUNNING,
    SlurmJob,
)
from pipistrelle.schedulers.slurm.cluster.machine import SlurmMachine, SlurmPartition
from pipistrelle.schedulers.slurm.config.settings import SlurmConfig
from pipistrelle.schedulers.slurm.config.submission import Submission
from pipistrelle.schedulers.slurm.nodes.asked import Alloc, Selector
from pipistrelle.schedulers.slurm.nodes.cons_tres import ConsTres
from pipistrelle.schedulers.slurm.nodes.linear import Linear
from pipistrelle.schedulers.slurm.nodes.rows import CoreRows
from pipistrelle.schedulers.slurm.nodes.tree import Tree
from pipistrelle.schedulers.slurm.passes.dependencies import parse_dependency
from pipistrelle.schedulers.slurm.passes.eligible import is_eligible
from pipistrelle.schedulers.slurm.passes.preempt import SlurmPreemption
from pipistrelle.schedulers.slurm.passes.request import Requests
from pipistrelle.schedulers.slurm.passes.reservations import SlurmReservations
from pipistrelle.schedulers.slurm.priority.factors import FIRST_BASIC, Multifactor
from pipistrelle.schedulers.slurm.priority.fair_tree import FairTree
from pipistrelle.schedulers.slurm.priority.fairshare import ClassicFairshare
from pipistrelle.schedulers.slurm.priority.usage import Usage

#: s after a requeue until the job may start again: the life of a credential and a second
_REQUEUE_DELAY = 121
#: reasons of jobs beyond the limits of their partition
PART_NODES: Final = "PartitionNodeLimit"
PART_TIME: Final = "PartitionTimeLimit"
PART_MEMORY: Final = "MaxMemPerLimit"
#: {reason: why EnforcePartLimits rejects the submission}
_BEYOND: Final = {
    PART_NODES: "node count specification invalid",
    PART_TIME: "requested time limit is invalid",
    PART_MEMORY: "memory required by task is not available",
}


class Controller:
    """The cluster, its jobs and accounts; times are whole seconds.

    Attributes:
        pending: waiting jobs, in the order of their records.
        running: [(end of the job's limit, place in the list of jobs, job)], sorted.
        by_number: {Slurm's job id: records of that job or of an array's tasks}.
        changed: number of changes so far that could alter the result of a pass.
        reordered: number of changes so far that could alter the order of waiting jobs, or queue a job again.
    """

    def __init__(self, config: SlurmConfig) -> None:
        self.config = config
        self.machine = SlurmMachine(config)
        self.accounts = Accounts(config)
        self.requests = Requests(config, self.machine)
        shared = not self.requests.linear and any(one.settings.max_share > 1 for one in self.machine.partitions)
        #: the cores that jobs hold; None if no partition of shared nodes lets jobs share cores
        self.rows = CoreRows(self.machine) if shared else None
        self.part_qos = [self.accounts.qos_index.get(one.settings.qos, -1) for one in self.machine.partitions]
        self.limits = SlurmLimits(self.accounts, self._part_qos_of, self._running_seconds)
        self.selector: Selector = self._selector()
        self.reservations = SlurmReservations(config.reservations, self.machine, int(config.start), config.epoch)
        self.multifactor = Multifactor(self.machine, self.accounts, config.priority)
        self.fair_tree = FairTree(self.accounts)
        self.basic = config.priority.type == "priority/basic"
        self.next_basic = FIRST_BASIC
        self.usage = Usage(self.accounts, config.priority, int(config.start), config.epoch, self._part_qos_of)
        self.licenses_used: dict[str, int] = {}
        self.serial = 0
        self.pending: dict[int, SlurmJob] = {}
        self.running: list[tuple[int, int, SlurmJob]] = []
        #: what `running_jobs` returned since a job last started or ended
        self._running_jobs: list[SlurmJob] | None = None
        self.by_number: dict[int, list[SlurmJob]] = {}
        self.preemption = SlurmPreemption(config, self.machine, self.accounts)
        #: {(user, name): {serial: job}} of jobs that have not ended, for singleton dependencies
        self.names: dict[tuple[str, str], dict[int, SlurmJob]] = {}
        #: waiting jobs that the controller itself cancelled since the caller last asked
        self.dropped: list[SlurmJob] = []
        self.changed = self.reordered = 0
        #: whether the last queue left out jobs because of holds, dependencies or begin times
        self.gated = False
        #: the last queue, as `build_queue` keeps it
        self.queue: Any = None
        if config.accounting_storage and not self.basic:
            self.share_out()  # as slurmctld does at its start, before the first period

    def _selector(self) -> Selector:
        select = self.config.select
        tree = Tree(self.machine, self.config.switches) if select.topology_plugin == "topology/tree" else None
        if self.requests.linear:
            return Linear(self.machine, tree)
        margin = self.config.kill_wait + self.config.over_time_limit
        busy = self.config.scheduler_parameters.bf_busy_nodes
        return ConsTres(self.machine, select.parameters, self.rows, margin, tree=tree, busy_nodes=busy)

    @property
    def whole_nodes(self) -> bool:
        """Whether every job gets whole nodes."""
        return self.requests.linear or all(one.exclusive for one in self.machine.partitions)

    def running_jobs(self) -> list[SlurmJob]:
        """Return the running jobs, ordered by the end of their limits.

        The same list object is returned until a job starts or ends.
        """
        if self._running_jobs is None:
            self._running_jobs = [job for _, _, job in self.running]
        return self._running_jobs

    def submit(
        self, ids: Sequence[str], sub: Submission, now: int, tasks: Sequence[int] = (), *, accepted: bool = False
    ) -> tuple[SlurmJob, str]:
        """Queue a job, or an array of tasks that share one request.

        Args:
            ids: the caller's name of the job, or of each task.
            tasks: array indices of the tasks; empty: no array.
            accepted: whether the job is already in a queue; then only a malformed request or an unknown partition is
                refused.

        Returns:
            The record, and why the submission is refused permanently ("" if it is queued).
        """
        job = self._record(sub)
        job.ids = list(ids)
        job.submit = now
        if tasks:
            job.array = sub.number
            job.tasks_waiting = list(tasks)
            if len(tasks) == 1:
                job.array_task = tasks[0]
        machine = self.machine
        index = machine.partition_index
        unknown = [name for name in sub.partitions if name not in index]
        if unknown:
            return job, f"invalid partition {unknown[0]}"
        parts = [index[name] for name in sub.partitions] or [machine.default_partition]
        # Slurm tries a job's partitions in the order of their tiers.
        job.parts = sorted(parts, key=lambda at: -machine.partitions[at].settings.priority_tier)
        job.part = job.parts[0]
        refused = self._account(job)
        try:
            self.requests.settle(job)
            job.depends = parse_dependency(sub.dependency)
        except ValueError as error:
            return job, str(error)
        job.node_limit = self.limits.most_nodes(job)[0]
        job.begin = int(sub.begin or 0)
        if job.begin > now:
            job.eligible = job.begin
        job.reservation = sub.reservation
        refused = refused or self.limits.refusal(job, self.requests.tres(job, machine.partitions[job.part], None))
        refused = refused or self.reservations.refusal(job) or self._never(job)
        if refused and not accepted:
            return job, refused
        if self.basic:
            self.next_basic -= 1
            job.priority = max(1, self.next_basic - sub.nice)
        else:
            tested, job.cpus = job.cpus, job.plain_cpus
            if not sub.hold:
                self.multifactor.set_priority(job, now)
            job.cpus = tested
        if sub.hold:
            job.priority = 0
            job.reason = "JobHeldUser"
        self.limits.count_submitted(job, len(job.ids))
        self.pending[job.serial] = job
        self.by_number.setdefault(job.number, []).append(job)
        self.names.setdefault((job.user, sub.name), {})[job.serial] = job
        self.changed += 1
        if is_eligible(self, job, now):
            job.reason = self.limits.before(job) or job.reason
        if tasks:  # the first pass makes an array eligible
            job.eligible, job.accrued = job.begin, 0
        return job, ""

    def twins(self, job: SlurmJob) -> list[SlurmJob]:
        """Return the jobs of the same user and name that have not ended."""
        return list(self.names.get((job.user, job.sub.name), {}).values())

    def _record(self, sub: Submission) -> SlurmJob:
        self.serial += 1
        return SlurmJob(self.serial, sub)

    def _account(self, job: SlurmJob) -> str:
        """Find a job's association and QOS; return why the job is refused, or ""."""
        accounts, sub = self.accounts, job.sub
        if not self.config.accounting_storage and not accounts.associations:
            return ""
        name = self.machine.partitions[job.part].name if self.machine.partitions else ""
        job.assoc = accounts.find(sub.user, sub.account, name)
        if job.assoc < 0 and accounts.enforces_associations:
            return f"invalid account or account/partition combination: {sub.account or 'none'} for {sub.user}"
        if job.assoc >= 0:
            job.account = accounts.associations[job.assoc].settings.account
        qos = sub.qos or accounts.default_qos(job.assoc)
        job.qos = accounts.qos_index.get(qos, -1)
        if accounts.enforces_qos:
            allowed = accounts.allowed_qos(job.assoc) if job.assoc >= 0 else ()
            if (job.qos < 0 and sub.qos) or (qos and allowed and qos not in allowed):
                return f"invalid qos specification: {qos}"
        flags = accounts.qos[job.qos].settings.flags if job.qos >= 0 else frozenset()
        if "RequiresReservation" in flags and not sub.reservation:
            return f"QOS {qos} requires a reservation"
        return ""

    def _never(self, job: SlurmJob) -> str:
        """Return why a job can never run, even on the empty cluster; "" if it can.

        All its partitions are tested.
        """
        machine = self.machine
        why = ""
        for at in job.parts:
            part = machine.partitions[at]
            refused = self._part_refuses(job, at)
            if refused:
                why = refused
                continue
            beyond = self.beyond(job, part)
            if beyond and self.config.enforce_part_limits in ("ALL", "ANY"):
                why = _BEYOND[beyond]
                if self.config.enforce_part_limits == "ALL":
                    return why
                continue
            if beyond in (PART_NODES, PART_MEMORY) or 0 < job.node_limit < job.min_nodes:
                return ""  # stays queued with this reason
            requests = self.requests.asked(job, part)
            self.selector.begin_test(requests, machine.all)
            for asked in requests:
                alloc = self.selector.ever(asked)
                if alloc is not None:
                    job.likely_nodes = len(alloc)
                    if self.requests.linear:  # from this test on, priority and limits count whole nodes
                        job.cpus = sum(cpus for cpus, _, _ in alloc.values())
                    return ""
            why = "requested node configuration is not available"
        return why

    def beyond(self, job: SlurmJob, part: SlurmPartition) -> str:
        """Return which limit of a partition a job exceeds, as a reason; "" if none.

        Flags of the job's QOS exempt it from some of these limits.
        """
        settings = part.settings
        flags = self.accounts.qos[job.qos].settings.flags if job.qos >= 0 else frozenset()
        most = None if "PartitionMaxNodes" in flags else settings.max_nodes
        if job.min_nodes > part.size or (most is not None and job.min_nodes > most):
            return PART_NODES
        least = 0 if "PartitionMinNodes" in flags else settings.min_nodes
        if job.max_nodes and job.sub.nodes is not None and job.max_nodes < least:
            return PART_NODES
        if job.limit > settings.max_time and "PartitionTimeLimit" not in flags:
            return PART_TIME
        return PART_MEMORY if self.requests.over_memory(job, part) else ""

    def _part_refuses(self, job: SlurmJob, at: int) -> str:
        settings = self.machine.partitions[at].settings
        qos = self.accounts.qos[job.qos].settings.name if job.qos >= 0 else ""
        if settings.allow_accounts is not None:
            if job.account not in settings.allow_accounts:
                return f"account {job.account} may not use partition {settings.name}"
        elif job.account in settings.deny_accounts:
            return f"account {job.account} may not use partition {settings.name}"
        if (
            settings.allow_groups is not None
            and job.sub.groups
            and not set(job.sub.groups) & set(settings.allow_groups)
        ):
            return f"user's group may not use partition {settings.name}"
        if settings.allow_qos is not None:
            if qos not in settings.allow_qos:
                return f"QOS {qos or 'none'} may not use partition {settings.name}"
        elif qos in settings.deny_qos:
            return f"QOS {qos} may not use partition {settings.name}"
        if settings.state in ("DRAIN", "INACTIVE"):
            return f"partition {settings.name} accepts no jobs"
        if settings.req_resv and not job.sub.reservation:
            return f"partition {settings.name} requires a reservation"
        if settings.root_only and job.user != "root":
            return f"only root may use partition {settings.name}"
        return ""

    def start(self, job: SlurmJob, alloc: Alloc, now: int) -> SlurmJob:
        """Start a job, or the next task of an array, on these nodes.

        Return the record of the running job or task.
        """
        if len(job.ids) > 1:
            job = self._split(job)
        else:
            del self.pending[job.serial]
            if job.tasks_waiting:
                job.array_task = job.tasks_waiting[0]
        part = self.machine.partitions[job.part]
        job.state = RUNNING
        job.start = now
        job.limit_end = now + job.limit
        job.ends_by = 0
        job.alloc = alloc
        mask = 0
        for at in alloc:
            mask |= 1 << at
        job.nodes = mask
        job.cpus = sum(cpus for cpus, _, _ in alloc.values())
        job.tres = self.requests.tres(job, part, alloc)
        job.reason = "None"
        self.machine.take(alloc, whole=job.whole or part.exclusive)
        if self.rows is not None:
            self.rows.add(job)
        self.limits.begin(job)
        for name, count in job.sub.licenses.items():
            self.licenses_used[name] = self.licenses_used.get(name, 0) + count
        insort(self.running, (job.limit_end, job.place, job))
        self._running_jobs = None
        self.changed += 1
        return job

    def _split(self, array: SlurmJob) -> SlurmJob:
        """Return a new record for an array's next task.

        It is split off the record of the waiting tasks.
        """
        task = self._record(array.sub)
        for name in SlurmJob.__slots__:
            if name not in ("serial", "ids", "tasks_waiting", "array_task"):
                setattr(task, name, getattr(array, name))
        task.depends = list(array.depends)
        array.place = task.serial  # the running task takes the place of the array
        task.ids = [array.ids.pop(0)]
        task.tasks_waiting = [array.tasks_waiting.pop(0)]
        task.array_task = task.tasks_waiting[0]
        if len(array.ids) == 1:
            array.array_task = array.tasks_waiting[0]
            self.reordered += 1
        self.by_number[array.number].append(task)
        self.names.setdefault((task.user, task.sub.name), {})[task.serial] = task
        return task

    def release(self, job: SlurmJob, state: str, now: int, *, completing: bool = False) -> None:
        """Free the nodes of a running job that has ended or was killed.

        Args:
            completing: whether the nodes cannot be used until `clean` is called.
        """
        self.running.remove((job.limit_end, job.place, job))
        self._running_jobs = None
        self.machine.give(job.alloc)
        if self.rows is not None:
            self.rows.remove(job)
        self.limits.end(job)
        for name, count in job.sub.licenses.items():
            self.licenses_used[name] -= count
        job.ends_by = now
        self.usage.add((job,), now)
        job.state = COMPLETING if completing else state
        if completing:
            self.machine.completing |= job.nodes
            job.reason = state
        if not completing:
            self._forget(job)
        self.changed += 1

    def clean(self, job: SlurmJob) -> None:
        """Make the nodes of a killed job usable again, and give the job its final state."""
        self.machine.completing &= ~job.nodes
        if job.state == COMPLETING:
            job.state = job.reason
            job.reason = "None"
            self._forget(job)
        self.changed += 1

    def _forget(self, job: SlurmJob) -> None:
        """No longer count a job that will not run again as submitted.

        This is for the counts of its user and its account.
        """
        self.limits.count_submitted(job, -1)
        same = self.names.get((job.user, job.sub.name))
        if same is not None:
            same.pop(job.serial, None)
            if not same:
                del self.names[job.user, job.sub.name]

    def requeue(self, job: SlurmJob, now: int) -> None:
        """Queue a preempted job again, with a new time of submission.

        It keeps its priority until the next recalculation.
        """
        job.state = PENDING
        job.reason = "BeginTime"
        job.submit = now
        job.begin = now + _REQUEUE_DELAY
        job.eligible, job.accrued = job.begin, 0
        job.restarts += 1
        job.alloc, job.nodes, job.start, job.expected = {}, 0, 0, 0
        self.limits.count_submitted(job, 1)
        self.names.setdefault((job.user, job.sub.name), {})[job.serial] = job
        self.pending[job.serial] = job
        self.pending = dict(sorted(self.pending.items()))
        self.changed += 1
        self.reordered += 1

    def cancel(self, job: SlurmJob, now: int) -> None:
        """Remove a waiting job permanently."""
        del self.pending[job.serial]
        job.state = CANCELLED
        job.ends_by = now
        self.limits.count_submitted(job, 1 - len(job.ids))
        self._forget(job)
        self.changed += 1

    def records(self, number: int, task: int | None) -> list[SlurmJob] | None:
        """Return the records of a job id, or of one task of an array; None if unknown."""
        found = self.by_number.get(number)
        if found is None or task is None:
            return found
        some = [job for job in found if job.array_task == task or task in job.tasks_waiting]
        return some or None

    def recalculate(self, now: int) -> None:
        """Recalculate usage, fairshare and priorities.

        Past usage decays, and the usage of running jobs is added.
        """
        self.count_usage(now)
        self.set_priorities(now)

    def count_usage(self, now: int) -> None:
        """Decay the usage, and add the usage of running jobs.

        This is the first half of `recalculate`.
        """
        if self.multifactor.classic is None or self.basic:
            self.usage.advance(now, (job for _, _, job in self.running))
        else:  # `set_priorities` adds the usage of running jobs
            self.multifactor.classic.begin()
            self.usage.advance(now, ())

    def set_priorities(self, now: int) -> None:
        """Compute fairshare factors, and priorities of waiting jobs.

        This is the second half of `recalculate`.
        """
        if self.multifactor.classic is not None and not self.basic:
            self._go_through_jobs(self.multifactor.classic, now)
            self.usage.settle(now)
            return
        self.usage.settle(now)
        if self.basic:
            return
        self.share_out()
        for job in self.pending.values():
            if job.priority:
                self.multifactor.set_priority(job, now)
        self.changed += 1
        self.reordered += 1

    def _go_through_jobs(self, classic: ClassicFairshare, now: int) -> None:
        """Add the usage of running jobs and set the priorities of waiting jobs, in the order of their records.

        A user's factor is computed at the first job that needs it, so it leaves out the usage of the jobs after it.
        """
        running = [job for _, _, job in self.running]
        added = 0
        running.sort(key=lambda job: job.place)
        also_running = "CALCULATE_RUNNING" in self.config.priority.flags
        needing = [*self.pending.values(), *running] if also_running else self.pending.values()
        for job in sorted(needing, key=lambda job: job.place):
            if not job.priority:
                continue
            if job.assoc >= 0 and not classic.is_known(job.assoc):
                before = added
                while added < len(running) and running[added].place <= job.place:
                    added += 1
                self.usage.add(running[before:added], now)
            if job.state == PENDING:
                self.multifactor.set_priority(job, now)
            elif job.assoc >= 0:
                classic.need(job.assoc)
        self.usage.add(running[added:], now)
        self.changed += 1
        self.reordered += 1

    def share_out(self) -> None:
        """Compute fairshare factors from the usage; the classic factors of users are computed when needed."""
        if self.multifactor.classic is not None:
            self.multifactor.classic.begin()
        elif self.accounts.users:
            self.fair_tree.update()

    def _part_qos_of(self, job: SlurmJob) -> int:
        """Return the position of the QOS of a job's partition; -1: none."""
        return self.part_qos[job.part]

    def _running_seconds(self, chosen: Callable[[SlurmJob], bool]) -> Tres:
        """Return {TRES: amount x s} that running jobs with ``chosen(job)`` may still use.

        This is the TRES of each job times what is left of its time limit, as of the last recalculation.
        """
        total: Tres = {}
        for _, _, job in self.running:
            if chosen(job):
                left = max(0, job.limit - max(0, self.usage.last - job.start))
                for name, amount in job.tres.items():
                    total[name] = total.get(name, 0.0) + amount * left
        return total

    def state(self) -> dict[str, Any]:
        """Return the state as values that JSON can hold."""
        jobs = {id(job): job for some in self.by_number.values() for job in some}
        return {
            "jobs": [job.state_of() for job in jobs.values()],
            "serial": self.serial,
            "next_basic": self.next_basic,
            "machine": self.machine.state(),
            "accounts": self.accounts.state(),
            "usage": self.usage.state(),
            "reservations": self.reservations.state(),
            "selector": self.selector.state(),
            "rows": [] if self.rows is None else self.rows.state(),
            "changed": self.changed,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a result of the method `state`.

        This must be a new controller with the same configuration.
        """
        for known in state["jobs"]:
            job = SlurmJob.restored(known, self._parse)
            self.by_number.setdefault(job.number, []).append(job)
            if job.state == PENDING:
                self.pending[job.serial] = job
            if job.state in (PENDING, RUNNING, COMPLETING):
                self.names.setdefault((job.user, job.sub.name), {})[job.serial] = job
            if job.state == RUNNING:
                insort(self.running, (job.limit_end, job.place, job))
                self.machine.take(job.alloc, whole=job.whole or self.machine.partitions[job.part].exclusive)
                for name, count in job.sub.licenses.items():
                    self.licenses_used[name] = self.licenses_used.get(name, 0) + count
        self._running_jobs = None  # an earlier pass may have listed none
        self.pending = dict(sorted(self.pending.items()))
        self.machine.restore(state["machine"])
        self.accounts.restore(state["accounts"])
        self.usage.restore(state["usage"])
        self.reservations.restore(state["reservations"], self.config.reservations)
        self.selector.restore(state["selector"])
        if self.rows is not None:
            self.rows.restore(state["rows"])
        self.serial, self.next_basic, self.changed = state["serial"], state["next_basic"], state["changed"]

    def _parse(self, job: SlurmJob) -> None:
        self.requests.parse(job)
        job.depends = parse_dependency(job.sub.dependency) if job.depends is not None and job.sub.dependency else []
