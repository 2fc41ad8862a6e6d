"""The output file with the length of the queue over time."""

from typing import Final

from pipistrelle.protocol.fields import EndReason
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.outputs.csv_file import CsvFile, Written

QUEUE_COLUMNS: Final = "time,waiting_jobs,waiting_units,running_jobs"


class QueueRecorder(Written, Observer):
    """The observer that writes ``queue.csv``.

    The file has a line for each change of the number of waiting or running jobs. A job that the scheduler declares
    running, but on no unit of the machine, counts as waiting until its end.
    """

    _kept = ("_file", "_time", "_waiting", "_units", "_running", "_last")

    def __init__(self, prefix: str) -> None:
        self._file = CsvFile(f"{prefix}queue.csv", QUEUE_COLUMNS)
        #: current simulated time (s), and the counts at that time
        self._time = 0.0
        self._waiting = self._units = self._running = 0
        self._last = (0, 0, 0)

    def begins(self, now: float, units: int) -> None:
        """Open the file and write its header."""
        self.open()

    def submitted(self, now: float, job: Job) -> None:
        """Count a job that joined the queue as waiting."""
        self._change(now, job, 1, 0)

    def started(self, now: float, job: Job) -> None:
        """Count a started job as running."""
        self._change(now, job, -1, 1)

    def ended(self, now: float, job: Job) -> None:
        """Stop counting a job that ended or was rejected."""
        if job.alloc:
            self._change(now, job, 0, -1)
        else:
            self._change(now, job, -1, 0)

    def ends(self, now: float, reason: EndReason, message: str) -> None:
        """Write the line of the last instant and close the file."""
        try:
            self._close_instant()
        finally:
            self.close()

    def _change(self, now: float, job: Job, waiting: int, running: int) -> None:
        if now != self._time:
            self._close_instant()
            self._time = now
        self._waiting += waiting
        self._units += waiting * job.size
        self._running += running

    def _close_instant(self) -> None:
        present = (self._waiting, self._units, self._running)
        if present != self._last:
            self._last = present
            self._file.write(f"{self._time!r},{self._waiting},{self._units},{self._running}\n")
