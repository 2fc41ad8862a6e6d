"""Change submit times: shuffle them among the jobs, or draw new ones."""

from dataclasses import dataclass
from math import inf
from typing import Final

import numpy as np

from pipistrelle.traces.errors import TraceError, out_of_range
from pipistrelle.traces.transforms.cut import resubmitted
from pipistrelle.traces.workload import LARGEST, Floats, Workload

#: random times are whole milliseconds, so that sums are exact and equal on every machine
_TICK: Final = 1000.0


@dataclass(frozen=True, slots=True)
class Gaps:
    """A distribution of the times between submissions.

    Args:
        kind: ``fixed``; ``exp``, exponential; or ``unif``, uniform.
        low: in seconds: the fixed time of ``fixed``, the mean of ``exp``, the least time of ``unif``.
        high: in seconds: the greatest time of ``unif``; the other kinds ignore it.
    """

    kind: str
    low: float
    high: float = 0.0

    def __post_init__(self) -> None:
        least = self.low >= 0 if self.kind == "fixed" else self.low > 0 or (self.kind == "unif" and self.low == 0)
        if self.kind == "unif":
            least = least and self.high >= self.low
        if not least or max(self.low, self.high) > LARGEST:
            raise TraceError(
                "the time between submissions is out of range",
                expected={
                    "fixed": "a time of at least 0",
                    "exp": "a mean above 0",
                    "unif": "two times of at least 0, the second not below the first",
                }[self.kind],
                found=f"{self.low:g} s" + (f" to {self.high:g} s" if self.kind == "unif" else ""),
            )

    def times(self, first: float, count: int, rng: np.random.Generator) -> Floats:
        """Return ascending submit times (s), shape (count,), beginning at `first`."""
        steps = np.arange(count, dtype=np.float64)
        if self.kind == "fixed":
            return first + steps * self.low
        uniform = rng.random(max(count - 1, 0))
        gaps = -np.log1p(-uniform) * self.low if self.kind == "exp" else self.low + uniform * (self.high - self.low)
        steps[1:] = np.cumsum(np.round(gaps * _TICK))
        times = np.maximum(np.round(first * _TICK + steps) / _TICK, first)
        times[:1] = first
        return times


def shuffle_submits(workload: Workload, rng: np.random.Generator, window: float = inf) -> Workload:
    """Return the workload with its submit times shuffled among its jobs.

    Args:
        window: jobs exchange times only within windows of this length (s), counted from the first submission; inf:
            all jobs exchange times.
    """
    if not window > 0:
        raise out_of_range("value", "window", "a time above 0", repr(window))
    place = np.floor((workload.submit - workload.submit.min()) / window)  # all 0 if the window is infinite
    dealt = np.lexsort((rng.random(len(workload)), place))
    submit = np.empty_like(workload.submit)
    submit[dealt] = workload.submit[np.argsort(place, kind="stable")]
    return resubmitted(workload, submit)


def redraw_submits(workload: Workload, gaps: Gaps, rng: np.random.Generator) -> Workload:
    """Return the workload with new submit times, drawn from `gaps`.

    The first submit time and the order of the jobs stay.
    """
    order = np.argsort(workload.submit, kind="stable")
    submit = np.empty_like(workload.submit)
    submit[order] = gaps.times(float(workload.submit.min()), len(workload), rng)
    return resubmitted(workload, submit)
