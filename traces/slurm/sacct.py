"""Read Slurm's accounting as printed by ``sacct --parsable2``."""

import io
import re
from collections.abc import Callable
from functools import cache
from typing import Final

from pipistrelle.protocol.base.errors import quoted
from pipistrelle.traces.errors import TraceError, counted
from pipistrelle.traces.logs.job_table import (
    GOING_ON,
    JobLog,
    LogOptions,
    Record,
    Status,
    fault,
    numbered_lines,
    whole_number,
)
from pipistrelle.traces.logs.kinds import IDS, is_sacct_header
from pipistrelle.traces.logs.times import Clock, length
from pipistrelle.traces.slurm.requests import (
    SacctRequests,
    dependency_of_line,
    gpu_count,
    gpu_models,
    parse_tres,
    scaled_number,
)
from pipistrelle.traces.workload import CONSTRAINT, NODE_LIST, both

#: {label: its column}
LABEL_COLUMNS: Final = {
    "name": "JobName",
    "user": "User",
    "group": "Group",
    "account": "Account",
    "queue": "Partition",
    "qos": "QOS",
    "dependency": "Dependency",
    "state": "State",
    "constraint": "Constraints",
    NODE_LIST: "NodeList",
}
#: columns of a job's size; allocated sizes come first, because a requested size may be a minimum: one node, many tasks
_SIZES: Final = {"nodes": ("AllocNodes", "NNodes", "ReqNodes"), "processors": ("AllocCPUS", "NCPUS", "ReqCPUS")}
_REQUESTED: Final = {"nodes": ("ReqNodes", "NNodes", "AllocNodes"), "processors": ("ReqCPUS", "NCPUS", "AllocCPUS")}
_GOT: Final = {"nodes": ("AllocNodes", "NNodes"), "processors": ("AllocCPUS", "NCPUS")}
#: other names of columns, as some files have them: {name: sacct's own}
_ALIASES: Final = {"Constraint": "Constraints"}
#: columns with the number of GPUs, the allocated one first
_TRES: Final = ("AllocTRES", "ReqTRES")
_NO_TIME: Final = frozenset(("", "Unknown", "None", "N/A", "INVALID"))
_NO_LIMIT: Final = frozenset(("UNLIMITED", "Partition_Limit", "INVALID"))
#: NodeList of a job without nodes
_NO_NODES: Final = _NO_TIME | {"None assigned", "(null)"}
#: columns whose text may contain bars, the column separator
_FREE: Final = ("JobName", "SubmitLine", "Comment", "AdminComment", "SystemComment", "Reason", "WorkDir")
_ENDS: Final = {"COMPLETED": Status.COMPLETED, "CANCELLED": Status.CANCELLED}


class SacctLog(JobLog):
    """Reader of ``sacct --parsable2`` output, from one or more files.

    The header, or the option ``columns``, names the columns in any order. JobID (or JobIDRaw), Submit, a size, and
    Elapsed, ElapsedRaw or both Start and End are required.

    - Steps, such as ``123.batch``, are left out. Each array task and each component of a heterogeneous job is a job.
    - Of several records of a job, as ``--duplicates`` gives after a requeue, the last one counts, with the earliest
      submit time. A job that has not ended has no run time.
    - Timelimit (or TimelimitRaw, in minutes) is the requested time. Without it, or if it only names the partition's
      limit, the job has no limit.
    - Partition is the queue, Constraints the constraint, NodeList the nodes that the job got.
    - ReqTRES, ReqMem and SubmitLine say what the job takes on shared nodes: cores, memory, GPUs, other resources.
    - A row that cannot be read is left out and counted, unless reading is strict.
    - Dependencies come from the sbatch option in SubmitLine, or from Dependency, a column that Pipistrelle adds.
    - GPUs come from AllocTRES, else ReqTRES, evenly per node if the number of nodes divides them. Jobs with GPUs need
      GPU units (``unit=gpu``) and the model in ReqTRES; other jobs need whole nodes (``unit=node``).

    With the option ``units`` = ``nodes``, the size is the first of AllocNodes, NNodes and ReqNodes that is above 0.
    With ``processors``, it is the first of AllocCPUS, NCPUS and ReqCPUS. ``timezone`` applies to times without an
    offset, such as ``2024-01-31T08:00:00``, but not to seconds since 1970 (SLURM_TIME_FORMAT=%s).
    """

    format = "Slurm sacct"
    in_parts = True
    counts_gpus = True
    lenient = True

    def __init__(self, options: LogOptions | None = None) -> None:
        super().__init__(options)
        self._clock = Clock(self.zone)
        self._lengths = cache(length)
        self._at: dict[str, int] = {}
        self._records: dict[str, Record] = {}
        self._requests = SacctRequests()

    def read(self, stream: io.BufferedReader, where: str) -> None:
        """Read the rows of a file; TraceError for a missing column or a malformed row."""
        width = id_at = 0
        named = self.options.columns
        if named is not None:
            width, id_at = self._header(re.split(r"[,|\s]+", named.strip(" ,|")), "--columns")
        for place, text in numbered_lines(stream, where):
            cells = text.split("|")
            if (
                not width or cells[id_at] in IDS or (named and is_sacct_header(text))
            ):  # concatenated files have several headers
                width, id_at = self._header(cells, place)
                continue
            try:
                self._add(cells, width, id_at, place)
            except TraceError as error:
                if named is not None and not self._records:  # the option names other columns than the file has
                    raise
                self.leave_out(error)

    def _add(self, cells: list[str], width: int, id_at: int, place: str) -> None:
        """Add the job of a row; TraceError if the row cannot be read."""
        if len(cells) != width:
            cells = self._mended(cells, width, place)
        job = cells[id_at].strip()
        if "." in job:
            return
        record = self._record(cells, job, place)
        earlier = self._records.pop(job, None)
        if earlier is not None:
            record.submit = min(record.submit, earlier.submit)
            if record.wait >= 0:
                record.wait = max(self._time_of(cells, "Start", place) - record.submit, 0.0)
        self._records[job] = record

    def records(self) -> list[Record]:
        """Return the job records of all files that were read."""
        return list(self._records.values())

    def remarks(self) -> tuple[str, ...]:
        """Return a message about jobs that ask for GPUs of several models, if any."""
        if not self._requests.mixed:
            return ()
        jobs = counted(self._requests.mixed, "job")
        return (f"{jobs} with GPUs of several models in ReqTRES may get any model: a request has GPUs of one kind",)

    def _header(self, cells: list[str], place: str) -> tuple[int, int]:
        """Store the columns' names; return their number and the column of the job id."""
        names = [name.strip().partition("%")[0] for name in cells]
        names = [name if name not in _ALIASES or _ALIASES[name] in names else _ALIASES[name] for name in names]
        self._at = {name: at for at, name in reversed(list(enumerate(names))) if name}
        for one_of in (IDS, ("Submit",), _TRES if self.options.units == "gpus" else _SIZES[self.options.units]):
            if not self._at.keys() & set(one_of):
                raise self._missing(one_of, names, place)
        if not self._at.keys() & {"Elapsed", "ElapsedRaw"} and not self._at.keys() >= {"Start", "End"}:
            raise self._missing(("Elapsed", "ElapsedRaw", "Start and End"), names, place)
        return len(names), next(self._at[name] for name in IDS if name in self._at)

    def _missing(self, one_of: tuple[str, ...], names: list[str], place: str) -> TraceError:
        alike = {name.lower() for name in one_of} & {name.lower() for name in names}
        return TraceError(
            f"the column {one_of[0]} is missing",
            where=place,
            expected=" or ".join(one_of),
            found=quoted("|".join(names)),
            hint="Write it as sacct does." if alike else "Give it to sacct's --format.",
        )

    def _mended(self, cells: list[str], width: int, place: str) -> list[str]:
        """Repair a row that has too many cells, and return its cells.

        The row may end with a bar, or one of its texts may contain bars.
        """
        surplus = len(cells) - width
        if surplus == 1 and not cells[-1]:
            return cells[:-1]
        if surplus > 0:
            for name in _FREE:
                at = self._at.get(name)
                if at is None:
                    continue
                last = at + surplus + 1
                mended = [*cells[:at], "|".join(cells[at:last]), *cells[last:]]
                if self._clock.iso(mended[self._at["Submit"]].strip()) is not None:
                    return mended
        raise TraceError(
            "the row has another number of columns than the header",
            where=place,
            expected=str(width),
            found=str(len(cells)),
            hint="Check that the file is complete, and from sacct --parsable2.",
        )

    def _record(self, cells: list[str], job: str, place: str) -> Record:
        def cell(name: str) -> str:
            at = self._at.get(name)
            return cells[at].strip() if at is not None else ""

        submit = self._time("Submit", cell("Submit"), place)
        if submit is None:
            raise fault(place, "Submit", "is not a time", "YYYY-MM-DDTHH:MM:SS", cell("Submit"))
        state = (cell("State").split() or [""])[0].rstrip("+")
        start = self._time("Start", cell("Start"), place)
        labels = {}
        for label, column in LABEL_COLUMNS.items():
            text = state if label == "state" else cell(column)
            if text and not (label == NODE_LIST and text in _NO_NODES):
                labels[label] = self.names(text)
        if "dependency" not in labels:
            dependency = dependency_of_line(cell("SubmitLine"))
            if dependency:
                labels["dependency"] = self.names(dependency)
        if self.options.units == "gpus":
            sizes = self._gpus(cell, labels, place, started=start is not None)
        else:
            got = self._count(_GOT[self.options.units], cell, place) if start is not None else -1
            sizes = {"size": self._count(_SIZES[self.options.units], cell, place), "allocated": got}
        wait = max(start - submit, 0.0) if start is not None else -1.0
        runtime = -1.0 if state in GOING_ON else self._runtime(cell, start, place)
        end = self._time("End", cell("End"), place) if start is None and state == "CANCELLED" else None
        if end is not None and runtime <= 0:
            wait = max(end - submit, 0.0)  # as in SWF, the wait until the cancellation
        return Record(
            place=place,
            id=job,
            submit=submit,
            **sizes,
            walltime=self._limit(cell, place),
            runtime=runtime,
            wait=wait,
            status=Status.UNKNOWN if not state or state in GOING_ON else _ENDS.get(state, Status.FAILED),
            labels=labels,
            request=self._requests.of(
                cell,
                self._count(_REQUESTED["nodes"], cell, place),
                self._count(_REQUESTED["processors"], cell, place),
                place,
            ),
        )

    def _gpus(self, cell: Callable[[str], str], labels: dict[str, str], place: str, *, started: bool) -> dict[str, int]:
        """Return a job's size and allocation in GPUs, as {column: number}.

        For a job without GPUs, both are in nodes. The job's GPU model is added to its constraint in ``labels``.
        """
        tres = {name: parse_tres(cell(name)) for name in _TRES}
        found = [(count, name) for name in _TRES if (count := gpu_count(tres[name], place, name))]
        nodes = self._count(_SIZES["nodes"], cell, place)
        told = next((one["node"] for one in tres.values() if "node" in one), "")
        if nodes < 0 and told:
            nodes = whole_number(told, place, "TRES node")
        models = gpu_models(tres["ReqTRES"])
        words = ["unit=gpu" if found else "unit=node", *(models if found and len(models) == 1 else [])]
        labels[CONSTRAINT] = self.names(both(labels.get(CONSTRAINT, ""), "&".join(words)))
        if not found:
            return {"size": nodes, "allocated": nodes if started else -1}
        gpus = found[0][0]
        each = gpus // nodes if nodes > 0 and gpus % nodes == 0 else -1
        got = gpus if started and found[0][1] == "AllocTRES" else -1
        return {"size": gpus, "allocated": got, "units_per_node": each}

    def _time(self, name: str, text: str, place: str) -> float | None:
        if text in _NO_TIME:
            return None
        time = self._clock.iso(text)
        if time is None:
            raise fault(place, name, "is not a time", "YYYY-MM-DDTHH:MM:SS, or seconds since 1970", text)
        return time

    def _time_of(self, cells: list[str], name: str, place: str) -> float:
        return self._time(name, cells[self._at[name]].strip(), place) or 0.0

    def _length(self, name: str, text: str, place: str, one: float = 60.0) -> float:
        seconds = self._lengths(text, one)
        if seconds is None:
            raise fault(place, name, "is not a duration", "[DAYS-]HH:MM:SS", text)
        return seconds

    def _limit(self, cell: Callable[[str], str], place: str) -> float:
        for name in ("Timelimit", "TimelimitRaw"):
            text = cell(name)
            if text:
                return float("inf") if text in _NO_LIMIT else self._length(name, text, place)
        return float("inf")

    def _runtime(self, cell: Callable[[str], str], start: float | None, place: str) -> float:
        for name, one in (("ElapsedRaw", 1.0), ("Elapsed", 60.0)):
            text = cell(name)
            if text not in _NO_TIME:
                return self._length(name, text, place, one)
        end = self._time("End", cell("End"), place)
        if start is None or end is None:
            return -1.0
        if end < start:
            raise fault(place, "End", "is before the start", f"at least {cell('Start')}", cell("End"))
        return end - start

    def _count(self, names: tuple[str, ...], cell: Callable[[str], str], place: str) -> int:
        """Return a row's first number above 0 in the columns ``names``.

        Return -1 if there is none. ``2K`` is 2000.
        """
        for name in names:
            text = cell(name)
            if text in _NO_TIME:
                continue
            value = scaled_number(text, place, name)
            if value > 0:
                return value
        return -1
