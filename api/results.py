"""The results of one run: its summary, tables, plots and report."""

import shutil
import weakref
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final

import msgspec

from pipistrelle.api.derived import attempts_of, queue_of
from pipistrelle.api.options import path_text
from pipistrelle.api.plots import Plots
from pipistrelle.api.repeat import Again
from pipistrelle.api.tables import Table, html_table, imported
from pipistrelle.protocol.base.errors import PipistrelleError, printable
from pipistrelle.reports.report.figures import figure_rows
from pipistrelle.runs.folders.files import output_json, read_config
from pipistrelle.runs.folders.parquet_files import read_table
from pipistrelle.server.engine.jobs import LABEL_NAMES
from pipistrelle.server.outputs.folder import COMMAND_FILE, OUTPUT_PREFIX, SUMMARY_FILE
from pipistrelle.server.outputs.metrics import Summary
from pipistrelle.server.simulation.loop import LoopTimes

#: {table: why a run may lack it}
_WHY_NOT: Final = {
    "nodes": "its nodes cannot fail",
    "outages": "its nodes cannot fail",
    "takes": "its jobs do not share nodes",
    "queue": "it did not record the queue, which jobs that were interrupted or had not ended would change; "
    "run it with queue_lengths=True",
}


class NoResult(PipistrelleError):
    """A run lacks the requested result."""


class Run:
    """A finished run and its results.

    `run` and `open` return it. If `run` got no output folder, the results are in a temporary folder, which is deleted
    with this object. Times are simulated seconds. docs/reference/outputs.md describes the columns of the tables.

    Args:
        folder: the output folder of a run.

    Raises:
        PipistrelleError: the folder does not have the outputs of one run.
    """

    def __init__(self, folder: str | PathLike[str]) -> None:
        self._folder = Path(path_text(folder, "path", "open"))
        self._config = read_config(self._folder)
        self._again: Again | None = None
        #: whether the run was made in this process, so its scheduler's code may run again
        self._trusted = False
        #: wall-clock times and round trips; None for a run that was opened
        self.times: LoopTimes | None = None
        #: draws the results with matplotlib
        self.plot = Plots(self)

    @classmethod
    def _kept(cls, folder: Path, again: Again | None, times: LoopTimes, *, temporary: bool) -> "Run":
        found = cls(folder)
        found._again, found._trusted, found.times = again, True, times
        if temporary:
            weakref.finalize(found, shutil.rmtree, folder, ignore_errors=True)
        return found

    @property
    def folder(self) -> Path:
        """The folder of the outputs."""
        return self._folder

    @property
    def scheduler(self) -> str:
        """The scheduler's name, as the scheduler reports it."""
        return printable(str(self._config["scheduler"].get("name", "")))

    @property
    def workload(self) -> str:
        """The name of the workload; several names are joined by ``+``."""
        return printable("+".join(str(one.get("name", prefix)) for prefix, one in self._config["workloads"].items()))

    @property
    def platform(self) -> str:
        """The name of the machine."""
        return printable(str(self._of_platform("name", "")))

    @property
    def units(self) -> int:
        """The number of units of the machine."""
        return sum(int(pool["nodes"]) * int(pool["units_per_node"]) for pool in self._of_platform("pools", ()))

    @property
    def config(self) -> dict[str, Any]:
        """The configuration of the run, as in ``out_config.json``."""
        return self._config

    @property
    def description(self) -> dict[str, Any] | None:
        """The options of the run, as in ``out_command.json``.

        None if the run had Python objects as inputs.
        """
        return output_json(self._folder / COMMAND_FILE)

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """The summary of the run as a dictionary, as in ``out_summary.json``.

        Raises:
            PipistrelleError: the run did not finish.
        """
        found = output_json(self._folder / SUMMARY_FILE)
        if found is None:
            raise NoResult(
                "the run has no summary, because it did not finish",
                where=str(self._folder),
                hint="The tables have the jobs that ended. 'pipistrelle resume' continues it if it has snapshots.",
            )
        return found

    @cached_property
    def summary(self) -> Summary:
        """The summary of the run as an object, such as ``summary.mean_wait`` (s).

        Raises:
            PipistrelleError: the run did not finish.
        """
        try:
            return msgspec.convert(self.metrics, Summary)
        except msgspec.ValidationError as error:
            raise NoResult(f"the summary cannot be read: {error}", where=str(self._folder / SUMMARY_FILE)) from None

    @cached_property
    def jobs(self) -> Table:
        """The jobs that ended, with their labels such as ``user`` and ``queue``.

        The table has one row per attempt.
        """
        table = self._table("jobs")
        if not (self._folder / f"{OUTPUT_PREFIX}labels.csv").is_file():
            return table
        arrow, compute = imported("pyarrow", "a table"), imported("pyarrow.compute", "a table")
        labels = self._table("labels").arrow

        def keys(names: Any, prefixes: Any) -> Any:
            return compute.binary_join_element_wise(prefixes, names, "!")

        bare = compute.replace_substring_regex(table.arrow["job_id"], pattern="#[0-9]+$", replacement="")
        places = compute.index_in(
            keys(bare, table.arrow["workload_name"]), value_set=keys(labels["job_id"], labels["workload_name"])
        )
        found = table.arrow
        for name in (label for label in LABEL_NAMES if label in labels.column_names):
            column = labels[name].take(places)
            if compute.any(compute.not_equal(column, "")).as_py():
                found = found.append_column(arrow.field(name, arrow.string()), column)
        return Table(found)

    @cached_property
    def attempts(self) -> Table:
        """The attempts of jobs, one row each.

        If nodes can fail or jobs are preempted, the rows describe failures and checkpoints. Otherwise each job that ran
        has one attempt, and the columns on saved work are missing.
        """
        return self._table("attempts") if self._has("attempts") else attempts_of(self._table("jobs"))

    @cached_property
    def queue(self) -> Table:
        """The number of waiting and running jobs over time, one row per change.

        If the run did not record it, it is computed from the jobs.

        Raises:
            PipistrelleError: the run did not record it, and some jobs were interrupted or did not end.
        """
        if self._has("queue") or self._has("attempts") or not self._all_ended:
            return self._table("queue")
        return queue_of(self._table("jobs"))

    @cached_property
    def machine(self) -> Table:
        """The number of idle, computing and failed units over time, one row per change."""
        return self._table("machine_states")

    @cached_property
    def takes(self) -> Table:
        """The resources that each started job holds on its nodes.

        The table exists only if jobs share nodes with cores, memory or GPUs.
        """
        return self._table("takes")

    @cached_property
    def decisions(self) -> Table:
        """Every decision of the scheduler, with its reason."""
        return self._table("decisions")

    @cached_property
    def nodes(self) -> Table:
        """The nodes with their failures and repairs; only if nodes can fail."""
        return self._table("nodes")

    @cached_property
    def outages(self) -> Table:
        """The outages of nodes; only if nodes can fail."""
        return self._table("outages")

    def report(self, path: str | PathLike[str] = "page.html") -> Path:
        """Write the run as one HTML page and return its path.

        Raises:
            PipistrelleError: outputs are missing, or the file cannot be written.
        """
        from pipistrelle.reports.page.page import page_of  # slow to import
        from pipistrelle.server.outputs.once import write_output

        target = Path(fspath(path))
        write_output(target, page_of([self._folder]))
        return target

    def _has(self, name: str) -> bool:
        return (self._folder / f"{OUTPUT_PREFIX}{name}.csv").is_file()

    @property
    def _all_ended(self) -> bool:
        found = output_json(self._folder / SUMMARY_FILE) or {"waiting_at_end": 1}
        return not (found.get("waiting_at_end") or found.get("running_at_end"))

    def _table(self, name: str) -> Table:
        imported("pyarrow", "a table")
        path = self._folder / f"{OUTPUT_PREFIX}{name}.csv"
        if not self._has(name):
            why = _WHY_NOT.get(name)
            raise NoResult(f"the run has no table '{name}'", where=str(self._folder), hint=why and f"Cause: {why}.")
        return Table(read_table(path))

    def _of_platform(self, key: str, default: Any) -> Any:
        platform = self._config.get("platform")
        return platform.get(key, default) if isinstance(platform, dict) else default

    @property
    def clock(self) -> tuple[float | None, str | None]:
        """The Unix time (s) of simulated time 0, and the machine's time zone.

        They are None if unknown.
        """
        first = next(iter(self._config["workloads"].values()), None)
        told = first if isinstance(first, dict) else {}
        return told.get("epoch"), told.get("timezone")

    @property
    def _title(self) -> str:
        return f"{self.workload} on {self.platform}, {self.scheduler}"

    def _rows(self) -> list[tuple[str, str]]:
        try:
            return figure_rows(self.summary)
        except NoResult as error:
            return [("not finished", error.what)]

    def __repr__(self) -> str:
        rows = [[name, text] for name, text in self._rows()]
        width = max(len(name) for name, _ in rows)
        return "\n".join([self._title, *(f"{name.ljust(width)}  {text}" for name, text in rows)])

    def _repr_html_(self) -> str:
        return html_table(["figure", "value"], [list(row) for row in self._rows()], caption=self._title)


def open(path: str | PathLike[str]) -> Run:
    """Read a finished run from its output folder.

    Raises:
        PipistrelleError: the folder does not exist, or does not have the outputs of one run.
    """
    return Run(path)


def folder_of(run: Run | str | PathLike[str], where: str) -> Path:
    """Return the output folder of a run, given as a `Run` or a path.

    ``where`` is the name of the calling function, for error messages.
    """
    return run.folder if isinstance(run, Run) else Path(path_text(run, "run", where))
