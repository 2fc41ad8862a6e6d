"""``pipistrelle list`` and ``pipistrelle show``: what comes with the package, by name and as files to start from."""

import gzip
from collections.abc import Callable, Iterable

import click

from pipistrelle.cli.options.fields import Choice
from pipistrelle.cli.options.names import KINDS, library, names
from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.terminal.console import print_facts
from pipistrelle.protocol.base.errors import did_you_mean


def _schedulers() -> Iterable[tuple[str, str]]:
    from pipistrelle.schedulers.catalogue.names import registered
    from pipistrelle.schedulers.catalogue.registry import describe

    return [(name, describe(name)) for name in registered()]


def _platforms() -> Iterable[tuple[str, str]]:
    from pipistrelle.platforms import catalogue

    return [(name, catalogue.describe(name)) for name in catalogue.names()]


def _workloads() -> Iterable[tuple[str, str]]:
    from pipistrelle.traces import catalogue

    return [(name, catalogue.describe(name)) for name in catalogue.names()]


def _failures() -> Iterable[tuple[str, str]]:
    from pipistrelle.platforms.failures import catalogue

    return [(name, catalogue.describe(name)) for name in catalogue.names()]


def _classes() -> Iterable[tuple[str, str]]:
    from pipistrelle.models.workloads import classes

    return [(name, classes.describe(name)) for name in classes.names()]


def _models() -> Iterable[tuple[str, str]]:
    from pipistrelle.models.likeness import model

    return [(name, model.describe(name)) for name in model.names()]


_KINDS: dict[str, Callable[[], Iterable[tuple[str, str]]]] = {
    "schedulers": _schedulers,
    "platforms": _platforms,
    "workloads": _workloads,
    "failures": _failures,
    "classes": _classes,
    "models": _models,
}


@click.command(cls=Command)
@click.argument(
    "kind",
    shell_complete=lambda ctx, param, begin: [one for one in _KINDS if one.startswith(begin)],
    metavar=f"{{{'|'.join(_KINDS)}}}",
)
def list_command(kind: str) -> None:
    """List the schedulers, platforms, workloads, failure models, classes of jobs or models of logs there are."""
    if kind not in _KINDS:
        raise click.UsageError(f"there is no list of '{kind}'. {did_you_mean(kind, list(_KINDS))}")
    print_facts(list(_KINDS[kind]()))


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
