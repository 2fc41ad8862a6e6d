"""What `run` and `serve` have in common: observers before, summary and exit code after."""

import sys
from pathlib import Path

from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.errors import OutputFailed
from pipistrelle.server.outputs.once import to_json, write_output
from pipistrelle.server.setup import Setup
from pipistrelle.server.simulation import Result


def progress_observers(setup: Setup, wanted: bool | None) -> list[Observer]:
    """Return the progress bar, if it is wanted (None: if standard error is a terminal)."""
    if wanted is False or (wanted is None and not sys.stderr.isatty()):
        return []
    from rich.console import Console

    from pipistrelle.cli.progress import ProgressBar

    console = Console(stderr=True, force_terminal=wanted)  # asked for, it is drawn wherever standard error leads
    return [ProgressBar(setup.jobs, setup.epoch, console)]


def report(result: Result, setup: Setup, out: Path | None, timings_file: Path | None) -> None:
    """Print the summary and write the timings; raise what ended the run early, if anything did."""
    from rich.console import Console  # not needed before there is something to show

    from pipistrelle.cli.summary import print_summary, timings

    print_summary(result, setup, out, Console())
    if timings_file is not None:
        try:
            write_output(timings_file, to_json(timings(result)))
        except OutputFailed as error:
            raise result.failure or error from None
    if result.failure is not None:
        raise result.failure
