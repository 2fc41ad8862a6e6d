"""Rank the values of an axis, such as policies, over replicas and cells."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from msgspec import Struct

from pipistrelle.models.samples.estimates import LEVEL, StatisticsError, mean_of
from pipistrelle.models.samples.ranks import LEAST_TREATMENTS, RankTest, letters, rank_test
from pipistrelle.studies.inference.gaps import Gap, gaps_of
from pipistrelle.studies.inference.reports import cells_by_rest, paired_samples
from pipistrelle.studies.inference.trials import TrialTable, Value
from pipistrelle.studies.inference.words import words_of

#: what one block is: a replica of a cell, or a cell with the means of its replicas
Blocks = Literal["replicas", "cells"]


class RankedValue(Struct, frozen=True, kw_only=True):
    """A value of an axis and its position in a ranking.

    A block is one set of conditions under which all values were compared (see `ranking`).

    Attributes:
        value: the value of the axis, such as a policy.
        rank: its mean rank over the blocks; 1 means that it is the best value in every block.
        best: number of blocks in which no other value is better.
        letters: values that share a letter do not differ significantly (Nemenyi).
    """

    value: Value
    rank: float
    best: int
    letters: str


class Ranking(Struct, frozen=True, kw_only=True):
    """A ranking of an axis's values, such as policies, by a metric.

    Attributes:
        axis, metric: the columns.
        better: whether ``less`` or ``more`` of the metric is better.
        standings: best first.
        blocks: what a block is: a replica or a cell, see `ranking`.
        test: result of Friedman's test; its mean ranks are in the order of ``values``.
        values: the values in the order of the table.
        left_out: number of blocks left out because the metric is unknown for one of the values.
        gaps: the trials without a value of the metric.
    """

    axis: str
    metric: str
    better: Literal["less", "more"]
    standings: tuple[RankedValue, ...]
    blocks: Blocks
    test: RankTest
    values: tuple[Value, ...]
    left_out: int
    gaps: tuple[Gap, ...]

    def plain(self) -> list[dict[str, Any]]:
        """Return the ranking as JSON values, one row per ranked value."""
        test = self.test
        common = {
            "metric": self.metric,
            "better": self.better,
            "blocks": test.blocks,
            "blocks_left_out": self.left_out,
            "friedman": test.statistic,
            "friedman_p": test.p,
            "nemenyi_critical": test.critical,
        }
        return [
            {"table": "ranks", self.axis: one.value, "mean_rank": one.rank, "best_in": one.best}
            | {"letters": one.letters, **common}
            for one in self.standings
        ]


def ranking(
    trials: TrialTable,
    axis: str,
    values: Sequence[Value],
    metric: str,
    *,
    level: float = LEVEL,
    blocks: Blocks = "replicas",
    better: Literal["less", "more"] | None = None,
) -> Ranking:
    """Return the ranking of at least three values of an axis by a metric.

    The ranking compares blocks. A block holds one number of the metric for each value, all under equal conditions. The
    other axes of the study give these conditions: one combination of their values is a cell. A block is either one
    replica of a cell, with the same random numbers for every value, or a cell with the means of its replicas. Blocks
    of replicas tell whether the values differ in these cells. Blocks of cells tell whether the values would differ in
    other, similar cells; a few cells are little evidence for that. A block without a number for some value is left out.

    Args:
        better: whether less or more is better; None: as usual for the metric.

    Raises:
        StatisticsError: fewer than three values, no complete block, or replicas with different seeds.
    """
    if len(values) < LEAST_TREATMENTS:
        raise StatisticsError("a ranking has at least three values", where=trials.where, found=str(len(values)))
    table: list[list[float]] = []
    left_out = 0
    missing: list[Gap] = []
    for found in cells_by_rest(trials, trials.axes.index(axis)).values():
        cells = [found[value] for value in values if value in found]
        missing += [gap for cell in cells for gap in gaps_of(trials, cell, metric)]
        every = len({replica for cell in cells for replica in cell.rows})
        samples, common = paired_samples(trials, cells, metric, axis) if len(cells) == len(values) else ([], [])
        if blocks == "cells":
            left_out += not common
            table += [[mean_of(sample) for sample in samples]] if common else []
        else:
            left_out += every - len(common)
            table += [list(row) for row in zip(*samples, strict=True)]
    if not table:
        raise StatisticsError(
            f"no block has a {metric} of every {axis}", where=trials.where, hint="Choose fewer values with --values."
        )
    direction = better or words_of(metric).better
    figures = np.array(table) * (-1.0 if direction == "more" else 1.0)
    test = rank_test(figures, level=level)
    told = letters(test.ranks, test.pairs, level) if test.pairs is not None else [""] * len(values)
    best = (figures <= figures.min(axis=1)[:, None]).sum(axis=0).tolist()
    standings = [
        RankedValue(value=value, rank=test.ranks[place], best=best[place], letters=told[place])
        for place, value in enumerate(values)
    ]
    return Ranking(
        axis=axis,
        metric=metric,
        better=direction,
        standings=tuple(sorted(standings, key=lambda one: one.rank)),
        blocks=blocks,
        test=test,
        values=tuple(values),
        left_out=left_out,
        gaps=tuple(missing),
    )
