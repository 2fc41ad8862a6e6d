"""Divide a machine by reliability into partitions for classes of jobs.

Source: S. Umamaheshwaran, "Reliability Guided Resource Allocation for Large-scale Supercomputing Systems", 2014.
"""

import math
import re
from collections.abc import Sequence
from math import nan
from typing import Annotated, Final, NamedTuple

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.units.nodesets import NodeSet

Floats = NDArray[np.float64]
#: seconds per hour, the unit of rates
HOUR: Final = 3600.0
#: prefix of a partition's name, used as a class of nodes and as the QOS of jobs; number 1 is the most reliable
LEVEL: Final = "reliability-"
_LEVEL_NUMBER: Final = re.compile("[1-9][0-9]{0,14}")
#: the owner of a partition that belongs to no class of jobs
NOBODY: Final = -1


class RankedClass(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """A class of jobs of similar size, with the symbols of Umamaheshwaran's thesis.

    `load` is equation 3.10 of the thesis, multiplied by `fill`; `cost` is from its table 4.4.

    Args:
        size: n, the units of its largest jobs.
        rate: lambda, jobs per hour.
        service: t, the mean runtime in hours.
        service_95: T, the 95th percentile of runtimes in hours.
        fill: the mean size of its jobs as a share of n.
    """

    size: Annotated[int, Meta(ge=1)]
    rate: Annotated[float, Meta(ge=0)]
    service: Annotated[float, Meta(ge=0)]
    service_95: Annotated[float, Meta(ge=0)]
    fill: Annotated[float, Meta(gt=0, le=1)] = 1.0

    @property
    def load(self) -> float:
        """The mean number of units in use, C_max: `size` x `rate` x `service` x `fill`."""
        return self.size * self.fill * self.rate * self.service

    @property
    def cost(self) -> float:
        """The value that ranks classes of jobs: `size` x `service_95`, in unit-hours."""
        return self.size * self.service_95


class Sized(NamedTuple):
    """The planned size of a partition (``units``), and the index of the job class that owns it (``owner``)."""

    owner: int
    units: int


def ranks(classes: Sequence[RankedClass]) -> list[int]:
    """Return the indices of job classes by falling `cost`.

    Classes of equal cost are ordered by falling size.
    """
    return sorted(range(len(classes)), key=lambda at: (-classes[at].cost, -classes[at].size))


def needed(one: RankedClass, blocking: float) -> int:
    """Return the number of units that a class of jobs needs.

    It is (1 - ``blocking``) times the `load` of the class.
    """
    return math.floor((1.0 - blocking) * one.load + 0.5)


def partition_sizes(
    classes: Sequence[RankedClass], units: int, blocking: float, needs: Sequence[int] | None = None
) -> tuple[list[Sized], int]:
    """Return partitions, the most reliable first, and the number of remaining units.

    In order of rank, each class gets the units that it needs, but at least the size of its largest job. If fewer
    units remain, it gets all of them. A class has no partition if its largest job exceeds the remaining units or needs
    the whole machine.

    Args:
        units: number of units of the machine.
        blocking: B, the accepted chance that a job is blocked, from 0 to 1.
        needs: the units that each class needs; None: computed by `needed`.

    Raises:
        PlatformError: if a class is larger than the machine, or the blocking is out of range.
    """
    if not 0 <= blocking <= 1:
        raise PlatformError("a chance of blocking is out of range", expected="0 to 1", found=f"{blocking!r}")
    left, found = units, []
    for at in ranks(classes):
        one = classes[at]
        if one.size > units:
            what, most = "a class is larger than the machine", f"at most {units:,} units"
            raise PlatformError(what, where=f"class {one.size}", expected=most, found=f"{one.size:,}")
        if one.size == units > 1 or one.size > left:
            continue
        size = min(max(needed(one, blocking) if needs is None else needs[at], one.size), left)
        found.append(Sized(at, size))
        left -= size
    return found, left


class Partition(NamedTuple):
    """The nodes that are reserved for the jobs of one class.

    Args:
        owner: the index of the class.
        nodes: node numbers, the most reliable first, shape (nodes,).
        units: the units of the nodes.
        mttf: the mean of the nodes' mean times to failure (s); NaN if one is unknown.
    """

    owner: int
    nodes: NDArray[np.intp]
    units: NodeSet
    mttf: float


def by_mttf(mttf: Floats) -> NDArray[np.intp]:
    """Return node numbers by falling MTTF.

    Nodes of unknown MTTF come last. Nodes of equal MTTF are ordered by number.
    """
    return np.argsort(-np.nan_to_num(mttf, nan=-np.inf), kind="stable").astype(np.intp)


def observed(mttf: Floats, failures: NDArray[np.int64], seconds: float) -> Floats:
    """Return the nodes' mean times to failure (s), updated by observed failures.

    The result is (M + t) / (1 + k): earlier knowledge counts as one failure in M seconds. An unknown M is
    replaced by the mean of the whole machine, nodes x t / failures. If no node failed, the result is then unknown, too.

    Args:
        mttf: M, each node's earlier mean time to failure (s), NaN if unknown, shape (nodes,).
        failures: k, each node's observed failures, shape (nodes,).
        seconds: t, how long the nodes were observed.
    """
    total = int(failures.sum())
    common = mttf.size * seconds / total if total else nan
    before = np.where(np.isnan(mttf), common, mttf)
    found: Floats = (before + seconds) / (1.0 + failures)
    return found


def partition(sized: Sequence[Sized], mttf: Floats, machine: Machine) -> tuple[list[Partition], NodeSet]:
    """Assign nodes to partitions; also return the units of the remaining nodes.

    The first partition gets the most reliable nodes. All units of a node belong to one partition. So a partition may
    have a few more units than planned, and the last partitions may have fewer.
    """
    order = by_mttf(mttf)
    per_node = machine.numbering.units_per_node(len(order))[order]
    ends = np.cumsum(per_node)
    found, first, used = [], 0, 0
    for one in sized:
        used += one.units
        last = min(int(np.searchsorted(ends, used, side="left")) + 1, len(order))
        nodes = order[first:last]
        if not nodes.size:
            break
        units = machine.numbering.units_of(NodeSet.of(np.sort(nodes).tolist()))
        known = mttf[nodes]
        found.append(Partition(one.owner, nodes, units, float(known.mean())))
        first, used = last, int(ends[last - 1])
    return found, machine.numbering.units_of(NodeSet.of(np.sort(order[first:]).tolist()))


def level_of(text: str) -> int | None:
    """Return the number in the name of a node class or QOS.

    It is 3 for ``reliability-3``, and None for names of another form.
    """
    number = text.removeprefix(LEVEL)
    return int(number) if number != text and _LEVEL_NUMBER.fullmatch(number) else None


def declared(machine: Machine, owners: Sequence[int]) -> list[Partition] | None:
    """Return the partitions that a machine declares by its node classes; None if it declares none.

    Haizea's traces declare them in this way: each node is of a class ``reliability-1`` (the most reliable),
    ``reliability-2`` and so on.

    Args:
        owners: indices of job classes by rank; the first one gets the first partition.
    """
    level = np.array([level_of(name) or 0 for name in machine.nodes.classes])[machine.nodes.node_class]
    if not len(level) or (level == 0).any():
        return None
    found = []
    for place, number in enumerate(np.unique(level).tolist()):
        nodes = np.flatnonzero(level == number)
        units = machine.numbering.units_of(NodeSet.of(nodes.tolist()))
        owner = owners[place] if place < len(owners) else NOBODY
        found.append(Partition(owner, nodes, units, float(machine.nodes.mttf[nodes].mean())))
    return found


def first_partition(parts: Sequence[Partition], at: int, size: int) -> int | None:
    """Return the index of the partition in which to search for a job's units; None means the whole machine.

    A class without a partition uses the least reliable one. If the partition has fewer than ``size`` units, the next
    more reliable one with enough units is taken.

    Args:
        parts: the partitions, the most reliable first.
        at: index of the job's class.
        size: number of units that the job needs.
    """
    own = next((place for place, part in enumerate(parts) if part.owner == at), len(parts) - 1)
    return next((place for place in range(own, -1, -1) if len(parts[place].units) >= size), None)
