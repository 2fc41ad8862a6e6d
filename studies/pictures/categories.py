"""Pictures of metrics by category, such as policy or log, as bars or boxes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pipistrelle.models.samples.estimates import LEVEL, Interval, Method, mean_interval
from pipistrelle.studies.inference.gaps import Gap, gaps_of
from pipistrelle.studies.inference.reports import more_axes
from pipistrelle.studies.inference.trials import TrialTable, Value
from pipistrelle.studies.inference.words import axis_words, words_of
from pipistrelle.studies.pictures.style import (
    AxisScale,
    PictureLook,
    check_log_scale,
    log_scaled,
    mark_missing,
    offsets,
    panels_of,
    picture,
    short_labels,
    size_of,
    what_varies,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Key = tuple[Value, Value, Value]


class _Bar(NamedTuple):
    """The replicas of a cell, as a bar or box shows them.

    They have values, a number, a mean with an interval, and gaps.
    """

    values: list[float]
    every: int
    mean: Interval
    gaps: list[Gap]


def categories_picture(
    trials: TrialTable,
    look: PictureLook,
    kind: Literal["bars", "boxes"],
    *,
    x: str,
    by: str | None,
    panels: str | None,
    metrics: Sequence[str],
    level: float = LEVEL,
    method: Method = "t",
) -> bytes:
    """Return a picture of metrics by category: bars of means, or boxes of replicas.

    Bars have confidence intervals. A box has the quartiles of the replicas, whiskers up to 1.5 times the box, and
    points beyond. If some replicas of a cell have no value of the metric, its bar is hatched, and a note says how many
    replicas are shown. A category without any value keeps its place, its label and its colour in the legend.

    Args:
        x: the axis along the picture.
        by: the axis with a colour per value, or None.
        panels: the axis with a panel per value, or None.
        metrics: columns; if there are several, each gets its own row of panels.

    Raises:
        PipistrelleError: another axis varies, a column is missing or matplotlib is not installed.
    """
    chosen = [axis for axis in (x, by, panels) if axis is not None]
    if rest := [name for name in trials.axes if name not in chosen]:
        raise more_axes(trials, rest)
    across, colours, parts = (_values(trials, axis) for axis in (x, by, panels))
    tables = [_bars(trials, chosen, metric, level, method) for metric in metrics]
    gaps = [gap for table in tables for bar in table.values() for gap in bar.gaps]
    for metric, table in zip(metrics, tables, strict=True):
        shown = [value for bar in table.values() for value in (bar.values if kind == "boxes" else [bar.mean.value])]
        check_log_scale(look, (value for value in shown if value is not None), metric, trials.where)

    def draw(figure: "Figure") -> None:
        for row, column, axes in panels_of(figure, len(metrics), len(parts)):
            table = tables[row]
            words = words_of(metrics[row])
            scale = AxisScale.of(words, [bar.mean.value for bar in table.values()])
            shown = {key: bar for key, bar in table.items() if panels is None or key[-1] == parts[column]}
            _draw_panel(axes, kind, shown, (across, colours), scale, by, log_scale=look.log_scale)
            axes.set_xticks(range(len(across)), short_labels(across), **_slant(across, len(parts)))
            axes.set_xlabel(axis_words(x))
            axes.set_ylabel(scale.text if row == 0 or len(metrics) > 1 else "")
            if panels is not None:
                axes.set_title(f"{axis_words(panels)} {short_labels(parts)[column]}", parse_math=False, fontsize=8)
            if by is not None and (row, column) == (0, 0):
                _add_legend(axes, kind, by, colours)

    width = max(3.4, 0.5 + 0.35 * len(across) * len(colours))
    size = size_of(len(metrics), len(parts), width=width, height=2.6)
    some = any(0 < len(bar.values) < bar.every for table in tables for bar in table.values())
    mark = "" if not some else "hatched" if kind == "bars" else "boxes of fewer replicas"
    return picture(look, draw, size=size, title=what_varies(metrics, chosen), gaps=gaps, mark=mark)


def draw_bars(axes: "Axes", trials: TrialTable, *, x: str, by: str | None, metric: str, level: float = LEVEL) -> None:
    """Draw the means of a metric on given axes, as `categories_picture` does.

    Args:
        x, by: the axes of the study; no other axis varies.
    """
    across, colours = _values(trials, x), _values(trials, by)
    table = _bars(trials, [x] if by is None else [x, by], metric, level, "t")
    scale = AxisScale.of(words_of(metric), [bar.mean.value for bar in table.values()])
    _draw_panel(axes, "bars", table, (across, colours), scale, by, log_scale=False)
    axes.set_xticks(range(len(across)), short_labels(across))
    axes.set_xlabel(axis_words(x))
    axes.set_ylabel(scale.text)
    if by is not None:
        _add_legend(axes, "bars", by, colours)


def _add_legend(axes: "Axes", kind: str, by: str, colours: Sequence[Value]) -> None:
    """Add a legend with all values of an axis.

    It also has values without a bar or box.
    """
    from matplotlib.patches import Patch

    alpha, edge = (None, None) if kind == "bars" else (0.6, "black")
    handles = [
        Patch(facecolor=f"C{number % 10}", label=name, alpha=alpha, edgecolor=edge)
        for number, name in enumerate(short_labels(colours))
    ]
    axes.legend(handles=handles, title=axis_words(by), fontsize=7, title_fontsize=7)


def _values(trials: TrialTable, axis: str | None) -> list[Value]:
    return [None] if axis is None else trials.values(axis)


def _slant(values: Sequence[Value], parts: int) -> dict[str, Any]:
    """Return text options that rotate labels if they would overlap.

    The labels are those of ``values``. If they do not overlap, the result is {}.
    """
    letters = sum(len(text) + 2 for text in short_labels(values))
    return {"rotation": 30, "ha": "right"} if letters * parts > 60 else {}


def _bars(
    trials: TrialTable, chosen: Sequence[str], metric: str, level: float, method: Method
) -> dict[tuple[Value, ...], _Bar]:
    """Return {values of the chosen axes: replicas of the cell with these values}."""
    places = [trials.axes.index(name) for name in chosen]
    found = {}
    for cell in trials.cells:
        key = tuple(cell.key[at] for at in places)
        values = list(trials.sample(cell, metric).values())
        mean = mean_interval(values, level=level, method=method)
        found[key] = _Bar(values, len(cell.rows), mean, gaps_of(trials, cell, metric))
    return found


def _draw_panel(
    axes: "Axes",
    kind: str,
    table: dict[tuple[Value, ...], _Bar],
    values: tuple[Sequence[Value], Sequence[Value]],
    scale: AxisScale,
    by: str | None,
    *,
    log_scale: bool,
) -> None:
    across, colours = values
    steps = offsets(len(colours))
    width = 0.8 / len(colours)
    for number, (colour, step) in enumerate(zip(colours, steps.tolist(), strict=True)):
        for place, value in enumerate(across):
            bar = next((b for key, b in table.items() if key[0] == value and (by is None or key[1] == colour)), None)
            if bar is None:
                continue
            at = place + step
            draw = _draw_bar if kind == "bars" else _draw_box
            top = draw(axes, bar, at, width, f"C{number % 10}", scale)
            mark_missing(axes, at, top, len(bar.values), bar.every)
    heights = [bar.mean.value for bar in table.values() if bar.mean.value is not None]
    axes.set_xlim(-0.5, len(across) - 0.5)
    axes.margins(y=0.12)
    axes.grid(visible=True, axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    if not heights:
        axes.set_yticks([])  # numbers would mean nothing
        return
    if log_scale or (kind == "boxes" and log_scaled(heights)):
        axes.set_yscale("log")
        if kind == "bars":
            lows = [bar.mean.low for bar in table.values() if bar.mean.low is not None]
            shown = [value for value in (*heights, *lows) if value > 0]
            axes.set_ylim(bottom=0.5 * min(shown, default=1.0) / scale.unit)
    elif kind == "bars":
        axes.axhline(0, color="black", linewidth=0.8)


def _draw_bar(axes: "Axes", bar: _Bar, at: float, width: float, colour: str, scale: AxisScale) -> float | None:
    """Draw the mean of a cell's replicas with its interval.

    Return the height of the top, or None without a mean.
    """
    if bar.mean.value is None:
        return None
    hatch = "////" if len(bar.values) < bar.every else None
    height = bar.mean.value / scale.unit
    axes.bar(
        [at], [height], width * 0.95, color=colour, hatch=hatch, edgecolor="white" if hatch else colour, linewidth=0.5
    )  # fmt: skip
    if bar.mean.low is None or bar.mean.high is None:
        return height
    low, high = bar.mean.low / scale.unit, bar.mean.high / scale.unit
    axes.errorbar([at], [height], [[height - low], [high - height]], color="black", capsize=2, linewidth=0.8)
    return max(height, high)


def _draw_box(axes: "Axes", bar: _Bar, at: float, width: float, colour: str, scale: AxisScale) -> float | None:
    """Draw the quartiles of a cell's replicas as a box.

    Return the greatest value, or None without values.
    """
    if not bar.values:
        return None
    values = [value / scale.unit for value in bar.values]
    drawn = axes.boxplot(
        [values], positions=[at], widths=[width * 0.8], patch_artist=True, manage_ticks=False,
        flierprops={"marker": ".", "markersize": 3}, medianprops={"color": "black"},
    )  # fmt: skip
    for box in drawn["boxes"]:
        box.set_facecolor(colour)
        box.set_alpha(0.6)
    return max(values)
