"""``pipistrelle list`` and ``pipistrelle show``: what comes with the package, by name and as files to start from."""

import gzip
from importlib import import_module
from typing import Final

import click

from pipistrelle.cli.options.fields import Choice
from pipistrelle.cli.options.names import KINDS, library, names
from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.terminal.console import print_facts
from pipistrelle.protocol.base.errors import did_you_mean
from pipistrelle.schedulers.catalogue.names import registered

#: {what is listed: the module that knows its names and describes them}
_CATALOGUES: Final = {
    "schedulers": "schedulers.catalogue.registry",
    "platforms": "platforms.catalogue",
    "workloads": "traces.catalogue",
    "failures": "platforms.failures.catalogue",
    "classes": "models.workloads.classes",
    "models": "models.likeness.model",
}


@click.command(cls=Command)
@click.argument(
    "kind",
    shell_complete=lambda ctx, param, begin: [one for one in _CATALOGUES if one.startswith(begin)],
    metavar=f"{{{'|'.join(_CATALOGUES)}}}",
)
def list_command(kind: str) -> None:
    """List the schedulers, platforms, workloads, failure models, classes of jobs or models of logs there are."""
    if kind not in _CATALOGUES:
        raise click.UsageError(f"there is no list of '{kind}'. {did_you_mean(kind, list(_CATALOGUES))}")
    catalogue = import_module(f"pipistrelle.{_CATALOGUES[kind]}")
    found = registered() if kind == "schedulers" else catalogue.names()
    print_facts([(name, catalogue.describe(name)) for name in found])


def _complete_name(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in library(ctx.params.get("kind") or KINDS[0]) if name.startswith(incomplete)]


@click.command(cls=Command)
@click.argument("kind", type=Choice(KINDS))
@click.argument("name", shell_complete=_complete_name)
def show_command(kind: str, name: str) -> None:
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
