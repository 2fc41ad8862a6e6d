"""How much traffic each link of a torus or a mesh carries, by dimension-order routing.

A message goes along the first dimension until it is where its target is, then along the second, and so on, each time
the shorter way round; where both ways round a ring are equally long, one half of it goes each way.
"""

from functools import cached_property
from math import prod
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.topology.topology import Topology

Ints = NDArray[np.intp]
Floats = NDArray[np.float64]

#: loads of all links: for each dimension an array of shape (2, *the topology's shape): of the links from each router
#: to the next along that dimension (0), and of those back to it (1)
Loads = list[Floats]


class LinkLines(NamedTuple):
    """Those lines of routers along one dimension on which something may pass.

    Parameters
    ----------
    first
        the number of the router with coordinate 0 on each line, of routers numbered with the last dimension fastest,
        shape (lines,).
    loads
        of the links there and back, shape (2, lines, links).
    """

    first: Ints
    loads: Floats


_WITH_LINKS: Final = ("torus", "mesh")


class LinkLoads:
    """The links of a torus or mesh, and what they carry.

    Parameters
    ----------
    topology
        the network.

    Raises
    ------
    PlatformError
        if it is none of these: nothing tells which links others have.
    """

    def __init__(self, topology: Topology) -> None:
        if topology.kind not in _WITH_LINKS:
            raise PlatformError(
                "nothing tells which links the network has",
                where="topology",
                expected="a torus or a mesh",
                found=f"kind '{topology.kind}'",
            )
        self._topology = topology
        self.shape = topology.shape
        self._weights = np.array([prod(self.shape[at + 1 :]) for at in range(len(self.shape))], dtype=np.intp)
        self._paths = [_paths(size, around=topology.kind == "torus") for size in self.shape]

    @cached_property
    def bandwidths(self) -> list[Floats] | None:
        """Bytes a second of the links along each dimension, by coordinate, in either direction; None if nobody tells.

        Where a dimension alternates, the first value is that of the link from coordinate 0 to 1.
        """
        told = self._topology.info.bandwidth
        sized = zip(told, self.shape, strict=True) if told else ()
        return [np.resize(np.array(each, dtype=np.float64), size) for each, size in sized] or None

    @property
    def counts(self) -> list[int]:
        """How many links there are along each dimension, those there and those back; two routers are joined by one."""
        open_ended = self._topology.kind == "mesh"
        return [2 * (prod(self.shape) // size) * (size - (open_ended or size <= 2)) for size in self.shape]

    def all_to_all(self, nodes: Ints) -> list[LinkLines]:
        """Return what links carry if each of some nodes sends one to each other one of them; nodes are given once each.

        Nothing is looked at pair by pair. What passes along a dimension starts at a router with the sources' coordinate
        in this dimension and later ones and goes to the targets' in this one: of either only how many there are counts.
        """
        routers = self._topology.place[nodes]
        number, count = np.unique(routers @ self._weights, return_counts=True)
        found = []
        for axis, size in enumerate(self.shape):
            weight = int(self._weights[axis])
            along = number // weight % size
            after, at = np.unique(number % weight, return_inverse=True)
            sources = _table(along, at, count, (size, len(after)))
            before, at = np.unique(number // (weight * size), return_inverse=True)
            targets = _table(at, along, count, (len(before), size))
            passing = np.tensordot(targets, self._paths[axis], ([1], [2]))  # (before, direction, source, link)
            loads = np.tensordot(passing, sources, ([2], [0])).transpose(1, 0, 3, 2)  # (direction, before, after, link)
            first = before[:, None] * (weight * size) + after
            found.append(LinkLines(first.ravel(), loads.reshape(2, -1, size)))
        return found

    def of_messages(self, sources: Ints, targets: Ints, sizes: Floats) -> list[LinkLines]:
        """Return what links carry if nodes send to others, message by message; all of shape (messages,)."""
        here, there = self._topology.place[sources].copy(), self._topology.place[targets]
        found = []
        for axis, size in enumerate(self.shape):
            moves = (here[:, axis] != there[:, axis]).nonzero()[0]
            line = here[moves] @ self._weights - here[moves, axis] * self._weights[axis]
            first, at = np.unique(line, return_inverse=True)
            loads = np.zeros((2, len(first) * size))
            for direction in (0, 1):
                share = self._paths[axis][direction][here[moves, axis], there[moves, axis]]
                message, link = share.nonzero()
                weights = share[message, link] * sizes[moves[message]]
                loads[direction] = np.bincount(at[message] * size + link, weights, len(first) * size)
            found.append(LinkLines(first, loads.reshape(2, len(first), size)))
            here[:, axis] = there[:, axis]
        return found

    def full(self, lines: list[LinkLines]) -> Loads:
        """Return the loads of all links, not only of those on some lines."""
        found = []
        for axis, (size, (first, loads)) in enumerate(zip(self.shape, lines, strict=True)):
            every = np.zeros((2, prod(self.shape)))
            every[:, first[:, None] + np.arange(size) * self._weights[axis]] = loads
            found.append(every.reshape(2, *self.shape))
        return found

    def busiest(self, lines: list[LinkLines]) -> tuple[float, float | None]:
        """Return the load of the busiest link, and how many bytes/s make a load of 1 when a link is full for the first.

        None for the second if bandwidths are not known, or no link has a load.
        """
        peaks = [loads.max(axis=(0, 1), initial=0.0) for _, loads in lines]
        rates = [
            float((width[peak > 0] / peak[peak > 0]).min())
            for width, peak in zip(self.bandwidths or (), peaks, strict=False)
            if peak.any()
        ]
        return max(float(peak.max()) for peak in peaks), min(rates, default=None)


def _table(rows: Ints, columns: Ints, counts: Ints, shape: tuple[int, int]) -> Floats:
    """Return how many there are in each row and column, of this shape."""
    found: Floats = np.zeros(shape)
    np.add.at(found, (rows, columns), counts)
    return found


def _paths(size: int, *, around: bool) -> Floats:
    """Return which links the way from one coordinate to another passes, shape (directions, from, to, link): 0, 1/2, 1.

    Link i joins the coordinates i and i + 1, the last one the last and the first.
    """
    found = np.zeros((2, size, size, size))
    for start in range(size):
        for stop in range(size):
            up = (stop - start) % size if around else max(stop - start, 0)
            down = (start - stop) % size if around else max(start - stop, 0)
            if not around:
                ways = ((0, up, 1.0), (1, down, 1.0))
            elif size == 2:  # one link, there and back
                ways = ((0, up if start == 0 else 0, 1.0), (1, down if start == 1 else 0, 1.0))
            elif up == down:
                ways = ((0, up, 0.5), (1, down, 0.5))
            else:
                ways = ((0, up if up < down else 0, 1.0), (1, down if down < up else 0, 1.0))
            for direction, steps, share in ways:
                for step in range(steps):
                    link = (start + step) % size if direction == 0 else (start - step - 1) % size
                    found[direction, start, stop, link] = share
    return found
