"""``pipistrelle list``: what can be named."""

from collections.abc import Callable, Iterable

import click

from pipistrelle.cli.console import print_facts
from pipistrelle.cli.options.sections import Command
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


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [kind for kind in _KINDS if kind.startswith(incomplete)]


@click.command(cls=Command)
@click.argument(
    "kind",
    shell_complete=lambda ctx, param, begin: [one for one in _KINDS if one.startswith(begin)],
    metavar=f"{{{'|'.join(_KINDS)}}}",
)
def command(kind: str) -> None:
    """List the schedulers, platforms, workloads, failure models, classes of jobs or models of logs there are."""
    if kind not in _KINDS:
        raise click.UsageError(f"there is no list of '{kind}'. {did_you_mean(kind, list(_KINDS))}")
    print_facts(list(_KINDS[kind]()))
