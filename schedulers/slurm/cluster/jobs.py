"""The record of a job as slurmctld keeps it.

It has the request, the state, the reason why the job waits, and the allocation.
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec import convert, to_builtins

from pipistrelle.schedulers.slurm.cluster.machine import Amounts
from pipistrelle.schedulers.slurm.config.submission import Submission

PENDING: Final = "PENDING"
RUNNING: Final = "RUNNING"
COMPLETING: Final = "COMPLETING"
#: states of ended jobs
COMPLETED: Final = "COMPLETED"
FAILED: Final = "FAILED"
TIMEOUT: Final = "TIMEOUT"
CANCELLED: Final = "CANCELLED"
PREEMPTED: Final = "PREEMPTED"
NODE_FAIL: Final = "NODE_FAIL"
ENDED: Final = frozenset({COMPLETED, FAILED, TIMEOUT, CANCELLED, PREEMPTED, NODE_FAIL})


class SlurmJob:
    """The record of a job, of a running array task, or of an array's waiting tasks.

    Attributes:
        serial: number of the record in the order of creation.
        place: the job's place in slurmctld's list of jobs. slurmctld recalculates priorities in the order of this list,
            and also takes running jobs that end at the same time in this order.
        ids: names of the waiting tasks as the caller knows them, in order of start; a plain job has one.
        tasks_waiting: array indices of ``ids``; empty for plain jobs.
        parts: indices of the partitions, in the order in which they are tried.
        assoc, qos: positions in the tables of associations and QOS; -1: none.
        limit: time limit, s.
        min_nodes, max_nodes, tasks, cpus_per_task, min_cpus: from the request.
        mem, mem_kind: MiB per "cpu", "node" or "gpu".
        gres: {gres: count per node}.
        whole: whether the job takes whole nodes.
        shares: whether the job holds CPUs that other jobs may hold, too.
        eligible: time from which the job may run, s; 0: not known yet, inf while it depends on others.
        accrued: time from which the job's age counts, set by the first pass that finds it eligible, s.
        reason: Slurm's name for the reason why the job waits.
        asked: {partition: the job's requests there}, as far as they are known.
        start, limit_end: start, and start + limit, s.
        nodes, alloc: the nodes that the job holds, and its amounts on each.
        holding: ``alloc`` as arrays, for node selectors; None until a selector needs it.
        plain_cpus: ``min_cpus`` without those that the job only gets because of MaxMemPerCPU.
        cpus: CPUs that the job holds, or that the last test would give it; 0: not tested.
        node_limit: the most nodes that limits of QOS and associations allow; 0: any number.
        likely_nodes: number of nodes that the last test would give the job; 0: not tested.
        preempts_since: time at which jobs were first preempted for this one, s; 0: never.
        expected: start that the last backfill pass expected, s; 0: none.
    """

    __slots__ = (
        "account",
        "accrued",
        "alloc",
        "array",
        "array_limit",
        "array_task",
        "asked",
        "assoc",
        "begin",
        "constraint",
        "cpus",
        "cpus_per_task",
        "depends",
        "eligible",
        "ends_by",
        "excluded",
        "expected",
        "features",
        "gres",
        "holding",
        "ids",
        "killed_at",
        "likely_nodes",
        "limit",
        "limit_end",
        "max_nodes",
        "mem",
        "mem_kind",
        "min_cpus",
        "min_nodes",
        "node_limit",
        "nodes",
        "number",
        "part",
        "part_priorities",
        "parts",
        "place",
        "plain_cpus",
        "preempted_by",
        "preempts_since",
        "priority",
        "qos",
        "reason",
        "required",
        "reservation",
        "restarts",
        "serial",
        "shares",
        "site",
        "start",
        "state",
        "sub",
        "submit",
        "tasks",
        "tasks_waiting",
        "tres",
        "user",
        "whole",
    )

    def __init__(self, serial: int, sub: Submission) -> None:
        self.serial = self.place = serial
        self.sub = sub
        self.number = sub.number
        self.array = 0
        self.array_task: int | None = None
        self.array_limit = sub.array_limit
        self.ids: list[str] = []
        self.tasks_waiting: list[int] = []
        self.user = sub.user
        self.account = sub.account
        self.parts: list[int] = []
        self.part = 0
        self.assoc = self.qos = -1
        self.limit = 0
        self.min_nodes = 1
        self.max_nodes = 0
        self.tasks = 1
        self.cpus_per_task = 1
        self.min_cpus = 1
        self.mem = 0
        self.mem_kind = ""
        self.gres: dict[str, int] = {}
        self.whole = False
        self.shares = False
        self.constraint: Any = None
        self.features = -1
        self.asked: dict[int, list[Any]] = {}
        self.required = 0
        self.excluded = 0
        self.reservation = sub.reservation
        self.depends: list[Any] = []
        self.submit = int(sub.submit)
        self.begin = 0
        self.eligible = 0
        self.priority = 0
        self.part_priorities: list[int] = []
        self.site = 0
        self.state = PENDING
        self.reason = "None"
        self.start = self.limit_end = self.ends_by = 0
        self.nodes = 0
        self.alloc: dict[int, Amounts] = {}
        self.holding: Any = None
        self.cpus = self.plain_cpus = self.likely_nodes = self.node_limit = 0
        self.tres: dict[str, float] = {}
        self.expected = 0
        self.restarts = self.accrued = 0
        self.preempted_by = 0
        self.preempts_since = 0
        self.killed_at = 0

    @property
    def order_number(self) -> int:
        """The number that orders jobs of equal priority.

        It is the job's id, or for a task the array's id.
        """
        return self.array or self.number

    @property
    def held(self) -> bool:
        """Whether the job is held (priority 0)."""
        return self.priority == 0

    def state_of(self) -> dict[str, Any]:
        """Return the record as values that JSON can hold."""
        known = {name: getattr(self, name) for name in self.__slots__ if name not in _APART}
        known["sub"] = to_builtins(self.sub)
        known["alloc"] = [[at, cpus, memory, gres] for at, (cpus, memory, gres) in self.alloc.items()]
        for name in _MASKS:
            known[name] = format(getattr(self, name), "x")
        return known

    @classmethod
    def restored(cls, known: dict[str, Any], parse: Callable[["SlurmJob"], None]) -> "SlurmJob":
        """Return the job that `state_of` saved.

        Args:
            parse: computes, from the submitted texts, the attributes that are not saved, such as sets of nodes.
        """
        job = cls(known["serial"], convert(known["sub"], Submission))
        for name, value in known.items():
            if name not in _APART and name not in _MASKS:
                setattr(job, name, value)
        for name in _MASKS:
            setattr(job, name, int(known[name], 16))
        job.alloc = {at: (cpus, memory, gres) for at, cpus, memory, gres in known["alloc"]}
        parse(job)
        return job


_MASKS: Final = ("nodes", "features", "required", "excluded")
_APART: Final = frozenset({"sub", "alloc", "asked", "holding", "constraint", "depends", *_MASKS})
