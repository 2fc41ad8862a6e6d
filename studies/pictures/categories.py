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
    """The replicas of a cell, as a bar or box shows them: values, number, mean with interval, and gaps."""

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
    replicas are shown.

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
            _draw_panel(axes, kind, shown, (across, colours), chosen, scale, by, look)
            axes.set_xticks(range(len(across)), short_labels(across), **_slant(across, len(parts)))
            axes.set_xlabel(axis_words(x))
            axes.set_ylabel(scale.text if row == 0 or len(metrics) > 1 else "")
            if panels is not None:
                axes.set_title(f"{axis_words(panels)} {short_labels(parts)[column]}", parse_math=False, fontsize=8)
            if by is not None and (row, column) == (0, 0):
                axes.legend(title=axis_words(by), fontsize=7, title_fontsize=7)

    width = max(3.4, 0.5 + 0.35 * len(across) * len(colours))
    size = size_of(len(metrics), len(parts), width=width, height=2.6)
    mark = "hatched" if kind == "bars" else "boxes of fewer replicas"
    return picture(look, draw, size=size, title=what_varies(metrics, chosen), gaps=gaps, mark=mark)


def _values(trials: TrialTable, axis: str | None) -> list[Value]:
    return [None] if axis is None else trials.values(axis)


def _slant(values: Sequence[Value], parts: int) -> dict[str, Any]:
    """Return text options that rotate the labels of ``values`` if they would overlap; else {}."""
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
    chosen: Sequence[str],
    scale: AxisScale,
    by: str | None,
    look: PictureLook,
) -> None:
    across, colours = values
    names = short_labels(colours)
    steps = offsets(len(colours))
    width = 0.8 / len(colours)
    for number, (colour, step) in enumerate(zip(colours, steps.tolist(), strict=True)):
        for place, value in enumerate(across):
            bar = next((b for key, b in table.items() if key[0] == value and (by is None or key[1] == colour)), None)
            if bar is None:
                continue
            at = place + step
            told = names[number] if place == 0 and by is not None else None
            top = _draw_bar(axes, bar, at, width, f"C{number % 10}", scale, told) if kind == "bars" else _draw_box(
                axes, bar, at, width, f"C{number % 10}", scale, told
            )  # fmt: skip
            mark_missing(axes, at, top, len(bar.values), bar.every)
    heights = [bar.mean.value for bar in table.values() if bar.mean.value is not None]
    if look.log_scale or (kind == "boxes" and log_scaled(heights)):
        axes.set_yscale("log")
        if kind == "bars":
            lows = [bar.mean.low for bar in table.values() if bar.mean.low is not None]
            shown = [value for value in (*heights, *lows) if value > 0]
            axes.set_ylim(bottom=0.5 * min(shown, default=1.0) / scale.unit)
    elif kind == "bars":
        axes.axhline(0, color="black", linewidth=0.8)
    axes.margins(y=0.12)
    axes.grid(visible=True, axis="y", alpha=0.3)
    axes.set_axisbelow(True)


def _draw_bar(
    axes: "Axes", bar: _Bar, at: float, width: float, colour: str, scale: AxisScale, told: str | None
) -> float | None:
    """Draw the mean of a cell's replicas with its interval; return the height of the top, or None without a mean."""
    if bar.mean.value is None:
        axes.bar([at], [0.0], width * 0.95, color=colour, label=told)
        return None
    hatch = "////" if len(bar.values) < bar.every else None
    height = bar.mean.value / scale.unit
    axes.bar(
        [at], [height], width * 0.95, color=colour, label=told, hatch=hatch, edgecolor="white" if hatch else colour,
        linewidth=0.5,
    )  # fmt: skip
    if bar.mean.low is None or bar.mean.high is None:
        return height
    low, high = bar.mean.low / scale.unit, bar.mean.high / scale.unit
    axes.errorbar([at], [height], [[height - low], [high - height]], color="black", capsize=2, linewidth=0.8)
    return max(height, high)


def _draw_box(
    axes: "Axes", bar: _Bar, at: float, width: float, colour: str, scale: AxisScale, told: str | None
) -> float | None:
    """Draw the quartiles of a cell's replicas as a box; return the greatest value, or None without values."""
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
        if told is not None:
            box.set_label(told)
    return max(values)
