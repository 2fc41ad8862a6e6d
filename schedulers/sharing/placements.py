"""Choose the node and the GPUs for a request that needs one shared node."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.resources.free_resources import FreeResources
from pipistrelle.platforms.resources.node_request import OneNodeRequest
from pipistrelle.protocol.base.errors import did_you_mean, shown
from pipistrelle.protocol.resources.amounts import CORES, MILLI
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.sharing.fragmentation import TypicalRequests
from pipistrelle.schedulers.sharing.gpu_choice import Gpus, any_of, emptiest, fullest, lowest

Ints = NDArray[np.int64]

#: how many requests' scores are kept
_MOST_KEPT: Final = 512
#: score of a node that does not fit the request; fitting nodes have scores of at least 0
_UNFIT: Final = -1
#: scores are whole numbers up to this one
_BEST: Final = 100


class SharedPlacement(ABC):
    """Base class of placements that choose among shared nodes by a score.

    They choose the node with the highest score. Of nodes with equal scores the first is chosen. The scores for a
    request are stored. When an equal request arrives, only the nodes that have changed since then get new scores.

    Args:
        free: the free resources; the placement reads them at each choice.
    """

    #: one line for tables and documentation
    purpose: ClassVar[str]

    def __init__(self, free: FreeResources) -> None:
        self._free = free
        nodes = free.nodes
        self._column = nodes.column(CORES)
        self._most_cores = 1 if self._column is None else max(1, int(nodes.amounts[:, self._column].max(initial=0)))
        self._most_gpus = max(1, int(nodes.gpus.sum(axis=1).max(initial=0)))
        #: {request: (scores of the nodes, changes that they include)}, the least recently used first
        self._kept: dict[OneNodeRequest, tuple[Ints, int]] = {}

    def choose(self, request: OneNodeRequest) -> tuple[int, Gpus] | None:
        """Return the node and the numbers of the GPUs for a request; None if no node fits."""
        scores = self._current(request)
        if not len(scores):
            return None
        node = self._pick(scores)
        if scores[node] == _UNFIT:
            return None
        return node, self._gpus(node, request)

    def scores(self, request: OneNodeRequest) -> Ints:
        """Return the score of each node for a request, shape (nodes,).

        The score is -1 where the request does not fit.
        """
        return self._current(request)

    @abstractmethod
    def _score(self, rows: Ints, request: OneNodeRequest) -> Ints:
        """Return the scores of nodes on which the request fits, shape (rows,).

        All scores are at least 0.
        """

    def _pick(self, scores: Ints) -> int:
        return int(scores.argmax())

    def _gpus(self, node: int, request: OneNodeRequest) -> Gpus:
        return fullest(self._free.gpus[node], request)

    def _current(self, request: OneNodeRequest) -> Ints:
        """Return the scores of all nodes for a request, shape (nodes,).

        Stored scores are used again for nodes that have not changed.
        """
        free = self._free
        kept = self._kept.pop(request, None)
        if kept is None:
            if len(self._kept) == _MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            scores = np.full(len(free.nodes), _UNFIT)
            rows = np.arange(len(scores))
        else:
            scores = kept[0]
            rows = np.flatnonzero(free.changed > kept[1])
            scores[rows] = _UNFIT
        rows = rows[free.fits(request, rows)]
        if len(rows):
            scores[rows] = self._score(rows, request)
        self._kept[request] = scores, free.changes
        return scores

    def _cores(self, rows: Ints) -> Ints:
        if self._column is None:
            return np.zeros(len(rows), dtype=np.int64)
        column: Ints = self._free.amounts[rows, self._column]
        return column

    def _cores_of(self, request: OneNodeRequest) -> int:
        return 0 if self._column is None else request.amounts[self._column]


class FirstFitShared(SharedPlacement):
    """The placement ``first-fit``: the first node that fits, by weight and number.

    The request gets the node's GPUs with the lowest numbers.

    Args:
        weights: the nodes' weights, shape (nodes,); the lowest comes first, as in Slurm. None: all are equal.
    """

    purpose = "the first node that fits, by weight and number"

    def __init__(self, free: FreeResources, weights: Ints | None = None) -> None:
        super().__init__(free)
        count = len(free.nodes)
        order = np.arange(count) if weights is None else np.argsort(weights, kind="stable")
        self._rank = np.empty(count, dtype=np.int64)
        self._rank[order] = np.arange(count)[::-1]

    def _score(self, rows: Ints, request: OneNodeRequest) -> Ints:
        ranks: Ints = self._rank[rows]
        return ranks

    def _gpus(self, node: int, request: OneNodeRequest) -> Gpus:
        return lowest(self._free.gpus[node], request)


class BestFitShared(SharedPlacement):
    """The placement ``best-fit``: the node with the least resources left afterwards.

    Cores and GPUs count half each, as fractions of the most on any node. The score is floor(100 (1 - cores left / (2
    most cores) - GPUs left / (2 most GPUs))).
    """

    purpose = "the node with the fewest cores and GPUs left"

    def _score(self, rows: Ints, request: OneNodeRequest) -> Ints:
        cores = (self._cores(rows) - self._cores_of(request)) / self._most_cores
        gpus = (self._free.gpus[rows].sum(axis=1) - request.gpu_amount) / self._most_gpus
        scores: Ints = np.floor(_BEST * (1.0 - (0.5 * cores + 0.5 * gpus))).astype(np.int64)
        return scores


class WorstFit(SharedPlacement):
    """The placement ``worst-fit``: the node with the most resources left afterwards.

    The request gets the node's emptiest GPUs. The score is the milli-cores left plus 100 times the thousandths of GPUs
    left.
    """

    purpose = "the node with the most cores and GPUs left"

    def _score(self, rows: Ints, request: OneNodeRequest) -> Ints:
        left: Ints = self._free.gpus[rows].sum(axis=1) - request.gpu_amount
        return self._cores(rows) - self._cores_of(request) + 100 * left

    def _gpus(self, node: int, request: OneNodeRequest) -> Gpus:
        return emptiest(self._free.gpus[node], request)


class DotProduct(SharedPlacement):
    """The placement ``dot-product``: free resources as unlike the request as possible.

    It chooses the node with the smallest dot product of free and requested resources. Free and requested amounts are
    fractions of the most on any node. The score is floor(100 (1 - (free cores x requested cores + free GPUs x requested
    GPUs) / 2)).
    """

    purpose = "the node whose free resources resemble the request least"

    def _score(self, rows: Ints, request: OneNodeRequest) -> Ints:
        cores = self._cores(rows) / self._most_cores * (self._cores_of(request) / self._most_cores)
        gpus = self._free.gpus[rows].sum(axis=1) / self._most_gpus * (request.gpu_amount / self._most_gpus)
        scores: Ints = np.floor(_BEST * (1.0 - (cores + gpus) / 2)).astype(np.int64)
        return scores


class GpuPacking(SharedPlacement):
    """The placement ``gpu-packing``, which prefers GPUs that are already in use.

    Next come idle GPUs of nodes in use, and last nodes whose GPUs are all idle. If the chosen GPUs of a node are all in
    use, the node scores 100 minus a tenth of the sum of their free percentages, but at least 50. If k of them are idle,
    a node in use scores 50 - k, but at least 33. A node whose n GPUs are all idle scores the larger of 33 - n and n. If
    the request has no GPUs, all nodes score the same.
    """

    purpose = "GPUs in use, then idle GPUs of nodes in use, then idle nodes"

    def _score(self, rows: Ints, request: OneNodeRequest) -> Ints:
        if not request.gpus:
            return np.zeros(len(rows), dtype=np.int64)
        has = self._free.nodes.gpus[rows]
        free = self._free.gpus[rows]
        counts = (has > 0).sum(axis=1)
        idle = (free == has).sum(axis=1) == has.shape[1]
        # too small ones go last; the node fits, so the first ones suffice
        chosen = np.sort(np.where(free >= request.share, free, 2 * MILLI), axis=1)[:, : request.gpus]
        whole = (chosen == MILLI).sum(axis=1)
        in_use = np.maximum(_BEST - (chosen * 100 // MILLI).sum(axis=1) // 10, _BEST // 2)
        mixed = np.maximum(_BEST // 2 - whole, _BEST // 3)
        scores: Ints = np.where(idle, np.maximum(_BEST // 3 - counts, counts), np.where(whole > 0, mixed, in_use))
        return scores


class GpuClustering(SharedPlacement):
    """The placement ``gpu-clustering``: nodes with requests for equally many GPUs.

    A node scores 75 if all its running requests are for the same number of GPUs as the new one, 50 if some are, 25 if
    it is idle, and 0 otherwise. To this is added floor(25 x (GPUs of the largest node - the node's free GPUs) / GPUs of
    the largest node). All requests for a share of a GPU count as requests for the same number, which differs from 1. If
    the request has no GPUs, all nodes score the same.
    """

    purpose = "nodes that hold requests for the same number of GPUs"

    def _score(self, rows: Ints, request: OneNodeRequest) -> Ints:
        if not request.gpus:
            return np.zeros(len(rows), dtype=np.int64)
        kinds = self._free.holders[rows] > 0
        same = kinds[:, 0 if request.is_share else request.gpus]
        number = kinds.sum(axis=1)
        step = np.where(same, np.where(number == 1, 3, 2), np.where(number == 0, 1, 0))
        part: Ints = 25 * (self._most_gpus - self._free.gpus[rows].sum(axis=1)) // self._most_gpus
        return 25 * step + part


class RandomFit(SharedPlacement):
    """The placement ``random``: a random node that fits, and random GPUs of that node.

    Args:
        rng: the generator of the choices.
    """

    purpose = "a random node that fits"

    def __init__(self, free: FreeResources, rng: np.random.Generator) -> None:
        super().__init__(free)
        self._rng = rng

    def _score(self, rows: Ints, request: OneNodeRequest) -> Ints:
        return np.zeros(len(rows), dtype=np.int64)

    def _pick(self, scores: Ints) -> int:
        fitting = np.flatnonzero(scores != _UNFIT)
        return int(fitting[self._rng.integers(len(fitting))]) if len(fitting) else 0

    def _gpus(self, node: int, request: OneNodeRequest) -> Gpus:
        return any_of(self._free.gpus[node], request, self._rng)


class FragmentationGradient(SharedPlacement):
    """The placement ``fgd``: the node whose fragmentation increases least.

    The score is floor(100 / (1 + exp(-d / 1000))), where d is the decrease of the node's fragment (`TypicalRequests`)
    in thousandths of a GPU. For a share of a GPU, the GPU is chosen by the same score. For whole GPUs, the fullest GPUs
    that suffice are chosen.

    Args:
        fragmentation: the typical requests.
    """

    purpose = "the node and GPU where fragmentation grows least"

    def __init__(self, free: FreeResources, fragmentation: TypicalRequests) -> None:
        super().__init__(free)
        self._typical = fragmentation
        per_gpu = MILLI * fragmentation.weight
        #: least decrease, times the weight, for the scores 1 to 99
        self._steps = np.array(
            [math.ceil(per_gpu * math.log(score / (_BEST - score))) for score in range(1, _BEST)], dtype=np.int64
        )

    def _score(self, rows: Ints, request: OneNodeRequest) -> Ints:
        if request.is_share:
            best: Ints = self._by_gpu(rows, request).max(axis=1)
            return best
        before = self._free.gpus[rows]
        after = before.copy()
        if request.gpus:
            order = np.argsort(np.where(before >= request.share, before, 2 * MILLI), axis=1, kind="stable")
            np.put_along_axis(
                after,
                order[:, : request.gpus],
                np.take_along_axis(before, order[:, : request.gpus], axis=1) - request.share,
                axis=1,
            )
        return self._scored(rows, np.arange(len(rows)), after, request)

    def _gpus(self, node: int, request: OneNodeRequest) -> Gpus:
        if request.is_share:
            return (int(self._by_gpu(np.array([node]), request)[0].argmax()),)
        return super()._gpus(node, request)

    def _by_gpu(self, rows: Ints, request: OneNodeRequest) -> Ints:
        """Return the score of each GPU of the nodes ``rows``, shape (rows, GPUs).

        A score is -1 if the GPU has too little free capacity for the request.
        """
        free = self._free.gpus[rows]
        row, gpu = np.nonzero(free >= request.share)
        after = free[row]
        after[np.arange(len(row)), gpu] -= request.share
        scores = np.full(free.shape, _UNFIT)
        scores[row, gpu] = self._scored(rows, row, after, request)
        return scores

    def _scored(self, rows: Ints, row: Ints, after: Ints, request: OneNodeRequest) -> Ints:
        """Return a score for each possible choice of GPUs, shape (choices,).

        Args:
            rows: the nodes.
            row: for each choice, the index of its node in ``rows``.
            after: for each choice, the GPUs of the node that it would leave free.
        """
        typical = self._typical
        cores, models = typical.cores(self._free, rows), self._free.nodes.model_of[rows]
        before = typical.usable(cores, self._free.gpus[rows], models)
        left = typical.usable(cores[row] - typical.cores_of(request), after, models[row])
        decrease = typical.weight * request.gpu_amount - before[row] + left
        return np.searchsorted(self._steps, decrease, side="right").astype(np.int64)


#: {name: class}, in the order of the documentation
SHARED: Final[dict[str, type[SharedPlacement]]] = {
    "first-fit": FirstFitShared,
    "best-fit": BestFitShared,
    "worst-fit": WorstFit,
    "dot-product": DotProduct,
    "gpu-packing": GpuPacking,
    "gpu-clustering": GpuClustering,
    "fgd": FragmentationGradient,
    "random": RandomFit,
}


def check_shared(name: str) -> None:
    """Raise PolicyError if there is no placement of this name."""
    if name not in SHARED:
        raise PolicyError(
            f"there is no placement {shown(name)} for shared nodes", hint=did_you_mean(name, list(SHARED))
        )


def make_shared(
    name: str, free: FreeResources, *, fragmentation: TypicalRequests, rng: np.random.Generator
) -> SharedPlacement:
    """Return the placement of this name.

    Raises:
        PolicyError: no placement has this name.
    """
    check_shared(name)
    makers: dict[str, Callable[[], SharedPlacement]] = {
        "fgd": lambda: FragmentationGradient(free, fragmentation),
        "random": lambda: RandomFit(free, rng),
    }
    return makers[name]() if name in makers else SHARED[name](free)
