"""Place nodes on a map: in rows of the network, or in the order of their numbers."""

from dataclasses import dataclass
from math import ceil, prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.platforms.topology.topology import Topology

Ints = NDArray[np.int64]
#: marks a position without a node, or a cell without a job
NOBODY: Final = -1
#: number of cells between two blocks
_GAP: Final = 1


@dataclass(frozen=True, slots=True)
class MapLayout:
    """The nodes of a machine in blocks, for a map.

    Attributes:
        kind: kind of the network: ``flat``, ``torus``, ``mesh`` or ``groups``.
        blocks: arrays of node numbers, shape (rows, columns), with `NOBODY` where there is no node; empty on a flat
            network.
    """

    kind: str
    nodes: int
    blocks: tuple[Ints, ...]

    @classmethod
    def of(cls, platform: Platform) -> "MapLayout":
        """Return the layout of a machine's nodes.

        In a torus or mesh, a block is a plane: dimension 0 runs to the right and dimension 1 down, and there is a block
        for each position in the other dimensions. Nested groups are one block, with a row per outermost group.
        """
        topology = Machine(platform.units, platform.info).topology
        if len(topology.info.shape) < 2:
            return cls("flat", platform.nodes, ())
        return cls(topology.kind, platform.nodes, _blocks(topology))


def _blocks(topology: Topology) -> tuple[Ints, ...]:
    """Return the blocks of nodes of a network with at least two dimensions.

    See `MapLayout`.
    """
    place, shape, seats = topology.place, topology.shape, topology.nodes_per_router
    router = np.ravel_multi_index(tuple(place.T), shape)
    seat = topology.places % seats
    if topology.kind == "groups":
        across = prod(shape[1:]) * seats
        row, column = router // prod(shape[1:]), router % prod(shape[1:]) * seats + seat
        block, count, size = np.zeros_like(row), 1, (shape[0], across)
    else:  # the first dimension runs to the right, the second one down, as in the report of a finished run
        row, column = place[:, 1], place[:, 0] * seats + seat
        rest = shape[2:]
        block = np.ravel_multi_index(tuple(place[:, 2:].T), rest) if rest else np.zeros_like(row)
        count, size = prod(rest), (shape[1], shape[0] * seats)
    found = np.full((count, *size), NOBODY, dtype=np.int64)
    found[block, row, column] = np.arange(len(place))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class FittedMap:
    """A map as a grid of cells, which are numbered; each cell shows one or more nodes.

    Attributes:
        grid: the number of the cell in each row and column, or `NOBODY`, shape (rows, columns).
        cell: the number of each node's cell, shape (nodes,).
        nodes_per_cell: maximum number of nodes in a cell.
    """

    grid: Ints
    cell: Ints
    nodes_per_cell: int

    @classmethod
    def of(cls, layout: MapLayout, width: int, height: int) -> "FittedMap":
        """Return the most detailed map that fits.

        It has at most ``width`` columns and ``height`` rows. If the network's blocks do not fit, the nodes are placed
        in order of number.
        """
        return _in_blocks(layout, width, height) or _in_line(layout.nodes, width, height)

    def cells(self, on: Ints, used: NDArray[np.float64], down: NDArray[np.bool_]) -> "CellStates":
        """Return the contents of each cell of the map.

        Args:
            on: number of a job on each node, negative without a job, shape (nodes,).
            used: share of each node's units that jobs hold, shape (nodes,).
            down: whether each node is out of service, shape (nodes,).
        """
        count = int(self.cell.max(initial=NOBODY)) + 1
        nodes = np.bincount(self.cell, minlength=count)
        shares = np.bincount(self.cell, weights=used, minlength=count) / nodes
        out = 2 * np.bincount(self.cell[down], minlength=count) >= nodes
        job = np.full(count, NOBODY, dtype=np.int64)
        busy = np.flatnonzero(on >= 0)
        job[self.cell[busy]] = on[busy]
        return CellStates(job, shares, out)


@dataclass(frozen=True, slots=True)
class CellStates:
    """The contents of each cell of a map; arrays of shape (cells,).

    Attributes:
        job: number of one of the jobs on the cell's nodes; negative without a job.
        used: mean share of units that jobs hold.
        down: whether at least half of the nodes are out of service.
    """

    job: Ints
    used: NDArray[np.float64]
    down: NDArray[np.bool_]


def _in_line(nodes: int, width: int, height: int) -> FittedMap:
    """Return a map with the nodes in order of number.

    They are drawn from left to right and row by row.
    """
    if width > 20:
        width -= width % 8
    each = max(1, ceil(nodes / (width * height)))
    count = ceil(nodes / each)
    rows = max(1, ceil(count / width))
    grid = np.full(rows * width, NOBODY, dtype=np.int64)
    grid[:count] = np.arange(count)
    return FittedMap(grid.reshape(rows, width), np.arange(nodes) // each, each)


def _in_blocks(layout: MapLayout, width: int, height: int) -> FittedMap | None:
    """Return a map with the network's blocks in a grid.

    Return None if they do not fit or there are none.
    """
    count = len(layout.blocks)
    if not count:
        return None
    rows, columns = layout.blocks[0].shape
    best: tuple[int, int] | None = None
    for across in range(1, count + 1):
        wide, tall = (width + _GAP) // across - _GAP, (height + _GAP) // ceil(count / across) - _GAP
        if wide < 1 or tall < 1:
            continue
        scale = max(ceil(columns / wide), ceil(rows / tall))
        if best is None or scale <= best[0]:
            best = (scale, across)
    if best is None or best[0] > max(rows, columns):
        return None
    scale, across = best
    wide, tall = ceil(columns / scale), ceil(rows / scale)
    lines = ceil(count / across)
    grid = np.full((lines * (tall + _GAP) - _GAP, across * (wide + _GAP) - _GAP), NOBODY, dtype=np.int64)
    cell = np.zeros(layout.nodes, dtype=np.int64)
    for number, block in enumerate(layout.blocks):
        top, left = number // across * (tall + _GAP), number % across * (wide + _GAP)
        row, column = np.nonzero(block >= 0)
        cell[block[row, column]] = (top + row // scale) * grid.shape[1] + left + column // scale
    places, cell = np.unique(cell, return_inverse=True)
    grid.ravel()[places] = np.arange(len(places))
    return FittedMap(grid, cell, int(np.bincount(cell).max()))
