"""Tests of several treatments on the same blocks.

The tests are Friedman's, Nemenyi's, Holm's and paired tests. A block is one set of conditions under which every
treatment was measured, such as a replica of a cell of a study. A table of values has the shape (blocks, treatments).
The procedure is that of Demsar (Statistical Comparisons of Classifiers over Multiple Data Sets, J. Mach. Learn. Res. 7,
2006). Distributions and tests come from scipy.
"""

import math
import warnings
from collections.abc import Sequence
from typing import Final, Literal

import numpy as np
from msgspec import Struct

from pipistrelle.models.samples.estimates import LEVEL, Floats, StatisticsError, scipy_part

#: test of a pair of treatments
PairTest = Literal["t", "wilcoxon", "nemenyi"]
#: the fewest treatments that Friedman's test compares
LEAST_TREATMENTS: Final = 3


class RankTest(Struct, frozen=True):
    """The mean ranks of treatments, and whether they differ.

    With fewer than two blocks there is no test: ``statistic``, ``p``, ``critical`` and ``pairs`` are None.

    Attributes:
        ranks: mean rank of each treatment; 1 is the least value, ties share their mean rank.
        blocks: number of blocks.
        statistic, p: Friedman's chi-squared statistic and its p-value.
        critical: Nemenyi's critical difference of two mean ranks at the confidence level.
        pairs: p-value of each pair of treatments by Nemenyi's test, shape (treatments, treatments).
    """

    ranks: tuple[float, ...]
    blocks: int
    statistic: float | None
    p: float | None
    critical: float | None
    pairs: tuple[tuple[float, ...], ...] | None


def rank_test(values: Floats, *, level: float = LEVEL) -> RankTest:
    """Test whether treatments differ (Friedman), and which pairs differ (Nemenyi).

    ``values`` has the shape (blocks, treatments).

    Friedman (The Use of Ranks to Avoid the Assumption of Normality, JASA 32, 1937), with its correction for ties, is
    `scipy.stats.friedmanchisquare`. Nemenyi (Distribution-free Multiple Comparisons, Princeton 1963) compares the
    difference of two mean ranks with quantiles of the studentized range, which are `scipy.stats.studentized_range`.

    Raises:
        StatisticsError: fewer than three treatments or no block.
    """
    blocks, treatments = values.shape
    if treatments < LEAST_TREATMENTS or not blocks:
        raise StatisticsError(
            "ranks compare at least three values in at least one block", found=f"{treatments} values, {blocks} blocks"
        )
    stats = scipy_part("stats", "tests need")
    ranks: Floats = stats.rankdata(values, axis=1).mean(axis=0)
    told = tuple(float(rank) for rank in ranks)
    if blocks < 2:
        return RankTest(told, blocks, None, None, None, None)
    if all(len(set(row)) == 1 for row in values.tolist()):  # every treatment is equal in every block
        statistic, p = 0.0, 1.0
    else:
        found = stats.friedmanchisquare(*values.T)
        statistic, p = float(found.statistic), float(found.pvalue)
    spread = math.sqrt(treatments * (treatments + 1) / (6 * blocks))
    critical = float(stats.studentized_range.ppf(level, treatments, math.inf)) / math.sqrt(2) * spread
    apart = np.abs(ranks[:, None] - ranks[None, :]) / spread * math.sqrt(2)
    pairs = np.clip(stats.studentized_range.sf(apart, treatments, math.inf), 0.0, 1.0)
    np.fill_diagonal(pairs, 1.0)
    return RankTest(told, blocks, statistic, p, critical, tuple(map(tuple, pairs.tolist())))


def pair_p(first: Sequence[float] | Floats, second: Sequence[float] | Floats, test: PairTest) -> float | None:
    """Return the two-sided p-value of a paired test of two samples.

    Return None with fewer than two pairs. ``t`` is Student's test of paired differences (`scipy.stats.ttest_rel`),
    ``wilcoxon`` the signed-rank test (Wilcoxon, Individual Comparisons by Ranking Methods, Biometrics 1, 1945;
    `scipy.stats.wilcoxon`). The p is 1 if all differences are 0. If they are equal but not 0, Student's p is 0.
    """
    apart = np.asarray(second, dtype=np.float64) - np.asarray(first, dtype=np.float64)
    if len(apart) < 2:
        return None
    if not apart.any():
        return 1.0
    if test == "t" and np.all(apart == apart[0]):
        return 0.0
    stats = scipy_part("stats", "tests need")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about small samples and nearly equal differences
        found = stats.wilcoxon(apart) if test == "wilcoxon" else stats.ttest_rel(second, first)
    return float(found.pvalue)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values adjusted for their number by Holm's step-down method.

    A p-value of None stays None. The i-th smallest of m p-values is multiplied by m - i + 1, and is raised to the
    adjusted value of the one before it if that is larger (Holm, A Simple Sequentially Rejective Multiple Test
    Procedure, Scand. J. Statist. 6, 1979).
    """
    order = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    most = 0.0
    for done, (p, place) in enumerate(order):
        most = max(most, min(1.0, p * (len(order) - done)))
        adjusted[place] = most
    return adjusted


def letters(ranks: Sequence[float], pairs: Sequence[Sequence[float]], level: float = LEVEL) -> list[str]:
    """Return letters that show which treatments differ significantly.

    Each treatment gets one or more letters. Two treatments share a letter unless their p-value is below 1 - level. Each
    letter marks a group of treatments with adjacent mean ranks, no two of which differ significantly.
    """
    order = sorted(range(len(ranks)), key=lambda one: ranks[one])
    found: list[tuple[int, int]] = []
    for begin in range(len(order)):
        end = begin
        while end + 1 < len(order) and all(
            pairs[order[end + 1]][order[one]] >= 1 - level for one in range(begin, end + 1)
        ):
            end += 1
        if not found or end > found[-1][1]:
            found.append((begin, end))
    texts = [""] * len(ranks)
    for number, (begin, end) in enumerate(found):
        for place in range(begin, end + 1):
            texts[order[place]] += chr(ord("a") + number) if number < 26 else f"({number + 1})"
    return texts
