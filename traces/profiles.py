"""The types of job profiles, and what follows from them without hosts.

Run times and return codes of some profiles do not depend on hosts. They are computed here.
"""

from collections.abc import Iterator
from math import nan

import msgspec

from pipistrelle.protocol.base.errors import quoted
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.usage_traces import Phases


class _Named(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Fields of all profiles; `ret` is what the job returns, nonzero if it fails."""

    name: str
    ret: int = 0


class Delay(_Named, frozen=True, kw_only=True, gc=False):
    """A job that takes `delay` (> 0) seconds on any hosts."""

    delay: float


class ParallelHomogeneous(_Named, frozen=True, kw_only=True, gc=False):
    """A parallel task with equal work on each host.

    Each host computes `cpu` flops and sends `com` bytes to every other host.
    """

    cpu: float
    com: float


class ParallelHomogeneousTotal(_Named, frozen=True, kw_only=True, gc=False):
    """A parallel task of `cpu` flops in total: ``cpu / n`` on each of n hosts.

    As in Batsim 4, each host sends ``com / n`` bytes to every other host, in total ``com * (n - 1)``.
    """

    cpu: float
    com: float


class Parallel(_Named, frozen=True, kw_only=True, gc=True):
    """A task: ``cpu[i]`` flops on rank i, ``com[i * ranks + j]`` bytes from i to j."""

    cpu: tuple[float, ...]
    com: tuple[float, ...]


class UsageTrace(_Named, frozen=True, kw_only=True, gc=True):
    """A task whose ranks compute in phases: ``phases[rank]`` has pairs (share, flops).

    As in Batsim 4, a phase computes the flops on each of ``max(1, round(share * cores))`` cores of the rank's host.
    """

    phases: tuple[Phases, ...]


class Composed(_Named, frozen=True, kw_only=True, gc=True):
    """A profile that runs other profiles (its parts) one after the other.

    If a part has a nonzero `ret`, the job ends after this part and returns the part's `ret`.

    Args:
        repeat: how often the whole sequence runs.
        seq: the parts, in order.
        names: the parts' names, in the same order.
    """

    repeat: int
    seq: "tuple[Profile, ...]"
    names: tuple[str, ...]


#: a profile that is not composed of others
Leaf = Delay | ParallelHomogeneous | ParallelHomogeneousTotal | Parallel | UsageTrace
Profile = Leaf | Composed


def runtime_of(profile: Profile) -> float:
    """Return the run time (s) of a profile; NaN if it depends on the hosts.

    A part that fails ends the profile.
    """
    if isinstance(profile, Delay):
        return profile.delay
    return _runtime(profile, {})[0]


def _runtime(profile: Profile, known: dict[int, tuple[float, int]]) -> tuple[float, int]:
    """Return (seconds or NaN, return code) of a profile.

    ``known`` caches the results of its parts.
    """
    if isinstance(profile, Delay):
        return profile.delay, profile.ret
    if not isinstance(profile, Composed):
        return nan, profile.ret
    total = 0.0
    for part in profile.seq:
        if id(part) not in known:
            known[id(part)] = _runtime(part, known)
        seconds, code = known[id(part)]
        total += seconds
        if code:
            return total, code
    return total * profile.repeat, profile.ret


def outcome(profile: Profile) -> tuple[Profile, int]:
    """Return the profile without the parts that never run, and the job's return code.

    The first part with a nonzero return code ends the job. If no part has one, the profile is unchanged.
    """
    return _carried_out(profile, {})


def _carried_out(profile: Profile, known: dict[int, tuple[Profile, int]]) -> tuple[Profile, int]:
    """Return the same as `outcome`.

    ``known`` caches the results of parts, by identity.
    """
    if not isinstance(profile, Composed):
        return profile, profile.ret
    done: list[Profile] = []
    for part in profile.seq:
        if id(part) not in known:
            known[id(part)] = _carried_out(part, known)
        one, code = known[id(part)]
        done.append(one)
        if code:
            names = profile.names[: len(done)]
            return Composed(name=profile.name, repeat=1, seq=tuple(done), names=names, ret=code), code
    return profile, profile.ret


def leaves(profile: Profile) -> Iterator[Leaf]:
    """Yield the parts of a profile that have no parts themselves.

    They are in the order of first use. Each part is yielded once. A profile without parts yields itself.
    """
    seen: set[int] = set()
    todo: list[Profile] = [profile]
    while todo:
        part = todo.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, Composed):
            todo.extend(reversed(part.seq))
        else:
            yield part


def communicates(profile: Profile) -> bool:
    """Return whether a job of this profile sends anything between hosts."""
    return any(bool(leaf.com) for leaf in leaves(profile) if not isinstance(leaf, Delay | UsageTrace))


def ranks_of(profile: Profile) -> frozenset[int]:
    """Return how many hosts the parts of the profile need, as a set.

    An empty set means that any number will do. With two different numbers the profile cannot run.
    """
    if isinstance(profile, Delay):
        return frozenset()
    return frozenset(
        len(leaf.cpu if isinstance(leaf, Parallel) else leaf.phases)
        for leaf in leaves(profile)
        if isinstance(leaf, Parallel | UsageTrace)
    )


def require_ranks(profile: Profile, size: int, *, job: str, where: str) -> None:
    """Raise TraceError unless the profile runs on `size` hosts."""
    for ranks in sorted(ranks_of(profile) - {size}):
        raise TraceError(
            f"profile {quoted(profile.name)} of job {quoted(job)} is made for another number of resources",
            where=where,
            expected=str(ranks),
            found=str(size),
            hint="Change the job's 'res' or the profile.",
        )


def size_and_depth(profile: Profile, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """Return how many parts a profile executes, and how deeply they are nested."""
    if not isinstance(profile, Composed):
        return 1, 0
    size = depth = 0
    for part in profile.seq:
        if id(part) not in known:
            known[id(part)] = size_and_depth(part, known)
        size += known[id(part)][0]
        depth = max(depth, known[id(part)][1])
    return size * profile.repeat, depth + 1
