"""Loss models: the probability that a request finds too few free units."""

from collections.abc import Sequence
from math import fsum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipistrelle.models.reliability.jobs import ReliabilityError
from pipistrelle.platforms.errors import check_range

Floats = NDArray[np.float64]


def linear_blocking(capacity: float, load: float) -> float:
    """Return Beard's linear blocking probability, max(0, 1 - capacity / load).

    It is equation 3.1 of Umamaheshwaran's thesis: the limit of Erlang's B for growing machines at a fixed ratio load /
    capacity above 1. With the load equal to the capacity, it is 0 for any capacity.

    Args:
        capacity, load: available and requested nodes (n lambda t), both above 0.
    """
    _check(capacity=capacity, load=load)
    return max(0.0, 1.0 - capacity / load)


def erlang_b(servers: int, load: float) -> float:
    """Return Erlang's B, the blocking probability with Poisson arrivals and no queue.

    It is computed as B(k) = a B(k - 1) / (k + a B(k - 1)), B(0) = 1, which keeps all terms between 0 and 1.

    Args:
        servers: may be 0: all requests are blocked.
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
    """Return Erlang's C, the probability that a job waits; None if unstable.

    For n servers, load a and Erlang's B it is n B / (n - a (1 - B)). If a is at least n, the queue grows forever.
    """
    if load >= servers:
        return None
    blocked = erlang_b(servers, load)
    return servers * blocked / (servers - load * (1.0 - blocked))


class Queueing(NamedTuple):
    """Waiting probability, mean queue length and mean wait of a queue.

    The wait is in the unit of the service time.
    """

    chance: float
    length: float
    wait: float


def queueing(servers: int, load: float, service: float) -> Queueing | None:
    """Return waiting probability, queue length and wait by Erlang's C.

    Return None if the queue is unstable.
    """
    chance = erlang_c(servers, load)
    if chance is None:
        return None
    return Queueing(chance, chance * load / (servers - load), chance * service / (servers - load))


def printed_queueing(capacity: float, load: float, blocking: float, service: float) -> Queueing | None:
    """Return waiting probability, queue length and wait by printed equations.

    The equations are Umamaheshwaran's. Equations 3.17 to 3.19 of the thesis are P = C B / ((C - a) + a B), F = P a / (C
    - a) and W = P t / (C - a), for capacity C, load a, blocking probability B and service time t. Return None if C <=
    a.

    These equations subtract jobs (a = lambda t) from nodes (C). With a = n lambda t, which is C at B = 0, they divide
    by zero. Use them for comparison, not for forecasts.
    """
    check_blocking(blocking)
    left = capacity - load
    if left <= 0:
        return None
    chance = capacity * blocking / (left + load * blocking)
    return Queueing(chance, load / left * chance, chance * service / left)


class Shared(NamedTuple):
    """Blocking and utilisation of a machine that several classes share.

    ``blocking`` has the blocking probability of each class, shape (classes,).
    """

    blocking: Floats
    utilisation: float


def kaufman_roberts(units: int, sizes: Sequence[int], loads: Sequence[float]) -> Shared:
    """Return the blocking of classes that share a machine without a queue.

    Occupancies follow the recursion of J. Kaufman (1981) and J. Roberts (1981), j q(j) = sum a_i b_i q(j - b_i),
    rescaled against overflow, so that any machine size works. It is exact for Poisson arrivals and any distribution of
    service times.

    Args:
        sizes: units per job of each class, b_i; a class larger than the machine is always blocked.
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
    full = np.cumsum(chance[::-1])  # probability that at most 0, 1, 2, ... units are free
    blocking = np.array([full[min(size - 1, units)] if size <= units else 1.0 for size in sizes])
    return Shared(blocking, float((chance * np.arange(units + 1)).sum()) / units)


_LARGE = 1e250


def check_blocking(blocking: float) -> None:
    """Raise ReliabilityError unless a blocking probability is from 0 to 1."""
    check_range("a chance of blocking", blocking, 0, 1, ReliabilityError, unit="", where="blocking")


def _check(**numbers: float) -> None:
    for name, number in numbers.items():
        check_range(f"a {name}", number, 0, 1e300, ReliabilityError, above=True, unit="")
