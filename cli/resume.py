"""``pipistrelle resume``: a run that was interrupted goes on from its last snapshot."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipistrelle.cli.console import import_numpy, progress_observers
from pipistrelle.cli.guard import FilledPath
from pipistrelle.cli.options.sections import CONNECTION, OUTPUTS, Command, in_section
from pipistrelle.cli.options.shared import form_options, snapshot_options, timeout_option
from pipistrelle.cli.simulate import form_of

if TYPE_CHECKING:
    from pipistrelle.cli.heartbeat import Heartbeat
    from pipistrelle.server.engine.observers import Observer
    from pipistrelle.server.setup import Setup
    from pipistrelle.studies.runs.connection import Connection


@click.command(cls=Command)
@click.argument("folder", type=FilledPath(path_type=Path))
@in_section(
    CONNECTION,
    click.option(
        "--trust",
        is_flag=True,
        help="Let a program, or Python code, run that the snapshot names as the run's scheduler.",
    ),
    timeout_option("hello", "a scheduler"),
    timeout_option("decision", "each reply"),
)
@in_section(OUTPUTS, snapshot_options, form_options)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    folder: Path,
    trust: bool,
    hello_timeout: float,
    decision_timeout: float,
    snapshot_every: str | None,
    keep_snapshots: int,
    progress: bool | None,
    timings: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Go on with a run from its last snapshot.

    FOLDER has the outputs of a run that took snapshots ('run --snapshot-every') and was interrupted, or killed. Its
    outputs will have the same bytes as if it had not been. Its inputs must be what they were.

    \b
    pipistrelle run -w year.swf --snapshot-every 10m --out year
    pipistrelle resume year
    """
    form = form_of(as_json=as_json, quiet=quiet)
    import_numpy()
    from pipistrelle.cli.heartbeat import heartbeat_of
    from pipistrelle.cli.summary import report
    from pipistrelle.studies.runs.connection import WithChild
    from pipistrelle.studies.runs.policy import short_name
    from pipistrelle.studies.sessions.resume import read_run, resume
    from pipistrelle.studies.sessions.snapshot import Every

    spec, header, state = read_run(folder)
    foreign = spec.code if spec.program is None else " ".join(spec.program)
    if foreign is not None and not trust:
        raise click.UsageError(f"the run's scheduler is code, {foreign}, which --trust lets run.")
    connection: Connection | None = None
    if not header.in_process:
        connection = WithChild(
            hello_timeout=hello_timeout,
            decision_timeout=decision_timeout,
            verbose=ctx.find_root().params["verbose"],
            name=None if spec.program is None else short_name(spec.program),
        )
    every = Every() if snapshot_every is None else Every.of(snapshot_every)
    wanted = False if form == "quiet" and progress is None else progress
    beats: list[Heartbeat] = []

    def observe(setup: "Setup") -> "tuple[Sequence[Observer], Heartbeat | None]":
        beat = heartbeat_of(setup, wanted)
        beats.extend([] if beat is None else [beat])
        return progress_observers(setup, wanted), beat

    setup, result = resume(spec, header, state, connection, folder, every, keep_snapshots, observe=observe)
    for beat in beats:
        beat.ends()
    report(result, setup, folder, timings, form)
