"""What ``run`` and ``serve`` do alike: read the inputs, simulate beside a progress bar, print the summary."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipistrelle.cli.console import progress_observers
from pipistrelle.cli.guard import refuse_overwriting

# Help needs none of these.
if TYPE_CHECKING:
    from pipistrelle.cli.summary import Form
    from pipistrelle.server.setup import Setup
    from pipistrelle.studies.runs.connection import Connection
    from pipistrelle.studies.runs.spec import RunSpec


def read_inputs(spec: "RunSpec", spec_file: Path | None, written: Iterable[Path | None]) -> "tuple[RunSpec, Setup]":
    """Return a run with the digests of its inputs, and its setup.

    Raises
    ------
    click.UsageError
        when a file would be both read and written.
    PipistrelleError
        when an input is wrong.
    """
    from pipistrelle.studies.runs.setup import load_setup
    from pipistrelle.studies.runs.spec_file import with_digests

    refuse_overwriting([None if spec_file is None else str(spec_file), *spec.inputs], written)
    spec = with_digests(spec)
    return spec, load_setup(spec)


def simulate(
    spec: "RunSpec",
    setup: "Setup",
    connection: "Connection",
    out: Path,
    *,
    progress: bool | None,
    timings: Path | None,
    form: "Form",
    keeping: tuple[str, int, bool] | None = None,
) -> None:
    """Carry out a run, print its figures and write the wall-clock ones; raise what ended it early, if anything did.

    ``keeping`` says how often snapshots are taken, how many are kept, and whether they stay then; None: none are.
    """
    from pipistrelle.cli.heartbeat import heartbeat_of
    from pipistrelle.studies.runs.run import run

    wanted = False if form == "quiet" and progress is None else progress
    beat = heartbeat_of(setup, wanted)
    observers = progress_observers(setup, wanted)
    if keeping is None:
        result = run(spec, connection=connection, out=out, observers=observers, setup=setup, check=False, beat=beat)
    else:
        from pipistrelle.studies.sessions.resume import run_kept  # most runs are not kept
        from pipistrelle.studies.sessions.snapshot import Every

        every, keep, leave = Every.of(keeping[0]), *keeping[1:]
        result = run_kept(spec, setup, connection, out, every, keep, observers=observers, beat=beat, leave=leave)
    if beat is not None:
        beat.ends()
    from pipistrelle.cli.summary import report  # not needed before there is something to show

    report(result, setup, out, timings, form)


def form_of(*, as_json: bool, quiet: bool) -> "Form":
    """Return how the figures of a run are told."""
    if as_json and quiet:
        raise click.UsageError("--json prints the figures, --quiet nothing: leave one of the two out.")
    return "json" if as_json else "quiet" if quiet else "table"
