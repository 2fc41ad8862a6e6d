"""A run's jobs as columns, summed over all attempts, with their labels."""

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
#: separates a job's name from the number of its attempt
AGAIN: Final = "#"


class ReportError(PipistrelleError):
    """Runs cannot be reported, or not together."""


@dataclass(frozen=True, eq=False)
class RunJobs:
    """The ended jobs of a run, without rejected ones; times in simulated seconds.

    A job with several attempts is one job, as in the summary: wait and execution time are sums over its attempts,
    state, end and units are the last attempt's.

    Attributes:
        folder: the outputs.
        config, summary: the run's configuration and figures; ``summary`` is None if the run did not finish.
        ids: ``PREFIX!NAME``, by submission, then as in the file.
        size: units, shape (jobs,).
        submit, start, end: of the first attempt (submit, start) and the last (end), shape (jobs,).
        wait, execution: shape (jobs,).
        state, alloc: of the last attempt.
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
        """The scheduler's own name."""
        return printable(str(self.config["scheduler"].get("name", "")))

    @property
    def turnaround(self) -> Floats:
        """Wait plus execution time (s)."""
        return self.wait + self.execution

    @property
    def bounded_slowdown(self) -> Floats:
        """max(1, turnaround / max(execution time, 10 s)), as in the summary."""
        found: Floats = np.maximum(1.0, self.turnaround / np.maximum(self.execution, TAU))
        return found

    @cached_property
    def places(self) -> dict[str, int]:
        """{id: index in the columns}."""
        return {name: place for place, name in enumerate(self.ids)}

    @property
    def workloads(self) -> list[tuple[str, str]]:
        """The prefix and digest of each workload."""
        return [(prefix, str(one.get("sha256"))) for prefix, one in self.config["workloads"].items()]


def read_run_jobs(folder: Path, tables: OutputTables | None = None) -> RunJobs:
    """Read a run's jobs from its outputs.

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
