"""Columns of table cells.

They are kept as bytes, to read, compare and sort many cells at once.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final, overload

import numpy as np
from numpy.typing import NDArray

from pipistrelle.runs.folders.octets import (
    Ints,
    Keys,
    Octets,
    blocks_of,
    digits_before,
    keys_of,
    last_places,
    words_of,
)

Floats = NDArray[np.float64]
#: number of cells to parse together, small enough for a processor's cache
_ROWS: Final = 1 << 13
#: maximum bytes of a column with all cells padded to the longest cell; larger columns are read cell by cell
_WIDEST: Final = 1 << 27
#: maximum digits of an integer that a double holds exactly
_EXACT: Final = 15


class TextColumn(Sequence[str]):
    """A column of UTF-8 texts.

    Cell ``i`` is ``octets[begins[i] : begins[i] + lengths[i]]``; it is decoded only when it is read.
    """

    def __init__(self, octets: Octets, begins: Ints, lengths: Ints) -> None:
        self.octets = octets
        self.begins = begins
        self.lengths = lengths

    @classmethod
    def of(cls, texts: Sequence[str]) -> "TextColumn":
        """Make a column from texts."""
        if isinstance(texts, TextColumn):
            return texts
        whole = "".join(texts)
        if whole.isascii():
            lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
            octets = whole.encode("ascii")
        else:
            parts = [text.encode("utf-8", "surrogatepass") for text in texts]
            lengths = np.fromiter(map(len, parts), dtype=np.int64, count=len(parts))
            octets = b"".join(parts)
        return cls(np.frombuffer(octets, dtype=np.uint8), np.cumsum(lengths) - lengths, lengths)

    def __len__(self) -> int:
        return len(self.begins)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> "TextColumn": ...
    def __getitem__(self, at: int | slice) -> "str | TextColumn":
        if isinstance(at, slice):
            return TextColumn(self.octets, self.begins[at], self.lengths[at])
        begin = int(self.begins[at])
        return self.octets[begin : begin + int(self.lengths[at])].tobytes().decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        flat, begins = self.flat()
        octets = flat.tobytes()
        ends = begins + self.lengths
        if octets.isascii():
            text = octets.decode("ascii")
            return iter([text[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)])
        spans = zip(begins.tolist(), ends.tolist(), strict=True)
        return iter([octets[begin:end].decode("utf-8", "surrogatepass") for begin, end in spans])

    def take(self, rows: NDArray[np.integer[Any]]) -> "TextColumn":
        """Return a column of this column's cells at the indices ``rows``.

        The new cells are in the order of ``rows``. The index -1 gives "".
        """
        if not len(self):
            return TextColumn(self.octets, np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64))
        return TextColumn(self.octets, self.begins[rows], np.where(rows < 0, 0, self.lengths[rows]))

    def flat(self, mark: bytes = b"") -> tuple[Octets, Ints]:
        """Return the bytes of all cells, one after the other, and the offset of each cell.

        Args:
            mark: a separator of at most one byte, added after each cell.
        """
        steps = self.lengths + len(mark)
        begins = np.cumsum(steps) - steps
        total = int(steps.sum())
        if not total:
            return np.zeros(0, dtype=np.uint8), begins
        if not mark and int(self.begins[0]) == 0 and total == len(self.octets) and (self.begins == begins).all():
            return self.octets, begins
        found = np.empty(total, dtype=np.uint8)
        for rows in blocks_of(steps):
            first = int(begins[rows.start])
            at = np.repeat(self.begins[rows] - begins[rows] + first, steps[rows])
            at += np.arange(len(at))
            if mark:
                ends = begins[rows] + self.lengths[rows] - first
                at[ends] = 0
                part = self.octets[at] if len(self.octets) else np.zeros(len(at), dtype=np.uint8)
                part[ends] = mark[0]
            else:
                part = self.octets[at]
            found[first : first + len(at)] = part
        return found, begins

    def joined(self, other: "TextColumn", mark: str) -> "TextColumn":
        """Join each cell with the cell of another column in its row.

        The text ``mark`` is in between.
        """
        mine, mark_octets = self.lengths, np.frombuffer(mark.encode(), dtype=np.uint8)
        lengths = mine + len(mark_octets) + other.lengths
        begins = np.cumsum(lengths) - lengths
        found = np.empty(int(lengths.sum()), dtype=np.uint8)
        for cells, offset in ((self, np.zeros_like(mine)), (other, mine + len(mark_octets))):
            flat, at = cells.flat()
            found[np.arange(len(flat)) + np.repeat(begins + offset - at, cells.lengths)] = flat
        for place, octet in enumerate(mark_octets.tolist()):
            found[begins + mine + place] = octet
        return TextColumn(found, begins, lengths)

    def mapped(self, change: Callable[[str], str]) -> "TextColumn":
        """Apply ``change`` to all texts, calling it once per distinct text."""
        names, codes = self.codes()
        return TextColumn.of([change(name) for name in names]).take(codes)

    def behind(self, other: "TextColumn") -> "TextColumn":
        """Return a column with this column's cells, followed by the other column's cells."""
        octets = np.concatenate([self.octets, other.octets])
        begins = np.concatenate([self.begins, other.begins + len(self.octets)])
        return TextColumn(octets, begins, np.concatenate([self.lengths, other.lengths]))

    # -- contents -----------------------------------------------------------------------------------------------------

    def equal(self, text: str) -> NDArray[np.bool_]:
        """Return whether each cell equals ``text``, shape (cells,)."""
        octets = np.frombuffer(text.encode(), dtype=np.uint8)
        found: NDArray[np.bool_] = self.lengths == len(octets)
        if not len(octets):
            return found
        wanted = words_of(octets, np.zeros(1, dtype=np.int64), np.array([len(octets)]), len(octets))
        at = np.flatnonzero(found)
        for begin in range(0, len(at), _ROWS):
            rows = at[begin : begin + _ROWS]
            words = words_of(self.octets, self.begins[rows], self.lengths[rows], len(octets))
            found[rows] = (words == wanted).all(axis=1)
        return found

    def count(self, value: Any) -> int:
        """Return how many cells equal ``value``."""
        return int(self.equal(value).sum()) if isinstance(value, str) else 0

    def counted(self, octet: str) -> Ints:
        """Return how often a character occurs in each cell, shape (cells,).

        ``octet`` is the character, one byte.
        """
        flat, begins = self.flat()
        before = np.concatenate([[0], np.cumsum(flat == ord(octet))])
        found: Ints = before[begins + self.lengths] - before[begins]
        return found

    @cached_property
    def longest(self) -> int:
        """Return the length of the longest cell in bytes."""
        return int(self.lengths.max(initial=0))

    def plain(self, most: int) -> bool:
        """Return whether all cells are printable ASCII of at most ``most`` characters."""
        if self.longest > most:
            return False
        flat, _ = self.flat()
        return bool(((flat >= 0x20) & (flat < 0x7F)).all())

    def numbers(self) -> tuple[Floats, NDArray[np.bool_]] | None:
        """Parse all cells as numbers.

        A number is decimal, with at most 15 digits and an optional minus sign. Each result is the nearest double.

        Returns:
            The numbers (NaN for an empty cell), and whether each cell is empty, both of shape (cells,). None if a cell
            is neither empty nor such a number.
        """
        count, width = len(self), self.longest
        if width > _EXACT + 2:
            return None
        value, digits = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        decimals = np.full(count, -1, dtype=np.int64)
        if not count or not width:
            return np.full(count, np.nan), np.ones(count, dtype=np.bool_)
        ends = self.begins + self.lengths
        minus = (self.lengths > 0) & (self.octets[np.minimum(self.begins, len(self.octets) - 1)] == ord("-"))
        aligned = self._aligned(minus)
        if aligned is not None:
            return aligned
        # Go from the last character to the first, for all cells at once. `scale` is the power of ten of the next digit.
        scale = np.ones(count, dtype=np.int64)
        least = self.begins + minus
        for back in range(1, width + 1):
            at = ends - back
            there = at >= least
            octet = self.octets[np.where(there, at, 0)]
            digit = there & (octet >= ord("0")) & (octet <= ord("9"))
            dot = there & (octet == ord("."))
            if (there & ~digit & ~dot).any() or (dot & (decimals >= 0)).any():
                return None
            value += np.where(digit, (octet.astype(np.int64) - ord("0")) * scale, 0)
            decimals[dot] = digits[dot]
            digits += digit
            scale = np.where(digit & (digits < _EXACT + 1), scale * 10, scale)
        empty = self.lengths == 0
        if (digits > _EXACT).any() or (~empty & (digits == 0)).any():
            return None
        found = value / 10.0 ** np.maximum(decimals, 0)
        found[minus] = -found[minus]
        found[empty] = np.nan
        return found, empty

    def _aligned(self, minus: NDArray[np.bool_]) -> tuple[Floats, NDArray[np.bool_]] | None:
        """Return the result of `numbers` for cells with equally many decimal places.

        Return None if their numbers of decimal places differ.
        """
        last = self[int(np.argmax(self.lengths > 0))]
        point = len(last) - last.index(".") if "." in last else 0
        decimals = max(point - 1, 0)
        empty = self.lengths == 0
        value = np.empty(len(self), dtype=np.int64)
        for begin in range(0, len(self), _ROWS):
            rows = slice(begin, begin + _ROWS)
            ends, there = self.begins[rows] + self.lengths[rows], ~empty[rows]
            room = (self.lengths[rows] - minus[rows])[there]
            if (room - (point > 0) > _EXACT).any() or (room < point + 1).any():
                return None
            if point and (self.octets[(ends - point)[there]] != ord(".")).any():
                return None
            whole = digits_before(
                self.octets, ends - point, np.where(there, self.lengths[rows] - minus[rows] - point, 0)
            )
            parts = digits_before(self.octets, ends, np.where(there, decimals, 0)) if decimals else 0
            if whole is None or parts is None:
                return None
            value[rows] = whole * 10**decimals + parts
        found = value / 10.0**decimals
        found[minus] = -found[minus]
        found[empty] = np.nan
        return found, empty

    def codes(self) -> tuple[list[str], Ints]:
        """Return the distinct texts by first use, and each cell's index among these texts."""
        return self._codes

    @cached_property
    def _codes(self) -> tuple[list[str], Ints]:
        keys = self._keys(self.longest)
        if keys is not None and len(keys):
            first = len(keys) - 1 - last_places(keys, keys[::-1])
            if self._same(np.arange(len(self)), self, first).all():
                new = first == np.arange(len(self))
                return list(self.take(np.flatnonzero(new))), (np.cumsum(new) - 1)[first]
        numbered: dict[str, int] = {}
        places = [numbered.setdefault(text, len(numbered)) for text in self]
        return list(numbered), np.array(places, dtype=np.int64)

    def places_in(self, others: "TextColumn") -> Ints:
        """Return, for each cell, the highest index of an equal text in ``others``.

        The index is -1 if there is none.
        """
        width = max(self.longest, others.longest)
        mine, theirs = self._keys(width), others._keys(width)
        if mine is not None and theirs is not None:
            found = last_places(mine, theirs)
            met = np.flatnonzero(found >= 0)
            if self._same(met, others, found[met]).all():
                return found
        known = {text: place for place, text in enumerate(others)}
        return np.array([known.get(text, -1) for text in self], dtype=np.int64).reshape(len(self))

    def _keys(self, width: int) -> Keys | None:
        """Return a hash of each cell, or None if the hashes need too much memory.

        Hashes of two columns are comparable only if made with the same ``width``, at least the longest cell's length.
        """
        if width * len(self) > _WIDEST:
            return None
        return keys_of(self.octets, self.begins, self.lengths, width)

    def _same(
        self, rows: NDArray[np.integer[Any]], others: "TextColumn", their: NDArray[np.integer[Any]]
    ) -> NDArray[np.bool_]:
        """Return, for each i, whether two cells are equal.

        They are the cell ``rows[i]`` of this column and the cell ``their[i]`` of ``others``.
        """
        wide = max(self.longest, others.longest)
        same: NDArray[np.bool_] = self.lengths[rows] == others.lengths[their]
        for begin in range(0, len(rows), _ROWS):
            part = slice(begin, begin + _ROWS)
            mine, theirs = (
                words_of(cells.octets, cells.begins[some], cells.lengths[some], wide)
                for cells, some in ((self, rows[part]), (others, their[part]))
            )
            same[part] &= (mine == theirs).all(axis=1)
        return same
