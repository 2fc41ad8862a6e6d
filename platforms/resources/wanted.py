"""Count how many of a set of requests fit on each shared node.

The counts are updated at every change.
"""

from collections.abc import Hashable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.resources.free_resources import FreeResources
from pipistrelle.platforms.resources.shape import Bools, Shape
from pipistrelle.platforms.resources.shared_nodes import Amounts

_ROOM: Final = 16


class WantedShapes:
    """How many of the requests in a changing set fit on each node now.

    `add` and `remove` change the set. A request fits on a node that has room for the least number of tasks that the
    request allows on a node.

    Attributes:
        fitting: number of added requests that fit on each node, shape (nodes,).
    """

    def __init__(self, free: FreeResources) -> None:
        self._free = free
        nodes, width = free.amounts.shape
        self.fitting: Amounts = np.zeros(nodes, dtype=np.int64)
        self._row_of: dict[Hashable, int] = {}
        self._unused: list[int] = []
        self._top = 0
        #: one row per shape: what it takes of a node, its GPUs there, its share of each, whether it needs an idle node
        self._amounts: Amounts = np.zeros((_ROOM, width), dtype=np.int64)
        self._gpus: Amounts = np.zeros(_ROOM, dtype=np.int64)
        self._share: Amounts = np.ones(_ROOM, dtype=np.int64)
        self._alone: Bools = np.zeros(_ROOM, dtype=np.bool_)
        self._wanted: Bools = np.zeros(_ROOM, dtype=np.bool_)
        #: the row's set of nodes that it may use, and these sets, shape (sets, nodes)
        self._set: NDArray[np.intp] = np.zeros(_ROOM, dtype=np.intp)
        self._sets: Bools = np.zeros((0, nodes), dtype=np.bool_)
        self._set_of: dict[bytes, int] = {}

    def add(self, key: Hashable, shape: Shape, able: Bools) -> None:
        """Add a request to the set of counted requests.

        Args:
            key: identifies the request for `remove`.
            able: the nodes that the request may use, shape (nodes,).
        """
        row = self._unused.pop() if self._unused else self._top
        self._top = max(self._top, row + 1)
        if row == len(self._gpus):
            for name in ("_amounts", "_gpus", "_share", "_alone", "_wanted", "_set"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros_like(array)]))
        self._row_of[key] = row
        self._amounts[row], self._gpus[row], self._share[row] = shape.least, shape.least_gpus, shape.share
        self._alone[row], self._wanted[row] = shape.request.exclusive, True
        self._set[row] = self._set_number(able & shape.able)
        self.fitting += self._fits(row)

    def remove(self, key: Hashable) -> None:
        """Remove the request that was added with ``key`` from the set of counted requests."""
        row = self._row_of.pop(key)
        self.fitting -= self._fits(row)
        self._wanted[row] = False
        self._unused.append(row)

    def changed(self, nodes: Amounts) -> None:
        """Update the counts of nodes whose free resources have changed.

        ``nodes`` has the numbers of these nodes, shape (n,).
        """
        free, wanted = self._free, np.flatnonzero(self._wanted[: self._top])
        if not len(wanted):
            self.fitting[nodes] = 0
            return
        for begin in range(0, len(nodes), _ROOM):
            some = nodes[begin : begin + _ROOM]
            amounts, gpus, has = free.amounts[some], free.gpus[some], free.nodes
            fits = self._sets[self._set[wanted][:, None], some]
            for column in range(amounts.shape[1]):
                fits &= amounts[:, column] >= self._amounts[wanted, column][:, None]
            if self._gpus[wanted].any():
                fits &= (gpus >= self._share[wanted][:, None, None]).sum(axis=2) >= self._gpus[wanted][:, None]
            if self._alone[wanted].any():
                idle = (amounts == has.amounts[some]).all(axis=1) & (gpus == has.gpus[some]).all(axis=1)
                fits &= idle | ~self._alone[wanted][:, None]
            self.fitting[some] = fits.sum(axis=0)

    def _fits(self, row: int) -> Bools:
        """Return on which nodes the request with index ``row`` fits now, shape (nodes,)."""
        free, nodes = self._free, self._free.nodes
        fits: Bools = self._sets[self._set[row]].copy()
        for column, least in enumerate(self._amounts[row].tolist()):
            fits &= free.amounts[:, column] >= least
        if self._gpus[row]:
            fits &= (free.gpus >= self._share[row]).sum(axis=1) >= self._gpus[row]
        if self._alone[row]:
            fits &= (free.amounts == nodes.amounts).all(axis=1) & (free.gpus == nodes.gpus).all(axis=1)
        return fits

    def _set_number(self, able: Bools) -> int:
        number = self._set_of.setdefault(able.tobytes(), len(self._sets))
        if number == len(self._sets):
            self._sets = np.concatenate([self._sets, able[None]])
        return number
