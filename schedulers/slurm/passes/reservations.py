"""Advance reservations of nodes: which jobs they exclude, and until when."""

from typing import Any, Final

from pipistrelle.schedulers.slurm.cluster.bits import lowest
from pipistrelle.schedulers.slurm.cluster.jobs import SlurmJob
from pipistrelle.schedulers.slurm.cluster.machine import SlurmMachine
from pipistrelle.schedulers.slurm.config.machine import ReservationSettings
from pipistrelle.schedulers.slurm.priority.usage import MONDAY

_HOUR: Final = 3600
_DAY: Final = 24 * _HOUR


class SlurmReservation:
    """An advance reservation with its nodes and its current interval of time.

    A repeated reservation (HOURLY, DAILY, WEEKDAY, WEEKEND, WEEKLY) moves to its next interval when the current one
    ends.

    Args:
        epoch: date of time 0, s since 1970-01-01.
    """

    __slots__ = ("end", "epoch", "flags", "made", "mask", "settings", "start")

    def __init__(self, settings: ReservationSettings, mask: int, *, made: bool, epoch: int = MONDAY) -> None:
        self.settings = settings
        self.mask = mask
        self.start = int(settings.start)
        self.end = int(settings.end)
        self.flags = {flag.upper() for flag in settings.flags}
        self.made = made
        self.epoch = epoch

    def advance(self, now: int) -> bool:
        """Move a repeated reservation that has ended to its next interval.

        Return whether it still exists.
        """
        if now < self.end:
            return True
        while now >= self.end:
            step = self._step()
            if not step:
                return False
            self.start += step
            self.end += step
        return True

    def _step(self) -> int:
        """Return the time (s) from this interval to the next one; 0: there is none."""
        if "HOURLY" in self.flags:
            return _HOUR
        if "DAILY" in self.flags:
            return _DAY
        weekday = (self.end + self.epoch) // _DAY % 7  # 0: Thursday
        if "WEEKDAY" in self.flags:  # until Monday after Friday
            return {1: 3, 2: 2}.get(weekday, 1) * _DAY
        if "WEEKEND" in self.flags:  # Saturday and Sunday
            return {2: 1, 3: 6}.get(weekday, (2 - weekday) % 7) * _DAY
        return 7 * _DAY if "WEEKLY" in self.flags else 0

    def admits(self, job: SlurmJob) -> bool:
        """Return whether the reservation admits both the job's user and its account."""
        settings = self.settings
        for names, own in ((settings.users, job.user), (settings.accounts, job.account)):
            if any(name == f"-{own}" for name in names):
                return False
        users = [name for name in settings.users if not name.startswith("-")]
        accounts = [name for name in settings.accounts if not name.startswith("-")]
        if not users and not accounts:
            return True
        return (not users or job.user in users) and (not accounts or job.account in accounts)


class SlurmReservations:
    """The reservations of a run.

    Attributes:
        all: the reservations that were created and have not ended.
        waiting: the reservations that will be created later, sorted by the time of creation.
    """

    def __init__(
        self, settings: tuple[ReservationSettings, ...], machine: SlurmMachine, start: int, epoch: float | None = None
    ) -> None:
        self.machine = machine
        self.epoch = MONDAY if epoch is None else int(epoch)
        self.waiting = sorted((one for one in settings if one.announced > start), key=lambda one: one.announced)
        self.all: list[SlurmReservation] = []
        for one in settings:
            if one.announced <= start:
                self._make(one)

    def _make(self, settings: ReservationSettings) -> None:
        machine = self.machine
        mask = machine.mask_of_names(settings.nodes)
        if not mask and settings.node_count:
            names = settings.partition
            at = machine.partition_index.get(names, machine.default_partition)
            open_nodes = machine.partitions[at].mask & ~machine.down if machine.partitions else machine.all
            for feature in settings.features:
                open_nodes &= machine.features.get(feature, 0)
            if "OVERLAP" not in settings.flags:
                for other in self.all:
                    if other.start < settings.end and settings.start < other.end:
                        open_nodes &= ~other.mask
            idle = open_nodes & machine.idle
            use = idle if idle.bit_count() >= settings.node_count else open_nodes
            mask = lowest(use, min(settings.node_count, use.bit_count()))
        self.all.append(SlurmReservation(settings, mask, made=True, epoch=self.epoch))

    def advance(self, now: float) -> bool:
        """Create the reservations that are due, and drop those that have ended.

        Return whether any was created.
        """
        made = False
        while self.waiting and self.waiting[0].announced <= now:
            self._make(self.waiting.pop(0))
            made = True
        if self.all:
            self.all = [one for one in self.all if one.advance(int(now))]
        return made

    def find(self, name: str) -> SlurmReservation | None:
        """Return the reservation of this name; None if it does not exist now."""
        return next((one for one in self.all if one.settings.name == name), None)

    def refusal(self, job: SlurmJob) -> str:
        """Return why a job may not use the reservation that it names; "" if it may.

        Also return "" if the reservation is not created yet.
        """
        name = job.reservation
        if not name or "," in name or any(one.name == name for one in self.waiting):
            return ""
        found = self.find(name)
        if found is None:
            return f"there is no reservation {name}"
        return "" if found.admits(job) else f"access denied to reservation {name}"

    def open_nodes(self, job: SlurmJob, when: int, limit: int) -> tuple[int, bool, int]:
        """Return the nodes that reservations leave to a job, and from when on.

        Returns (set of nodes that the job may use, whether reservations exclude any nodes, start (s)).

        If a reservation during the job's run has all nodes, the start is after this reservation. Otherwise it is
        ``when``.

        Args:
            when: earliest start, s.
            limit: the job's time limit, s.
        """
        everything = self.machine.all
        if not self.all:
            return everything, False, when
        own = self.find(job.reservation) if job.reservation else None
        if own is not None and "FLEX" not in own.flags and when > own.end:
            return 0, True, when
        for _ in range(11):
            open_nodes, overlap, moved = everything, False, 0
            if own is not None and not own.flags & {"FLEX", "ANY_NODES"}:
                open_nodes = own.mask
            for one in self.all:
                if one is own or one.start >= when + limit or one.end <= when:
                    continue
                if own is not None and "OVERLAP" in own.flags | one.flags and one.mask & own.mask:
                    continue
                if one.mask == everything:
                    moved = max(moved, one.end)
                open_nodes &= ~one.mask
                overlap = True
            if not moved:
                return open_nodes, overlap, when
            when = moved
        return open_nodes, overlap, when

    def licenses_kept(self, name: str, now: int) -> int:
        """Return the number of licences called ``name`` that are reserved now."""
        return sum(one.settings.licenses.get(name, 0) for one in self.all if one.start <= now < one.end)

    def usable(self, job: SlurmJob, now: int) -> bool:
        """Return whether the reservation that a job names lets it run now."""
        own = self.find(job.reservation)
        if own is None or not own.admits(job):
            return False
        if "FLEX" in own.flags:
            return True
        return own.start <= now < own.end

    def next_end(self, after: int) -> int:
        """Return the earliest end of a reservation that has not ended at ``after``.

        Return 0 if there is none.
        """
        return min((one.end for one in self.all if one.end >= after), default=0)

    def state(self) -> dict[str, Any]:
        """Return the reservations as values that JSON can hold."""
        return {
            "all": [[one.settings.name, format(one.mask, "x"), one.start, one.end] for one in self.all],
            "waiting": [one.name for one in self.waiting],
        }

    def restore(self, state: dict[str, Any], settings: tuple[ReservationSettings, ...]) -> None:
        """Restore the reservations that the method `state` returned."""
        known = {one.name: one for one in settings}
        self.waiting = [known[name] for name in state["waiting"]]
        self.all = []
        for name, mask, start, end in state["all"]:
            one = SlurmReservation(known[name], int(mask, 16), made=True, epoch=self.epoch)
            one.start, one.end = start, end
            self.all.append(one)
