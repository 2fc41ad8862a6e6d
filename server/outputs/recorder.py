"""A run's output files, in the formats that Batsim's tools read; docs/outputs.md describes every column."""

import re
from math import inf, isnan
from pathlib import Path
from typing import Any, Final, TextIO

from pipistrelle.protocol.decisions import CallMeLater, CancelCall, Decision, ExecuteJob, KillJob, Malformed
from pipistrelle.protocol.events import DecisionRejectedData
from pipistrelle.protocol.fields import EndReason
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.errors import OutputFailed

JOBS_COLUMNS: Final = (
    "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,"
    "starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources,consumed_energy,"
    "metadata"
)
MACHINE_COLUMNS: Final = "time,nb_sleeping,nb_switching_on,nb_switching_off,nb_idle,nb_computing"
DOWN_COLUMN: Final = "nb_down"
DECISION_COLUMNS: Final = "time,decision,job_id,alloc,verdict,why,message"
_BUFFER_BYTES: Final = 1 << 16
#: counts a place in a file from its end
_FROM_END: Final = 2
_special: Final = re.compile(r'[,"\r\n]').search
#: a line of the jobs file, and one whose times are whole seconds
_LINE: Final = '%s,%s,%s,%.6f,%d,%.6f,%d,%s,%.6f,%.6f,%.6f,%.6f,%.6f,%.6f,%s,%.6f,"%s"\n'
_WHOLE_LINE: Final = _LINE.replace("%.6f", "%d.000000", 7)


class Recorder(Observer):
    """Writes ``jobs.csv``, ``machine_states.csv`` and ``decisions.csv``, each behind a prefix such as ``DIR/out_``.

    Files are opened when the run begins, so that a run that never begins leaves older outputs alone, and are complete
    up to the last event however the run ends. Where nodes can fail (``fails``), the machine's states have one more
    column, for units that are down.

    Raises
    ------
    OutputFailed
        from any hook, when a file cannot be written; what was written before stays.
    """

    def __init__(self, prefix: str, *, fails: bool = False) -> None:
        self._prefix = prefix
        self._fails = fails
        self._files = CsvFiles()
        self._units = 0
        #: (idle, down) units as last written
        self._last = (-1, 0)

    def begins(self, now: float, units: int) -> None:
        """Open the files and write their headers."""
        self._units = units
        self._jobs = self._files.open(f"{self._prefix}jobs.csv", JOBS_COLUMNS)
        columns = f"{MACHINE_COLUMNS},{DOWN_COLUMN}" if self._fails else MACHINE_COLUMNS
        self._machine = self._files.open(f"{self._prefix}machine_states.csv", columns)
        self._decisions = self._files.open(f"{self._prefix}decisions.csv", DECISION_COLUMNS)

    def state(self) -> dict[str, Any]:
        """Return how long each file is, in bytes, and what was written last."""
        return {"files": self._files.state(), "units": self._units, "last": list(self._last)}

    def restore(self, state: dict[str, Any]) -> None:
        """Write on to the files that there are, in place of `begins`; what came after the state is cut off."""
        names = ("jobs", "machine_states", "decisions")
        files = [
            self._files.reopen(f"{self._prefix}{name}.csv", size)
            for name, size in zip(names, state["files"], strict=True)
        ]
        self._jobs, self._machine, self._decisions = files
        self._units = state["units"]
        idle, down = state["last"]
        self._last = (idle, down)

    def ended(self, now: float, job: Job) -> None:
        """Write the job's line."""
        self._files.write(self._jobs, job_line(job))

    def decided(self, now: float, decision: Decision, rejected: DecisionRejectedData | None) -> None:
        """Write the decision's line."""
        if type(decision) is ExecuteJob and rejected is None:
            job_id, why = decision.data.job_id, decision.data.why or ""
            if _special(job_id) is not None or _special(why) is not None:
                job_id, why = csv_text(job_id), csv_text(why)
            line = f"{now!r},EXECUTE_JOB,{job_id},{decision.data.alloc},carried_out,{why},\n"
        else:
            line = _decision_line(now, decision, rejected)
        self._files.write(self._decisions, line)

    def settled(self, now: float, idle: int, down: int) -> None:
        """Write the instant's final state if it is a new one."""
        if (idle, down) != self._last:
            self._last = (idle, down)
            more = f",{down}" if self._fails else ""
            self._files.write(self._machine, "%.6f,0,0,0,%d,%d%s\n" % (now, idle, self._units - idle - down, more))  # noqa: UP031

    def ends(self, now: float, reason: EndReason, message: str) -> None:
        """Write what is left and close the files."""
        self._files.close()


class CsvFiles:
    """Files that are written line by line, and closed together.

    Parameters
    ----------
    option
        the command line's option that chooses where they are, for the error's text.
    """

    def __init__(self, option: str = "--out") -> None:
        self._option = option
        self._files: list[TextIO] = []

    def open(self, path: str, columns: str) -> TextIO:
        """Open a file and write its header; OutputFailed if that cannot be."""
        try:
            # newline="" keeps the bytes the same on every system
            file = open(path, "w", encoding="utf-8", newline="", buffering=_BUFFER_BYTES)  # noqa: SIM115 - see `close`
        except OSError as error:
            raise unwritable(path, error, self._option) from None
        self._files.append(file)
        self.write(file, f"{columns}\n")
        return file

    def state(self) -> list[int]:
        """Write what is left and return the files' sizes in bytes; OutputFailed if that cannot be done."""
        sizes = []
        for file in self._files:
            try:
                sizes.append(file.tell())
            except OSError as error:
                raise unwritable(file.name, error, self._option) from None
        return sizes

    def reopen(self, path: str, size: int) -> TextIO:
        """Open a file that has lines already, and cut it off after ``size`` bytes; OutputFailed if that cannot be."""
        try:
            file = open(path, "r+", encoding="utf-8", newline="", buffering=_BUFFER_BYTES)  # noqa: SIM115 - see `close`
            self._files.append(file)
            if (found := file.seek(0, _FROM_END)) < size:
                self.close()
                raise OutputFailed(
                    "the output so far is not whole", where=path, expected=f"{size} bytes or more", found=str(found)
                )
            file.seek(size)
            file.truncate()
        except OSError as error:
            self.close()
            raise unwritable(path, error, self._option) from None
        return file

    def write(self, file: TextIO, line: str) -> None:
        """Write a line, which ends with a newline; OutputFailed if that cannot be done."""
        try:
            file.write(line)
        except OSError as error:
            raise unwritable(file.name, error, self._option) from None

    def close(self) -> None:
        """Write what is left and close the files that are open; OutputFailed if that cannot be done for one."""
        files, self._files = self._files, []
        failed: OutputFailed | None = None
        for file in files:  # one full disk must not keep the other files from being closed
            try:
                file.close()
            except OSError as error:
                failed = failed or unwritable(file.name, error, self._option)
        if failed is not None:
            raise failed


def job_line(job: Job, shortest: float = 0.0) -> str:
    """Return a job's line of the jobs file.

    ``shortest`` is the execution time in seconds that a job of none is said to have had.
    """
    workload, _, name = job.id.partition("!")
    profile, metadata = job.profile, job.metadata
    if _special(job.id) is not None or _special(profile) is not None:
        name, workload, profile = csv_text(name), csv_text(workload), csv_text(profile)
    if metadata:
        metadata = metadata.replace('"', '""')
    submit, walltime = job.submit, -1.0 if job.walltime == inf else job.walltime
    if job.state == "REJECTED":
        return f'{name},{workload},{profile},{submit:.6f},{job.size},{walltime:.6f},0,REJECTED,,,,,,,,,"{metadata}"\n'
    start, end = job.start, job.end
    execution, turnaround = end - start, end - submit
    if not execution and shortest:
        execution, turnaround, end = shortest, turnaround + shortest, end + shortest
    whole = submit.is_integer() and walltime.is_integer() and start.is_integer() and end.is_integer()
    # `%` takes half the time of an f-string with as many numbers, and whole seconds, as in most logs, half of that.
    return (_WHOLE_LINE if whole else _LINE) % (
        name,
        workload,
        profile,
        submit,
        job.size,
        walltime,
        job.state == "COMPLETED_SUCCESSFULLY",
        job.state,
        start,
        execution,
        end,
        start - submit,
        turnaround,
        turnaround / execution if execution > 0 else 1.0,
        job.alloc,
        -1.0 if isnan(job.energy) else job.energy,
        metadata,
    )


def unwritable(path: str | Path, error: OSError, option: str = "--out") -> OutputFailed:
    """Return the error for an output that cannot be written; ``option`` chooses where it is."""
    return OutputFailed(
        f"cannot write the output ({error.strerror or error})",
        where=str(path),
        hint=f"Make room, or choose another folder with {option}; what was written before is kept.",
    )


def _decision_line(now: float, decision: Decision, rejected: DecisionRejectedData | None) -> str:
    data = getattr(decision, "data", None)
    if isinstance(decision, KillJob):
        subject = " ".join(decision.data.job_ids)
    elif isinstance(decision, CallMeLater | CancelCall):
        subject = decision.data.id
    else:
        subject = getattr(data, "job_id", "")
    name = decision.decision if isinstance(decision, Malformed) else str(decision.__struct_config__.tag)
    alloc = getattr(data, "alloc", "")
    why = getattr(data, "why", None) or ""
    verdict, message = ("carried_out", "") if rejected is None else (rejected.code, rejected.message)
    texts = ",".join(map(csv_text, (alloc, verdict, why, message)))
    return f"{now!r},{csv_text(name)},{csv_text(subject)},{texts}\n"


def csv_text(text: str) -> str:
    """Return a text as a CSV field (RFC 4180)."""
    if _special(text) is None:
        return text
    return '"' + text.replace('"', '""') + '"'
