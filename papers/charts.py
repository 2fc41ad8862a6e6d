"""Draw charts of a paper's results with matplotlib."""

from typing import TYPE_CHECKING, Final

from pipistrelle.models.workloads.pictures import drawn
from pipistrelle.papers.entry import Chart, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS: Final = "osD^vP*Xph<>"
#: with more names on an axis than this, only some are shown
_MOST_NAMES: Final = 24
#: names are slanted if they have more letters than this in total
_LONG: Final = 60


def chart_svg(chart: Chart) -> str:
    """Return a chart as SVG text; the paper's own numbers are dashed or hatched.

    Raises:
        PipistrelleError: if matplotlib is not installed.
    """

    def draw(figure: "Figure") -> None:
        axes = figure.add_subplot()
        if chart.kind == "bars":
            _bars(axes, chart)
        else:
            for number, series in enumerate(chart.series):
                _line(axes, chart, number, series)
        if chart.log_x:
            axes.set_xscale("log")
        if chart.log_y and any(value > 0 for series in chart.series for value in series.y):
            axes.set_yscale("log", nonpositive="clip")
        axes.set_title(chart.title, parse_math=False)
        axes.set_xlabel(chart.x, parse_math=False)
        axes.set_ylabel(chart.y, parse_math=False)
        axes.grid(visible=True, alpha=0.3)
        if len(chart.series) > 1:
            axes.legend(fontsize=7)

    return drawn(draw, 8, 4)


def _line(axes: "Axes", chart: Chart, number: int, series: Series) -> None:
    colour = f"C{number % 10}"
    if chart.kind == "steps":
        axes.step(series.x, series.y, where="post", color=colour, linewidth=1, label=series.name,
                  linestyle="--" if series.paper else "-")  # fmt: skip
        return
    style = "none" if chart.kind == "points" else "--" if series.paper else "-"
    mark = _MARKERS[number % len(_MARKERS)]
    axes.plot(
        series.x, series.y, color=colour, linestyle=style, marker=mark, markersize=3.5, linewidth=1, label=series.name
    )
    if series.low is not None and series.high is not None:
        axes.fill_between(series.x, series.low, series.high, color=colour, alpha=0.2, linewidth=0)


def _bars(axes: "Axes", chart: Chart) -> None:
    width = 0.8 / len(chart.series)
    for number, series in enumerate(chart.series):
        places = [x - 0.4 + width * (number + 0.5) for x in series.x]
        hatch = "//" if series.paper and len(chart.series) > 1 else None
        axes.bar(places, series.y, width, color=f"C{number % 10}", hatch=hatch, label=series.name)
        if series.low is not None and series.high is not None:
            axes.vlines(places, series.low, series.high, color="black", linewidth=0.8)
    names = list(chart.names)
    every = max(-(-len(names) // _MOST_NAMES), 1)
    shown = range(0, len(names), every)
    slant = 30 if sum(len(names[place]) for place in shown) > _LONG else 0
    axes.set_xticks(list(shown), [names[place] for place in shown], rotation=slant, ha="right" if slant else "center")
