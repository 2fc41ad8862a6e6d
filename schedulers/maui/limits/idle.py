"""MAXIJOB: which of the waiting jobs are looked at, kept from instant to instant.

Source: admin manual of Maui, 6.2.1.3: of each credential, its first jobs by priority are in the idle queue.
"""

from collections.abc import Hashable, Sequence
from math import inf
from typing import Final

import numpy as np

from pipistrelle.schedulers.maui.limits.arrays import GrowingInts, Rows
from pipistrelle.schedulers.maui.waiting import Bools, Floats, Ints, MauiQueue

#: limits with this many counters to fill anew or fewer are filled one by one
_FEW: Final = 24
_ROOM: Final = 16
#: so many rows are gone through one by one before those are left out that cannot be chosen any more
_PART: Final = 2048


class _Chosen:
    """The rows that were chosen last, for one level of the limits and one use."""

    def __init__(self) -> None:
        self.generation = -1
        self.chosen: Bools = np.zeros(0, dtype=np.bool_)


class IdleRows:
    """Chooses rows of a queue by the limits of waiting jobs.

    Mostly a combination of credentials has one such limit at most. Then only counters of which a chosen row is gone, or
    which another row has passed, are chosen for anew.
    """

    def __init__(self) -> None:
        #: {what is limited: number from 1}
        self._numbers: dict[Hashable, int] = {}
        self._limits: tuple[list[float], list[float]] = ([inf], [inf])
        #: of each combination the limits that it is subject to
        self._entries: list[tuple[int, ...]] = []
        #: of each limit the combinations that are subject to it
        self._codes_of: list[GrowingInts] = [GrowingInts()]
        self._number_of: Ints = np.zeros(_ROOM, dtype=np.int64)
        self._single = True
        #: whether there are rows without such a limit
        self._unlimited = False
        self._counter: Ints = np.zeros(0, dtype=np.int64)
        self._generation = -1
        self._rows = 0
        self._rows_of: dict[int, GrowingInts] = {}
        self._last: dict[tuple[int, str], _Chosen] = {}

    def add_code(self, code: int, entries: Sequence[tuple[Hashable, float, float]]) -> None:
        """Add a combination, the next: (what is limited, soft, hard) of each of its limits."""
        numbers = []
        for key, soft, hard in entries:
            number = self._numbers.setdefault(key, len(self._limits[0]))
            if number == len(self._limits[0]):
                self._limits[0].append(soft)
                self._limits[1].append(hard)
                self._codes_of.append(GrowingInts())
            self._codes_of[number].append(code)
            numbers.append(number)
        if code == len(self._number_of):
            self._number_of = np.concatenate([self._number_of, np.zeros_like(self._number_of)])
        self._entries.append(tuple(numbers))
        self._number_of[code] = numbers[0] if numbers else 0
        self._single &= len(numbers) < 2

    def considered(self, queue: MauiQueue, eligible: Bools, ranks: Floats, level: int, use: str) -> Bools:
        """Return which of the eligible rows are looked at, at the soft (0) or hard (1) level."""
        if not self._single:
            return self._considered_by_several(queue, eligible, ranks, level)
        self._follow(queue)
        counter = self._counter[: queue.rows]
        last = self._last.setdefault((level, use), _Chosen())
        limits = np.array(self._limits[level])
        chosen: Bools = np.zeros(queue.rows, dtype=np.bool_)
        dirty: set[int]
        if last.generation == queue.generation:
            before = len(last.chosen)
            chosen[:before] = last.chosen & eligible[:before]
            dirty = set(counter[np.flatnonzero(last.chosen & ~chosen[:before])].tolist())
        else:
            dirty = set(self._rows_of)
        rows = np.flatnonzero(chosen)
        mine, of = ranks[rows], counter[rows]
        full = np.bincount(of, minlength=len(limits)) >= limits
        least = np.full(len(limits), inf)
        np.minimum.at(least, of, mine)
        least[~full] = -inf
        least[0] = inf
        latest = np.full(len(limits), -1, dtype=np.int64)
        at_least = mine == least[of]
        np.maximum.at(latest, of[at_least], rows[at_least])
        latest[~full] = queue.rows
        dirty.update(self._passed(queue, eligible & ~chosen, ranks, least, latest))
        dirty.discard(0)
        if len(dirty) > _FEW:
            self._choose_all(chosen, dirty, counter, eligible, ranks, limits)
        else:
            for number in dirty:
                self._choose(chosen, number, eligible, ranks, limits[number])
        last.generation, last.chosen = queue.generation, chosen
        return chosen | (eligible & (counter == 0)) if self._unlimited else chosen.copy()

    def _passed(self, queue: MauiQueue, others: Bools, ranks: Floats, least: Floats, latest: Ints) -> list[int]:
        """Return the counters of which one of the other rows is before one that was chosen, or for which there is room.

        ``least`` is the rank of the last that was chosen of each counter, ``latest`` its row; -inf where there is room.
        """
        if len(least) == 2 and not self._unlimited:  # one counter for all: there is nothing to look up row by row
            tied = slice(0, int(latest[1]))
            passed = ((ranks > least[1]) & others).any() or ((ranks[tied] >= least[1]) & others[tied]).any()
            return [1] if passed else []
        counter = self._counter[: queue.rows]
        rows = np.flatnonzero((ranks >= least.take(counter)) & others)
        theirs = counter[rows]
        passing = np.flatnonzero((ranks[rows] > least[theirs]) | (rows < latest[theirs]))
        found = np.zeros(len(least), dtype=np.bool_)
        found[theirs[passing]] = True
        return np.flatnonzero(found).tolist()

    def _follow(self, queue: MauiQueue) -> None:
        if queue.generation != self._generation:
            self._generation, self._rows = queue.generation, 0
            self._rows_of = {}
            self._unlimited = False
        if queue.rows > len(self._counter):
            more = np.zeros(2 * queue.rows, dtype=np.int64)
            more[: self._rows] = self._counter[: self._rows]
            self._counter = more
        fresh = slice(self._rows, queue.rows)
        if fresh.start < fresh.stop:
            numbers = self._number_of[queue.code[fresh]]
            self._counter[fresh] = numbers
            for row, number in enumerate(numbers.tolist(), fresh.start):
                if number:
                    self._rows_of.setdefault(number, GrowingInts()).append(row)
                else:
                    self._unlimited = True
            self._rows = queue.rows

    def _choose(self, chosen: Bools, number: int, eligible: Bools, ranks: Floats, limit: float) -> None:
        """Choose the first by rank of one counter, ties in the order of submission."""
        every = self._rows_of[number].array()
        others = every[np.flatnonzero(eligible[every] & ~chosen[every])]
        mine = every[np.flatnonzero(chosen[every])]
        keys = ranks[others]
        inside = len(mine)
        # Mostly one or two are missing, or were passed: they are exchanged one by one.
        for _ in range(_FEW):
            at = int(np.argmax(keys)) if len(keys) else -1
            if at < 0 or keys[at] == -inf:
                return
            if inside >= limit:
                own = ranks[mine]
                least = own.min()
                worst = int(mine[own == least].max())
                if (keys[at], -others[at]) <= (least, -worst):
                    return
                chosen[worst] = False
                mine = mine[mine != worst]
                inside -= 1
            chosen[others[at]] = True
            mine = np.append(mine, others[at])
            keys[at] = -inf
            inside += 1
        rows = every[np.flatnonzero(eligible[every])]
        chosen[every] = False
        if len(rows) > limit:
            most = int(limit)
            own = ranks[rows]
            least = np.partition(own, len(own) - most)[len(own) - most]
            above = rows[np.flatnonzero(own > least)]
            rows = np.concatenate([above, rows[np.flatnonzero(own == least)[: most - len(above)]]])
        chosen[rows] = True

    @staticmethod
    def _choose_all(
        chosen: Bools, numbers: set[int], counter: Ints, eligible: Bools, ranks: Floats, limits: Floats
    ) -> None:
        """Choose the first by rank of each of some counters."""
        wanted = np.zeros(len(limits), dtype=np.bool_)
        wanted[list(numbers)] = True
        mine = wanted.take(counter)
        rows = np.flatnonzero(mine & eligible)
        rows = rows[np.lexsort((-ranks[rows], counter[rows]))]  # stable: ties stay in the order of submission
        of = counter[rows]
        begins = np.flatnonzero(np.diff(of, prepend=-1))
        place = np.arange(len(rows)) - np.repeat(begins, np.diff(begins, append=len(rows)))
        chosen &= ~mine
        chosen[rows[np.flatnonzero(place < limits[of])]] = True

    def _considered_by_several(self, queue: MauiQueue, eligible: Bools, ranks: Floats, level: int) -> Bools:
        """Choose one by one in the order of rank: a row counts for a counter only if all of its counters take it."""
        limits, entries = self._limits[level], self._entries
        codes = queue.code[: queue.rows]
        limited = eligible & (self._number_of.take(codes) > 0)
        kept: Bools = eligible & ~limited
        #: combinations of which no further row can be chosen, as a counter of theirs is full
        closed = np.zeros(len(entries), dtype=np.bool_)
        for number, limit in enumerate(limits):
            if limit < 1:
                closed[self._codes_of[number].array()] = True
        idle = [0] * len(limits)
        left = np.flatnonzero(limited & ~closed[codes])
        # A part at a time: once some counters are full, most of the rest need not be gone through.
        while len(left):
            part = _first(left, ranks, _PART)
            chosen = []
            for row, code in zip(part.tolist(), codes[part].tolist(), strict=True):
                numbers = entries[code]
                for number in numbers:
                    if idle[number] + 1 > limits[number]:
                        break
                else:
                    chosen.append(row)
                    for number in numbers:
                        idle[number] += 1
                        if idle[number] + 1 > limits[number]:
                            closed[self._codes_of[number].array()] = True
            kept[chosen] = True
            limited[part] = False
            left = left[np.flatnonzero(limited[left] & ~closed[codes[left]])]
        return kept


def _first(rows: Rows, ranks: Floats, most: int) -> Rows:
    """Return so many of the rows, or some more if these are all: by rank, ties as they stand, ascending."""
    own = ranks[rows]
    if len(rows) > 2 * most:
        least = np.partition(own, len(rows) - most)[len(rows) - most]
        above = np.flatnonzero(own > least)
        rows = rows[np.concatenate([above, np.flatnonzero(own == least)[: most - len(above)]])]
        own = ranks[rows]
    return rows[np.argsort(-own, kind="stable")]
