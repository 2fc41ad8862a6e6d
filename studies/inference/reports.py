"""Summaries of a study: means per cell, and comparisons of two values.

Means have confidence intervals.
"""

import re
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import msgspec

from pipistrelle.models.samples.estimates import (
    LEVEL,
    Interval,
    Method,
    StatisticsError,
    mean_interval,
    quantile_interval,
)
from pipistrelle.models.samples.paired import Paired, paired
from pipistrelle.models.samples.ranks import PairTest, holm, pair_p
from pipistrelle.studies.inference.gaps import Gap, causes_text, gaps_of
from pipistrelle.studies.inference.trials import SEED, Cell, CellKey, TrialTable, Value, label


class CellRow(msgspec.Struct, frozen=True, kw_only=True):
    """A metric for one combination of the study's axis values (a cell).

    Attributes:
        cell: {axis: value}.
        metric: the column.
        estimate: mean, or quantile, over the replicas that have a value.
        gaps: the replicas without a value.
    """

    cell: dict[str, Value]
    metric: str
    estimate: Interval
    gaps: tuple[Gap, ...] = ()

    @property
    def missing(self) -> int:
        """The number of replicas without a value."""
        return len(self.gaps)

    def plain(self) -> dict[str, Any]:
        """Return the row as JSON values."""
        told = {"missing": self.missing, "missing_because": causes_text(self.gaps) or None}
        return {**self.cell, "metric": self.metric, **self.estimate.plain(), **told}


class PairRow(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison of a metric between two cells that differ in one axis.

    Attributes:
        cell: {axis: value} of the other axes.
        metric: the column.
        values: the two values of the axis, A and B.
        pair: statistics of the pairs.
        gaps: the trials of both cells without a value.
        unpaired: number of replicas that have no value in one of the cells, or in both.
        p: p-value of the paired test; None without a test or with fewer than two pairs.
        adjusted: ``p`` after Holm's correction for all pairs of the metric.
    """

    cell: dict[str, Value]
    metric: str
    values: tuple[Value, Value]
    pair: Paired
    unpaired: int
    gaps: tuple[Gap, ...] = ()
    p: float | None = None
    adjusted: float | None = None

    def plain(self) -> dict[str, Any]:
        """Return the row as JSON values."""
        names = {"a": self.values[0], "b": self.values[1]}
        missing = {"unpaired": self.unpaired, "missing_because": causes_text(self.gaps) or None}
        tests = {"p": self.p, "p_holm": self.adjusted}
        return {**self.cell, "metric": self.metric, **names, **self.pair.plain(), **missing, **tests}


def summary(
    trials: TrialTable,
    metrics: Sequence[str] = (),
    *,
    level: float = LEVEL,
    method: Method = "t",
    quantile: float | None = None,
) -> list[CellRow]:
    """Return the mean, or a quantile, of each metric in each cell, ordered by metric.

    A cell is a combination of axis values.

    Args:
        metrics: columns; empty: the usual ones.
        quantile: this quantile of the replicas, with an interval by order statistics; None: the mean.

    Raises:
        StatisticsError: a column is missing.
    """
    rows = []
    for metric in trials.metrics(metrics):
        for cell in trials.cells:
            sample = list(trials.sample(cell, metric).values())
            if quantile is None:
                estimate = mean_interval(sample, level=level, method=method)
            else:
                estimate = quantile_interval(sample, quantile, level=level)
            told = dict(zip(trials.axes, cell.key, strict=True))
            without = tuple(gaps_of(trials, cell, metric))
            rows.append(CellRow(cell=told, metric=metric, estimate=estimate, gaps=without))
    return rows


def comparison(
    trials: TrialTable,
    axis: str,
    first: Value,
    second: Value,
    metrics: Sequence[str] = (),
    *,
    level: float = LEVEL,
    method: Method = "t",
) -> list[PairRow]:
    """Compare two values of an axis.

    Return one row for each metric and each combination of the other axes' values.

    Raises:
        StatisticsError: a column is missing, no cell has both values, or paired replicas have different seeds.
    """
    return all_pairs(trials, axis, [first, second], metrics, level=level, method=method)


def all_pairs(
    trials: TrialTable,
    axis: str,
    values: Sequence[Value],
    metrics: Sequence[str] = (),
    *,
    level: float = LEVEL,
    method: Method = "t",
    test: PairTest | None = None,
) -> list[PairRow]:
    """Compare every pair of values of an axis, as `comparison` does.

    The rows are sorted by metric, then by the other axes' values.

    Args:
        test: the paired test, ``t`` or ``wilcoxon``; Holm's method adjusts its p-values for all pairs of a metric.
            None: no test.

    Raises:
        StatisticsError: as `comparison`.
    """
    place = trials.axes.index(axis)
    others = [name for name in trials.axes if name != axis]
    by_rest = cells_by_rest(trials, place)
    both = [
        (rest, one, other)
        for rest, cells in by_rest.items()
        for one, other in combinations(values, 2)
        if one in cells and other in cells
    ]
    if not both:
        raise StatisticsError(f"no two cells differ only in {axis}", where=trials.where)
    rows = []
    for metric in trials.metrics(metrics):
        own = []
        for rest, one, other in both:
            cells = by_rest[rest][one], by_rest[rest][other]
            samples, common = paired_samples(trials, cells, metric, axis)
            pair = paired(samples[0], samples[1], level=level, method=method)
            own.append(
                PairRow(
                    cell=dict(zip(others, rest, strict=True)),
                    metric=metric,
                    values=(one, other),
                    pair=pair,
                    unpaired=len(cells[0].rows.keys() | cells[1].rows.keys()) - len(common),
                    gaps=tuple(gap for cell in cells for gap in gaps_of(trials, cell, metric)),
                    p=None if test is None else pair_p(samples[0], samples[1], test),
                )
            )
        adjusted = holm([row.p for row in own])
        rows += [msgspec.structs.replace(row, adjusted=p) for row, p in zip(own, adjusted, strict=True)]
    return rows


def cells_by_rest(trials: TrialTable, place: int) -> dict[CellKey, dict[Value, Cell]]:
    """Return the cells, grouped by the values of the other axes.

    The result is {values of the other axes: {value of the axis with index ``place``: cell}}.
    """
    found: dict[CellKey, dict[Value, Cell]] = {}
    for cell in trials.cells:
        rest = cell.key[:place] + cell.key[place + 1 :]
        found.setdefault(rest, {})[cell.key[place]] = cell
    return found


def paired_samples(
    trials: TrialTable, cells: Sequence[Cell], metric: str, axis: str
) -> tuple[list[list[float]], list[int]]:
    """Return a metric's values in several cells, paired by replica.

    Only replicas that have a value in every cell count.

    Returns:
        The values of each cell in the order of the replicas, and the numbers of these replicas.

    Raises:
        StatisticsError: replicas with the same number have different seeds.
    """
    samples = [trials.sample(cell, metric) for cell in cells]
    common = [replica for replica in samples[0] if all(replica in sample for sample in samples)]
    seeds = trials.columns.get(SEED)
    if seeds is not None and any(len({seeds[cell.rows[each]] for cell in cells}) > 1 for each in common):
        raise StatisticsError(
            "replicas with the same number have different seeds, so they cannot be paired",
            where=f"{trials.where}: {axis}",
        )
    return [[sample[each] for each in common] for sample in samples], common


class SizeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison of a metric between two values of one axis.

    It is for one size class of jobs.

    Attributes:
        name: the class: ``1``, ``2_15``, ``16_up``; ``all`` for all jobs.
        pair: statistics of the pairs; the ratio of means minus 1 is the normalised difference.
        share: the class's share of all jobs; None: unknown.
        unpaired: number of replicas that have no value of the metric under one of the axis values, or under both.
        gaps: the trials without a value.
    """

    name: str
    pair: Paired
    share: float | None
    unpaired: int = 0
    gaps: tuple[Gap, ...] = ()

    def plain(self) -> dict[str, Any]:
        """Return the row as JSON values."""
        return {"size": self.name, **self.pair.plain(), "share": self.share}


def by_size(
    trials: TrialTable, axis: str, first: Value, second: Value, metric: str = "mean_wait", *, level: float = LEVEL
) -> list[SizeRow]:
    """Compare a metric under two values of an axis: one row for each size class of jobs, and one for all jobs.

    Raises:
        StatisticsError: the trials have no columns of classes, such as ``mean_wait_1``, or another axis varies.
    """
    if rest := [name for name in trials.axes if name != axis]:
        raise more_axes(trials, rest)
    pattern = re.compile(rf"{re.escape(metric)}_(\d+)(?:_\d+|_up)?")
    found = sorted((int(match[1]), name) for name in trials.columns if (match := pattern.fullmatch(name)))
    if not found:
        raise StatisticsError(
            f"there are no columns of {metric} by size, such as {metric}_1",
            where=trials.where,
            hint="Add sizes to [metrics] of the study: sizes = [1, 2, 16, 128].",
        )
    names = {column.removeprefix(f"{metric}_"): column for _, column in found} | {"all": metric}
    rows = comparison(trials, axis, first, second, list(names.values()), level=level)
    counts = {name: sum(count or 0 for count in trials.columns.get(f"jobs_{name}", ())) for name in names}
    total = sum(counts.values())  # there is no column jobs_all
    shares = {name: count / total if total and name != "all" else None for name, count in counts.items()}
    return [
        SizeRow(name=name, pair=row.pair, share=shares[name], unpaired=row.unpaired, gaps=row.gaps)
        for name, row in zip(names, rows, strict=True)
    ]


def more_axes(trials: TrialTable, rest: Sequence[str]) -> StatisticsError:
    """Return the error for a comparison of trials in which further axes vary.

    These axes are ``rest``. The user must select trials in which these axes do not vary.
    """
    return StatisticsError(
        f"other axes have more than one value: {', '.join(rest)}",
        where=trials.where,
        hint=f"Choose one: --where {rest[0]}={label(trials.values(rest[0])[0])}",
    )
