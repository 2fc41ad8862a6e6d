"""Record the usage of associations and QOS.

Once per period, old usage decays and the usage of running jobs is added.
"""

import calendar
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.schedulers.slurm.accounts.records import Accounts, Tres
from pipistrelle.schedulers.slurm.cluster.jobs import SlurmJob
from pipistrelle.schedulers.slurm.config.parameters import PrioritySettings

_DAY: Final = 86400
#: s from 1970-01-01 to a Monday, taken where no date is given
MONDAY: Final = 4 * _DAY


class Usage:
    """The usage of all associations and QOS over time.

    Args:
        start: time from which usage counts, s.
        epoch: date of time 0, s since 1970-01-01; None: time 0 is a Monday at 00:00.
    """

    def __init__(
        self,
        accounts: Accounts,
        settings: PrioritySettings,
        start: int,
        epoch: float | None,
        partition_qos: Callable[[SlurmJob], int],
    ) -> None:
        self.accounts = accounts
        self.partition_qos = partition_qos
        self.settings = settings
        self.per_second = 1.0 - 0.693 / settings.decay_half_life if settings.decay_half_life > 0 else 1.0
        self.last = start
        self.epoch = int(MONDAY if epoch is None else epoch)
        self.next_reset = self._reset_after(start)

    def advance(self, now: int, jobs: Iterable[SlurmJob]) -> None:
        """Decay all usage up to ``now`` (s), then add the usage of running jobs.

        The running jobs' usage counts from the last call on. Call `settle` afterwards. Slurm's thread works in the same
        two steps.
        """
        seconds = now - self.last
        if seconds <= 0:
            return
        if self.next_reset is not None and now >= self.next_reset:
            self._reset()
            self.next_reset = self._reset_after(now)
        factor = self.per_second**seconds
        if factor != 1.0:
            accounts = self.accounts
            used = accounts.usage != 0.0
            accounts.usage *= factor
            accounts.wall[used] *= factor
            for one in accounts.associations if accounts.wanted_minutes else ():
                if used[one.index]:
                    for name in one.minutes:
                        one.minutes[name] *= factor
            for qos in self.accounts.qos:
                if qos.usage and "NoDecay" not in qos.settings.flags:
                    qos.usage *= factor
                    qos.wall *= factor
                    for name in qos.minutes:
                        qos.minutes[name] *= factor
        self.add(jobs, now)

    def settle(self, now: int) -> None:
        """Begin the next period of usage at ``now`` (s).

        If a job ends between `advance` and this call, its usage in the last period is counted twice.
        """
        self.last = max(self.last, now)

    def add(self, jobs: Iterable[SlurmJob], now: int) -> None:
        """Add the usage of jobs up to ``now`` (s).

        A job's usage counts from its start or from the last calculation (every PriorityCalcPeriod), whichever
        is later. This is also called when a job ends.
        """
        accounts = self.accounts
        wanted = accounts.wanted_minutes
        at: list[NDArray[np.intp]] = []
        billings: list[float] = []
        weights: list[float] = []
        #: {s of usage: s with the decay within the period}
        decayed: dict[int, float] = {}
        for job in jobs:
            seconds = now - max(job.start, self.last)
            if seconds <= 0 or job.assoc < 0:
                continue
            qos = accounts.qos[job.qos] if job.qos >= 0 else None
            if seconds not in decayed:
                decayed[seconds] = seconds * self.per_second**seconds
            weight = decayed[seconds]
            if qos is not None:
                weight *= qos.settings.usage_factor
            billing = job.tres.get("billing", 0.0) * weight
            line = accounts.lines[job.assoc]
            at.append(line)
            billings.append(billing)
            weights.append(weight)
            for index in line if wanted else ():
                _add_minutes(accounts.associations[index].minutes, wanted, job, weight)
            for number in {job.qos, self.partition_qos(job)}:
                if number >= 0:
                    one = accounts.qos[number]
                    one.usage += billing
                    one.wall += weight
                    _add_minutes(one.minutes, wanted, job, weight)
        if len(at) == 1:
            accounts.usage[at[0]] += billings[0]
            accounts.wall[at[0]] += weights[0]
        elif at:
            where, lengths = np.concatenate(at), [len(line) for line in at]
            np.add.at(accounts.usage, where, np.repeat(billings, lengths))
            np.add.at(accounts.wall, where, np.repeat(weights, lengths))

    def _reset(self) -> None:
        self.accounts.usage[:] = self.accounts.wall[:] = 0.0
        for one in self.accounts.associations:
            one.minutes = {}
        for qos in self.accounts.qos:
            qos.usage, qos.wall, qos.minutes = 0.0, 0.0, {}

    def _reset_after(self, now: int) -> int | None:
        """Return the next time at which usage is reset (s); None: never."""
        period = self.settings.usage_reset_period
        if period in ("NONE", "NOW", ""):
            return None
        date = self.epoch + now
        midnight = date - date % _DAY
        if period == "DAILY":
            return midnight + _DAY - self.epoch
        if period == "WEEKLY":  # Sunday at 00:00
            weekday = (midnight // _DAY + 4) % 7  # 1970-01-01 was a Thursday; Sunday is 0
            return midnight + (7 - weekday) * _DAY - self.epoch
        year, month = _year_month(midnight // _DAY)
        months = {"MONTHLY": 1, "QUARTERLY": 3, "YEARLY": 12}.get(period, 1)
        month = (month - 1) // months * months + months + 1
        year, month = (year + 1, month - 12) if month > 12 else (year, month)
        return calendar.timegm((year, month, 1, 0, 0, 0)) - self.epoch

    def state(self) -> dict[str, Any]:
        """Return the times (s) of the last addition of usage and of its next reset."""
        return {"last": self.last, "next_reset": self.next_reset}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the times that the method `state` returned."""
        self.last, self.next_reset = state["last"], state["next_reset"]


def _add_minutes(minutes: Tres, wanted: Iterable[str], job: SlurmJob, weight: float) -> None:
    for name in wanted:
        minutes[name] = minutes.get(name, 0.0) + job.tres.get(name, 0.0) * weight


def _year_month(days: int) -> tuple[int, int]:
    """Return the year and month of the day ``days`` days after 1970-01-01."""
    year = 1970
    while True:
        length = 366 if calendar.isleap(year) else 365
        if days < length:
            break
        days -= length
        year += 1
    month = 1
    while days >= calendar.monthrange(year, month)[1]:
        days -= calendar.monthrange(year, month)[1]
        month += 1
    return year, month
