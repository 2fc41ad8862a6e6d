"""Compare two variants of a simulation whose replicas share their random numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipistrelle.models.samples.estimates import (
    LEVEL,
    SEED,
    Floats,
    Interval,
    Method,
    deviation_of,
    mean_interval,
    mean_of_ratios,
    ratio_of_means,
)


@dataclass(frozen=True, slots=True)
class Paired:
    """The comparison of two variants (cells) of a study, replica by replica.

    Replicas with the same number share workload and failures (common random numbers; Law, Simulation Modeling and
    Analysis, section 11.2), so shared effects cancel in their difference.

    Args:
        difference: mean of (second cell - first cell).
        ratio_of_means: mean of the second over mean of the first.
        mean_of_ratios: mean of second / first.
        correlation: correlation of both cells; None with fewer than three pairs or a constant cell.
        gain: how many times as many replicas independent cells would need for an equally narrow interval of the
            difference: (variance of first + of second) / variance of difference; None if the difference is constant.
    """

    first: Interval
    second: Interval
    difference: Interval
    ratio_of_means: Interval
    mean_of_ratios: Interval
    correlation: float | None
    gain: float | None

    def plain(self) -> dict[str, Any]:
        """Return the comparison as JSON values."""
        names = ("first", "second", "difference", "ratio_of_means", "mean_of_ratios")
        return {name: getattr(self, name).plain() for name in names} | {
            "correlation": self.correlation,
            "gain": self.gain,
        }


def paired(
    first: Sequence[float] | Floats,
    second: Sequence[float] | Floats,
    *,
    level: float = LEVEL,
    method: Method = "t",
    seed: int = SEED,
) -> Paired:
    """Compare two samples that have the same replicas in the same order."""
    before, after = (np.asarray(sample, dtype=np.float64) for sample in (first, second))
    if before.shape != after.shape:
        raise ValueError(f"pairs of {before.shape} and {after.shape}")
    apart = after - before
    correlation, gain = None, None
    if len(apart) > 2:
        spreads = [deviation_of(sample) for sample in (before, after, apart)]
        if spreads[0] > 0 and spreads[1] > 0:
            covariance = (spreads[0] ** 2 + spreads[1] ** 2 - spreads[2] ** 2) / 2
            correlation = max(-1.0, min(1.0, covariance / (spreads[0] * spreads[1])))
        if spreads[2] > 0:
            gain = (spreads[0] ** 2 + spreads[1] ** 2) / spreads[2] ** 2
            gain = gain if math.isfinite(gain) else None
    return Paired(
        first=mean_interval(before, level=level, method=method, seed=seed),
        second=mean_interval(after, level=level, method=method, seed=seed),
        difference=mean_interval(apart, level=level, method=method, seed=seed),
        ratio_of_means=ratio_of_means(after, before, level=level, seed=seed),
        mean_of_ratios=mean_of_ratios(after, before, level=level),
        correlation=correlation,
        gain=gain,
    )
