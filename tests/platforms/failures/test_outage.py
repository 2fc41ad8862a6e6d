"""Outages as columns, their union, and their CSV form."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.platforms.failures.outage import Outage, OutageError, Outages, csv_chunks, merge, seconds_text

ROWS = [Outage(3, 5.0, 6.0), Outage(0, 5.0, 9.5, "fan"), Outage(1, 2.0, math.inf, "power", 1.0)]


def test_outages_are_sorted_by_time_and_node():
    """Whatever their order, they are sorted by (down, node), and equal ones compare equal."""
    outages = Outages.of(ROWS)

    assert list(outages) == [ROWS[2], ROWS[1], ROWS[0]]
    assert outages[0] == ROWS[2]
    assert outages == Outages.of(reversed(ROWS))
    assert outages != Outages.of(ROWS[:2])
    assert len(Outages.of([])) == 0


def test_columns_cannot_be_changed():
    """Outages are values: their arrays are read-only."""
    with pytest.raises(ValueError, match="read-only"):
        Outages.of(ROWS).down[0] = 1.0


@pytest.mark.parametrize(
    ("row", "fragment"),
    [
        (Outage(-1, 1, 2), "the number of a node is negative"),
        (Outage(0, -1, 2), "begin is out of range"),
        (Outage(0, math.nan, 2), "begin is out of range"),
        (Outage(0, 2, 2), "ends no later than it begins: expected up later than down, found down = 2.0, up = 2.0"),
        (Outage(0, 2, math.nan), "ends no later"),
        (Outage(0, 2, 3, "a\nb"), "a cause is not valid"),
        (Outage(0, 2, 3, ""), "a cause is not valid"),
        (Outage(0, 2, 3, " fan"), "a cause is not valid"),
        (Outage(0, 2, 3, "fan", 2.5), "announced too late"),
    ],
)
def test_wrong_outages_are_refused(row, fragment):
    """Each rule has one message that names the outage."""
    with pytest.raises(OutageError) as caught:
        Outages.of([row])

    assert fragment in str(caught.value)


def test_overlaps_are_refused_by_name():
    """Two outages of one node may touch but not overlap; the message has node and times."""
    Outages.of([Outage(2, 1, 3), Outage(2, 3, 4)])
    with pytest.raises(OutageError) as caught:
        Outages.of([Outage(2, 1, 3), Outage(7, 1, 9), Outage(2, 2.5, 4)])

    assert str(caught.value) == (
        "node 2: two outages of one node overlap: expected an end before the next begin, "
        "found down from 1.0 to 3.0 s and from 2.5 to 4.0 s. Make them one outage."
    )


def test_columns_of_different_lengths_are_refused():
    """Each column has one entry per outage."""
    with pytest.raises(OutageError, match="differ in length"):
        Outages([1, 2], [0.0], [1.0], ["x"])


def test_unknown_nodes_are_refused_by_name():
    """The first outage of a node that the machine lacks is named, with the number of other such nodes."""
    outages = Outages.of([Outage(1, 1, 2), Outage(8, 3, 4), Outage(9, 3, 4)])
    outages.check_nodes(10)
    with pytest.raises(OutageError) as caught:
        outages.check_nodes(8)

    assert "outage of node 8 at 3.0 s: an outage names an unknown node: expected nodes 0 to 7" in str(caught.value)
    assert "1 more" in str(caught.value)


def test_a_union_merges_overlapping_outages():
    """Overlapping outages of a node become one with the first one's cause; adjacent ones stay separate."""
    united = merge(
        [
            Outages.of([Outage(0, 1, 4, "a", 0.5), Outage(1, 1, 2, "a")]),
            Outages.of([Outage(0, 3, 6, "b", 2.0), Outage(1, 2, 3, "b")]),
            Outages.of([Outage(0, 6, 7, "c")]),
        ]
    )

    assert list(united) == [
        Outage(0, 1, 6, "a", 1.0),
        Outage(1, 1, 2, "a"),
        Outage(1, 2, 3, "b"),
        Outage(0, 6, 7, "c"),
    ]


def test_a_part_of_the_time():
    """``between`` returns the outages that begin in a half-open span."""
    assert [row.node for row in Outages.of(ROWS).between(2.0, 5.0)] == [1]
    assert [row.node for row in Outages.of(ROWS).between(5.0, 6.0)] == [0, 3]


def test_csv_is_short_and_exact():
    """Whole seconds have no point, other doubles their fewest digits; the last column is written only when needed."""
    assert b"".join(csv_chunks(Outages.of(ROWS))).decode() == (
        "node,down,up,cause,announced\n1,2,inf,power,1\n0,5,9.5,fan,\n3,5,6,failure,\n"
    )
    assert b"".join(csv_chunks(Outages.of(ROWS[:2]))).startswith(b"node,down,up,cause\n")


@given(st.floats(0, 1e18))
def test_times_survive_as_text(value):
    """Every time is read as the same double."""
    assert float(seconds_text(value)) == value


def test_portable_functions_agree_with_the_library():
    """Logarithm, exponential and cosine are within some units in the last place."""
    from pipistrelle.platforms.failures.portable_math import cos_turns, exp, log

    x = np.random.Generator(np.random.PCG64(1)).random(100_000)
    wide = (x - 0.5) * 1300

    assert np.max(np.abs(log(x) / np.log(x) - 1)) < 1e-15
    assert np.max(np.abs(log(exp(wide)) / wide - 1)) < 1e-12
    assert np.max(np.abs(exp(wide) / np.exp(wide) - 1)) < 1e-15
    assert np.max(np.abs(cos_turns(wide) - np.cos(2 * np.pi * (wide - np.rint(wide))))) < 1e-14
