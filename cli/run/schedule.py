"""``pipistrelle schedule``: the scheduler alone."""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pipistrelle.cli.options.keys import calling_keys, curve_options, listening_keys
from pipistrelle.cli.options.names import completed
from pipistrelle.cli.options.parts import part_options
from pipistrelle.cli.options.sections import CONNECTION, Command, in_section
from pipistrelle.cli.options.shared import dialect_option, timeout_option
from pipistrelle.cli.terminal.console import import_numpy
from pipistrelle.cli.terminal.exits import INTERRUPTED
from pipistrelle.protocol.base.errors import legible
from pipistrelle.runs.description.policy import PolicySpec
from pipistrelle.runs.execution import seldom_collected
from pipistrelle.schedulers.catalogue.names import SLURMCTLD, is_ours

if TYPE_CHECKING:
    from pipistrelle.protocol.sockets import ListenerKeys, ListeningSocket

_ANYWHERE: Final = "tcp://*:"
#: characters of a server's text that are shown
_SHOWN: Final = 1000


@click.command(
    cls=Command, common=("connect", "dialect", "bind", "order", "backfill", "placement", "config", "poll", "quiet")
)
@click.argument("name", shell_complete=completed("scheduler", or_file=True))
@in_section(
    CONNECTION,
    dialect_option,
    click.option(
        "--connect",
        metavar="ADDRESS|FILE",
        help="Server: its address, its output folder, or the connection.json in that folder.",
    ),
    click.option(
        "--bind", metavar="ADDRESS", help="With --dialect batsim: address to listen on, such as tcp://*:28000."
    ),
    curve_options,
    click.option("--insecure", is_flag=True, help="Allow unencrypted connections with other machines."),
    timeout_option("hello", "the server to answer"),
    click.option(
        "--cancellations", is_flag=True, help="Ask the server to report jobs that are cancelled while queued."
    ),
)
@part_options
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    name: str,
    dialect: str,
    connect: str | None,
    bind: str | None,
    curve: Path | None,
    clients: Path | None,
    server_key: Path | None,
    insecure: bool,
    hello_timeout: float,
    cancellations: bool,
    quiet: bool,
    **parts: Any,
) -> None:
    """Run only the scheduler; the server is started in another terminal or on another machine.

    NAME is a bundled scheduler ('pipistrelle show scheduler'), file.toml or file.py:CLASS. Server and scheduler may
    start in any order. With --dialect batsim the scheduler listens, and Batsim or 'pipistrelle serve --dialect batsim'
    connects to it.

    \b
    pipistrelle schedule easy --connect pipistrelle-out
    pipistrelle schedule easy --dialect batsim --bind 'tcp://*:28000'
    """
    if dialect == "batsim" and (bind is None or connect is not None):
        raise click.UsageError("--dialect batsim needs --bind ADDRESS, not --connect: the scheduler listens.")
    if dialect == "batsim" and cancellations:
        raise click.UsageError("--cancellations has no effect with --dialect batsim: omit it.")
    if dialect == "native" and bind is not None:
        raise click.UsageError("--bind needs --dialect batsim. Otherwise give the server's address with --connect.")
    if is_ours(name):  # a policy of the user's own may want threads
        import_numpy()
    # Each run starts this command: import only what this connection needs.
    from pipistrelle.protocol.fields import package_version
    from pipistrelle.schedulers.runtime.runtime import Runtime

    if name == SLURMCTLD and connect is not None:
        _slurmctld(PolicySpec(scheduler=name, **parts), connect, hello_timeout)
        return
    policy = PolicySpec(scheduler=name, **parts).make_policy(warn=not quiet)
    report: Callable[[str], Any] = (lambda text: None) if quiet else click.echo
    serve: Callable[[], None]
    if bind is not None:
        from pipistrelle.schedulers.wire.batsim.client import serve_batsim
        from pipistrelle.schedulers.wire.batsim.runtime import BatsimRuntime

        keys = listening_keys(curve, clients, server_key, insecure=insecure)
        address = listening_address(bind, allow_remote=insecure or keys is not None, report=report)
        listening = BatsimRuntime(policy, package_version())
        runtime: Runtime = listening
        listener = _listener(address, keys)
        ctx.call_on_close(listener.close)
        serve = partial(serve_batsim, listening, listener, hello_timeout=hello_timeout, report=report)
    elif connect is not None:
        from pipistrelle.schedulers.wire.native import ServerAddress, serve_simulation

        report(f"waiting for a server at {connect}")
        calls = calling_keys(curve, clients, server_key, insecure=insecure)
        address_of = ServerAddress(connect, allow_remote=insecure or calls is not None)
        runtime = Runtime(policy, package_version(), cancellations=cancellations)
        mark = cache(partial(_mark, name, parts))
        serve = partial(
            serve_simulation, runtime, address_of, hello_timeout=hello_timeout, report=report, keys=calls, mark=mark
        )
    else:
        raise click.UsageError("--connect ADDRESS|FILE is missing.")
    try:
        with seldom_collected():
            serve()
    except KeyboardInterrupt:
        if not quiet:
            raise
        ctx.exit(INTERRUPTED)  # most likely the `run` that started this process, which has reported why
    if bind is not None:  # Batsim does not say why
        report("the simulation ended")
    elif runtime.ended is not None:
        text = f"the simulation ended: {runtime.ended.reason}"
        report(f"{text} ({legible(runtime.ended.message, _SHOWN)})" if runtime.ended.message else text)


def _slurmctld(spec: PolicySpec, connect: str, hello_timeout: float) -> None:
    """Connect to a server, and let an unmodified slurmctld decide in its simulation."""
    from pipistrelle.runs.slurmctld.bridge import Bridge  # rarely needed
    from pipistrelle.schedulers.wire.native import ServerAddress, serve_simulation

    assert spec.program is not None, "its options are valid"
    bridge = Bridge(str(spec.config), prefix=spec.slurm_prefix, accounting=spec.accounting)
    try:
        serve_simulation(bridge, ServerAddress(connect), hello_timeout=hello_timeout, report=lambda text: None)
    finally:
        bridge.close()


def _mark(name: str, parts: dict[str, Any]) -> str:
    """Return a digest of the policy's name, options and files.

    A scheduler restores a saved state only if the scheduler that saved it had the same digest.
    """
    from pipistrelle.runs.description.spec import RunSpec
    from pipistrelle.runs.description.spec_file import policy_digest, with_digests

    return policy_digest(with_digests(RunSpec(scheduler=name, **parts)))


def _listener(address: str, keys: "ListenerKeys | None") -> "ListeningSocket[Any]":
    if keys is None:
        from pipistrelle.server.transport.listener import MOST_BYTES, Listener

        return Listener(address, longest=MOST_BYTES, option="--bind")
    from pipistrelle.protocol.zmtp import LONGEST_NOTICE
    from pipistrelle.server.transport.curve import CurveListener

    return CurveListener(address, keys, longest=LONGEST_NOTICE, option="--bind")


def listening_address(bind: str, *, allow_remote: bool, report: Callable[[str], Any]) -> str:
    """Return the address to listen on.

    Without ``allow_remote``, ``tcp://*`` becomes a local address, and ``report`` is called with a message about that.

    Raises:
        EndpointError: if the address is not valid, in use, or reachable from other machines without permission.
    """
    from pipistrelle.server.transport.endpoint import check_endpoint, free_ipc_path

    if bind.startswith(_ANYWHERE) and not allow_remote:
        bind = f"tcp://127.0.0.1:{bind.removeprefix(_ANYWHERE)}"
        report(
            "listening at 127.0.0.1 instead of *: only this machine can connect (--curve or --insecure allows others)"
        )
    endpoint = check_endpoint(bind, allow_remote=allow_remote)
    free_ipc_path(endpoint, "--bind")
    return endpoint
