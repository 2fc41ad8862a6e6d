"""The table of nodes: what server and scheduler know of each."""

from collections.abc import Sequence
from functools import cached_property
from math import nan

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.topology.node_names import NodeNames
from pipistrelle.platforms.topology.numbering import NodeUnits
from pipistrelle.platforms.topology.topology import Topology, topology_of
from pipistrelle.protocol.base.errors import did_you_mean, shown
from pipistrelle.protocol.events import PoolInfo, TopologyInfo


class NodeTable:
    """The nodes of a machine, a column for each thing that is known of them; row n is node n.

    Parameters
    ----------
    pools, topology
        of the machine, as the server tells of them; topology None: a flat one.

    Raises
    ------
    PlatformError
        if a pool's nodes and units do not go together, its names are not as many as its nodes, or the topology does not
        match the nodes.
    """

    def __init__(self, pools: Sequence[PoolInfo], topology: TopologyInfo | None = None) -> None:
        self._pools = pools
        counts = np.array([count for _, count, _, _ in NodeUnits.told(pools).pools], dtype=np.intp)
        #: names of the pools
        self.pools: tuple[str, ...] = tuple(pool.name for pool in pools)
        #: each node's pool, as its place in ``pools``, shape (nodes,)
        self.pool: NDArray[np.intp] = np.repeat(np.arange(len(pools), dtype=np.intp), counts)
        #: names of the classes of nodes, the first of them empty: of nodes without a class
        self.classes: tuple[str, ...] = tuple(dict.fromkeys(["", *(pool.node_class for pool in pools)]))
        of_pool = np.array([self.classes.index(pool.node_class) for pool in pools], dtype=np.intp)
        #: each node's class, as its place in ``classes``, shape (nodes,)
        self.node_class: NDArray[np.intp] = np.repeat(of_pool, counts)
        #: how long (s) each node had been in service at time 0, NaN if nobody knows, shape (nodes,)
        self.age: NDArray[np.float64] = self._column([pool.age for pool in pools], counts)
        #: mean time to failure (s) of each node, NaN if nobody knows, shape (nodes,)
        self.mttf: NDArray[np.float64] = self._column([pool.mttf for pool in pools], counts)
        #: where they are
        self.topology: Topology = topology_of(topology, len(self.pool))

    @property
    def place(self) -> NDArray[np.intp]:
        """Coordinates of each node's router, shape (nodes, dimensions): of a flat topology, the nodes in a row."""
        return self.topology.place

    @staticmethod
    def _column(values: list[float | None], counts: NDArray[np.intp]) -> NDArray[np.float64]:
        known = np.array([nan if value is None else value for value in values], dtype=np.float64)
        return np.repeat(known, counts)

    def __len__(self) -> int:
        return len(self.pool)

    @property
    def named(self) -> bool:
        """Whether nodes have names, not numbers alone."""
        return bool(self.topology.info.names) or any(pool.names for pool in self._pools)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Each node's name: by its pool's rule, or that of its place, or its number where there is none."""
        found: list[str] = []
        places = self.topology.names
        for pool, count in zip(self._pools, np.bincount(self.pool, minlength=len(self.pools)).tolist(), strict=True):
            if pool.names:
                found += NodeNames.parse(pool.names, count, f"pool {pool.name}")
            elif places:
                found += places[len(found) : len(found) + count]
            else:
                found += map(str, range(len(found), len(found) + count))
        return tuple(found)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def number(self, name: str, where: str | None = None) -> int:
        """Return the number of the node of this name; PlatformError, about `where`, with the closest, if it is none."""
        number = self._numbers.get(name)
        if number is None:
            raise PlatformError(
                f"there is no node {shown(name)}", where=where, hint=did_you_mean(name, list(self._numbers))
            )
        return number


def numbers_by_name(platform: Platform) -> dict[str, int]:
    """Return {name: number} of a machine's nodes, empty if nothing says how they are called."""
    nodes = NodeTable(platform.info.pools, platform.info.topology)
    return {name: number for number, name in enumerate(nodes.names)} if nodes.named else {}
