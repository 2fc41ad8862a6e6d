"""The state of a Slurm cluster at one moment: jobs, nodes, reservations, shares."""

from typing import Final

from msgspec import Struct, field

#: states of a job that has not started, by Slurm's names
WAITING: Final = frozenset({"PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"})
#: states of a job that holds nodes
HOLDING: Final = frozenset(
    {"RUNNING", "CONFIGURING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT", "POWER_UP_NODE"}
)


class NodeShare(Struct, frozen=True):
    """What a running job holds on each node of a set of nodes.

    ``memory`` is in MiB per node; ``gres`` is {name: count per node}.
    """

    nodes: str
    cpus: int
    memory: int
    gres: dict[str, int]


class LiveJob(Struct, kw_only=True):
    """A job of the queue of a live cluster.

    Dates are in seconds since 1970, durations in seconds, memory in MiB.

    Attributes:
        place: file and line, for messages.
        number: Slurm's job id; for tasks of an array, the id of the array.
        tasks_of_array: array indices of this record; None: no array.
        array_limit: how many tasks may run at once, the N of ``%N``; 0 for no limit.
        state: Slurm's name of the state in capitals.
        limit: time limit; inf for no limit, None if the files do not have it.
        used: run time so far; None if the files do not have it.
        nodes, max_nodes: least and greatest number of nodes; ``max_nodes`` is 0 if no greatest number is known.
        ranged: whether the file distinguishes requested numbers of nodes from numbers that Slurm computed.
        node_list: nodes that the job holds, as Slurm writes them.
        memory_kind: whether ``memory`` is per "node" or per "cpu"; "" if the files do not say.
        gres: {name: count per node}; ``gpus`` is the number of GPUs of the whole job.
        failed: whether a dependency can never be met.
    """

    place: str
    number: int
    tasks_of_array: list[int] | None = None
    array_limit: int = 0
    component: int = -1
    name: str = ""
    user: str = ""
    group: str = ""
    account: str = ""
    partitions: tuple[str, ...] = ()
    qos: str = ""
    state: str = "PENDING"
    reason: str = ""
    dependency: str = ""
    failed: bool = False
    submit: float | None = None
    eligible: float | None = None
    accrued: float | None = None
    start: float | None = None
    used: float | None = None
    limit: float | None = None
    nodes: int = 1
    max_nodes: int = 0
    ranged: bool = False
    node_list: str = ""
    cpus: int = 0
    tasks: int = 0
    cpus_per_task: int = 1
    tasks_per_node: int = 0
    memory: int = 0
    memory_kind: str = ""
    gres: dict[str, int] = field(default_factory=dict)
    gpus: int = 0
    features: str = ""
    reservation: str = ""
    required: str = ""
    excluded: str = ""
    licenses: str = ""
    nice: int = 0
    priority: int | None = None
    exclusive: bool = False
    shares: tuple[NodeShare, ...] = ()

    @property
    def waits(self) -> bool:
        """Whether the job has not started."""
        return self.state in WAITING

    @property
    def holds(self) -> bool:
        """Whether the job holds nodes."""
        return self.state in HOLDING

    @property
    def key(self) -> tuple[int, tuple[int, ...], int]:
        """What identifies the job's record in all files.

        It is the number, the tasks of the array, and the component.
        """
        return self.number, tuple(self.tasks_of_array or ()), self.component


class LiveNode(Struct, frozen=True):
    """A node and its state; ``out`` says whether it takes no new jobs."""

    name: str
    state: str
    out: bool


class LiveReservation(Struct, frozen=True, kw_only=True):
    """A reservation; times are in seconds since 1970."""

    place: str
    name: str
    start: float
    end: float
    nodes: str = ""
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    licenses: str = ""


class LiveShare(Struct, frozen=True):
    """The decayed usage of an association, in billing units x seconds.

    ``user`` is "" for the usage of a whole account.
    """

    account: str
    user: str
    partition: str
    usage: float


class ClusterState(Struct, kw_only=True):
    """The state of a cluster, as described by files that Slurm's commands printed.

    Attributes:
        now: when the files were made, in seconds since 1970; None if unknown.
        tested: when Slurm last tested whether a job can start, in seconds since 1970; None if unknown.
        jobs: waiting and running jobs, sorted by time of submission and id.
        ended: {(job id, task or None): state} of jobs that have ended.
        partitions: {partition: its state}, as sinfo shows it.
        shares: the usage of associations; None if no file of sshare was given.
        remarks: warnings about what was ignored, each with a count.
        faults: rows that were skipped, with file, line and cause.
    """

    now: float | None = None
    tested: float | None = None
    jobs: list[LiveJob] = field(default_factory=list)
    ended: dict[tuple[int, int | None], str] = field(default_factory=dict)
    nodes: dict[str, LiveNode] = field(default_factory=dict)
    partitions: dict[str, str] = field(default_factory=dict)
    reservations: list[LiveReservation] = field(default_factory=list)
    shares: list[LiveShare] | None = None
    remarks: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
