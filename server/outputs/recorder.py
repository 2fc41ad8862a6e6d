"""A run's output files in Batsim's formats; see docs/reference/outputs.md."""

from collections.abc import Mapping
from functools import lru_cache
from itertools import chain
from math import inf, isnan
from typing import ClassVar, Final

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.naming.hostlists import compressed
from pipistrelle.platforms.naming.numbering import NodeUnits
from pipistrelle.platforms.resources.takes import takes_text
from pipistrelle.platforms.topology.nodes import numbers_by_name
from pipistrelle.protocol.decisions import CallMeLater, CancelCall, Decision, ExecuteJob, KillJob, Malformed
from pipistrelle.protocol.events import DecisionRejectedData
from pipistrelle.protocol.fields import EndReason
from pipistrelle.protocol.resources.amounts import CORES, GPU, amount_text
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.jobs import NEVER_RAN, Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.outputs.csv_file import MANY_LINES, CsvFile, Written, csv_text, special
from pipistrelle.traces.workload import Workload

JOBS_COLUMNS: Final = (
    "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,"
    "starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources,consumed_energy,"
    "metadata"
)
#: further columns of ``jobs.csv`` on nodes with resources
RESOURCE_COLUMNS: Final = (
    "requested_cores,requested_memory,requested_gpus,allocated_cores,allocated_memory,allocated_gpus,takes"
)
#: further columns of ``jobs.csv`` with names of jobs and nodes
NAME_COLUMNS: Final = "job_name,allocated_nodes"
#: number of node lists whose texts are cached
_KEPT: Final = 10_000
MACHINE_COLUMNS: Final = "time,nb_sleeping,nb_switching_on,nb_switching_off,nb_idle,nb_computing"
DOWN_COLUMN: Final = "nb_down"
DECISION_COLUMNS: Final = "time,decision,job_id,alloc,verdict,why,message"
#: format of a line of ``jobs.csv``, and its variant for times in whole seconds
_LINE: Final = '%s,%s,%s,%.6f,%d,%.6f,%d,%s,%.6f,%.6f,%.6f,%.6f,%.6f,%.6f,%s,%s,"%s"\n'
_WHOLE_LINE: Final = _LINE.replace("%.6f", "%d.000000", 7)
#: format of a line of ``machine_states.csv``, and its variant for whole seconds
_STATE: Final = "%.6f,0,0,0,%d,%d%s\n"
_WHOLE_STATE: Final = _STATE.replace("%.6f", "%d.000000")


class JobNames:
    """The names of jobs, and of their nodes in Slurm's form, such as ``n[01-02,05]``."""

    def __init__(self, platform: Platform, workloads: Mapping[str, Workload]) -> None:
        self._units = NodeUnits.told(platform.info.pools)
        self._nodes = {number: name for name, number in numbers_by_name(platform).items()}
        self._names = {
            f"{prefix}!{job}": name
            for prefix, workload in workloads.items()
            for job, name in zip(workload.ids, workload.labels.get("name") or (), strict=False)
            if name
        }
        self._text = lru_cache(_KEPT)(self._list_of)

    def columns(self, job: Job) -> str:
        """Return the values of `NAME_COLUMNS` for a job; no nodes if the job never ran."""
        root = job.id if job.attempt is None else job.attempt.root
        nodes = "" if job.state in NEVER_RAN else self._text(str(job.alloc))
        return f"{csv_text(self._names.get(root, ''))},{csv_text(nodes)}"

    def _list_of(self, units: str) -> str:
        nodes = self._units.nodes_of(NodeSet.parse(units))
        return compressed(
            self._nodes.get(node, str(node)) for low, high in nodes.intervals for node in range(low, high + 1)
        )


class Recorder(Written, Observer):
    """The observer that writes the tables of jobs, machine states and decisions.

    The files are ``jobs.csv``, ``machine_states.csv`` and ``decisions.csv``. Files are opened when the run begins, so
    that a run that never begins keeps older outputs. They are complete up to the last event, however the run ends. With
    ``fails``, machine states include the number of down units. With ``names``, ``jobs.csv`` also has the columns
    `NAME_COLUMNS`. With ``shares`` it also has `RESOURCE_COLUMNS`.
    """

    #: the files are saved first: writing their rows sets ``_last``
    _kept: ClassVar[tuple[str, ...]] = ("_jobs", "_machine", "_decisions", "_units", "_last")

    def __init__(
        self, prefix: str, *, fails: bool = False, names: JobNames | None = None, shares: bool = False
    ) -> None:
        self._fails = fails
        self._names = names
        self._shares = shares
        more = [*([] if names is None else [NAME_COLUMNS]), *([RESOURCE_COLUMNS] if shares else [])]
        columns = ",".join([JOBS_COLUMNS, *more])
        self._jobs = CsvFile(f"{prefix}jobs.csv", columns, lines_of=self._longer_lines if more else job_lines)
        columns = f"{MACHINE_COLUMNS},{DOWN_COLUMN}" if fails else MACHINE_COLUMNS
        self._machine = CsvFile(f"{prefix}machine_states.csv", columns, lines_of=self._state_lines)
        self._decisions = CsvFile(f"{prefix}decisions.csv", DECISION_COLUMNS, lines_of=_decision_lines)
        self._units = 0
        #: idle and down units of the last line written
        self._last = (-1, 0)

    def begins(self, now: float, units: int) -> None:
        """Open the files and write their headers."""
        self._units = units
        self.open()

    def ended(self, now: float, job: Job) -> None:
        """Write the line of a job that has ended."""
        rows = self._jobs.rows
        rows.append(job)
        if len(rows) >= MANY_LINES:
            self._jobs.hand_over()

    def decided(self, now: float, decision: Decision, rejected: DecisionRejectedData | None) -> None:
        """Write the line of a decision."""
        rows = self._decisions.rows
        rows.append((now, decision, rejected))
        if len(rows) >= MANY_LINES:
            self._decisions.hand_over()

    def settled(self, now: float, idle: int, down: int) -> None:
        """Write the machine's state at the end of an instant, if it has changed."""
        rows = self._machine.rows
        rows.append((now, idle, down))
        if len(rows) >= MANY_LINES:
            self._machine.hand_over()

    def _longer_lines(self, jobs: list[Job]) -> list[str]:
        """Return lines of ``jobs.csv`` with the columns that only some runs have."""
        lines = job_lines(jobs)
        if self._names is not None:
            columns = map(self._names.columns, jobs)
            lines = [f"{line[:-1]},{names}\n" for line, names in zip(lines, columns, strict=True)]
        if self._shares:
            lines = [f"{line[:-1]},{_resources(job)}\n" for line, job in zip(lines, jobs, strict=True)]
        return lines

    def _state_lines(self, rows: list[tuple[float, int, int]]) -> list[str]:
        lines = []
        last, units = self._last, self._units
        for now, idle, down in rows:
            if (idle, down) != last:
                last = (idle, down)
                line = _WHOLE_STATE if now.is_integer() else _STATE
                lines.append(line % (now, idle, units - idle - down, f",{down}" if self._fails else ""))
        self._last = last
        return lines

    def ends(self, now: float, reason: EndReason, message: str) -> None:
        """Write all remaining rows and close the files."""
        self.close()


def job_lines(jobs: list[Job], shortest: float = 0.0) -> list[str]:
    """Return lines of ``jobs.csv``; ``shortest`` (s) replaces execution times of 0."""
    lines = []
    odd = special("".join([job.id + job.profile for job in jobs])) is not None
    for job in jobs:
        workload, _, name = job.id.partition("!")
        profile, state, metadata, submit = job.profile, job.state, job.metadata, job.submit
        walltime = -1.0 if job.walltime == inf else job.walltime
        if odd:
            name, workload, profile = csv_text(name), csv_text(workload), csv_text(profile)
        if metadata:
            metadata = metadata.replace('"', '""')
        if state in NEVER_RAN:
            begin = f"{name},{workload},{profile},{submit:.6f},{job.size},{walltime:.6f}"
            times = f",,{job.end:.6f},{job.end - submit:.6f},,," if state == "CANCELLED" else ",,,,,,"
            lines.append(f'{begin},0,{state},{times},,"{metadata}"\n')
            continue
        start, end = job.start, job.end
        execution, turnaround = end - start, end - submit
        if not execution and shortest:
            execution, turnaround, end = shortest, turnaround + shortest, end + shortest
        whole = submit.is_integer() and walltime.is_integer() and start.is_integer() and end.is_integer()
        # For many numbers, `%` takes half the time of an f-string. Whole seconds, as in most logs, take a quarter.
        lines.append(
            (_WHOLE_LINE if whole else _LINE)
            % (
                name,
                workload,
                profile,
                submit,
                job.size,
                walltime,
                state == "COMPLETED_SUCCESSFULLY",
                state,
                start,
                execution,
                end,
                start - submit,
                turnaround,
                turnaround / execution if execution > 0 else 1.0,
                job.alloc.written or job.alloc,
                "-1.000000" if isnan(job.energy) else f"{job.energy:.6f}",
                metadata,
            )
        )
    return lines


def _resources(job: Job) -> str:
    """Return the values of `RESOURCE_COLUMNS`: cores and GPUs, memory in MiB."""
    asked, taken = job.resources, job.taken
    requested = ",," if asked is None else _amounts(asked.all_cores, asked.all_memory, asked.all_gpus)
    allocated = ",," if taken is None else _amounts(*taken[:3])
    return f"{requested},{allocated},{'' if taken is None else csv_text(takes_text(taken.takes))}"


def _amounts(cores: int, memory: int, gpus: int) -> str:
    return f"{amount_text(CORES, cores)},{memory},{amount_text(GPU, gpus)}"


def _decision_lines(rows: list[tuple[float, Decision, DecisionRejectedData | None]]) -> list[str]:
    lines = []
    texts = [(row[1].data.job_id, row[1].data.why or "") for row in rows if type(row[1]) is ExecuteJob]
    odd = special("".join(chain.from_iterable(texts))) is not None
    for now, decision, rejected in rows:
        if type(decision) is ExecuteJob and rejected is None:
            job_id, why = decision.data.job_id, decision.data.why or ""
            if odd:
                job_id, why = csv_text(job_id), csv_text(why)
            lines.append(f"{now!r},EXECUTE_JOB,{job_id},{decision.data.alloc},carried_out,{why},\n")
        else:
            lines.append(_decision_line(now, decision, rejected))
    return lines


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
