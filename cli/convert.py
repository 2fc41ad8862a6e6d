"""``pipistrelle convert``: a workload from one format to another."""

from pathlib import Path

import click

from pipistrelle.cli.guard import FilledPath, refuse_overwriting
from pipistrelle.studies.inputs import load_workload
from pipistrelle.traces.clean import clean
from pipistrelle.traces.load import save


@click.command()
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT", type=FilledPath(path_type=Path, dir_okay=False))
@click.option("--sort", is_flag=True, help="Accept an SWF log whose submit times are not ascending, and sort it.")
@click.option("--clean", "cleaned", is_flag=True, help="Leave out the jobs that cannot run, and say how many and why.")
def command(source: str, target: Path, sort: bool, cleaned: bool) -> None:
    """Convert the workload IN, a bundled name or a file, to OUT: .swf or .json, also with .gz or .xz."""
    refuse_overwriting([source], [target])
    workload = load_workload(source, sort=sort)
    if cleaned:
        workload, dropped = clean(workload, workload.machine_size)
        for reason, count in dropped.items():
            click.echo(f"{count:,} jobs left out: {reason}")
    save(workload, target)
    click.echo(f"{len(workload):,} jobs written to {target}")
