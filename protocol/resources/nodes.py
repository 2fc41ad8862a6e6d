"""The resources of a node, and the part of them that a job takes."""

from typing import Annotated

from msgspec import Meta, Struct, field

from pipistrelle.protocol.fields import NodeNumbers
from pipistrelle.protocol.resources.amounts import MILLI
from pipistrelle.protocol.resources.request import Amount, Count, Name


class NodeResources(Struct, frozen=True, omit_defaults=True):
    """The resources of each node of a pool, which jobs share.

    Args:
        amounts: {resource: amount in its base unit}: ``cores`` in milli-cores, ``memory`` in MiB, all others as counts.
        gpus: the number of GPUs, numbered from 0 on each node.
        gpu_model: the model of the GPUs; empty: not known.
        gpu_parts: the number of equal parts into which jobs can divide a GPU; 1: jobs take whole GPUs.
    """

    amounts: Annotated[dict[Name, Amount], Meta(description="{resource: amount on each node, in its base unit}")] = (
        field(default_factory=dict)
    )
    gpus: Annotated[int, Meta(ge=0, le=MILLI, description="number of GPUs of each node")] = 0
    gpu_model: Annotated[str, Meta(max_length=64, description="model of the GPUs; empty: not known")] = ""
    gpu_parts: Annotated[int, Meta(ge=1, le=MILLI, description="parts into which jobs can divide one GPU")] = MILLI


class NodeTake(Struct, frozen=True, omit_defaults=True):
    """The resources that a job takes on some of its nodes: the same on each of them.

    Args:
        nodes: the nodes; each node of the allocation is in exactly one NodeTake.
        tasks: the number of the job's tasks on each of these nodes.
        gpus: the numbers of the GPUs that the job takes on each of these nodes, as ``0-1 3``; empty: none.
    """

    nodes: NodeNumbers
    tasks: Count = 1
    gpus: Annotated[str, Meta(description="numbers of the node's GPUs as intervals: '0-1'; empty: none")] = ""
