"""``pipistrelle show``: bundled platforms, schedulers, workloads and models."""

import gzip
from importlib import import_module
from typing import Final

import click

from pipistrelle.cli.options.names import KINDS, library, names
from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.terminal.console import print_facts
from pipistrelle.protocol.base.errors import did_you_mean
from pipistrelle.schedulers.catalogue.names import registered

#: {kind: module that lists and describes its names}
_CATALOGUES: Final = {
    "platform": "platforms.catalogue",
    "scheduler": "schedulers.catalogue.registry",
    "workload": "traces.catalogue",
    "failures": "platforms.failures.catalogue",
    "classes": "models.workloads.classes",
    "model": "models.likeness.model",
}


def _complete_name(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    kind = _kind(ctx.params.get("kind") or KINDS[0])
    return [name for name in library(kind if kind in KINDS else KINDS[0]) if name.startswith(incomplete)]


def _kind(text: str) -> str:
    """Return the kind of bundled file that a word names.

    For example, "platform" and "platforms" both name the kind "platform".
    """
    return text if text in KINDS else text.removesuffix("s")


@click.command(cls=Command)
@click.argument(
    "kind",
    required=False,
    shell_complete=lambda ctx, param, begin: [one for one in KINDS if one.startswith(begin)],
    metavar=f"[{'|'.join(KINDS)}]",
)
@click.argument("name", required=False, shell_complete=_complete_name)
def command(kind: str | None, name: str | None) -> None:
    """List bundled files, or print the bundled file NAME.

    The first argument is the kind of file, such as platform. Without NAME, list all files of that kind. Without
    arguments, list the files of all kinds.

    \b
    pipistrelle show
    pipistrelle show scheduler
    pipistrelle show platform theta > mine.toml
    """
    if kind is None:
        for number, one in enumerate(KINDS):
            click.echo(f"{chr(10) if number else ''}{one}:")
            _print_names(one, "  ")
        return
    chosen = _kind(kind)
    if chosen not in KINDS:
        raise click.UsageError(f"there is no kind '{kind}'. {did_you_mean(kind, list(KINDS))}")
    if name is None:
        _print_names(chosen)
        return
    found = library(chosen)
    if name in found:
        raw = found[name].read_bytes()
        click.echo(gzip.decompress(raw) if found[name].name.endswith(".gz") else raw, nl=False)
        return
    if name in names(chosen):
        raise click.UsageError(f"the {chosen} '{name}' is a program; only files can be printed.")
    raise click.UsageError(f"there is no bundled {chosen} '{name}'. {did_you_mean(name, list(found))}")


def _print_names(kind: str, indent: str = "") -> None:
    catalogue = import_module(f"pipistrelle.{_CATALOGUES[kind]}")
    found = registered() if kind == "scheduler" else catalogue.names()
    print_facts([(name, catalogue.describe(name)) for name in found], indent)
