"""``pipistrelle schedule``: a scheduler in a terminal of its own."""

import click

from pipistrelle.cli.console import relax_collector
from pipistrelle.cli.main import INTERRUPTED
from pipistrelle.cli.options import PositiveNumber, policy_options
from pipistrelle.protocol.version import package_version
from pipistrelle.schedulers.registry import make_policy
from pipistrelle.schedulers.runtime import Runtime
from pipistrelle.schedulers.zmq_client import resolve_endpoint, serve_simulation
from pipistrelle.studies.run import HELLO_TIMEOUT


@click.command()
@click.argument("name")
@click.option(
    "--connect",
    metavar="ADDRESS|FILE",
    required=True,
    help="The server's endpoint (tcp://..., ipc://...), its connection.json, or the folder that holds it.",
)
@policy_options
@click.option(
    "--hello-timeout",
    type=PositiveNumber(),
    default=HELLO_TIMEOUT,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for a server.",
)
@click.option("-q", "--quiet", is_flag=True, help="Say nothing unless something is wrong.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    name: str,
    connect: str,
    order: str | None,
    backfill: str | None,
    placement: str | None,
    hello_timeout: float,
    quiet: bool,
) -> None:
    """Take the decisions for one simulation.

    NAME is one of 'pipistrelle list schedulers', or file.py:CLASS for a policy of your own. The server may be started
    before or after.
    """
    runtime = Runtime(make_policy(name, order=order, backfill=backfill, placement=placement), package_version())
    report = (lambda text: None) if quiet else click.echo
    relax_collector()
    endpoint = resolve_endpoint(connect, timeout=hello_timeout)
    try:
        serve_simulation(runtime, endpoint, hello_timeout=hello_timeout, report=report)
    except KeyboardInterrupt:
        if not quiet:
            raise
        ctx.exit(INTERRUPTED)  # most likely by the `run` that had started it, which has said why
    if runtime.ended is not None:
        text = f"the simulation ended: {runtime.ended.reason}"
        report(f"{text} ({runtime.ended.message})" if runtime.ended.message else text)
