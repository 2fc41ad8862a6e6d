"""The resources of each shared node.

They are amounts of cores, memory and others, and GPUs.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.naming.node_names import NodeNames
from pipistrelle.platforms.resources.node_request import OneNodeRequest
from pipistrelle.protocol.base.errors import shown
from pipistrelle.protocol.events import PlatformInfo
from pipistrelle.protocol.resources.amounts import MILLI, MOST
from pipistrelle.protocol.units.nodesets import NodeSet

Amounts = NDArray[np.int64]
#: index of a model: the node has no GPU, or a GPU without a model
NO_MODEL: Final = -1


def shared_nodes_of(info: PlatformInfo | None) -> "SharedNodes | None":
    """Return the resources of a machine's nodes; None if its nodes have none."""
    told = [] if info is None else [pool.resources for pool in info.pools if pool.resources is not None]
    if info is None or not told:
        return None
    sizes = [len(NodeSet.parse(pool.nodes)) for pool in info.pools]
    resources = tuple(dict.fromkeys(name for has in told for name in has.amounts))
    models = tuple(dict.fromkeys(has.gpu_model for has in told if has.gpu_model))

    def each(values: list[int]) -> Amounts:
        return np.repeat(np.array(values, dtype=np.int64), sizes)

    patterns = [NodeNames.read(pool.names) if pool.names else None for pool in info.pools]
    return SharedNodes(
        resources,
        np.stack([each([has.amounts.get(name, 0) for has in told]) for name in resources], axis=1),
        gpu_counts=each([has.gpus for has in told]),
        models=models,
        model_of=each([models.index(has.gpu_model) if has.gpu_model else NO_MODEL for has in told]),
        names=tuple(name for pattern in patterns if pattern is not None for name in pattern) if all(patterns) else (),
        weights=each([pool.weight for pool in info.pools]),
        licenses=info.licenses,
    )


class SharedNodes:
    """The resources of all nodes, as arrays that do not change.

    Args:
        resources: names of the resources besides GPUs, such as ``("cores", "memory")``.
        amounts: shape (nodes, resources), in base units.
        gpu_counts: shape (nodes,), the number of GPUs; None: no node has any.
        models: names of the GPU models.
        model_of: shape (nodes,), index into ``models`` or `NO_MODEL`; None: no node has a model.
        names: the nodes' names; empty: they have none.
        weights: shape (nodes,), placements that use weights prefer nodes with a lower weight; None: all are equal.
        licenses: {licence: number that all running jobs may hold}.

    Attributes:
        gpus: shape (nodes, most GPUs of a node), in thousandths: 1000 for a GPU, 0 if the node has fewer.

    Raises:
        PlatformError: if shapes differ, an amount is negative or too large, or a name occurs twice.
    """

    def __init__(
        self,
        resources: tuple[str, ...],
        amounts: Amounts,
        *,
        gpu_counts: Amounts | None = None,
        models: tuple[str, ...] = (),
        model_of: Amounts | None = None,
        names: tuple[str, ...] = (),
        weights: Amounts | None = None,
        licenses: Mapping[str, int] | None = None,
    ) -> None:
        self.resources = resources
        self.amounts = np.array(amounts, dtype=np.int64, order="C", ndmin=2)
        count = len(self.amounts)
        counts = np.zeros(count, np.int64) if gpu_counts is None else np.array(gpu_counts, dtype=np.int64)
        self.models = models
        self.model_of = np.full(count, NO_MODEL) if model_of is None else np.array(model_of, dtype=np.int64)
        self.names = names
        self.weights = np.ones(count, np.int64) if weights is None else np.array(weights, dtype=np.int64)
        self.licenses = dict(licenses or {})
        if self.amounts.shape != (count, len(resources)) or counts.shape != (count,):
            raise PlatformError("the arrays of the nodes have different lengths", expected=f"{count} nodes")
        if self.model_of.shape != (count,) or (names and len(names) != count):
            raise PlatformError("the arrays of the nodes have different lengths", expected=f"{count} nodes")
        for what, of in (("resource", resources), ("GPU model", models), ("node", names)):
            if len(set(of)) < len(of):
                twice = next(name for place, name in enumerate(of) if name in of[:place])
                raise PlatformError(f"two {what}s have the same name", found=shown(twice))
        for column, resource in enumerate(resources):
            self._check_range(self.amounts[:, column], resource, MOST)
        self._check_range(counts, "GPUs", MILLI)
        most = int(counts.max(initial=0))
        self.gpus = np.where(np.arange(most) < counts[:, None], MILLI, 0).astype(np.int64)
        for array in (self.amounts, self.gpus, self.model_of, self.weights):
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.amounts)

    def name(self, node: int) -> str:
        """Return a node's name, or its number if nodes have no names."""
        return self.names[node] if self.names else str(node)

    def column(self, resource: str) -> int | None:
        """Return the column of a resource in `amounts`; None if the nodes do not have it."""
        return self.resources.index(resource) if resource in self.resources else None

    def ordered(self, order: Amounts) -> "SharedNodes":
        """Return the same nodes, numbered in another order."""
        return SharedNodes(
            self.resources,
            self.amounts[order],
            gpu_counts=(self.gpus[order] > 0).sum(axis=1),
            models=self.models,
            model_of=self.model_of[order],
            names=tuple(self.names[node] for node in order.tolist()) if self.names else (),
            weights=self.weights[order],
            licenses=self.licenses,
        )

    def accepted(self, request: OneNodeRequest) -> NDArray[np.bool_]:
        """Return which nodes have GPUs that the request accepts, shape (nodes,).

        The request accepts certain models of GPUs.
        """
        if request.models is None or not request.gpus:
            return np.ones(len(self), dtype=np.bool_)
        return np.isin(self.model_of, request.models)

    def ever_fits(self, request: OneNodeRequest) -> NDArray[np.bool_]:
        """Return which nodes fit the request when they are empty, shape (nodes,)."""
        fits = self.accepted(request) & (self.amounts >= request.amounts).all(axis=1)
        if request.gpus:
            fits &= (self.gpus >= request.share).sum(axis=1) >= request.gpus
        return fits

    def _check_range(self, values: Amounts, what: str, most: int) -> None:
        wrong = np.flatnonzero((values < 0) | (values > most))
        if len(wrong):
            node = int(wrong[0])
            raise PlatformError(
                f"node {shown(self.name(node))} has an impossible number of {what}",
                expected=f"0 to {most:,}",
                found=str(int(values[node])),
            )
