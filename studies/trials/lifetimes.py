"""Simulate an application's allocations, one after another, to estimate its yield.

The yield is the useful share of node time. Each allocation is simulated as in a run, by
`pipistrelle.server.attempts.progress.AttemptProgress`. Failures occur at the total rate of the nodes that are up, and
each of these nodes is equally likely to fail. `pipistrelle.platforms.failures.yield_model` has the closed forms to
compare with.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipistrelle.models.samples.estimates import normal_quantile
from pipistrelle.platforms.failures.yield_model import SHAPES, Allocation, Form, Optimum, Shape, YieldError, YieldModel
from pipistrelle.server.attempts.progress import AttemptProgress
from pipistrelle.traces.generator import seeded
from pipistrelle.traces.resilience import Kind, Resilience

Floats = NDArray[np.float64]

_KINDS: Final[dict[Shape, Kind]] = {"rigid": "spares", "moldable": "moldable", "grid": "grid"}
#: work on the whole allocation, in seconds: so much that it never ends
_ENDLESS: Final = 1e15
#: earlier work in seconds, so that the first allocation begins with reading a checkpoint, like all others
_BEFORE: Final = 1.0


class Estimate(NamedTuple):
    """The mean of a sample, with its confidence interval."""

    value: float
    low: float
    high: float

    @property
    def half(self) -> float:
        """Return half the width of the confidence interval."""
        return (self.high - self.low) / 2

    @classmethod
    def of(cls, values: Floats, confidence: float = 0.95) -> "Estimate":
        """Return the mean of independent values, shape (n,), with a normal interval."""
        value = float(values.mean())
        half = normal_quantile((1 + confidence) / 2) * float(values.std(ddof=1)) / math.sqrt(values.size)
        return cls(value, value - half, value + half)


@dataclass(frozen=True)
class Lifetimes:
    """Simulated allocations of an application, one after another.

    Attributes:
        nodes: number of nodes of each allocation.
        length: time from an allocation's start to the failure that ended it (s), shape (n,).
        work: saved work (node-seconds), shape (n,).
    """

    nodes: int
    length: Floats
    work: Floats

    def yield_after(self, wait: float, confidence: float = 0.95) -> Estimate:
        """Return the yield (work / node time) with a wait (s) before each allocation.

        Its confidence interval is the normal one for a ratio of two means of independent pairs (delta method).
        """
        time = self.nodes * (self.length + wait)
        value = float(self.work.sum() / time.sum())
        spread = float((self.work - value * time).std(ddof=1)) / float(time.mean())
        half = normal_quantile((1 + confidence) / 2) * spread / math.sqrt(self.length.size)
        return Estimate(value, value - half, value + half)


class YieldRow(NamedTuple):
    """The yield of an application for one wait and one number of survived failures.

    Attributes:
        wait: wait for a new allocation (s).
        shape: how the application uses its nodes; None if each allocation ends with the first failure.
        length: mean lifetime of an allocation (s).
        share: the yield, computed by formula.
        simulated: the yield in a simulation; None if none was requested.
    """

    wait: float
    shape: Shape | None
    failures: int
    length: float
    share: float
    simulated: Estimate | None


class WaitRow(NamedTuple):
    """The largest queue wait (s) at which an application reaches a target yield.

    ``best`` is None if the yield stays below the target at any wait.
    """

    target: float
    shape: Shape | None
    best: Optimum | None


#: the rows per wait: without spares, then each shape
_ROWS: Final[tuple[Shape | None, ...]] = (None, *SHAPES)
#: factor of the number of simulated allocations if each ends with its first failure
SINGLE_FAILURES: Final = 100


def yield_rows(
    allocation: Allocation,
    waits: Sequence[float],
    *,
    failures: int | None = None,
    form: Form = "paper",
    lifetimes: int = 0,
    seed: int = 1,
) -> list[YieldRow]:
    """Return an application's yield for each wait between allocations.

    The yield is the useful share of node time. Each wait has one row without spare nodes, and one for each shape, that
    is, each way of using the nodes.

    Args:
        waits: waits for a new allocation in seconds.
        failures: number F of failures that an allocation survives; None: the best number for each shape and wait.
        lifetimes: simulated allocations per row (`SINGLE_FAILURES` times as many without spares); 0 for none.
        seed: seed of the simulations; each shape and F has its own random stream.

    Raises:
        YieldError: F is not below the number of nodes, or a wait is out of range.
    """
    _check_failures(failures or 0, allocation.nodes)
    models = {shape: _model(shape, allocation, form) for shape in _ROWS}
    lived: dict[tuple[Shape | None, int], Lifetimes] = {}
    rows = []
    for wait in waits:
        for number, shape in enumerate(_ROWS):
            model = models[shape]
            chosen = failures if shape is not None and failures is not None else model.optimum(wait).failures
            key = (shape, chosen)
            if lifetimes and key not in lived:
                lived[key] = live(
                    shape or "rigid",
                    allocation,
                    failures=chosen,
                    lifetimes=lifetimes * (SINGLE_FAILURES if shape is None else 1),
                    generator=seeded(seed, number, chosen),
                )
            simulated = lived[key].yield_after(wait) if lifetimes else None
            length, share = float(model.life[chosen]), float(model.yields(wait)[chosen])
            rows.append(YieldRow(wait, shape, chosen, length, share, simulated))
    return rows


def wait_rows(
    allocation: Allocation, targets: Sequence[float], *, failures: int | None = None, form: Form = "paper"
) -> list[WaitRow]:
    """Return the largest wait for each target yield.

    Each target has one row without spare nodes, and one row for each shape, that is, each way of using the nodes.
    """
    models = {shape: _model(shape, allocation, form) for shape in _ROWS}
    return [
        WaitRow(target, shape, models[shape].largest_wait(target, None if shape is None else failures))
        for target in targets
        for shape in _ROWS
    ]


def _check_failures(failures: int, nodes: int) -> None:
    if not 0 <= failures < nodes:
        raise YieldError(f"{failures} failures cannot be tolerated", expected=f"0 to {nodes - 1}, fewer than the nodes")


def _model(shape: Shape | None, allocation: Allocation, form: Form) -> YieldModel:
    return YieldModel(shape or "rigid", allocation, form=form, most=0 if shape is None else None)


def resilience_of_shape(shape: Shape, allocation: Allocation, failures: int) -> Resilience:
    """Return the resilience options of an application of this shape.

    Its allocation survives ``failures`` failures and ends at the next one.
    """
    return Resilience(_KINDS[shape], allocation.optimum, dump=allocation.dump, read=allocation.read, spares=failures)


def live(
    shape: Shape, allocation: Allocation, *, failures: int, lifetimes: int, generator: np.random.Generator
) -> Lifetimes:
    """Simulate allocations of an application.

    Each ends when its nodes have failed F + 1 times.

    Args:
        failures: F, less than the number of nodes of an allocation.
        lifetimes: number of allocations, at least 2.

    Raises:
        YieldError: F or the number of allocations is out of range.
    """
    nodes = allocation.nodes
    _check_failures(failures, nodes)
    if lifetimes < 2:
        raise YieldError("one allocation is no sample", expected="at least 2", found=str(lifetimes))
    resilience = resilience_of_shape(shape, allocation, failures)
    rate = 1.0 / allocation.mtbf
    numbers = range(nodes)
    rates: Sequence[float] | float = [rate] * nodes if failures else rate * nodes
    means = allocation.mtbf / (nodes - np.arange(failures + 1))
    length, work = np.empty(lifetimes), np.empty(lifetimes)
    saved = _BEFORE
    for number in range(lifetimes):
        times = np.cumsum(generator.exponential(means)).tolist()
        victims = generator.choice(nodes, failures + 1, replace=False).tolist()
        course = AttemptProgress(resilience, start=0.0, work=_ENDLESS, saved=saved, nodes=numbers, rates=rates)
        for now, victim in zip(times, victims, strict=True):
            if not course.strike(now, (victim,)):
                break
        account = course.account(now)
        saved = account.saved
        length[number], work[number] = now, account.node_useful
    return Lifetimes(nodes, length, work)
