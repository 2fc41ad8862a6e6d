"""``pipistrelle failures generate``, ``show`` and ``fit``."""

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from pipistrelle.cli.options.fields import added, options_of, together
from pipistrelle.cli.options.files import output_option
from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.terminal.console import import_numpy, print_facts
from pipistrelle.cli.terminal.guard import FilledPath, refuse_overwriting
from pipistrelle.models.reliability import MODELS
from pipistrelle.runs.description.spec import RunSpec

if TYPE_CHECKING:
    from pipistrelle.traces.outages.log import OutageLog

_MODELS: Final = options_of(
    RunSpec,
    {
        "failures": (
            "MODEL\tFailure model: bundled name, file, or 'weibull,mtbf=10250h,shape=0.7'; repeatable."
            "\tas in the platform"
        ),
        "repair": (
            "TIME|MODEL\tHow long a failed node is down: 5d, or random as 'exponential,mttr=1h'."
            "\tas in the failure model"
        ),
        "seed": "Random seed of the failures.",
        "reliability_factor": "Multiply all failure rates by this number.",
        "platform": "NAME|FILE\tMachine whose nodes fail: bundled name, TOML file or SimGrid XML.",
    },
    names={"platform": "-p"},
)
#: options that select part of a log, passed to `_part`
_part_options: Final = together(
    click.option("--class", "only", metavar="NAME", help="Use only nodes of class NAME, such as one LANL system."),
    click.option("--numbers", metavar="SET", help="Use only nodes with these numbers, such as '0-255 300'."),
    click.option(
        "--begin", metavar="TIME", help="Ignore the log before TIME (a date, or a time of the log such as 30d)."
    ),
    click.option("--end", metavar="TIME", help="Ignore the log after TIME."),
)
_nodes_option: Final = click.option(
    "--nodes",
    type=click.IntRange(min=1),
    show_default="as in FILE",
    help="Number of nodes, including nodes without any failure.",
)


@click.command("generate", cls=Command)
@added(_MODELS)
@click.option("--nodes", type=click.IntRange(1, 10_000_000), help="Number of identical nodes, instead of --platform.")
@click.option("--horizon", required=True, metavar="TIME", help="Time span of the failures, such as 90d or 1y.")
@output_option("CSV file to write; .gz or .xz compresses.")
def generate_command(
    failures: tuple[str, ...],
    repair: str | None,
    platform: str | None,
    nodes: int | None,
    horizon: str,
    seed: int,
    reliability_factor: float,
    output: Path,
) -> None:
    """Generate random failures from a failure model, and write them as CSV.

    The CSV file has the columns node, down (when it fails, in seconds), up (when it is repaired) and cause. Its first
    line gives the number of nodes and the time span, which 'failures show' and 'failures fit' read.
    """
    if (platform is None) == (nodes is None):
        raise click.UsageError("give exactly one of --platform and --nodes.")
    if not failures and platform is None:
        raise click.UsageError(
            "there is no failure model: give --failures, or a --platform whose file has [[failures]]."
        )
    import_numpy()
    # Imported late, here and below, so that help starts fast.
    from pipistrelle.platforms.description import homogeneous
    from pipistrelle.platforms.failures.outage import csv_chunks
    from pipistrelle.platforms.failures.text import parse_durations
    from pipistrelle.protocol.base.errors import InputError
    from pipistrelle.protocol.base.lengths import parse_seconds
    from pipistrelle.runs.description.reliability import platform_failures
    from pipistrelle.runs.inputs.named import load_platform
    from pipistrelle.runs.inputs.outages import failure_plan
    from pipistrelle.traces.files import write_trace
    from pipistrelle.traces.outages.table import watch_line

    refuse_overwriting([platform, *(text.partition(",")[0] for text in failures)], [output])
    machine = load_platform(platform) if platform is not None else homogeneous(nodes or 1, "nodes")
    seconds = parse_seconds(horizon, "horizon")
    own = parse_durations(repair) if repair is not None else None
    plan = (
        failure_plan(failures, machine, own, reliability_factor)
        if failures
        else platform_failures(machine, own, reliability_factor)
    )
    if plan is None:
        raise InputError(
            "the platform has no failure model",
            where=machine.name,
            expected="[[failures]] in its file",
            hint="Name a model with --failures.",
        )
    outages = plan.outages(seed, seconds)
    write_trace(output, chain([watch_line(machine.nodes, seconds)], csv_chunks(outages)))
    click.echo(f"{len(outages):,} outages of {machine.nodes:,} nodes written to {output}")


@click.command("show", cls=Command)
@click.argument("file", metavar="FILE", type=FilledPath())
@_part_options
@_nodes_option
def show_command(file: str, nodes: int | None, **part: str | None) -> None:
    """Describe a failure log: failure rates, hazard rate, clustering, repair times.

    Formats: CSV (node,down,up,cause), LANL LA-UR-05-7318, TitanGPULife, Batsim events, 'sacctmgr show event',
    'scontrol show node', PBS server log; plain or compressed.
    """
    import_numpy()
    from pipistrelle.models.reliability.outage_summary import summarise
    from pipistrelle.traces.outages.load import load_outage_log

    print_facts(summarise(_part(load_outage_log(file), nodes, **part)))


@click.command("fit", cls=Command)
@click.argument("file", metavar="FILE", type=FilledPath())
@_part_options
@_nodes_option
@click.option(
    "--model",
    default="auto",
    metavar=f"{{{'|'.join(MODELS)}}}",
    help="Distribution of times between failures; auto: the one with the lower AIC (better fit).",
)
@click.option(
    "--confidence", type=click.FloatRange(0.5, 0.9999), default=0.95, help="Confidence level of the intervals."
)
@click.option("--age", metavar="TIME", show_default="new nodes", help="Age of the nodes at the beginning of the log.")
@click.option("--name", metavar="TEXT", show_default="name of FILE", help="Name of the model.")
@click.option(
    "--description", metavar="TEXT", default="", show_default=False, help="One-line description of the model."
)
@output_option("TOML file to write.", required=False, show_default="standard output")
def fit_command(
    file: str,
    nodes: int | None,
    model: str,
    confidence: float,
    age: str | None,
    name: str | None,
    description: str,
    output: Path | None,
    **part: str | None,
) -> None:
    """Fit a failure model to a failure log, and write TOML for --failures.

    The fit is by maximum likelihood.
    """
    import_numpy()
    from pipistrelle.models.reliability.fits import fit_log
    from pipistrelle.platforms.failures.fitted import to_toml
    from pipistrelle.protocol.base.errors import said_of
    from pipistrelle.protocol.base.lengths import parse_seconds
    from pipistrelle.traces.files import write_trace
    from pipistrelle.traces.outages.load import load_outage_log

    refuse_overwriting([file], [output])
    log = _part(load_outage_log(file), nodes, **part)
    with said_of("--age"):
        up_for = 0.0 if age is None else parse_seconds(age, "node's age")
    fitted = fit_log(
        log,
        name=name or log.name,
        description=description,
        source=_source(log, part["only"], part["numbers"]),
        model=model,
        confidence=confidence,
        age=up_for,
    )
    text = to_toml(fitted)
    if output is None:
        click.echo(text, nl=False)
        return
    write_trace(output, [text.encode()])
    failures = fitted.failures
    click.echo(
        f"{failures.distribution}, MTBF of a node {(failures.mean or 0.0) / 3600:,.4g} h, "
        f"from {failures.observations:,} failures, written to {output}"
    )


def _part(
    log: "OutageLog", nodes: int | None, only: str | None, numbers: str | None, begin: str | None, end: str | None
) -> "OutageLog":
    from pipistrelle.protocol.base.errors import InputError, said_of
    from pipistrelle.protocol.units.nodesets import NodeSet
    from pipistrelle.runs.inputs.outages import clock_time

    told_nodes, told_end = log.told if log.told is not None and only is None and numbers is None else (None, None)
    if only is not None:
        log = log.only(only)
    if numbers is not None:
        with said_of("--numbers"):
            wanted = NodeSet.parse(numbers)
        log = log.numbered(wanted)
    with said_of("--begin"):
        first = None if begin is None else clock_time(log, begin)
    with said_of("--end"):
        last = told_end if end is None else clock_time(log, end)
    if first is not None and last is not None and last <= first:
        until = "the end of the log" if end is None else end
        raise InputError(
            "the beginning is not before the end", where="--begin", expected=f"before {until}", found=begin
        )
    if first is not None or last is not None:
        log = log.within(first, last)
    nodes = nodes or told_nodes
    return log if nodes is None else log.with_silent(nodes)


def _source(log: "OutageLog", only: str | None, numbers: str | None) -> str:
    from pipistrelle.models.reliability.outage_summary import clock_text

    part = f", class {only}" if only is not None else ""
    part += f", numbers {numbers}" if numbers is not None else ""
    begin, end = (clock_text(log, float(time)) for time in (log.begin.min(), log.end.max())) if log.nodes else ("", "")
    return f"{log.name}{part}: {len(log):,} outages, {len(log.nodes):,} nodes, from {begin} to {end}"
