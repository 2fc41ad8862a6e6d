"""Compute fair shares of hosts for parallel tasks."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

#: shares of a host's capacity or a task's bound below this count as 0 (rounding errors)
_NOTHING: Final = 1e-14


class Demand(NamedTuple):
    """The work of a task's ranks on one host.

    Attributes:
        flops: flops of all these ranks together, above 0.
        ranks: number of ranks; each gets its own share of the host.
        heaviest: flops of the largest rank, which is at most as fast as one core.
    """

    flops: float
    ranks: int
    heaviest: float


def fair_rates(
    tasks: Sequence[Mapping[int, Demand]], bounds: Sequence[float], capacity: Mapping[int, float]
) -> list[float]:
    """Return the rate of each task: the share of its work done per second.

    In each round, every host shares its remaining capacity equally among the active ranks. Each task's rate grows as
    much as its scarcest share allows, up to its bound. Other hosts may then have capacity left; it is shared in the
    next round. A task's rate is final at its bound, or when one of its hosts has no capacity left. This is SimGrid's
    solver "fair bottleneck", the default of its parallel tasks (``ptask_L07``).

    Each round uses up a rank's share on some host or brings a task to its bound, so the rounds end.

    Args:
        tasks: {host: demand} of each task, not empty.
        bounds: largest rate of each task (1/s), above 0. A task that no host slows down gets exactly this rate.
        capacity: {host: flop/s of all its cores}, above 0.
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
