"""Parse the texts of options: times, ranges, gaps and requested times."""

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from typing import Final, NamedTuple, TypeVar
from zoneinfo import ZoneInfo

import numpy as np

from pipistrelle.protocol.base.errors import InputError, quoted
from pipistrelle.protocol.base.lengths import parse_seconds
from pipistrelle.traces.transforms.arrivals import Gaps
from pipistrelle.traces.transforms.scale import (
    draw_walltimes,
    fix_walltimes,
    scale_walltimes,
    walltimes_of_runtimes,
)
from pipistrelle.traces.workload import Workload

_T = TypeVar("_T")

_DATE: Final = re.compile(r"\d{4}-\d\d?-\d\d?(?:[T ]\d\d?:\d\d(?::\d\d)?)?")
_NUMBER: Final = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_UNIX: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Range(NamedTuple):
    """A range of values from `low` to `high`, both included."""

    low: float
    high: float


def zone_of(workload: Workload, name: str | None = None) -> tzinfo:
    """Return the time zone called ``name``.

    If ``name`` is None, return the workload's zone, or UTC if it has none.
    """
    text = name or workload.timezone
    if text is None or text == "UTC":
        return UTC
    try:
        return ZoneInfo(text)
    except (OSError, ValueError, KeyError):  # unknown zone, invalid path, or a folder
        raise InputError(
            "unknown time zone",
            where=workload.source if name is None else "--timezone",
            expected="a name such as Europe/Stockholm",
            found=quoted(text),
            hint="Choose another with --timezone; a system without time zones needs the Python package tzdata.",
        ) from None


def trace_time(workload: Workload, text: str, zone: tzinfo) -> float:
    """Return the simulated time (s) of a date in ``zone``.

    A text such as ``7d`` is a time after time 0.
    """
    words = text.strip()
    if not _DATE.fullmatch(words):
        return signed_seconds(words, "time")
    numbers = list(map(int, re.split("[-T :]", words)))
    try:
        date = datetime(*numbers[:3], *numbers[3:], tzinfo=zone)  # type: ignore[misc,arg-type]
        seconds = (date - _UNIX).total_seconds()
    except (ValueError, OverflowError):
        raise InputError(
            "there is no such date", found=quoted(text), expected="a date such as '2002-08-01 08:00'"
        ) from None
    if workload.epoch is None:
        raise InputError(
            "the trace has no dates",
            where=workload.source,
            expected="UnixStartTime in its header, which says when time 0 is",
            found=f"the date {quoted(text)}",
            hint="Give the time after time 0, such as 7d.",
        )
    return seconds - workload.epoch


def signed_seconds(text: str, what: str = "length of time") -> float:
    """Parse a length of time (s), as `parse_seconds` does, that may be 0 or negative.

    Error messages call it ``what``.
    """
    words = text.strip()
    sign = -1.0 if words.startswith("-") else 1.0
    plain = words.removeprefix("-").removeprefix("+") if words[:2] not in ("+-", "-+") else words
    return sign * parse_seconds(plain, what, or_zero=True) or 0.0


def parse_range(text: str, parse: Callable[[str], float], what: str) -> Range:
    """Parse a range: ``MIN:MAX``, ``MIN:``, ``:MAX`` or a single value."""
    first, colon, second = (part.strip() for part in text.partition(":"))
    if not first and not second:
        raise InputError(f"a {what} cannot be read", expected="MIN:MAX, MIN:, :MAX or one value", found=quoted(text))
    low = parse(first) if first else -math.inf
    high = (parse(second) if second else math.inf) if colon else low
    if low > high:
        raise InputError(f"a {what} has its bounds reversed", expected="MIN:MAX", found=quoted(text))
    return Range(low, high)


def parse_units(text: str) -> float:
    """Parse a whole number of units, at least 0."""
    if re.fullmatch("[0-9]{1,15}", text) is None:
        raise InputError("a size is not a whole number", expected="a number of units, such as 16", found=quoted(text))
    return float(text)


def parse_factor(text: str, what: str = "factor") -> float:
    """Parse a factor above 0: ``0.5``, ``x0.5`` or ``50%``."""
    words = text.strip().removeprefix("x")
    number = words.removesuffix("%").strip()
    if _NUMBER.fullmatch(number) is None or not 0 < float(number) < math.inf:
        raise InputError(
            f"a {what} cannot be read", expected="a number above 0, such as 0.5 or 50%", found=quoted(text)
        )
    return float(number) / 100 if words.endswith("%") else float(number)


def parse_share(text: str, of: int) -> int:
    """Return the number of jobs that a text means: ``500``, or ``10%`` of `of` jobs."""
    if re.fullmatch("[0-9]{1,15}", text):
        count = int(text)
    else:
        share = parse_factor(text, "number of jobs") if text.endswith("%") else 2.0
        if share > 1:
            raise InputError(
                "a number of jobs cannot be read", expected="a number such as 500, or up to 100%", found=quoted(text)
            )
        count = max(1, math.floor(share * of + 0.5))
    if count < 1:
        raise InputError("a number of jobs is not above 0", found=quoted(text))
    return count


def parse_gaps(text: str) -> Gaps:
    """Parse gaps between jobs: ``100:fixed``, ``200:exp`` or ``0:200:unif``."""
    *times, kind = (part.strip() for part in text.split(":"))
    if len(times) != {"fixed": 1, "exp": 1, "unif": 2}.get(kind):
        raise InputError(
            "the times between submissions cannot be read",
            where="--submission-time",
            expected="TIME:fixed, MEAN:exp or MIN:MAX:unif",
            found=quoted(text),
            hint="Give a seed with --seed; 'then shuffle' shuffles afterwards.",
        )
    return Gaps(kind, *(signed_seconds(time, "time between submissions") for time in times))


def set_walltimes(workload: Workload, text: str, rng: np.random.Generator) -> Workload:
    """Return the workload with the requested times that a text describes.

    - ``none`` or ``-1``: no limits.
    - ``12h``: this time for all jobs.
    - ``100:3000``: random whole seconds.
    - ``101%``: a share of the run time, rounded up; ``50%:150%``: random whole percentages.
    - ``x1.5``: the trace's own requested times, multiplied.
    """
    words = text.strip()
    if words in ("none", "-1"):
        return fix_walltimes(workload, math.inf)
    if words.startswith("x"):
        return scale_walltimes(workload, parse_factor(words, "factor of the requested times"))
    low, colon, high = (part.strip() for part in words.partition(":"))
    if low.endswith("%") and (not colon or high.endswith("%")):
        first, last = _percent(low), _percent(high if colon else low)
        return walltimes_of_runtimes(workload, first, last, rng)
    if not colon and not low.endswith("%"):
        return fix_walltimes(workload, parse_seconds(low, "requested time"))
    if not low.endswith("%") and not high.endswith("%"):
        bounds = [parse_seconds(part, "requested time") for part in (low, high)]
        if all(bound.is_integer() for bound in bounds):
            return draw_walltimes(workload, int(bounds[0]), int(bounds[1]), rng)
    raise InputError(
        "the requested time cannot be read",
        where="--walltime",
        expected="none, TIME, MIN:MAX in whole seconds, P%, MIN%:MAX% or xFACTOR",
        found=quoted(text),
    )


def _percent(text: str) -> float:
    number = text.removesuffix("%").strip()
    if _NUMBER.fullmatch(number) is None:
        raise InputError("a percentage cannot be read", expected="a number and %, such as 101%", found=quoted(text))
    return float(number)
