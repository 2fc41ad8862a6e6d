"""``pipistrelle serve``: the server in a terminal of its own."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipistrelle.cli.console import import_numpy, relax_collector
from pipistrelle.cli.guard import FilledPath, output_files, refuse_overwriting
from pipistrelle.cli.options.reliability import reliability_options, take_reliability
from pipistrelle.cli.options.shared import make_setup, simulation_options
from pipistrelle.traces.logs.kinds import Units

if TYPE_CHECKING:
    from pipistrelle.server.transport.peer import ZmqPeer


@click.command()
@simulation_options
@reliability_options
@click.option(
    "-o",
    "--out",
    type=FilledPath(path_type=Path, file_okay=False),
    default=Path("pipistrelle-out"),
    show_default=True,
    help="Folder for the outputs and, while the server runs, its connection.json; outputs of an earlier run are "
    "replaced when the new one begins.",
)
@click.option(
    "--connect",
    metavar="ADDRESS",
    help="With --dialect batsim: where the scheduler listens, such as tcp://localhost:28000.",
)
def command(
    platform: str | None,
    workload: str,
    sort: bool,
    units: Units,
    timezone: str | None,
    strict: bool,
    dialect: str,
    out: Path,
    endpoint: str | None,
    connect: str | None,
    progress: bool | None,
    timings: Path | None,
    **limits: Any,
) -> None:
    """Serve one simulation to one scheduler.

    Prints the endpoint, writes it to OUT/connection.json, and waits. In another terminal:

    \b
    pipistrelle schedule easy --connect OUT/connection.json

    With --dialect batsim it is the scheduler that listens, and the server that connects.
    """
    import_numpy()
    # Here, not above: help needs none of these.
    from pipistrelle.cli.asked import Asked
    from pipistrelle.cli.execute import progress_observers, report
    from pipistrelle.server.outputs.once import prepare_folder
    from pipistrelle.server.simulation import simulate
    from pipistrelle.studies.runs.run import deferred_interrupts, private_endpoint

    reliability = take_reliability(limits)
    allow_remote = limits.pop("allow_remote")
    if dialect == "batsim":
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
    refuse_overwriting([platform, workload, *reliability.files], [*output_files(out), timings])
    reading: dict[str, Any] = {"sort": sort, "units": units, "timezone": timezone}
    setup = make_setup(platform, workload, **reading, strict=strict, dialect=dialect, reliability=reliability)
    asked = Asked.of(platform, workload, **reading, strict=strict, dialect=dialect, reliability=reliability)
    prepare_folder(out)
    _refuse_living(out / "connection.json")
    relax_collector()
    with ExitStack() as stack:
        interrupted = stack.enter_context(deferred_interrupts())
        transport: ZmqPeer[Any]
        if connect is not None:
            from pipistrelle.server.transport.batsim import BatsimTransport

            transport = BatsimTransport(connect, interrupted=interrupted, **limits)
            stack.callback(transport.close)
            click.echo(f"connecting to {connect}; waiting for a scheduler")
        else:
            from pipistrelle.server.transport.native import ZmqTransport

            address = endpoint if endpoint is not None else stack.enter_context(private_endpoint())
            transport = ZmqTransport(address, interrupted=interrupted, allow_remote=allow_remote, **limits)
            stack.callback(transport.close)
            stack.enter_context(_connection_file(out, transport.endpoint))
            click.echo(f"listening at {transport.endpoint}; waiting for a scheduler")
        result = simulate(
            setup,
            transport,
            clock=time.perf_counter,
            out=out,
            observers=progress_observers(setup, progress),
            asked=asked.to_json(),
        )
    report(result, setup, out, timings)


@contextmanager
def _connection_file(out: Path, endpoint: str) -> Iterator[None]:
    """Write where to connect, as long as there is something to connect to."""
    from pipistrelle.protocol.fields import PROTOCOL_VERSION
    from pipistrelle.server.outputs.once import to_json, write_output
    from pipistrelle.server.outputs.recorder import unwritable

    path = out / "connection.json"
    text = to_json({"endpoint": endpoint, "protocol": PROTOCOL_VERSION})
    part = out / ".connection.json.part"
    write_output(part, text)
    try:
        part.replace(path)  # whole at once: a scheduler may be waiting for it
    except OSError as error:
        part.unlink()
        raise unwritable(path, error) from None
    try:
        yield
    finally:
        with suppress(OSError):
            if path.read_text(encoding="utf-8") == text:  # another server may serve from this folder by now
                path.unlink()


def _refuse_living(path: Path) -> None:
    """Raise EndpointError if the server that left this file still listens: two would write the same outputs."""
    from pipistrelle.server.errors import EndpointError

    try:
        endpoint = str(json.loads(path.read_bytes())["endpoint"])
        kind, _, address = endpoint.partition("://")
        with socket.socket(socket.AF_UNIX if kind == "ipc" else socket.AF_INET) as probe:
            probe.settimeout(1.0)
            host, _, port = address.rpartition(":")
            probe.connect(address if kind == "ipc" else (host, int(port)))
    except (OSError, ValueError, LookupError, TypeError):  # no file, none of ours, or of a server that was killed
        return
    raise EndpointError(
        "another server serves from this folder",
        where=str(path),
        found=endpoint,
        hint="End it, or choose another folder with --out.",
    )
