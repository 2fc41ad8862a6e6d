"""Orders of nodes: lists from which a placement takes the first free nodes."""

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.platforms.topology.topology import Topology
from pipistrelle.protocol.base.errors import did_you_mean, shown

Ints = NDArray[np.intp]

#: the bits of three-bit Gray codes in order: a path along a cube's edges that ends one step along axis 3 from its start
_GRAY: Final = np.array(
    [[code >> bit & 1 for bit in range(3)] for code in (number ^ number >> 1 for number in range(8))]
)
#: the four cubes of an ALPS block in order: (x, z) of the cube; (x, z) where the path enters it; the axis along which
#: the path ends one step away. The path goes around the block and ends next to the start of the next block along z.
_CUBES: Final = (((0, 0), (0, 0), "x"), ((1, 0), (0, 0), "z"), ((1, 1), (0, 0), "z"), ((0, 1), (1, 1), "x"))
_BLOCK: Final = (4, 2, 4)


def _alps_block() -> Ints:
    """Return the order in which Cray's ALPS visits the routers of a block of 4x2x4."""
    rank = np.zeros(_BLOCK, dtype=np.intp)
    for number, (cube, enters, leaves) in enumerate(_CUBES):
        # The axis along which the path leaves the cube changes once, the other of x and z at every second step.
        first, third = (2, 0) if leaves == "x" else (0, 2)
        corners = np.zeros((8, 3), dtype=np.intp)
        corners[:, [first, 1, third]] = _GRAY
        corners[:, [0, 2]] ^= np.array(enters, dtype=np.intp)
        x, y, z = corners.T
        rank[2 * cube[0] + x, y, 2 * cube[1] + z] = 8 * number + np.arange(8)
    return rank


def _by_number(topology: Topology) -> Ints:
    return np.arange(len(topology.place), dtype=np.intp)


def _snake(topology: Topology) -> Ints:
    """Return each node's rank on a path that winds to and fro.

    The first dimension varies fastest.
    """
    rank = np.zeros(len(topology.place), dtype=np.intp)
    for dimension in reversed(range(len(topology.shape))):
        size, along = topology.shape[dimension], topology.place[:, dimension]
        rank = rank * size + np.where(rank % 2, size - 1 - along, along)
    return rank


def _hilbert(topology: Topology) -> Ints:
    """Return each node's rank on a Hilbert curve through a cube of side 2**k.

    The method turns coordinates into the bits of the rank in place: J. Skilling, "Programming the Hilbert curve", 2004.
    """
    bits = max(1, (max(topology.shape) - 1).bit_length())
    axes = topology.place.T.copy()
    count = len(axes)
    for bit in reversed(range(1, bits)):
        low = (1 << bit) - 1
        for index in range(count):
            inverted = (axes[index] >> bit & 1).astype(bool)
            swapped = np.where(inverted, 0, (axes[0] ^ axes[index]) & low)
            axes[0] ^= np.where(inverted, low, swapped)
            axes[index] ^= swapped
    for index in range(1, count):
        axes[index] ^= axes[index - 1]
    flips = np.zeros_like(axes[0])
    for bit in reversed(range(1, bits)):
        flips ^= np.where(axes[-1] >> bit & 1, (1 << bit) - 1, 0)
    axes ^= flips
    planes = [axis >> bit & 1 for bit in reversed(range(bits)) for axis in axes]
    return np.argsort(np.lexsort(planes[::-1]))


def _alps(topology: Topology) -> Ints:
    """Return each node's rank in ALPS order.

    This is by blocks of 4x2x4 routers, fastest along z, then y, then x.
    """
    if len(topology.shape) != 3:
        raise PlatformError(
            "the order alps needs three dimensions",
            where="node order",
            expected="a torus or mesh with three sizes",
            found=f"a topology of kind '{topology.kind}' with {len(topology.shape)}",
        )
    block = np.array(_BLOCK, dtype=np.intp)
    (bx, by, bz), within = (topology.place // block).T, (topology.place % block).T
    _, height, depth = -(-np.array(topology.shape, dtype=np.intp) // block)
    rank: Ints = ((bx * height + by) * depth + bz) * int(block.prod()) + _ALPS_BLOCK[tuple(within)]
    return rank


_ALPS_BLOCK: Final = _alps_block()
_ORDERS: Final[dict[str, Callable[[Topology], Ints]]] = {
    "id": _by_number,
    "snake": _snake,
    "hilbert": _hilbert,
    "alps": _alps,
}
#: the names of the orders
NODE_ORDERS: Final = tuple(_ORDERS)


def node_order(name: str, machine: Machine) -> Ints:
    """Return the numbers of all nodes in the named order.

    Nodes of one router are ordered by number.

    Raises:
        PlatformError: if the order is unknown or does not support the machine's topology.
    """
    rank = _ORDERS.get(name)
    if rank is None:
        raise PlatformError(f"there is no node order {shown(name)}", hint=did_you_mean(name, list(NODE_ORDERS)))
    return np.argsort(rank(machine.topology), kind="stable")
