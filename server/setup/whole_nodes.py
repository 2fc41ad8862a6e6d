"""Decide whether any job of a run shares its nodes.

If none does, the run is simpler.
"""

import dataclasses
from collections.abc import Mapping
from typing import Final

import numpy as np
from msgspec import UNSET
from msgspec.structs import replace

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.resources.shape import Shape
from pipistrelle.platforms.resources.shared_nodes import SharedNodes, shared_nodes_of
from pipistrelle.protocol.base.errors import quoted
from pipistrelle.protocol.fields import Feature
from pipistrelle.protocol.resources.amounts import CORES, MILLI
from pipistrelle.protocol.resources.request import Request
from pipistrelle.server.setup.shared_requests import job_request
from pipistrelle.traces.workload import Workload

_RESOURCES: Final[Feature] = "resources"


def needed_features(platform: Platform, workloads: Mapping[str, Workload]) -> dict[Feature, str]:
    """Return {feature: why it is needed} of the features that these jobs need.

    On nodes with resources, a scheduler without the feature ``resources`` knows only a job's number of nodes. It can
    run only jobs that do not share their nodes; see `takes_whole_nodes`.
    """
    nodes = shared_nodes_of(platform.info)
    if nodes is None:
        return {}
    known: dict[Request, bool] = {}
    shared, first = 0, ""
    for prefix, workload in workloads.items():
        for row in range(len(workload)):
            request = job_request(workload, row)
            if request not in known:
                known[request] = takes_whole_nodes(request, nodes)
            if not known[request]:
                shared += 1
                first = first or f"{quoted(f'{prefix}!{workload.ids[row]}')} asks for {request}"
    if not shared:
        return {}
    total = sum(map(len, workloads.values()))
    return {_RESOURCES: f"{shared:,} of {total:,} jobs take parts of nodes, or suit only some of them ({first})"}


def as_units(platform: Platform, workloads: Mapping[str, Workload]) -> tuple[Platform, dict[str, Workload]] | None:
    """Return a machine whose nodes are units, and its jobs, in place of a machine with resources.

    This is possible if each node has one core, and no job takes a part of a core; otherwise return None. On such a
    machine, a number of cores is a number of units, and scheduling rules for units are many times faster.
    """
    nodes = shared_nodes_of(platform.info)
    if nodes is None or nodes.resources != (CORES,) or nodes.gpus.any() or np.ptp(nodes.weights):
        return None
    if (nodes.amounts != MILLI).any():
        return None
    requests = {request for one in workloads.values() for request in one.requests or ()}
    if not all(request is not None and _takes_one_each(request, Shape(request, nodes)) for request in requests):
        return None
    pools = tuple(replace(pool, resources=UNSET, weight=UNSET) for pool in platform.pools)
    plain = {prefix: dataclasses.replace(workload, requests=None) for prefix, workload in workloads.items()}
    return replace(platform, pools=pools, licenses=UNSET), plain


def _takes_one_each(request: Request, shape: Shape) -> bool:
    """Return whether a request takes a fixed number of whole nodes.

    The nodes have one core each.
    """
    if request.licenses or not (request.exclusive or request.cores_per_task == MILLI):
        return False
    return shape.low == shape.high or (shape.tasks is not None and not request.exclusive)


def takes_whole_nodes(request: Request, nodes: SharedNodes) -> bool:
    """Return whether a job can run on any idle nodes, and never shares one of them.

    This is true for an exclusive job, and for a job that takes all cores of each of its nodes. The job must also fit on
    any nodes of the machine and hold no licences.
    """
    shape = Shape(request, nodes)
    if request.licenses:
        return False
    each, rest = (shape.exact, 0) if shape.tasks is None else divmod(shape.tasks, shape.low)
    if not request.exclusive:  # before the search on all nodes, because most jobs share nodes
        column = nodes.column(CORES)
        if rest or shape.low != shape.high or column is None or request.gpus % shape.low:
            return False
        if (nodes.amounts[:, column] != each * request.cores_per_task).any():
            return False
    most = np.sort(shape.most_tasks(nodes.amounts, nodes.gpus))
    if len(most) < shape.low or not most[0]:
        return False
    if request.exclusive:
        return shape.tasks is None or int(most[: shape.low].sum()) >= shape.tasks
    return int(most[0]) >= each
