"""Sets of units: the text form, the algebra against Python's sets, the errors."""

import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.protocol.units.text import LARGEST_UNIT, PATTERN, NodeSetError

UNITS = st.frozensets(st.integers(0, 60))


def texts_of(units):
    """Return the canonical text, computed in a slow and simple way."""
    pieces = []
    for unit in sorted(units):
        if pieces and pieces[-1][1] == unit - 1:
            pieces[-1][1] = unit
        else:
            pieces.append([unit, unit])
    return " ".join(str(lo) if lo == hi else f"{lo}-{hi}" for lo, hi in pieces)


@pytest.mark.parametrize(
    ("text", "canonical", "count"),
    [
        ("", "", 0),
        ("0", "0", 1),
        ("7", "7", 1),
        ("12-75", "12-75", 64),
        ("5-5", "5", 1),
        ("0-3 8-19", "0-3 8-19", 16),
        ("8-19 0-3", "0-3 8-19", 16),
        ("4-7 0-3", "0-7", 8),
        ("2 0 1", "0-2", 3),
        (f"0-{LARGEST_UNIT}", f"0-{LARGEST_UNIT}", LARGEST_UNIT + 1),
    ],
)
def test_text_is_read_and_written_canonically(text, canonical, count):
    """Intervals come in any order; the text written is ascending and merged."""
    units = NodeSet.parse(text)

    assert str(units) == canonical
    assert len(units) == count
    assert NodeSet.parse(canonical) == units
    assert re.search(PATTERN, text)


PLAIN = "'lo' or 'lo-hi' in decimal digits"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" ", "interval 1, character 1: an interval of a set of units is empty: "),
        ("0-3  5", "interval 2, character 5: an interval of a set of units is empty: "),
        ("0-3 ", "interval 2, character 5: an interval of a set of units is empty: "),
        (" 0-3", "interval 1, character 1: an interval of a set of units is empty: "),
        ("0-3,5", "interval 1, character 1: a set of units has a comma: expected single spaces"),
        ("1 0-3, 5", "interval 2, character 3: a set of units has a comma"),
        ("3-0", "interval 1, character 1: an interval of units runs backwards: expected lo <= hi, found '3-0'."),
        ("0 9-8", "interval 2, character 3: an interval of units runs backwards: expected lo <= hi, found '9-8'."),
        ("007", f"a unit number is not valid: expected 0 to {LARGEST_UNIT}, without leading zeros, found '007'."),
        ("0-03", "a unit number is not valid"),
        (str(LARGEST_UNIT + 1), "a unit number is not valid"),
        ("9" * 5000, "...'."),
        ("-3", f"interval 1, character 1: a piece is no interval of units: expected {PLAIN}, found '-3'."),
        ("+3", f"a piece is no interval of units: expected {PLAIN}, found '+3'."),
        ("1--3", f"a piece is no interval of units: expected {PLAIN}, found '1--3'."),
        ("1-", f"a piece is no interval of units: expected {PLAIN}, found '1-'."),
        ("1-2-3", f"a piece is no interval of units: expected {PLAIN}, found '1-2-3'."),
        ("1_0", f"a piece is no interval of units: expected {PLAIN}, found '1_0'."),
        ("1.0", "a piece is no interval of units"),
        ("0x1", "a piece is no interval of units"),
        ("\u0663", "a piece is no interval of units"),
        ("1\n", "a piece is no interval of units"),
        ("1\t2", "a piece is no interval of units"),
        ("all", "a piece is no interval of units"),
        ("3 3", "interval 2, character 3: an interval of a set of units overlaps another: "),
        ("0-5 9 3-4", "interval 3, character 7: an interval of a set of units overlaps another: "),
        ("3-4 9 0-5", "interval 3, character 7: an interval of a set of units overlaps another: "),
        ("0-5 5-9", "expected each unit at most once, found '5-9' beside '0-5'."),
        ("0-9 1-2 4-5", "found '1-2' beside '0-9'."),
    ],
)
def test_a_bad_text_is_refused_with_its_piece(text, message):
    """Text outside the grammar raises an error with the wrong piece and its position."""
    with pytest.raises(NodeSetError) as caught:
        NodeSet.parse(text)

    assert message in str(caught.value)
    assert len(str(caught.value)) < 250
    assert isinstance(caught.value, PipistrelleError)


@given(st.one_of(st.text(), st.text(alphabet="0123 -,"), st.from_regex(PATTERN)))
def test_any_text_is_a_set_or_an_error(text):
    """Parsing gives a set whose text parses to the same set, or `NodeSetError`; the text must fit the pattern."""
    try:
        units = NodeSet.parse(text)
    except NodeSetError:
        return

    assert NodeSet.parse(str(units)) == units
    assert re.fullmatch(PATTERN, text)


@given(UNITS)
def test_a_set_equals_the_units_it_was_built_from(units):
    """Length, iteration, membership, ends and text agree with Python's set."""
    ours = NodeSet.of(units)

    assert list(ours) == sorted(units)
    assert len(ours) == len(units)
    assert bool(ours) == bool(units)
    assert [unit in ours for unit in range(-2, 63)] == [unit in units for unit in range(-2, 63)]
    assert str(ours) == texts_of(units)
    assert NodeSet.parse(str(ours)) == ours == NodeSet(reversed(ours.intervals))
    if units:
        assert (ours.first, ours.last) == (min(units), max(units))


@given(UNITS, UNITS)
def test_the_algebra_is_that_of_sets(one, two):
    """Union, difference, intersection, inclusion and disjointness agree with Python's sets, results being canonical."""
    a, b = NodeSet.of(one), NodeSet.of(two)

    for ours, theirs in ((a | b, one | two), (a - b, one - two), (a & b, one & two)):
        assert ours == NodeSet.of(theirs)
        assert len(ours) == len(theirs)
    assert (a <= b) == (one <= two)
    assert (a >= b) == (one >= two)
    assert a.isdisjoint(b) == one.isdisjoint(two)
    assert (a == b) == (one == two)


@given(UNITS, st.randoms(use_true_random=False))
def test_equal_sets_have_equal_hashes(units, random):
    """The order in which units are given does not matter."""
    shuffled = list(units) * 2
    random.shuffle(shuffled)

    assert NodeSet.of(shuffled) == NodeSet.of(units)
    assert hash(NodeSet.of(shuffled)) == hash(NodeSet.of(units))


def test_fragmented_sets_of_a_large_machine():
    """Operations on tens of thousands of intervals agree with Python's sets."""
    evens, thirds = range(0, 100_000, 2), range(0, 100_000, 3)
    a, b = NodeSet.of(evens), NodeSet.of(thirds)

    assert a | b == NodeSet.of({*evens, *thirds})
    assert a & b == NodeSet.of(range(0, 100_000, 6))
    assert a - b == NodeSet.of({*evens} - {*thirds})
    assert a - NodeSet.interval(3, 99_995) == NodeSet.of([0, 2, 99_996, 99_998])
    assert NodeSet.interval(0, 99_999) - a == NodeSet.of(range(1, 100_000, 2))
    assert a & b <= a
    assert not a <= b


@pytest.mark.parametrize(("lo", "hi"), [(3, 2), (-1, 2), (0, LARGEST_UNIT + 1)])
def test_an_invalid_interval_is_rejected(lo, hi):
    """`interval` and the constructor refuse pairs that run backwards, are negative or too large."""
    with pytest.raises(NodeSetError, match=f"lo = {lo}, hi = {hi}"):
        NodeSet.interval(lo, hi)
    with pytest.raises(NodeSetError, match=f"lo = {lo}, hi = {hi}"):
        NodeSet([(0, 1), (lo, hi)])


def test_the_constructor_refuses_overlaps():
    """Two pairs that share a unit are refused."""
    with pytest.raises(NodeSetError, match=r"overlap: found 2-5 after an interval up to 3\."):
        NodeSet([(2, 5), (0, 3)])


@pytest.mark.parametrize(("units", "found"), [([3, -1], "-1"), ([0, LARGEST_UNIT + 1], str(LARGEST_UNIT + 1))])
def test_units_out_of_range_are_refused(units, found):
    """`of` names the unit that is negative or too large."""
    with pytest.raises(NodeSetError, match=f"a unit is out of range: expected 0 to {LARGEST_UNIT}, found {found}"):
        NodeSet.of(units)


def test_the_empty_set_has_no_ends():
    """`first` and `last` of the empty set raise ValueError; it is falsy and equal to any other empty set."""
    assert not NodeSet.EMPTY
    assert NodeSet.parse("") == NodeSet.of([]) == NodeSet() == NodeSet.EMPTY
    with pytest.raises(ValueError, match="no first unit"):
        _ = NodeSet.EMPTY.first
    with pytest.raises(ValueError, match="no last unit"):
        _ = NodeSet.EMPTY.last


def test_other_types_are_not_mixed_in():
    """Sets of units compare and combine with sets of units only; membership needs an integer."""
    ours = NodeSet.of([1, 2])

    assert ours != {1, 2}
    assert "1" not in ours
    for operation in ("__or__", "__and__", "__sub__", "__le__"):
        assert getattr(ours, operation)({1}) is NotImplemented


def test_a_set_is_a_slotted_value():
    """No attribute can be added, the repr contains the set's text, pickling keeps the value."""
    units = NodeSet.parse("8-19 0-3")

    assert repr(units) == "NodeSet.parse('0-3 8-19')"
    assert pickle.loads(pickle.dumps(units)) == units  # noqa: S301 - our own bytes
    with pytest.raises(AttributeError):
        units.intervals = ()
    with pytest.raises(AttributeError):
        units.extra = 1
