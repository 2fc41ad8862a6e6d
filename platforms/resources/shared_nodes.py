"""What each shared node has: amounts of resources, and GPUs."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.resources.node_request import OneNodeRequest
from pipistrelle.protocol.base.errors import shown
from pipistrelle.protocol.resources.amounts import MILLI, MOST

Amounts = NDArray[np.int64]
#: index of a model: the node has no GPU, or a GPU without a model
NO_MODEL: Final = -1


class SharedNodes:
    """What nodes have, as arrays that do not change.

    Args:
        resources: names of the resources besides GPUs, such as ``("cores", "memory")``.
        amounts: shape (nodes, resources), in base units.
        gpu_counts: shape (nodes,), the number of GPUs; None: no node has any.
        models: names of the GPU models.
        model_of: shape (nodes,), index into ``models`` or `NO_MODEL`; None: no node has a model.
        names: the nodes' names; empty: they have none.

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
    ) -> None:
        self.resources = resources
        self.amounts = np.array(amounts, dtype=np.int64, order="C", ndmin=2)
        count = len(self.amounts)
        counts = np.zeros(count, np.int64) if gpu_counts is None else np.array(gpu_counts, dtype=np.int64)
        self.models = models
        self.model_of = np.full(count, NO_MODEL) if model_of is None else np.array(model_of, dtype=np.int64)
        self.names = names
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
        for array in (self.amounts, self.gpus, self.model_of):
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
        """Return the same nodes in another order."""
        return SharedNodes(
            self.resources,
            self.amounts[order],
            gpu_counts=(self.gpus[order] > 0).sum(axis=1),
            models=self.models,
            model_of=self.model_of[order],
            names=tuple(self.names[node] for node in order.tolist()) if self.names else (),
        )

    def accepted(self, request: OneNodeRequest) -> NDArray[np.bool_]:
        """Return which nodes have GPUs of a model that the request accepts, shape (nodes,)."""
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
