"""Output files of attempts, nodes and outages, for runs in which nodes can fail."""

from math import isnan
from typing import Final

from msgspec.structs import astuple

from pipistrelle.protocol.fields import EndReason
from pipistrelle.server.attempts.attempt import Spending, attempt_of, has_worked, spending_of
from pipistrelle.server.engine.jobs import NEVER_RAN, Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.outputs.csv_file import CsvFile, Written, csv_text
from pipistrelle.server.outputs.node_book import NODE_COLUMNS, OUTAGE_COLUMNS, NodeBook

_KINDS: Final = tuple(Spending.__struct_fields__)
_ZERO: Final = f"{0.0:.6f}"
ATTEMPT_COLUMNS: Final = (
    "job_id,workload_name,first_job_id,attempt,original_submission_time,submission_time,starting_time,begin_time,"
    "finish_time,final_state,cause,retried,nodes_lost,failures_survived,dumps,reads,saved_before,saved,time_dumping,"
    f"time_reading,{','.join(f'unit_seconds_{kind}' for kind in _KINDS)}"
)


class AttemptRecorder(Written, Observer):
    """The observer that writes ``attempts.csv``, ``nodes.csv`` and ``outages.csv``.

    Nodes and outages are written at the end of the run.
    """

    _kept = ("_attempts", "_nodes", "_outages")

    def __init__(self, prefix: str, book: NodeBook) -> None:
        self._book = book
        self._attempts = CsvFile(f"{prefix}attempts.csv", ATTEMPT_COLUMNS)
        self._nodes = CsvFile(f"{prefix}nodes.csv", NODE_COLUMNS)
        self._outages = CsvFile(f"{prefix}outages.csv", OUTAGE_COLUMNS)

    def begins(self, now: float, units: int) -> None:
        """Open the files and write their headers."""
        self.open()

    def ended(self, now: float, job: Job) -> None:
        """Write the line of an attempt that held units."""
        if job.state not in NEVER_RAN and job.alloc:
            self._attempts.write(attempt_line(job))

    def ends(self, now: float, reason: EndReason, message: str) -> None:
        """Write nodes and outages, and close the files.

        `NodeBook.ends` must be called first.
        """
        try:
            for file, lines in ((self._nodes, self._book.lines()), (self._outages, self._book.outage_lines())):
                for line in lines:
                    file.write(f"{line}\n")
        finally:
            self.close()


def attempt_line(job: Job) -> str:
    """Return the CSV line of an attempt that has ended."""
    attempt = attempt_of(job)
    workload, _, name = job.id.partition("!")
    account = attempt.account
    if account is None:
        survived, dumps, reads, dumping, reading = 0, 0, 0, 0.0, 0.0
        saved = job.runtime if has_worked(job, attempt) else attempt.saved
    else:
        survived, dumps, reads = account.survived, account.dumps, account.reads
        dumping, reading, saved = account.dumping, account.reading, account.saved
    # Most values are zero: formatting only the others halves the time.
    unit_seconds = ",".join([f"{value:.6f}" if value else _ZERO for value in astuple(spending_of(job))])
    return (
        f"{csv_text(name)},{csv_text(workload)},{csv_text(attempt.root.partition('!')[2])},{attempt.number},"
        f"{attempt.origin:.6f},{job.submit:.6f},{job.start:.6f},{_known(attempt.began)},{job.end:.6f},{job.state},"
        f"{csv_text(attempt.cause)},{int(attempt.retried)},{len(attempt.lost)},{survived},{dumps},{reads},{attempt.saved:.6f},"
        f"{_known(saved)},{dumping:.6f},{reading:.6f},{unit_seconds}\n"
    )


def _known(value: float) -> str:
    return "" if isnan(value) else f"{value:.6f}"
