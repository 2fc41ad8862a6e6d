"""The free resources of shared nodes over time, as a list of time slices."""

from math import inf
from typing import Any, NamedTuple

import numpy as np

from pipistrelle.platforms.resources.shape import Take
from pipistrelle.platforms.resources.takes import parsed_takes, plain_takes
from pipistrelle.protocol.base.state import register
from pipistrelle.schedulers.policy.ends_and_shadow import end_of
from pipistrelle.schedulers.sharing.plan import loops
from pipistrelle.schedulers.sharing.plan.loops import Floats, Ints, Need, Shut

_ROOM = 16


class Rows(NamedTuple):
    """The amounts that a job holds on shared nodes, as arrays.

    The columns are those of `loops`.

    Attributes:
        takes: the job's tasks and GPUs on each node.
        nodes: the nodes, shape (takes,).
        taken: what the job takes of each column on these nodes, shape (takes, columns).
        licenses: how many of each licence the job takes, shape (licences,).
    """

    takes: tuple[Take, ...]
    nodes: Ints
    taken: Ints
    licenses: Ints


class NodePlace(NamedTuple):
    """The amounts that a running or planned job holds from ``begin`` to ``end`` (s)."""

    begin: float
    end: float
    rows: Rows


register(
    NodePlace,
    lambda place: [
        place.begin,
        place.end,
        plain_takes(place.rows.takes),
        place.rows.taken.tolist(),
        place.rows.licenses.tolist(),
    ],
    lambda state: NodePlace(
        state[0],
        state[1],
        Rows(
            parsed_takes(state[2]),
            np.array([take[0] for take in state[2]], dtype=np.int64),
            np.array(state[3], dtype=np.int64).reshape(len(state[2]), -1),
            np.array(state[4], dtype=np.int64),
        ),
    ),
)


class NodeSlices:
    """The free amounts on shared nodes from now on, in slices of time.

    A slice begins where the previous slice ends; the last slice never ends. Adjacent slices that are equal may remain
    separate, which changes no result.

    Args:
        now: start of the first slice, s.
        free: what is free at ``now``, shape (nodes, columns); the columns are those of `loops`.
        has: all amounts of the nodes, same shape.
        licenses: free licences, shape (licences,).
        form: the functions of `loops`, plain or compiled.
    """

    def __init__(self, now: float, free: Ints, has: Ints, licenses: Ints, form: Any = loops) -> None:
        self.form = form
        self.has = has
        self._count = 1
        self._begins: Floats = np.full(_ROOM, inf)
        self._begins[0] = now
        self._order: Ints = np.zeros(_ROOM, dtype=np.int64)
        self._table: Ints = np.zeros((_ROOM, *free.shape), dtype=np.int64)
        self._table[0] = free
        self._licenses: Ints = np.zeros((_ROOM, len(licenses)), dtype=np.int64)
        self._licenses[0] = licenses
        self._unused = list(range(_ROOM - 1, 0, -1))

    def __len__(self) -> int:
        return self._count

    @property
    def now(self) -> float:
        """The start of the first slice (s), which is the present."""
        return float(self._begins[0])

    @property
    def begins(self) -> Floats:
        """The start times of the slices (s)."""
        return self._begins[: self._count]

    @property
    def order(self) -> Ints:
        """For each slice in order, the row of the table with its free amounts."""
        return self._order[: self._count]

    def free(self, at: int = 0) -> Ints:
        """Return the free amounts on each node in slice ``at``, shape (nodes, columns)."""
        found: Ints = self._table[self._order[at]]
        return found

    def free_licenses(self) -> Ints:
        """Return the free licences in each slice, shape (slices, licences)."""
        found: Ints = self._licenses[self.order]
        return found

    def advance(self, now: float) -> None:
        """Move the start of the first slice to ``now``, and drop earlier slices."""
        past = int(np.searchsorted(self.begins, now, side="right")) - 1
        if past > 0:
            self._unused.extend(self._order[:past].tolist())
            self._shift(past, 0)
        self._begins[0] = now

    def _shift(self, source: int, target: int) -> None:
        """Move the slices from index ``source`` on to index ``target`` on."""
        count, end = self._count, self._count + target - source
        self._begins[target:end] = self._begins[source:count].copy()
        self._order[target:end] = self._order[source:count].copy()
        self._count = end

    def cut(self, time: float) -> int:
        """Return the index of the slice that begins at ``time`` (s); 0 for past times.

        A slice is split if necessary.
        """
        if time == inf:
            return self._count
        at = int(np.searchsorted(self.begins, time))
        if at < self._count and (self._begins[at] == time or at == 0):
            return at
        if not self._unused:
            self._grow()
        row, before = self._unused.pop(), self._order[at - 1]
        self._table[row] = self._table[before]
        self._licenses[row] = self._licenses[before]
        self._shift(at, at + 1)
        self._begins[at], self._order[at] = time, row
        return at

    def _grow(self) -> None:
        old = len(self._order)
        self._begins = np.concatenate([self._begins, np.full(old, inf)])
        self._order = np.concatenate([self._order, np.zeros(old, dtype=np.int64)])
        self._table = np.concatenate([self._table, np.zeros_like(self._table)])
        self._licenses = np.concatenate([self._licenses, np.zeros_like(self._licenses)])
        self._unused = list(range(2 * old - 1, old - 1, -1))

    def take(self, rows: Rows, begin: float, end: float) -> None:
        """Mark the amounts in ``rows`` as used from ``begin`` until ``end`` (s).

        Past times are ignored.
        """
        self._change(rows, begin, end, -1)

    def give_back(self, rows: Rows, begin: float, end: float) -> None:
        """Mark the amounts in ``rows`` as free from ``begin`` until ``end`` (s).

        Past times are ignored.
        """
        self._change(rows, begin, end, 1)

    def _change(self, rows: Rows, begin: float, end: float, sign: int) -> None:
        if end <= self._begins[0]:
            return
        first, after = self.cut(begin), self.cut(end)
        self.form.change(self._table, self._order, first, after, rows.nodes, sign * rows.taken)
        if len(rows.licenses):
            self._licenses[self._order[first:after]] += sign * rows.licenses
        if sign > 0:
            self._join(after)
            self._join(first)

    def _join(self, at: int) -> None:
        """Drop the slice ``at`` if it is equal to the one before it."""
        if not 0 < at < self._count:
            return
        one, other = int(self._order[at - 1]), int(self._order[at])
        if self.form.same(self._table, one, other) and (self._licenses[one] == self._licenses[other]).all():
            self._unused.append(other)
            self._shift(at + 1, at)

    def first_begin(self, need: Need, among: Ints, shut: Shut, at: int, last: int) -> tuple[int, Ints]:
        """Return the first slice in which a job may fit, and the job's nodes.

        The slices from ``at`` to ``last`` are tried. The slice is -1 if there is none. `loops.first_begin` describes
        the arguments.
        """
        found, good = self.form.first_begin(
            self._table, self.order, self._begins, self.has, need, among, shut, at, min(last, self._count - 1)
        )
        return found, among[good]

    def least_free(self, at: int, length: float, nodes: Ints) -> Ints:
        """Return the amounts that stay free on some nodes for ``length`` s.

        The period begins with slice ``at``. The result has shape (nodes, columns).
        """
        end = end_of(float(self._begins[at]), length)
        after = int(np.searchsorted(self.begins, end))
        found: Ints = self.form.extreme_free(self._table, self.order, at, max(after, at + 1), nodes, False)
        return found

    def enough_until(self, length: float, nodes: Ints, least: Ints) -> Ints:
        """Return for each node the first slice in which too little is free for a job.

        Only slices that begin ``length`` seconds from now or later count.

        Args:
            least: the amounts that the job needs of the first ``len(least)`` columns; it needs nothing of the others.

        Returns:
            The index of the slice, shape (nodes,). It is the number of slices if none has too little; it is 0 for all
            nodes if no slice begins that late.
        """
        after = int(np.searchsorted(self.begins, end_of(float(self._begins[0]), length)))
        free = self._table[self.order[after:]][:, nodes, : len(least)]
        short = np.any(free < least, axis=2)
        found: Ints = np.where(short.any(axis=0), short.argmax(axis=0), len(short)) + after if len(short) else nodes * 0
        return found

    def most_free(self, begin: float, end: float, nodes: Ints) -> Ints:
        """Return the largest amounts that are free on some nodes at any time of a period.

        The period is from ``begin`` until ``end`` (s). The result has shape (nodes, columns).
        """
        first = max(int(np.searchsorted(self.begins, begin, side="right")) - 1, 0)
        after = max(int(np.searchsorted(self.begins, end)), first + 1)
        found: Ints = self.form.extreme_free(self._table, self.order, first, after, nodes, True)
        return found
