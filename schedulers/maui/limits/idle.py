"""Choose the jobs of Maui's idle queue (MAXIJOB).

The choice is kept between decisions.

Source: admin manual of Maui, 6.2.1.3: the idle queue has each credential's jobs of highest priority.
"""

from collections.abc import Hashable, Sequence
from math import inf
from typing import Final

import numpy as np

from pipistrelle.schedulers.maui.limits.arrays import Rows
from pipistrelle.schedulers.maui.priority.waiting import Bools, FixedColumn, GrowingInts, Ints, MauiQueue, RowsByCounter
from pipistrelle.schedulers.policy.order import Floats

#: up to this many limits (counters) are filled one by one
_FEW: Final = 24
#: rows scanned between two removals of rows that cannot be chosen any more
_PART: Final = 2048


class IdleRows:
    """The waiting jobs that MAXIJOB puts in the idle queue; one row per job.

    The limits are numbered from 1; a limit's number is called its counter. Counter 0 is for combinations of credentials
    without a limit. If no combination has several limits, a limit's rows are chosen again only if a chosen job left the
    queue, or if a job that is not chosen now ranks before a chosen one.
    """

    def __init__(self) -> None:
        #: {limited key: counter from 1}
        self._numbers: dict[Hashable, int] = {}
        self._limits: tuple[list[float], list[float]] = ([inf], [inf])
        self._by_counter = RowsByCounter()
        #: first counter by combination
        self._number_of = GrowingInts()
        self._single = True
        #: first counter by row
        self._counter = FixedColumn(np.int64)
        #: {(level, use): (the queue's generation, rows chosen) last time}
        self._last: dict[tuple[int, str], tuple[int, Bools]] = {}

    def add_code(self, entries: Sequence[tuple[Hashable, float, float]]) -> None:
        """Add the next combination of credentials, with the MAXIJOB limits on its jobs.

        Each entry is (key that identifies the limit, soft limit, hard limit).
        """
        numbers = []
        for key, *limits in entries:
            number = self._numbers.setdefault(key, len(self._limits[0]))
            if number == len(self._limits[0]):
                for known, limit in zip(self._limits, limits, strict=True):
                    known.append(limit)
            numbers.append(number)
        self._by_counter.add_code(tuple(numbers) or (0,))
        self._number_of.append(numbers[0] if numbers else 0)
        self._single &= len(numbers) < 2

    def considered(self, queue: MauiQueue, eligible: Bools, ranks: Floats, level: int, use: str) -> Bools:
        """Return for each row of the queue whether its job is in MAXIJOB's idle queue.

        Rows that are not ``eligible`` are never in it.

        Args:
            level: 0 for soft limits, 1 for hard limits.
            use: name of the caller's purpose; the last result is kept per purpose.
        """
        if not self._single:
            return self._considered_by_several(queue, eligible, ranks, level)
        self._by_counter.follow(queue)
        number_of = self._number_of.array()
        counter = self._counter.of(queue.generation, queue.rows, lambda fresh: number_of[queue.code[fresh]])
        unlimited = 0 in self._by_counter.rows
        generation, last = self._last.get((level, use), (-1, eligible))
        limits = np.array(self._limits[level])
        chosen: Bools = np.zeros(queue.rows, dtype=np.bool_)
        dirty: set[int]
        if generation == queue.generation:
            before = len(last)
            chosen[:before] = last & eligible[:before]
            dirty = set(counter[np.flatnonzero(last & ~chosen[:before])].tolist())
        else:
            dirty = set(self._by_counter.rows)
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
        dirty.update(self._passed(counter, eligible & ~chosen, ranks, least, latest))
        dirty.discard(0)
        if len(dirty) > _FEW:
            self._choose_all(chosen, dirty, counter, eligible, ranks, limits)
        else:
            for number in dirty:
                self._choose(chosen, number, eligible, ranks, limits[number])
        self._last[level, use] = queue.generation, chosen
        return chosen | (eligible & (counter == 0)) if unlimited else chosen.copy()

    def _passed(self, counter: Ints, others: Bools, ranks: Floats, least: Floats, latest: Ints) -> list[int]:
        """Return the limits (by number) whose part of the idle queue must be chosen again.

        This is necessary if a row of ``others`` now belongs in it: fewer rows than the limit allows are chosen, or the
        row ranks before the worst of them.

        Args:
            counter: the number of the limit that applies to each row.
            others: which rows are eligible and not chosen.
            least: for each limit, the rank of the worst chosen row; -inf if more rows may be chosen.
            latest: for each limit, the worst chosen row.
        """
        if len(least) == 2 and 0 not in self._by_counter.rows:  # one counter for all rows
            tied = slice(0, int(latest[1]))
            passed = ((ranks > least[1]) & others).any() or ((ranks[tied] >= least[1]) & others[tied]).any()
            return [1] if passed else []
        rows = np.flatnonzero((ranks >= least.take(counter)) & others)
        theirs = counter[rows]
        passing = np.flatnonzero((ranks[rows] > least[theirs]) | (rows < latest[theirs]))
        found = np.zeros(len(least), dtype=np.bool_)
        found[theirs[passing]] = True
        return np.flatnonzero(found).tolist()

    def _choose(self, chosen: Bools, number: int, eligible: Bools, ranks: Floats, limit: float) -> None:
        """Put the jobs of highest rank that one limit admits in the idle queue.

        ``chosen`` says for each row (job) whether it is in the idle queue, and is changed. At most ``limit`` of the
        eligible rows are chosen; ties are broken by submission.
        """
        every = self._by_counter.rows[number].array()
        others = every[np.flatnonzero(eligible[every] & ~chosen[every])]
        mine = every[np.flatnonzero(chosen[every])]
        keys = ranks[others]
        # Usually only one or two rows change, so they are replaced one by one.
        for _ in range(_FEW):
            at = int(np.argmax(keys)) if len(keys) else -1
            if at < 0 or keys[at] == -inf:
                return
            if len(mine) >= limit:
                own = ranks[mine]
                worst = int(mine[own == own.min()].max())
                if (keys[at], -others[at]) <= (ranks[worst], -worst):
                    return
                chosen[worst] = False
                mine = mine[mine != worst]
            chosen[others[at]] = True
            mine = np.append(mine, others[at])
            keys[at] = -inf
        rows = every[np.flatnonzero(eligible[every])]
        chosen[every] = False
        chosen[_first(rows, ranks, int(limit)) if len(rows) > limit else rows] = True

    @staticmethod
    def _choose_all(
        chosen: Bools, numbers: set[int], counter: Ints, eligible: Bools, ranks: Floats, limits: Floats
    ) -> None:
        wanted = np.zeros(len(limits), dtype=np.bool_)
        wanted[list(numbers)] = True
        mine = wanted.take(counter)
        rows = np.flatnonzero(mine & eligible)
        rows = rows[np.lexsort((-ranks[rows], counter[rows]))]  # stable: ties by submission
        of = counter[rows]
        begins = np.flatnonzero(np.diff(of, prepend=-1))
        place = np.arange(len(rows)) - np.repeat(begins, np.diff(begins, append=len(rows)))
        chosen &= ~mine
        chosen[rows[np.flatnonzero(place < limits[of])]] = True

    def _considered_by_several(self, queue: MauiQueue, eligible: Bools, ranks: Floats, level: int) -> Bools:
        """Return for each row of the queue whether its job is in the idle queue.

        This function is for jobs to which several limits can apply. Jobs are chosen by priority. A job is skipped if a
        limit that applies to it is already used up.
        """
        limits, entries = self._limits[level], self._by_counter.counters_of
        codes = queue.code[: queue.rows]
        limited = eligible & (self._number_of.array().take(codes) > 0)
        kept: Bools = eligible & ~limited
        #: combinations with a full counter
        closed = np.zeros(len(entries), dtype=np.bool_)
        for number, limit in enumerate(limits):
            if limit < 1:
                closed[self._by_counter.codes[number].array()] = True
        idle = [0] * len(limits)
        left = np.flatnonzero(limited & ~closed[codes])
        # In parts, because most remaining rows can be skipped once some counters are full.
        while len(left):
            part = _first(left, ranks, _PART) if len(left) > 2 * _PART else left
            part = part[np.argsort(-ranks[part], kind="stable")]
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
                            closed[self._by_counter.codes[number].array()] = True
            kept[chosen] = True
            limited[part] = False
            left = left[np.flatnonzero(limited[left] & ~closed[codes[left]])]
        return kept


def _first(rows: Rows, ranks: Floats, most: int) -> Rows:
    """Return the ``most`` jobs of highest priority among ``rows``, in any order.

    A job is given by its row in the queue. Ties go to the row that comes first.
    """
    own = ranks[rows]
    least = np.partition(own, len(rows) - most)[len(rows) - most]
    above = np.flatnonzero(own > least)
    first: Rows = rows[np.concatenate([above, np.flatnonzero(own == least)[: most - len(above)]])]
    return first
