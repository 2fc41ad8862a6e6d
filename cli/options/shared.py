"""Options that several commands share, so that they are called and explained alike."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click
from click.core import ParameterSource

from pipistrelle.cli.guard import FilledPath
from pipistrelle.cli.options.fields import PositiveNumber
from pipistrelle.studies.runs import DECISION_TIMEOUT, HELLO_TIMEOUT
from pipistrelle.traces.logs.kinds import Units

if TYPE_CHECKING:
    from pipistrelle.studies.runs.spec import RunSpec

_C = TypeVar("_C", bound=Callable[..., Any])


DIALECT = click.option(
    "--dialect",
    type=click.Choice(["native", "batsim"]),
    default="native",
    show_default=True,
    help="Which protocol to speak: ours, or that of Batsim 3 and 4, where it is the scheduler that listens.",
)


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


def hello_timeout(whom: str) -> Callable[[_C], _C]:
    """Return the option that says how long to wait for a peer."""
    return _timeout("hello", HELLO_TIMEOUT, whom)


def decision_timeout(note: str = "") -> Callable[[_C], _C]:
    """Return the option that says how long to wait for each reply."""
    return _timeout("decision", DECISION_TIMEOUT, f"each reply{note}")


def _timeout(what: str, default: float, whom: str) -> Callable[[_C], _C]:
    text = f"How long to wait for {whom}."
    return click.option(
        f"--{what}-timeout", type=PositiveNumber(), default=default, show_default=True, metavar="SECONDS", help=text
    )


SPEC_FILE = click.argument("spec_file", metavar="[SPEC]", required=False, type=FilledPath(path_type=Path))
LOG_UNITS = click.option(
    "--units",
    type=click.Choice(get_args(Units)),
    default="nodes",
    show_default=True,
    help="What sizes count in a log of PBS, Slurm or Maui.",
)
LOG_TIMEZONE = click.option(
    "--timezone", metavar="ZONE", help="Zone of such a log's clock, as Europe/Prague; default: UTC."
)

_SIMULATION = (
    click.option(
        "-p",
        "--platform",
        metavar="NAME|FILE",
        multiple=True,
        callback=_the_only,
        help="Machine: a bundled one ('list platforms') or a TOML file or SimGrid's XML; "
        "default: a bundled workload's own, else as its header says.",
    ),
    click.option(
        "-w",
        "--workload",
        metavar="NAME|FILE",
        multiple=True,
        callback=_the_only,
        default=["demo"],
        show_default=True,
        help="Jobs: a bundled workload ('list workloads') or a file: SWF, Batsim's JSON, a centre's log; also packed.",
    ),
    click.option("--sort", is_flag=True, help="Accept an SWF log whose submit times are not ascending, and sort it."),
    LOG_UNITS,
    LOG_TIMEZONE,
    click.option(
        "--transform",
        metavar="STEP",
        multiple=True,
        callback=_steps,
        help="Change the workload first, as 'pipistrelle workload' does: 'scale --load 0.9'; may be repeated.",
    ),
    click.option(
        "--until",
        metavar="TIME",
        help="End the run then, whatever still runs or waits: '30d' after time 0, or a date; default: at its end.",
    ),
    click.option("--strict", is_flag=True, help="End the run, with exit code 3, at the first illegal decision."),
    DIALECT,
    click.option(
        "--endpoint",
        metavar="ADDRESS",
        help="Where to listen: tcp://127.0.0.1:28000, tcp://127.0.0.1:* (any free port) or ipc://PATH; "
        "default: a private Unix socket.",
    ),
    click.option("--allow-remote", is_flag=True, help="Allow an endpoint that other machines can reach."),
    hello_timeout("a scheduler"),
    decision_timeout(),
    click.option(
        "--timings",
        type=FilledPath(path_type=Path, dir_okay=False),
        help="Write the wall-clock figures to this JSON file; they are in no other output.",
    ),
    click.option(
        "--progress/--no-progress", default=None, help="Show a progress bar; default: if standard error is a terminal."
    ),
)


def simulation_options(function: _C) -> _C:
    """Add what says which simulation to run."""
    for option in reversed(_SIMULATION):
        function = option(function)
    return function


def described(context: click.Context, base: "RunSpec", options: dict[str, Any]) -> "RunSpec":
    """Return a run with what the command line says of it in the place of what ``base`` says.

    What describes the run is taken out of ``options``; what stays is how it is carried out. Who names a scheduler
    beside a description does not want the parts and options of the other one.
    """
    from msgspec.structs import replace

    names = [name for name in options if name in base.__struct_fields__]
    values = {name: options.pop(name) for name in names}
    given = {
        name: value
        for name, value in values.items()
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    if "scheduler" in given:
        base = base.without_policy()
    return replace(base, **given)
