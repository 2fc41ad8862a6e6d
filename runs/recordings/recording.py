"""Read a recording of slurmctld: its configuration, jobs and starts.

docs/reference/slurm-recordings.md describes the files.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from pipistrelle.platforms.naming.hostlists import expanded
from pipistrelle.platforms.slurm.conf import SlurmConfigError
from pipistrelle.platforms.slurm.values import SlurmValueError
from pipistrelle.protocol.base.errors import printable
from pipistrelle.protocol.events import JobDescription
from pipistrelle.runs.recordings.csv_files import CsvRow, missing, read_rows
from pipistrelle.runs.recordings.decisions import LogStep, read_steps, reservation_times
from pipistrelle.runs.recordings.errors import RecordingError
from pipistrelle.runs.recordings.names import ACCOUNTING, LOG, WITH_DATABASE, ZERO, JobStart, label
from pipistrelle.runs.slurm.cluster import load_cluster
from pipistrelle.runs.slurm.files import dates_of, read_slurm_files
from pipistrelle.schedulers.slurm.config.settings import SlurmConfig
from pipistrelle.schedulers.slurm.config.submission import Submission
from pipistrelle.schedulers.slurm.files.reservations import read_reservations
from pipistrelle.schedulers.slurm.files.submission import submission_of, switches_of
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.slurm.options import parse_options
from pipistrelle.traces.workload import is_number

#: files without which a folder is no recording
_FILES: Final = ("slurm.conf", "jobs.csv", "jobs.events", "result.csv", "starts.csv", "passes.csv", "events.csv", LOG)
_JOB: Final = (
    *("id", "submit", "user", "account", "partition", "qos", "nodes", "tasks", "cpus_per_task", "mem", "mem_per"),
    *("gres", "exclusive", "limit_min", "run_s", "begin_s", "after", "constraint", "array", "name"),
)
_MOST_TASKS: Final = 250_000
#: fields of a submission that come from the column ``options``
_FURTHER: Final = ("tasks_per_node", "licenses", "reservation", "required", "excluded", "nice", "hold", "oversubscribe")

#: CPUs, memory (MB) and {kind: number} of other resources
Amounts = tuple[int, int, dict[str, int]]


class Submitted(NamedTuple):
    """A submission of the recording.

    Attributes:
        tasks: the indices of the array's tasks; empty: no array.
        runtime: how long each task runs (s).
    """

    job: Submission
    tasks: list[int]
    runtime: float


class Recording:
    """A folder with the submissions to a real slurmctld and everything that it decided.

    Raises:
        RecordingError: the folder is not a recording. Properties raise it for files that are missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not folder.is_dir():
            what = "not a folder" if folder.exists() else "there is no such folder"
            raise RecordingError(what, where=printable(str(folder)), expected="a recording of slurmctld")
        lacking = [name for name in _FILES if not (folder / name).is_file()]
        if len(lacking) > len(_FILES) // 2:
            raise RecordingError(
                "the folder is not a recording of slurmctld",
                where=printable(str(folder)),
                expected=f"the files {', '.join(_FILES)}",
                hint="'pipistrelle slurm record' makes recordings.",
            )
        if lacking:
            raise missing(folder, lacking[0])

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.resolve().name

    @property
    def conf(self) -> str:
        """The path of slurm.conf."""
        return str(self.folder / "slurm.conf")

    @property
    def accounting(self) -> list[str]:
        """The paths of the listings of sacctmgr; [] if there were no associations."""
        known = [self.folder / name for name in ("sacctmgr.dump", "qos.txt")]
        return [str(path) for path in (*known, *sorted(self.folder.glob(f"{ACCOUNTING}*.txt"))) if path.is_file()]

    @cached_property
    def nodes(self) -> dict[str, int]:
        """{name of a node: its number in the order of slurm.conf}."""
        return read_slurm_files(self.conf).nodes

    @cached_property
    def config(self) -> SlurmConfig:
        """The scheduler's settings, including the reservations that were made while recording."""
        made = load_cluster(self.conf, self.accounting, sharing=True).config
        text, name = self.reservations, "commands.csv"
        reservations = read_reservations(text, name, dates_of(ZERO, text, name), self.nodes) if text else ()
        start = WITH_DATABASE if made.accounting_storage else 0.0
        return replace(made, reservations=reservations, start=start)

    @cached_property
    def reservations(self) -> str:
        """The commands that created reservations, as lines ``TIME,COMMAND``; "" if there are none."""
        rows = read_rows(self.folder, "commands.csv", ("t", "command"), optional=True)
        texts = [row["command"] for row in rows if "create reservation" in row["command"].lower()]
        if not texts:
            return ""
        made, lines = reservation_times(self.folder), []
        for text in texts:
            name = re.search(r"reservationname=(\S+)", text, re.IGNORECASE)
            if name is not None and name[1] in made:
                lines.append(f"{made[name[1]]},{text}\n")
        return "".join(lines)

    @cached_property
    def jobs(self) -> dict[str, Submitted]:
        """{id: submission}, from jobs.csv."""
        rows = read_rows(self.folder, "jobs.csv", _JOB)
        return {str(row.whole("id", least=1)): self._submitted(row) for row in rows}

    def _submitted(self, row: CsvRow) -> Submitted:
        submit = row.number("submit")
        array, _, most = row["array"].partition("%")
        kind, _, count = row["gres"].rpartition(":")
        if (kind and not is_number(count)) or (most and not is_number(most)):
            raise row.wrong("gres" if kind else "array", "KIND:NUMBER" if kind else "as 0-9%2")
        partitions = row["partition"].split(",")
        if not {one.name for one in self.config.partitions}.issuperset(partitions):
            raise row.wrong("partition", "a partition of slurm.conf")
        memory = row.whole("mem") if row["mem"] else None
        job = Submission(
            number=row.whole("id", least=1),
            submit=int(submit),
            name=row["name"] or "job",
            user=row["user"],
            account=row["account"],
            partitions=tuple(partitions),
            qos=row["qos"],
            time_limit=60.0 * row.number("limit_min"),
            nodes=row.whole("nodes", least=1) if row["nodes"] else None,
            tasks=row.whole("tasks", least=1) if row["tasks"] else None,
            cpus_per_task=row.whole("cpus_per_task", least=1) if row["cpus_per_task"] else 1,
            mem_per_cpu=memory if row["mem_per"] == "cpu" else None,
            mem_per_node=memory if row["mem_per"] == "node" else None,
            gres={kind: int(count)} if kind else {},
            exclusive=bool(row["exclusive"]),
            constraint=row["constraint"],
            begin=submit + row.number("begin_s") if row["begin_s"] else None,
            dependency=row["after"],
            array_limit=int(most or 0),
            **self._switches(row),
            **self._options(row),
        )
        return Submitted(job, list(_indices(row, array)), row.number("run_s"))

    @staticmethod
    def _switches(row: CsvRow) -> dict[str, Any]:
        """Return what a row says of ``--switches``; recordings of earlier versions lack the column."""
        try:
            return switches_of(row.cells.get("switches", ""))
        except (ValueError, SlurmValueError):
            raise row.wrong("switches", "COUNT or COUNT@TIME") from None

    @staticmethod
    def _options(row: CsvRow) -> dict[str, Any]:
        """Return the fields of a submission that a row's further options of sbatch set; most recordings have none."""
        text = row.cells.get("options", "")
        if not text:
            return {}
        try:
            options = {"nodes": "1", **parse_options(text, row.where)}  # so that all options on resources are read
            made = submission_of(JobDescription(id="w0!1", res=1, options=options), 0.0)
        except (TraceError, SlurmConfigError):
            raise row.wrong("options", "options of sbatch, as --nice=50") from None
        return {name: getattr(made, name) for name in _FURTHER}

    @cached_property
    def names(self) -> dict[str, str]:
        """{Slurm's id of a job or task: its name}; the name of an array's task is, for example, ``34_0``."""
        return {
            row["id"]: f"{row['array_job']}_{row['array_task']}" if row["array_task"] else row["id"]
            for row in read_rows(self.folder, "result.csv", ("id", "array_job", "array_task"))
        }

    @cached_property
    def starts(self) -> list[JobStart]:
        """Every start of a job or task, in the order in which the controller started them."""
        found = []
        for row in read_rows(self.folder, "starts.csv", ("id", "time", "nodes", "label")):
            nodes = tuple(expanded(row["nodes"], row.where))
            name = label(row["label"] or row["id"])
            if name.partition("_")[0] not in self.jobs:
                raise row.wrong("id", "a job of jobs.csv")
            if not nodes or any(node not in self.nodes for node in nodes):
                raise row.wrong("nodes", "nodes of slurm.conf")
            found.append(JobStart(name, row.number("time"), nodes))
        return found

    @cached_property
    def incarnations(self) -> Counter[str]:
        """{id of a job: number of its starts}; empty if this was not recorded."""
        rows = read_rows(self.folder, "incarnations.csv", ("jobidraw", "start"), optional=True)
        return Counter(row["jobidraw"] for row in rows if row["start"])

    @cached_property
    def allocations(self) -> dict[str, dict[str, Amounts]]:
        """{name of a job: {node: resources that its last start allocated there}}; empty if this was not recorded."""
        found: dict[str, dict[str, Amounts]] = defaultdict(dict)
        for row in read_rows(self.folder, "alloc.csv", ("id", "node", "cpus", "mem", "gpus"), optional=True):
            gpus = row.whole("gpus")
            if row["node"] not in self.nodes:
                raise row.wrong("node", "a node of slurm.conf")
            amounts = (row.whole("cpus"), row.whole("mem"), {"gpu": gpus} if gpus else {})
            found[self.names.get(row["id"], row["id"])][row["node"]] = amounts
        return dict(found)

    @cached_property
    def steps(self) -> list[LogStep]:
        """The steps of the controller's log."""
        return read_steps(self.folder, self.jobs, self.nodes)


def _indices(row: CsvRow, text: str) -> Iterator[int]:
    """Yield the indices of an array such as ``0-3,7``."""
    count = 0
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        last = high or low
        if not (is_number(low) and is_number(last)) or int(last) - int(low) + count > _MOST_TASKS:
            raise row.wrong("array", "as 0-9%2")
        count += int(last) - int(low) + 1
        yield from range(int(low), int(last) + 1)
