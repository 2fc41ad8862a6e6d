"""What a run is: one frozen value that says all that decides its result, and nothing else."""

import os.path
from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Annotated, Final, Literal, TypeVar, get_type_hints

from msgspec import Meta, Struct, field
from msgspec.structs import asdict, replace

from pipistrelle.runs.description.policy import AUTO, PolicySpec
from pipistrelle.runs.inputs.steps import AnyStep, Merge, Redraw
from pipistrelle.schedulers.catalogue.names import FOREIGN_FILE, SUFFIX
from pipistrelle.traces.logs.kinds import Units
from pipistrelle.traces.resilience import Requeue, RestartWalltime, Walltime

#: where a Batsim looks for its scheduler unless it is told otherwise
BATSIM_ENDPOINT: Final = "tcp://localhost:28000"
_T = TypeVar("_T")


class Decides(Enum):
    """What a field of a run's description decides."""

    #: the jobs and the machine with which it begins
    INPUTS = "inputs"
    #: what happens to the machine, and how jobs live with it
    EVENTS = "events"
    #: where the streams of random failures begin
    SEED = "seed"
    #: which jobs start, when and where
    POLICY = "policy"
    #: how long jobs take on the nodes that they get, and when the run ends
    ENGINE = "engine"
    #: which protocol scheduler and server speak, and all of a run in Batsim's way
    DIALECT = "dialect"
    #: which outputs are written
    OUTPUTS = "outputs"
    #: nothing: a run is refused where it does not hold
    CHECK = "check"


Input = Annotated[_T, Decides.INPUTS]
Event = Annotated[_T, Decides.EVENTS]
Seed = Annotated[_T, Decides.SEED]
Engine = Annotated[_T, Decides.ENGINE]
Dialect = Annotated[_T, Decides.DIALECT]
Output = Annotated[_T, Decides.OUTPUTS]
Check = Annotated[_T, Decides.CHECK]


class BatsimSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """What a run in Batsim's way adds; each field is the option of that name (docs/how-to/batsim.md).

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
    """What a run is; each field is the option of that name of `run` (docs/reference/cli.md).

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

    platform: Input[str | None] = None
    scale_platform: Input[str | None] = None
    node_table: Input[str | None] = None
    workload: Input[tuple[str, ...]] = ("demo",)
    sort: Input[bool] = False
    units: Input[Units] = "nodes"
    timezone: Input[str | None] = None
    columns: Input[str | None] = None
    transform: Input[tuple[AnyStep, ...]] = ()
    ignore_constraints: Input[bool] = False
    partition_pools: Input[tuple[str, ...]] = ()
    from_: Input[str | None] = field(default=None, name="from")
    warm: Input[bool] = False
    cancellations: Input[Literal["keep", "drop"]] = "drop"
    strict: Input[bool] = False
    dispersion: Engine[Annotated[float, Meta(gt=0)] | None] = None
    until: Engine[str | None] = None
    queue_lengths: Output[bool] = False
    format: Output[Literal["csv", "parquet"]] = "csv"
    dialect: Dialect[Literal["native", "batsim"]] = "native"
    failures: Event[tuple[str, ...]] = ()
    repair: Event[str | None] = None
    seed: Seed[Annotated[int, Meta(ge=0)]] = 1
    reliability_factor: Event[Annotated[float, Meta(gt=0)]] = 1.0
    outages: Event[str | None] = None
    outages_class: Event[str | None] = None
    outages_start: Event[str | None] = None
    outages_shortest: Event[str | None] = None
    maintenance: Event[tuple[str, ...]] = ()
    checkpoint: Event[str | None] = None
    dump: Event[str | None] = None
    read: Event[str | None] = None
    spares: Event[str | None] = None
    resilience: Event[Literal["moldable", "grid"] | None] = None
    requeue: Event[Requeue] = "original"
    max_attempts: Event[Annotated[int, Meta(ge=1)] | None] = None
    expected_attempts: Event[Annotated[int, Meta(ge=0)]] = 100_000
    restart_walltime: Event[RestartWalltime] = "full"
    checkpoint_walltime: Event[Walltime] = "asked"
    batsim: Dialect[BatsimSpec | None] = None
    resumed: Input[ResumedFrom | None] = None
    files: Check[dict[str, str]] = field(default_factory=dict)

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

    def part(self, *kinds: Decides) -> "RunSpec":
        """Return a run with the fields that decide one of ``kinds`` as here, and all others as they are by default."""
        return RunSpec(**{name: getattr(self, name) for name in _deciding(kinds)})

    def key(self, *kinds: Decides) -> str:
        """Return a text that is the same for all runs of which `part` is the same."""
        return repr([getattr(self, name) for name in _deciding(kinds)])


@cache
def _deciding(kinds: tuple[Decides, ...]) -> tuple[str, ...]:
    """Return the fields that decide one of ``kinds``."""
    return tuple(name for name, kind in decided().items() if kind in kinds)


@cache
def decided() -> Mapping[str, Decides]:
    """Return what each field of a run's description decides: those of `PolicySpec` the policy, others as declared.

    Raises
    ------
    TypeError
        when a field does not declare it.
    """
    found: dict[str, Decides] = {}
    for name, hint in get_type_hints(RunSpec, include_extras=True).items():
        kinds = [one for one in getattr(hint, "__metadata__", ()) if isinstance(one, Decides)]
        if name in PolicySpec.__struct_fields__:
            kinds.append(Decides.POLICY)
        if len(kinds) != 1:
            raise TypeError(f"RunSpec.{name} does not declare what it decides, once: Input[...], Event[...] or another")
        found[name] = kinds[0]
    return found
