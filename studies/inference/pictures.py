"""Draw the results of a study: curves of a metric, for example by repair time, and differences by job size."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from pipistrelle.models.workloads.pictures import drawn_as
from pipistrelle.protocol.base.errors import printable
from pipistrelle.protocol.base.lengths import length_text
from pipistrelle.studies.inference.crossing import Curves
from pipistrelle.studies.inference.reports import SizeRow
from pipistrelle.studies.inference.trials import Value, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS: Final = "osD^vP*X"
#: most values of an axis that each get a tick
_MOST_TICKS: Final = 12


def curves_picture(
    curves: Curves,
    suffix: str,
    *,
    x: str,
    by: str | None,
    metric: str,
    timed: bool,
    normalised: bool = False,
    targets: Sequence[float] = (),
) -> bytes:
    """Return a picture of curves with intervals, as in figures 7 and 8 of paper 000.

    Args:
        suffix: the file's type, ``.svg`` or ``.png``.
        x, by, metric: names of the axes.
        timed: the numbers on the axis are seconds.
        normalised: divide each curve by its value at the least number.
        targets: values of the metric, drawn as lines, with the points where curves reach them.

    Raises:
        PipistrelleError: matplotlib is not installed.
    """

    def draw(figure: "Figure") -> None:
        axes = figure.add_subplot()
        for number, name in enumerate(curves.names):
            means, ends = curves.line(number, normalised=normalised)
            colour, marker = f"C{number % 10}", _MARKERS[number % len(_MARKERS)]
            told = "" if by is None else f"{by} {label(name)}"
            between, path = curves.path(number)
            first = curves.means[number][0] if normalised else 1.0
            axes.plot(between, path / first, color=colour, linewidth=1)
            axes.plot(curves.x, means, color=colour, marker=marker, markersize=4, linestyle="none", label=told)
            if ends is not None:
                axes.fill_between(curves.x, ends[0], ends[1], color=colour, alpha=0.2, linewidth=0)
            for target in targets:
                _reached(axes, curves, number, target, colour)
        for target in targets:
            axes.axhline(target, color="black", linestyle=":", linewidth=0.8)
        if curves.x[0] > 0:
            axes.set_xscale("log")
        places = range(0, len(curves.x), math.ceil(len(curves.x) / _MOST_TICKS))
        axes.set_xticks([float(curves.x[place]) for place in places], [_tick(curves, place, timed) for place in places])
        axes.minorticks_off()
        over = f", over that of {x} {_tick(curves, 0, timed)}" if normalised else ""
        axes.set_title(f"{metric} by {x}" + ("" if by is None else f" and {by}") + over, parse_math=False)
        axes.set_xlabel(x)
        axes.set_ylabel(f"{metric}{' (normalised)' if normalised else ''}")
        axes.grid(visible=True, alpha=0.3)
        if by is not None:
            axes.legend()

    return drawn_as(suffix, draw, 8, 5)


def _reached(axes: "Axes", curves: Curves, number: int, target: float, colour: str) -> None:
    found = curves.reach(number, target)
    if math.isfinite(found.at):
        axes.plot([found.at], [target], color=colour, marker="|", markersize=14)
    if found.low is not None and found.high is not None:
        ends = np.clip([found.low, found.high], curves.x[0], curves.x[-1])
        if ends[0] < ends[1]:
            axes.hlines(target, ends[0], ends[1], color=colour, linewidth=3)


def _tick(curves: Curves, place: int, timed: bool) -> str:
    number: Value = curves.labels[place]
    return length_text(float(curves.x[place])) if timed else label(number)


def sizes_picture(
    rows: Sequence[SizeRow], suffix: str, *, axis: str, first: Value, second: Value, metric: str
) -> bytes:
    """Return a picture of differences by size, as in figures 3 and 4 of paper 000.

    The upper part has the differences, (second - first) / first, with intervals, and a line for all jobs; the lower
    part the shares of the classes.

    Args:
        suffix: the file's type, ``.svg`` or ``.png``.

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
            if ratio.value is None:
                continue
            axes.plot([place], [100 * (ratio.value - 1)], "o", color="C0")
            if ratio.low is not None and ratio.high is not None:
                axes.vlines(place, 100 * (ratio.low - 1), 100 * (ratio.high - 1), color="C0")
        axes.axhline(0, color="black", linewidth=0.8, label="no difference")
        if whole.pair.ratio_of_means.value is not None:
            value = 100 * (whole.pair.ratio_of_means.value - 1)
            axes.axhline(value, color="C1", linestyle="--", label=f"all jobs: {value:+.1f} %")
        title = f"{metric}: {axis} {label(second)} less {label(first)}, % of {label(first)}"
        axes.set_title(printable(title), parse_math=False)
        axes.set_ylabel("difference, %")
        axes.legend()
        axes.grid(visible=True, alpha=0.3)
        names = [_class_text(row.name) for row in classes]
        axes.set_xticks(range(len(classes)), names)
        below = figure.add_subplot(grid[1], sharex=axes)
        below.bar(range(len(classes)), [100 * (row.share or 0.0) for row in classes], color="C0")
        below.set_ylabel("% of jobs")
        below.set_xlabel("units that a job asks for")

    return drawn_as(suffix, draw, 8, 6)


def _class_text(name: str) -> str:
    low, _, high = name.partition("_")
    return f"{low} or more" if high == "up" else f"{low}-{high}" if high else low
