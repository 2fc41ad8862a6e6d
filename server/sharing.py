"""Fair shares of hosts: how fast each of several parallel tasks goes when they meet on hosts."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

#: capacity, as a share of a host's, below which the host counts as used up
_NOTHING: Final = 1e-12
#: rounds after which what is left is not worth another: each takes at least a fair share of what the last one left
_MOST_ROUNDS: Final = 1000


class Demand(Struct, eq=False, gc=False):
    """What a parallel task asks of its hosts.

    Parameters
    ----------
    flops
        {host: flops of all ranks there}, all above 0; hosts without work are left out.
    widest
        {host: flops of the rank there that has most}.
    ranks
        {host: number of ranks that work there}, of hosts with more than one.
    """

    flops: dict[int, float]
    widest: dict[int, float]
    ranks: dict[int, int]


def fair_rates(demands: Sequence[Demand], bounds: Sequence[float], capacity: Mapping[int, float]) -> list[float]:
    """Return how fast each task goes: shares of its work per second.

    Each host shares its capacity among the ranks that work there, all alike; a task goes as fast as the scarcest of
    its shares and its own bound let it. What it leaves elsewhere is shared anew among the others, until no task can go
    faster: each is at its bound then, or on a host without anything left. On a single host these are max-min fair
    shares. It is the way of SimGrid's parallel tasks (model ``ptask_L07``, solver ``fairbottleneck``).

    Parameters
    ----------
    demands
        what each task asks for.
    bounds
        the rate that each task cannot exceed, per second; finite.
    capacity
        {host: flop/s of all its cores}.
    """
    rates = [0.0] * len(demands)
    left = dict(capacity)
    active = [task for task, bound in enumerate(bounds) if bound > 0]
    for _ in range(_MOST_ROUNDS):
        if not active:
            break
        users: dict[int, int] = {}
        for task in active:
            ranks = demands[task].ranks
            for host in demands[task].flops:
                users[host] = users.get(host, 0) + ranks.get(host, 1)
        share = {host: left[host] / number for host, number in users.items()}
        steps = [
            min(
                bounds[task] - rates[task],
                min((share[host] / flops for host, flops in demands[task].widest.items()), default=bounds[task]),
            )
            for task in active
        ]
        for task, step in zip(active, steps, strict=True):
            rates[task] += step
            for host, flops in demands[task].flops.items():
                left[host] -= step * flops
        full = {host for host in users if left[host] <= _NOTHING * capacity[host]}
        active = [
            task
            for task in active
            if bounds[task] - rates[task] > _NOTHING * bounds[task] and full.isdisjoint(demands[task].flops)
        ]
    return rates
