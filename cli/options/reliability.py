"""Options of a run in which nodes fail, are repaired and are maintained."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pipistrelle.cli.guard import FilledPath
from pipistrelle.cli.options.shared import PositiveNumber
from pipistrelle.traces.resilience import REQUEUES, RESTART_WALLTIMES, WALLTIMES

if TYPE_CHECKING:
    from pipistrelle.studies.inputs.reliability import ReliabilityOptions

_C = TypeVar("_C", bound=Callable[..., Any])

_RELIABILITY = (
    click.option(
        "--failures",
        multiple=True,
        metavar="MODEL",
        help="Let nodes fail: 'exponential,smtbf=24h', 'weibull,mtbf=10250h,shape=0.7', a name ('lanl-20') or a fitted "
        "TOML file; several add up; 'none': not even as the platform says.",
    ),
    click.option(
        "--repair", metavar="TIME|MODEL", help="'5d', 'exponential,mttr=1h', ...; default: as model or platform say."
    ),
    click.option(
        "--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Equal seeds give equal failures."
    ),
    click.option(
        "--reliability-factor",
        "factor",
        type=PositiveNumber(),
        default=1.0,
        show_default=True,
        help="Multiply all rates of failure.",
    ),
    click.option(
        "--outages",
        metavar="FILE",
        type=FilledPath(),
        help="Replay outages: node,down,up,cause CSV, LANL's table, Titan's lives, events of Batsim, Slurm or PBS.",
    ),
    click.option("--outages-class", metavar="NAME", help="Take one class of the file's nodes: a system of LANL's, ..."),
    click.option(
        "--outages-start", metavar="TIME", help="Where in the file time 0 is: a date, or a time after its time 0."
    ),
    click.option(
        "--maintenance",
        multiple=True,
        metavar="RULE|FILE",
        help="Plan maintenance: '2017-01-29 08:00 +20000s all'; also weekly, for nodes or a pool; or a file of rules.",
    ),
    click.option(
        "--checkpoint", metavar="daly|young|SECONDS", help="Let jobs dump their state, so often, and restart from it."
    ),
    click.option("--dump", metavar="TIME", help="How long a dump takes; default: no time."),
    click.option("--read", metavar="TIME", help="How long a restart takes to read a dump; default: no time."),
    click.option("--spares", metavar="N|SHARE%", help="Nodes of each allocation that stay idle until others fail."),
    click.option(
        "--resilience",
        type=click.Choice(["moldable", "grid"]),
        help="Let jobs go on with fewer nodes: any number, or as a grid that loses rows and columns.",
    ),
    click.option(
        "--requeue",
        type=click.Choice(REQUEUES),
        default="original",
        show_default=True,
        help="Where a job that lost its nodes queues again.",
    ),
    click.option("--max-attempts", type=click.IntRange(min=1), help="How often a job is started at most."),
    click.option(
        "--restart-walltime",
        type=click.Choice(RESTART_WALLTIMES),
        default="full",
        show_default=True,
        help="The walltime of a new attempt: the whole, or the rest after the work that is saved.",
    ),
    click.option(
        "--checkpoint-walltime",
        "walltime",
        type=click.Choice(WALLTIMES),
        default="asked",
        show_default=True,
        help="Let dumps and reads take of the walltime asked for, or extend it.",
    ),
)


def reliability_options(function: _C) -> _C:
    """Add what says how nodes fail, and how jobs live with it."""
    for option in reversed(_RELIABILITY):
        function = option(function)
    return function


def take_reliability(options: dict[str, Any]) -> "ReliabilityOptions":
    """Remove the options of `reliability_options` from a command's and return what they say.

    Raises
    ------
    PipistrelleError
        when those on checkpoints and spares make no sense.
    """
    from pipistrelle.studies.inputs.reliability import ReliabilityOptions
    from pipistrelle.traces.resilience import parse_resilience

    texts = {name: options.pop(name) for name in ("checkpoint", "dump", "read", "spares", "resilience")}
    names = [name for name in ReliabilityOptions.__dataclass_fields__ if name != "resilience"]
    return ReliabilityOptions(resilience=parse_resilience(**texts), **{name: options.pop(name) for name in names})
