"""Sets of units as arrays and as masks: round trips, with few or many intervals."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.protocol.units.indices import drop_numbers, flagged, flags, kept_numbers, numbers, pieces, set_of
from pipistrelle.protocol.units.masks import lowest, mask_of, units_of
from pipistrelle.protocol.units.nodesets import NodeSet

#: few units, or many pieces far apart
UNITS = st.one_of(
    st.frozensets(st.integers(0, 60)),
    st.builds(
        lambda seed, share, scale: frozenset((scale * np.flatnonzero(_draw(seed) < share)).tolist()),
        st.integers(0, 99),
        st.sampled_from([0.01, 0.5, 0.99]),
        st.sampled_from([1, 40]),
    ),
)


def _draw(seed):
    return np.random.Generator(np.random.PCG64(seed)).random(1000)


@given(units=UNITS, more=st.integers(1, 70))
def test_there_and_back(units, more):
    """Flags, numbers and masks give the same units as the set."""
    expected = NodeSet.of(units)
    count = max(units, default=0) + more

    found = flags(expected, count)

    assert found.shape == (count,)
    assert frozenset(np.flatnonzero(found).tolist()) == units
    assert flagged(found) == expected
    assert len(flagged(found)) == len(units)
    assert set_of(np.random.Generator(np.random.PCG64(1)).permutation(numbers(expected))) == expected
    assert mask_of(expected) == sum(1 << unit for unit in units)
    assert units_of(mask_of(expected)) == expected
    assert len(units_of(mask_of(expected))) == len(units)
    assert list(units_of(lowest(mask_of(expected), len(units) // 2))) == sorted(units)[: len(units) // 2]


@given(units=UNITS.filter(bool), asked=st.permutations(["text", "pair", "numbers", "hash"]))
def test_a_set_made_from_an_array_equals_any_other(units, asked):
    """Whatever is called first, and whether or not its numbers are still cached."""
    expected = NodeSet.of(units)
    found = set_of(np.array(sorted(units)))
    looks = {
        "text": str,
        "pair": lambda one: (one & expected, one | expected, one - expected, one.first, one.last, len(one), list(one)),
        "numbers": lambda one: numbers(one).tolist(),
        "hash": hash,
    }
    for which in asked:
        assert looks[which](found) == looks[which](expected)
    for again in (copy.copy(found), pickle.loads(pickle.dumps(set_of(np.array(sorted(units)))))):  # noqa: S301
        assert again == expected
        assert str(again) == str(expected)
    assert kept_numbers(expected).tolist() == sorted(units)
    assert expected.numbered is kept_numbers(expected)
    drop_numbers(found)
    assert found.numbered is None
    assert numbers(found).tolist() == sorted(units)
    with pytest.raises(AttributeError, match="colour"):
        found.colour  # noqa: B018


@pytest.mark.parametrize(("width", "parts"), [(1, 1), (127, 1), (128, 20)])
def test_pieces_select_each_unit_once(width, parts):
    """Many short intervals become one index array, long ones become slices."""
    units = NodeSet.parse(" ".join(f"{first}-{first + width - 1}" for first in range(0, 20 * 200, 200)))
    found = np.zeros(4000, dtype=np.int64)
    for part in pieces(units):
        found[part] += 1

    assert len(pieces(units)) == parts
    assert found.tolist() == flags(units, 4000).astype(np.int64).tolist()
