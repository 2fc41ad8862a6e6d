"""Options that say which simulation to run, and the run that they describe."""

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
    """Return the value of an option that Batsim takes several times; more than one is refused, not left out unseen."""
    if len(values) > 1:
        raise click.BadParameter(f"given {len(values)} times, but a run has one.", context, param)
    if param.name == "workload":  # of which a run in Batsim's way has several
        return values
    return values[0] if values else None


def _steps(context: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> Any:
    """Return the steps that change the workload."""
    if not texts:
        return ()
    import pipistrelle.cli.workload.edit  # noqa: F401 - it makes the steps known
    from pipistrelle.cli.workload.steps import parse_transform  # most runs take the workload as it is

    return parse_transform(texts, context)


def spec_file(*kinds: str) -> Callable[[_C], _C]:
    """Return the argument that names the description of a run; what of these kinds has a name can be completed."""
    return click.argument(
        "spec_file",
        metavar="[SPEC]",
        required=False,
        type=FILE_OR_FOLDER,
        shell_complete=completed(*kinds, or_file=True),
    )


_CHANGES: Final = "STEP\tChange the workload first, as 'pipistrelle workload' does: 'scale --load 0.9'; repeatable."
transform_option: Final = added(options_of(RunSpec, {"transform": _CHANGES}, {"transform": _steps}))
_UNTIL: Final = {
    "from_": "TIME\tBegin there in the log: '30d' after its time 0 or a date; default: at its begin.",
    "warm": "With --from: with the jobs that ran and waited then, as the log has them.",
    "until": "TIME\tEnd the run then, whatever still runs or waits: '30d' after time 0 or a date; default: at its end.",
}
_POOLS: Final = {
    "partition_pools": "PARTITION=POOL\tBind jobs of a partition to a pool: '2=gpu', or '2=gpu|old' for either; "
    "repeatable.",
    "cancellations": "Jobs that were cancelled while they waited: let them wait and leave then, or drop them.",
    "ignore_constraints": "Let jobs have any nodes, whatever they ask for.",
}
_STRICT: Final = {
    "strict": "End the run, with exit code 3, at the first illegal decision; refuse a log with records that cannot be "
    "read."
}
_MACHINE: Final = {
    "scale_platform": "FACTOR\tMultiply the nodes of each pool, as by 120% or 0.5.",
    "node_table": "FILE[,at=DATE]\tWhat is known of each node: class, age, MTTF, properties, in CSV or TOML; or lives "
    "of GPUs, at a date.",
}
_DISPERSION: Final = {
    "dispersion": "SHARE\tLet a job run longer where its nodes are far apart: by this share of its runtime if they are "
    "as far apart as all nodes are on the mean; default: no longer."
}
_QUEUE: Final = {
    "queue_lengths": "Write out_queue.csv, too: the queue's length over time.",
    "format": "Write the tables as CSV alone, or as Parquet, too, which needs pyarrow.",
}
_FAILURES: Final = {
    "failures": "MODEL\tLet nodes fail: 'exponential,smtbf=24h', 'weibull,mtbf=10250h,shape=0.7', a name ('lanl-20') "
    "or a fitted TOML file; several add up; 'none': not even as the platform says.",
    "repair": "TIME|MODEL\t'5d', 'exponential,mttr=1h', ...; default: as model or platform say.",
    "seed": "Equal seeds give equal failures.",
    "reliability_factor": "Multiply all rates of failure.",
    "outages": "FILE\tReplay outages: node,down,up,cause CSV, LANL's table, Titan's lives, events of Batsim, Slurm or "
    "PBS.",
    "outages_class": "NAME\tTake one class of the file's nodes: a system of LANL's, ...",
    "outages_start": "TIME\tWhere in the file time 0 is: a date, or a time after its time 0.",
    "outages_shortest": "TIME\tLeave out outages of the file that are shorter; default: none.",
    "maintenance": "RULE|FILE\tPlan maintenance: '2017-01-29 08:00 +20000s all'; also weekly, for nodes or a pool; or "
    "a file of rules.",
    "checkpoint": "daly|young|SECONDS\tLet jobs dump their state, so often, and restart from it.",
    "dump": "TIME\tHow long a dump takes; default: no time.",
    "read": "TIME\tHow long a restart takes to read a dump; default: no time.",
    "spares": "N|SHARE%\tNodes of each allocation that stay idle until others fail.",
    "resilience": "Let jobs go on with fewer nodes: any number, or as a grid that loses rows and columns.",
    "requeue": "Where a job that lost its nodes queues again.",
    "max_attempts": "How often a job is started at most.",
    "expected_attempts": "End the run when a job that keeps losing its work can be expected to need more; 0: never.",
    "restart_walltime": "The walltime of a new attempt: the whole, or the rest after the work that is saved.",
    "checkpoint_walltime": "Let dumps and reads take of the walltime asked for, or extend it.",
}
_MODELS: Final = {"failures": completed("failures", or_file=True)}
reliability_options: Final = in_section(
    FAILURES, added(options_of(RunSpec, _FAILURES, {"outages": FilledPath()}, completions=_MODELS))
)


#: what says which simulation to run
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
            help="Jobs: a bundled workload ('show workload') or a file, also packed: SWF, Batsim's JSON, a log.",
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
            help="Machine: a bundled one ('show platform') or a TOML file, SimGrid's XML or Maui's resource trace; "
            "default: a bundled workload's own, else as its header says.",
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
    """Return a run with what the command line says of it in the place of what ``base``, a file, says, if there is one.

    What describes the run is taken out of ``options``; what stays is how it is carried out. Who names a scheduler
    beside a description does not want the parts and options of the other one; without ``decides`` nobody does.
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
