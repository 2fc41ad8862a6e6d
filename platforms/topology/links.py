"""The load of each link of a torus or mesh under dimension-order routing.

A message travels along the first dimension until it reaches its target's coordinate, then along the second, and so on.
It takes the shorter way around a ring. If both ways are equally long, half of the message goes each way.
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

#: loads of all links: for each dimension an array of shape (2, *the topology's shape), with the links from each router
#: to the next one along that dimension, and the links back
Loads = list[Floats]


class LinkLines(NamedTuple):
    """Loads of the links along one dimension of a torus or mesh.

    A line is a row of routers that differ only in their coordinate along the dimension. Lines without traffic may be
    left out.

    Args:
        first: the router with coordinate 0 on each line, shape (lines,). Router numbers vary fastest along the last
            dimension.
        loads: the loads of the links, shape (2, lines, links): index 0 for the direction of rising coordinates, 1 for
            the other one.
    """

    first: Ints
    loads: Floats


_WITH_LINKS: Final = ("torus", "mesh")


class LinkLoads:
    """The links of a torus or mesh, and their loads under given traffic.

    Raises:
        PlatformError: if the topology is of another kind, because then its links are unknown.
    """

    def __init__(self, topology: Topology) -> None:
        if topology.kind not in _WITH_LINKS:
            raise PlatformError(
                "the links of the network are unknown",
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
        """Link bandwidths (bytes/s) along each dimension, by coordinate; None if unknown.

        If bandwidths alternate along a dimension, the first value is for the link from coordinate 0 to 1.
        """
        told = self._topology.info.bandwidth
        sized = zip(told, self.shape, strict=True) if told else ()
        return [np.resize(np.array(each, dtype=np.float64), size) for each, size in sized] or None

    @property
    def counts(self) -> list[int]:
        """The number of links along each dimension.

        Two neighbouring routers have one link in each direction.
        """
        open_ended = self._topology.kind == "mesh"
        return [2 * (prod(self.shape) // size) * (size - (open_ended or size <= 2)) for size in self.shape]

    def all_to_all(self, nodes: Ints) -> list[LinkLines]:
        """Return the link loads if each node sends a message of size 1 to every other.

        The loads are computed from the numbers of nodes per coordinate, without a loop over pairs of nodes. This is
        possible because, on its way along a dimension, a message has reached its target's coordinates in all earlier
        dimensions and still has its source's coordinates in all later ones.
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
        """Return the link loads of messages from ``sources`` to ``targets``.

        Each argument has shape (messages,).
        """
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
        """Return the loads of all links of the machine from ``lines``.

        Links that ``lines`` leaves out have load 0.
        """
        found = []
        for axis, (size, (first, loads)) in enumerate(zip(self.shape, lines, strict=True)):
            every = np.zeros((2, prod(self.shape)))
            every[:, first[:, None] + np.arange(size) * self._weights[axis]] = loads
            found.append(every.reshape(2, *self.shape))
        return found

    def busiest(self, lines: list[LinkLines]) -> tuple[float, float | None]:
        """Return the greatest link load in ``lines``, and the largest possible rate.

        At the largest rate the first link is full: a message of size 1 sends this many bytes/s, and a link with load L
        carries L times as many. The rate is None if bandwidths are unknown or no link has a load.
        """
        peaks = [loads.max(axis=(0, 1), initial=0.0) for _, loads in lines]
        rates = [
            float((width[peak > 0] / peak[peak > 0]).min())
            for width, peak in zip(self.bandwidths or (), peaks, strict=False)
            if peak.any()
        ]
        return max(float(peak.max()) for peak in peaks), min(rates, default=None)


def _table(rows: Ints, columns: Ints, counts: Ints, shape: tuple[int, int]) -> Floats:
    found: Floats = np.zeros(shape)
    np.add.at(found, (rows, columns), counts)
    return found


def _paths(size: int, *, around: bool) -> Floats:
    """Return which share of a message each link of a dimension carries.

    The message is between two coordinates; the share is 0, 1/2 or 1. The shape is (directions, from, to, link). Link i
    joins coordinates i and i + 1; the last link leads back to 0.
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
