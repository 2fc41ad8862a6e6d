"""What jobs take on shared nodes, resolved before the run."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.requests.requests import NodeRequest, RequestBook
from pipistrelle.platforms.resources.shape import Shape
from pipistrelle.platforms.resources.shared_nodes import SharedNodes, shared_nodes_of
from pipistrelle.protocol.base.errors import quoted
from pipistrelle.protocol.resources.amounts import MILLI
from pipistrelle.protocol.resources.request import Request
from pipistrelle.protocol.units.indices import numbers
from pipistrelle.traces.requests import processors_request, with_requests
from pipistrelle.traces.workload import CONSTRAINT, Workload

_MOST_SHOWN: Final = 5
#: (resource, whether a request asks for it); a machine whose nodes have no resources ignores these
_IGNORED: Final[tuple[tuple[str, Callable[[Request], bool]], ...]] = (
    ("memory", lambda one: any((one.memory_per_node, one.memory_per_core, one.memory_per_gpu))),
    ("GPUs", lambda one: any((one.gpus, one.gpus_per_node, one.gpus_per_task))),
    ("licences", lambda one: bool(one.licenses)),
    ("other resources", lambda one: bool(one.others)),
    ("parts of cores", lambda one: bool(one.cores_per_task % MILLI)),
)


def ignored_requests(workload: Workload, platform: Platform) -> list[str]:
    """Return warnings about requests for resources that the machine ignores.

    A machine without resources ignores them.
    """
    if platform.shares_nodes or workload.requests is None:
        return []
    asked = [one for one in workload.requests if one is not None]
    gpus = {pool.unit for pool in platform.pools} == {"gpu"}
    found = []
    for what, asks in _IGNORED:
        count = sum(map(asks, asked))
        if count and not (what == "GPUs" and gpus):
            jobs, verb = f"{count:,} job{'s' if count != 1 else ''}", "is" if what == "memory" else "are"
            found.append(f"{what} of {jobs} {verb} ignored: the nodes of {platform.name} have no resources")
    return found


def said(count: int) -> str:
    """Return the beginning of a sentence about some jobs.

    Examples are ``1 job is`` and ``7 jobs are``.
    """
    return f"{count:,} job{'s are' if count != 1 else ' is'}"


def job_request(workload: Workload, row: int) -> Request:
    """Return a job's request for resources of shared nodes.

    If the job has none, return the result of `processors_request`.
    """
    request = None if workload.requests is None else workload.requests[row]
    return processors_request(workload, row) if request is None else request


def sized_for_nodes(workload: Workload, platform: Platform) -> Workload:
    """Give each job a request, and set its size to the least nodes that it needs."""
    nodes = shared_nodes_of(platform.info)
    if nodes is None:
        return workload
    asked: list[Request | None] = [job_request(workload, row) for row in range(len(workload))]
    known = {request: _least(request, nodes) for request in dict.fromkeys(asked) if request is not None}
    sizes = np.array([known[request] for request in asked if request is not None], dtype=np.int64)
    missing = np.array([one is None for one in workload.requests or [None] * len(workload)], dtype=np.bool_)
    size = np.where(missing & (workload.size <= 0), workload.size, sizes)
    return replace(workload, size=size, requests=asked)


def _least(request: Request, nodes: SharedNodes) -> int:
    """Return the least number of empty nodes on which a request fits.

    If it never fits, return the requested number of nodes.
    """
    try:
        shape = Shape(request, nodes)
    except PlatformError:
        return request.least_nodes
    chosen = None
    if shape.tasks is not None and shape.low < shape.high:
        most = shape.most_tasks(nodes.amounts, nodes.gpus)
        order = np.argsort(-most, kind="stable")
        chosen = shape.choose(order, most, nodes.amounts, nodes.gpus)
    return request.least_nodes if chosen is None else len(chosen)


def settle_shared(workload: Workload, platform: Platform) -> tuple[Workload, int, list[str]]:
    """Return the jobs that fit the machine's nodes, the number dropped, and warnings.

    Slurm's brackets and node counts become plain constraints. A job that fits on no nodes, even if all are empty, is
    dropped, and the warning names the resource that is short.
    """
    nodes = shared_nodes_of(platform.info)
    assert nodes is not None
    book = RequestBook(platform.info.pools, platform.info.groups)
    refused: dict[str, list[str]] = {}
    keep = np.ones(len(workload), dtype=np.bool_)
    named = workload.labels.get(CONSTRAINT)
    constraint = None if named is None else list(named)
    requests = workload.requests or []
    known: dict[tuple[Request, str | None], tuple[str | None, str | None]] = {}
    for row, request in enumerate(requests):
        assert request is not None
        key = (request, None if constraint is None else constraint[row] or None)
        if key not in known:
            known[key] = _fate(request, key[1], book, nodes)
        plain, why = known[key]
        if why is not None:
            refused.setdefault(why, []).append(workload.ids[row])
            keep[row] = False
        elif constraint is not None:
            constraint[row] = plain or ""
    nothing = np.full(len(workload), -1, dtype=np.int64)
    kept = with_requests(workload, constraint=constraint, per_node=nothing, whole=nothing)
    return (kept if keep.all() else kept.select(keep)), int((~keep).sum()), _reasons(refused)


def _fate(
    request: Request, constraint: str | None, book: RequestBook, nodes: SharedNodes
) -> tuple[str | None, str | None]:
    """Return a job's plain constraint, and the reason why it never fits.

    Either may be None.
    """
    try:
        plain = book.plain(NodeRequest(constraint), request.least_nodes)
        if plain.constraint is not None and (why := book.refusal(plain, request.least_nodes)) is not None:
            return None, why
        shape = Shape(request, nodes)
    except PlatformError as error:
        return None, f"{error.what}: {error.found}"
    allowed = np.ones(len(nodes), dtype=np.bool_)
    if plain.constraint is not None:
        allowed[:] = False
        allowed[numbers(book.allowed(plain))] = True
    return plain.constraint, shape.refusal(allowed)


def _reasons(refused: dict[str, list[str]]) -> list[str]:
    texts = []
    for why, jobs in refused.items():
        names = ", ".join(map(quoted, jobs[:_MOST_SHOWN])) + (", ..." if len(jobs) > _MOST_SHOWN else "")
        texts.append(f"{said(len(jobs))} left out, {why}: {names}")
    if len(texts) > _MOST_SHOWN:
        texts[_MOST_SHOWN:] = [f"jobs are left out for {len(texts) - _MOST_SHOWN} further such reasons"]
    return texts
