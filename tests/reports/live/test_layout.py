"""Where nodes stand on a map, however much room there is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.platforms.catalogue import names
from pipistrelle.platforms.description import homogeneous
from pipistrelle.platforms.read import parse_platform
from pipistrelle.reports.live.layout import NOBODY, FittedMap, MapLayout
from pipistrelle.runs.inputs.named import load_platform


def machine(kind: str, shape: list[int], seats: int):
    """Return a platform of a network."""
    text = f"""
    name = "net"
    [[pools]]
    name = "all"
    nodes = {int(np.prod(shape)) * seats}
    [topology]
    kind = "{kind}"
    shape = {shape}
    nodes_per_router = {seats}
    """
    return parse_platform(text, "net.toml")


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize(("width", "height"), [(80, 10), (200, 40), (13, 3), (1, 1)])
def test_every_bundled_machine_fits(name, width, height):
    """The map is no larger than its room, and each node is in one cell that is on it once."""
    layout = MapLayout.of(load_platform(name))
    fitted = FittedMap.of(layout, width, height)

    assert fitted.grid.shape[0] <= height
    assert fitted.grid.shape[1] <= width
    cells = fitted.grid[fitted.grid != NOBODY]
    assert sorted(cells.tolist()) == list(range(fitted.cell.max() + 1))
    counts = np.bincount(fitted.cell)
    assert counts.min() >= 1
    assert counts.max() == fitted.nodes_per_cell
    assert len(fitted.cell) == layout.nodes


def test_a_torus_is_slice_by_slice():
    """The first dimension runs right, the second down, with one block per place in the third."""
    layout = MapLayout.of(machine("torus", [3, 2, 2], 2))

    assert [block.shape for block in layout.blocks] == [(2, 6), (2, 6)]
    assert sorted(np.concatenate([block.ravel() for block in layout.blocks]).tolist()) == list(range(24))
    fitted = FittedMap.of(layout, 40, 10)
    assert fitted.nodes_per_cell == 1
    assert fitted.grid.shape == (2, 13)
    assert (fitted.grid[:, 6] == NOBODY).all()


def test_groups_have_a_row_each():
    """The outermost groups of a tree stand below each other."""
    layout = MapLayout.of(machine("groups", [4, 3], 2))

    assert [block.tolist() for block in layout.blocks] == [np.arange(24).reshape(4, 6).tolist()]


@given(st.integers(1, 400), st.integers(1, 40), st.integers(1, 10), st.integers(0, 99))
def test_cells_say_what_their_nodes_do(nodes, width, height, seed):
    """A cell has a job if one of its nodes has, the mean of their use, and is down if half of them are."""
    fitted = FittedMap.of(MapLayout.of(homogeneous(nodes, "flat")), width, height)
    chance = np.random.default_rng(seed)
    on = chance.integers(-2, 3, nodes)
    down = (chance.random(nodes) < 0.3) & (on < 0)
    cells = fitted.cells(on, (on >= 0).astype(float), down)

    for cell in range(len(cells.job)):
        there = fitted.cell == cell
        assert cells.job[cell] in set(on[there][on[there] >= 0].tolist()) or (on[there] < 0).all()
        assert (cells.job[cell] >= 0) == (on[there] >= 0).any()
        assert cells.used[cell] == pytest.approx((on[there] >= 0).mean())
        assert cells.down[cell] == (2 * down[there].sum() >= there.sum())
