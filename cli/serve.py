"""``pipistrelle serve``: the server in a terminal of its own."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from pipistrelle.cli.console import import_numpy
from pipistrelle.cli.guard import output_files
from pipistrelle.cli.options.reliability import reliability_options
from pipistrelle.cli.options.sections import CONNECTION, Command, in_section
from pipistrelle.cli.options.shared import (
    described,
    folder_option,
    record_option,
    recorded,
    simulation_options,
    spec_file,
)
from pipistrelle.cli.simulate import form_of, read_inputs, simulate


@click.command(cls=Command)
@spec_file()
@simulation_options
@reliability_options
@folder_option(
    "Folder for the outputs and, while the server runs, its connection.json; outputs of an earlier run are replaced "
    "when the new one begins.",
    default=Path("pipistrelle-out"),
    show_default=True,
)
@record_option
@in_section(
    CONNECTION,
    click.option(
        "--connect",
        metavar="ADDRESS",
        help="With --dialect batsim: where the scheduler listens, such as tcp://localhost:28000.",
    ),
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    spec_file: Path | None,
    out: Path,
    connect: str | None,
    progress: bool | None,
    timings: Path | None,
    as_json: bool,
    quiet: bool,
    record: Path | None,
    **options: Any,
) -> None:
    """Serve one simulation to one scheduler.

    Prints the endpoint, writes it to OUT/connection.json, and waits. In another terminal:

    \b
    pipistrelle schedule easy --connect OUT/connection.json

    SPEC describes a run, in TOML or as an earlier run's out_command.json; options beside it replace what it says, and
    its scheduler is left out. With --dialect batsim it is the scheduler that listens, and the server that connects.
    """
    form = form_of(as_json=as_json, quiet=quiet)
    import_numpy()
    # Here, not above: help needs none of these.
    from pipistrelle.studies.runs.connection import Connecting, Connection, Listening

    spec = described(ctx, spec_file, options, decides=False)
    allow_remote, endpoint = options.pop("allow_remote"), options.pop("endpoint")
    if spec.dialect == "batsim":
        if connect is None:
            raise click.UsageError("--dialect batsim needs --connect ADDRESS: there, the scheduler is who listens.")
        if endpoint is not None or allow_remote:
            raise click.UsageError(
                "with --dialect batsim the server does not listen: no --endpoint, no --allow-remote."
            )
    elif connect is not None:
        raise click.UsageError("--connect goes with --dialect batsim; else the server listens, at --endpoint.")
    elif allow_remote and endpoint is None:
        raise click.UsageError("--allow-remote goes with --endpoint: a private socket is never remote.")
    spec, setup = read_inputs(spec, spec_file, [*output_files(out), timings, record])

    def told(text: str) -> None:
        if not quiet:
            click.echo(text, err=as_json)

    @contextmanager
    def announce(address: str) -> Iterator[None]:
        if connect is not None:
            told(f"connecting to {address}; waiting for a scheduler")
            yield
            return
        with _connection_file(out, address):
            told(f"listening at {address}; waiting for a scheduler")
            yield

    connection: Connection
    if connect is not None:
        connection = Connecting(endpoint=connect, announce=announce, **options)
    else:
        connection = Listening(endpoint=endpoint, allow_remote=allow_remote, announce=announce, **options)
    simulate(spec, setup, recorded(connection, record), out, progress=progress, timings=timings, form=form)


@contextmanager
def _connection_file(out: Path, endpoint: str) -> Iterator[None]:
    """Write where to connect, as long as there is something to connect to."""
    from pipistrelle.protocol.fields import PROTOCOL_VERSION
    from pipistrelle.server.outputs.once import to_json, write_output

    path = out / "connection.json"
    write_output(path, to_json({"endpoint": endpoint, "protocol": PROTOCOL_VERSION}))
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()
