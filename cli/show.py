"""``pipistrelle show``: what comes with the package, as the file that it is, to start one's own from."""

import gzip

import click

from pipistrelle.cli.options.fields import Choice
from pipistrelle.cli.options.names import KINDS, library, names
from pipistrelle.cli.options.sections import Command
from pipistrelle.protocol.base.errors import did_you_mean


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in library(ctx.params.get("kind") or KINDS[0]) if name.startswith(incomplete)]


@click.command(cls=Command)
@click.argument("kind", type=Choice(KINDS))
@click.argument("name", shell_complete=_complete)
def command(kind: str, name: str) -> None:
    """Print a bundled platform, scheduler, workload, failure model, set of classes or model: the file that it is.

    \b
    pipistrelle show platform theta > mine.toml
    """
    found = library(kind)
    if name in found:
        raw = found[name].read_bytes()
        click.echo(gzip.decompress(raw) if found[name].name.endswith(".gz") else raw, nl=False)
        return
    if name in names(kind):
        raise click.UsageError(f"the {kind} '{name}' is a program, not a file that could be shown.")
    raise click.UsageError(f"there is no bundled {kind} '{name}'. {did_you_mean(name, list(found))}")
