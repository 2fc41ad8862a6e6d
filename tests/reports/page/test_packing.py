"""Columns in a page: packed data is restored, byte for byte as web/data.js reads it."""

import base64
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.reports.page.packing import ColumnPack, intervals


def unpacked(pack: ColumnPack) -> bytes:
    """Return the bytes of a pack."""
    return zlib.decompress(base64.b64decode(pack.done()), -15)


def numbers(data: bytes, place: dict) -> list[float]:
    """Return a column of numbers, as the page reads it."""
    found, before = [], 0
    for row in range(place["n"]):
        folded = sum(data[place["at"] + plane * place["n"] + row] << 8 * plane for plane in range(place["width"]))
        value = -(folded + 1) // 2 if folded % 2 else folded // 2
        if place["deltas"]:
            before = value = value + before
        found.append(value / place["scale"])
    return found


def texts(data: bytes, place: dict) -> list[str]:
    """Return a column of texts, as the page reads it."""
    inside = iter(numbers(data, place["numbers"]))
    found = []
    for shape in numbers(data, place["shapes"]["of"]):
        first, *rest = place["shapes"]["names"][int(shape)].split("\0") if place["numbers"]["n"] else [
            place["shapes"]["names"][int(shape)]
        ]  # fmt: skip
        found.append(first + "".join(f"{int(next(inside))}{piece}" for piece in rest))
    return found


@settings(max_examples=40)
@given(st.lists(st.integers(-(10**9), 2 * 10**9)), st.booleans(), st.booleans())
def test_numbers_round_trip(values, fractions, deltas):
    """Whole numbers and numbers of six decimals, as steps or not."""
    column = np.array(values, dtype=np.float64) + (0.123457 if fractions else 0.0)
    pack = ColumnPack()
    pack.numbers([1.0, 2.0])
    place = pack.numbers(column, deltas=deltas)

    assert numbers(unpacked(pack), place) == pytest.approx(column.tolist(), abs=1e-6)
    assert place["scale"] == (1_000_000 if fractions and values else 1)


@settings(max_examples=40)
@given(st.lists(st.text("w0!17 <9.x\0", max_size=8)))
def test_texts_round_trip(column):
    """Ids, reasons with ids in them, numbers with leading zeros, holes in a text."""
    pack = ColumnPack()
    place = pack.texts(column)

    assert texts(unpacked(pack), place) == column


def test_equal_columns_stand_once():
    """Runs of the same jobs share equal columns."""
    pack = ColumnPack()

    assert pack.numbers([3.0, 4.0]) == pack.numbers([3.0, 4.0])


@settings(max_examples=40)
@given(st.lists(st.sets(st.integers(0, 3000), max_size=12)))
def test_intervals_are_the_units(sets):
    """Texts of units, as the outputs have them, become intervals; an empty one has none."""
    counts, first, last = intervals(str(NodeSet.of(units)) if units else "" for units in sets)
    spans = iter(zip(first.tolist(), last.tolist(), strict=True))

    for units, count in zip(sets, counts.tolist(), strict=True):
        assert {unit for _, (low, high) in zip(range(count), spans) for unit in range(low, high + 1)} == units  # noqa: B905
