"""All settings of a Slurm cluster that affect a decision, as one value."""

from collections.abc import Mapping
from math import inf

from msgspec import Struct, field

from pipistrelle.schedulers.slurm.config.accounts import AssociationSettings, QosSettings
from pipistrelle.schedulers.slurm.config.machine import (
    NodeSettings,
    PartitionSettings,
    ReservationSettings,
    SwitchSettings,
)
from pipistrelle.schedulers.slurm.config.parameters import (
    PreemptSettings,
    PrioritySettings,
    SchedulerParameters,
    SelectSettings,
)


class AnswerDelay(Struct, frozen=True, kw_only=True):
    """The time (s) from a job's end to the request for a pass of the main loop.

    After a job's end, slurmctld waits until the nodes have confirmed it, then requests the pass. The time was fitted to
    recordings: it is ``least`` s for jobs of up to ``free_nodes`` nodes, and ``per_node`` s more for each further node.
    """

    least: float = 0.02
    per_node: float = 0.08
    free_nodes: int = 4

    def delay(self, nodes: int) -> float:
        """Return the delay (s) after the end of a job of this many nodes."""
        return self.least + self.per_node * max(0, nodes - self.free_nodes)


class SlurmConfig(Struct, frozen=True, kw_only=True):
    """A cluster's configuration; times are s of simulated time, durations s.

    Attributes:
        scheduler_type: sched/backfill or sched/builtin.
        nodes: in the order of the file; Slurm's own order is by name.
        accounting_storage: whether slurmdbd is used (``AccountingStorageType`` is accounting_storage/slurmdbd).
        accounting_storage_enforce: in lower case: associations, limits, qos, safe, nosteps, nojobs, wckeys. Slurm adds
            what a value implies: limits implies associations, qos implies associations, safe implies limits.
        start: time at which the controller starts, s; its ticks and other periods are counted from then.
        min_job_age, kill_wait, complete_wait, message_timeout: s.
        over_time_limit: s from a job's time limit until the job is killed; inf for UNLIMITED.
        limit_check: s between two checks of time limits.
        enforce_part_limits: NO, ANY or ALL.
        max_array_size: the key's value; the largest index is one less.
        licenses: {licence: count}.
        answers: the time from a job's end to the request for a pass.
        epoch: date of time 0 as s since 1970-01-01 UTC, for daily and weekly periods; None: time 0 is a Monday.
    """

    cluster_name: str = "linux"
    scheduler_type: str = "sched/backfill"
    scheduler_parameters: SchedulerParameters = SchedulerParameters()
    priority: PrioritySettings = PrioritySettings()
    select: SelectSettings = SelectSettings()
    preempt: PreemptSettings = PreemptSettings()
    nodes: tuple[NodeSettings, ...] = ()
    partitions: tuple[PartitionSettings, ...] = ()
    reservations: tuple[ReservationSettings, ...] = ()
    switches: tuple[SwitchSettings, ...] = ()
    qos: tuple[QosSettings, ...] = ()
    associations: tuple[AssociationSettings, ...] = ()
    licenses: Mapping[str, int] = field(default_factory=dict)
    accounting_storage: bool = False
    accounting_storage_enforce: frozenset[str] = frozenset()
    start: float = 0.0
    job_requeue: bool = True
    max_job_count: int = 10000
    max_array_size: int = 1001
    min_job_age: float = 300.0
    kill_wait: float = 30.0
    complete_wait: float = 0.0
    message_timeout: float = 10.0
    over_time_limit: float = 0.0
    limit_check: float = 30.0
    enforce_part_limits: str = "NO"
    answers: AnswerDelay = AnswerDelay()
    epoch: float | None = None

    def __post_init__(self) -> None:
        if self.over_time_limit < 0 or self.over_time_limit != self.over_time_limit:
            raise ValueError(f"over_time_limit is {self.over_time_limit!r}, not 0 to {inf}")
