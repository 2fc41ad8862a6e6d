"""``pipistrelle report``: runs as one HTML page."""

import gc
from pathlib import Path
from typing import Final

import click

from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.terminal.console import import_numpy
from pipistrelle.cli.terminal.guard import FILE, FILE_OR_FOLDER, refuse_overwriting

#: most moments: each estimate simulates until all queued jobs have started
_MOST_MOMENTS: Final = 1000


@click.command(cls=Command)
@click.argument("runs", nargs=-1, required=True, type=FILE_OR_FOLDER, metavar="RUN [RUN...]")
@click.option("-o", "--out", "page", type=FILE, default="page.html", metavar="FILE.html", help="File to write.")
@click.option(
    "--explain", "repeat", is_flag=True, help="Simulate the runs again, to explain their longest waits in detail."
)
@click.option(
    "--estimates",
    type=click.IntRange(1, _MOST_MOMENTS),
    metavar="N",
    help="Show expected starts of jobs queued at each of N moments (simulates again).",
)
@click.option("--trust", is_flag=True, help="If RUN used a custom Python scheduler, allow its code to run.")
def command(runs: tuple[Path, ...], page: Path, repeat: bool, estimates: int | None, trust: bool) -> None:
    """Write one or more runs as one HTML page.

    Each RUN is the output folder of a run. The page shows metrics, curves, the machine over time and long waits. It
    is one file that needs no network.

    \b
    pipistrelle report pipistrelle-out/demo-easy-1 -o easy.html
    """
    if trust and not repeat and estimates is None:
        raise click.UsageError("--trust needs --explain or --estimates.")
    files = [str(path) for run in runs if run.is_dir() for path in run.iterdir() if path.name.startswith("out_")]
    refuse_overwriting(files, [page])
    import_numpy()
    if estimates is None:
        gc.disable()  # millions of strings are read, without cycles
    from pipistrelle.reports.page.page import page_of
    from pipistrelle.server.outputs.once import write_output

    text = page_of(runs, repeat=repeat, trust=trust, estimates_at=estimates or 0)
    write_output(page, text)
    click.echo(f"{page} ({len(text) / 1e6:.1f} MB)")
