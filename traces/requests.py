"""Requests of jobs for nodes: constraints, units per node, whole nodes."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pipistrelle.protocol.base.errors import did_you_mean, quoted
from pipistrelle.protocol.resources.request import Request
from pipistrelle.traces.batsim.text import with_members
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.logs.labels import named_column
from pipistrelle.traces.workload import (
    CONSTRAINT,
    PER_NODE,
    REQUEST,
    WHOLE,
    Ints,
    Workload,
    both,
    label_column,
    request_of,
)


def asks(workload: Workload) -> bool:
    """Return whether any job has a constraint, units per node or whole nodes."""
    return CONSTRAINT in workload.labels or not {PER_NODE, WHOLE}.isdisjoint(workload.columns)


def count_requests(workload: Workload) -> dict[str, int]:
    """Return how many jobs request a constraint, units per node, and whole nodes."""
    found = {CONSTRAINT: sum(map(bool, workload.labels.get(CONSTRAINT, ())))}
    for name in (PER_NODE, WHOLE):
        column = workload.columns.get(name)
        found[name] = 0 if column is None else int(np.count_nonzero(column > 0))
    return found


def with_requests(
    workload: Workload,
    *,
    constraint: list[str] | None = None,
    size: Ints | None = None,
    per_node: Ints | None = None,
    whole: Ints | None = None,
) -> Workload:
    """Return the workload with other node requests or sizes; None keeps the old ones.

    Args:
        constraint: the constraint of each job, "" for none.
        size: units of each job, shape (n,).
        per_node: units of each job per node, -1 for any number, shape (n,).
        whole: 1 for each job that shares no node, otherwise 0, shape (n,).
    """
    labels, columns = dict(workload.labels), dict(workload.columns)
    if constraint is not None:
        labels[CONSTRAINT] = constraint
        if not any(constraint):
            del labels[CONSTRAINT]
    for name, numbers in ((PER_NODE, per_node), (WHOLE, whole)):
        if numbers is not None:
            columns[name] = numbers
            if not np.any(numbers > 0):
                del columns[name]
    sizes = workload.size if size is None else size
    result = replace(workload, labels=labels, columns=columns, size=sizes)
    if workload.job_json is None:
        return result
    nothing = dict.fromkeys((CONSTRAINT, PER_NODE, WHOLE, REQUEST), np.inf)
    texts = [
        with_members(raw, **{**nothing, **request_of(result, row), "res": int(sizes[row])})
        for row, raw in enumerate(workload.job_json)
    ]
    return replace(result, job_json=texts)


def processors_request(workload: Workload, row: int) -> Request:
    """Return a request for one core per processor.

    It is for a job that states only its size. The cores may be on any number of nodes. The job's units per node, if
    any, become its tasks per node. A job with whole nodes becomes exclusive.
    """
    each, whole = (workload.columns.get(name) for name in (PER_NODE, WHOLE))
    size = max(int(workload.size[row]), 1)
    per_node = None if each is None or each[row] <= 0 else int(each[row])
    nodes = None if per_node is None else -(-size // per_node)
    return Request(
        nodes=nodes,
        most_nodes=nodes,
        tasks=size,
        tasks_per_node=per_node,
        exclusive=whole is not None and bool(whole[row] > 0),
    )


def without_requests(workload: Workload) -> Workload:
    """Return the workload without any requests for nodes."""
    if not asks(workload):
        return workload
    nothing = np.full(len(workload), -1, dtype=np.int64)
    return with_requests(workload, constraint=[""] * len(workload), per_node=nothing, whole=nothing)


def with_pools(workload: Workload, pools: Mapping[str, tuple[str, ...]]) -> Workload:
    """Restrict jobs to pools by their partition.

    Args:
        pools: {partition: names of the allowed pools}; a partition is its number, as in SWF's field 16, or its name.

    Raises:
        TraceError: no job has a partition, or no job is in one of these partitions.
    """
    names, numbers = named_column(workload, "partition"), label_column(workload, "partition")
    if names is None or numbers is None:
        raise TraceError(
            "no job has a partition", where=workload.source, expected="field 16 (SWF), partition (JSON)", found="none"
        )
    known = {text for text in (*names, *numbers) if text}
    for partition in pools:
        if partition not in known:
            raise TraceError(
                f"no job is in partition {quoted(partition)}",
                where=workload.source,
                hint=did_you_mean(partition, sorted(known)),
            )
    bound = {partition: "|".join(f"pool={pool}" for pool in some) for partition, some in pools.items()}
    olds = workload.labels.get(CONSTRAINT) or [""] * len(workload)
    rows = zip(olds, names, numbers, strict=True)
    return with_requests(
        workload, constraint=[both(old, bound.get(name) or bound.get(number, "")) for old, name, number in rows]
    )
