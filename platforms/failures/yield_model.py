"""The yield of an application that waits for a new allocation after some failures.

The formulas and symbols are those of V. Le Fevre et al., "Performance of moldable applications" (ENS Lyon, slides of
August 28, 2018). Each of N nodes fails once in mu on average, with exponential times; i nodes fail every mu_i = mu / i.
On i nodes a dump takes C_i = C_N N / i, a read R_i = R_N N / i, and the work between two dumps sqrt(2 C_i mu_i). The
application survives F failures. At failure F + 1 its allocation ends, and the next one begins after a wait D. The yield
is the useful share of the nodes' time.

Dumps, reads and times between failures are all N / i times as long on i nodes as on N nodes. Therefore, if i nodes are
up and all of them work, the work between two failures (in node-seconds) does not depend on i. It is called the work of
one *period* below.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.errors import PlatformError, check_range
from pipistrelle.platforms.failures.checkpointing import dump_interval

Floats = NDArray[np.float64]

#: which nodes work: N - F with F spares; all nodes that are up; the largest grid that fits these
Shape = Literal["rigid", "moldable", "grid"]
#: the slides' first-order sums, or the exact expectation of the simulation
Form = Literal["paper", "exact"]
SHAPES: Final[tuple[Shape, ...]] = ("rigid", "moldable", "grid")

_LONGEST: Final = 1e12
_LEAST_MTBF: Final = 1e-6
#: a dump interval this many times the mean time between failures never completes; beyond it, exponentials overflow
_HOPELESS: Final = 600.0
#: more nodes than any machine has; arrays over all F still fit into memory
MOST_NODES: Final = 1_000_000


class YieldError(PlatformError):
    """An argument of the yield model is out of range."""


@dataclass(frozen=True)
class Allocation:
    """The nodes of an application's allocation, their MTBF and its checkpoint times.

    Args:
        nodes: N.
        mtbf: mu, the mean time between failures of one node (s).
        dump, read: C_N and R_N, how long writing and reading a checkpoint take on all N nodes (s).
        optimum: the formula for the work between two checkpoints; the slides use Young's.

    Raises:
        YieldError: if a number is out of range.
    """

    nodes: int
    mtbf: float
    dump: float
    read: float
    optimum: Literal["young", "daly"] = "young"

    def __post_init__(self) -> None:
        if not 1 <= self.nodes <= MOST_NODES:
            raise YieldError(
                "the number of nodes is out of range", expected=f"1 to {MOST_NODES:,}", found=str(self.nodes)
            )
        check_range("a mean time between failures", self.mtbf, _LEAST_MTBF, _LONGEST, YieldError)
        check_range("the time of a dump", self.dump, 0, _LONGEST, YieldError)
        check_range("the time of a read", self.read, 0, _LONGEST, YieldError)

    @property
    def mtbf_of_all(self) -> float:
        """mu_N, the mean time between failures while all nodes are up (s)."""
        return self.mtbf / self.nodes

    @property
    def interval(self) -> float:
        """The time of work between two checkpoints on all nodes (s)."""
        return dump_interval(self.optimum, self.dump, self.mtbf_of_all)

    @property
    def paper_period(self) -> float:
        """The work saved between two failures, in node-seconds, by the slides' formula.

        A failure costs the time of a read and half an interval. Of the remaining time, the share W / (W + C) is work: W
        is the work between two checkpoints, and C the time to write one.
        """
        rest = max(self.mtbf_of_all - self.read - self.interval / 2, 0.0)
        return self.nodes * rest * self.interval / (self.interval + self.dump)

    @property
    def exact_period(self) -> float:
        """The expected work saved between two failures of working nodes, in node-seconds.

        M is the mean time between failures, R the time of a read, W the work before a dump and C the time of the dump.
        The number of dumps that complete before a failure has a geometric distribution, with the mean e^(-R/M) / (e^((W
        + C)/M) - 1). Failures may come during reads and dumps, too.
        """
        mtbf = self.mtbf_of_all
        cycle = (self.interval + self.dump) / mtbf
        if cycle > _HOPELESS or self.read / mtbf > _HOPELESS:
            return 0.0
        return self.nodes * self.interval * math.exp(-self.read / mtbf) / math.expm1(cycle)


#: the setting of all plots on the slides: "Main Applicative Scenario"
SLIDES: Final = Allocation(nodes=150 * 150, mtbf=20 * 365.25 * 86400.0, dump=120.0, read=120.0)


class Optimum(NamedTuple):
    """The number F of survived failures with the greatest yield.

    ``share`` is this yield (0 to 1), and ``wait`` the wait (s) between allocations for which it holds.
    """

    failures: int
    share: float
    wait: float


class YieldModel:
    """Yields of one shape of application on one allocation, for F from 0 to ``most``.

    Args:
        shape: which nodes work. "rigid": N - F nodes, from the beginning. "moldable": all nodes that are up. "grid":
            the largest p x p at first, then p (p - 1), (p - 1) (p - 1), ..., each as long as enough nodes are up.
        form: "paper": the slides' first-order sums, in which each failure of a working node costs a read and half an
            interval. "exact": the expectation of the simulation in `pipistrelle.studies.trials.lifetimes`, with
            failures during dumps and reads. For a grid it ignores the unsaved work that is lost if the last failure of
            an allocation hits a spare.
        most: the greatest F; None: all nodes but one.

    Raises:
        YieldError: if ``most`` is negative or leaves no node.
    """

    def __init__(self, shape: Shape, allocation: Allocation, *, form: Form = "paper", most: int | None = None) -> None:
        last = allocation.nodes - 1
        if most is not None and not 0 <= most <= last:
            raise YieldError(f"{most} failures cannot be tolerated", expected=f"0 to {last}, one less than the nodes")
        self.shape = shape
        self.allocation = allocation
        self.form = form
        self.most = last if most is None else most

    @cached_property
    def life(self) -> Floats:
        """The mean lifetime of an allocation (s) for each F, shape (most + 1,).

        This is the sum of mu_i for all i from N down to N - F, as on the slides "Rigid Applications - Time" and
        "Moldable Applications - Time", but without the wait.
        """
        return self.allocation.mtbf * np.cumsum(1.0 / self._up)

    @cached_property
    def work(self) -> Floats:
        """The work saved in an allocation's life (node-s) for each F, shape (most + 1,).

        Between failures, the share c_i = 1 / (1 + C_i / sqrt(2 C_i mu_i)) of the time is work, and the rest is dumps. A
        failure costs the time l_i = R_i + sqrt(2 C_i mu_i) / 2 (slides "... - Work"). The sums run over i = N ... N -
        F:

        - rigid: (N - F) c_(N-F) times the sum of mu_i - l_(N-F) (N - F) / i. A failure hits a working node with
          probability (N - F) / i, else a spare, which costs nothing.
        - moldable: the sum of i c_i (mu_i - l_i).
        - grid (no slide): the sum of p c_p (mu_i - l_p p / i), with p the nodes of the grid while i nodes are up.

        A time on p nodes is the time on N nodes multiplied by N / p. Each sum is therefore the sum of p / i (the number
        of failures of working nodes) times the work of one period. If a failure costs more than a period's work, the
        period counts as 0.
        """
        teams = self._up if self.shape == "moldable" else grid_teams(self.allocation.nodes, self.most)
        working = np.cumsum(teams / self._up)
        if self.shape == "rigid":
            working = self._up * np.cumsum(1.0 / self._up)
        one = self.allocation
        return working * (one.exact_period if self.form == "exact" else one.paper_period)

    def between_restarts(self, wait: float) -> Floats:
        """Return the mean time (s) between the starts of consecutive allocations.

        It is given for each F, shape (most + 1,). The slides call it T_R for rigid and T_M for moldable applications.

        Args:
            wait: D, the queue wait before an allocation (s).
        """
        check_range("a wait", wait, 0, _LONGEST, YieldError)
        return self.life + wait

    def yields(self, wait: float) -> Floats:
        """Return the yield for each F, shape (most + 1,).

        The yield is the useful share of the node time, 0 to 1. It is W / (N T): the work W of one allocation, divided
        by its N nodes times the mean time T from one allocation to the next. ``wait`` is the queue wait D (s).
        """
        return self.work / (self.allocation.nodes * self.between_restarts(wait))

    def optimum(self, wait: float) -> Optimum:
        """Return the number F with the greatest yield for a queue wait (s).

        If several F have the same yield, the smallest counts.
        """
        yields = self.yields(wait)
        best = int(np.argmax(yields))
        return Optimum(best, float(yields[best]), wait)

    def largest_wait(self, target: float, failures: int | None = None) -> Optimum | None:
        """Return the longest wait that still allows a yield (0 to 1), with its F.

        Return None if no wait allows it. The wait D solves W / (N (T + D)) = y, where y is the target. So D is the
        largest W / (N y) - T over all F, or its value for the given F.

        Raises:
            YieldError: if the target is not between 0 and 1, or F not from 0 to ``most``.
        """
        if not 0 < target < 1:
            raise YieldError("a target is not a yield", expected="a number between 0 and 1", found=f"{target:g}")
        if failures is not None and not 0 <= failures <= self.most:
            raise YieldError(f"{failures} failures are not in the model", expected=f"0 to {self.most}")
        waits = self.work / (self.allocation.nodes * target) - self.life
        best = int(np.argmax(waits)) if failures is None else failures
        return Optimum(best, target, float(waits[best])) if waits[best] >= 0 else None

    @property
    def _up(self) -> Floats:
        """The number of nodes in service before each failure of an allocation.

        It has shape (most + 1,).
        """
        return self.allocation.nodes - np.arange(self.most + 1, dtype=np.float64)


def grid_teams(nodes: int, most: int) -> Floats:
    """Return how many nodes a grid-shaped application uses after each failure.

    The result is for 0 to ``most`` failures, shape (most + 1,). The grid is the largest square p x p at first. When too
    few nodes are left for it, it loses a row, then a column, and so on; its other nodes become spares (slides
    "Applications Models: GridShaped").
    """
    rows = columns = math.isqrt(nodes)
    teams = np.empty(most + 1)
    for failed in range(most + 1):
        while rows * columns > nodes - failed:
            if rows == columns:
                rows -= 1
            else:
                columns -= 1
        teams[failed] = rows * columns
    return teams
