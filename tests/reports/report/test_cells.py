"""TextColumn as bytes equals the texts that it encodes, for any content."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipistrelle.runs.folders.cells import TextColumn

TEXTS = st.lists(st.text("ab!#é0\0 ", max_size=20), max_size=12)


@settings(max_examples=60)
@given(TEXTS, TEXTS)
@example([], ["a"])
@example(["a"], [])
@example(["a", "a\0"], ["a\0", "a", "a"])
def test_columns_are_lists_of_texts(one, other):
    """Lengths, cells, slices, chosen rows, joined columns, comparisons and positions equal those of the lists."""
    cells, others = TextColumn.of(one), TextColumn.of(other)
    assert list(cells) == [cells[place] for place in range(len(cells))] == one
    assert list(cells[1:3]) == one[1:3]
    rows = list(range(-1, len(one), 2))
    assert list(cells.take(np.array(rows, dtype=np.int64))) == ["" if row < 0 else one[row] for row in rows]
    assert list(cells.behind(others)) == one + other
    count = min(len(one), len(other))
    assert list(cells[:count].joined(others[:count], "!")) == [
        f"{mine}!{theirs}" for mine, theirs in zip(one[:count], other[:count], strict=True)
    ]
    names, codes = cells.codes()
    assert names == list(dict.fromkeys(one))
    assert [names[code] for code in codes.tolist()] == one
    known = {text: place for place, text in enumerate(other)}
    assert cells.places_in(others).tolist() == [known.get(text, -1) for text in one]
    for text in {*one[:2], "", "a"}:
        assert cells.equal(text).tolist() == [mine == text for mine in one]
    assert cells.counted("!").tolist() == [text.count("!") for text in one]
    assert list(cells.mapped(str.upper)) == [text.upper() for text in one]
    assert cells.plain(10) == all(len(text) <= 10 and all(" " <= letter <= "~" for letter in text) for text in one)


@settings(max_examples=60)
@given(
    st.lists(st.one_of(st.floats(-1e8, 1e8).map(lambda value: f"{value:.6f}"), st.integers(-(10**14), 10**14).map(str)))
)
@example(["0.1", "", "-0.000001", "123456789.123456", "007", "5."])
def test_numbers_are_those_that_float_reads(texts):
    """To the last bit; an empty cell holds none."""
    read = TextColumn.of(texts).numbers()

    assert read is not None
    found, empty = read
    assert empty.tolist() == [not text for text in texts]
    assert [value for value, none in zip(found.tolist(), empty.tolist(), strict=True) if not none] == [
        float(text) for text in texts if text
    ]


@pytest.mark.parametrize("text", ["1e5", "nan", "-", ".", "1.2.3", "1-2", "+1", " 1", "1234567890.1234567", "é"])
def test_numbers_that_are_not_plain_are_left_to_others(text):
    """What only `float` can judge is not read here."""
    assert TextColumn.of(["1", text]).numbers() is None
