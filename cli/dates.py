"""Dates beside simulated times, as the terminal shows them."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

_UNIX: Final = datetime(1970, 1, 1, tzinfo=UTC)


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
        if self._epoch is None:
            return ""
        try:
            date = _UNIX + timedelta(seconds=self._epoch + time)
            return date.astimezone(self._zone).strftime("%Y-%m-%d %H:%M")
        except (OverflowError, ValueError):
            return ""

    def beside(self, time: float) -> str:
        """Return a time in seconds, with its date in brackets if there is one."""
        date = self.at(time)
        return f"{time:.10g} s" + (f" ({date})" if date else "")
