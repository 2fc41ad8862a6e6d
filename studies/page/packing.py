"""Columns of numbers and texts as bytes that compress well; web/data.js reads them.

A number is kept as a whole one, of millionths where a column has fractions, perhaps as the difference from the one
before, with its sign in the lowest bit. All lowest bytes come first, then all second lowest, and so on: bytes that are
alike stand side by side.
"""

import base64
import re
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]
#: what the outputs' six decimals are counted in
_MILLIONTHS: Final = 1_000_000
#: whole numbers as they would be written, exact in a double, and no part of a word
_NUMBER: Final = re.compile(r"(?<![0-9A-Za-z_.])(?:0|[1-9][0-9]{0,14})(?![0-9.])")
#: stands for a number in a text; no text of the outputs holds it unquoted
_HOLE: Final = "\0"
#: stands between texts
_END: Final = "\n"


class ColumnPack:
    """Packs columns one behind the other; a column that was packed before is not packed again.

    Each method returns what the page needs to find the column, plain values.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._length = 0
        self._known: dict[bytes, int] = {}

    def numbers(self, values: ArrayLike, *, deltas: bool = False) -> dict[str, Any]:
        """Pack finite numbers of at most six decimals, shape (n,); with ``deltas`` as steps from one to the next."""
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
        """Pack texts of which there are few: each one's place among the different ones, by their first use."""
        numbered: dict[str, int] = {}
        places = [numbered.setdefault(text, len(numbered)) for text in texts]
        return {"names": list(numbered), "of": self.numbers(np.array(places, dtype=np.int64))}

    def texts(self, texts: Sequence[str]) -> dict[str, Any]:
        """Pack texts of which there may be many, but which differ in whole numbers above all, as ids do."""
        whole = _END.join(texts)
        if _HOLE in whole or whole.count(_END) != max(len(texts) - 1, 0):
            return {"shapes": self.names(texts), "numbers": self.numbers(np.zeros(0))}
        shapes = _NUMBER.sub(_HOLE, whole).split(_END) if texts else []
        found = np.array(list(map(int, _NUMBER.findall(whole))), dtype=np.int64)
        return {"shapes": self.names(shapes), "numbers": self.numbers(found, deltas=True)}

    def done(self) -> str:
        """Return all that was packed: compressed (RFC 1951), as text (base64)."""
        press = zlib.compressobj(6, zlib.DEFLATED, -15)
        packed = b"".join([*(press.compress(part) for part in self._parts), press.flush()])
        return base64.b64encode(packed).decode("ascii")

    def _put(self, part: bytes) -> int:
        if part not in self._known:
            self._known[part] = self._length
            self._parts.append(part)
            self._length += len(part)
        return self._known[part]


def intervals(texts: Iterable[str]) -> tuple[Ints, Ints, Ints]:
    """Return the intervals of units in texts such as ``0-3 8-19``: how many each has, first and last units.

    Shapes (texts,), (intervals,), (intervals,). Texts are those of the outputs: numbers, ``-`` and blanks.
    """
    lines = list(texts)
    counts = np.array([text.count(" ") + 1 if text else 0 for text in lines], dtype=np.int64)
    whole = np.frombuffer((" ".join(filter(None, lines)) + " ").encode("ascii", "replace"), dtype=np.uint8)
    digits = (whole >= ord("0")) & (whole <= ord("9"))
    ends = np.flatnonzero(digits[:-1] & ~digits[1:])
    begins = np.flatnonzero(digits & ~np.concatenate([[False], digits[:-1]]))
    values = np.zeros(len(ends), dtype=np.int64)
    lengths = ends - begins + 1
    for place in range(int(lengths.max(initial=0))):
        there = lengths > place
        values[there] += (whole[ends[there] - place] - ord("0")).astype(np.int64) * 10**place
    ranges = whole[ends + 1] == ord("-")
    seconds = np.zeros(len(values), dtype=np.bool_)
    seconds[1:] = ranges[:-1]
    first = values[~seconds]
    last = first.copy()
    last[ranges[~seconds]] = values[seconds]
    return counts, first, last
