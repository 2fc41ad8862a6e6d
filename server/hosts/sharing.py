"""Fair shares of hosts: how fast each of several parallel tasks goes when they meet on hosts."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

#: what is left of a host's capacity, or of a task's way to its bound, that counts as nothing: some rounding errors
_NOTHING: Final = 1e-14


class Demand(NamedTuple):
    """What a task's ranks on one host have to do there.

    Parameters
    ----------
    flops
        of all these ranks together, above 0.
    ranks
        how many they are; each is a user of its own where the host is shared out.
    heaviest
        flops of the one that has most to do; a rank goes no faster than one core.
    """

    flops: float
    ranks: int
    heaviest: float


def fair_rates(
    tasks: Sequence[Mapping[int, Demand]], bounds: Sequence[float], capacity: Mapping[int, float]
) -> list[float]:
    """Return how fast each task goes, as the share of its work that is done in a second.

    Round by round each host shares what is left of its capacity equally among the ranks that still want some. A task
    gains what the scarcest of its shares allows, and no more than its bound; what it leaves on its other hosts is there
    for the next round. A task is out of it at its bound, or when one of its hosts has nothing left. That is SimGrid's
    solver "fair bottleneck", which its parallel tasks (``ptask_L07``) have unless told otherwise.

    Each round takes from some host at least the share of one rank, or brings a task to its bound: so the rounds end.

    Parameters
    ----------
    tasks
        for each {host: what it has to do there}; none is empty.
    bounds
        for each the rate that it cannot exceed, per second, above 0; it is met exactly where nothing slows a task down.
    capacity
        {host: flop/s of all its cores}, above 0.
    """
    rates = [0.0] * len(tasks)
    left = dict(capacity)
    users = dict.fromkeys(left, 0)
    for demands in tasks:
        for host, demand in demands.items():
            users[host] += demand.ranks
    active = list(range(len(tasks)))
    while active:
        shares = {host: left[host] / count for host, count in users.items() if count}
        steps = [
            min(bounds[task] - rates[task], *[shares[host] / demand[2] for host, demand in tasks[task].items()])
            for task in active
        ]
        for task, step in zip(active, steps, strict=True):
            rates[task] += step
            for host, demand in tasks[task].items():
                left[host] -= step * demand[0]
        used_up = {host for host in shares if not left[host] > _NOTHING * capacity[host]}
        still = []
        for task in active:
            if bounds[task] - rates[task] <= _NOTHING * bounds[task]:
                rates[task] = bounds[task]
            elif used_up.isdisjoint(tasks[task]):
                still.append(task)
                continue
            for host, demand in tasks[task].items():
                users[host] -= demand.ranks
        active = still
    return rates
