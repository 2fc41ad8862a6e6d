"""``pipistrelle validate``: what a file is, what is in it, what is wrong with it."""

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import click

from pipistrelle.cli.console import print_error
from pipistrelle.platforms.describe import describe as describe_platform
from pipistrelle.platforms.describe import describe_simgrid
from pipistrelle.platforms.simgrid import SimGridPlatform
from pipistrelle.protocol.errors import PipistrelleError
from pipistrelle.studies.inputs import is_platform, read_platform
from pipistrelle.studies.maui_machine import maui_platform
from pipistrelle.studies.reliability import platform_failures
from pipistrelle.traces.describe import describe as describe_workload
from pipistrelle.traces.files import trace_name
from pipistrelle.traces.haizea import is_lease_trace
from pipistrelle.traces.job_table import Units
from pipistrelle.traces.load import load
from pipistrelle.traces.maui_resources import is_resource_trace, read_maui_resources


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--sort", is_flag=True, help="Accept a log whose submit times are not ascending.")
@click.option(
    "--units",
    type=click.Choice(get_args(Units)),
    default="nodes",
    show_default=True,
    help="What sizes count in a log of PBS, Slurm or Maui.",
)
@click.option("--timezone", metavar="ZONE", help="Zone of such a log's clock, as Europe/Prague; default: UTC.")
def command(files: Sequence[str], sort: bool, units: Units, timezone: str | None) -> int:
    """Say what each FILE is, what is in it, and what is wrong with it.

    Knows platforms (TOML, SimGrid's XML, Maui's resource traces) and workloads (SWF, Batsim's JSON, logs of PBS, Slurm
    and Maui, Haizea's leases; also compressed). Exit code 2 if any file is wrong.
    """
    wrong = 0
    for name in files:
        try:
            facts = _facts(Path(name), sort=sort, units=units, timezone=timezone)
        except PipistrelleError as error:
            wrong += 1
            print_error(error)
            continue
        click.echo(f"{name}: valid")
        width = max(len(key) for key, _ in facts)
        for key, value in facts:
            click.echo(f"  {key:<{width}}  {value}")
    return PipistrelleError.exit_code if wrong else 0


def _facts(path: Path, *, sort: bool, units: Units, timezone: str | None) -> list[tuple[str, str]]:
    if is_lease_trace(path):  # XML, but no platform
        return describe_workload(load(path, units=units, timezone=timezone))
    if is_platform(str(path)):
        machine = read_platform(str(path))
        if isinstance(machine, SimGridPlatform):
            return describe_simgrid(machine)
        platform_failures(machine)
        return describe_platform(machine)
    if is_resource_trace(path):
        return describe_platform(maui_platform(read_maui_resources(path), trace_name(path), units=units))
    return describe_workload(load(path, sort=sort, units=units, timezone=timezone))
