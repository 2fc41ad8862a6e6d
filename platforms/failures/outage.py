"""Outages: which node is down, when and why, for failures, logs and maintenance.

The simulator only replays outages, so they are the same under every scheduler.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.errors import OutageError
from pipistrelle.protocol.base.errors import shown

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: the cause of an outage for which no other cause is known
FAILURE: Final = "failure"
_LONGEST_CAUSE: Final = 200
_LATEST: Final = 1e18


class Outage(NamedTuple):
    """One node is down from `down` until `up`.

    Args:
        down, up: seconds after time 0, with `up` later than `down`; `up` may be infinite.
        cause: 1 to 200 printable characters, not blank at either end.
        announced: when the outage becomes known, in seconds after time 0, at most `down`; None if unannounced.
    """

    node: int
    down: float
    up: float
    cause: str = FAILURE
    announced: float | None = None


class Outages:
    """Many outages, stored in columns and ordered by (down, node).

    Outages of one node may touch but never overlap. The arrays are read-only. Two objects are equal if all their
    columns are.

    Args:
        node, down, up: node numbers and times (s), shape (n,) each, in any order; `up` may be infinite.
        cause: n texts.
        announced: when each outage becomes known (s), NaN if unannounced, shape (n,); None: all unannounced.

    Raises:
        OutageError: if lengths differ, a value is out of range, or two outages of one node overlap.
    """

    __slots__ = ("announced", "cause", "down", "node", "up")

    #: node numbers, shape (n,)
    node: Ints
    #: seconds after time 0, shape (n,)
    down: Floats
    #: seconds after time 0, shape (n,)
    up: Floats
    #: one text per outage
    cause: tuple[str, ...]
    #: seconds after time 0, NaN if not announced; shape (n,)
    announced: Floats

    def __init__(
        self,
        node: Sequence[int] | Ints,
        down: Sequence[float] | Floats,
        up: Sequence[float] | Floats,
        cause: Sequence[str],
        announced: Sequence[float] | Floats | None = None,
    ) -> None:
        nodes = np.asarray(node, dtype=np.int64).reshape(-1)
        downs, ups = (np.asarray(times, dtype=np.float64).reshape(-1) for times in (down, up))
        known = np.full(nodes.size, np.nan) if announced is None else np.asarray(announced, dtype=np.float64)
        if not nodes.size == downs.size == ups.size == len(cause) == known.size:
            raise OutageError(
                "the columns of outages differ in length",
                found=f"{nodes.size} nodes, {downs.size} downs, {ups.size} ups, {len(cause)} causes, {known.size} "
                "announcements",
            )
        order = np.lexsort((nodes, downs))
        self.node, self.down, self.up, self.announced = nodes[order], downs[order], ups[order], known[order]
        self.cause = tuple(cause) if _ascending(order) else tuple(cause[at] for at in order.tolist())
        for column in self._numbers:
            column.flags.writeable = False
        _check(self)

    @classmethod
    def of(cls, outages: Iterable[Outage]) -> "Outages":
        """Return the given outages, in any order, as columns; errors as in `Outages`."""
        rows = list(outages)
        return cls(
            [row.node for row in rows],
            [row.down for row in rows],
            [row.up for row in rows],
            [row.cause for row in rows],
            [math.nan if row.announced is None else row.announced for row in rows],
        )

    @property
    def _numbers(self) -> tuple[Ints, Floats, Floats, Floats]:
        return self.node, self.down, self.up, self.announced

    def __len__(self) -> int:
        return self.node.size

    def __getitem__(self, at: int) -> Outage:
        node, down, up, known = (column[at].item() for column in self._numbers)
        return Outage(node, down, up, self.cause[at], None if math.isnan(known) else known)

    def __iter__(self) -> Iterator[Outage]:
        columns = (self.node.tolist(), self.down.tolist(), self.up.tolist(), self.cause, self.announced.tolist())
        for node, down, up, cause, known in zip(*columns, strict=True):
            yield Outage(node, down, up, cause, None if known != known else known)  # noqa: PLR0124 - NaN

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Outages):
            return NotImplemented
        columns = zip(self._numbers, other._numbers, strict=True)
        return self.cause == other.cause and all(np.array_equal(*pair, equal_nan=True) for pair in columns)

    __hash__ = None  # type: ignore[assignment]  # arrays have none

    def __repr__(self) -> str:
        return f"<{len(self)} outages of {np.unique(self.node).size} nodes>"

    def between(self, begin: float, end: float) -> "Outages":
        """Return the outages that begin in [`begin`, `end`) (s)."""
        return self.select((self.down >= begin) & (self.down < end))

    def select(self, keep: NDArray[np.bool_]) -> "Outages":
        """Return the outages where `keep`, shape (n,), is true."""
        return self._part(np.flatnonzero(keep), tuple(compress(self.cause, keep)))

    def rows(self, begin: int, end: int) -> "Outages":
        """Return the outages with the indices `begin` to `end` - 1."""
        return self._part(slice(begin, end), self.cause[begin:end])

    def _part(self, rows: "NDArray[np.intp] | slice", cause: tuple[str, ...]) -> "Outages":
        """Return the outages at the indices `rows` (ascending); `cause` has their causes."""
        part = object.__new__(Outages)
        part.cause = cause
        for name in ("node", "down", "up", "announced"):
            column = getattr(self, name)[rows]
            column.flags.writeable = False
            setattr(part, name, column)
        return part

    def check_nodes(self, nodes: int) -> None:
        """Raise OutageError if an outage names a node number that is not below `nodes`."""
        strange = np.flatnonzero(self.node >= nodes)
        if strange.size:
            first = self[int(strange[0])]
            others = np.unique(self.node[strange]).size - 1
            raise OutageError(
                "an outage names an unknown node",
                where=f"outage of node {first.node} at {first.down!r} s",
                expected=f"nodes 0 to {nodes - 1}",
                found=f"node {first.node}" + (f" and {others} more that the machine does not have" if others else ""),
                hint="Use the machine of these outages, or select some of them.",
            )


def merge(parts: Iterable[Outages]) -> Outages:
    """Merge lists of outages; overlapping outages of one node become one outage.

    A joined outage lasts from the first begin to the last end. It has the cause of the outage that begins first; if two
    begin at once, the earlier list counts. It is announced only if all its parts are announced: at the time of their
    latest announcement, but no later than its begin. Outages that only touch stay separate.
    """
    rows = sorted(
        ((row.node, row.down, number, row) for number, part in enumerate(parts) for row in part),
        key=lambda entry: entry[:3],
    )
    merged: list[Outage] = []
    for _, _, _, row in rows:
        last = merged[-1] if merged else None
        if last is None or last.node != row.node or row.down >= last.up:
            merged.append(row)
            continue
        known = None
        if last.announced is not None and row.announced is not None:
            known = min(last.down, max(last.announced, row.announced))
        merged[-1] = last._replace(up=max(last.up, row.up), announced=known)
    return Outages.of(merged)


def _ascending(order: NDArray[np.intp]) -> bool:
    return bool(np.array_equal(order, np.arange(order.size)))


def _check(outages: Outages) -> None:
    node, down, up, known = outages.node, outages.down, outages.up, outages.announced
    _refuse(outages, node < 0, "the number of a node is negative", "a whole number of at least 0", "node")
    _refuse(outages, ~((down >= 0) & (down <= _LATEST)), "an outage's begin is out of range", "0 to 1e18 s", "down")
    _refuse(outages, ~(up > down), "an outage ends no later than it begins", "up later than down", "up")
    _refuse(outages, (known < 0) | (known > down), "an outage is announced too late", "0 s to its begin", "announced")
    for cause in dict.fromkeys(outages.cause):  # check each distinct cause once
        if not cause or cause != cause.strip() or len(cause) > _LONGEST_CAUSE or not cause.isprintable():
            at = outages.cause.index(cause)
            raise OutageError(
                "a cause is not valid",
                where=f"outage of node {node[at]} at {float(down[at])!r} s",
                expected=f"1 to {_LONGEST_CAUSE} printable characters, not blank at either end",
                found=shown(cause),
            )
    order = np.lexsort((down, node))
    same = node[order][1:] == node[order][:-1]
    clash = np.flatnonzero(same & (down[order][1:] < up[order][:-1]))
    if clash.size:
        first, second = (outages[int(order[int(clash[0]) + step])] for step in (0, 1))
        raise OutageError(
            "two outages of one node overlap",
            where=f"node {first.node}",
            expected="an end before the next begin",
            found=f"down from {first.down!r} to {first.up!r} s and from {second.down!r} to {second.up!r} s"
            + (f" ({clash.size - 1} more such pairs)" if clash.size > 1 else ""),
            hint="Make them one outage.",
        )


def _refuse(outages: Outages, wrong: NDArray[np.bool_], what: str, expected: str, column: str) -> None:
    rows = np.flatnonzero(wrong)
    if rows.size:
        row = outages[int(rows[0])]
        found = f"{column} = {getattr(row, column)!r}"
        if column == "up":
            found = f"down = {row.down!r}, up = {row.up!r}"
        raise OutageError(what, where=f"outage of node {row.node} at {row.down!r} s", expected=expected, found=found)


#: the columns; the last one is present only if an outage is announced
COLUMNS: Final = ("node", "down", "up", "cause", "announced")


def csv_chunks(outages: Outages) -> Iterator[bytes]:
    """Yield a CSV file of outages in pieces: a header, then one row per outage.

    Times are in seconds, written with the fewest digits that read back as the same double.
    """
    columns = COLUMNS if any(row.announced is not None for row in outages) else COLUMNS[:-1]
    yield f"{','.join(columns)}\n".encode()
    for row in outages:
        cells = [str(row.node), seconds_text(row.down), seconds_text(row.up), _quoted(row.cause)]
        cells.append("" if row.announced is None else seconds_text(row.announced))
        yield f"{','.join(cells[: len(columns)])}\n".encode()


def seconds_text(seconds: float) -> str:
    """Return the shortest text that reads as the same double; "inf" for infinity."""
    if math.isfinite(seconds) and seconds == int(seconds) and abs(seconds) < 1e15:
        return str(int(seconds))
    return repr(seconds)


def _quoted(text: str) -> str:
    """Return ``text`` as a CSV cell, quoted if necessary.

    It has no line breaks, because causes have none.
    """
    if "," not in text and '"' not in text:
        return text
    return '"' + text.replace('"', '""') + '"'
