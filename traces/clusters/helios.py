"""Read job logs of GPU clusters in the columns of SenseTime's Helios traces."""

import io
from typing import Final

from pipistrelle.traces.clusters.csv_rows import Cells, CsvLines
from pipistrelle.traces.clusters.gpu_log import ENDS, NO_TIME, NONE, SECONDS, GpuLog, spread, whole_cell
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.logs.job_table import GOING_ON, Record, Status

HELIOS_COLUMNS: Final = ("job_id", "gpu_num", "submit_time")


class HeliosLog(GpuLog):
    """The jobs of a CSV file as published for SenseTime's Helios clusters.

    Columns: ``job_id``, ``user``, ``vc`` (queue), ``gpu_num``, ``cpu_num``, ``node_num``, ``state``, ``submit_time``,
    ``start_time``, ``end_time``, ``duration``. Dates have the form ``2020-04-01 00:00:04``, or are Unix times. The
    GPUs and cores are those of the whole job; a job without ``node_num`` has one node. Jobs have no time limit.
    """

    format = "Helios CSV"

    def read(self, stream: io.BufferedReader, where: str) -> None:
        """Read the rows of a file; TraceError if a column is missing."""
        for cells in CsvLines(stream, where, HELIOS_COLUMNS, ",".join(HELIOS_COLUMNS)):
            try:
                self._records.append(self._job(cells, f"{where}, line {cells.line}"))
            except TraceError as fault:
                self.leave_out(fault)

    def _job(self, cells: Cells, place: str) -> Record:
        submit, start = self._time(cells, "submit_time"), self._time(cells, "start_time")
        end = self._time(cells, "end_time")
        if submit is None:
            raise cells.fault("the submit time is missing", "a date, such as 2020-04-01 00:00:04", "submit_time")
        gpus, cores = whole_cell(cells, "gpu_num"), whole_cell(cells, "cpu_num")
        nodes = max(whole_cell(cells, "node_num"), 1)
        state = cells.get("state", "")
        duration = cells.get("duration", "")
        runtime = float(duration) if SECONDS.fullmatch(duration) else NONE
        if start is not None and end is not None and end >= start:
            runtime = end - start
        labels = {"user": cells.get("user", ""), "queue": cells.get("vc", ""), "state": state}
        return Record(
            place=place,
            id=cells["job_id"],
            submit=submit,
            size=self._size(nodes, cores, gpus),
            walltime=float("inf"),
            runtime=NONE if state in GOING_ON else runtime,
            wait=start - submit if start is not None and start >= submit else NONE,
            status=ENDS.get(state, Status.FAILED if state else Status.UNKNOWN),
            labels={name: self.names(text) for name, text in labels.items() if text},
            request=self._request(place, **spread(nodes, cores, gpus)),
        )

    def _time(self, cells: Cells, column: str) -> float | None:
        text = cells.get(column, "")
        if text in NO_TIME:
            return None
        time = self._clock.iso(text)
        if time is None:
            raise cells.fault("a time cannot be read", "a date, such as 2020-04-01 00:00:04", column)
        return time
