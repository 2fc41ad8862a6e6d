"""Backfill's table of node space: which nodes are reserved, and when."""

from math import inf


class Space:
    """Backfill's table of open nodes: its records cover time without gaps.

    Each record is (begin, end, open nodes). A reservation splits records.

    A table built later from the same reservations begins and ends later. Before the time ``until``, it gives the same
    answers nevertheless.

    Attributes:
        begin, end: start and end of each record, s.
        open: set of the open nodes of each record.
        after: position of the next record; 0: none.
        window: time from now to the end of the last record, before rounding, s.
        until: time (s) before which a table built later gives the same answers as the methods called since ``until``
            was set. Each method may lower it.
    """

    __slots__ = ("_hint", "after", "begin", "end", "now", "open", "resolution", "until", "window")

    def __init__(self, now: int, window: int, nodes: int, resolution: int) -> None:
        self.resolution = resolution
        self.now = now
        self.window = window
        self.begin = [self.rounded(now)]
        self.end = [self.rounded(now + window)]
        self.open = [nodes]
        self.after = [0]
        self.until: float = inf
        #: (a time to try, the record that begins then), for the next search
        self._hint = (-1, 0)

    def __len__(self) -> int:
        return len(self.begin)

    def rounded(self, time: int) -> int:
        """Return a time (s), rounded down to the table's resolution."""
        return time // self.resolution * self.resolution

    def open_now(self, limit: int, nodes: int) -> tuple[int, float]:
        """Return the nodes that are open for ``limit`` seconds from now.

        The result is (set of the nodes, time (s) from which fewer nodes may be open).
        """
        begins, ends, opens, after = self.begin, self.end, self.open, self.after
        end = self.now + limit
        at = self._first_after(self.now)
        while ends[at] > self.now:
            if begins[at] > end:
                return nodes, begins[at] - limit
            nodes &= opens[at]
            at = after[at]
            if not (nodes and at):
                break
        return nodes, inf

    def open_between(self, start: int, limit: int, nodes: int) -> tuple[int, int]:
        """Return (nodes open for ``limit`` seconds from ``start``, when to try next).

        Args:
            nodes: nodes that the job may use.

        Returns:
            The next time to try is the earliest at which a node opens that was not open since ``start``; 0: there is
            none.
        """
        begins, ends, opens, after = self.begin, self.end, self.open, self.after
        end = start + limit
        later = 0
        allowed = nodes
        at = self._first_after(start)
        while ends[at] > start:
            following = after[at]
            if following and not later and allowed & opens[following] & ~opens[at]:
                later = ends[at]
                self._hint = (later, following)
            if begins[at] > end:
                if start == self.now:
                    self.until = min(self.until, begins[at] - limit)
                break
            nodes &= opens[at]
            if not nodes and later:
                break
            at = following
            if not at:
                break
        return nodes, later

    def skip(self, start: int, limit: int, nodes: int, time: float) -> int:
        """Return the last time to try before ``time`` (s), beginning with ``start`` (s).

        After each time to try, the next one is that of `open_between`. Return ``start`` if the next one is not before
        ``time``.
        """
        begins, ends, opens, after = self.begin, self.end, self.open, self.after
        at = self._first_after(start)
        while ends[at] > start:
            end = start + limit
            while True:
                following = after[at]
                if not following:
                    return start
                if nodes & opens[following] & ~opens[at]:
                    break
                if begins[at] > end:
                    return start
                at = following
            if ends[at] >= time:
                return start
            start = ends[at]
            self._hint = (start, following)
            at = self._first_after(start)
        return start

    def _first_after(self, start: int) -> int:
        """Return the position of the first record that ends after ``start`` (s).

        Return that of the last record if there is none.
        """
        ends, after = self.end, self.after
        at = self._hint[1] if self._hint[0] == start else 0
        while ends[at] <= start and after[at]:
            at = after[at]
        if start == self.now:
            self.until = min(self.until, ends[at])
        elif ends[at] <= start:
            self._ends_until(start)
        return at

    def _ends_until(self, time: int) -> None:
        """Lower ``until``: this table ends before ``time`` (s), but a later table may not."""
        self.until = min(self.until, time + self.resolution - self.window)

    def overlaps(self, start: int, end: int, nodes: int) -> bool:
        """Return whether any of the nodes is reserved between ``start`` and ``end`` (s).

        Both times are rounded to the table's resolution.
        """
        begins, ends, opens, after = self.begin, self.end, self.open, self.after
        self.until = min(self.until, end)  # the first record may begin then
        at = 0
        while True:
            if ends[at] > start:
                if begins[at] < end and nodes & ~opens[at]:
                    return True
            elif not after[at]:
                self._ends_until(start)
            at = after[at]
            if not at:
                return False

    def reserve(self, start: int, end: int, nodes: int) -> None:
        """Reserve nodes from ``start`` to ``end`` (s).

        The caller rounds both times to the table's resolution. Afterwards, at most one pair of neighbouring records
        with the same open nodes is merged.
        """
        begins, ends, opens, after = self.begin, self.end, self.open, self.after
        self._hint = (-1, 0)
        start = max(start, begins[0])
        end = max(end, start + self.resolution)
        placed = False
        before, behind = 0, -1
        at = 0
        while True:
            if ends[at] > start:
                self._split(at, start)
                placed = True
                break
            if ends[at] == start:
                placed = True
                if not after[at]:
                    self._ends_until(start)
                break
            before = at
            at = after[at]
            if not at:
                break
        while placed and after[at]:
            at = after[at]
            if end < ends[at]:
                self._split(at, end)
            elif not after[at]:
                self._ends_until(end)
            opens[at] &= ~nodes
            if end == ends[at]:
                if after[at]:
                    behind = after[at]
                break
        at = before
        while at != behind:
            following = after[at]
            if not following:
                break
            if opens[at] == opens[following]:
                ends[at] = ends[following]
                after[at] = after[following]
                break
            at = following

    def _split(self, at: int, when: int) -> None:
        self.begin.append(when)
        self.end.append(self.end[at])
        self.open.append(self.open[at])
        self.after.append(self.after[at])
        self.end[at] = when
        self.after[at] = len(self.begin) - 1
