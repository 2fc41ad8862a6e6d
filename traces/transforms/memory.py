"""Make requests from the memory per processor in a log.

Requested memory can also be scaled.
"""

from dataclasses import replace
from typing import Final

import msgspec
import numpy as np

from pipistrelle.protocol.resources.amounts import MOST
from pipistrelle.protocol.resources.request import Request
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.requests import processors_request, with_requests
from pipistrelle.traces.workload import Workload

_KIB_PER_MIB: Final = 1024
_MEMORY: Final = ("memory_per_node", "memory_per_core", "memory_per_gpu")


def scale_memory(workload: Workload, factor: float) -> tuple[Workload, int]:
    """Return the workload with a memory request for each job, scaled by `factor`.

    If a job has a request, the memory in it is multiplied by `factor`. If not, the job gets a request for its
    processors and for memory per processor. This is the log's requested memory (SWF's field 10), or else the used
    memory (field 7), times `factor`. Results are rounded up to MiB.

    Returns:
        The workload, and the number of jobs without known memory.

    Raises:
        TraceError: no memory is known of any job, or an amount is too large.
    """
    nothing = np.full(len(workload), -1.0)
    asked, used = (workload.measures.get(name, nothing) for name in ("requested_memory", "memory"))
    each = np.where(asked > 0, asked, used)
    requests: list[Request | None] = []
    unknown = 0
    for row, request in enumerate(workload.requests or [None] * len(workload)):
        found = request
        if request is not None:
            amounts = {name: amount for name in _MEMORY if (amount := getattr(request, name)) is not None}
            found = msgspec.structs.replace(
                request, **{name: _amount(workload, row, amount * factor) for name, amount in amounts.items()}
            )
            unknown += not amounts
        elif each[row] > 0 and workload.size[row] > 0:
            amount = _amount(workload, row, float(each[row]) * factor / _KIB_PER_MIB)
            found = msgspec.structs.replace(processors_request(workload, row), memory_per_core=amount)
        else:
            unknown += 1
        requests.append(found)
    if unknown == len(workload):
        raise TraceError(
            "no job says how much memory it needs",
            where=workload.name,
            expected="memory per processor (SWF's fields 10 and 7), or requests with memory",
        )
    return with_requests(replace(workload, requests=requests)), unknown


def _amount(workload: Workload, row: int, mib: float) -> int:
    if not mib <= MOST:
        raise TraceError(
            f"the memory of job {workload.ids[row]} is too large",
            where=workload.name,
            expected=f"at most {MOST:,} MiB",
            found=f"{mib:,.6g} MiB",
        )
    return int(np.ceil(mib))
