"""Collect our numbers beside the paper's, for one table, figure or claim."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import UNSET, UnsetType, structs

from pipistrelle.papers.bench import Bench, PapersSize
from pipistrelle.papers.entry import Chart, FigureRow, Finding, Said, Series, Tolerance, agreement
from pipistrelle.papers.printed import Entry, Paper


class Sheet:
    """Collects the numbers, charts and notes of one table, figure or claim of a paper.

    Their texts are looked up by name in the paper's data: first in the entry, then in what several entries share.
    """

    def __init__(self, paper: Paper, entry: Entry) -> None:
        self.entry: Final = entry
        #: tables of numbers that the paper and the entry have
        self.printed: Final[dict[str, Any]] = paper.printed | entry.printed
        #: the paper's number, tolerance and texts of each figure
        self.figures: Final = paper.figures | entry.figures
        self._charts = paper.charts | entry.charts
        self._notes = entry.notes
        self.rows: list[FigureRow] = []
        self.charts: list[Chart] = []

    def row(
        self,
        name: str,
        ours: Said,
        /,
        paper: Said | UnsetType = UNSET,
        *,
        interval: tuple[float | None, float | None] | None = None,
        near: Tolerance | None = None,
        agrees: bool | UnsetType | None = UNSET,
        unit: str | None = None,
        **labels: object,
    ) -> None:
        """Add our number beside the paper's.

        Args:
            ours: our number; None if it cannot be computed.
            paper, near, unit: replace the figure's number, tolerance and unit.
            interval: the 95 % interval of our number.
            agrees: whether our number agrees with the paper's, instead of the decision by tolerance and interval; None:
                do not compare them.
            labels: values for the labels in the figure's text.
        """
        figure = self.figures[name]
        said = figure.paper if paper is UNSET else paper
        low, high = interval or (None, None)
        if agrees is UNSET:
            agrees = agreement(said, ours, near or figure.tolerance, low, high)
        what = figure.what.format(**labels)
        self.rows.append(FigureRow(what, said, ours, figure.unit if unit is None else unit, low, high, agrees))

    def claim(self, name: str, holds: bool, /, **labels: object) -> None:
        """Add a paper's claim in words, our finding, and whether the claim holds."""
        figure = self.figures[name]
        ours = figure.ours if holds or figure.otherwise is None else figure.otherwise
        what, paper, ours = (str(text).format(**labels) for text in (figure.what, figure.paper, ours))
        self.rows.append(FigureRow(what, paper, ours, agrees=holds))

    def chart(self, name: str, series: Sequence[Series], names: Sequence[str] = (), **labels: object) -> None:
        """Add a chart to the entry; ``names`` label the bars."""
        one = self._charts[name]
        title, x, y = (text.format(**labels) for text in (one.title, one.x, one.y))
        self.charts.append(Chart(title, x, y, series, one.kind, names or one.names, one.log_x, one.log_y))

    def finding(self, size: PapersSize) -> Finding:
        """Return the entry's result.

        Attributes of ``size`` are filled into the braces of its notes.
        """
        return Finding(self.rows, self.charts, [note.format_map(structs.asdict(size)) for note in self._notes])


#: function that computes an entry
Compute = Callable[[Bench, Sheet], None]
