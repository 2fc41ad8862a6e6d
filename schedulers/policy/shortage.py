"""Find the resource that keeps a job from starting on shared nodes.

The result is used in explanations.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.resources.free_resources import FreeResources
from pipistrelle.platforms.resources.shape import Shape
from pipistrelle.platforms.resources.shared_nodes import Amounts
from pipistrelle.protocol.resources.amounts import CORES, GPU, MEMORY, amount_text


class Shortage(NamedTuple):
    """A resource of which too little is free: its name, and the amounts as text."""

    resource: str
    text: str


def shortage(shape: Shape, free: FreeResources, allowed: NDArray[np.bool_]) -> Shortage | None:
    """Return the resource that keeps a job from starting now; None if the job fits.

    The resources are tested in this order: licences, cores, memory, the other resources, GPUs. The result is the first
    resource that, if all of it were free, would let the job fit. If there is no such resource, the result says that
    several resources are short together. For a job that asks for whole nodes, the result is licences or idle nodes.

    Args:
        allowed: which nodes the job may use, shape (nodes,).
    """
    short = _licenses(shape.request.licenses, free)
    if short is not None:
        return short
    nodes = free.nodes
    if _fits(shape, free.amounts, free.gpus, allowed):
        return None
    if shape.request.exclusive:
        idle = int((allowed & (shape.most_tasks(free.amounts, free.gpus) > 0)).sum())
        return Shortage("idle nodes", f"{idle} nodes were idle, it asks for {shape.low} whole nodes")
    for column, name in enumerate(nodes.resources):
        amounts = free.amounts.copy()
        amounts[:, column] = nodes.amounts[:, column]
        if _fits(shape, amounts, free.gpus, allowed):
            others = allowed & (shape.most_tasks(amounts, free.gpus) > 0)
            if shape.low > 1:
                able = int((allowed & (shape.most_tasks(free.amounts, free.gpus) > 0)).sum())
                return Shortage(name, f"{able} nodes had enough of it, the job needs {shape.low} or more")
            return Shortage(name, _text(name, column, free, others))
    if shape.wants_gpus and _fits(shape, free.amounts, nodes.gpus, allowed):
        idle_gpus = int(((free.gpus >= shape.share).sum(axis=1) * (allowed & shape.able)).sum())
        return Shortage(GPU, f"{idle_gpus} GPUs that it accepts were free")
    return Shortage("several resources", "too little was free of several resources together")


def _fits(shape: Shape, amounts: Amounts, gpus: Amounts, allowed: NDArray[np.bool_]) -> bool:
    most = np.where(allowed, shape.most_tasks(amounts, gpus), 0)
    return shape.can_choose(np.arange(len(most)), most, amounts, gpus)


def _licenses(wanted: Mapping[str, int], free: FreeResources) -> Shortage | None:
    name = free.missing_license(wanted)
    if name is None:
        return None
    return Shortage("licences", f"{free.licenses.get(name, 0)} of {name} were free, it asks for {wanted[name]}")


def _text(name: str, column: int, free: FreeResources, others: NDArray[np.bool_]) -> str:
    """Return how much of one resource was free, for a message.

    ``others`` says which nodes have enough of all other resources. Example for memory: ``41 cores were free on 12
    nodes, but at most 8 GiB on one``.
    """
    there = free.amounts[others, column]
    most = amount_text(name, int(there.max(initial=0)))
    unit = "" if name == MEMORY else f" {name}"
    beside = free.nodes.column(CORES if name != CORES else MEMORY)
    count = int(others.sum())
    nodes = f"{count} node{'s' * (count != 1)}"
    if beside is None:
        return f"{nodes} had all else, but at most {most}{unit} free"
    other = free.nodes.resources[beside]
    amount = amount_text(other, int(free.amounts[others, beside].sum()))
    what = f"{amount} of memory" if other == MEMORY else f"{amount} {other}"
    if not there.any():
        return f"{what} were free on {nodes}, but no {name}"
    return f"{what} were free on {nodes}, but at most {most}{unit} on one"
