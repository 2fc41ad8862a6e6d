"""What ``run`` and ``serve`` do alike: read the inputs, simulate beside a progress bar, print the summary."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipistrelle.cli.terminal.guard import refuse_overwriting

# Help needs none of these.
if TYPE_CHECKING:
    from pipistrelle.cli.terminal.summary import Form
    from pipistrelle.runs.description.spec import RunSpec
    from pipistrelle.runs.execution.connection import Connection
    from pipistrelle.server.setup.setup import Setup


def read_inputs(spec: "RunSpec", spec_file: Path | None, written: Iterable[Path | None]) -> "tuple[RunSpec, Setup]":
    """Return a run with the digests of its inputs, and its setup.

    Raises
    ------
    click.UsageError
        when a file would be both read and written.
    PipistrelleError
        when an input is wrong.
    """
    from pipistrelle.runs.description.setup import load_setup
    from pipistrelle.runs.description.spec_file import with_digests

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
    awaits: float | None = None,
    live: bool = False,
    page: int | None = None,
) -> None:
    """Carry out a run, print its figures and write the wall-clock ones; raise what ended it early, if anything did.

    ``awaits`` is how long another scheduler is waited for when the first has gone, in seconds; None: not at all.
    ``keeping`` says how often snapshots are taken, how many are kept, and whether they stay then; None: none are.
    ``live`` shows the run on the terminal, ``page`` at this port to a browser.
    """
    from pipistrelle.cli.live.views import shown
    from pipistrelle.runs.execution.run import RunOptions, run

    launches = spec.scheduler not in ((), "")
    with shown(setup, progress=progress, live=live, page=page, form=form, launches=launches) as who:
        if keeping is None and awaits is not None:
            from pipistrelle.runs.sessions.resume import Journaled

            connection = Journaled(connection, out, awaits=awaits, leave=False)
        options = RunOptions(connection=connection, out=out, setup=setup, check=False, **who._asdict())
        if keeping is None:
            result = run(spec, options)
        else:
            from pipistrelle.runs.sessions.resume import run_kept  # most runs are not kept
            from pipistrelle.runs.sessions.snapshot import Every, Keeping

            every, most, leave = Every.of(keeping[0]), *keeping[1:]
            result = run_kept(spec, options, Keeping(every=every, most=most, leave=leave, awaits=awaits))
    if who.beat is not None:
        who.beat.ends()
    from pipistrelle.cli.terminal.summary import report  # not needed before there is something to show

    report(result, setup, out, timings, form)


def check_live(live: bool, progress: bool | None) -> None:
    """Raise a usage error if a run is to be shown and not to be shown."""
    if live and progress is False:
        raise click.UsageError("--live shows how far the run is, --no-progress does not: leave one of the two out.")


def form_of(*, as_json: bool, quiet: bool) -> "Form":
    """Return how the figures of a run are told."""
    if as_json and quiet:
        raise click.UsageError("--json prints the figures, --quiet nothing: leave one of the two out.")
    return "json" if as_json else "quiet" if quiet else "table"
