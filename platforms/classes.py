"""Classes of jobs (queues): their pools, limits and priorities."""

import math

import msgspec

from pipistrelle.platforms.errors import PlatformError, check_range
from pipistrelle.protocol.base.errors import did_you_mean, shown

_LONGEST_NAME = 64
_LONGEST_OVERHEAD = 1e9


class JobClass(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits, pools and times of the jobs of one queue; a limit of None means no limit.

    Args:
        name: the queue's name, unique in a platform; jobs of other queues have no limits.
        pools: names of the pools that its jobs may use; empty: all.
        priority: jobs of higher priority come first, if the queue order uses priorities.
        max_nodes: the most nodes that its running jobs may have together.
        max_nodes_per_user, max_nodes_per_job: the most nodes of one user's running jobs together, or of one job.
        max_walltime: the longest walltime that a job may request (s).
        prologue, epilogue: how long units are occupied before their job begins and after it has ended (s), in addition
            to the pools' times.
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
    """Check the job classes of a machine that has these pools.

    Raises:
        PlatformError: if a name is invalid or used twice, a pool is unknown, or a limit is out of range.
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
                    f"a class names the unknown pool {shown(pool)}",
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
    """Raise PlatformError if a prologue or epilogue (s) is out of range."""
    for field, time in (("prologue", prologue), ("epilogue", epilogue)):
        check_range("a time", time, 0, _LONGEST_OVERHEAD, PlatformError, where=f"{where}.{field}")
