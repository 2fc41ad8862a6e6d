"""Parameters of Slurm's scheduler, priorities, preemption and node selection."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

DAY: Final = 86400.0


class SchedulerParameters(Struct, frozen=True, kw_only=True):
    """The keys of ``SchedulerParameters`` that affect decisions.

    Names and units are Slurm's.

    Attributes:
        sched_interval: s between two passes over the full queue; None (-1 in the file): the main scheduling loop is
            off.
        sched_min_interval: microseconds between two passes.
        batch_sched_delay: least s between the last pass and a requested pass.
        bf_window: minutes. ``bf_resolution``, ``bf_interval`` (inf: no passes) and ``bf_min_age_reserve`` are s.
        bf_node_space_size: most records of the backfill table; 0: ``bf_max_job_test``.
        bf_min_prio_reserve: no reservations for jobs of lower priority.
        bf_job_part_count_reserve: most jobs per partition that get a reservation; 0: no limit.
        preempt_reorder_count: how many times, at most, the victims are reordered.
    """

    default_queue_depth: int = 100
    partition_job_depth: int = 0
    sched_interval: float | None = 60.0
    sched_min_interval: float = 2.0
    sched_max_job_start: int = 0
    batch_sched_delay: float = 3.0
    defer: bool = False
    bf_interval: float = 30.0
    bf_window: int = 1440
    bf_resolution: int = 60
    bf_max_job_test: int = 500
    bf_max_job_start: int = 0
    bf_max_job_user: int = 0
    bf_max_job_user_part: int = 0
    bf_max_job_part: int = 0
    bf_max_job_assoc: int = 0
    bf_max_job_array_resv: int = 20
    bf_min_age_reserve: float = 0.0
    bf_min_prio_reserve: int = 0
    bf_job_part_count_reserve: int = 0
    bf_node_space_size: int = 0
    bf_continue: bool = False
    bf_busy_nodes: bool = False
    bf_one_resv_per_job: bool = False
    bf_ignore_newly_avail_nodes: bool = False
    bf_running_job_reserve: bool = False
    bf_licenses: bool = False
    assoc_limit_stop: bool = False
    kill_invalid_depend: bool = False
    max_switch_wait: float = 300.0
    disable_job_shrink: bool = False
    preempt_reorder_count: int = 1
    preempt_strict_order: bool = False
    preempt_youngest_first: bool = False
    reduce_completing_frag: bool = False
    pack_serial_at_end: bool = False
    spec_cores_first: bool = False


class PrioritySettings(Struct, frozen=True, kw_only=True):
    """``PriorityType`` and all other keys that begin with ``Priority``.

    Durations are in seconds.

    Attributes:
        type: priority/basic or priority/multifactor.
        decay_half_life: 0: usage does not decay.
        calc_period: s between two recalculations.
        usage_reset_period: NONE, NOW, DAILY, WEEKLY, MONTHLY, QUARTERLY or YEARLY.
        flags: in upper case: ACCRUE_ALWAYS, CALCULATE_RUNNING, DEPTH_OBLIVIOUS, NO_FAIR_TREE, INCR_ONLY, MAX_TRES,
            NO_NORMAL_ALL, NO_NORMAL_ASSOC, NO_NORMAL_PART, NO_NORMAL_QOS, NO_NORMAL_TRES, SMALL_RELATIVE_TO_TIME.
        weight_tres: {TRES: weight} of ``PriorityWeightTRES``.
    """

    type: str = "priority/multifactor"
    decay_half_life: float = 7 * DAY
    calc_period: float = 300.0
    max_age: float = 7 * DAY
    favor_small: bool = False
    usage_reset_period: str = "NONE"
    flags: frozenset[str] = frozenset()
    weight_age: int = 0
    weight_assoc: int = 0
    weight_fairshare: int = 0
    weight_job_size: int = 0
    weight_partition: int = 0
    weight_qos: int = 0
    weight_tres: Mapping[str, float] = field(default_factory=dict)
    fair_share_dampening_factor: int = 1


class SelectSettings(Struct, frozen=True, kw_only=True):
    """Settings of node selection.

    These are ``SelectType`` and its parameters, the topology, and default and largest memory.

    Attributes:
        type: select/linear or select/cons_tres (select/cons_res decides the same).
        parameters: ``SelectTypeParameters`` by name, such as CR_Core_Memory, CR_CPU, CR_LLN.
        topology_plugin: topology/none or topology/tree.
        def_mem_*, max_mem_*: MiB; None: not set.
    """

    type: str = "select/cons_tres"
    parameters: frozenset[str] = frozenset()
    topology_plugin: str = "topology/none"
    topology_param: frozenset[str] = frozenset()
    def_cpu_per_gpu: int | None = None
    def_mem_per_gpu: int | None = None
    max_mem_per_cpu: int | None = None
    def_mem_per_cpu: int | None = None
    max_mem_per_node: int | None = None
    def_mem_per_node: int | None = None


class PreemptSettings(Struct, frozen=True, kw_only=True):
    """``PreemptType``, ``PreemptMode`` and ``PreemptExemptTime``.

    Attributes:
        type: preempt/none, preempt/qos or preempt/partition_prio.
        mode: in upper case, such as ("REQUEUE",) or ("CANCEL",).
        exempt_time: s that a job runs before it can be preempted; 0: none.
    """

    type: str = "preempt/none"
    mode: tuple[str, ...] = ("OFF",)
    exempt_time: float = 0.0
