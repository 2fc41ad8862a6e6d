"""Options that several commands share, so that they are called and explained alike."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from pipistrelle.cli.guard import FilledPath
from pipistrelle.protocol.base.log import logger
from pipistrelle.schedulers.catalogue.names import PARTS
from pipistrelle.studies.runs.timeouts import DECISION_TIMEOUT, HELLO_TIMEOUT
from pipistrelle.traces.logs.kinds import Units

# What the commands do is imported when they do it: help, and a scheduler's process, need little of it.
if TYPE_CHECKING:
    from pipistrelle.server.setup import Setup
    from pipistrelle.studies.inputs.reliability import ReliabilityOptions

_C = TypeVar("_C", bound=Callable[..., Any])


class PositiveNumber(click.FloatRange):
    """A finite number above zero; click's own range lets NaN and infinity pass."""

    name = "number"

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number, or fail."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


DIALECT = click.option(
    "--dialect",
    type=click.Choice(["native", "batsim"]),
    default="native",
    show_default=True,
    help="Which protocol to speak: ours, or that of Batsim 3 and 4, where it is the scheduler that listens.",
)


def _the_only(context: click.Context, param: click.Parameter, values: tuple[str, ...]) -> str | None:
    """Return the value of an option that Batsim takes several times; more than one is refused, not left out unseen."""
    if len(values) > 1:
        raise click.BadParameter(f"given {len(values)} times, but a run has one.", context, param)
    return values[0] if values else None


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
    click.option("--strict", is_flag=True, help="End the run, with exit code 3, at the first illegal decision."),
    DIALECT,
    click.option(
        "--endpoint",
        metavar="ADDRESS",
        help="Where to listen: tcp://127.0.0.1:28000, tcp://127.0.0.1:* (any free port) or ipc://PATH; "
        "default: a private Unix socket.",
    ),
    click.option("--allow-remote", is_flag=True, help="Allow an endpoint that other machines can reach."),
    click.option(
        "--hello-timeout",
        type=PositiveNumber(),
        default=HELLO_TIMEOUT,
        show_default=True,
        metavar="SECONDS",
        help="How long to wait for a scheduler.",
    ),
    click.option(
        "--decision-timeout",
        type=PositiveNumber(),
        default=DECISION_TIMEOUT,
        show_default=True,
        metavar="SECONDS",
        help="How long to wait for each reply.",
    ),
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


def policy_options(function: _C) -> _C:
    """Add what replaces a part of a preset."""
    known = {axis: ", ".join(parts) for axis, parts in PARTS.items()}
    for option in (
        click.option(
            "--placement",
            metavar="NAME[,KEY=VALUE...]",
            help=f"Replace how units are picked: {known['placement']}; as contiguous,fit=best.",
        ),
        click.option("--backfill", metavar="NAME", help=f"Replace the backfilling rule: {known['backfill']}."),
        click.option("--order", metavar="NAME", help=f"Replace the queue's order: {known['order']}."),
    ):
        function = option(function)
    return function


def policy_words(parts: dict[str, str | None]) -> list[str]:
    """Return the options of a command line that replace these parts."""
    return [word for axis, part in parts.items() if part is not None for word in (f"--{axis}", part)]


def make_setup(
    platform: str | None,
    workload: str,
    *,
    sort: bool,
    units: Units = "nodes",
    timezone: str | None = None,
    strict: bool,
    dialect: str,
    reliability: "ReliabilityOptions | None" = None,
) -> "Setup":
    """Return the setup that the options name."""
    from pipistrelle.server.setup import Setup
    from pipistrelle.studies.inputs.named import load_machine, load_workload, platform_for, units_remark
    from pipistrelle.studies.inputs.reliability import ReliabilityOptions

    trace = load_workload(workload, sort=sort, units=units, timezone=timezone)
    machine = platform_for(trace, workload) if platform is None else load_machine(platform)
    batsim = None
    if dialect == "batsim":
        from pipistrelle.server.batsim.setup import BatsimOptions

        batsim = BatsimOptions()
    happens = (reliability or ReliabilityOptions()).load(machine, trace)
    setup = Setup.of(machine, trace, strict=strict, batsim=batsim, reliability=happens)
    other_units = units_remark(trace, setup.platform, units)
    for remark in [*([] if other_units is None else [other_units]), *setup.remarks]:
        logger().warning("{}", remark)
    if not setup.jobs:
        logger().warning("no job of {} can run on {}", trace.name, setup.platform.name)
    return setup
