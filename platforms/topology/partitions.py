"""Partitions of a machine by reliability: how large they are for classes of jobs, and which nodes are in which.

Each class gets as many units as it needs, by rank; the last gets what is left. Outages change the order of nodes.
"""

import math
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
#: s in the hour by which rates count
HOUR: Final = 3600.0
#: what begins the class of nodes, and the QOS of jobs, that name a partition: 1 is the most reliable
LEVEL: Final = "reliability-"
#: the owner of a partition that is no class's own
NOBODY: Final = -1


class RankedClass(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """Jobs of about one size.

    Parameters
    ----------
    size
        n: units that its largest jobs need.
    rate
        lambda: jobs an hour.
    service
        t: how long a job runs on average, in hours.
    service_95
        T: how long 95 % of the jobs run at most, in hours.
    fill
        how large its jobs are on average, as a share of n.
    """

    size: Annotated[int, Meta(ge=1)]
    rate: Annotated[float, Meta(ge=0)]
    service: Annotated[float, Meta(ge=0)]
    service_95: Annotated[float, Meta(ge=0)]
    fill: Annotated[float, Meta(gt=0, le=1)] = 1.0

    @property
    def load(self) -> float:
        """Units that its jobs ask for at a time, n lambda t (equation 3.10) if they are all of n: C_max."""
        return self.size * self.fill * self.rate * self.service

    @property
    def cost(self) -> float:
        """What ranks go by: n T, in unit-hours (table 4.4)."""
        return self.size * self.service_95


class Sized(NamedTuple):
    """A partition before it has nodes: its class, as a place among the classes, and its units."""

    owner: int
    units: int


def ranks(classes: Sequence[RankedClass]) -> list[int]:
    """Return the places of the classes by falling n T; of equals the larger jobs first."""
    return sorted(range(len(classes)), key=lambda at: (-classes[at].cost, -classes[at].size))


def needed(one: RankedClass, blocking: float) -> int:
    """Return the units at which the linear form blocks a class's jobs so surely: (1 - B) C_max, to the nearest."""
    return math.floor((1.0 - blocking) * one.load + 0.5)


def partition_sizes(
    classes: Sequence[RankedClass], units: int, blocking: float, needs: Sequence[int] | None = None
) -> tuple[list[Sized], int]:
    """Return partitions in the order of their reliability, and how many units are extra, that is, in none.

    By rank each class gets max(C_r, n) units of those that are left, or all of these if they are fewer but hold one of
    its jobs. A class of which they hold none has no partition; nor has one whose jobs need the whole machine.

    Parameters
    ----------
    units
        of the machine.
    blocking
        B, from 0 to 1.
    needs
        C_r of each class, for other forms than ours; None: `needed`.

    Raises
    ------
    PlatformError
        if a class is larger than the machine, or the chance of blocking none.
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
    """Nodes for the jobs of a class.

    Parameters
    ----------
    owner
        the class's place among the classes.
    nodes
        numbers of the nodes, the most reliable first, shape (nodes,).
    units
        their units.
    mttf
        mean of the nodes' mean times to failure, s; NaN if nobody knows one.
    """

    owner: int
    nodes: NDArray[np.intp]
    units: NodeSet
    mttf: float


def by_mttf(mttf: Floats) -> NDArray[np.intp]:
    """Return the nodes by falling mean time to failure; of equals, and those of which it is not known, by number."""
    return np.argsort(-np.nan_to_num(mttf, nan=-np.inf), kind="stable").astype(np.intp)


def observed(mttf: Floats, failures: NDArray[np.int64], seconds: float) -> Floats:
    """Return the nodes' mean times to failure (s) after so many failures of each in a time.

    (M + t) / (1 + k): what was known before counts as one failure in M. Where nothing was known M is the mean time of
    the whole machine, nodes x t / failures; with no failure either it stays unknown.

    Parameters
    ----------
    mttf
        M of each node before, s, NaN if nobody knows, shape (nodes,).
    failures
        k, how often each has failed since, shape (nodes,).
    seconds
        t.
    """
    total = int(failures.sum())
    common = mttf.size * seconds / total if total else nan
    before = np.where(np.isnan(mttf), common, mttf)
    found: Floats = (before + seconds) / (1.0 + failures)
    return found


def partition(sized: Sequence[Sized], mttf: Floats, machine: Machine) -> tuple[list[Partition], NodeSet]:
    """Return the partitions with their nodes, the most reliable first, and the units of the extra nodes.

    A node is in one partition with all its units: a partition may have some more units than it was to have, but the
    last ones fewer then.
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
    """Return the number of the partition that a class of nodes, or a job's QOS, names; None if it names none."""
    number = text.removeprefix(LEVEL)
    return int(number) if number != text and number.isascii() and number.isdecimal() and int(number) >= 1 else None


def declared(machine: Machine, owners: Sequence[int]) -> list[Partition] | None:
    """Return the partitions that a machine has by its nodes' classes, None if it has none.

    They are there where all nodes are of classes ``reliability-1``, the most reliable, ``reliability-2``, ..., as the
    site of a Haizea trace says. ``owners`` are the classes of jobs by rank: the first has the first partition.
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
    """Return the place of the partition to which a class's jobs go first, None if that is the whole machine.

    That is its own, or the lowest; from there upwards the first that can hold such a job at all.
    """
    own = next((place for place, part in enumerate(parts) if part.owner == at), len(parts) - 1)
    return next((place for place in range(own, -1, -1) if len(parts[place].units) >= size), None)
