"""Topologies: the place of each node, and hops between nodes.

Hops are counted between routers, so two nodes of one router are 0 hops apart.
"""

from collections.abc import Callable
from functools import cached_property
from math import comb, prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.naming.rule import check_topology, place_names
from pipistrelle.protocol.events import TopologyInfo
from pipistrelle.protocol.units.nodesets import NodeSet

Ints = NDArray[np.intp]


class Topology:
    """A flat network: all nodes on one switch, 0 hops apart. Base of all topologies.

    Raises:
        PlatformError: if the description is invalid, or its number of places is not the number of nodes.
    """

    def __init__(self, info: TopologyInfo, nodes: int) -> None:
        self.info = info
        self.kind = info.kind
        #: routers in each dimension; in a flat network, the number of nodes
        self.shape: tuple[int, ...] = info.shape or (nodes,)
        self.nodes_per_router = info.nodes_per_router
        #: the number of each node's place, shape (nodes,)
        self.places: Ints = _places(info, nodes)
        self._along: Ints = self._coordinates(self.places)

    @property
    def place(self) -> Ints:
        """Coordinates of each node's router, shape (nodes, dimensions)."""
        return self._along.T

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name of each node's place; empty if places have no names."""
        return place_names(self.info)

    def _coordinates(self, places: Ints) -> Ints:
        """Return the coordinates of the router at each position in ``places``.

        The result has shape (dimensions, places).
        """
        if len(self.shape) == 1 and self.nodes_per_router == 1 and not self.info.numbering:
            return places[np.newaxis]
        rest = places // self.nodes_per_router
        found = np.zeros((len(self.shape), len(places)), dtype=np.intp)
        weight = [1] * len(self.shape)
        for dimension, count in reversed(self.info.numbering or tuple(enumerate(self.shape))):
            rest, digit = np.divmod(rest, count)
            found[dimension] += digit * weight[dimension]
            weight[dimension] *= count
        return found

    def distance(self, nodes_a: Ints, nodes_b: Ints) -> Ints:
        """Return the hops between nodes.

        The arrays of node numbers are broadcast as in NumPy.
        """
        return np.zeros(np.broadcast_shapes(np.shape(nodes_a), np.shape(nodes_b)), dtype=np.intp)

    def total_hops(self, nodes: Ints) -> int:
        """Return the sum of hops over all unordered pairs of different nodes."""
        return 0

    def mean_hops(self, nodes: Ints) -> float:
        """Return the mean hops over unordered pairs of nodes; 0.0 for less than two nodes."""
        pairs = comb(len(nodes), 2)
        return self.total_hops(nodes) / pairs if pairs else 0.0


class RouterGrid(Topology):
    """A torus, or a mesh (without wrap-around links), of any dimension."""

    def distance(self, nodes_a: Ints, nodes_b: Ints) -> Ints:
        """Return the hops between nodes: the sum of the shorter way in each dimension."""
        apart = np.abs(self.place[nodes_a] - self.place[nodes_b])
        if self.kind == "torus":
            apart = np.minimum(apart, np.array(self.shape, dtype=np.intp) - apart)
        found: Ints = apart.sum(axis=-1, dtype=np.intp)
        return found

    def total_hops(self, nodes: Ints) -> int:
        """Return the sum of hops over all unordered pairs of different nodes.

        It is computed from the numbers of nodes at each coordinate, without a loop over pairs.
        """
        along = _around_ring if self.kind == "torus" else _along_line
        return sum(
            along(np.bincount(coordinates[nodes], minlength=size))
            for coordinates, size in zip(self._along, self.shape, strict=True)
        )


class NestedGroups(Topology):
    """Nested groups (fat tree, dragonfly): hops depend on the smallest common group."""

    @property
    def hops(self) -> tuple[int, ...]:
        """Hops between two routers.

        The index is the outermost coordinate in which the routers differ.
        """
        return tuple(reversed(self.info.hops)) or tuple(range(2 * len(self.shape), 0, -2))

    def distance(self, nodes_a: Ints, nodes_b: Ints) -> Ints:
        """Return the hops between nodes, by the outermost coordinate in which they differ."""
        differ = self.place[nodes_a] != self.place[nodes_b]
        first = np.where(differ.any(axis=-1), differ.argmax(axis=-1), len(self.shape))
        return np.array([*self.hops, 0], dtype=np.intp)[first]

    def total_hops(self, nodes: Ints) -> int:
        """Return the sum of hops over all unordered pairs of nodes.

        It is computed from the sizes of groups.
        """
        total, within = 0, comb(len(nodes), 2)
        group = np.zeros(len(nodes), dtype=np.intp)
        for coordinates, size, hops in zip(self._along, self.shape, self.hops, strict=True):
            group = np.unique(group * size + coordinates[nodes], return_inverse=True)[1]
            counts = np.bincount(group)
            together = int((counts * (counts - 1)).sum()) // 2
            total += (within - together) * hops
            within = together
        return total


def _along_line(counts: Ints) -> int:
    """Return the sum of distances over pairs of nodes on a line.

    For each gap, this adds the number of pairs across it. ``counts`` is the number of nodes at each position.
    """
    below = np.cumsum(counts)
    return int((below * (below[-1] - below)).sum())


def _around_ring(counts: Ints) -> int:
    """Return the sum of distances over all pairs of nodes on a ring.

    ``counts`` has the number of nodes at each position. A ring of 2 m positions has m cuts into two opposite halves.
    The distance of two positions is the number of cuts that separate them. A ring of odd size is treated as one of
    twice the size, with empty odd positions and doubled distances.
    """
    size = len(counts)
    if size % 2:
        doubled = np.zeros(2 * size, dtype=counts.dtype)
        doubled[::2] = counts
        counts = doubled
    half = len(counts) // 2
    below = np.concatenate(([0], np.cumsum(counts)))
    inside = below[half:-1] - below[:half]
    total = int((inside * (below[-1] - inside)).sum())
    return total // 2 if size % 2 else total


_KINDS: Final[dict[str, Callable[[TopologyInfo, int], Topology]]] = {
    "torus": RouterGrid,
    "mesh": RouterGrid,
    "groups": NestedGroups,
    "flat": Topology,
}


def topology_of(info: TopologyInfo | None, nodes: int) -> Topology:
    """Return the network of `nodes` nodes that ``info`` describes.

    Without ``info`` it is a flat network. The errors are those of `Topology`.
    """
    if info is None:
        info = TopologyInfo("flat")
    return _KINDS[info.kind](info, nodes)


def _places(info: TopologyInfo, nodes: int) -> Ints:
    check_topology(info, nodes)
    if not info.absent:
        return np.arange(nodes, dtype=np.intp)
    present = np.ones(prod(info.shape) * info.nodes_per_router, dtype=bool)
    for low, high in NodeSet.parse(info.absent).intervals:
        present[low : high + 1] = False
    return np.flatnonzero(present)
