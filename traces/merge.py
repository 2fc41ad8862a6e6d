"""Several workloads as one: the order in which their jobs are submitted."""

from collections.abc import Iterator, Mapping
from heapq import merge

from pipistrelle.traces.workload import Workload

#: rows that are turned from arrays into numbers at a time
_BLOCK = 4096


def submissions(workloads: Mapping[str, Workload]) -> Iterator[tuple[str, int]]:
    """Yield (prefix, row) of every job by submit time; at one time in the order of `workloads`, then by row.

    The jobs of each workload must be sorted by submit time, as all readers and `clean` leave them.
    """
    if len(workloads) == 1:
        for prefix, workload in workloads.items():
            yield from ((prefix, row) for row in range(len(workload)))
        return
    streams = (_rows(workload, place, prefix) for place, (prefix, workload) in enumerate(workloads.items()))
    for _time, _place, row, prefix in merge(*streams):
        yield prefix, row


def _rows(workload: Workload, place: int, prefix: str) -> Iterator[tuple[float, int, int, str]]:
    for begin in range(0, len(workload), _BLOCK):
        times = workload.submit[begin : begin + _BLOCK].tolist()
        for row, time in enumerate(times, start=begin):
            yield time, place, row, prefix
