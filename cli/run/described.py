"""Command-line options that describe a run, and the `RunSpec` that is made from them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource
from msgspec.structs import fields, replace

from pipistrelle.cli.options.fields import added, options_of, together
from pipistrelle.cli.options.files import reading_options
from pipistrelle.cli.options.names import completed
from pipistrelle.cli.options.sections import CONNECTION, FAILURES, INPUTS, MACHINE, OUTPUTS, SCHEDULER, in_section
from pipistrelle.cli.options.shared import dialect_option, endpoint_options, form_options, timeout_option
from pipistrelle.cli.terminal.guard import FILE_OR_FOLDER, FilledPath
from pipistrelle.protocol.base.errors import InputError, PipistrelleError
from pipistrelle.runs.description.policy import PolicySpec
from pipistrelle.runs.description.spec import RunSpec

_C = TypeVar("_C", bound=Callable[..., Any])


def _the_only(context: click.Context, param: click.Parameter, values: tuple[str, ...]) -> Any:
    """Return the value of an option that may be given only once.

    For ``--workload``, return a tuple of at most one value, because ``pipistrelle-batsim`` may have several workloads.
    """
    if len(values) > 1:
        raise click.BadParameter(f"given {len(values)} times, but only once is possible.", context, param)
    if param.name == "workload":  # a Batsim run may have several
        return values
    return values[0] if values else None


def _steps(context: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> Any:
    """Return the workload changes that ``--transform`` describes."""
    if not texts:
        return ()
    import pipistrelle.cli.workload.edit  # noqa: F401 - registers the steps
    from pipistrelle.cli.workload.steps import parse_transform  # most runs take the workload as it is

    return parse_transform(texts, context)


def spec_file(*kinds: str) -> Callable[[_C], _C]:
    """Return the argument for a run description; shells complete names of these kinds."""
    return click.argument(
        "spec_file",
        metavar="[SPEC]",
        required=False,
        type=FILE_OR_FOLDER,
        shell_complete=completed(*kinds, or_file=True),
    )


_CHANGES: Final = "STEP\tApply this change to the workload, such as 'scale --load 0.9'; repeatable."
transform_option: Final = added(options_of(RunSpec, {"transform": _CHANGES}, {"transform": _steps}))
_UNTIL: Final = {
    "from_": "TIME\tStart the run at TIME in the log: '30d' or a date.\tbegin of the log",
    "warm": "With --from: also load the jobs that were running or queued at TIME.",
    "until": "TIME\tStop at TIME, even if jobs are running or queued.",
}
_POOLS: Final = {
    "partition_pools": "PARTITION=POOL\tRun jobs of PARTITION only in these pools, such as '2=gpu|old'; repeatable.",
    "cancellations": "Keep or drop jobs that were cancelled while queued.",
    "ignore_constraints": "Ignore node constraints: every job can run on any node.",
}
_STRICT: Final = {"strict": "Stop at the first illegal decision (exit code 3); reject logs with unreadable lines."}
_MACHINE: Final = {
    "scale_platform": "FACTOR\tMultiply the number of nodes of each pool: 120% or 1.2 adds a fifth.",
    "node_table": "FILE[,at=DATE]\tTable of node classes, ages or MTTFs, as on DATE: CSV, TOML or Titan's GPU log.",
}
_DISPERSION: Final = {
    "dispersion": "SHARE\tLengthen jobs whose nodes are far apart: by SHARE if spread over the whole machine.\tnone"
}
_QUEUE: Final = {
    "queue_lengths": "Also write out_queue.csv: queue length over time.",
    "format": "Format of the tables: CSV only, or CSV and Parquet (needs pyarrow).",
}
_FAILURES: Final = {
    "failures": "MODEL\tFailure model: a name, a TOML file, 'weibull,mtbf=10250h,shape=0.7', or 'none'.",
    "repair": "TIME|MODEL\tRepair time or distribution: 5d or 'exponential,mttr=1h'.\tthe model's or platform's",
    "seed": "Random seed of failures.",
    "reliability_factor": "Multiply all failure rates by this number.",
    "outages": "FILE\tReplay recorded outages: CSV, LANL, Titan, Batsim, Slurm or PBS file.",
    "outages_class": "NAME\tUse only the outages of nodes of class NAME.",
    "outages_start": "TIME\tStart the run at this time or date of the outage file.",
    "outages_shortest": "TIME\tIgnore outages shorter than TIME.",
    "maintenance": "RULE|FILE\tPlan maintenance (start, length, nodes): '2017-01-29 08:00 +20000s all'; repeatable.",
    "checkpoint": "daly|young|SECONDS\tCheckpoint jobs at this interval: Daly's or Young's formula, or SECONDS.",
    "dump": "TIME\tTime that a job needs to write a checkpoint.\t0",
    "read": "TIME\tTime that a job needs to read a checkpoint when it restarts.\t0",
    "spares": "N|SHARE%\tNumber of spare nodes per job; they replace failed nodes.",
    "resilience": "After a failure, continue on fewer nodes: any number, or a smaller grid.",
    "requeue": "Requeue failed jobs at their original position, at the back, or never.",
    "max_attempts": "Maximum number of starts per job.",
    "expected_attempts": "End the run if a job is expected to need more than NUMBER starts; 0: never.",
    "restart_walltime": "Walltime of a restarted job: as requested (full), or minus the saved work (rest).",
    "checkpoint_walltime": (
        "Time spent on checkpoints: part of the requested walltime (asked), or added to it (extended)."
    ),
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
            help="Workload: bundled name, SWF, Batsim JSON or accounting log.",
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
            help="Machine: bundled name, TOML file, SimGrid XML or Maui resource trace.",
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
        timeout_option("hello", "the scheduler to connect"),
        timeout_option("decision", "each reply"),
    ),
    in_section(OUTPUTS, added(options_of(RunSpec, _QUEUE)), form_options),
)


def described(
    context: click.Context, base: Path | RunSpec | None, options: dict[str, Any], *, decides: bool = True
) -> RunSpec:
    """Return the description of a run: the values of ``base``, overridden by command-line options.

    Options that belong to the description are removed from ``options``. The scheduler of ``base`` and its options are
    discarded if ``--scheduler`` is given or ``decides`` is false.
    """
    from pipistrelle.runs.description.spec_file import read_spec  # not needed for the help

    spec = read_spec(base) if isinstance(base, Path) else base or RunSpec()
    names = [name for name in options if name in spec.__struct_fields__]
    values = {name: options.pop(name) for name in names}
    given = {
        name: value
        for name, value in values.items()
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    return replace(spec if decides and "scheduler" not in given else spec.without_policy(), **given)


@contextmanager
def blamed(path: Path | None, spec: RunSpec, context: click.Context | None = None) -> Iterator[None]:
    """Add the name of the run's description file, and the key if known, to errors about its scheduler.

    Errors about options of the command line stay as they are.
    """
    try:
        yield
    except PipistrelleError as error:
        keys = {one.name: one.encode_name for one in fields(PolicySpec)}
        name = next((name for name in keys if f"'{getattr(spec, name)}'" in error.what), None)
        given = context is not None and name and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if path is None or error.where is not None or given:
            raise
        raise error.at(f"{path}: {keys[name]}" if name else str(path), InputError) from None
