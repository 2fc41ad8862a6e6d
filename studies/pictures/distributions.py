"""Empirical distribution functions, over the jobs of trials or over trials."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from pipistrelle.models.samples.estimates import LEVEL, Floats, StatisticsError, deviation_of, t_quantile
from pipistrelle.studies.inference.gaps import Gap, gaps_of
from pipistrelle.studies.inference.reports import more_axes
from pipistrelle.studies.inference.trials import Cell, TrialTable, Value
from pipistrelle.studies.inference.words import axis_words, words_of
from pipistrelle.studies.measures.distributions import QUANTILES, STEPS
from pipistrelle.studies.pictures.style import (
    AxisScale,
    PictureLook,
    panels_of,
    picture,
    short_labels,
    size_of,
    what_varies,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: {quantity of jobs: its words, and whether it is a time (s)}
_JOBS: Final = {
    "wait": ("wait", True),
    "turnaround": ("turnaround", True),
    "execution": ("run time", True),
    "slowdown": ("slowdown", False),
    "bounded_slowdown": ("bounded slowdown", False),
}
#: ticks of times: seconds and texts
_TICKS: Final = (
    (1.0, "1 s"), (60.0, "1 min"), (3600.0, "1 h"), (86400.0, "1 d"), (864000.0, "10 d"), (8640000.0, "100 d"),
)  # fmt: skip
#: points of a curve
_POINTS: Final = 400


class _Curve(NamedTuple):
    """A distribution function: the ``share`` at or below each ``x``, shape (points,).

    ``low`` and ``high`` are the ends of its confidence interval, None without one. ``known`` of ``every`` replicas have
    values.
    """

    x: Floats
    share: Floats
    low: Floats | None
    high: Floats | None
    known: int
    every: int


def default_distribution(trials: TrialTable) -> str:
    """Return the first quantity of jobs whose distribution the trials have.

    If they have none, return ``mean_wait``.
    """
    return next((name for name in _JOBS if f"{name}{QUANTILES}" in trials.columns), "mean_wait")


def ecdf_picture(
    trials: TrialTable, look: PictureLook, *, by: str | None, panels: str | None, metric: str, level: float = LEVEL
) -> bytes:
    """Return a picture of distribution functions, one curve per value of an axis.

    For a quantity of jobs, such as ``wait``, a curve shows the share of jobs at or below each value. The share is the
    mean over replicas, with Student's interval at each point. For a metric of trials, such as ``mean_wait``, a curve
    shows the share of all replicas at or below each value. So the curve ends below 1 if some trials have no value.

    Args:
        by: the axis with a curve per value, or None.
        panels: the axis with a panel per value, or None.
        metric: a column, or a quantity of jobs whose distribution the study has kept: ``wait``, ``turnaround``,
            ``execution``, ``slowdown`` or ``bounded_slowdown``.

    Raises:
        PipistrelleError: another axis varies, the column is missing or matplotlib is not installed.
    """
    chosen = [axis for axis in (by, panels) if axis is not None]
    if rest := [name for name in trials.axes if name not in chosen]:
        raise more_axes(trials, rest)
    of_jobs = metric in _JOBS and metric not in trials.columns
    if of_jobs and f"{metric}{QUANTILES}" not in trials.columns:
        raise StatisticsError(
            f"the trials have no distribution of '{metric}' of their jobs",
            where=trials.where,
            hint=f'Add distributions = ["{metric}"] to [metrics] of the study, or draw a metric such as mean_wait.',
        )
    words = words_of(metric)
    if of_jobs:
        words = words._replace(name=_JOBS[metric][0], unit="s" if _JOBS[metric][1] else "")
    names, parts = ([None] if axis is None else trials.values(axis) for axis in (by, panels))
    gaps: list[Gap] = []
    curves: dict[tuple[Value, ...], _Curve] = {}
    for cell in trials.cells:
        key = tuple(cell.key[trials.axes.index(axis)] if axis in trials.axes else None for axis in chosen)
        curves[key] = _of_jobs(trials, cell, metric, level) if of_jobs else _of_trials(trials, cell, metric)
        gaps += gaps_of(trials, cell, "mean_wait" if of_jobs and "mean_wait" in trials.columns else metric) if (
            curves[key].known < curves[key].every
        ) else []  # fmt: skip
    most = max((float(curve.x[-1]) for curve in curves.values() if curve.x.size), default=0.0)
    scale = AxisScale.of(words, [most])

    def draw(figure: "Figure") -> None:
        texts = short_labels(names)
        for _, column, axes in panels_of(figure, 1, len(parts), share=True):
            for number, name in enumerate(names):
                key = tuple(value for axis, value in ((by, name), (panels, parts[column])) if axis is not None)
                if key in curves:
                    _draw_curve(axes, curves[key], number, texts[number] if by is not None else "", scale, of_jobs)
            if of_jobs:
                _scale_of_jobs(axes, most, timed=_JOBS[metric][1])
            elif not any(curve.x.size for curve in curves.values()):
                axes.set_xticks([])  # numbers would mean nothing
            axes.set_ylim(0, 1.02)
            axes.set_xlabel(words.name if of_jobs else scale.text)
            axes.set_ylabel(f"share of {'jobs' if of_jobs else 'replicas'}" if column == 0 else "")
            axes.grid(visible=True, alpha=0.3)
            if panels is not None:
                axes.set_title(f"{axis_words(panels)} {short_labels(parts)[column]}", parse_math=False, fontsize=8)
            if by is not None and (column == 0 or any(curve.known < curve.every for curve in curves.values())):
                axes.legend(title=axis_words(by), fontsize=7, title_fontsize=7)

    title = f"{words.name} {what_varies((metric, metric), chosen)}".strip()
    mark = "dashed" if of_jobs else "curves below 1"
    return picture(
        look, draw, size=size_of(1, len(parts), width=4.2, height=2.8), title=title, gaps=gaps, mark=mark
    )  # fmt: skip


def _of_trials(trials: TrialTable, cell: Cell, metric: str) -> _Curve:
    """Return the distribution of a metric over all replicas of a cell."""
    values = np.sort(np.array(list(trials.sample(cell, metric).values())))
    every = len(cell.rows)
    return _Curve(values, np.arange(1, len(values) + 1) / every, None, None, len(values), every)


def _of_jobs(trials: TrialTable, cell: Cell, metric: str, level: float) -> _Curve:
    """Return the distribution of a quantity of jobs, as the mean over replicas."""
    column: Sequence[Any] = trials.columns[f"{metric}{QUANTILES}"]
    found = [np.array(column[row]) for row in cell.rows.values() if column[row]]
    if not found:
        nothing = np.zeros(0)
        return _Curve(nothing, nothing, None, None, 0, len(cell.rows))
    every = np.unique(np.concatenate(found))
    x = every[np.unique(np.linspace(0, len(every) - 1, _POINTS * 2).astype(np.intp))]
    shares = np.array([np.clip(np.searchsorted(one, x, side="right") - 1, 0, STEPS) / STEPS for one in found])
    mean: Floats = shares.mean(axis=0)
    if len(found) < 2:
        return _Curve(x, mean, None, None, 1, len(cell.rows))
    spread = np.array([deviation_of(shares[:, at]) for at in range(len(x))])
    half = t_quantile(len(found), level) * spread / np.sqrt(len(found))
    low, high = np.clip(mean - half, 0, 1), np.clip(mean + half, 0, 1)
    return _Curve(x, mean, low, high, len(found), len(cell.rows))


def _draw_curve(axes: "Axes", curve: _Curve, number: int, told: str, scale: AxisScale, of_jobs: bool) -> None:
    colour = f"C{number % 10}"
    less = curve.known < curve.every
    text = f"{told} ({curve.known} of {curve.every})".strip() if less else told
    x = np.maximum(curve.x, 1.0) if of_jobs else curve.x / scale.unit
    if not x.size:
        axes.plot([], [], color=colour, linestyle="--", label=text)
        return
    style = "--" if less and of_jobs else "-"
    axes.step(
        np.concatenate((x[:1], x)), np.concatenate(([0.0], curve.share)), where="post", color=colour, linestyle=style,
        linewidth=1.2, label=text or None,
    )  # fmt: skip
    if curve.low is not None and curve.high is not None:
        axes.fill_between(x, curve.low, curve.high, step="post", color=colour, alpha=0.2, linewidth=0)


def _scale_of_jobs(axes: "Axes", most: float, *, timed: bool) -> None:
    """Make the axis of a quantity of jobs logarithmic from 1 on.

    Times are labelled in words. Values below 1 are drawn at the start of the axis.
    """
    axes.set_xscale("log")
    axes.set_xlim(1.0, max(most, 10.0) * 1.2)
    if timed:
        ticks = [tick for tick in _TICKS if tick[0] <= max(most, 10.0) * 1.2]
        axes.set_xticks([at for at, _ in ticks], [text for _, text in ticks], fontsize=7)
        axes.minorticks_off()
