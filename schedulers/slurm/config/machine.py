"""Nodes, partitions, reservations and licences of a Slurm cluster, as values."""

from collections.abc import Mapping
from math import inf

from msgspec import Struct, field


class NodeSettings(Struct, frozen=True, kw_only=True):
    """One node of a slurm.conf.

    A ``NodeName`` line for several nodes gives one object per node.

    Attributes:
        cpus: CPUs (threads) of the node.
        cores: cores; ``cpus / cores`` is the number of threads per core.
        real_memory: memory, MiB.
        mem_spec_limit: memory that jobs cannot use, MiB.
        core_spec_count: cores that jobs cannot use.
        gres: {name or name:type: count}, such as {"gpu": 4} or {"gpu:a100": 4}.
        features: the node's features.
        weight: nodes of lower weight are chosen first.
        line: number of the ``NodeName`` line, from 0.
        state: state in the file in upper case: UNKNOWN, IDLE, DOWN, DRAIN, FAIL, FUTURE, CLOUD.
    """

    name: str
    cpus: int = 1
    boards: int = 1
    sockets: int = 1
    cores: int = 1
    real_memory: int = 1
    mem_spec_limit: int = 0
    core_spec_count: int = 0
    gres: Mapping[str, int] = field(default_factory=dict)
    features: tuple[str, ...] = ()
    weight: int = 1
    line: int = 0
    state: str = "UNKNOWN"


class PartitionSettings(Struct, frozen=True, kw_only=True):
    """One ``PartitionName`` line of a slurm.conf.

    It includes the values of an earlier line ``PartitionName=DEFAULT``.

    Attributes:
        nodes: names of the nodes, in any order; ALL and node sets are replaced by names.
        max_time: longest time limit, s; inf for UNLIMITED.
        default_time: time limit of jobs that request none, s; None: ``max_time``.
        over_time_limit: time from a job's limit until the job is killed, s; None for the cluster's.
        min_nodes, max_nodes: fewest and most nodes per job; ``max_nodes`` None: no limit.
        max_cpus_per_node: most CPUs that jobs of this partition may use per node; None: no limit.
        def_mem_per_cpu: memory per allocated CPU of jobs that ask for none, MiB; None: the cluster's.
            Likewise ``def_mem_per_node``, ``max_mem_per_cpu`` and ``max_mem_per_node``.
        def_cpu_per_gpu, def_mem_per_gpu: ``JobDefaults`` of the partition; None: the cluster's.
        over_subscribe: NO, EXCLUSIVE, YES or FORCE.
        max_share: most jobs per resource (the n of YES:n and FORCE:n); 1 otherwise.
        qos: name of the partition's QOS, or "".
        allow_*: None for ALL. If ``allow_*`` is given, Slurm ignores ``deny_*``.
        preempt_mode: ``PreemptMode`` of the partition; None for the cluster's.
        grace_time: how long a preempted job may still run, s.
        select_type_parameters: CR_Core or CR_Socket for this partition; None: the cluster's.
        tres_billing_weights: {TRES: weight}; None: one per CPU.
        state: UP, DOWN, DRAIN or INACTIVE.
    """

    name: str
    nodes: tuple[str, ...] = ()
    default: bool = False
    max_time: float = inf
    default_time: float | None = None
    over_time_limit: float | None = None
    min_nodes: int = 0
    max_nodes: int | None = None
    max_cpus_per_node: int | None = None
    def_mem_per_cpu: int | None = None
    def_mem_per_node: int | None = None
    max_mem_per_cpu: int | None = None
    max_mem_per_node: int | None = None
    def_cpu_per_gpu: int | None = None
    def_mem_per_gpu: int | None = None
    priority_tier: int = 1
    priority_job_factor: int = 1
    over_subscribe: str = "NO"
    max_share: int = 1
    exclusive_user: bool = False
    lln: bool = False
    disable_root_jobs: bool = False
    root_only: bool = False
    req_resv: bool = False
    qos: str = ""
    allow_accounts: tuple[str, ...] | None = None
    deny_accounts: tuple[str, ...] = ()
    allow_groups: tuple[str, ...] | None = None
    allow_qos: tuple[str, ...] | None = None
    deny_qos: tuple[str, ...] = ()
    preempt_mode: tuple[str, ...] | None = None
    grace_time: float = 0.0
    select_type_parameters: str | None = None
    tres_billing_weights: Mapping[str, float] | None = None
    state: str = "UP"


class ReservationSettings(Struct, frozen=True, kw_only=True):
    """A reservation of nodes, as ``scontrol create reservation`` makes one.

    Attributes:
        start, end: s of simulated time; of a daily or weekly reservation, the first start and end.
        announced: time at which the reservation is created, s; -inf: before the run.
        nodes: names of nodes; empty: ``node_count`` nodes are chosen when the reservation is created.
        users, accounts: who may use it; a leading "-" excludes.
        flags: in upper case, such as MAINT, FLEX, IGNORE_JOBS, DAILY, WEEKLY, OVERLAP, ANY_NODES.
        licenses: {licence: count} kept for the reservation.
    """

    name: str
    start: float
    end: float
    announced: float = -inf
    nodes: tuple[str, ...] = ()
    node_count: int = 0
    partition: str = ""
    features: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    licenses: Mapping[str, int] = field(default_factory=dict)


class SwitchSettings(Struct, frozen=True, kw_only=True):
    """One ``SwitchName`` line of topology.conf.

    It names the nodes, or the switches, directly below the switch.
    """

    name: str
    nodes: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()
