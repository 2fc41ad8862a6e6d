"""Classes of jobs (queues): which nodes they may have, how many, how long, with which priority."""

import math

import msgspec

from pipistrelle.platforms.errors import PlatformError, check_range
from pipistrelle.protocol.base.errors import did_you_mean, shown

_LONGEST_NAME = 64
_LONGEST_OVERHEAD = 1e9


class JobClass(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a machine grants to the jobs of one queue.

    Parameters
    ----------
    name
        what the queue is called, once in a platform; jobs of other queues have no limits.
    pools
        the names of the pools whose nodes its jobs may have; none: all.
    priority
        the queue's priority, higher first, for the orders that look at it.
    max_nodes
        nodes that all its jobs together may have at a time; None: no limit, as below.
    max_nodes_per_user, max_nodes_per_job
        nodes that all its jobs of one user together, or one of its jobs, may have.
    max_walltime
        the longest walltime that one of its jobs may ask for, in seconds.
    prologue, epilogue
        how long a job's units are taken before it begins to work, and after it has ended, in seconds; those of the
        pools are added.
    """

    name: str
    pools: tuple[str, ...] = ()
    priority: float = 0.0
    max_nodes: int | None = None
    max_nodes_per_user: int | None = None
    max_nodes_per_job: int | None = None
    max_walltime: float | None = None
    prologue: float = 0.0
    epilogue: float = 0.0


def check_classes(classes: tuple[JobClass, ...], pools: list[str]) -> None:
    """Check the classes of a machine with these pools.

    Raises
    ------
    PlatformError
        if a name is not valid or used twice, a pool is unknown, or a limit is out of range.
    """
    seen: set[str] = set()
    for index, one in enumerate(classes):
        where = f"classes[{index}]"
        if not one.name or len(one.name) > _LONGEST_NAME or not one.name.isprintable() or one.name.strip() != one.name:
            raise PlatformError(
                "a class's name is not valid",
                where=f"{where}.name",
                expected=f"1 to {_LONGEST_NAME} printable characters, not blank at either end",
                found=shown(one.name),
            )
        if one.name in seen:
            raise PlatformError(f"the class name {shown(one.name)} is used twice", where=f"{where}.name")
        seen.add(one.name)
        for pool in one.pools:
            if pool not in pools:
                raise PlatformError(
                    f"a class names a pool {shown(pool)} that there is not",
                    where=f"{where}.pools",
                    hint=did_you_mean(pool, pools),
                )
        for field in ("max_nodes", "max_nodes_per_user", "max_nodes_per_job", "max_walltime"):
            limit = getattr(one, field)
            if limit is not None and not (limit > 0 and math.isfinite(limit)):
                raise PlatformError(
                    "a limit is out of range", where=f"{where}.{field}", expected="above 0", found=shown(limit)
                )
        if not math.isfinite(one.priority):
            raise PlatformError("a priority is not finite", where=f"{where}.priority", found=shown(one.priority))
        check_overheads(one.prologue, one.epilogue, where)


def check_overheads(prologue: float, epilogue: float, where: str) -> None:
    """Check times in seconds that jobs take beside their work; raises `PlatformError`."""
    for field, time in (("prologue", prologue), ("epilogue", epilogue)):
        check_range("a time", time, 0, _LONGEST_OVERHEAD, PlatformError, where=f"{where}.{field}")
