"""A table or figure of a paper as data: what the paper has, what computes ours, and how near they must be."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from pipistrelle.protocol.base.errors import PipistrelleError, did_you_mean, printable

#: how an entry ends: within its tolerances; not, for a known reason; made anew, but the paper has no number of it that
#: can be read; it cannot be computed at all; a log that it needs is not there
Verdict = Literal["reproduced", "differs", "made anew", "not computable", "left out"]
VERDICTS: Final[tuple[Verdict, ...]] = ("reproduced", "differs", "made anew", "not computable", "left out")
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

    def plain(self) -> dict[str, Any]:
        """Return it as JSON can have it."""
        names = ("what", "paper", "ours", "unit", "low", "high", "agrees")
        return {name: getattr(self, name) for name in names}


def compared(
    what: str,
    paper: float | None,
    ours: float | None,
    tolerance: Tolerance,
    unit: str = "",
    interval: tuple[float, float] | None = None,
) -> FigureRow:
    """Return a number of the paper beside ours: they agree within the tolerance, or if ours has it in its interval.

    An interval of more than twice the tolerance either way tells nothing, if ours itself is outside the tolerance.
    """
    low, high = interval if interval is not None else (None, None)
    agrees = None
    if paper is not None and ours is not None:
        agrees = tolerance.holds(paper, ours)
        if not agrees and low is not None and high is not None and low <= paper <= high:
            agrees = True if (high - low) / 2 <= 2 * tolerance.around(paper) else None
    return FigureRow(what, paper, ours, unit, low, high, agrees)


def claimed(what: str, paper: str, holds: bool, ours: str) -> FigureRow:
    """Return what the paper says in words beside what we find, and whether it holds."""
    return FigureRow(what, paper, ours, agrees=holds)


@dataclass(frozen=True)
class Series:
    """A line, or the bars, of a chart; ``low`` and ``high`` are ends of intervals, ``paper``: these are its numbers."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    paper: bool = False


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
    kind: Literal["lines", "steps", "points", "bars"] = "lines"
    names: Sequence[str] = ()
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Finding:
    """What came out of an entry: its figures, its charts, and what is to be said of these."""

    rows: Sequence[FigureRow] = ()
    charts: Sequence[Chart] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Entry:
    """A table, a figure or a claim of a paper.

    Parameters
    ----------
    id
        ``table-4.3``, ``figure-7``; unique in its paper.
    title
        what it shows, in a few words.
    place
        where it stands in the paper.
    shows
        what the paper reports, in a sentence or two.
    command
        what of ours makes it: a command line, or what to import.
    compute
        makes it anew on a `Bench`; None: it cannot be computed, for the `reason`.
    expects
        how it ends, if all its logs are there; where it is not said, "reproduced", or "not computable".
    reason
        why ours differ, or why there can be none.
    needs
        real logs that it reads, by the names of their files.
    """

    id: str
    title: str
    place: str
    shows: str
    command: str = ""
    compute: Callable[[Any], Finding] | None = None
    expects: Verdict = "reproduced"
    reason: str = ""
    needs: Sequence[str] = ()


@dataclass(frozen=True)
class Paper:
    """A paper and all its tables and figures.

    Parameters
    ----------
    id
        ``000`` to ``004``.
    name
        what it is about, in a few words.
    citation
        authors, title, where and when.
    entries
        in the paper's order.
    page
        the page of our documentation about it.
    """

    id: str
    name: str
    citation: str
    entries: Sequence[Entry]
    page: str

    def entry(self, name: str) -> Entry:
        """Return one of its entries; PapersError, which names a like one, if there is none."""
        for one in self.entries:
            if one.id == name:
                return one
        names = [one.id for one in self.entries]
        raise PapersError(
            f"paper {self.id} has no entry '{printable(name)}'",
            expected=f"one of {', '.join(names)}",
            hint=did_you_mean(name, names),
        )


@dataclass(frozen=True)
class EntryResult:
    """What became of an entry."""

    paper: Paper
    entry: Entry
    verdict: Verdict
    reason: str
    finding: Finding = field(default_factory=Finding)

    @property
    def compared(self) -> tuple[int, int]:
        """How many of its figures agree with the paper's, and how many are compared."""
        told = [row.agrees for row in self.finding.rows if row.agrees is not None]
        return sum(told), len(told)


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
