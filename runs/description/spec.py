"""What a run is: one frozen value that says all that decides its result, and nothing else."""

import os.path
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field
from msgspec.structs import asdict, replace

from pipistrelle.runs.description.policy import AUTO, PolicySpec
from pipistrelle.runs.inputs.steps import AnyStep, Merge, Redraw
from pipistrelle.schedulers.catalogue.names import FOREIGN_FILE, SUFFIX
from pipistrelle.traces.logs.kinds import Units
from pipistrelle.traces.resilience import Requeue, RestartWalltime, Walltime

#: where a Batsim looks for its scheduler unless it is told otherwise
BATSIM_ENDPOINT: Final = "tcp://localhost:28000"


class BatsimSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """What a run in Batsim's way has beyond others; each field is what the option of that name says (docs/batsim.md).

    Of ``sched_cfg`` and ``sched_cfg_file`` one may be given; ``no_sched`` starts every job at time 0, without a
    scheduler.
    """

    events: tuple[str, ...] = ()
    master_host: str = "master_host"
    add_role_to_hosts: tuple[str, ...] = ()
    energy: bool = False
    mmax: int = 0
    mmax_workload: bool = False
    forward_profiles_on_submission: bool = False
    enable_dynamic_jobs: bool = False
    acknowledge_dynamic_jobs: bool = False
    enable_profile_reuse: bool = False
    forward_unknown_events: bool = False
    enable_compute_sharing: bool = False
    no_sched: bool = False
    sched_cfg: str | None = None
    sched_cfg_file: str | None = None
    bandwidth: Annotated[float, Meta(gt=0)] | None = None


class ResumedFrom(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """Where a run comes from that went on from a snapshot of another under another policy.

    Parameters
    ----------
    folder, snapshot, sha256
        of the outputs of that run; the snapshot's file, and the digest of the state in it.
    notices, now
        how many its scheduler had answered by then, at which simulated time (s).
    scheduler
        what that scheduler was called.
    """

    folder: str
    snapshot: str
    sha256: str
    notices: int
    now: float
    scheduler: str


class RunSpec(PolicySpec, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """What a run is; each field is what the option of that name says on the command line of `run` (docs/cli.md).

    How server and scheduler are connected, and where the outputs go, is no part of it. Names of files are as the user
    gave them, relative to the working directory.

    Parameters
    ----------
    platform, scale_platform
        a bundled machine or a file, None: the workload's own; and by what its nodes are multiplied, as ``120%``.
    node_table
        ``FILE`` or ``FILE,at=DATE``: what is known of each node, beside what the platform says.
    workload
        the jobs, bundled or a file; several in Batsim's way alone.
    sort, units, timezone, columns
        how a log is to be read.
    transform
        what is done with the workload before it is simulated, step by step.
    ignore_constraints, partition_pools
        whether jobs may have any nodes, whatever they ask for; and to which pools jobs are bound by their partition, as
        ``2=gpu|old``.
    from_, warm
        a date of the log, or a length of time after its time 0, at which the run begins; and whether with the jobs that
        ran and waited then.
    cancellations
        what becomes of jobs that were cancelled while they waited: they wait and leave then, or are left out.
    strict
        whether an illegal decision ends the run, in Batsim's way it always does; and a record of a log that cannot be
        read.
    dispersion
        by what share of its runtime a job takes longer that is spread like the whole machine; None: no job does.
    until
        when the run ends, whatever still runs or waits: a length of time after time 0, or a date; None: at its end.
    queue_lengths
        whether the outputs tell the queue's length over time.
    format
        of tables among the outputs: CSV, or Parquet as well.
    dialect
        which protocol scheduler and server speak.
    failures, repair, seed, reliability_factor
        models, which replace those of the platform (``none``: none; empty: the platform's), and what belongs to them.
    outages, outages_class, outages_start, outages_shortest
        a file of outages, the part of its nodes to take, when on its clock time 0 is, and how long they last at least.
    maintenance
        rules, or files of rules.
    checkpoint, dump, read, spares, resilience
        how jobs meet failures whose workload does not say.
    requeue, max_attempts, expected_attempts, restart_walltime, checkpoint_walltime
        what becomes of jobs that lost their nodes.
    batsim
        what a run in Batsim's way has beyond that; None: it is none.
    resumed
        where a run comes from that another one was until a snapshot; None: it began itself.
    files
        {name of a file that the run reads: its SHA-256}; a run is refused where one has another content.
    """

    platform: str | None = None
    scale_platform: str | None = None
    node_table: str | None = None
    workload: tuple[str, ...] = ("demo",)
    sort: bool = False
    units: Units = "nodes"
    timezone: str | None = None
    columns: str | None = None
    transform: tuple[AnyStep, ...] = ()
    ignore_constraints: bool = False
    partition_pools: tuple[str, ...] = ()
    from_: str | None = field(default=None, name="from")
    warm: bool = False
    cancellations: Literal["keep", "drop"] = "drop"
    strict: bool = False
    dispersion: Annotated[float, Meta(gt=0)] | None = None
    until: str | None = None
    queue_lengths: bool = False
    format: Literal["csv", "parquet"] = "csv"
    dialect: Literal["native", "batsim"] = "native"
    failures: tuple[str, ...] = ()
    repair: str | None = None
    seed: Annotated[int, Meta(ge=0)] = 1
    reliability_factor: Annotated[float, Meta(gt=0)] = 1.0
    outages: str | None = None
    outages_class: str | None = None
    outages_start: str | None = None
    outages_shortest: str | None = None
    maintenance: tuple[str, ...] = ()
    checkpoint: str | None = None
    dump: str | None = None
    read: str | None = None
    spares: str | None = None
    resilience: Literal["moldable", "grid"] | None = None
    requeue: Requeue = "original"
    max_attempts: Annotated[int, Meta(ge=1)] | None = None
    expected_attempts: Annotated[int, Meta(ge=0)] = 100_000
    restart_walltime: RestartWalltime = "full"
    checkpoint_walltime: Walltime = "asked"
    batsim: BatsimSpec | None = None
    resumed: ResumedFrom | None = None
    files: dict[str, str] = field(default_factory=dict)

    @property
    def inputs(self) -> list[str]:
        """What may be names of files that are read; bundled names are among them."""
        names = [*self.workload, *self.maintenance, *(text.partition(",")[0] for text in self.failures)]
        classes = None if self.reliability == AUTO else self.reliability
        names += [name for name in (self.platform, self.outages, self.config, classes) if name is not None]
        names += [] if self.node_table is None else [self.node_table.rpartition(",at=")[0] or self.node_table]
        for step in self.transform:
            names += step.others if isinstance(step, Merge) else ()
            names += [step.model] if isinstance(step, Redraw) and step.model is not None else []
        if isinstance(self.scheduler, str):
            names.append(self.scheduler if self.scheduler.endswith(SUFFIX) else self.scheduler.rpartition(":")[0])
        if self.folder is not None:
            names.append(os.path.join(self.folder, FOREIGN_FILE))
        if self.batsim is not None:
            names += [*self.batsim.events, *([self.batsim.sched_cfg_file] if self.batsim.sched_cfg_file else [])]
        return [name for name in names if name]

    def without_policy(self) -> "RunSpec":
        """Return the same run with nothing said of its scheduler: that is started elsewhere."""
        return replace(self, **{**asdict(PolicySpec()), "scheduler": ()})


#: fields on failures and maintenance
RELIABILITY_FIELDS: Final = (
    *("failures", "repair", "seed", "reliability_factor", "outages", "outages_class", "outages_start"),
    *("outages_shortest", "maintenance"),
    *("checkpoint", "dump", "read", "spares", "resilience", "requeue", "max_attempts", "expected_attempts"),
    *("restart_walltime", "checkpoint_walltime"),
)
