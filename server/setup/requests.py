"""Node requests of jobs, resolved before the run."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.requests.requests import ANYTHING, NodeRequest, RequestBook
from pipistrelle.protocol.base.errors import quoted
from pipistrelle.server.setup.shared_requests import said, settle_shared
from pipistrelle.traces.requests import asks, with_requests
from pipistrelle.traces.workload import CONSTRAINT, PER_NODE, WHOLE, Workload, request_of

UNMET: Final = "no nodes are as it asks"
_MOST_SHOWN: Final = 5


def requests_of(workload: Workload) -> list[NodeRequest | None] | None:
    """Return each job's node request (None: any nodes); None if no job has one."""
    if not asks(workload):
        return None
    known: dict[NodeRequest, NodeRequest | None] = {ANYTHING: None}
    asked = (_request(workload, row) for row in range(len(workload)))
    found = [known.setdefault(request, request) for request in asked]
    return None if all(request is None for request in found) else found


def _request(workload: Workload, row: int) -> NodeRequest:
    told = request_of(workload, row)
    return NodeRequest(told.get(CONSTRAINT), told.get(PER_NODE), bool(told.get(WHOLE)))  # type: ignore[arg-type]


def settle_requests(workload: Workload, platform: Platform) -> tuple[Workload, int, list[str]]:
    """Return the jobs that can run on the machine, the number dropped, and warnings.

    Slurm's brackets and node counts become plain constraints. A job with whole nodes gets all units of its nodes. These
    nodes all have the same number of units, chosen so that the job gets the fewest units. If each node has one unit,
    a requested number of units per node is ignored. A job whose log says that it had one node gets
    all its units on one node, if a node has that many.
    """
    if platform.shares_nodes:
        return settle_shared(workload, platform)
    single = _single_nodes(workload, platform)
    if not asks(workload) and not single.any():
        return workload, 0, []
    book = RequestBook(platform.info.pools, platform.info.groups)
    size = workload.size.copy()
    each, whole = (np.full(len(workload), -1, dtype=np.int64) for _ in range(2))
    refused: dict[str, list[str]] = {}
    rounded: list[str] = []
    spanning: list[str] = []
    keep = np.ones(len(workload), dtype=np.bool_)
    named = workload.labels.get(CONSTRAINT)
    constraint = None if named is None else list(named)
    for row in range(len(workload)):
        asked, units = _request(workload, row), int(size[row])
        try:
            asked = book.plain(asked, units)
        except PlatformError as error:
            refused.setdefault(f"{error.what}: {error.found}", []).append(workload.ids[row])
            keep[row] = False
            continue
        if constraint is not None:
            constraint[row] = asked.constraint or ""
        if single[row] and asked.units_per_node is None and not asked.whole_nodes:
            bound = structs.replace(asked, units_per_node=units)
            if book.refusal(bound, units) is None:
                asked = bound
            elif book.refusal(asked, units) is None:
                spanning.append(workload.ids[row])
        request, granted = _whole(book, asked, units) if asked.whole_nodes else (asked, units)
        why = book.refusal(request, granted)
        if why is not None:
            refused.setdefault(why, []).append(workload.ids[row])
            keep[row] = False
            continue
        size[row] = granted
        if granted != units:
            rounded.append(workload.ids[row])
        if request.units_per_node is not None and any(pool.units_per_node > 1 for pool in book.pools(request)):
            each[row] = request.units_per_node
            whole[row] = 1 if request.whole_nodes else -1
    kept = with_requests(workload, constraint=constraint, size=size, per_node=each, whole=whole)
    left_out = [_said(jobs, f"left out, {why}") for why, jobs in refused.items()]
    if len(left_out) > _MOST_SHOWN:
        left_out[_MOST_SHOWN:] = [f"jobs are left out for {len(left_out) - _MOST_SHOWN} further such reasons"]
    if rounded:
        left_out.append(_said(rounded, "given more units than asked for, as nodes are not shared"))
    if spanning:
        left_out.append(_said(spanning, "given several nodes, though the log says one: no node has so many units"))
    return (kept if keep.all() else kept.select(keep)), int((~keep).sum()), left_out


def _single_nodes(workload: Workload, platform: Platform) -> NDArray[np.bool_]:
    """Return which jobs of several units had one node in the log, shape (jobs,).

    If each node has one unit, this is true for no job.
    """
    found: NDArray[np.bool_] = np.zeros(len(workload), dtype=np.bool_)
    if workload.requests is not None and any(pool.units_per_node > 1 for pool in platform.info.pools):
        found[:] = [one is not None and one.nodes == one.most_nodes == 1 for one in workload.requests]
    return found & (workload.size > 1)


def _whole(book: RequestBook, asked: NodeRequest, size: int) -> tuple[NodeRequest, int]:
    """Return a job's request for whole nodes.

    Also return the number of units that the job then has. The machine may still have no nodes for this request.
    """
    shared = structs.replace(asked, whole_nodes=False)
    try:
        pools = book.pools(shared)
    except PlatformError:  # the caller's check reports it
        return shared, size
    choices = []
    for each in sorted({pool.units_per_node for pool in pools}):
        request = NodeRequest(asked.constraint, each, True)
        units = (asked.nodes(size) or -(-size // each)) * each
        choices.append((book.refusal(request, units) is not None, units, request))
    if not choices:
        return shared, size
    _, units, request = min(choices, key=lambda choice: choice[:2])
    return request, units


def _said(jobs: Sequence[str], what: str) -> str:
    names = ", ".join(map(quoted, jobs[:_MOST_SHOWN])) + (", ..." if len(jobs) > _MOST_SHOWN else "")
    return f"{said(len(jobs))} {what}: {names}"
