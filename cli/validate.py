"""``pipistrelle validate``: what a file is, what is in it, what is wrong with it."""

from collections.abc import Sequence
from pathlib import Path

import click

from pipistrelle.cli.console import print_error
from pipistrelle.platforms.describe import describe as describe_platform
from pipistrelle.platforms.describe import describe_simgrid
from pipistrelle.platforms.simgrid import SimGridPlatform
from pipistrelle.protocol.errors import PipistrelleError
from pipistrelle.studies.inputs import is_platform, read_platform
from pipistrelle.traces.describe import describe as describe_workload
from pipistrelle.traces.load import load


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--sort", is_flag=True, help="Accept a log whose submit times are not ascending.")
def command(files: Sequence[str], sort: bool) -> int:
    """Say what each FILE is, what is in it, and what is wrong with it.

    Knows platforms (TOML, SimGrid's XML) and workloads (SWF, Batsim's JSON; also compressed).
    Exit code 2 if any file is wrong.
    """
    wrong = 0
    for name in files:
        try:
            facts = _facts(Path(name), sort=sort)
        except PipistrelleError as error:
            wrong += 1
            print_error(error)
            continue
        click.echo(f"{name}: valid")
        width = max(len(key) for key, _ in facts)
        for key, value in facts:
            click.echo(f"  {key:<{width}}  {value}")
    return PipistrelleError.exit_code if wrong else 0


def _facts(path: Path, *, sort: bool) -> list[tuple[str, str]]:
    if is_platform(str(path)):
        machine = read_platform(str(path))
        return describe_simgrid(machine) if isinstance(machine, SimGridPlatform) else describe_platform(machine)
    return describe_workload(load(path, sort=sort))
