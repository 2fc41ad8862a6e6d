"""Backfill's table of node space: which nodes are reserved, and when."""


class Space:
    """Backfill's table of open nodes: its records cover time without gaps.

    Each record is (begin, end, open nodes). A reservation splits records.

    Attributes:
        begin, end: start and end of each record, s.
        open: set of the open nodes of each record.
        after: position of the next record; 0: none.
    """

    __slots__ = ("after", "begin", "end", "open", "resolution")

    def __init__(self, begin: int, end: int, nodes: int, resolution: int) -> None:
        self.resolution = resolution
        self.begin = [begin // resolution * resolution]
        self.end = [end // resolution * resolution]
        self.open = [nodes]
        self.after = [0]

    def __len__(self) -> int:
        return len(self.begin)

    def open_between(self, start: int, end: int, nodes: int) -> tuple[int, int]:
        """Return (nodes open from ``start`` to ``end``, when to try next).

        Args:
            nodes: nodes that the job may use.

        Returns:
            The next time to try is the earliest at which a node opens that was not open since ``start``; 0: there is
            none.
        """
        begins, ends, opens, after = self.begin, self.end, self.open, self.after
        later = 0
        allowed = nodes
        at = 0
        while True:
            following = after[at]
            if ends[at] > start:
                if following and not later and allowed & opens[following] & ~(nodes & opens[at]):
                    later = ends[at]
                if begins[at] > end:
                    break
                nodes &= opens[at]
                if not nodes and later:
                    break
            at = following
            if not at:
                break
        return nodes, later

    def overlaps(self, start: int, end: int, nodes: int) -> bool:
        """Return whether any of the nodes is reserved between ``start`` and ``end`` (s)."""
        begins, ends, opens, after = self.begin, self.end, self.open, self.after
        at = 0
        while True:
            if ends[at] > start and begins[at] < end and nodes & ~opens[at]:
                return True
            at = after[at]
            if not at:
                return False

    def reserve(self, start: int, end: int, nodes: int) -> None:
        """Reserve nodes from ``start`` to ``end`` (s).

        The caller rounds both times to the table's resolution. Afterwards, at most one pair of neighbouring records
        with the same open nodes is merged.
        """
        begins, ends, opens, after = self.begin, self.end, self.open, self.after
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
                break
            before = at
            at = after[at]
            if not at:
                break
        while placed and after[at]:
            at = after[at]
            if end < ends[at]:
                self._split(at, end)
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
