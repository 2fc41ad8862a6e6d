"""``pipistrelle workload convert``: change the format of a workload or log."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipistrelle.cli.options.files import reading_options, strict_option
from pipistrelle.cli.options.names import completed
from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.terminal.console import import_numpy
from pipistrelle.cli.terminal.guard import FILE, refuse_overwriting
from pipistrelle.traces.logs.kinds import Units

if TYPE_CHECKING:
    from pipistrelle.traces.workload import Workload


@click.command("convert", cls=Command)
@click.argument("sources", metavar="IN...", nargs=-1, required=True, shell_complete=completed("workload", or_file=True))
@click.argument("target", metavar="OUT", type=FILE)
@reading_options
@click.option(
    "--clean",
    "cleaned",
    is_flag=True,
    help="Remove jobs that cannot run (without run time or size, or larger than the machine).",
)
@strict_option
@click.option("--renumber", is_flag=True, help="Renumber jobs 1, 2, ... by submit time.")
def convert_command(
    sources: Sequence[str], target: Path, sort: bool, cleaned: bool, renumber: bool, **reading: Any
) -> None:
    """Convert a workload or log to another format.

    IN is a bundled name or a file: SWF, Batsim JSON, PBS or Torque accounting, sacct --parsable2, Maui workload trace,
    Haizea leases. Several files are merged into one log, in time order. OUT ends in .swf, .json, .sacct or .maui; .gz
    or .xz compresses it. If IN is a Maui resource trace, OUT is a platform (.toml).
    """
    import_numpy()
    # Imported late, so that help starts fast.
    from pipistrelle.traces.clean import clean, faults_text
    from pipistrelle.traces.errors import counted
    from pipistrelle.traces.load import not_kept, save
    from pipistrelle.traces.logs.maui_nodes import is_resource_trace

    refuse_overwriting(sources, [target])
    if len(sources) == 1 and target.suffix == ".toml" and is_resource_trace(sources[0]):
        if sort or cleaned or renumber or any(value for name, value in reading.items() if name != "units"):
            raise click.UsageError("a Maui resource trace has no jobs: of these options, only --units applies.")
        _convert_machine(sources[0], target, reading["units"])
        return
    workload = _read(sources, sort=sort, **reading)
    if (said := faults_text(workload)) is not None:
        click.echo(said)
    if cleaned:
        workload, dropped = clean(workload, workload.machine_size)
    else:
        dropped = workload.left_out
    for reason, count in dropped.items():
        click.echo(f"{counted(count, 'job')} left out: {reason}")
    if renumber:
        from pipistrelle.traces.logs.dependencies import renumber as renumbered

        workload = renumbered(workload)
    save(workload, target)
    lost = not_kept(workload, target)
    if lost:
        click.echo(f"not kept, because the format cannot hold it: {', '.join(lost)}")
    click.echo(f"{counted(len(workload), 'job')} written to {target}")


def _read(sources: Sequence[str], *, sort: bool, **reading: Any) -> "Workload":
    from pipistrelle.runs.inputs.named import load_workload, require_text
    from pipistrelle.traces.load import load_parts

    if len(sources) > 1:
        if sort:
            raise click.UsageError("--sort needs a single SWF log.")
        for name in sources:
            require_text(name)
        return load_parts([Path(name) for name in sources], **reading)
    return load_workload(sources[0], sort=sort, **reading)


def _convert_machine(source: str, target: Path, units: Units) -> None:
    from pipistrelle.platforms.read import to_toml
    from pipistrelle.runs.inputs.maui_machine import maui_platform
    from pipistrelle.runs.inputs.named import require_text
    from pipistrelle.traces.errors import counted
    from pipistrelle.traces.files import trace_name, write_trace
    from pipistrelle.traces.logs.maui_nodes import read_maui_resources

    require_text(source)
    nodes = read_maui_resources(source)
    platform = maui_platform(nodes, trace_name(source), units=units)
    write_trace(target, [to_toml(platform).encode()])
    away = sum(node.state != "AVAILABLE" for node in nodes)
    if away:
        click.echo(f"down or drained in the trace, but part of the platform: {counted(away, 'node')}")
    click.echo(f"{counted(len(nodes), 'node')} in {counted(len(platform.pools), 'pool')} written to {target}")
