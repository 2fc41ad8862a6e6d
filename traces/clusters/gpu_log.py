"""Base class of readers of GPU clusters' job logs."""

import re
from typing import Any, Final

from pipistrelle.protocol.resources.amounts import MOST
from pipistrelle.protocol.resources.request import Request
from pipistrelle.traces.clusters.csv_rows import Cells
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.logs.job_table import JobLog, LogOptions, Record, Status
from pipistrelle.traces.logs.times import Clock

_WHOLE: Final = re.compile(r"[0-9]{1,19}")
SECONDS: Final = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?")
ENDS: Final = {
    "Succeeded": Status.COMPLETED,
    "Failed": Status.FAILED,
    "COMPLETED": Status.COMPLETED,
    "Pass": Status.COMPLETED,
    "CANCELLED": Status.CANCELLED,
    "Killed": Status.CANCELLED,
}
NO_TIME: Final = frozenset(("", "None", "NaN", "nan"))
NONE: Final = -1.0


def whole_cell(cells: Cells, column: str, *, most: int = MOST) -> int:
    """Parse the whole number in a cell; an empty cell is 0.

    Raises:
        TraceError: the cell is malformed or above ``most``.
    """
    text = cells.get(column, "")
    if not text:
        return 0
    if not _WHOLE.fullmatch(text) or int(text) > most:
        raise cells.fault("a number is malformed or out of range", f"a whole number from 0 to {most:,}", column)
    return int(text)


class GpuLog(JobLog):
    """A log whose jobs request cores, memory and GPUs."""

    lenient = True
    counts_gpus = True

    def __init__(self, options: LogOptions | None = None) -> None:
        super().__init__(options)
        self._records: list[Record] = []
        self._known: dict[Request, Request] = {}
        self._clock = Clock(self.zone)

    def records(self) -> list[Record]:
        """Return the job records."""
        return self._records

    def _size(self, nodes: int, cores: int, gpus: int) -> int:
        """Return a job's size in nodes, processors or GPUs, as the option ``units`` says."""
        return {"nodes": nodes, "processors": max(cores, 1), "gpus": gpus}[self.options.units]

    def _request(self, place: str, **fields: Any) -> Request:
        request = Request(**fields)
        try:
            request.check()
        except Exception as error:
            raise TraceError(str(error), where=place) from None
        return self._known.setdefault(request, request)


def spread(nodes: int, cores: int, gpus: int) -> dict[str, int]:
    """Return the fields of a request for a job's nodes, cores and GPUs.

    Cores and GPUs are given per node if the number of nodes divides them; otherwise they are totals.
    """
    tasks = max(cores, nodes)
    each = {"tasks_per_node": tasks // nodes} if tasks % nodes == 0 else {}
    held = {"gpus": gpus} if gpus % nodes else {"gpus_per_node": gpus // nodes}
    return {"nodes": nodes, "most_nodes": nodes, "tasks": tasks, **each, **held}
