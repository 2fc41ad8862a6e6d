"""What a job does, by profile type, and what can be told of it without hosts."""

from collections.abc import Iterator
from math import nan

import msgspec

from pipistrelle.protocol.base.errors import quoted
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.usage_traces import Phases


class _Named(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What all profiles have: a name, and what a job of it returns: 0, or that it failed."""

    name: str
    ret: int = 0


class Delay(_Named, frozen=True, kw_only=True, gc=False):
    """Time passes, whatever the hosts do: `delay` seconds, above 0."""

    delay: float


class ParallelHomogeneous(_Named, frozen=True, kw_only=True, gc=False):
    """A parallel task of equal ranks: `cpu` flops on each host, `com` bytes from each host to each other."""

    cpu: float
    com: float


class ParallelHomogeneousTotal(_Named, frozen=True, kw_only=True, gc=False):
    """A parallel task of equal ranks that share `cpu` flops: on n hosts ``cpu / n`` on each.

    ``com / n`` bytes go from each host to each other, as Batsim 4 has it; so the bytes add up to ``com * (n - 1)``.
    """

    cpu: float
    com: float


class Parallel(_Named, frozen=True, kw_only=True, gc=True):
    """A parallel task: `cpu` holds the flops of each rank, `com` the bytes from rank i to rank j at ``i * ranks + j``.

    `com` is empty when nothing is sent.
    """

    cpu: tuple[float, ...]
    com: tuple[float, ...]


class UsageTrace(_Named, frozen=True, kw_only=True, gc=True):
    """Ranks that compute phase by phase, each at its own pace: ``phases[rank]`` has pairs (share, flops).

    A phase computes the flops on each of ``max(1, round(share * cores))`` cores of the rank's host, as Batsim 4 has
    it: on hosts of one core the share changes nothing.
    """

    phases: tuple[Phases, ...]


class Composed(_Named, frozen=True, kw_only=True, gc=True):
    """The profiles `seq`, in order, `repeat` times; `names` are their names in the workload.

    A part that fails (its `ret` is not 0) ends the whole, which then returns the part's `ret`.
    """

    repeat: int
    seq: "tuple[Profile, ...]"
    names: tuple[str, ...]


#: a profile that is not composed of others
Leaf = Delay | ParallelHomogeneous | ParallelHomogeneousTotal | Parallel | UsageTrace
Profile = Leaf | Composed


def runtime_of(profile: Profile) -> float:
    """Return how long a job of this profile lasts if nothing ends it earlier, s; NaN where that is up to its hosts.

    Delays add up as far as the first part that fails.
    """
    if isinstance(profile, Delay):
        return profile.delay
    return _runtime(profile, {})[0]


def _runtime(profile: Profile, known: dict[int, tuple[float, int]]) -> tuple[float, int]:
    """Return (seconds or NaN, return code); `known` has those of parts by their identity."""
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
    """Return the part of a profile that is carried out and what the job then returns.

    A part that fails ends a composed profile at once, in its first round.
    """
    return _carried_out(profile, {})


def _carried_out(profile: Profile, known: dict[int, tuple[Profile, int]]) -> tuple[Profile, int]:
    """Return the outcome; ``known`` has those of parts by their identity, since profiles may share many of them."""
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
    """Yield the profiles that are not composed of others, in the order of their first use, each once."""
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
    """Tell whether a job of this profile sends anything from one host to another."""
    return any(bool(leaf.com) for leaf in leaves(profile) if not isinstance(leaf, Delay | UsageTrace))


def ranks_of(profile: Profile) -> frozenset[int]:
    """Return for how many hosts the profile is made; empty where it goes with any number."""
    if isinstance(profile, Delay):
        return frozenset()
    return frozenset(
        len(leaf.cpu if isinstance(leaf, Parallel) else leaf.phases)
        for leaf in leaves(profile)
        if isinstance(leaf, Parallel | UsageTrace)
    )


def require_ranks(profile: Profile, size: int, *, job: str, where: str) -> None:
    """Refuse a profile that is made for another number of hosts than the job asks for.

    Raises:
        TraceError: if it is.
    """
    for ranks in sorted(ranks_of(profile) - {size}):
        raise TraceError(
            f"profile {quoted(profile.name)} of job {quoted(job)} is made for another number of resources",
            where=where,
            expected=str(ranks),
            found=str(size),
            hint="Change the job's 'res' or the profile.",
        )


def size_and_depth(profile: Profile, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """Return how many parts are carried out, and how deep composed profiles are in each other."""
    if not isinstance(profile, Composed):
        return 1, 0
    size = depth = 0
    for part in profile.seq:
        if id(part) not in known:
            known[id(part)] = size_and_depth(part, known)
        size += known[id(part)][0]
        depth = max(depth, known[id(part)][1])
    return size * profile.repeat, depth + 1
