"""Curves of a metric over a numeric axis, such as the repair time."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from pipistrelle.models.samples.estimates import LEVEL, Floats
from pipistrelle.protocol.base.lengths import length_text
from pipistrelle.studies.inference.crossing import Curves
from pipistrelle.studies.inference.gaps import gaps
from pipistrelle.studies.inference.trials import TrialTable, Value, label
from pipistrelle.studies.inference.words import axis_words, words_of
from pipistrelle.studies.pictures.style import (
    MARKERS,
    AxisScale,
    PictureLook,
    check_log_scale,
    mark_missing,
    panels_of,
    picture,
    short_labels,
    size_of,
    what_varies,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: least distance of two ticks with labels, as a share of a picture that is 8 inches wide
_TICK_DISTANCE: Final = 1 / 14


def curves_picture(
    trials: TrialTable,
    look: PictureLook,
    *,
    x: str,
    by: str | None,
    metric: str,
    panels: str | None = None,
    level: float = LEVEL,
    normalised: bool = False,
    targets: Sequence[float] = (),
) -> bytes:
    """Return a picture of curves with intervals, as in figure 7 of Horace et al.

    Straight lines join the means. If there are targets, the curves are instead the monotone cubics from which `Curves`
    computes where targets are reached. The axis is logarithmic if that spaces its numbers more evenly.

    A hollow point is a mean that leaves out replicas without a value of the metric. A note at the foot names cells
    without any value, which keep their place on the axis.

    Args:
        x: the numeric axis.
        by: the axis with a curve per value, or None.
        metric: the column.
        panels: the axis with a panel per value, or None.
        normalised: divide each curve by its value at the least number on the axis.
        targets: values of the metric, drawn as lines, with the points where curves reach them.

    Raises:
        PipistrelleError: another axis varies, a column is missing or matplotlib is not installed.
    """
    parts: list[Value] = [None] if panels is None else trials.values(panels)
    tables = [trials if panels is None else trials.only([(panels, label(value))]) for value in parts]
    found = [Curves(table, x, by, metric, level=level, gaps=True) for table in tables]
    missing = gaps(trials, metric)
    words = words_of(metric)
    most = [float(value) for curves in found for value in curves.means.ravel() if not math.isnan(value)]
    check_log_scale(look, most, metric, trials.where)
    scale = AxisScale(1.0, f"{words.name} (normalised)") if normalised else AxisScale.of(words, [*most, *targets])
    timed = all(isinstance(value, str) for value in trials.values(x))

    def draw(figure: "Figure") -> None:
        for _, column, axes in panels_of(figure, 1, len(parts)):
            curves = found[column]
            for number in range(len(curves.names)):
                _draw_curve(axes, curves, number, by, scale, normalised=normalised, cubic=bool(targets))
                for target in targets:
                    _reached(axes, curves, number, target, scale)
            for target in targets:
                axes.axhline(target / scale.unit, color="black", linestyle=":", linewidth=0.8)
            shares = _shares(curves.x)
            if _is_log(curves.x):
                axes.set_xscale("log")
                shares = _shares(np.log(curves.x))
            places = _tick_places(shares, _TICK_DISTANCE * 8.0 / (figure.get_size_inches()[0] / len(parts)))
            numbers = [float(curves.x[place]) for place in places]
            axes.set_xticks(numbers, [_tick(curves, place, timed) for place in places])
            axes.minorticks_off()
            if np.isnan(curves.means[:, 0] if normalised else curves.means).all():
                axes.set_yticks([])  # numbers would mean nothing
            elif look.log_scale:
                axes.set_yscale("log")
            axes.set_xlabel(axis_words(x))
            axes.set_ylabel(scale.text if column == 0 else "")
            axes.grid(visible=True, alpha=0.3)
            if panels is not None:
                axes.set_title(f"{axis_words(panels)} {short_labels(parts)[column]}", parse_math=False, fontsize=8)
            if by is not None and column == 0:
                axes.legend(title=axis_words(by), fontsize=7, title_fontsize=7)

    over = f", over that of {_tick(found[0], 0, timed)}" if normalised else ""
    title = what_varies([metric], (x, by, panels)) + over
    size = (8.0, 5.0) if panels is None else size_of(1, len(parts), width=4.2, height=3.0)
    some = any(0 < known < every for curves in found for known, every in curves.counts.reshape(-1, 2).tolist())
    return picture(look, draw, size=size, title=title, gaps=missing, mark="hollow" if some else "")


def _draw_curve(
    axes: "Axes",
    curves: Curves,
    number: int,
    by: str | None,
    scale: AxisScale,
    *,
    normalised: bool,
    cubic: bool,
) -> None:
    means, ends = curves.line(number, normalised=normalised)
    colour, marker = f"C{number % 10}", MARKERS[number % len(MARKERS)]
    told = None if by is None else short_labels(curves.names)[number]
    between, path = curves.path(number) if cubic else (curves.x, curves.means[number])
    first = curves.means[number][0] if normalised else 1.0
    axes.plot(between, path / first / scale.unit, color=colour, linewidth=1)
    known, every = curves.counts[number].T
    for hollow in (False, True):
        chosen = (known < every) if hollow else (known == every)
        if chosen.any() or not hollow:
            axes.plot(
                curves.x[chosen], means[chosen] / scale.unit, color=colour, marker=marker, markersize=4,
                linestyle="none", label=None if hollow else told, markerfacecolor="white" if hollow else colour,
            )  # fmt: skip
    if ends is not None:
        low, high = ends / scale.unit
        axes.fill_between(curves.x, low, high, color=colour, alpha=0.2, linewidth=0)
    # the axis has the places of all values, also of those without a mean
    axes.update_datalim(np.column_stack((curves.x, curves.x)), updatey=False)
    aside = 7.0 * (number - (len(curves.names) - 1) / 2)
    for at, mean, some, of in zip(curves.x.tolist(), means.tolist(), known.tolist(), every.tolist(), strict=True):
        mark_missing(axes, at, None if math.isnan(mean) else mean / scale.unit, some, of, colour, aside=aside)


def _reached(axes: "Axes", curves: Curves, number: int, target: float, scale: AxisScale) -> None:
    if bool(np.isnan(curves.means[number]).any()):
        return  # a curve with a gap may reach the target inside it
    found, colour = curves.reach(number, target), f"C{number % 10}"
    target /= scale.unit
    if math.isfinite(found.at):
        axes.plot([found.at], [target], color=colour, marker="|", markersize=14)
    if found.low is not None and found.high is not None:
        ends = np.clip([found.low, found.high], curves.x[0], curves.x[-1])
        if ends[0] < ends[1]:
            axes.hlines(target, ends[0], ends[1], color=colour, linewidth=3)


def _shares(numbers: Floats) -> Floats:
    """Map ascending numbers to 0 to 1 in proportion: the first becomes 0, the last 1."""
    width = float(numbers[-1] - numbers[0])
    shares: Floats = (numbers - numbers[0]) / (width if width > 0 else 1.0)
    return shares


def _is_log(x: Floats) -> bool:
    """Return whether a logarithmic axis suits ascending numbers better.

    It does if their logarithms are more evenly spaced than the numbers. This is so if their median distance between
    neighbours is a greater share of their span.
    """
    if len(x) < 3 or x[0] <= 0:
        return False
    return bool(np.median(np.diff(_shares(np.log(x)))) > np.median(np.diff(_shares(x))))


def _tick_places(shares: Floats, least: float) -> list[int]:
    """Return the indices of the numbers that get a tick.

    These are the first number, and each that is at least ``least`` away from the tick before.
    """
    places = [0]
    for place in range(1, len(shares)):
        if shares[place] - shares[places[-1]] >= least:
            places.append(place)
    return places


def _tick(curves: Curves, place: int, timed: bool) -> str:
    number: Value = curves.labels[place]
    return length_text(float(curves.x[place])) if timed else label(number)
