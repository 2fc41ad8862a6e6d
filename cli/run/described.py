"""Options that describe a simulation, and the description they give."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource
from msgspec.structs import replace

from pipistrelle.cli.options.fields import added, options_of, together
from pipistrelle.cli.options.files import reading_options
from pipistrelle.cli.options.names import completed
from pipistrelle.cli.options.sections import CONNECTION, FAILURES, INPUTS, MACHINE, OUTPUTS, SCHEDULER, in_section
from pipistrelle.cli.options.shared import dialect_option, endpoint_options, form_options, timeout_option
from pipistrelle.cli.terminal.guard import FILE_OR_FOLDER, FilledPath
from pipistrelle.runs.description.spec import RunSpec

_C = TypeVar("_C", bound=Callable[..., Any])


def _the_only(context: click.Context, param: click.Parameter, values: tuple[str, ...]) -> Any:
    """Return the value of an option that may be given once; Batsim accepts several."""
    if len(values) > 1:
        raise click.BadParameter(f"given {len(values)} times, but a run has one.", context, param)
    if param.name == "workload":  # a Batsim run may have several
        return values
    return values[0] if values else None


def _steps(context: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> Any:
    """Return the workload changes."""
    if not texts:
        return ()
    import pipistrelle.cli.workload.edit  # noqa: F401 - registers the steps
    from pipistrelle.cli.workload.steps import parse_transform  # most runs take the workload as it is

    return parse_transform(texts, context)


def spec_file(*kinds: str) -> Callable[[_C], _C]:
    """Return the argument for a run description, completed with names of these kinds."""
    return click.argument(
        "spec_file",
        metavar="[SPEC]",
        required=False,
        type=FILE_OR_FOLDER,
        shell_complete=completed(*kinds, or_file=True),
    )


_CHANGES: Final = "STEP\tChange the workload first, such as 'scale --load 0.9'; repeatable."
transform_option: Final = added(options_of(RunSpec, {"transform": _CHANGES}, {"transform": _steps}))
_UNTIL: Final = {
    "from_": "TIME\tStart at TIME in the log: '30d' or a date.\tits begin",
    "warm": "With --from: include the jobs that ran or waited then.",
    "until": "TIME\tStop at TIME, even if jobs are running or queued.",
}
_POOLS: Final = {
    "partition_pools": "PARTITION=POOL\tBind jobs of a partition to a pool: '2=gpu|old'; repeatable.",
    "cancellations": "Jobs cancelled while queued: keep each until it is cancelled, or drop it from the workload.",
    "ignore_constraints": "Ignore the node requirements of jobs.",
}
_STRICT: Final = {"strict": "Stop at illegal decisions (exit code 3) and unreadable records."}
_MACHINE: Final = {
    "scale_platform": "FACTOR\tMultiply the nodes of each pool, by 120% or 0.5.",
    "node_table": "FILE[,at=DATE]\tTable of nodes (class, age, MTTF, ...): CSV, TOML, GPU lives.",
}
_DISPERSION: Final = {"dispersion": "SHARE\tRuntime increase of jobs on distant nodes.\tnone"}
_QUEUE: Final = {
    "queue_lengths": "Also write out_queue.csv: queue length over time.",
    "format": "Write tables as CSV only, or also as Parquet (needs pyarrow).",
}
_FAILURES: Final = {
    "failures": "MODEL\tFail nodes by 'weibull,mtbf=10250h,shape=0.7', a name or TOML file; 'none': never.",
    "repair": "TIME|MODEL\tRepair time: '5d', 'exponential,mttr=1h'.\tof the model or platform",
    "seed": "Random seed of failures.",
    "reliability_factor": "Multiply all failure rates.",
    "outages": "FILE\tReplay outages: CSV, LANL, Titan, Batsim, Slurm or PBS.",
    "outages_class": "NAME\tUse one node class of the outage file.",
    "outages_start": "TIME\tTime 0 in the outage file: a date or a time.",
    "outages_shortest": "TIME\tIgnore shorter outages.",
    "maintenance": "RULE|FILE\tPlan maintenance: '2017-01-29 08:00 +20000s all'; repeatable.",
    "checkpoint": "daly|young|SECONDS\tCheckpoint jobs at this interval and restart from it.",
    "dump": "TIME\tDuration of a checkpoint.\t0",
    "read": "TIME\tDuration of reading a checkpoint at restart.\t0",
    "spares": "N|SHARE%\tIdle spare nodes per allocation.",
    "resilience": "Let jobs continue on fewer nodes, or as a shrinking grid.",
    "requeue": "Queue position of a job that lost its nodes.",
    "max_attempts": "Maximum number of starts per job.",
    "expected_attempts": "End the run if a job needs more; 0: never.",
    "restart_walltime": "Walltime of a new attempt: full, or reduced by the saved work.",
    "checkpoint_walltime": "Count checkpoints in the walltime, or extend it.",
}
_MODELS: Final = {"failures": completed("failures", or_file=True)}
reliability_options: Final = in_section(
    FAILURES, added(options_of(RunSpec, _FAILURES, {"outages": FilledPath()}, completions=_MODELS))
)


#: options that describe the simulation
simulation_options: Final = together(
    in_section(
        INPUTS,
        click.option(
            "-w",
            "--workload",
            metavar="NAME|FILE",
            multiple=True,
            callback=_the_only,
            default=["demo"],
            shell_complete=completed("workload", or_file=True),
            help="Bundled name, SWF, Batsim JSON or log of a centre.",
        ),
        reading_options,
        transform_option,
        added(options_of(RunSpec, _UNTIL, names={"from_": "from_"})),
    ),
    in_section(
        MACHINE,
        click.option(
            "-p",
            "--platform",
            metavar="NAME|FILE",
            multiple=True,
            callback=_the_only,
            shell_complete=completed("platform", or_file=True),
            show_default="for the workload",
            help="Bundled name, TOML file, SimGrid XML or Maui resource trace.",
        ),
        added(options_of(RunSpec, _MACHINE)),
        added(options_of(RunSpec, _POOLS)),
        added(options_of(RunSpec, _DISPERSION)),
    ),
    in_section(SCHEDULER, added(options_of(RunSpec, _STRICT))),
    in_section(
        CONNECTION,
        dialect_option,
        endpoint_options,
        timeout_option("hello", "a scheduler"),
        timeout_option("decision", "each reply"),
    ),
    in_section(OUTPUTS, added(options_of(RunSpec, _QUEUE)), form_options),
)


def described(
    context: click.Context, base: Path | RunSpec | None, options: dict[str, Any], *, decides: bool = True
) -> RunSpec:
    """Return the run in ``base``, changed by options of the command line.

    Options that describe the run are removed from ``options``. A new scheduler discards the parts and options of the
    described one; so does ``decides=False``.
    """
    from pipistrelle.runs.description.spec_file import read_spec  # help needs it not

    spec = read_spec(base) if isinstance(base, Path) else base or RunSpec()
    names = [name for name in options if name in spec.__struct_fields__]
    values = {name: options.pop(name) for name in names}
    given = {
        name: value
        for name, value in values.items()
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    return replace(spec if decides and "scheduler" not in given else spec.without_policy(), **given)
