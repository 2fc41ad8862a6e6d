"""Convert what jobs take on shared nodes to and from the protocol's form."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pipistrelle.platforms.resources.shape import Take
from pipistrelle.protocol.base.state import register
from pipistrelle.protocol.resources.nodes import NodeTake
from pipistrelle.protocol.units.nodesets import NodeSet


def told_takes(takes: Iterable[Take]) -> tuple[NodeTake, ...]:
    """Convert a job's tasks and GPUs on each node to their protocol form.

    This form groups nodes with equal numbers.
    """
    alike: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for take in takes:
        alike.setdefault((take.tasks, take.gpus), []).append(take.node)
    return tuple(
        NodeTake(str(NodeSet.of(nodes)), tasks, str(NodeSet.of(gpus))) for (tasks, gpus), nodes in alike.items()
    )


def takes_told(told: Iterable[NodeTake]) -> tuple[Take, ...]:
    """Parse the protocol form of a job's tasks and GPUs.

    This is the inverse of `told_takes`. Raise NodeSetError if the form is malformed.
    """
    found: list[Take] = []
    for entry in told:
        gpus = tuple(NodeSet.parse(entry.gpus))
        found += [Take(node, entry.tasks, gpus) for node in NodeSet.parse(entry.nodes)]
    return tuple(sorted(found))


def takes_text(takes: Iterable[Take]) -> str:
    """Return a job's tasks and GPUs on each node as a short text.

    The text is NODES:TASKS[:GPUS] for each kind of node, such as ``0-3:2 4:1:0-1``.
    """
    return " ".join(
        f"{entry.nodes.replace(' ', '+')}:{entry.tasks}" + (f":{entry.gpus.replace(' ', '+')}" if entry.gpus else "")
        for entry in told_takes(takes)
    )


def takes_written(text: str) -> tuple[Take, ...]:
    """Parse a text that `takes_text` returned; ValueError if it is malformed."""
    entries = []
    for word in text.split():
        nodes, tasks, *gpus = word.replace("+", " ").split(":")
        entries.append(NodeTake(nodes, int(tasks), *gpus))
    return takes_told(entries)


def plain_takes(takes: Iterable[Take]) -> list[list[Any]]:
    """Return [node, number of tasks, GPUs] for each node of a job.

    Snapshots store this form.
    """
    return [[take.node, take.tasks, list(take.gpus)] for take in takes]


def parsed_takes(told: Iterable[Sequence[Any]]) -> tuple[Take, ...]:
    """Return a job's tasks and GPUs on each node from the form in snapshots.

    This is the inverse of `plain_takes`.
    """
    return tuple(Take(node, tasks, tuple(gpus)) for node, tasks, gpus in told)


class Taken(NamedTuple):
    """The resources that a job takes on all its nodes together.

    Attributes:
        cores: in thousandths.
        memory: in MiB.
        gpus: in thousandths.
        takes: the part on each node.
    """

    cores: int
    memory: int
    gpus: int
    takes: tuple[Take, ...]


def _taken(state: list[Any]) -> Taken:
    cores, memory, gpus, text = state
    return Taken(cores, memory, gpus, takes_written(text))


register(Taken, lambda one: [*one[:3], takes_text(one.takes)], _taken)
