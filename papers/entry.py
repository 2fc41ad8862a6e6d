"""What an entry of a paper is computed to: numbers beside the paper's, charts, and whether both agree."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pipistrelle.protocol.base.errors import PipistrelleError

#: how an entry ends: within its tolerances; not, for a known reason; made anew, but the paper has no number of it that
#: can be read; it cannot be computed at all; a log that it needs is not there
Verdict = Literal["reproduced", "differs", "made anew", "not computable", "left out"]
VERDICTS: Final[tuple[Verdict, ...]] = ("reproduced", "differs", "made anew", "not computable", "left out")
ChartKind = Literal["lines", "steps", "points", "bars"]
#: a figure of a paper, or what it says in words
Said = float | str | None


class PapersError(PipistrelleError):
    """There is no such paper or entry, what it needs is not there, or its results cannot be kept."""


@dataclass(frozen=True)
class Tolerance:
    """How far a number of ours may be from the paper's: the larger of both, in its unit and as a share of it."""

    absolute: float = 0.0
    relative: float = 0.0

    def holds(self, paper: float, ours: float) -> bool:
        """Tell whether two numbers agree; rounding in the last bit is no difference."""
        return abs(ours - paper) <= self.around(paper) + 1e-9 * abs(paper)

    def around(self, paper: float) -> float:
        """Return how far from the paper's number ours may be."""
        return max(self.absolute, self.relative * abs(paper))


@dataclass(frozen=True)
class FigureRow:
    """One figure of the paper beside ours.

    Parameters
    ----------
    what
        what it is a figure of.
    paper
        the paper's number, its claim in words, or None: it has none.
    ours
        ours; None: it cannot be had.
    unit
        of both.
    low, high
        the 95 % interval of ours, where it is drawn at random.
    agrees
        whether both agree; None: there is nothing to compare.
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
    """Return whether a number of the paper is within the tolerance of ours, or in its interval; None: nobody can tell.

    An interval of more than twice the tolerance either way tells nothing if ours itself is outside the tolerance.
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
    """A line, or the bars, of a chart; ``low`` and ``high`` are ends of intervals, ``paper``: these are its numbers."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    paper: bool = False


def bars(name: str, values: Sequence[float], *, paper: bool = False) -> Series:
    """Return values as bars side by side."""
    return Series(name, list(range(len(values))), values, paper=paper)


@dataclass(frozen=True)
class Chart:
    """A figure as data: what is drawn is what stands in the JSON, too.

    Parameters
    ----------
    title, x, y
        what it is called, and its axes.
    series
        what is drawn.
    kind
        lines with a mark at each number, steps without, points alone, or bars side by side at 0, 1, ....
    names
        what the places on the x axis are called, of bars.
    log_x, log_y
        whether an axis is logarithmic.
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
    """What came out of an entry: its figures, its charts, and what is to be said of these."""

    rows: Sequence[FigureRow] = ()
    charts: Sequence[Chart] = ()
    notes: Sequence[str] = ()


def verdict_of(finding: Finding) -> Verdict:
    """Return how an entry ends that was computed."""
    told = [row.agrees for row in finding.rows if row.agrees is not None]
    if not told:
        return "made anew"
    return "reproduced" if all(told) else "differs"


def number_text(value: Said) -> str:
    """Return a figure for a table: five digits that count, more of a large number."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if not math.isfinite(value):
        return "none"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 10_000 else f"{value:.5g}"
