"""``pipistrelle list``: what can be named."""

from collections.abc import Callable, Iterable

import click


def _schedulers() -> Iterable[tuple[str, str]]:
    from pipistrelle.schedulers import registry

    return [(name, registry.describe(name)) for name in registry.registered()]


def _platforms() -> Iterable[tuple[str, str]]:
    from pipistrelle.platforms import catalogue

    return [(name, catalogue.describe(name)) for name in catalogue.names()]


def _workloads() -> Iterable[tuple[str, str]]:
    from pipistrelle.traces import catalogue

    return [(name, catalogue.describe(name)) for name in catalogue.names()]


_KINDS: dict[str, Callable[[], Iterable[tuple[str, str]]]] = {
    "schedulers": _schedulers,
    "platforms": _platforms,
    "workloads": _workloads,
}


@click.command()
@click.argument("kind", type=click.Choice(list(_KINDS)))
def command(kind: str) -> None:
    """List the schedulers, platforms or workloads that can be named."""
    rows = list(_KINDS[kind]())
    width = max((len(name) for name, _ in rows), default=0)
    for name, description in rows:
        click.echo(f"{name:<{width}}  {description}")
