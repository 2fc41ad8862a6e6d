"""The description of a run.

It is one frozen object with everything that affects the result of the run.
"""

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

#: default address at which Batsim expects its scheduler
BATSIM_ENDPOINT: Final = "tcp://localhost:28000"
_T = TypeVar("_T")


class Decides(Enum):
    """What a field of a run's description affects, such as the inputs or the policy."""

    #: the jobs and the machine
    INPUTS = "inputs"
    #: failures and maintenance of the machine, and how jobs survive them
    EVENTS = "events"
    #: the seed of the random failure streams
    SEED = "seed"
    #: which jobs start, when and where
    POLICY = "policy"
    #: how long jobs run on their nodes, and when the run ends
    ENGINE = "engine"
    #: the protocol, and all options of a Batsim-compatible run
    DIALECT = "dialect"
    #: which outputs are written
    OUTPUTS = "outputs"
    #: no part: the field is only checked, and a mismatch rejects the run
    CHECK = "check"


Input = Annotated[_T, Decides.INPUTS]
Event = Annotated[_T, Decides.EVENTS]
Seed = Annotated[_T, Decides.SEED]
Engine = Annotated[_T, Decides.ENGINE]
Dialect = Annotated[_T, Decides.DIALECT]
Output = Annotated[_T, Decides.OUTPUTS]
Check = Annotated[_T, Decides.CHECK]


class BatsimSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """The options of a Batsim-compatible run; each field is an option (docs/how-to).

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
        folder, snapshot, sha256: output folder of the other run, snapshot file, and digest of the saved state.
        notices, now: number of notices answered before the snapshot, and its simulated time (s).
        scheduler: the scheduler of the other run.
    """

    folder: str
    snapshot: str
    sha256: str
    notices: int
    now: float
    scheduler: str


class RunSpec(PolicySpec, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """The description of a run; each field is an option of `pipistrelle run`.

    The description leaves out how the server reaches the scheduler, and where the outputs are written. File names are
    as the user gave them, relative to the working directory.

    Attributes:
        platform, scale_platform: a bundled machine or a file (None: the workload's own), and a factor for its number
            of nodes, such as ``120%``.
        node_table: ``FILE`` or ``FILE,at=DATE``: node properties that extend the platform.
        workload: the jobs, bundled or a file; only Batsim-compatible runs may have several workloads.
        sort, units, timezone, columns: how to read a log.
        transform: steps that change the workload before the run.
        ignore_constraints: let jobs use any nodes.
        partition_pools: bind the jobs of a partition to pools, such as ``2=gpu|old``.
        from_, warm: begin the run at this date, or this time after time 0 of the log; ``warm`` also loads the jobs that
            run or are queued then.
        cancellations: jobs that were cancelled while queued: "keep" queues them until they are cancelled, "drop"
            leaves them out.
        strict: an illegal decision ends the run (always so in Batsim-compatible runs), and an unreadable log record is
            an error.
        dispersion: by what share of its runtime a job takes longer if it is spread over the whole machine; None: no job
            takes longer.
        until: end of the run: a time after time 0, or a date; None: the end of the last job.
        queue_lengths: write the length of the queue over time.
        format: write tables as CSV only, or also as Parquet.
        failures, repair, seed, reliability_factor: failure models, and their parameters. ``none`` means no failures;
            empty means the platform's own models.
        outages, outages_class, outages_start, outages_shortest: a file of outages; the node class whose outages to
            use; the moment in the file that becomes time 0 of the run; and the length below which outages are ignored.
        maintenance: rules, or files of rules.
        checkpoint, dump, read, spares, resilience: resilience of jobs that specify none in the workload.
        requeue, max_attempts, expected_attempts, restart_walltime, checkpoint_walltime: what happens to interrupted
            jobs.
        batsim: the options of a Batsim-compatible run; None for other runs.
        resumed: the snapshot that the run continued under another policy; None: it started from the beginning.
        files: {name of an input file: SHA-256}; a run is rejected if an input file has changed.
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
        """Return the names in the description that may be files or bundled inputs."""
        names = [*self.workload, *self.maintenance, *(text.partition(",")[0] for text in self.failures)]
        classes = None if self.reliability == AUTO else self.reliability
        names += [name for name in (self.platform, self.outages, self.config, classes) if name is not None]
        names += [*self.scheduler_files, *_slurm_files_of(self.platform)]
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

    @property
    def scheduler_files(self) -> list[str]:
        """Return the files besides ``config`` that the scheduler ``slurm`` reads."""
        if self.config is None:
            return []
        resv = (text.rpartition(",zero=")[0] or text for text in self.reservations)
        return [*self.accounting, *resv, *_slurm_files_of(self.config)]

    def without_policy(self) -> "RunSpec":
        """Return a copy without scheduler, for a run whose scheduler the user starts."""
        return replace(self, **{**asdict(PolicySpec()), "scheduler": ()})

    def part(self, *kinds: Decides) -> "RunSpec":
        """Return a copy in which only some fields keep their values.

        These are the fields that affect one of ``kinds``. All other fields get their defaults.

        Args:
            kinds: what a field affects, such as the inputs or the policy.
        """
        return RunSpec(**{name: getattr(self, name) for name in _deciding(kinds)})

    def key(self, *kinds: Decides) -> str:
        """Return a cache key of the fields that affect one of ``kinds``.

        Two descriptions have equal keys exactly if these fields are equal.

        Args:
            kinds: what a field affects, such as the inputs or the policy.
        """
        return repr([getattr(self, name) for name in _deciding(kinds)])


@cache
def _deciding(kinds: tuple[Decides, ...]) -> tuple[str, ...]:
    return tuple(name for name, kind in decided().items() if kind in kinds)


@cache
def decided() -> Mapping[str, Decides]:
    """Return {field of `RunSpec`: what it affects}.

    Raise TypeError if a field does not declare what it affects.
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


def _slurm_files_of(name: str | None) -> list[str]:
    """Return the files that belong to a slurm.conf; [] for any other name."""
    if name is None or not os.path.isfile(name):
        return []
    from pipistrelle.runs.slurm.files import files_of  # most runs have no slurm.conf

    return files_of(name)
