"""The loops of the plan of shared nodes: plain and compiled ones are equal, and as a search without any shortcut."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.schedulers.sharing.plan import loops
from pipistrelle.schedulers.sharing.plan.compiled import fast_loops
from pipistrelle.schedulers.sharing.plan.loops import Need, Shut


def _slow(table: loops.Ints, begins: loops.Floats, need: Need, shut: Shut, last: int) -> int:
    """Return the first slice with enough good nodes for the whole length, by trying all slices one after the other."""
    for at in range(last + 1):
        within = [s for s in range(len(begins)) if s >= at and begins[s] < begins[at] + need.length]
        good = 0
        for node in range(table.shape[1]):
            free = [table[s, node] for s in within]
            closed = any(shut.nodes[p, node] and shut.first[p] <= s < shut.after[p]
                         for p in range(len(shut.first)) for s in within)  # fmt: skip
            good += not closed and all(
                row[0] >= need.least[0] and (row[1:] >= need.share).sum() >= need.gpus for row in free
            )
        if good >= need.low:
            return at
    return -1


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), slices=st.integers(1, 7), nodes=st.integers(1, 4), low=st.integers(1, 2))
def test_plain_and_compiled_searches_are_as_a_slow_one(seed: int, slices: int, nodes: int, low: int) -> None:
    """The first slice at which a job may fit is that of a search without shortcuts, plain and compiled."""
    pytest.importorskip("numba")
    rng = np.random.Generator(np.random.PCG64(seed))
    table = rng.integers(0, 4, (slices, nodes, 3))
    begins = np.cumsum(rng.integers(1, 4, slices)).astype(float)
    need = Need(np.array([1]), int(rng.integers(0, 2)), 2, False, low, float(rng.integers(1, 6)), 0, 9,
                np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))  # fmt: skip
    first = int(rng.integers(0, slices))
    shut = Shut(rng.random((1, nodes)) < 0.3, np.array([first]), np.array([first + 1]), np.zeros(0, dtype=np.bool_))
    order, among, has = np.arange(slices), np.arange(nodes), np.full((nodes, 3), 4)
    given_all = (table, order, begins, has, need, among, shut, 0, slices - 1)
    at, good = loops.first_begin(*given_all)
    fast_at, fast_good = fast_loops().first_begin(*given_all)
    assert at == fast_at == _slow(table, begins, need, shut, slices - 1)
    assert good.tolist() == fast_good.tolist()


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), slices=st.integers(1, 5), most=st.booleans())
def test_extremes_and_changes_are_equal(seed: int, slices: int, most: bool) -> None:
    """What is free at least and at most, and tables after changes, are equal in both forms."""
    pytest.importorskip("numba")
    rng = np.random.Generator(np.random.PCG64(seed))
    table, order = rng.integers(0, 4, (slices, 3, 2)), rng.permutation(slices)
    nodes, taken = np.array([2, 0]), rng.integers(0, 3, (2, 2))
    plain, fast = table.copy(), table.copy()
    assert (
        loops.extreme_free(plain, order, 0, slices, nodes, most)
        == fast_loops().extreme_free(fast, order, 0, slices, nodes, most)
    ).all()
    loops.change(plain, order, 0, slices, nodes, taken)
    fast_loops().change(fast, order, 0, slices, nodes, taken)
    assert (plain == fast).all()
    assert loops.same(plain, 0, 0)
    assert fast_loops().same(fast, 0, 0)
