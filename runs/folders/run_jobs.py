"""Read the jobs of a finished run as columns; the times of a job's attempts are added up."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.base.errors import PipistrelleError, printable
from pipistrelle.runs.folders.files import output_json, read_config
from pipistrelle.runs.folders.tables import OutputTables, numbers
from pipistrelle.server.engine.jobs import LABEL_NAMES
from pipistrelle.server.outputs.folder import SUMMARY_FILE
from pipistrelle.server.outputs.metrics import TAU

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_COLUMNS: Final = (
    *("job_id", "workload_name", "submission_time", "requested_number_of_resources", "final_state", "starting_time"),
    *("finish_time", "allocated_resources"),
)
#: separates a job's name from its attempt number
AGAIN: Final = "#"


class ReportError(PipistrelleError):
    """A run cannot be reported, or several runs cannot be reported together."""


@dataclass(frozen=True, eq=False)
class RunJobs:
    """The ended jobs of a run, without rejected jobs; times in simulated seconds.

    A job with several attempts is one job, as in the summary. Its wait and execution time are sums over the attempts.
    Its state, end and units are those of the last attempt.

    Attributes:
        folder: the folder of the outputs.
        config, summary: configuration and metrics of the run; ``summary`` is None if the run did not finish.
        ids: ``PREFIX!NAME``, in order of submission, then as in the file.
        size: units, shape (jobs,).
        submit, start, end: submit and start time of the first attempt, and end time of the last, shape (jobs,).
        wait, execution: total wait and execution time, shape (jobs,).
        state, alloc: final state and allocated units of the last attempt.
        labels: {``user``, ``queue``, ...: a name per job, "" if unknown}; labels that no job has are left out.
        rejected: ids of the rejected jobs.
    """

    folder: Path
    config: Mapping[str, Any]
    summary: Mapping[str, Any] | None
    ids: list[str]
    size: Ints
    submit: Floats
    start: Floats
    end: Floats
    wait: Floats
    execution: Floats
    state: list[str]
    alloc: list[str]
    labels: Mapping[str, list[str]]
    rejected: frozenset[str]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def scheduler(self) -> str:
        """Return the name that the scheduler gave when it connected."""
        return printable(str(self.config["scheduler"].get("name", "")))

    @property
    def turnaround(self) -> Floats:
        """Return wait plus execution time (s) of each job."""
        return self.wait + self.execution

    @property
    def bounded_slowdown(self) -> Floats:
        """Return max(1, turnaround / max(execution time, 10 s)) of each job."""
        found: Floats = np.maximum(1.0, self.turnaround / np.maximum(self.execution, TAU))
        return found

    @cached_property
    def places(self) -> dict[str, int]:
        """Return {job id: index of the job in all columns}."""
        return {name: place for place, name in enumerate(self.ids)}

    @property
    def workloads(self) -> list[tuple[str, str]]:
        """Return the prefix and digest of each workload."""
        return [(prefix, str(one.get("sha256"))) for prefix, one in self.config["workloads"].items()]


def read_run_jobs(folder: Path, tables: OutputTables | None = None) -> RunJobs:
    """Read the jobs of a run from its output folder.

    Args:
        tables: the folder's tables, if already read.

    Raises:
        PipistrelleError: the outputs are missing, damaged, or mixed from several runs.
    """
    config = read_config(folder)
    summary = output_json(folder / SUMMARY_FILE)
    tables = tables or OutputTables(folder)
    table = tables.columns("jobs", *_COLUMNS)
    attempts: dict[str, list[tuple[float, float, float, int, str, str]]] = {}
    rejected = set()
    times = (numbers(table[column]).tolist() for column in ("submission_time", "starting_time", "finish_time"))
    sizes = numbers(table["requested_number_of_resources"]).astype(np.int64).tolist()
    texts = (table[column] for column in ("final_state", "allocated_resources"))
    ids_of = (table[column] for column in ("workload_name", "job_id", "starting_time"))
    for prefix, job, started, *line in zip(*ids_of, *times, sizes, *texts, strict=True):
        name = f"{prefix}!{job.partition(AGAIN)[0]}"
        if started:
            attempts.setdefault(name, []).append(tuple(line))
        else:
            rejected.add(name)
    ids = sorted(attempts, key=lambda name: attempts[name][0][0])  # stable: equal times keep the file's order
    lines = [attempts[name] for name in ids]
    count = len(ids)
    return RunJobs(
        folder=folder,
        config=config,
        summary=summary,
        ids=ids,
        size=np.array([some[0][3] for some in lines], dtype=np.int64),
        submit=np.array([some[0][0] for some in lines]).reshape(count),
        start=np.array([some[0][1] for some in lines]).reshape(count),
        end=np.array([some[-1][2] for some in lines]).reshape(count),
        wait=np.array([sum(one[1] - one[0] for one in some) for some in lines]).reshape(count),
        execution=np.array([sum(one[2] - one[1] for one in some) for some in lines]).reshape(count),
        state=[some[-1][4] for some in lines],
        alloc=[some[-1][5] for some in lines],
        labels=_labels(tables, ids),
        rejected=frozenset(rejected),
    )


def _labels(tables: OutputTables, ids: list[str]) -> dict[str, list[str]]:
    table = tables.perhaps("labels", "job_id", "workload_name", *LABEL_NAMES)
    if not table:  # outputs of an older version
        return {}
    names = (f"{prefix}!{job}" for prefix, job in zip(table["workload_name"], table["job_id"], strict=True))
    line_of = {name: line for line, name in enumerate(names)}
    lines = [line_of.get(name, -1) for name in ids]
    columns = {}
    for label in LABEL_NAMES:
        shown = {cell: printable(cell) for cell in set(table[label])}
        columns[label] = ["" if line < 0 else shown[table[label][line]] for line in lines]
    return {label: names for label, names in columns.items() if any(names)}
