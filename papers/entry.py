"""The computed result of a table, figure or claim of a paper.

A result has our numbers, the paper's numbers, charts and a verdict.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pipistrelle.protocol.base.errors import PipistrelleError

#: verdicts on an entry: all numbers within tolerances; some outside, for a known reason; computed, but no legible
#: number in the paper; impossible to compute; a required log is missing
Verdict = Literal["reproduced", "differs", "made anew", "not computable", "left out"]
VERDICTS: Final[tuple[Verdict, ...]] = ("reproduced", "differs", "made anew", "not computable", "left out")
ChartKind = Literal["lines", "steps", "points", "bars"]
#: a figure of a paper, or its claim in words
Said = float | str | None


class PapersError(PipistrelleError):
    """A paper, an entry or a requirement does not exist, or results cannot be stored."""


@dataclass(frozen=True)
class Tolerance:
    """The accepted difference of two numbers.

    It is the larger of an absolute and a relative bound.
    """

    absolute: float = 0.0
    relative: float = 0.0

    def holds(self, paper: float, ours: float) -> bool:
        """Return whether our number differs from the paper's by at most the tolerance.

        Rounding errors are ignored.
        """
        return abs(ours - paper) <= self.around(paper) + 1e-9 * abs(paper)

    def around(self, paper: float) -> float:
        """Return the largest difference from the paper's number that is accepted."""
        return max(self.absolute, self.relative * abs(paper))


@dataclass(frozen=True)
class FigureRow:
    """One number or claim of a paper, beside what we compute for it.

    Attributes:
        what: what the number or claim is about.
        paper: the paper's number or claim in words; None if the paper has none.
        ours: our number; None if it cannot be computed.
        low, high: the 95 % interval of our number, if it is random.
        agrees: whether ours agrees with the paper's; None if nothing is compared.
    """

    what: str
    paper: Said
    ours: Said
    unit: str = ""
    low: float | None = None
    high: float | None = None
    agrees: bool | None = None


def agreement(
    paper: Said, ours: Said, near: Tolerance, low: float | None = None, high: float | None = None
) -> bool | None:
    """Return whether our number agrees with the paper's; None if undecided.

    It agrees if it is within the tolerance ``near``, or if its 95 % interval, ``low`` to ``high``, contains the paper's
    number. If only the interval contains it, and is wider than four times the tolerance, the result is None.
    """
    if not isinstance(paper, float | int) or not isinstance(ours, float | int):
        return None
    if near.holds(paper, ours):
        return True
    if low is not None and high is not None and low <= paper <= high:
        return True if (high - low) / 2 <= 2 * near.around(paper) else None
    return False


@dataclass(frozen=True)
class Series:
    """A line or the bars of a chart.

    Attributes:
        low, high: ends of the confidence interval of each ``y``; None: no intervals.
        paper: whether the numbers are the paper's, not ours.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    paper: bool = False


def bars(name: str, values: Sequence[float], *, paper: bool = False) -> Series:
    """Return a chart series of bars, placed at x = 0, 1, 2, ..."""
    return Series(name, list(range(len(values))), values, paper=paper)


@dataclass(frozen=True)
class Chart:
    """A chart as data, which is both drawn and written to JSON.

    Attributes:
        x, y: labels of the axes.
        kind: lines with a mark at each number, steps without marks, points alone, or bars at x = 0, 1, 2, ...
        names: labels of the bars on the x axis.
        log_x, log_y: whether an axis is logarithmic.
    """

    title: str
    x: str
    y: str
    series: Sequence[Series]
    kind: ChartKind = "lines"
    names: Sequence[str] = ()
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Finding:
    """What was computed for one table, figure or claim of a paper.

    It has numbers, charts and notes.
    """

    rows: Sequence[FigureRow] = ()
    charts: Sequence[Chart] = ()
    notes: Sequence[str] = ()


def verdict_of(finding: Finding) -> Verdict:
    """Return the verdict on a table, figure or claim.

    The verdict says whether our numbers agree with the paper's.
    """
    told = [row.agrees for row in finding.rows if row.agrees is not None]
    if not told:
        return "made anew"
    return "reproduced" if all(told) else "differs"


def number_text(value: Said) -> str:
    """Format a number for a table: five significant digits, more for a large number."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if not math.isfinite(value):
        return "none"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 10_000 else f"{value:.5g}"
