"""``pipistrelle convert``: a workload from one format to another."""

from pathlib import Path

import click

from pipistrelle.cli.guard import FilledPath, refuse_overwriting
from pipistrelle.studies.inputs import load_workload
from pipistrelle.traces.load import save


@click.command()
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT", type=FilledPath(path_type=Path, dir_okay=False))
@click.option("--sort", is_flag=True, help="Accept a log whose submit times are not ascending, and sort it.")
def command(source: str, target: Path, sort: bool) -> None:
    """Convert the workload IN, a bundled name or a file, to OUT: .swf or .json, also with .gz or .xz."""
    refuse_overwriting([source], [target])
    workload = load_workload(source, sort=sort)
    save(workload, target)
    click.echo(f"{len(workload):,} jobs written to {target}")
