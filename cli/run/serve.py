"""``pipistrelle serve``: the server alone."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipistrelle.cli.options.keys import calling_keys, curve_options, listening_keys
from pipistrelle.cli.options.sections import CONNECTION, OUTPUTS, Command, in_section
from pipistrelle.cli.options.shared import (
    folder_option,
    live_options,
    overwrite_option,
    record_option,
    snapshot_options,
)
from pipistrelle.cli.run.described import described, reliability_options, simulation_options, spec_file
from pipistrelle.cli.run.simulate import Ways, read_inputs, simulate
from pipistrelle.cli.terminal.console import import_numpy
from pipistrelle.cli.terminal.guard import output_files

if TYPE_CHECKING:
    from pipistrelle.cli.terminal.summary import Form


@click.command(
    cls=Command,
    common=(*("workload", "platform", "until", "failures", "seed", "dialect", "endpoint", "connect", "out", "quiet"),),
)
@spec_file()
@simulation_options
@reliability_options
@folder_option(
    "Output folder, where connection.json tells schedulers the server's address.", default=Path("pipistrelle-out")
)
@overwrite_option("another run")
@record_option
@in_section(OUTPUTS, live_options, snapshot_options)
@in_section(
    CONNECTION,
    click.option("--connect", metavar="ADDRESS", help="With --dialect batsim: address of the scheduler."),
    curve_options,
    click.option(
        "--await-reconnect",
        metavar="TIME",
        help="If the scheduler disconnects, wait this long for it to connect again.",
    ),
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    spec_file: Path | None,
    out: Path,
    connect: str | None,
    curve: Path | None,
    clients: Path | None,
    server_key: Path | None,
    await_reconnect: str | None,
    **options: Any,
) -> None:
    """Run only the server; the scheduler is started in another terminal or on another machine.

    The server prints its address, writes it to connection.json in the output folder OUT, and waits. In another
    terminal:

    \b
    pipistrelle schedule easy --connect OUT/connection.json

    SPEC describes a run as for 'pipistrelle run'; its scheduler is ignored. With --dialect batsim the scheduler listens
    and the server connects to it.
    """
    how = Ways.taken(options)
    if how.record is not None and await_reconnect is not None:
        raise click.UsageError("--await-reconnect already records the messages, for the next scheduler: omit --record.")
    import_numpy()
    # Imported late, so that help starts fast.
    from pipistrelle.protocol.base.lengths import parse_seconds
    from pipistrelle.runs.execution.connection import Connecting, Connection, Listening

    spec = described(ctx, spec_file, options, decides=False)
    awaits = None if await_reconnect is None else parse_seconds(await_reconnect, "time to wait for a scheduler")
    insecure, endpoint = options.pop("insecure"), options.pop("endpoint")
    if spec.dialect == "batsim":
        if connect is None:
            raise click.UsageError("--dialect batsim needs --connect ADDRESS, because the scheduler listens.")
        if awaits is not None:
            raise click.UsageError(
                "--await-reconnect needs the native dialect; use --snapshot-every and 'pipistrelle resume' instead."
            )
        if endpoint is not None:
            raise click.UsageError("with --dialect batsim the server does not listen: omit --endpoint.")
    elif connect is not None:
        raise click.UsageError("--connect needs --dialect batsim. Otherwise the server listens, at --endpoint.")
    elif (insecure or curve) and endpoint is None:
        option = "--curve" if curve else "--insecure"
        raise click.UsageError(f"{option} needs --endpoint: without it, other machines cannot connect anyway.")
    spec, setup = read_inputs(spec, spec_file, [*output_files(out), how.timings, how.record])

    connection: Connection
    announce = announcing(out, how.form, connects=connect is not None)
    if connect is not None:
        calls = calling_keys(curve, clients, server_key, insecure=insecure)
        connection = Connecting(endpoint=connect, keys=calls, allow_remote=insecure, announce=announce, **options)
    else:
        listens = listening_keys(curve, clients, server_key, insecure=insecure)
        connection = Listening(endpoint=endpoint, keys=listens, allow_remote=insecure, announce=announce, **options)
    simulate(spec, setup, connection, out, how, awaits=awaits)


def announcing(out: Path, form: "Form", *, connects: bool = False) -> Callable[[str], AbstractContextManager[None]]:
    """Return a function that makes a context manager from the server's address.

    The context manager prints the address. Until it exits, connection.json in ``out`` contains the address,
    unless the server ``connects`` to a scheduler.
    """

    @contextmanager
    def announce(address: str) -> Iterator[None]:
        with nullcontext() if connects else _connection_file(out, address):
            if form != "quiet":
                how = "connecting to" if connects else "listening at"
                click.echo(f"{how} {address}; waiting for a scheduler", err=form == "json")
            yield

    return announce


@contextmanager
def _connection_file(out: Path, endpoint: str) -> Iterator[None]:
    """Write connection.json, and remove it when the server can no longer be reached."""
    from pipistrelle.protocol.fields import PROTOCOL_VERSION
    from pipistrelle.server.outputs.once import to_json, write_output

    path = out / "connection.json"
    write_output(path, to_json({"endpoint": endpoint, "protocol": PROTOCOL_VERSION}))
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()
