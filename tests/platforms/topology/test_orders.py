"""Orders of nodes: snake, Hilbert's curve and ALPS."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.naming.rule import TopologyRule
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.platforms.topology.orders import NODE_ORDERS, node_order

TITAN = TopologyRule(kind="torus", shape=(25, 16, 24), nodes_per_router=2, numbering=((0, 25), (1, 8), (2, 24), (1, 2)))


def machine_with(topology: TopologyRule, nodes: int) -> Machine:
    """Return a machine of one pool with a topology, as its scheduler sees it."""
    platform = Platform(name="m", pools=(Pool(name="all", nodes=nodes),), topology=topology)
    return Machine(platform.units, platform.info)


def steps(order: str, machine: Machine) -> list[int]:
    """Return the hops from each node of an order to the next."""
    nodes = node_order(order, machine)
    return machine.topology.distance(nodes[:-1], nodes[1:]).tolist()  # type: ignore[no-any-return]


@settings(deadline=None, max_examples=50)
@given(shape=st.lists(st.integers(1, 6), min_size=1, max_size=4), each=st.integers(1, 2))
def test_every_order_has_every_node_once(shape: list[int], each: int) -> None:
    """Orders are permutations, of any shape; the snake never leaves a mesh's links."""
    nodes = int(np.prod(shape)) * each
    machine = machine_with(TopologyRule(kind="mesh", shape=tuple(shape), nodes_per_router=each), nodes)
    for name in NODE_ORDERS:
        if name != "alps" or len(shape) == 3:
            assert sorted(node_order(name, machine).tolist()) == list(range(nodes))
    assert max(steps("snake", machine), default=0) <= 1


def test_the_snake_has_x_fastest_and_turns() -> None:
    """Along x to the end, one up, and back."""
    machine = machine_with(TopologyRule(kind="mesh", shape=(3, 2, 2)), 12)

    assert machine.nodes.place[node_order("snake", machine)].tolist() == [
        *([0, 0, 0], [1, 0, 0], [2, 0, 0], [2, 1, 0], [1, 1, 0], [0, 1, 0]),
        *([0, 1, 1], [1, 1, 1], [2, 1, 1], [2, 0, 1], [1, 0, 1], [0, 0, 1]),
    ]


@pytest.mark.parametrize("shape", [(2, 2), (8, 8), (8, 8, 8), (16, 16, 16), (4, 4, 4, 4), (8,)])
def test_hilberts_curve_never_jumps(shape: tuple[int, ...]) -> None:
    """In a cube of side 2**k each router is next to the last."""
    machine = machine_with(TopologyRule(kind="mesh", shape=shape), int(np.prod(shape)))

    assert set(steps("hilbert", machine)) == {1}


def test_alps_fills_blocks_along_z_then_y_then_x() -> None:
    """288 blocks of 64 nodes, each of four cubes of 16, then 48 remainders of 1x2x4 at x = 24."""
    machine = machine_with(TITAN, 19_200)
    order = node_order("alps", machine)
    place = machine.nodes.place[order]
    blocks = place[: 288 * 64].reshape(288, 64, 3)
    low = blocks.min(axis=1)

    np.testing.assert_array_equal(blocks.max(axis=1) - low, np.tile([3, 1, 3], (288, 1)))
    assert low.tolist() == [[x, y, z] for x in range(0, 24, 4) for y in range(0, 16, 2) for z in range(0, 24, 4)]
    rest = place[288 * 64 :].reshape(48, 16, 3)
    np.testing.assert_array_equal(rest.max(axis=1) - rest.min(axis=1), np.tile([0, 1, 3], (48, 1)))
    assert rest.min(axis=1).tolist() == [[24, y, z] for y in range(0, 16, 2) for z in range(0, 24, 4)]
    for block in order[: 288 * 64].reshape(288, 4, 16):
        assert machine.topology.mean_hops(block.ravel()) == pytest.approx(3.0476, abs=5e-5)
        assert {machine.topology.mean_hops(cube) for cube in block} == {1.6}


def test_an_alps_block_is_one_path() -> None:
    """Within a block, and from one to the next along z, each router is next to the last."""
    machine = machine_with(TopologyRule(kind="mesh", shape=(4, 2, 12)), 96)

    assert set(steps("alps", machine)) == {1}


def test_orders_that_are_none() -> None:
    """An unknown order is answered with the closest, alps is refused where there are no three dimensions."""
    with pytest.raises(PlatformError, match=r"no node order 'snakes'\. Did you mean 'snake'\?"):
        node_order("snakes", Machine(4))
    with pytest.raises(PlatformError, match=r"alps needs three dimensions: expected .*, found a topology of kind"):
        node_order("alps", Machine(4))
    assert node_order("hilbert", Machine(4)).tolist() == [0, 1, 2, 3]
