"""Find break-even points, at which a curve reaches a value or another curve.

A curve is the mean of a metric at each value of a numeric axis, for example waits by repair time. Between these values
the curve is the monotone cubic of Fritsch and Carlson (Monotone Piecewise Cubic Interpolation, SIAM J. Numer. Anal. 17,
1980), over logarithms if all values are above 0. Random variation can make means rise and fall, so curves are first
made monotone: all rising or all falling. If they rise, each point is put halfway between the greatest mean up to it and
the least mean from it on. Intervals are quantiles of a bootstrap that draws whole replicas. All cells get the same
replicas, because replicas with the same number share their random numbers.
"""

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct

from pipistrelle.models.samples.estimates import (
    LEVEL,
    RESAMPLES,
    SEED,
    Floats,
    StatisticsError,
    scipy_part,
)
from pipistrelle.studies.inference.reports import more_axes
from pipistrelle.studies.inference.trials import TrialTable, Value

#: number of halvings of an interval between two axis values, down to 10^-15 of it
_HALVINGS: Final = 50
#: number of points of a drawn curve between two axis values
_FINE: Final = 20


class Crossing(Struct, frozen=True, kw_only=True):
    """The point on a numeric axis at which a curve reaches a target value.

    Attributes:
        at: number on the axis; inf if the point is above the axis's greatest value, -inf if below its least.
        low, high: ends of the confidence interval, perhaps infinite like ``at``; None if there is only one replica.
        target: the value that the curve reaches.
    """

    at: float
    low: float | None
    high: float | None
    target: float

    def plain(self) -> dict[str, float | str | None]:
        """Return the point as JSON values.

        "above" or "below" stands for a point beyond the axis.
        """
        ends = {"at": self.at, "low": self.low, "high": self.high}
        return {**{name: _told(end) for name, end in ends.items()}, "target": self.target}


def _told(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    return "above" if value > 0 else "below"


class Curves:
    """Means of a metric over a numeric axis, one curve per value of another axis.

    Args:
        trials: trials in which only these two axes vary.
        x: the numeric axis.
        by: the axis with one curve per value; None: there is a single curve, called None.
        metric: the column.
        level: confidence level of the intervals.
        seed: seed of the bootstrap.
        gaps: whether cells without a value of the metric are allowed and have NaN, for pictures; otherwise they are an
            error.

    Attributes:
        counts: for each point of each curve, the number of replicas with a value of the metric, and the number of all
            replicas; shape (curves, x, 2).

    Raises:
        StatisticsError: a column is missing, another axis varies, an axis has fewer than two numbers, or a curve lacks
            one of the numbers.
    """

    def __init__(
        self,
        trials: TrialTable,
        x: str,
        by: str | None,
        metric: str,
        *,
        level: float = LEVEL,
        seed: int = SEED,
        gaps: bool = False,
    ) -> None:
        trials.column(metric)
        if rest := [name for name in trials.axes if name not in (x, by)]:
            raise more_axes(trials, rest)
        self.names: list[Value] = [None] if by is None else trials.values(by)
        numbers = sorted({(trials.number(x, value), value) for value in trials.values(x)}, key=lambda pair: pair[0])
        self.labels = [value for _, value in numbers]
        self.x = np.array([number for number, _ in numbers])
        if len(self.x) < 2 or len(np.unique(self.x)) < len(self.x):
            raise StatisticsError(f"{x} needs at least two different numbers", where=trials.where)
        self.level = level
        places = [trials.axes.index(name) for name in (x, by) if name in trials.axes]
        cells = {tuple(cell.key[place] for place in places): cell for cell in trials.cells}
        samples = []
        counts = []
        for name in self.names:
            for value in self.labels:
                cell = cells.get((value,) if by is None else (value, name))
                sample = {} if cell is None else trials.sample(cell, metric)
                if not sample and not gaps:
                    told = x if by is None else f"{by} {name}, {x}"
                    what, hint = f"there is no {metric} of {told} {value}", "Exclude such values with --where."
                    raise StatisticsError(what, where=trials.where, hint=hint)
                samples.append(sample)
                counts.append((len(sample), 0 if cell is None else len(cell.rows)))
        self.counts = np.array(counts).reshape(len(self.names), len(self.x), 2)
        self._resample(samples, seed)

    def _resample(self, samples: Sequence[dict[int, float]], seed: int) -> None:
        """Compute the means of all curves, and the means of bootstrap samples.

        The means of all curves have shape (curves, x). The means of samples have shape (draws, curves, x).
        """
        shape = (len(self.names), len(self.x))
        self.means = np.array([math.fsum(one.values()) / len(one) if one else math.nan for one in samples])
        self.means = self.means.reshape(shape)
        known = [row[~np.isnan(row)] for row in self.means]
        self._sign = 1.0 if math.fsum(float(row[-1] - row[0]) for row in known if row.size) >= 0 else -1.0
        replicas = sorted({replica for one in samples for replica in one})
        self.drawn: Floats | None = None
        if min((len(one) for one in samples if one), default=0) < 2:
            return
        rows = {replica: row for row, replica in enumerate(replicas)}
        values, there = np.zeros((len(replicas), len(samples))), np.zeros((len(replicas), len(samples)))
        for column, one in enumerate(samples):
            for replica, value in one.items():
                values[rows[replica], column], there[rows[replica], column] = value, 1.0
        rng = np.random.Generator(np.random.PCG64(seed))
        weights = rng.multinomial(len(replicas), np.full(len(replicas), 1 / len(replicas)), RESAMPLES).astype(
            np.float64
        )
        held = weights @ there
        filled = [place for place, one in enumerate(samples) if one]
        whole = held[:, filled].min(axis=1) > 0  # a draw may have no replica of a cell with few replicas
        with np.errstate(invalid="ignore"):
            self.drawn = ((weights @ values)[whole] / held[whole]).reshape(-1, *shape)

    def line(self, curve: int, *, normalised: bool = False) -> tuple[Floats, Floats | None]:
        """Return a curve's means, shape (x,), and their intervals, shape (2, x), or None.

        With only one replica the intervals are None.

        Args:
            normalised: divide all values by the mean at the least number on the axis.
        """
        means = self.means[curve]
        drawn = None if self.drawn is None else self.drawn[:, curve]
        with np.errstate(divide="ignore", invalid="ignore"):
            if normalised:
                means = means / means[0]
                drawn = None if drawn is None else drawn / drawn[:, :1]
        if drawn is None:
            return means, None
        return means, np.quantile(drawn, [(1 - self.level) / 2, (1 + self.level) / 2], axis=0)

    def path(self, curve: int) -> tuple[Floats, Floats]:
        """Return points of a curve's interpolation, for drawing it.

        The result is (numbers on the axis, values of the metric).
        """
        known = ~np.isnan(self.means[curve])
        if known.sum() < 2:
            return self.x[known], self.means[curve][known]
        curves = self._monotone(self.means[curve][known][None])
        x = self._scaled[known]
        fine = np.concatenate([np.linspace(x[:-1], x[1:], _FINE, endpoint=False).T.ravel(), x[-1:]])
        path: Floats = scipy_part("interpolate").PchipInterpolator(x, curves[0])(fine)
        return np.exp(fine) if self.x[0] > 0 else fine, path

    @property
    def _scaled(self) -> Floats:
        scaled: Floats = np.log(self.x) if self.x[0] > 0 else self.x
        return scaled

    def reach(self, curve: int, target: float) -> Crossing:
        """Return the point on the numeric axis at which a curve reaches a target value.

        Args:
            curve: index of the curve.
            target: value of the metric.
        """
        targets = None if self.drawn is None else np.full(len(self.drawn), target)
        return self._reach(curve, target, targets)

    def meet(self, curve: int, other: int, place: int) -> Crossing:
        """Return where a curve reaches a value of another curve.

        This value is the one that the other curve has at a given number on the axis.

        Args:
            curve, other: indices of the two curves.
            place: index of the number on the axis.
        """
        targets = None if self.drawn is None else self._monotone(self.drawn[:, other])[:, place]
        return self._reach(curve, float(self._monotone(self.means[other][None])[0, place]), targets)

    def _reach(self, curve: int, target: float, targets: Floats | None) -> Crossing:
        at = float(self._solve(self.means[curve][None], np.array([target]))[0])
        if self.drawn is None or targets is None:
            return Crossing(at=at, low=None, high=None, target=target)
        found = np.sort(self._solve(self.drawn[:, curve], targets))
        last = len(found) - 1
        low, high = (round(last * share) for share in ((1 - self.level) / 2, (1 + self.level) / 2))
        return Crossing(at=at, low=float(found[low]), high=float(found[high]), target=target)

    def _monotone(self, means: Floats) -> Floats:
        """Return curves made monotone in the common direction of all curves.

        ``means`` and the result have shape (n, x).
        """
        upright = means * self._sign
        above = np.maximum.accumulate(upright, axis=1)
        below = np.minimum.accumulate(upright[:, ::-1], axis=1)[:, ::-1]
        middle: Floats = (above + below) / 2 * self._sign
        return middle

    def _solve(self, means: Floats, targets: Floats) -> Floats:
        """Return where on the axis each of n curves reaches its target, shape (n,).

        ``means`` has the shape (n, x), ``targets`` the shape (n,). The result is inf or -inf for a curve that reaches
        its target beyond the axis.
        """
        curves = self._monotone(means)
        x = self._scaled
        upright, aims = curves * self._sign, targets * self._sign
        part = np.clip((upright < aims[:, None]).sum(axis=1) - 1, 0, len(x) - 2)
        cubic = scipy_part("interpolate").PchipInterpolator(x, curves, axis=1).c  # (power, part, curve)
        chosen = cubic[:, part, np.arange(len(curves))] * self._sign
        low, high = np.zeros(len(curves)), (x[1:] - x[:-1])[part]
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            reached = ((chosen[0] * middle + chosen[1]) * middle + chosen[2]) * middle + chosen[3] >= aims
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        found = x[part] + (low + high) / 2
        found = np.exp(found) if self.x[0] > 0 else found
        found = np.where(upright[:, 0] > aims, -math.inf, np.where(upright[:, -1] < aims, math.inf, found))
        found = np.where(upright[:, 0] == aims, self.x[0], found)
        solved: Floats = np.where(
            (upright[:, -1] == aims) & (upright[:, 0] < aims) & (found > self.x[-1]), self.x[-1], found
        )
        return solved


def break_even(
    curves: Curves, targets: Sequence[float] = (), place: int = 0
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return where curves reach given values and values of other curves.

    Args:
        targets: values of the metric.
        place: index of a number on the axis. Each curve's value at this number is a target for all other curves.

    Returns:
        Two lists of JSON values: the points for ``targets``, and those for values of other curves.
    """
    reached = [
        {"curve": name, **curves.reach(number, target).plain()}
        for target in targets
        for number, name in enumerate(curves.names)
    ]
    met = [
        {
            "curve": name,
            "other": beside,
            "other_at": float(curves.x[place]),
            **curves.meet(number, other, place).plain(),
        }
        for number, name in enumerate(curves.names)
        for other, beside in enumerate(curves.names)
        if other != number
    ]
    return reached, met
