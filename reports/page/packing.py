"""Pack columns of numbers and texts into compressible bytes for web/data.js.

Numbers are stored as integers, in millionths if a column has fractions, optionally as differences from the previous
number. The sign is in the lowest bit. All lowest bytes come first, then all second lowest, and so on, so that similar
bytes are adjacent.
"""

import base64
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipistrelle.runs.folders.cells import TextColumn
from pipistrelle.runs.folders.octets import blocks_of, digits_before

Ints = NDArray[np.int64]
#: columns with fractions are stored in this unit, because the outputs have six decimals
_MILLIONTHS: Final = 1_000_000
#: maximum digits of an integer that a double holds exactly
_DIGITS: Final = 15
#: stands for a number taken out of a text; no text of the outputs contains it unquoted
_HOLE: Final = 0
#: separates texts
_END: Final = b"\n"


class ColumnPack:
    """Packed columns of numbers and texts, one after another.

    Equal columns are stored once. `numbers`, `names` and `texts` return the position and format of the packed column,
    for the page to read.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._length = 0
        self._known: dict[bytes, int] = {}

    def numbers(self, values: ArrayLike, *, deltas: bool = False) -> dict[str, Any]:
        """Pack finite numbers, shape (n,), with six decimals.

        Args:
            deltas: whether to store the differences from the previous number, which are smaller in an ascending column.
        """
        floats = np.asarray(values)
        whole: Ints = np.rint(floats).astype(np.int64)
        scale = 1
        if floats.dtype.kind == "f" and not (whole == floats).all():
            scale = _MILLIONTHS
            whole = np.rint(floats * scale).astype(np.int64)
        if deltas:
            whole = np.diff(whole, prepend=0)
        folded = ((whole << 1) ^ (whole >> 63)).astype("<u8")
        width = max(1, (int(folded.max(initial=0)).bit_length() + 7) // 8)
        planes = np.ascontiguousarray(folded.view(np.uint8).reshape(-1, 8)[:, :width].T).tobytes()
        return {"at": self._put(planes), "n": len(whole), "width": width, "scale": scale, "deltas": deltas}

    def names(self, texts: Sequence[str]) -> dict[str, Any]:
        """Pack texts with few distinct values: the distinct texts, and an index per text."""
        names, places = TextColumn.of(texts).codes()
        return {"names": names, "of": self.numbers(places)}

    def texts(self, texts: Sequence[str]) -> dict[str, Any]:
        """Pack texts that differ mainly in integers, such as job ids."""
        cells = TextColumn.of(texts)
        flat, begins = cells.flat(_END)
        if (flat == _HOLE).any() or np.count_nonzero(flat == ord(_END)) != len(cells):
            return {"shapes": self.names(cells), "numbers": self.numbers(np.zeros(0))}
        firsts, ends = _whole_numbers(flat)
        numbers = TextColumn(flat, firsts, ends - firsts).numbers()
        assert numbers is not None  # no number has more than 15 digits
        gone = np.zeros(len(flat) + 1, dtype=np.int64)  # marks all digits of each number except the first digit
        gone[firsts + 1] += 1
        gone[ends] -= 1
        stays = np.cumsum(gone[:-1]) == 0
        holed = flat.copy()
        holed[firsts] = _HOLE
        before = np.concatenate([[0], np.cumsum(stays)])
        shapes = TextColumn(holed[stays], before[begins], before[begins + cells.lengths] - before[begins])
        found = numbers[0].astype(np.int64)
        return {"shapes": self.names(shapes), "numbers": self.numbers(found, deltas=True)}

    def done(self) -> str:
        """Return all packed columns, compressed (RFC 1951), as base64."""
        press = zlib.compressobj(4, zlib.DEFLATED, -15)
        packed = b"".join([*(press.compress(part) for part in self._parts), press.flush()])
        return base64.b64encode(packed).decode("ascii")

    def _put(self, part: bytes) -> int:
        if part not in self._known:
            self._known[part] = self._length
            self._parts.append(part)
            self._length += len(part)
        return self._known[part]


def _whole_numbers(flat: NDArray[np.uint8]) -> tuple[Ints, Ints]:
    """Return begin and end of each integer that a double represents exactly.

    Integers with leading zeros, or inside a word or a fraction, are left out. ``flat`` has a separator between texts,
    so no number spans two texts.
    """
    digits = (flat >= ord("0")) & (flat <= ord("9"))
    edge = np.zeros(1, dtype=np.bool_)
    firsts = np.flatnonzero(digits & ~np.concatenate([edge, digits[:-1]]))
    ends = np.flatnonzero(digits & ~np.concatenate([digits[1:], edge])) + 1
    before, behind = flat[np.maximum(firsts - 1, 0)], flat[np.minimum(ends, len(flat) - 1)]
    letters = before | 0x20
    word = ((letters >= ord("a")) & (letters <= ord("z"))) | (before == ord("_")) | (before == ord("."))
    good = ~(word & (firsts > 0)) & (behind != ord(".")) & (ends - firsts <= _DIGITS)
    good &= (flat[firsts] != ord("0")) | (ends - firsts == 1)
    return firsts[good], ends[good]


def intervals(texts: Iterable[str]) -> tuple[Ints, Ints, Ints]:
    """Parse the intervals of units in texts such as ``0-3 8-19``.

    Returns:
        The number of intervals per text, and the first and last unit of each interval.
    """
    cells = TextColumn.of(texts if isinstance(texts, TextColumn) else list(texts))
    # Allocations are the longest texts, so parse blocks of them that fit the processor's cache.
    parts = [_intervals(cells[rows]) for rows in blocks_of(cells.lengths)] or [_intervals(cells)]
    counts, first, last = map(np.concatenate, zip(*parts, strict=True))
    return counts, first, last


def _intervals(cells: TextColumn) -> tuple[Ints, Ints, Ints]:
    """Parse the intervals in texts such as ``0-3 8-19``.

    The result is that of `intervals`.
    """
    whole, begins = cells.flat(b" ")
    blanks = np.concatenate([[0], np.cumsum(whole == ord(" "))])
    counts = np.where(cells.lengths > 0, blanks[begins + cells.lengths] - blanks[begins] + 1, 0)
    digits = (whole >= ord("0")) & (whole <= ord("9"))
    ends = np.flatnonzero(digits[:-1] & ~digits[1:])
    begins = np.flatnonzero(digits & ~np.concatenate([[False], digits[:-1]]))
    values = digits_before(whole, ends + 1, ends - begins + 1)
    assert values is not None  # these bytes are digits
    ranges = whole[ends + 1] == ord("-")
    seconds = np.zeros(len(values), dtype=np.bool_)
    seconds[1:] = ranges[:-1]
    first = values[~seconds]
    last = first.copy()
    last[ranges[~seconds]] = values[seconds]
    return counts, first, last
