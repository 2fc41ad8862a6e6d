"""Standing reservations (SRCFG): units kept for some jobs at recurring times."""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import floor, inf

from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.units.masks import lowest, mask_of, units_of
from pipistrelle.schedulers.maui.config.hosts import units_of_hosts
from pipistrelle.schedulers.maui.config.settings import DAY, KINDS, PERIODS, MauiSettings, Names, Standing
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.windows import Closure, span


class StandingReservations:
    """The standing reservations of a configuration on a machine.

    Args:
        midnight: seconds from 0:00 on a Sunday (local time) to time 0.
        processors: processors of each unit, by number; None: one each.

    Raises:
        PlatformError: the machine lacks a reservation's hosts.
    """

    def __init__(
        self,
        settings: MauiSettings,
        machine: Machine,
        midnight: float = 0.0,
        processors: Sequence[int] | None = None,
    ) -> None:
        self._all = settings.standing
        self._midnight = midnight
        self._processors = processors
        self._units = [self._mask(standing, machine) for standing in self._all]
        self._day = -1
        self._until = -inf
        self._closed: list[tuple[int, Closure]] = []

    def __len__(self) -> int:
        return len(self._all)

    def _mask(self, standing: Standing, machine: Machine) -> int:
        """Return the units of a standing reservation, as a bit mask.

        These are the units of its hosts, or all units if it names no hosts. If it has tasks, it gets only as many units
        as they need: the highest units of its hosts, and if these are too few, also the highest other units.
        """
        every = mask_of(machine.all_units)
        hosts = every
        if standing.hosts is not None:
            where = f"{standing.where}, SRCFG[{standing.name}] HOSTLIST"
            hosts = mask_of(units_of_hosts(standing.hosts, machine, where))
        wanted = standing.tasks * standing.units_per_task
        if not wanted:
            return hosts
        missing = wanted - self._count(hosts)
        if missing > 0:  # hosts first, then other units
            return hosts | self._highest(every & ~hosts, missing)
        return self._highest(hosts, wanted)

    def _count(self, mask: int) -> int:
        """Return the number of processors of the units in a bit mask."""
        if self._processors is None:
            return mask.bit_count()
        return sum(self._processors[unit] for unit in units_of(mask))

    def _highest(self, mask: int, wanted: int) -> int:
        """Return the highest units in ``mask`` (a bit mask) with ``wanted`` processors.

        Return all units if they have too few processors.
        """
        count = wanted
        if self._processors is not None:
            sizes = accumulate(self._processors[unit] for unit in sorted(units_of(mask), reverse=True))
            count = next((number for number, size in enumerate(sizes, 1) if size >= wanted), mask.bit_count())
        return mask & ~lowest(mask, mask.bit_count() - count) if count < mask.bit_count() else mask

    def lets_in(self, job: SchedulerJob, names: Names, walltime: float) -> tuple[bool, ...]:
        """Return for each standing reservation whether it admits a job.

        A reservation admits a job if it lists one of the job's credentials, or if the walltime (s) is within its time
        limit.
        """
        if not self._all:
            return ()
        who = dict(zip(KINDS, names, strict=True))
        return tuple(
            0 <= walltime <= standing.time_limit or any(who[kind] in listed for kind, listed in standing.access.items())
            for standing in self._all
        )

    def described(self, now: float) -> list[str]:
        """Return a text for each standing reservation, with name, units and times (s).

        The times are those of the current period, or of the next one.
        """
        found = dict(reversed(self.closed(now)))
        return [
            f"SRCFG[{self._all[number].name}] (units {units_of(units)}, {span(begin, end)})"
            for number, (begin, end, units) in sorted(found.items())
        ]

    def closed(self, now: float) -> list[tuple[int, Closure]]:
        """Return the units that standing reservations keep from other jobs, and when.

        There is an entry for each of the next DEPTH periods of a reservation, beginning with the current one, and for
        the previous period if it has not ended. An entry is (number of the standing reservation, closure), where the
        closure has the units and the period.
        """
        day = floor((now + self._midnight) / DAY)
        if not self._all:
            return []
        if day != self._day or now >= self._until:
            self._day = day
            self._closed = [found for number in range(len(self._all)) for found in self._periods(number, now)]
            self._until = min((closure.end for _, closure in self._closed), default=inf)
        return self._closed

    def _periods(self, number: int, now: float) -> Iterator[tuple[int, Closure]]:
        standing, units = self._all[number], self._units[number]
        if not units:
            return
        length = PERIODS.get(standing.period)
        if length is None:
            yield number, Closure(0.0, inf, units)
            return
        first = floor((now + self._midnight) / length)
        end = length if standing.end is None else min(standing.end, length)
        if end <= standing.start:  # over midnight
            end += length
        for period in range(first - 1, first + standing.depth):
            if standing.period == "DAY" and period % 7 not in standing.days:
                continue
            zero = period * length - self._midnight
            if zero + end > now:
                yield number, Closure(zero + standing.start, zero + end, units)
