"""``pipistrelle resume``: continue a run from a snapshot."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from pipistrelle.cli.options.keys import calling_keys, curve_options, listening_keys
from pipistrelle.cli.options.parts import part_options
from pipistrelle.cli.options.sections import CONNECTION, OUTPUTS, in_section
from pipistrelle.cli.options.shared import (
    endpoint_options,
    folder_option,
    form_options,
    other_scheduler,
    overwrite_option,
    snapshot_options,
    timeout_option,
)
from pipistrelle.cli.run.described import described
from pipistrelle.cli.run.run import RunCommand, unknown_scheduler
from pipistrelle.cli.run.serve import announcing
from pipistrelle.cli.run.simulate import form_of
from pipistrelle.cli.terminal.console import import_numpy, progress_observers
from pipistrelle.cli.terminal.guard import FILE_OR_FOLDER
from pipistrelle.runs.description.spec import BATSIM_ENDPOINT
from pipistrelle.schedulers.catalogue.names import PLACEHOLDER

if TYPE_CHECKING:
    from pipistrelle.runs.description.spec import RunSpec
    from pipistrelle.runs.execution.connection import Connection

#: options of the connection
_REACHED: Final = (
    *("endpoint", "connect", "insecure", "curve", "clients", "server_key", "hello_timeout", "decision_timeout"),
)


@click.command(cls=RunCommand, common=("scheduler", "out", "trust", "serve", "snapshot_every", "as_json", "quiet"))
@click.argument("folder", type=FILE_OR_FOLDER)
@other_scheduler("Scheduler that continues the run", default="the run's scheduler")
@part_options
@in_section(
    CONNECTION,
    click.option(
        "--trust", is_flag=True, help="Allow running the scheduler program or Python code named in the snapshot."
    ),
    click.option(
        "--serve", is_flag=True, help="Wait for a scheduler that you start yourself, as 'pipistrelle serve' does."
    ),
    endpoint_options,
    click.option(
        "--connect",
        metavar="ADDRESS",
        help="To continue a run in Batsim's protocol: address at which your scheduler listens.",
    ),
    curve_options,
    timeout_option("hello", "the scheduler to connect"),
    timeout_option("decision", "each reply of the scheduler"),
)
@folder_option("New output folder; required to continue with another scheduler.")
@overwrite_option("another run")
@in_section(OUTPUTS, snapshot_options, form_options)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    folder: Path,
    out: Path | None,
    overwrite: bool,
    trust: bool,
    serve: bool,
    snapshot_every: str | None,
    keep_snapshots: int,
    leave_snapshots: bool,
    progress: bool | None,
    timings: Path | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Continue an interrupted run from its last snapshot.

    A snapshot is the saved state of a run; 'pipistrelle run --snapshot-every TIME' saves snapshots. FOLDER is
    the output folder of the run, or one of the snapshots in it. The inputs must not have changed. The outputs are the
    same as without the interruption. If the scheduler ran in another terminal, start it again. For a run of the
    command pipistrelle-batsim, FOLDER is the PREFIX of its option --export.

    To continue with another scheduler, give --scheduler, or options such as --order, and a new folder with --out.
    With --serve, the run waits until a scheduler connects.

    \b
    pipistrelle run -w year.swf --snapshot-every 10m --out year
    pipistrelle resume year
    pipistrelle resume year --scheduler easy --order sjf --out year-sjf
    """
    form = form_of(as_json=as_json, quiet=quiet)
    words: list[str] | None = ctx.obj
    reached = {name: options.pop(name) for name in _REACHED}
    given = [name for name in options if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    if serve and (given or words is not None):
        raise click.UsageError("--serve waits for another scheduler: omit --scheduler and its options.")
    other = serve or bool(given) or words is not None
    if words is not None and not any(PLACEHOLDER in word for word in words):
        raise unknown_scheduler(words[0])
    if overwrite and out is None:
        raise click.UsageError("--overwrite needs --out: without --out, the run continues in its own folder.")
    if other and out is None:
        raise click.UsageError("another scheduler needs a new output folder: give --out FOLDER.")
    import_numpy()
    from msgspec.structs import replace

    from pipistrelle.cli.terminal.heartbeat import heartbeat_of
    from pipistrelle.cli.terminal.summary import report
    from pipistrelle.runs.execution.connection import check_scheduler
    from pipistrelle.runs.execution.run import RunOptions
    from pipistrelle.runs.sessions.resume import check_takeover, read_run, resume, take_over
    from pipistrelle.runs.sessions.snapshot import Every, Keeping
    from pipistrelle.server.outputs.folder import OUTPUT_PREFIX

    kept = read_run(folder, elsewhere=out is not None)
    spec = kept.spec
    if other:
        check_takeover(spec)
    if serve:
        spec = spec.without_policy()
    elif other:
        spec = described(ctx, spec, options, decides=words is None)
        spec = spec if words is None else replace(spec, scheduler=tuple(words))
        check_scheduler(spec)
    foreign = spec.code if spec.program is None else " ".join(spec.program)
    if foreign and not (trust or words is not None or "scheduler" in given):
        raise click.UsageError(f"the run's scheduler is a program or code of its own, which needs --trust: {foreign}.")
    inside = kept.header.in_process and not (other and spec.program is not None)
    announce = announcing(out or kept.folder, form, connects=spec.dialect == "batsim")
    connection = _connection(spec, reached, announce, ctx.find_root().params["verbose"], inside=inside)
    every = Every() if snapshot_every is None else Every.of(snapshot_every)
    keeping = Keeping(every=every, most=keep_snapshots, leave=leave_snapshots)
    wanted = False if form == "quiet" and progress is None else progress
    setup = kept.setup(spec)
    beat = heartbeat_of(setup, wanted)
    ways = RunOptions(
        connection=connection,
        out=out,
        overwrite=overwrite,
        observers=progress_observers(setup, wanted),
        setup=setup,
        beat=beat,
    )
    result = take_over(spec, kept, ways, keeping) if other else resume(kept, ways, keeping)
    if beat is not None:
        beat.ends()
    shown = out or (kept.folder if kept.prefix == OUTPUT_PREFIX else Path(f"{kept.folder / kept.prefix}*.csv"))
    report(result, setup, shown, timings, form)


def _connection(
    spec: "RunSpec",
    reached: dict[str, Any],
    announce: Callable[[str], AbstractContextManager[None]],
    verbose: int,
    *,
    inside: bool,
) -> "Connection | None":
    """Return the connection to the scheduler.

    Return None if the scheduler runs in the server's process (``inside``).

    Raises:
        click.UsageError: if options do not match the connection.
    """
    from pipistrelle.runs.execution.connection import Connecting, Listening, WithChild

    endpoint, connect, insecure = reached["endpoint"], reached["connect"], reached["insecure"]
    curve, clients, server_key = reached["curve"], reached["clients"], reached["server_key"]
    calls = spec.dialect == "batsim" and spec.program == () and not inside
    if connect is not None and not calls:
        raise click.UsageError(
            "--connect is only for a scheduler in Batsim's dialect that you start yourself: omit it."
        )
    if inside:
        if endpoint or curve or clients or server_key:
            raise click.UsageError(
                "the run's scheduler runs in the server's process: omit --endpoint, --curve and its keys."
            )
        return None
    ways = {"allow_remote": insecure, **{name: reached[name] for name in ("hello_timeout", "decision_timeout")}}
    if calls:
        if endpoint is not None:
            raise click.UsageError("in Batsim's dialect the server does not listen: give --connect, not --endpoint.")
        if connect is None and spec.batsim is None:
            raise click.UsageError("a Batsim scheduler listens: give --connect ADDRESS.")
        own = calling_keys(curve, clients, server_key, insecure=insecure)
        return Connecting(endpoint=connect or BATSIM_ENDPOINT, announce=announce, keys=own, **ways)
    if spec.program == ():
        keys = listening_keys(curve, clients, server_key, insecure=insecure)
        return Listening(endpoint=endpoint, announce=announce, keys=keys, **ways)
    if curve or clients or server_key:
        raise click.UsageError("--curve and its keys are for a scheduler that you start yourself.")
    return WithChild(endpoint=endpoint, verbose=verbose, name=spec.program_name, **ways)
