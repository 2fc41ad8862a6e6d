"""Differences of two values of an axis by size of jobs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipistrelle.studies.inference.reports import SizeRow
from pipistrelle.studies.inference.trials import Value, label
from pipistrelle.studies.inference.words import words_of
from pipistrelle.studies.pictures.style import PictureLook, mark_missing, picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def sizes_picture(rows: Sequence[SizeRow], look: PictureLook, *, first: Value, second: Value, metric: str) -> bytes:
    """Return a picture of differences by size, as in figures 3 and 4 of Horace et al.

    The upper part shows the differences, (second - first) / first, with their intervals, and a line for all jobs. The
    lower part shows each class's share of the jobs. If some replicas of a class have no value, their number is beside
    its difference, or at the foot if there is no difference.

    Raises:
        PipistrelleError: matplotlib is not installed.
    """
    classes = [row for row in rows if row.name != "all"]
    whole = next(row for row in rows if row.name == "all")

    def draw(figure: "Figure") -> None:
        grid = figure.add_gridspec(2, 1, height_ratios=[3, 1])
        axes = figure.add_subplot(grid[0])
        for place, row in enumerate(classes):
            ratio = row.pair.ratio_of_means
            top = None if ratio.value is None else 100 * ((ratio.high or ratio.value) - 1)
            mark_missing(axes, place, top, row.pair.difference.count, row.pair.difference.count + row.unpaired)
            if ratio.value is None:
                continue
            axes.plot([place], [100 * (ratio.value - 1)], "o", color="C0")
            if ratio.low is not None and ratio.high is not None:
                axes.vlines(place, 100 * (ratio.low - 1), 100 * (ratio.high - 1), color="C0")
        axes.axhline(0, color="black", linewidth=0.8, label="no difference")
        if whole.pair.ratio_of_means.value is not None:
            value = 100 * (whole.pair.ratio_of_means.value - 1)
            axes.axhline(value, color="C1", linestyle="--", label=f"all jobs: {value:+.1f} %")
        axes.set_ylabel(f"difference of {words_of(metric).name} (%)")
        axes.legend()
        axes.grid(visible=True, alpha=0.3)
        names = [_class_text(row.name) for row in classes]
        axes.set_xticks(range(len(classes)), names)
        below = figure.add_subplot(grid[1], sharex=axes)
        below.bar(range(len(classes)), [100 * (row.share or 0.0) for row in classes], color="C0")
        below.set_ylabel("share of jobs (%)")
        below.set_xlabel("units that a job asks for")

    title = f"{words_of(metric).name} by job size: {label(second)} less {label(first)}, % of {label(first)}"
    gaps = [gap for row in rows for gap in row.gaps]
    return picture(look, draw, size=(8, 6), title=title, gaps=gaps)


def _class_text(name: str) -> str:
    low, _, high = name.partition("_")
    return f"{low} or more" if high == "up" else f"{low}-{high}" if high else low
