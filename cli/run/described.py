"""Command-line options that describe a run.

A `RunSpec` is made from them.
"""

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
        raise click.BadParameter(f"given {len(values)} times, but possible only once.", context, param)
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
    """Return the argument ``[SPEC]``, a run description.

    Shells complete file names and names of these kinds.
    """
    return click.argument(
        "spec_file",
        metavar="[SPEC]",
        required=False,
        type=FILE_OR_FOLDER,
        shell_complete=completed(*kinds, or_file=True),
    )


_CHANGES: Final = (
    "STEP\tChange the jobs before the run by a workload command: 'scale --load 0.9' "
    "('pipistrelle help workload'); repeatable."
)
transform_option: Final = added(options_of(RunSpec, {"transform": _CHANGES}, {"transform": _steps}))
_UNTIL: Final = {
    "from_": "TIME\tSkip the part of the log before TIME: '30d' after its start, or a date.\tskip nothing",
    "warm": "With --from TIME: begin with the jobs that were running or queued at TIME.",
    "until": "TIME\tStop at this simulated time or date, even with unfinished jobs.",
}
_POOLS: Final = {
    "partition_pools": (
        "PARTITION=POOL[|POOL...]\tRun jobs of PARTITION only on nodes of these pools: '2=gpu|old'; repeatable."
    ),
    "cancellations": "Jobs that were cancelled while queued: submit and cancel them (keep), or leave them out (drop).",
    "ignore_constraints": "Ignore which nodes jobs request: every job can run on any node.",
}
_STRICT: Final = {
    "strict": "Stop at the scheduler's first illegal decision (exit code 3); reject unreadable log lines."
}
_MACHINE: Final = {
    "scale_platform": "FACTOR\tMultiply the number of nodes of each pool (group of equal nodes): 120% adds a fifth.",
    "node_table": (
        "FILE[,at=DATE]\tTable of nodes (class, age, MTTF): CSV, TOML or Titan's log. DATE is that of simulated time 0."
    ),
}
_DISPERSION: Final = {
    "dispersion": (
        "NUMBER\tMake jobs run longer if their nodes are far apart in the network: "
        "0.2 adds 20% if a job is spread over the whole machine, less if its nodes are closer.\tnone"
    )
}
_QUEUE: Final = {
    "queue_lengths": "Also write the queue length over time, to out_queue.csv.",
    "format": "Write output tables as CSV only, or also as Parquet (needs pyarrow).",
}
_FAILURES: Final = {
    "failures": "MODEL\tRandom node failures: bundled model, TOML file, 'weibull,mtbf=10250h,shape=0.7', or 'none'.",
    "repair": (
        "TIME|MODEL\tHow long a failed node is down: 5d, or random as 'exponential,mttr=1h'.\tas in the failure model"
    ),
    "seed": "Random seed of node failures and repairs.",
    "reliability_factor": "Multiply all failure rates by this number.",
    "outages": "FILE\tTake nodes down as in this record of outages: CSV, LANL, Titan, Batsim, Slurm or PBS file.",
    "outages_class": "NAME\tWith --outages: use only the record's nodes of class NAME, such as one LANL system.",
    "outages_start": "TIME\tWith --outages: start the run at this time or date of the record.",
    "outages_shortest": "TIME\tWith --outages: ignore outages shorter than TIME.",
    "maintenance": (
        "RULE|FILE\tTake nodes down for maintenance (start, length, nodes): '2017-01-29 08:00 +20000s all'; repeatable."
    ),
    "checkpoint": "daly|young|SECONDS\tCheckpoint jobs at this interval: Daly's or Young's formula, or SECONDS.",
    "dump": "TIME\tTime that a job needs to write a checkpoint.\t0",
    "read": "TIME\tTime that a job needs to read a checkpoint when it restarts.\t0",
    "spares": "N|SHARE%\tSpare nodes of each job, which replace failed nodes: number, or percentage of its nodes.",
    "resilience": "After a failure, continue the job on fewer nodes: any number (moldable), or a rectangle (grid).",
    "requeue": "Requeue jobs that lost a node: at their original position, at the back, or never.",
    "max_attempts": "Maximum number of starts per job, including the first.",
    "expected_attempts": "Stop if failures would make any job need more than NUMBER starts on average; 0: no limit.",
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
            help="Jobs to simulate: bundled name, SWF, Batsim JSON or accounting log.",
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
            show_default="machine of the workload",
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
        timeout_option("decision", "each reply of the scheduler"),
    ),
    in_section(OUTPUTS, added(options_of(RunSpec, _QUEUE)), form_options),
)


def described(
    context: click.Context, base: Path | RunSpec | None, options: dict[str, Any], *, decides: bool = True
) -> RunSpec:
    """Return the description of a run.

    Command-line options replace values of ``base``. Options that belong to the description are removed from
    ``options``.

    Args:
        base: a description or its file; None: all defaults.
        options: {option: value} of the command line.
        decides: whether the scheduler of ``base`` counts. If not, or if ``--scheduler`` is given, ``base``'s scheduler
            and its options are ignored.
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
    """Add the name of the run's description file to errors about its scheduler.

    The key in the file is added, too, if it is known. Errors about options of the command line stay as they are.
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
