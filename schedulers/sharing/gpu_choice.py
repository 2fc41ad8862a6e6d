"""Choose the GPUs of a node that a request gets."""

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.resources.node_request import OneNodeRequest

Ints = NDArray[np.int64]
Gpus = tuple[int, ...]


def fullest(free: Ints, request: OneNodeRequest) -> Gpus:
    """Return a node's GPUs with the least free capacity that suffices for the request.

    As many GPUs are returned as the request needs. Ties go to the lowest numbers.
    """
    return _first(np.argsort(free, kind="stable"), free, request)


def emptiest(free: Ints, request: OneNodeRequest) -> Gpus:
    """Return a node's GPUs with the most free capacity.

    As many GPUs are returned as the request needs. Ties go to the lowest numbers.
    """
    return _first(np.argsort(-free, kind="stable"), free, request)


def lowest(free: Ints, request: OneNodeRequest) -> Gpus:
    """Return a node's GPUs with the lowest numbers that have enough free capacity.

    As many GPUs are returned as the request needs.
    """
    return _first(np.arange(len(free)), free, request)


def any_of(free: Ints, request: OneNodeRequest, rng: np.random.Generator) -> Gpus:
    """Choose GPUs at random among a node's GPUs with enough free capacity.

    As many GPUs are returned as the request needs.
    """
    return _first(rng.permutation(len(free)), free, request)


def _first(order: Ints, free: Ints, request: OneNodeRequest) -> Gpus:
    if not request.gpus:
        return ()
    enough = order[free[order] >= request.share]
    return tuple(sorted(enough[: request.gpus].tolist()))
