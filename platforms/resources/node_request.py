"""The part of a request that concerns one shared node."""

from typing import NamedTuple

from pipistrelle.protocol.resources.amounts import MILLI


class OneNodeRequest(NamedTuple):
    """The resources that a request takes on one node, in base units.

    Attributes:
        amounts: one amount for each of the nodes' resources, in their order.
        gpus: the number of different GPUs of which the request takes a part or all.
        share: thousandths of each of these GPUs that the request takes.
        models: indices of the GPU models that the request accepts, ascending; None: any model.
    """

    amounts: tuple[int, ...]
    gpus: int = 0
    share: int = MILLI
    models: tuple[int, ...] | None = None

    @property
    def gpu_amount(self) -> int:
        """How much of all GPUs together the request takes, in thousandths of a GPU."""
        return self.gpus * self.share

    @property
    def is_share(self) -> bool:
        """Whether the request takes only a fraction of one GPU."""
        return self.gpus == 1 and self.share < MILLI
