"""Dates beside simulated times, as the terminal shows them."""

from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.base.lengths import date_text


class NoDates(PipistrelleError):
    """A date was given where nothing tells when time 0 is."""


class Dates:
    """Dates of simulated times, where time 0 has one.

    Parameters
    ----------
    epoch
        Unix time of time 0, in seconds; None: there are no dates.
    timezone
        the name of the zone that they are shown in; None, or one that is not known: UTC.
    """

    def __init__(self, epoch: float | None, timezone: str | None = None) -> None:
        self._epoch = epoch
        self._zone: tzinfo = UTC
        if timezone is not None:
            with suppress(KeyError, ValueError, OSError):  # the last for names such as "Europe"
                self._zone = ZoneInfo(timezone)

    def at(self, time: float) -> str:
        """Return the date at a time (s), "" if there is none."""
        return "" if self._epoch is None else date_text(self._epoch + time, self._zone) or ""

    def beside(self, time: float) -> str:
        """Return a time in seconds, with its date in brackets if there is one."""
        date = self.at(time)
        return f"{time:.10g} s" + (f" ({date})" if date else "")

    def time(self, moment: float | datetime, option: str) -> float:
        """Return a time (s), or when (s) a date is, of the zone unless it says another; ``option`` is who says so.

        Raises
        ------
        NoDates
            when it is a date, and there are none.
        """
        if not isinstance(moment, datetime):
            return moment
        if self._epoch is None:
            raise NoDates(
                "the run's workload does not tell which date time 0 was",
                where=option,
                expected="seconds since time 0, or as 36h or 12:30:00",
                found=str(moment),
            )
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=self._zone)).timestamp() - self._epoch


def clock_text(now: float, epoch: float | None) -> str:
    """Return simulated time as a UTC date if time 0 has one, else as days and hours."""
    if epoch is not None and (date := date_text(epoch + now)) is not None:
        return date
    days, rest = divmod(int(now), 86400)
    return f"day {days:,} {rest // 3600:02d}:{rest % 3600 // 60:02d}"
