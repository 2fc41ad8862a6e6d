"""Where the nodes of a machine stand on a map: in rows as its network has them, or one after another."""

from dataclasses import dataclass
from math import ceil, prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.platforms.topology.topology import Topology

Ints = NDArray[np.int64]
#: no node stands there
NOBODY: Final = -1
#: between blocks, in cells
_GAP: Final = 1


@dataclass(frozen=True, slots=True)
class MapLayout:
    """Blocks of nodes.

    Parameters
    ----------
    kind
        of the network: ``flat``, ``torus``, ``mesh`` or ``groups``.
    nodes
        how many nodes there are.
    blocks
        node numbers, `NOBODY` where a row has none, each of shape (rows, columns); empty where nodes have no places.
    """

    kind: str
    nodes: int
    blocks: tuple[Ints, ...]

    @classmethod
    def of(cls, platform: Platform) -> "MapLayout":
        """Return that of a machine: a torus or mesh slice by slice, groups with one row for each of the outermost."""
        topology = Machine(platform.units, platform.info).topology
        if len(topology.info.shape) < 2:
            return cls("flat", platform.nodes, ())
        return cls(topology.kind, platform.nodes, _blocks(topology))


def _blocks(topology: Topology) -> tuple[Ints, ...]:
    """Return the blocks of a network with a shape of two dimensions or more."""
    place, shape, seats = topology.place, topology.shape, topology.nodes_per_router
    router = np.ravel_multi_index(tuple(place.T), shape)
    seat = topology.places % seats
    if topology.kind == "groups":
        across = prod(shape[1:]) * seats
        row, column = router // prod(shape[1:]), router % prod(shape[1:]) * seats + seat
        block, count, size = np.zeros_like(row), 1, (shape[0], across)
    else:  # the first dimension goes to the right, the second down, as on the page of a run
        row, column = place[:, 1], place[:, 0] * seats + seat
        rest = shape[2:]
        block = np.ravel_multi_index(tuple(place[:, 2:].T), rest) if rest else np.zeros_like(row)
        count, size = prod(rest), (shape[1], shape[0] * seats)
    found = np.full((count, *size), NOBODY, dtype=np.int64)
    found[block, row, column] = np.arange(len(place))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class FittedMap:
    """A map in so many rows and columns of cells, each of which stands for some nodes.

    Parameters
    ----------
    grid
        which cell is where, `NOBODY` where none is, shape (rows, columns).
    cell
        which cell each node is in, shape (nodes,).
    nodes_per_cell
        how many nodes a cell has, at most.
    """

    grid: Ints
    cell: Ints
    nodes_per_cell: int

    @classmethod
    def of(cls, layout: MapLayout, width: int, height: int) -> "FittedMap":
        """Return the map of a layout with the finest cells that fit; without its rows where these do not fit."""
        return _in_blocks(layout, width, height) or _in_line(layout.nodes, width, height)

    def cells(self, on: Ints, used: NDArray[np.float64], down: NDArray[np.bool_]) -> "CellStates":
        """Return what the cells show.

        Parameters
        ----------
        on
            a job of each node, by its number, negative where there is none, shape (nodes,).
        used
            which share of its units jobs hold, shape (nodes,).
        down
            whether it is out of service, shape (nodes,).
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
    """What cells show: one of the jobs there (negative: none), the share of units held, whether most nodes are down.

    Shapes (cells,).
    """

    job: Ints
    used: NDArray[np.float64]
    down: NDArray[np.bool_]


def _in_line(nodes: int, width: int, height: int) -> FittedMap:
    """Return nodes one after another, from left to right and line by line."""
    if width > 20:
        width -= width % 8
    each = max(1, ceil(nodes / (width * height)))
    count = ceil(nodes / each)
    rows = max(1, ceil(count / width))
    grid = np.full(rows * width, NOBODY, dtype=np.int64)
    grid[:count] = np.arange(count)
    return FittedMap(grid.reshape(rows, width), np.arange(nodes) // each, each)


def _in_blocks(layout: MapLayout, width: int, height: int) -> FittedMap | None:
    """Return blocks beside and below each other; None if there is no room for them, or none are there."""
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
