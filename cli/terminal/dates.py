"""Print dates beside simulated times."""

from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.base.lengths import date_text


class NoDates(PipistrelleError):
    """A date was given, but the date of time 0 is unknown."""


class Dates:
    """The dates of simulated times, if the workload gives the date of time 0.

    Args:
        epoch: Unix time (s) of time 0; None: no dates.
        timezone: zone of the dates; None or an unknown name means UTC.
    """

    def __init__(self, epoch: float | None, timezone: str | None = None) -> None:
        self._epoch = epoch
        self._zone: tzinfo = UTC
        if timezone is not None:
            with suppress(KeyError, ValueError, OSError):  # OSError for names such as "Europe"
                self._zone = ZoneInfo(timezone)

    def at(self, time: float) -> str:
        """Return the date at a simulated time (s); an empty text if dates are unknown."""
        return "" if self._epoch is None else date_text(self._epoch + time, self._zone) or ""

    def beside(self, time: float) -> str:
        """Return a simulated time in seconds as text.

        Its date follows in brackets if dates are known.
        """
        date = self.at(time)
        return f"{time:.10g} s" + (f" ({date})" if date else "")

    def time(self, moment: float | datetime, option: str) -> float:
        """Return a moment as simulated time (s).

        A date without a zone is in the zone of this object.

        Raises:
            NoDates: for a date, if the date of time 0 is unknown.
        """
        if not isinstance(moment, datetime):
            return moment
        if self._epoch is None:
            raise NoDates(
                "the date of time 0 is unknown for this workload",
                where=option,
                expected="seconds since time 0, or as 36h or 12:30:00",
                found=str(moment),
            )
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=self._zone)).timestamp() - self._epoch


def clock_text(now: float, epoch: float | None) -> str:
    """Return a simulated time as a UTC date if time 0 has a date.

    Otherwise return it as days and hours.
    """
    if epoch is not None and (date := date_text(epoch + now)) is not None:
        return date
    days, rest = divmod(int(now), 86400)
    return f"day {days:,} {rest // 3600:02d}:{rest % 3600 // 60:02d}"
