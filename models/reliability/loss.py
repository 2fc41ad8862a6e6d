"""Loss models: how surely a request finds too few free units; the thesis's linear form, and exact ones."""

from collections.abc import Sequence
from math import fsum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipistrelle.models.reliability.jobs import ReliabilityError
from pipistrelle.platforms.errors import check_range

Floats = NDArray[np.float64]


def linear_blocking(capacity: float, load: float) -> float:
    """Return the chance of blocking by Beard's linear form, 1 - C / load (equation 3.1), at least 0.

    It is the limit of Erlang's B for a machine that grows while load and capacity stay at a ratio above 1; at load =
    capacity it says 0, whatever the number of servers.

    Args:
        capacity, load: nodes there are, and nodes asked for (n lambda t), both above 0.
    """
    _check(capacity=capacity, load=load)
    return max(0.0, 1.0 - capacity / load)


def linear_capacity(load: float, blocking: float) -> float:
    """Return the nodes at which the linear form has this chance of blocking: (1 - B) n lambda t (equation 3.11)."""
    check_blocking(blocking)
    _check(load=load)
    return (1.0 - blocking) * load


def erlang_b(servers: int, load: float) -> float:
    """Return the chance that a request is blocked: Poisson arrivals, no queue, each request one server.

    By the recursion B(k) = a B(k - 1) / (k + a B(k - 1)), B(0) = 1: all terms are between 0 and 1.

    Args:
        servers: how many there are; with none all requests are blocked.
        load: a = lambda t, in Erlang, above 0.
    """
    _check(load=load)
    if servers < 0:
        raise ReliabilityError("a number of servers is below zero", found=str(servers))
    blocked = 1.0
    for count in range(1, servers + 1):
        blocked = load * blocked / (count + load * blocked)
    return blocked


def erlang_c(servers: int, load: float) -> float | None:
    """Return the chance that a request has to wait (Poisson arrivals, a queue without end); None if it has no end.

    n B / (n - a (1 - B)) with Erlang's B; where the load is as large as the number of servers the queue grows for ever.
    """
    if load >= servers:
        return None
    blocked = erlang_b(servers, load)
    return servers * blocked / (servers - load * (1.0 - blocked))


class Queueing(NamedTuple):
    """What waiting is like: chance to wait, number in the queue, and mean wait (in the unit of the service time)."""

    chance: float
    length: float
    wait: float


def queueing(servers: int, load: float, service: float) -> Queueing | None:
    """Return Erlang's C, the mean length of the queue a C / (n - a) and the mean wait C t / (n - a); None: unstable."""
    chance = erlang_c(servers, load)
    if chance is None:
        return None
    return Queueing(chance, chance * load / (servers - load), chance * service / (servers - load))


def printed_queueing(capacity: float, load: float, blocking: float, service: float) -> Queueing | None:
    """Return what equations 3.17 to 3.19 say as they are printed; None where they divide by zero, or are negative.

    P = C B / ((C - a) + a B), F = P a / (C - a), W = P t / (C - a). They need a = lambda t, a number of jobs, beside C,
    a number of nodes: with a = n lambda t, which is C at B = 0, they divide by zero. So their waits are seconds, and no
    forecast of anything: they are there for the comparison.
    """
    check_blocking(blocking)
    left = capacity - load
    if left <= 0:
        return None
    chance = capacity * blocking / (left + load * blocking)
    return Queueing(chance, load / left * chance, chance * service / left)


class Shared(NamedTuple):
    """A machine that all classes share: chance of blocking of each, shape (classes,), and the share of units in use."""

    blocking: Floats
    utilisation: float


def kaufman_roberts(units: int, sizes: Sequence[int], loads: Sequence[float]) -> Shared:
    """Return the chances of blocking where all classes share a machine, and who finds too few units is lost.

    Occupancies by the recursion of J. Kaufman (1981) and J. Roberts (1981): j q(j) = sum a_i b_i q(j - b_i), with
    numbers scaled down before they overflow, so that any size of machine will do. Exact for Poisson arrivals and any
    distribution of services.

    Args:
        units: of the machine.
        sizes: b_i: units that a job of each class needs; a class larger than the machine is always blocked.
        loads: a_i = lambda_i t_i of each class, in Erlang.
    """
    if units < 1 or len(sizes) != len(loads) or not sizes:
        raise ReliabilityError(
            "there is no machine, or no class", expected="units, and a size and a load for each class"
        )
    for size, load in zip(sizes, loads, strict=True):
        _check(load=load, size=size)
    chance = np.zeros(units + 1)
    chance[0] = 1.0
    work = [(size, size * load) for size, load in zip(sizes, loads, strict=True)]
    for used in range(1, units + 1):
        chance[used] = fsum(asked * chance[used - size] for size, asked in work if size <= used) / used
        if chance[used] > _LARGE:
            chance[: used + 1] /= chance[used]
    chance /= chance.sum()
    full = np.cumsum(chance[::-1])  # the chance that at most 0, 1, 2, ... units are free
    blocking = np.array([full[min(size - 1, units)] if size <= units else 1.0 for size in sizes])
    return Shared(blocking, float((chance * np.arange(units + 1)).sum()) / units)


_LARGE = 1e250


def check_blocking(blocking: float) -> None:
    """Check that a chance of blocking is one: from 0 to 1; ReliabilityError if not."""
    check_range("a chance of blocking", blocking, 0, 1, ReliabilityError, unit="", where="blocking")


def _check(**numbers: float) -> None:
    for name, number in numbers.items():
        check_range(f"a {name}", number, 0, 1e300, ReliabilityError, above=True, unit="")
