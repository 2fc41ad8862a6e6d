"""Measure fragmentation.

Fragmentation is the amount of free GPUs that typical requests of a workload cannot use.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.resources.free_resources import FreeResources
from pipistrelle.platforms.resources.node_request import OneNodeRequest
from pipistrelle.platforms.resources.shared_nodes import SharedNodes
from pipistrelle.protocol.resources.amounts import CORES
from pipistrelle.schedulers.sharing.compiled_usable import fast_usable

Ints = NDArray[np.int64]

#: typical requests make up this percentage of a workload's requests
TYPICAL: Final = 95


class _Shape(NamedTuple):
    """What a typical request asks for: cores, share of a GPU, GPUs and GPU models.

    The share is in thousandths. Equally frequent requests are sorted by these values.
    """

    cores: int
    share: int
    gpus: int
    models: tuple[int, ...]


class TypicalRequests:
    """The typical requests of a workload, and the free GPUs that they cannot use.

    The typical requests are the most frequent shapes (cores, GPUs, share, models) that together make up at least 95 %
    of the requests. Shapes that are equally frequent are ordered by cores, share and number of GPUs, the largest first.
    A shape without GPUs can use no GPU capacity. A shape with GPUs can use the GPUs with enough free capacity, if the
    node has enough such GPUs of a model that the shape accepts, and enough free cores. The fragment of a node is the
    free capacity that a typical request cannot use, in thousandths of a GPU, averaged over the typical requests.

    Args:
        nodes: what the nodes have.
        counts: {request: how often it occurs}; not empty.
        usable: the function of `pipistrelle.schedulers.sharing.usable`; None: the fastest.

    Attributes:
        weight: the number of typical requests.
        shapes: the number of their different shapes.

    Source: Q. Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
    Descent", USENIX ATC 2023.
    """

    def __init__(
        self, nodes: SharedNodes, counts: Mapping[OneNodeRequest, int], usable: Callable[..., Any] | None = None
    ) -> None:
        self._column = nodes.column(CORES)
        self._usable = usable or fast_usable()
        typical = self._typical(counts)
        self.shapes = len(typical)
        self.weight = sum(typical.values())
        classes: dict[tuple[int, int, tuple[int, ...]], list[tuple[int, int]]] = {}
        for shape, count in typical.items():
            if shape.gpus:
                classes.setdefault((shape.gpus, shape.share, shape.models), []).append((shape.cores, count))
        steps: list[int] = []
        weights: list[int] = []
        begins = [0]
        for members in classes.values():
            members.sort()
            steps += [cores for cores, _ in members]
            weights += np.cumsum([count for _, count in members]).tolist()
            begins.append(len(steps))
        accepts = np.zeros((len(classes), len(nodes.models) + 1), dtype=np.bool_)
        for row, (_, _, models) in enumerate(classes):
            accepts[row, list(models) if models else slice(None)] = True
        self._tables = (
            accepts,
            *(
                np.array(values, dtype=np.int64)
                for values in ([c[0] for c in classes], [c[1] for c in classes], begins, steps, weights)
            ),
        )

    def usable(self, cores: Ints, gpus: Ints, model_of: Ints) -> Ints:
        """Return the sum, over all typical requests, of the free capacity that each of them can use on each node.

        The unit is 1/1000 GPU. Divided by the attribute `weight`, the sums are means per typical request.
        """
        result: Ints = self._usable(cores, gpus, model_of, *self._tables)
        return result

    def cores(self, free: FreeResources, rows: Ints) -> Ints:
        """Return the free cores of some nodes; 0 if nodes have no cores."""
        if self._column is None:
            return np.zeros(len(rows), dtype=np.int64)
        column: Ints = free.amounts[rows, self._column]
        return column

    def cores_of(self, request: OneNodeRequest) -> int:
        """Return the number of cores that a request needs; 0 if nodes have no cores."""
        return 0 if self._column is None else request.amounts[self._column]

    def of(self, free: FreeResources) -> NDArray[np.float64]:
        """Return how much free GPU capacity of each node a typical request cannot use.

        This is an average over the typical requests, in thousandths of a GPU, shape (nodes,).
        """
        rows = np.arange(len(free.nodes))
        usable = self.usable(self.cores(free, rows), free.gpus, free.nodes.model_of[rows])
        fragments: NDArray[np.float64] = (self.weight * free.gpus.sum(axis=1) - usable) / self.weight
        return fragments

    def _typical(self, counts: Mapping[OneNodeRequest, int]) -> dict[_Shape, int]:
        found: dict[_Shape, int] = {}
        for request, count in counts.items():
            share = request.share if request.gpus else 0
            models = request.models or () if request.gpus else ()
            shape = _Shape(self.cores_of(request), share, request.gpus, models)
            found[shape] = found.get(shape, 0) + count
        total, reached = sum(found.values()), 0
        typical = {}
        for shape, count in sorted(found.items(), key=lambda item: (item[1], item[0]), reverse=True):
            if 100 * reached >= TYPICAL * total:
                break
            typical[shape] = count
            reached += count
        return typical
