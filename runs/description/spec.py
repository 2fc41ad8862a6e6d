"""A run's description: one frozen value with everything that decides its result."""

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

#: Batsim's default address of its scheduler
BATSIM_ENDPOINT: Final = "tcp://localhost:28000"
_T = TypeVar("_T")


class Decides(Enum):
    """What a field of a run's description decides."""

    #: the jobs and the machine
    INPUTS = "inputs"
    #: what happens to the machine, and how jobs handle it
    EVENTS = "events"
    #: the start of the random failure streams
    SEED = "seed"
    #: which jobs start, when and where
    POLICY = "policy"
    #: how long jobs take on their nodes, and when the run ends
    ENGINE = "engine"
    #: the protocol, and everything special about a Batsim-compatible run
    DIALECT = "dialect"
    #: which outputs are written
    OUTPUTS = "outputs"
    #: nothing: a run is rejected if it does not hold
    CHECK = "check"


Input = Annotated[_T, Decides.INPUTS]
Event = Annotated[_T, Decides.EVENTS]
Seed = Annotated[_T, Decides.SEED]
Engine = Annotated[_T, Decides.ENGINE]
Dialect = Annotated[_T, Decides.DIALECT]
Output = Annotated[_T, Decides.OUTPUTS]
Check = Annotated[_T, Decides.CHECK]


class BatsimSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """The special part of a Batsim-compatible run; fields are options (docs/how-to).

    At most one of ``sched_cfg`` and ``sched_cfg_file`` may be given. ``no_sched`` starts every job at time 0, without a
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
    """The origin of a run that continued another run's snapshot under another policy.

    Attributes:
        folder, snapshot, sha256: the other run's outputs, the snapshot's file, and the digest of its state.
        notices, now: how many notices were answered by then, and the simulated time (s).
        scheduler: the other run's scheduler.
    """

    folder: str
    snapshot: str
    sha256: str
    notices: int
    now: float
    scheduler: str


class RunSpec(PolicySpec, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """A run; each field is an option of `pipistrelle run` (docs/reference/cli.md).

    How server and scheduler connect, and where outputs go, is not part of it. File names are as the user gave them,
    relative to the working directory.

    Attributes:
        platform, scale_platform: a bundled machine or a file, None: the workload's own; and a factor of its nodes, such
            as ``120%``.
        node_table: ``FILE`` or ``FILE,at=DATE``: properties of nodes that extend the platform's.
        workload: the jobs, bundled or a file; only Batsim-compatible runs have several.
        sort, units, timezone, columns: how to read a log.
        transform: steps that change the workload before the run.
        ignore_constraints, partition_pools: give jobs any nodes; bind jobs to pools by partition, such as
            ``2=gpu|old``.
        from_, warm: start at this date or time after the log's time 0, with the jobs running and queued then if
            ``warm``.
        cancellations: jobs cancelled while queued: "keep" queues them until then, "drop" leaves them out.
        strict: an illegal decision ends the run (always so in Batsim-compatible runs), an unreadable log record is an
            error.
        dispersion: extra share of runtime of a job spread over the whole machine; None: no extra.
        until: end time of the run: a time after time 0, or a date; None: when all jobs have ended.
        queue_lengths: write the queue's length over time.
        format: tables as CSV, or as Parquet in addition.
        failures, repair, seed, reliability_factor: failure models that replace the platform's (``none``: no failures;
            empty: the platform's), and their parameters.
        outages, outages_class, outages_start, outages_shortest: a file of outages, the class of its nodes to use, time
            0 on its clock, and the minimum length.
        maintenance: rules, or files of rules.
        checkpoint, dump, read, spares, resilience: resilience of jobs for which the workload gives none.
        requeue, max_attempts, expected_attempts, restart_walltime, checkpoint_walltime: what happens to interrupted
            jobs.
        batsim: the special part of a Batsim-compatible run; None for other runs.
        resumed: the snapshot that the run continued under another policy; None: it started from the beginning.
        files: {name of an input file: SHA-256}; a run is rejected if a file has changed.
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
        """Names that may be input files, including bundled names."""
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
        """Return the same run without a scheduler, which is then started elsewhere."""
        return replace(self, **{**asdict(PolicySpec()), "scheduler": ()})

    def part(self, *kinds: Decides) -> "RunSpec":
        """Return a run with the fields that decide ``kinds``, and defaults for all others."""
        return RunSpec(**{name: getattr(self, name) for name in _deciding(kinds)})

    def key(self, *kinds: Decides) -> str:
        """Return a text that is the same for two runs if their `part` is equal."""
        return repr([getattr(self, name) for name in _deciding(kinds)])


@cache
def _deciding(kinds: tuple[Decides, ...]) -> tuple[str, ...]:
    return tuple(name for name, kind in decided().items() if kind in kinds)


@cache
def decided() -> Mapping[str, Decides]:
    """Return what each field of a run decides; TypeError if one does not declare it."""
    found: dict[str, Decides] = {}
    for name, hint in get_type_hints(RunSpec, include_extras=True).items():
        kinds = [one for one in getattr(hint, "__metadata__", ()) if isinstance(one, Decides)]
        if name in PolicySpec.__struct_fields__:
            kinds.append(Decides.POLICY)
        if len(kinds) != 1:
            raise TypeError(f"RunSpec.{name} does not declare what it decides, once: Input[...], Event[...] or another")
        found[name] = kinds[0]
    return found
