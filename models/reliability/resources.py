"""Job classes from a description or a log, and the nodes that they need."""

from collections.abc import Sequence
from itertools import pairwise
from math import fsum
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from pipistrelle.models.reliability.jobs import ReliabilityError
from pipistrelle.models.reliability.loss import check_blocking
from pipistrelle.models.workloads.classes import WorkloadClasses
from pipistrelle.platforms.topology.partitions import HOUR, RankedClass
from pipistrelle.traces.clean import clean
from pipistrelle.traces.workload import Workload

_MOST = 0.95


class ResourceClass(NamedTuple):
    """A class of jobs of similar size.

    ``jobs`` is its number of jobs in the log, None if the class was described by hand.
    """

    name: str
    sizes: RankedClass
    jobs: int | None = None

    @property
    def size(self) -> int:
        """Return the size of the class's largest jobs, in units (n)."""
        return self.sizes.size


class ClassDemand(Struct, frozen=True):
    """The classes of a workload, by size, and the machine's units."""

    name: str
    classes: tuple[ResourceClass, ...]
    units: int

    @property
    def load(self) -> float:
        """Return the ratio of requested units to available units, on average.

        At 1 or more, queues grow forever.
        """
        return fsum(one.sizes.load for one in self.classes) / self.units


def described(classes: WorkloadClasses, units: int | None = None) -> ClassDemand:
    """Return the job classes of a description, with their demand.

    If a class has a range of sizes, its size n is the largest size, and its demand uses the mean size.
    """
    found = []
    for one in classes.classes:
        least, most = one.sizes
        sizes = RankedClass(
            size=most,
            rate=classes.rate(one),
            service=one.mean_service / HOUR,
            service_95=one.most_service / HOUR,
            fill=(least + most) / 2 / most,
        )
        found.append(ResourceClass(one.label, sizes))
    return _demand(classes.name, found, units or classes.machine_size)


def logged(workload: Workload, units: int, bins: Sequence[int] = ()) -> ClassDemand:
    """Group the jobs of a log into classes by size; jobs above `units` are left out.

    Args:
        bins: largest size of each class; empty: powers of two. Larger jobs make a last class; classes without jobs are
            left out.
    """
    jobs, _ = clean(workload, units)
    known = np.isfinite(jobs.runtime)
    size, runtime = jobs.size[known], jobs.runtime[known]
    if not size.size:
        raise ReliabilityError("no job of the workload with a known run time fits the machine", where=workload.name)
    hours = (float(jobs.submit.max()) - float(jobs.submit.min())) / HOUR
    if hours <= 0:
        raise ReliabilityError("all jobs are submitted at once, so there is no rate", where=workload.name)
    edges = _edges(bins, int(size.max()), units)
    place = np.searchsorted(np.array(edges), size, side="left")
    found = []
    for at, edge in enumerate(edges):
        mine = place == at
        count = int(mine.sum())
        if not count:
            continue
        total = float(runtime[mine].sum())
        sizes = RankedClass(
            size=edge,
            rate=count / hours,
            service=total / count / HOUR,
            service_95=float(np.quantile(runtime[mine], _MOST)) / HOUR,
            fill=float((size[mine] * runtime[mine]).sum()) / (edge * total),  # weighted by run time
        )
        found.append(ResourceClass(str(edge), sizes, count))
    return _demand(workload.name, found, units)


def _edges(bins: Sequence[int], largest: int, units: int) -> list[int]:
    if not bins:
        powers = [1 << power for power in range((largest - 1).bit_length() + 1)]
        return [*powers[:-1], min(powers[-1], units)]
    edges = list(bins)
    if edges[0] < 1 or any(after <= before for before, after in pairwise(edges)):
        found, expected = ",".join(map(str, edges)), "sizes from 1, such as 16,256"
        raise ReliabilityError("the bins do not ascend", where="--bins", expected=expected, found=found)
    return [edge for edge in [*edges, max(largest, edges[-1])] if edge <= units]


def _demand(name: str, classes: list[ResourceClass], units: int) -> ClassDemand:
    for one in classes:
        if one.size > units:
            raise ReliabilityError(
                "a class is larger than the machine",
                where=f"class {one.name}",
                expected=f"at most {units:,} units",
                found=f"{one.size:,}",
            )
    return ClassDemand(name, tuple(sorted(classes, key=lambda one: one.size)), units)


class Needs(NamedTuple):
    """The number of nodes that each class needs at a blocking probability B.

    The numbers are in the order of the classes.

    Attributes:
        plain: for job types I and IV of Umamaheshwaran's thesis, by its equation 3.11.
        chained: for types II and III, by equation 3.14 as printed.
        by_size: for types II and III as in table 4.5: (1 - B) C_max, plus B times C_max of the next smaller class.
    """

    plain: list[float]
    chained: list[float]
    by_size: list[float]


def needs(most: Sequence[float], blocking: float) -> Needs:
    """Return the nodes that each class needs at a blocking probability.

    ``most`` has the nodes that each class needs without blocking, C_max = n lambda t, from the smallest jobs up.
    """
    check_blocking(blocking)
    share, before, chained = 1.0 - blocking, 0.0, []
    for load in most:
        before = share * load + blocking * before
        chained.append(before)
    lower = [0.0, *list(most)[:-1]]
    by_size = [share * load + blocking * less for load, less in zip(most, lower, strict=True)]
    return Needs([share * load for load in most], chained, by_size)
