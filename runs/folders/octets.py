"""Byte operations on columns: copy cells, parse digits, look up hashes.

They work in blocks that fit a processor's cache, because allocating new memory would take longer than the work.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Octets = NDArray[np.uint8]
Ints = NDArray[np.int64]
Keys = NDArray[np.uint64]
#: number of rows, or of bytes, processed together
_ROWS: Final = 1 << 13
_OCTETS: Final = 1 << 16
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(29)
#: `last_places` rehashes at most this often; then it sorts instead
_TURNS: Final = 8
_WORD: Final = 8
#: masks that keep the first 0 to 8 bytes of a word, and the last 0 to 8 bytes
_FIRST: Final = np.frombuffer(b"".join(b"\xff" * kept + b"\0" * (_WORD - kept) for kept in range(9)), dtype="<u8")
_LAST: Final = np.frombuffer(b"".join(b"\0" * (_WORD - kept) + b"\xff" * kept for kept in range(9)), dtype="<u8")
_ZEROS: Final = np.uint64(0x3030303030303030)


def blocks_of(lengths: Ints) -> Iterator[slice]:
    """Yield slices of consecutive cells: up to 64 KiB each, or a single longer cell."""
    ends = np.cumsum(lengths)
    begin, count = 0, len(lengths)
    while begin < count:
        before = int(ends[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(ends, before + _OCTETS, "right")), begin + 1)
        yield slice(begin, min(end, begin + _OCTETS))
        begin = min(end, begin + _OCTETS)


def rectangle(octets: Octets, begins: NDArray[np.integer[Any]], width: int) -> Octets:
    """Copy ``width`` bytes from each offset in ``begins``, shape (offsets, width).

    Bytes beyond the ends of ``octets`` have arbitrary values.
    """
    last = len(octets) - width
    if last < 0:
        octets, last = np.concatenate([octets, np.zeros(-last, dtype=np.uint8)]), 0
    # A view with an element of `width` bytes at every byte, so that numpy copies each row at once.
    cells = np.ndarray((last + 1,), f"V{width}", buffer=octets, strides=(1,))
    found: Octets = cells[np.clip(begins, 0, last)].view(np.uint8).reshape(len(begins), width)
    rows = np.flatnonzero(begins > last)
    if len(rows):
        behind = np.concatenate([octets[last:], np.zeros(width, dtype=np.uint8)])
        found[rows] = rectangle(behind, np.minimum(begins[rows] - last, width), width)
    rows = np.flatnonzero(begins < 0)
    if len(rows):
        before = np.concatenate([np.zeros(width, dtype=np.uint8), octets[:width]])
        found[rows] = rectangle(before, np.maximum(begins[rows] + width, 0), width)
    return found


def words_of(octets: Octets, begins: NDArray[np.integer[Any]], lengths: Ints, width: int) -> Keys:
    """Return texts as 8-byte integers, zero-padded, shape (texts, integers).

    Args:
        width: at least the longest text's length in bytes.
    """
    count = max(1, (width + _WORD - 1) // _WORD)
    if not len(octets):
        return np.zeros((len(begins), count), dtype="<u8")
    found = rectangle(octets, begins, _WORD * count).view("<u8")
    least = int(lengths.min(initial=width))
    for place in range(least // _WORD, count):
        found[:, place] &= _FIRST[np.clip(lengths - _WORD * place, 0, _WORD)]
    return found


def keys_of(octets: Octets, begins: Ints, lengths: Ints, width: int) -> Keys:
    """Return a hash of each text in ``octets``.

    With the same ``width``, equal texts have equal hashes.
    """
    found = lengths.astype(np.uint64)
    for begin in range(0, len(begins), _ROWS):
        rows = slice(begin, begin + _ROWS)
        words = words_of(octets, begins[rows], lengths[rows], width)
        keys = found[rows]
        for column in words.T:
            keys ^= column
            keys *= _MIX
            keys ^= keys >> _SHIFT
    return found


def digits_before(octets: Octets, ends: Ints, counts: Ints) -> Ints | None:
    """Parse numbers, each of which ends just before an offset in ``ends``.

    Args:
        counts: the number of digits of each number, at most 16.

    Returns:
        The numbers, or None if a byte in one of them is not a digit.
    """
    value = np.zeros(len(ends), dtype=np.uint64)
    for back in range(0, int(counts.max(initial=0)), _WORD):
        word = rectangle(octets, ends - (back + _WORD), _WORD).view("<u8")[:, 0]
        word ^= _ZEROS
        word &= _LAST[np.clip(counts - back, 0, _WORD)]
        if (((word + np.uint64(0x0606060606060606)) | word) & np.uint64(0xF0F0F0F0F0F0F0F0)).any():
            return None
        # Combine neighbouring digits to pairs, pairs to fours, and fours to eights.
        for times, bits, kept in ((10, 8, 0x00FF00FF00FF00FF), (100, 16, 0x0000FFFF0000FFFF), (10000, 32, 0xFFFFFFFF)):
            word = (word * np.uint64(times) + (word >> np.uint64(bits))) & np.uint64(kept)
        value += word * np.uint64(10**back)
    return value.astype(np.int64)


def last_places(mine: Keys, theirs: Keys) -> Ints:
    """Return, for each of ``mine``, the highest index of an equal value in ``theirs``.

    The index is -1 if there is none.
    """
    found = np.full(len(mine), -1, dtype=np.int64)
    looking, left = np.arange(len(mine)), np.arange(len(theirs))
    my, their = mine, theirs
    for _ in range(_TURNS):
        if not len(looking) or not len(left):
            return found
        # Each key goes into the slot of its highest bits. The last key stays; all other keys of the slot try again.
        shift = np.uint64(63 - len(left).bit_length())
        my, their = my * _MIX, their * _MIX
        table = np.full(1 << (64 - int(shift)), -1, dtype=np.int32 if len(theirs) < 1 << 31 else np.int64)
        slots = their >> shift
        table[slots] = np.arange(len(left))
        again = their[table[slots]] != their
        at = table[my >> shift]
        there = at >= 0
        met = there & (their[at] == my)
        found[looking[met]] = left[at[met]]
        there &= ~met
        looking, left = looking[there], left[again]
        my, their = my[there], their[again]
        my, their = my ^ (my >> _SHIFT), their ^ (their >> _SHIFT)
    if not len(looking) or not len(left):
        return found
    order = np.argsort(their, kind="stable")
    at = np.searchsorted(their[order], my, side="right") - 1
    met = (at >= 0) & (their[order[np.maximum(at, 0)]] == my)
    found[looking[met]] = left[order[at[met]]]
    return found
