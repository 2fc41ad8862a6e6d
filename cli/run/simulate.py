"""Steps shared by ``run`` and ``serve``: read inputs, simulate, print the summary."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import click

from pipistrelle.cli.options.shared import recorded
from pipistrelle.cli.terminal.guard import refuse_overwriting

# Not needed for the help.
if TYPE_CHECKING:
    from pipistrelle.cli.terminal.summary import Form
    from pipistrelle.runs.description.spec import RunSpec
    from pipistrelle.runs.execution.connection import Connection
    from pipistrelle.server.setup.setup import Setup


class Ways(NamedTuple):
    """How a run is displayed, reported and saved; none of this changes its results.

    Attributes:
        progress: whether to show progress; None: a bar on a terminal, elsewhere a line about once a minute.
        live: whether to draw the run on the terminal.
        page: port of the browser view; None: no view.
        form: how the results are printed: as a table, as JSON, or not at all ("quiet").
        timings: file for wall-clock times; None: not written.
        record: file for all protocol messages; None: not recorded.
        keeping: (time between snapshots, such as "10m"; number of snapshots to keep; whether to keep them after the
            run has ended). None: no snapshots.
        overwrite: whether to replace the results of another run.
    """

    progress: bool | None
    live: bool
    page: int | None
    form: "Form"
    timings: Path | None
    record: Path | None
    keeping: tuple[str, int, bool] | None
    overwrite: bool

    @classmethod
    def taken(cls, options: dict[str, Any]) -> Self:
        """Remove the options of this class from ``options`` and return them.

        Raise click.UsageError if they conflict.
        """
        progress, live, page, timings, record = (
            options.pop(name) for name in ("progress", "live", "page", "timings", "record")
        )
        every, most, leave = (options.pop(name) for name in ("snapshot_every", "keep_snapshots", "leave_snapshots"))
        if record is not None and every is not None:
            raise click.UsageError("--snapshot-every already records the messages, for its snapshots: omit --record.")
        form = form_of(as_json=options.pop("as_json"), quiet=options.pop("quiet"))
        if live and progress is False:
            raise click.UsageError("--live and --no-progress exclude each other: omit one of them.")
        keeping = None if every is None else (every, most, leave)
        return cls(progress, live, page, form, timings, record, keeping, options.pop("overwrite"))


def read_inputs(spec: "RunSpec", spec_file: Path | None, written: Iterable[Path | None]) -> "tuple[RunSpec, Setup]":
    """Read all inputs of a run.

    Return the description with digests of its input files, and the simulation setup.

    Raises:
        click.UsageError: if a file would be both read and written.
        PipistrelleError: if an input is not valid.
    """
    from pipistrelle.runs.description.setup import load_setup
    from pipistrelle.runs.description.spec_file import with_digests

    refuse_overwriting([None if spec_file is None else str(spec_file), *spec.inputs], written)
    spec = with_digests(spec)
    return spec, load_setup(spec)


def simulate(
    spec: "RunSpec", setup: "Setup", connection: "Connection", out: Path, how: Ways, *, awaits: float | None = None
) -> None:
    """Simulate a run and print its results.

    If an error ended the run early, it is raised afterwards.

    Args:
        awaits: seconds to wait for another scheduler after a disconnection; None: do not wait.
    """
    progress, live, page, form, timings, record, keeping, overwrite = how
    connection = recorded(connection, record)
    from pipistrelle.cli.live.views import shown
    from pipistrelle.runs.execution.run import RunOptions, run

    launches = spec.scheduler not in ((), "")
    with shown(setup, progress=progress, live=live, page=page, form=form, launches=launches) as who:
        if keeping is None and awaits is not None:
            from pipistrelle.runs.sessions.resume import Journaled

            connection = Journaled(connection, out, awaits=awaits, leave=False)
        options = RunOptions(
            connection=connection, out=out, setup=setup, check=False, overwrite=overwrite, **who._asdict()
        )
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


def form_of(*, as_json: bool, quiet: bool) -> "Form":
    """Return how the results are printed: as a table, as JSON, or not at all."""
    if as_json and quiet:
        raise click.UsageError("--json and --quiet exclude each other: omit one of them.")
    return "json" if as_json else "quiet" if quiet else "table"
