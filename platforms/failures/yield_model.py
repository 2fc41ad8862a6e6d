"""What a long-lasting application gets of an allocation that it gives up after some failures, and then waits for anew.

Closed forms of V. Le Fevre et al., "Performance of moldable applications" (ENS Lyon, slides of August 28, 2018), in
their notation: N nodes, each failing once in mu on average, exponentially; i nodes together fail every mu_i = mu / i,
dump in C_i = C_N N / i, read in R_i = R_N N / i, and work sqrt(2 C_i mu_i) between dumps. At failure F + 1 the
allocation is lost, and the next one comes after a wait D. The yield is the useful share of N nodes over an allocation's
life and the wait.

All times of i nodes are those of N nodes times N / i. So the work between two failures, in node-seconds, is the same
for any i when all nodes that are up work: the work of N nodes over mu_N, called a *period's* below.
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

#: F spares stand by for N - F nodes that work; all nodes that are up work; the largest grid of them works
Shape = Literal["rigid", "moldable", "grid"]
#: the slides' sums, to the first order; or the expectation of what is simulated
Form = Literal["paper", "exact"]
SHAPES: Final[tuple[Shape, ...]] = ("rigid", "moldable", "grid")

_LONGEST: Final = 1e12
_LEAST_MTBF: Final = 1e-6
#: what takes so many times the time between failures never ends; beyond, exponentials overflow
_HOPELESS: Final = 600.0
#: nodes: more than any machine has, and all F at once still fit into memory
MOST_NODES: Final = 1_000_000


class YieldError(PlatformError):
    """An allocation makes no sense, or a yield or a wait is out of range."""


@dataclass(frozen=True)
class Allocation:
    """The nodes that an application is given at once.

    Parameters
    ----------
    nodes
        N.
    mtbf
        mu, the mean time between failures of one node, in seconds.
    dump, read
        C_N and R_N, how long a dump and the reading of one take on all N nodes, in seconds.
    optimum
        whose formula gives the work between two dumps; the slides have Young's.

    Raises
    ------
    YieldError
        if a number is out of range.
    """

    nodes: int
    mtbf: float
    dump: float
    read: float
    optimum: Literal["young", "daly"] = "young"

    def __post_init__(self) -> None:
        if not 1 <= self.nodes <= MOST_NODES:
            raise YieldError("no allocation has so many nodes", expected=f"1 to {MOST_NODES:,}", found=str(self.nodes))
        check_range("a mean time between failures", self.mtbf, _LEAST_MTBF, _LONGEST, YieldError)
        check_range("the time of a dump", self.dump, 0, _LONGEST, YieldError)
        check_range("the time of a read", self.read, 0, _LONGEST, YieldError)

    @property
    def mtbf_of_all(self) -> float:
        """mu_N, the mean time between failures while all nodes are up, in seconds."""
        return self.mtbf / self.nodes

    @property
    def interval(self) -> float:
        """The work between two dumps on all nodes, in seconds."""
        return dump_interval(self.optimum, self.dump, self.mtbf_of_all)

    @property
    def paper_period(self) -> float:
        """The work saved between two failures of nodes that all work by the slides, in node-seconds.

        A failure costs a read and half an interval; of the rest, work is W / (W + C).
        """
        rest = max(self.mtbf_of_all - self.read - self.interval / 2, 0.0)
        return self.nodes * rest * self.interval / (self.interval + self.dump)

    @property
    def exact_period(self) -> float:
        """The expected work saved between two failures of nodes that all work, in node-seconds.

        With K the number of dumps that are complete before a failure of rate 1 / M comes, after a read, its mean is
        e^(-R/M) / (e^((W + C)/M) - 1): a geometric distribution, as failures may come at any time.
        """
        mtbf = self.mtbf_of_all
        cycle = (self.interval + self.dump) / mtbf
        if cycle > _HOPELESS or self.read / mtbf > _HOPELESS:
            return 0.0
        return self.nodes * self.interval * math.exp(-self.read / mtbf) / math.expm1(cycle)


#: the setting of all plots of paper 003: slide "Main Applicative Scenario"
SLIDES: Final = Allocation(nodes=150 * 150, mtbf=20 * 365.25 * 86400.0, dump=120.0, read=120.0)


class Optimum(NamedTuple):
    """The number of failures to tolerate, F, the yield (0 to 1) that it gives, and the wait (s) that this is for."""

    failures: int
    share: float
    wait: float


class YieldModel:
    """One shape of application on one allocation, for all F from 0 to ``most`` at once.

    Parameters
    ----------
    shape
        "rigid": N - F nodes work from the beginning; "moldable": all that are up; "grid": the largest p x p at first,
        then p (p - 1), (p - 1) (p - 1), ..., each for as long as enough nodes are up.
    allocation
        its nodes.
    form
        "paper": the sums of the slides, to the first order, in which each failure of a node that works costs a read
        and half an interval. "exact": the expectation of what is simulated, in `pipistrelle.studies.trials.lifetimes`,
        with failures during dumps and reads. Of a grid it leaves out that the last failure of an allocation, if it is
        that of a spare, costs what was not saved.
    most
        the greatest F; None: all nodes but one.

    Raises
    ------
    YieldError
        if ``most`` is negative or leaves no node.
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
        """How long an allocation lives, for each F, in seconds, shape (most + 1,): the sum of mu_i, i = N ... N - F.

        Slides "Rigid Applications - Time" and "Moldable Applications - Time", without the wait.
        """
        return self.allocation.mtbf * np.cumsum(1.0 / self._up)

    @cached_property
    def work(self) -> Floats:
        """The work that is kept of an allocation's life, for each F, in node-seconds, shape (most + 1,).

        With c_i = 1 / (1 + C_i / sqrt(2 C_i mu_i)), the share of work in work and dumps, and
        l_i = R_i + sqrt(2 C_i mu_i) / 2, what a failure costs (slides "... - Work"):

        - rigid: (N - F) c_(N-F) times the sum of mu_i - l_(N-F) (N - F) / i, i = N ... N - F; a failure is that of a
          node that works with probability (N - F) / i, else that of a spare, and costs nothing;
        - moldable: the sum of i c_i (mu_i - l_i);
        - grid: there is no slide; the sum of p c_p (mu_i - l_p p / i), with p the nodes of the grid that stands while i
          are up.

        As l_p and mu_p are those of N nodes times N / p, each sum is that of p / i times what N nodes keep of mu_N: the
        number of failures of nodes that work, times the work of one period. A period that costs more than it gives
        counts as 0.
        """
        teams = self._up if self.shape == "moldable" else grid_teams(self.allocation.nodes, self.most)
        working = np.cumsum(teams / self._up)
        if self.shape == "rigid":
            working = self._up * np.cumsum(1.0 / self._up)
        one = self.allocation
        return working * (one.exact_period if self.form == "exact" else one.paper_period)

    def between_restarts(self, wait: float) -> Floats:
        """Return the expected time between two allocations' starts, for each F, in seconds: T_R = T_M of the slides.

        ``wait`` is D, in seconds.
        """
        check_range("a wait", wait, 0, _LONGEST, YieldError)
        return self.life + wait

    def yields(self, wait: float) -> Floats:
        """Return the yield, from 0 to 1, for each F and a wait in seconds: W / (N T), shape (most + 1,)."""
        return self.work / (self.allocation.nodes * self.between_restarts(wait))

    def optimum(self, wait: float) -> Optimum:
        """Return the F of greatest yield for a wait in seconds, the smallest if there are several."""
        yields = self.yields(wait)
        best = int(np.argmax(yields))
        return Optimum(best, float(yields[best]), wait)

    def largest_wait(self, target: float, failures: int | None = None) -> Optimum | None:
        """Return the longest wait that still allows a yield (0 to 1), with its F; None if no wait is short enough.

        W / (N (T + D)) = y solved for D: the greatest of W / (N y) - T over all F, or that of the F given.

        Raises
        ------
        YieldError
            if the target is not between 0 and 1, or F not between 0 and ``most``.
        """
        if not 0 < target < 1:
            raise YieldError("a target is no yield", expected="a number between 0 and 1", found=f"{target:g}")
        if failures is not None and not 0 <= failures <= self.most:
            raise YieldError(f"{failures} failures are not in the model", expected=f"0 to {self.most}")
        waits = self.work / (self.allocation.nodes * target) - self.life
        best = int(np.argmax(waits)) if failures is None else failures
        return Optimum(best, target, float(waits[best])) if waits[best] >= 0 else None

    @property
    def _up(self) -> Floats:
        """How many nodes are up before each failure, shape (most + 1,)."""
        return self.allocation.nodes - np.arange(self.most + 1, dtype=np.float64)


def grid_teams(nodes: int, most: int) -> Floats:
    """Return how many nodes work in a grid after 0, 1, ..., ``most`` failures, shape (most + 1,).

    The largest square p x p at first; when there are fewer nodes than it has, a row leaves it, then a column, and so
    on; the other nodes of what has left are spares (slides "Applications Models: GridShaped").
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


def completion_time(work: float, interval: float, dump: float, read: float, mtbf: float) -> float:
    """Return the expected time (s) of a job that is dumped and restarted, without a dump at its end.

    As `daly_time`, equation 20 of J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart
    dumps", 2006, but for both ends: the last interval may be shorter and has no dump, and before the first dump is
    complete there is nothing to read. With L the time of an interval and its dump, M the mean time between failures:
    M (e^(L/M) - 1) for the first, M e^(R/M) (e^(L/M) - 1) for each other.

    Parameters
    ----------
    work, interval, dump, read
        T, tau, C and R in seconds.
    mtbf
        M, of the whole allocation, in seconds; if it is hundreds of times shorter than an interval, the time is inf.
    """
    if max(min(interval + dump, work), read) > _HOPELESS * mtbf:
        return math.inf
    dumps = max(math.ceil(work / interval) - 1, 0)
    last = mtbf * math.expm1((work - dumps * interval) / mtbf)
    if not dumps:
        return last
    step = mtbf * math.expm1((interval + dump) / mtbf)
    return step + math.exp(read / mtbf) * ((dumps - 1) * step + last)
