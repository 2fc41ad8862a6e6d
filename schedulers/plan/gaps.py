"""When which units are free: runs of units, each with a time from which and until which nobody holds them."""

from collections.abc import Iterable, Sequence
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

#: (from, until (s), lowest unit, highest unit)
Gap = tuple[float, float, int, int]
#: (lowest unit, highest unit), ascending
Runs = Sequence[tuple[int, int]]
_ROOM: Final = 256


def _beside(runs: Runs, gaps: list[Gap]) -> list[tuple[int, int, Gap | None]]:
    """Return these runs, cut where gaps on some of their units begin and end, each with its gap."""
    found: list[tuple[int, int, Gap | None]] = []
    at = 0
    for lo, hi in runs:
        unit = lo
        while unit <= hi and at < len(gaps) and gaps[at][2] <= hi:
            gap = gaps[at]
            if unit < gap[2]:
                found.append((unit, gap[2] - 1, None))
                unit = gap[2]
            last = gap[3] if gap[3] <= hi else hi
            found.append((unit, last, gap))
            unit = last + 1
            if last == gap[3]:
                at += 1
        if unit <= hi:
            found.append((unit, hi, None))
    return found


class GapTable:
    """Free units over time as gaps: a run of units that are all taken before, free in between and taken again after.

    A job fits on the units of the gaps that last from its begin to its end, so that a search is a few array operations
    over all gaps, and a change touches those on the units concerned alone. A gap that has begun begins at -inf. Runs
    that border on each other with the same times may remain two gaps until the table is tidied: it is when it has
    grown to twice its size.
    """

    def __init__(self, gaps: Iterable[Gap]) -> None:
        #: rows in which units are free that were not
        self._fresh: set[int] = set()
        rows = list(gaps)
        times = np.array([gap[:2] for gap in rows], dtype=np.float64).reshape(-1, 2)
        units = np.array([gap[2:] for gap in rows], dtype=np.int64).reshape(-1, 2)
        self._fill(times[:, 0], times[:, 1], units[:, 0], units[:, 1])

    def _fill(
        self, since: NDArray[np.float64], until: NDArray[np.float64], low: NDArray[np.int64], high: NDArray[np.int64]
    ) -> None:
        self._count = len(low)
        self._tidy_at = 2 * len(low) + _ROOM
        #: rows without a gap; they begin at inf and end at -inf
        self._empty: list[int] = []
        room = np.zeros(len(low) + _ROOM)
        self._from, self._until = np.concatenate([since, room + inf]), np.concatenate([until, room - inf])
        empty = room.astype(np.int64)
        self._low, self._high = np.concatenate([low, empty]), np.concatenate([high, empty - 1])

    def _add(self, gap: Gap, fresh: bool = False) -> int:
        if self._empty:
            row = self._empty.pop()
        else:
            row = self._count
            if row == len(self._low):
                for name, value in (("_until", -inf), ("_from", inf), ("_low", 0), ("_high", -1)):
                    column = getattr(self, name)
                    setattr(self, name, np.concatenate([column, np.full(row, value, dtype=column.dtype)]))
            self._count += 1
        self._from[row], self._until[row], self._low[row], self._high[row] = gap
        if fresh:
            self._fresh.add(row)
        return row

    def _drop(self, row: int) -> None:
        self._from[row], self._until[row] = inf, -inf
        self._empty.append(row)

    def earliest(self, size: int, length: float, now: float, before: float) -> float:
        """Return from when (s), not before now, so many units are free so long (s); inf: not before ``before``."""
        begins, counts = self.openings(length, now, before)
        fits = (counts >= size).nonzero()[0]
        return float(begins[fits[0]]) if len(fits) else inf

    def openings(self, length: float, now: float, before: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the times (s, ascending) at which gaps of this length (s) open, and how many units have one then.

        From ``now`` on and before ``before``; of several gaps that open at once the last has the right number.
        """
        count = self._count
        begins = np.maximum(self._from[:count], now)
        until = self._until[:count]
        rows = ((begins + length <= until) & (begins < until) & (begins < before)).nonzero()[0]
        begins, until = begins[rows], until[rows]
        units = self._high[rows] - self._low[rows] + 1
        order = begins.argsort()
        begins = begins[order]
        opened = units[order].cumsum()
        order = until.argsort()
        closed = np.zeros(len(rows) + 1, dtype=np.int64)
        units[order].cumsum(out=closed[1:])
        needed = np.maximum(begins + length, np.nextafter(begins, inf))
        return begins, opened - closed[until[order].searchsorted(needed)]

    def lowest(self, begin: float, end: float) -> float:
        """Return the lowest unit that is free from begin to end (s), inf if none is."""
        count = self._count
        low = self._low[:count][(self._from[:count] <= begin) & (self._until[:count] >= end)]
        return float(low.min()) if len(low) else inf

    def take(self, begin: float, end: float, size: int, now: float) -> tuple[list[tuple[int, int]], int]:
        """Take the lowest ``size`` units that are free from begin to end (s), which are there.

        Return them, and how many of them are free just before ``begin``, too.
        """
        count = self._count
        rows = ((self._from[:count] <= begin) & (self._until[:count] >= end)).nonzero()[0]
        low = self._low[rows]
        order = low.argsort()
        rows = rows[order]
        total = (self._high[rows] - low[order] + 1).cumsum()
        last = int(total.searchsorted(size))
        rows = rows[: last + 1]
        gaps = self._gaps(rows)
        beyond = int(total[last]) - size
        if beyond:
            opens, closes, lo, hi = gaps[-1]
            gaps[-1] = (opens, closes, lo, hi - beyond)
            self._add((opens, closes, hi - beyond + 1, hi), int(rows[-1]) in self._fresh)
        runs: list[tuple[int, int]] = []
        early = 0
        sooner, later = -1, -1  # the row of the gap before and after that was made last
        for row, (opens, closes, lo, hi) in zip(rows.tolist(), gaps, strict=True):
            fresh = row in self._fresh
            self._fresh.discard(row)
            self._drop(row)
            borders = bool(runs) and runs[-1][1] == lo - 1
            if opens < begin and begin > now:
                early += hi - lo + 1
                sooner = self._put((opens, begin, lo, hi), fresh, sooner if borders else -1)
            else:
                sooner = -1
            later = self._put((end, closes, lo, hi), fresh, later if borders else -1) if end < closes else -1
            if borders:
                runs[-1] = (runs[-1][0], hi)
            else:
                runs.append((lo, hi))
        return runs, early

    def _put(self, gap: Gap, fresh: bool, row: int) -> int:
        """Add a gap, to that of a row that borders on it if it has the same times; return its row."""
        if row >= 0 and self._from[row] == gap[0] and self._until[row] == gap[1]:
            self._high[row] = gap[3]
            if fresh:
                self._fresh.add(row)
            return row
        return self._add(gap, fresh)

    def claim(self, begin: float, end: float, runs: Runs) -> None:
        """Take these units from begin to end (s); all of them are free then."""
        count = self._count
        for lo, hi in runs:
            rows = np.flatnonzero(
                (self._from[:count] <= begin)
                & (self._until[:count] >= end)
                & (self._low[:count] <= hi)
                & (self._high[:count] >= lo)
            )
            for row in rows.tolist():
                opens, closes = float(self._from[row]), float(self._until[row])
                low, high = int(self._low[row]), int(self._high[row])
                self._drop(row)
                if low < lo:
                    self._add((opens, closes, low, lo - 1))
                if high > hi:
                    self._add((opens, closes, hi + 1, high))
                low, high = max(low, lo), min(high, hi)
                if opens < begin:
                    self._add((opens, begin, low, high))
                if end < closes:
                    self._add((end, closes, low, high))
            count = self._count

    def give_back(self, begin: float, end: float, runs: Runs, now: float) -> None:
        """Let these units be free from begin to end (s), in which they are taken."""
        before = self._bordering(self._until, begin, runs)
        after = self._bordering(self._from, end, runs)
        opens = -inf if begin <= now else begin
        pieces: list[Gap] = []
        starts = _beside(runs, before)
        ends = _beside([(lo, hi) for lo, hi, _ in starts], after)
        at = 0
        for lo, hi, following in ends:
            while starts[at][1] < lo:
                at += 1
            leading = starts[at][2]
            first = opens if leading is None else leading[0]
            last = end if following is None else following[1]
            if pieces and pieces[-1][:2] == (first, last) and pieces[-1][3] == lo - 1:
                pieces[-1] = (first, last, pieces[-1][2], hi)
            else:
                pieces.append((first, last, lo, hi))
        for piece in pieces:
            self._add(piece, fresh=True)

    def _bordering(self, column: NDArray[np.float64], time: float, runs: Runs) -> list[Gap]:
        """Take out the parts on these units of the gaps that begin or end at a time (s), and return them."""
        count = self._count
        rows = (column[:count] == time).nonzero()[0]
        if not len(rows) or time == inf:
            return []
        rows = rows[(self._low[rows] <= runs[-1][1]) & (self._high[rows] >= runs[0][0])]
        rows = rows[self._low[rows].argsort()]
        found: list[Gap] = []
        at = 0
        for row, (since, until, low, high) in zip(rows.tolist(), self._gaps(rows), strict=True):
            fresh, whole, unit = row in self._fresh, True, low
            while at < len(runs) and runs[at][1] < low:
                at += 1
            within = at
            while within < len(runs) and runs[within][0] <= high:
                lo, hi = runs[within]
                within += 1
                if whole:
                    whole = False
                    self._fresh.discard(row)
                    self._drop(row)
                if unit < lo:
                    self._add((since, until, unit, lo - 1), fresh)
                found.append((since, until, max(unit, lo), min(hi, high)))
                unit = hi + 1
            if not whole and unit <= high:
                self._add((since, until, unit, high), fresh)
        return found

    def fresh(self, begin: float, end: float) -> list[Gap]:
        """Return the gaps with units that have become free since the last call, as far as they meet that time (s)."""
        found = [gap for gap in self._gaps(list(self._fresh)) if gap[0] < end and gap[1] > begin]
        self._fresh.clear()
        return found

    def _gaps(self, rows: NDArray[np.intp] | list[int]) -> list[Gap]:
        columns = (self._from[rows], self._until[rows], self._low[rows], self._high[rows])
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def tidy(self, now: float) -> None:
        """Join what borders on each other, and forget what is past, if there is much of it."""
        if self._count - len(self._empty) < self._tidy_at:
            return
        rows = np.flatnonzero(self._until[: self._count] > now)
        since, until, low = self._from[rows], self._until[rows], self._low[rows]
        since[since <= now] = -inf
        order = np.lexsort((low, until, since))
        since, until, low, high = since[order], until[order], low[order], self._high[rows][order]
        joins = (since[1:] == since[:-1]) & (until[1:] == until[:-1]) & (low[1:] == high[:-1] + 1)
        first = np.concatenate([[0], np.flatnonzero(~joins) + 1])
        last = np.concatenate([first[1:], [len(low)]]) - 1
        self._fill(since[first], until[first], low[first], high[last])
