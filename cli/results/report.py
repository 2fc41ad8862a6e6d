"""``pipistrelle report``: runs as one page that opens anywhere."""

import gc
from pathlib import Path
from typing import Final

import click

from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.terminal.console import import_numpy
from pipistrelle.cli.terminal.guard import FILE, FILE_OR_FOLDER, refuse_overwriting

#: an estimate simulates until all that wait have started: more would take longer than anybody waits
_MOST_MOMENTS: Final = 1000


@click.command(cls=Command)
@click.argument("runs", nargs=-1, required=True, type=FILE_OR_FOLDER, metavar="RUN [RUN...]")
@click.option(
    "-o", "--out", "page", type=FILE, default="page.html", metavar="FILE.html", help="Where the page is written."
)
@click.option(
    "--explain",
    "repeat",
    is_flag=True,
    help="Repeat runs, as explain does, to say in full why their worst-served jobs waited.",
)
@click.option(
    "--estimates",
    type=click.IntRange(1, _MOST_MOMENTS),
    metavar="N",
    help="Repeat runs, and show when those who waited at N moments over the run were expected to start, and when they "
    "did.",
)
@click.option(
    "--trust", is_flag=True, help="Let Python code run that a folder names as its run's scheduler, as file.py:CLASS."
)
def command(runs: tuple[Path, ...], page: Path, repeat: bool, estimates: int | None, trust: bool) -> None:
    """Show a run, or several beside each other, as one page: figures, curves, the machine over time, who waited.

    Each RUN is the folder of a run's outputs. The page is a single file that needs no network: open it in a browser.

    \b
    pipistrelle report pipistrelle-out/demo-easy-1 -o easy.html
    """
    if trust and not repeat and estimates is None:
        raise click.UsageError("--trust goes with --explain or --estimates.")
    files = [str(path) for run in runs if run.is_dir() for path in run.iterdir() if path.name.startswith("out_")]
    refuse_overwriting(files, [page])
    import_numpy()
    if estimates is None:
        gc.disable()  # millions of texts are read, none of which refers to another
    from pipistrelle.reports.page.page import page_of
    from pipistrelle.server.outputs.once import write_output

    text = page_of(runs, repeat=repeat, trust=trust, estimates_at=estimates or 0)
    write_output(page, text)
    click.echo(f"{page} ({len(text) / 1e6:.1f} MB)")
