"""How large partitions are: of classes of jobs by rank, each as many units as it needs; the last gets what is left."""

import math
from collections.abc import Sequence
from typing import Annotated, Final, NamedTuple

from msgspec import Meta, Struct

from pipistrelle.schedulers.policy.errors import PolicyError

#: s in the hour by which rates count
HOUR: Final = 3600.0


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
    PolicyError
        if a class is larger than the machine, or the chance of blocking none.
    """
    if not 0 <= blocking <= 1:
        raise PolicyError("a chance of blocking is out of range", expected="0 to 1", found=f"{blocking!r}")
    left, found = units, []
    for at in ranks(classes):
        one = classes[at]
        if one.size > units:
            what, most = "a class is larger than the machine", f"at most {units:,} units"
            raise PolicyError(what, where=f"class {one.size}", expected=most, found=f"{one.size:,}")
        if one.size == units > 1 or one.size > left:
            continue
        size = min(max(needed(one, blocking) if needs is None else needs[at], one.size), left)
        found.append(Sized(at, size))
        left -= size
    return found, left
