"""Read lists of pods in the columns of Alibaba's cluster-trace-gpu-v2023 (openb)."""

import io
from typing import Final

from pipistrelle.protocol.resources.amounts import MILLI
from pipistrelle.protocol.resources.request import Request
from pipistrelle.traces.clusters.csv_rows import Cells, CsvLines
from pipistrelle.traces.clusters.gpu_log import ENDS, NO_TIME, NONE, SECONDS, GpuLog, whole_cell
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.logs.job_table import Record, Status

#: columns of a list of pods that say what a pod takes
POD_COLUMNS: Final = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")


class PodLog(GpuLog):
    """The pods of a list in the format openb.

    It has the columns of Alibaba's cluster-trace-gpu-v2023. A pod is a job on one node. ``cpu_milli``, ``memory_mib``,
    ``num_gpu`` and ``gpu_milli`` (thousandths of each GPU; empty: whole GPUs) say what the pod takes. ``gpu_spec``
    names the accepted models, separated by bars. The submit time is ``creation_time``, the run time is from
    ``scheduled_time`` to ``deletion_time``, all in seconds. The column ``qos`` is the job's QOS. A pod has no time
    limit.
    """

    format = "list of pods"
    absolute = False

    def read(self, stream: io.BufferedReader, where: str) -> None:
        """Read the rows of a file; TraceError if a column is missing."""
        for cells in CsvLines(stream, where, POD_COLUMNS, ",".join(POD_COLUMNS)):
            try:
                self._records.append(self._pod(cells, f"{where}, line {cells.line}"))
            except TraceError as fault:
                self.leave_out(fault)

    def _pod(self, cells: Cells, place: str) -> Record:
        created, scheduled, deleted = (
            self._seconds(cells, column) for column in ("creation_time", "scheduled_time", "deletion_time")
        )
        cores = whole_cell(cells, "cpu_milli")
        gpus = whole_cell(cells, "num_gpu", most=MILLI)
        return Record(
            place=place,
            id=cells["name"],
            submit=max(created, 0.0),
            size=self._size(1, -(-cores // MILLI), gpus),
            walltime=float("inf"),
            runtime=deleted - scheduled if deleted >= scheduled >= 0 else NONE,
            wait=scheduled - created if scheduled >= created >= 0 else NONE,
            status=ENDS.get(cells.get("pod_phase", ""), Status.UNKNOWN),
            labels={"qos": self.names(cells["qos"])} if cells.get("qos") else {},
            request=self._asked(cells, cores, gpus, place),
        )

    def _asked(self, cells: Cells, cores: int, gpus: int, place: str) -> Request:
        share = MILLI if gpus and not cells["gpu_milli"] else whole_cell(cells, "gpu_milli", most=MILLI)
        if gpus and not share:
            raise cells.fault("a pod with GPUs takes nothing of them", f"gpu_milli from 1 to {MILLI}", "gpu_milli")
        models = tuple(sorted({name.strip() for name in cells.get("gpu_spec", "").split("|")} - {""}))
        return self._request(
            place,
            nodes=1,
            most_nodes=1,
            tasks=1,
            cores_per_task=cores,
            memory_per_node=whole_cell(cells, "memory_mib"),
            **({"gpus_per_node": gpus, "gpu_share": share, "gpu_models": models} if gpus else {}),
        )

    @staticmethod
    def _seconds(cells: Cells, column: str) -> float:
        text = cells.get(column, "")
        if text in NO_TIME:
            return NONE
        if not SECONDS.fullmatch(text):
            raise cells.fault("a time cannot be read", "seconds of at least 0", column)
        return float(text)
