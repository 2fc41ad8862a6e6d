"""The part of a run that metrics cover: all but the warm-up and the drain."""

from dataclasses import dataclass
from math import fsum, inf, isfinite
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.runs.description.policy import span_of
from pipistrelle.runs.execution.job_table import JobTable

_JOBS: Final = (" jobs", " job")


class WindowError(PipistrelleError):
    """A warm-up or drain is malformed, or leaves nothing of the run."""


@dataclass(frozen=True, slots=True)
class Leave:
    """How much to leave out at the start or the end of a run.

    It is given as seconds or as a number of jobs.
    """

    seconds: float = 0.0
    jobs: int = 0

    @classmethod
    def parse(cls, text: str, where: str) -> "Leave":
        """Parse a text such as ``30d`` or ``1000 jobs``, or raise WindowError."""
        found = text.strip()
        for suffix in _JOBS:
            if found.endswith(suffix):
                count = found.removesuffix(suffix).replace(",", "").strip()
                if count.isdecimal():
                    return cls(jobs=int(count))
        try:
            return cls(seconds=span_of(found))
        except ValueError as error:
            raise WindowError(
                str(error).removesuffix("."), where=where, expected="such as '30d', or '1000 jobs'", found=f"'{text}'"
            ) from None


NOTHING: Final = Leave()


@dataclass(frozen=True, slots=True)
class WindowOfRun:
    """The period (s) of a run that its metrics cover, and the jobs that they count."""

    begin: float
    end: float
    #: only jobs submitted before this time (s) count; inf if the drain is not a time
    before: float
    rows: slice
    #: whether the whole run counts
    whole: bool

    @classmethod
    def of(cls, table: JobTable, warm_up: Leave, drain: Leave) -> "WindowOfRun":
        """Return the part of a run between warm-up and drain."""
        submit, count = table.submit, len(table)
        whole = warm_up == NOTHING and drain == NOTHING
        first = float(submit[0]) if count else 0.0
        begin = max(first, warm_up.seconds)
        if warm_up.jobs:
            begin = float(submit[warm_up.jobs]) if warm_up.jobs < count else inf
        cut = table.reason == "horizon"
        last = table.ended if cut else last_end(table)
        end, before = last, inf
        if drain.seconds:
            latest = float(submit[-1]) if count else 0.0
            end = before = (table.until if isfinite(table.until) else latest) - drain.seconds
        if drain.jobs:
            end = float(submit[-drain.jobs]) if drain.jobs <= count else -inf
        if not whole and not begin < end:
            raise WindowError(
                "warm-up and drain leave nothing of the run",
                expected=f"less than its {count:,} jobs and {last:,.6g} s",
                found=f"jobs from {begin:,.6g} s to {end:,.6g} s",
            )
        return cls(begin, end, before, slice(warm_up.jobs, count - drain.jobs), whole)

    def counts(self, table: JobTable) -> NDArray[np.bool_]:
        """Return whether metrics count each job of a table, shape (jobs,)."""
        chosen = np.zeros(len(table), dtype=np.bool_)
        chosen[self.rows] = True
        found: NDArray[np.bool_] = chosen & (table.submit >= self.begin) & (table.submit < self.before)
        return found

    def held(self, table: JobTable) -> float:
        """Return the unit-seconds that jobs held in the period.

        If the run ended at its time limit, units that jobs still held count up to the limit; otherwise they do not
        count.
        """
        begin, until, units = table.held_from, table.held_until, table.held_units
        if table.reason == "horizon":
            until = np.where(np.isnan(until), table.ended, until)
        else:
            over = ~np.isnan(until)
            begin, until, units = begin[over], until[over], units[over]
        if not self.whole:
            begin = np.maximum(begin, self.begin)
            until = np.minimum(until, self.end)
        return fsum(np.maximum((until - begin) * units, 0.0).tolist())


def last_end(table: JobTable) -> float:
    """Return the latest end of an attempt of a job (s); 0 if no attempt has ended."""
    ends = table.held_until[~np.isnan(table.held_until)]
    return float(ends.max()) if ends.size else 0.0
