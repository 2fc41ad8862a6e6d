"""Fill a cluster of shared GPU nodes with pods.

The pods arrive one by one and never end. Each pod is placed, or dropped if it does not fit.
"""

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from pipistrelle.platforms.resources.free_resources import FreeResources
from pipistrelle.platforms.resources.shared_nodes import SharedNodes
from pipistrelle.runs.filling.openb import PodList
from pipistrelle.schedulers.sharing.fragmentation import TypicalRequests
from pipistrelle.schedulers.sharing.placements import make_shared

#: percentages of the cluster's GPUs requested at which a fill is measured
POINTS: Final = (50, 80, 100, 110, 120, 130)
#: the end of a fill if none is given, as text
UNTIL: Final = "130%"
#: the most that pods may request, in times the cluster's GPUs
_MOST: Final = 10.0


#: the results that are measured at each percentage in `POINTS`
FIGURES: Final = ("allocated", "fragmented")


class Filled(NamedTuple):
    """The results of filling a cluster once.

    Attributes:
        allocated: pairs [requested GPUs, allocated GPUs], both in % of the cluster's GPUs. There is a pair for each
            percentage in `POINTS` that the requests reached.
        fragmented: pairs [requested GPUs, free GPUs that the typical pods cannot use], likewise.
        placed, dropped: numbers of pods.
    """

    allocated: list[list[float]]
    fragmented: list[list[float]]
    placed: int
    dropped: int

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics of the fill, {metric: value}.

        ``allocated_80`` is the percentage of the GPUs that are allocated when pods have requested 80 %.
        """
        found = {f"{name}_{point}": value for name in FIGURES for point, value in getattr(self, name)}
        return {**found, "placed": self.placed, "dropped": self.dropped}


def parse_until(text: str) -> float:
    """Return the share of the GPUs at which a fill ends.

    It is 1.3 for ``130%`` or ``1.3``. Raise ValueError for an invalid text.
    """
    number = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    if not (math.isfinite(number) and 0 < number <= _MOST):
        raise ValueError(f"'{text}' is not a percentage above 0% and up to {100 * _MOST:g}%, such as 130%.")
    return number


def metric_names(until: float) -> set[str]:
    """Return the names of a fill's metrics; see `Filled.metrics`."""
    points = [point for point in POINTS if point <= 100 * until + 1e-9]
    return {"placed", "dropped", *(f"{name}_{point}" for name in FIGURES for point in points)}


def fill(nodes: SharedNodes, pods: PodList, placement: str, *, until: float, seed: int) -> Filled:
    """Fill the nodes with pods.

    This ends when the pods have requested the share ``until`` of the cluster's GPUs. Pods arrive in random order. When
    the list is used up, further pods are drawn from it at random. Among nodes of equal score, a pod gets the first in a
    random order of the nodes, as in the published experiment.

    Args:
        placement: name of the rule that chooses a pod's node.
        until: the share of the GPUs at which to stop; 1.3 means 130 %.
        seed: seed of the random orders.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    nodes = nodes.ordered(rng.permutation(len(nodes)))
    free = FreeResources(nodes)
    typical = TypicalRequests(nodes, pods.counts())
    places = make_shared(placement, free, fragmentation=typical, rng=rng)
    total = int(nodes.gpus.sum())
    points = [point for point in POINTS if point <= 100 * until + 1e-9]
    allocated: list[list[float]] = []
    fragmented: list[list[float]] = []
    asked = placed = dropped = 0
    for number in _arrivals(pods, rng):
        request = pods.requests[number]
        asked += request.gpu_amount
        chosen = places.choose(request)
        if chosen is None:
            dropped += 1
        else:
            free.take(chosen[0], request, chosen[1])
            placed += 1
        while points and 100 * asked >= points[0] * total:
            point = points.pop(0)
            allocated.append([point, 100 * (total - int(free.gpus.sum())) / total])
            fragmented.append([point, 100 * float(typical.of(free).sum()) / total])
        if asked >= until * total:
            break
    free.check()
    return Filled(allocated, fragmented, placed, dropped)


def _arrivals(pods: PodList, rng: np.random.Generator) -> Iterator[int]:
    """Yield the pods in random order, then draw from them forever."""
    count = len(pods.pods)
    for pod in rng.permutation(count).tolist():
        yield pods.pods[pod]
    while True:
        for pod in rng.integers(count, size=1024).tolist():
            yield pods.pods[pod]
