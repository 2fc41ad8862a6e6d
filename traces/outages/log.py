"""Outages as a log records them, and the times in which each node was watched."""

import re
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.base.errors import did_you_mean, quoted
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.workload import Floats, Ints

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Lives:
    """Periods in which nodes or GPUs were observed (watched).

    Each period ends with a failure or with the end of observation.

    Args:
        entered, left: the age of the node or GPU at the start and end of the period (s), entered < left, shape (n,).
        failed: whether the period ended with a failure; otherwise it is censored, shape (n,).
        begin: the start of the period on the log's clock (s), shape (n,).
        group: the class of the node or GPU, as an index into the log's classes, shape (n,).
    """

    entered: Floats
    left: Floats
    failed: Bools
    begin: Floats
    group: Ints

    def __len__(self) -> int:
        return self.left.size

    def select(self, keep: Bools) -> "Lives":
        """Return the watched periods for which `keep`, shape (n,), is true."""
        return Lives(self.entered[keep], self.left[keep], self.failed[keep], self.begin[keep], self.group[keep])

    def within(self, begin: float, end: float) -> "Lives":
        """Return the parts of watched periods between two times (s) on the log's clock.

        A part that is cut off at `end` is censored.
        """
        over = self.begin + (self.left - self.entered)
        first, last = np.maximum(self.begin, begin), np.minimum(over, end)
        cut = Lives(
            self.entered + (first - self.begin),
            self.entered + (last - self.begin),
            self.failed & (over < end),
            first,
            self.group,
        )
        return cut.select(last > first)


@dataclass(frozen=True, eq=False, kw_only=True)
class OutageLog:
    """The outages of a log, in its order and without corrections, and its nodes.

    Args:
        name, source: the file's name without folder and suffix, and the name as given.
        nodes: names of all known nodes, in natural order ("n2" before "n10").
        classes: names of the classes of nodes (systems, batches), at least one.
        node_group: index of each node's class, shape (nodes,); -1 if it changed over time.
        begin, end: when the watch of each node starts and ends on the log's clock (s), shape (nodes,).
        node, group: index of each outage's node and class, shape (n,).
        down, up: start and end of each outage on the log's clock (s), shape (n,); `up` is inf if the outage did not end
            within the log, NaN if its end is unknown.
        announced: time at which each outage was announced, NaN if it was unexpected, shape (n,).
        line: line number of each outage, from 1, shape (n,).
        absolute: whether the clock shows Unix time, with local times taken as UTC; otherwise seconds after time 0.
        watch_known: whether the log itself says when nodes were watched.
        complete: whether `nodes` includes all nodes without outages, as stated by the user.
        lives: the watched periods, if the log has them; None: they follow from the outages.
        notes: remarks on the file, for people.
        told: number of nodes, and end of the watch (s), as the file's first line gives them; None: not given.
    """

    name: str
    source: str
    format: str
    nodes: tuple[str, ...]
    classes: tuple[str, ...]
    node_group: Ints
    begin: Floats
    end: Floats
    node: Ints
    group: Ints
    down: Floats
    up: Floats
    cause: tuple[str, ...]
    announced: Floats
    line: Ints
    absolute: bool
    watch_known: bool = False
    complete: bool = False
    lives: Lives | None = None
    notes: tuple[str, ...] = ()
    told: tuple[int, float] | None = None

    def __len__(self) -> int:
        return self.node.size

    def select(self, keep: Bools) -> "OutageLog":
        """Return the log with some of its outages, where `keep`, shape (n,), is true."""
        columns = {name: getattr(self, name)[keep] for name in ("node", "group", "down", "up", "announced", "line")}
        return replace(self, cause=tuple(compress(self.cause, keep.tolist())), **columns)

    def only(self, name: str) -> "OutageLog":
        """Return the part of the log for one class of nodes.

        Raise TraceError if the class is unknown.
        """
        if name not in self.classes:
            raise TraceError(
                f"unknown class of nodes {quoted(name)}",
                where=self.source,
                hint=did_you_mean(name, list(self.classes)),
            )
        index = self.classes.index(name)
        part = self.select(self.group == index)
        lives = part.lives
        if lives is not None:
            lives = lives.select(lives.group == index)
            lives = replace(lives, group=np.zeros(len(lives), dtype=np.int64))
        part = part._of_nodes((self.node_group == index) | (self.node_group < 0))
        return replace(
            part,
            classes=(name,),
            node_group=np.zeros(len(part.nodes), dtype=np.int64),
            group=np.zeros(len(part), dtype=np.int64),
            lives=lives,
        )

    def numbered(self, numbers: NodeSet) -> "OutageLog":
        """Return the part of the log for nodes whose names end in one of these numbers.

        Raises:
            TraceError: no node has such a number, or the log has its own watched periods.
        """
        wanted = set(numbers)
        ends = [re.search("[0-9]{1,15}$", name) for name in self.nodes]
        keep = np.array([end is not None and int(end[0]) in wanted for end in ends], dtype=np.bool_)
        if self.lives is not None or not keep.any():
            raise TraceError(
                "nodes cannot be chosen by number" if self.lives is not None else "no node has such a number",
                where=self.source,
                found=quoted(numbers),
            )
        return self._of_nodes(keep)

    def _of_nodes(self, keep: Bools) -> "OutageLog":
        """Return the log with some of its nodes, where `keep`, shape (nodes,), is true."""
        kept = np.flatnonzero(keep)
        places = np.full(len(self.nodes), -1, dtype=np.int64)
        places[kept] = np.arange(kept.size)
        part = self.select(places[self.node] >= 0)
        return replace(
            part,
            nodes=tuple(self.nodes[at] for at in kept.tolist()),
            node_group=self.node_group[kept],
            begin=self.begin[kept],
            end=self.end[kept],
            node=places[part.node],
        )

    def within(self, begin: float | None, end: float | None) -> "OutageLog":
        """Return the outages that begin from `begin` to before `end` (s).

        None means no bound. The watch of each node is cut to this period. If the log does not say when nodes were
        watched, they were watched from `begin` to `end`.
        """
        first = float(self.begin.min(initial=np.inf)) if begin is None else begin
        last = float(self.end.max(initial=-np.inf)) if end is None else end
        part = self.select((self.down >= first) & (self.down < last) if end is not None else self.down >= first)
        watch = (self.begin, self.end)
        lives = self.lives
        if self.watch_known:
            lives = self.watched().within(first, last)  # nodes keep their uptime
        else:
            watch = (np.full_like(self.begin, first), np.full_like(self.end, last))
        return replace(
            part,
            begin=np.clip(watch[0], first, last),
            end=np.clip(watch[1], first, last),
            lives=lives,
        )

    def with_silent(self, nodes: int) -> "OutageLog":
        """Add nodes without outages, so that the log has `nodes` nodes.

        The new nodes are watched from the earliest start to the latest end of any node's watch.

        Raises:
            TraceError: the log has more than `nodes` nodes, several classes, or its own watched periods.
        """
        more = nodes - len(self.nodes)
        if more < 0 or len(self.classes) > 1 or self.lives is not None:
            raise TraceError(
                "the number of nodes does not match the log",
                where=self.source,
                expected=f"at least {len(self.nodes):,}, of one class, in a log that does not say what was watched",
                found=f"{nodes:,} nodes, {len(self.classes)} class(es) in the log",
            )
        return replace(
            self,
            complete=True,
            nodes=(*self.nodes, *(f"silent {number}" for number in range(1, more + 1))),
            node_group=np.concatenate((self.node_group, np.zeros(more, dtype=np.int64))),
            begin=np.concatenate((self.begin, np.full(more, self.begin.min(initial=np.inf)))),
            end=np.concatenate((self.end, np.full(more, self.end.max(initial=-np.inf)))),
        )

    def overlaps(self) -> int:
        """Return how many outages overlap an earlier outage of the same node."""
        order = np.lexsort((self.down, self.node))
        node, down, up = self.node[order], self.down[order], self.up[order]
        count = 0
        last, until = -1, -np.inf
        for index, begin, end in zip(node.tolist(), down.tolist(), up.tolist(), strict=True):
            if index != last:
                last, until = index, -np.inf
            count += begin < until
            until = max(until, end) if end == end else until  # noqa: PLR0124 - NaN
        return count

    def watched(self) -> Lives:
        """Return the periods in which nodes were up and observed.

        Each period starts at age 0. The first period of a node begins with its observation. Each later period begins at
        the end of an outage, or at the outage's start if its end is unknown. Announced outages end a period without a
        failure.
        """
        if self.lives is not None:
            return self.lives
        order = np.lexsort((self.down, self.node)).tolist()
        rows: list[tuple[float, float, bool, int]] = []
        until = self.begin.astype(np.float64).copy()
        for at in order:
            index, down, up = int(self.node[at]), float(self.down[at]), float(self.up[at])
            if down > until[index]:
                rows.append((float(until[index]), down, bool(np.isnan(self.announced[at])), index))
            until[index] = max(until[index], down if np.isnan(up) else up)
        rows += [
            (begin, end, False, index)
            for index, (begin, end) in enumerate(zip(until.tolist(), self.end.tolist(), strict=True))
            if end > begin
        ]
        rows.sort(key=lambda row: (row[0], row[3]))
        table = np.array([row[:2] for row in rows], dtype=np.float64).reshape(-1, 2)
        return Lives(
            np.zeros(len(rows)),
            table[:, 1] - table[:, 0],
            np.array([row[2] for row in rows], dtype=np.bool_),
            table[:, 0],
            self.node_group[np.array([row[3] for row in rows], dtype=np.int64)],
        )
