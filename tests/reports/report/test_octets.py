"""Columns of cells: keys, digits and octets at the edges, and more rows than one block holds."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipistrelle.runs.folders import octets
from pipistrelle.runs.folders.cells import TextColumn
from pipistrelle.runs.folders.octets import blocks_of, digits_before, last_places, rectangle, words_of

KEYS = st.lists(st.integers(0, 30).map(lambda key: key << 59 | key >> 2), max_size=60)


@settings(max_examples=60)
@given(KEYS, KEYS)
@example(list(range(40)) * 2, list(range(0, 40, 3)) * 2)
def test_keys_are_found_at_their_last_place(mine, theirs):
    """However many share a slot at first; -1 where one is not."""
    known = {key: place for place, key in enumerate(theirs)}

    found = last_places(np.array(mine, dtype=np.uint64), np.array(theirs, dtype=np.uint64))

    assert found.tolist() == [known.get(key, -1) for key in mine]


@pytest.mark.parametrize("turns", [0, 1])
def test_keys_that_do_not_part_are_sorted(monkeypatch, turns):
    """Where they share slots again and again, which a log could be made for, the answer is the same."""
    monkeypatch.setattr(octets, "_TURNS", turns)
    keys = np.arange(5000, dtype=np.uint64) % 4000

    assert last_places(keys, keys).tolist() == [*range(4000, 5000), *range(1000, 4000), *range(4000, 5000)]
    assert last_places(keys + np.uint64(4000), keys).tolist() == [-1] * 5000


@settings(max_examples=60)
@given(st.binary(min_size=1, max_size=40), st.integers(1, 24))
def test_a_rectangle_reaches_beyond_both_ends(text, width):
    """The content is at the right position, wherever a row begins."""
    begins = np.arange(-width, len(text) + 1)

    found = rectangle(np.frombuffer(text, dtype=np.uint8), begins, width)

    for begin, row in zip(begins.tolist(), found, strict=True):
        inside = range(max(begin, 0), min(begin + width, len(text)))
        assert [row[place - begin] for place in inside] == [text[place] for place in inside]


@settings(max_examples=60)
@given(st.lists(st.binary(max_size=20), min_size=1, max_size=8))
def test_words_are_padded_with_zeros(texts):
    """A text in words of eight is the text and zeros, at the edges of a file, too."""
    lengths = np.array([len(text) for text in texts])
    whole = np.frombuffer(b"".join(texts), dtype=np.uint8)

    words = words_of(whole, np.cumsum(lengths) - lengths, lengths, 20)

    assert [row.tobytes() for row in words] == [text.ljust(24, b"\0") for text in texts]


def test_digits_are_read_before_places():
    """Up to sixteen at once, any number in total; None if other characters are among them."""
    text = np.frombuffer(b"1234567890123456,7/:", dtype=np.uint8)

    assert digits_before(text, np.array([16, 16, 3, 18, 5]), np.array([16, 9, 3, 1, 0])).tolist() == [
        *(1234567890123456, 890123456, 123, 7, 0)
    ]
    for end in (17, 19, 20):
        assert digits_before(text, np.array([end, 3]), np.array([1, 1])) is None


def test_columns_longer_than_a_block_are_the_same_texts():
    """Tens of thousands of cells, one of them longer than a block: flat, marked, numbered and searched."""
    texts = [str(number * 7919 % 30011) for number in range(30000)]
    texts[20000] = "9" * 70000
    cells = TextColumn.of(texts)
    mixed = cells.take(np.arange(30000)[::-1])

    assert [len(range(*rows.indices(30000))) > 0 for rows in blocks_of(cells.lengths)].count(True) == 4
    assert mixed.flat()[0].tobytes() == "".join(texts[::-1]).encode()
    assert mixed.flat(b"|")[0].tobytes() == "".join(f"{text}|" for text in texts[::-1]).encode()
    some = TextColumn.of(texts[:20000])
    read = some.numbers()
    assert read is not None
    assert read[0].tolist() == list(map(float, texts[:20000]))
    again = some.take(np.arange(40000) % 20000)
    assert again.codes()[1].tolist() == [*range(20000)] * 2
    assert again.places_in(some).tolist() == [*range(20000)] * 2
