"""Build a workload from the jobs of a log; shared by all log readers."""

import io
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from enum import IntEnum
from functools import cache
from operator import attrgetter
from pathlib import PurePath
from typing import Any, ClassVar, Final, NamedTuple, TypedDict, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.base.errors import did_you_mean, printable, quoted
from pipistrelle.protocol.resources.request import Request
from pipistrelle.traces.clean import BAD_RECORD
from pipistrelle.traces.errors import TraceError, line_fault, out_of_range
from pipistrelle.traces.files import PathText, binary_file, trace_name
from pipistrelle.traces.logs.kinds import Units
from pipistrelle.traces.workload import LABELS, LARGEST, PER_NODE, WHOLE, Workload, decimal_text, is_number

#: Slurm's states of jobs that have not ended yet
GOING_ON: Final = frozenset(("PENDING", "RUNNING", "SUSPENDED", "REQUEUED", "RESIZING", "REQUEUE_HOLD"))


class Status(IntEnum):
    """How a job ended, as a number of SWF's field 11."""

    FAILED = 0
    COMPLETED = 1
    CANCELLED = 5
    UNKNOWN = -1


class LogReading(TypedDict, total=False):
    """The fields of `LogOptions` as keyword arguments."""

    units: Units
    timezone: str | None
    columns: str | None
    strict: bool


class LogOptions(NamedTuple):
    """Options for reading a job log.

    Attributes:
        units: what job sizes count: ``nodes``, ``processors`` or ``gpus``.
        timezone: time zone of the log's clock; None: UTC.
        columns: column names of sacct output without a header, separated by commas, bars or blanks.
        strict: whether to reject unreadable records that could be left out.
    """

    units: Units = "nodes"
    timezone: str | None = None
    columns: str | None = None
    strict: bool = False

    def zone(self) -> tzinfo:
        """Return the time zone of the log; TraceError if the zone or `units` is unknown."""
        if self.units not in get_args(Units):
            raise TraceError(
                f"sizes cannot be counted in {quoted(self.units)}",
                expected=" or ".join(get_args(Units)),
                hint=did_you_mean(self.units, list(get_args(Units))),
            )
        if self.timezone is None:
            return UTC
        try:
            return ZoneInfo(self.timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise TraceError(
                f"unknown time zone {quoted(self.timezone)}",
                expected="a name such as Europe/Prague, or UTC",
                hint="Use a name of the tz database.",
            ) from None


def as_label(text: str) -> str:
    """Return a text of the log as a label: printable, without surrounding blanks."""
    return printable(text.strip())


@dataclass(slots=True)
class Record:
    """A job as read from a log; -1 means unknown unless stated otherwise.

    Args:
        place: file and line, for messages.
        id: the job's name; `JobLog.workload` checks it.
        submit: submit time (s), Unix time or relative to the log's start.
        size: requested units.
        walltime: requested time (s), inf for no limit.
        runtime, wait: run time and wait (s).
        exact_wait: time (s) from submission to the required start, -1 if the job may start at any time.
        allocated: allocated units.
        units_per_node: requested units per node, -1 for any number.
        whole_nodes: 1 if the job shares no node.
        labels: see `Workload.labels`; unknown labels may be absent.
        request: what the job takes on shared nodes; None: not known.
    """

    place: str
    id: str
    submit: float
    size: int
    walltime: float
    runtime: float
    wait: float = -1.0
    exact_wait: float = -1.0
    allocated: int = -1
    status: Status = Status.UNKNOWN
    units_per_node: int = -1
    whole_nodes: int = -1
    labels: dict[str, str] = field(default_factory=dict)
    request: Request | None = None


class JobLog(ABC):
    """A reader that collects the records of one log's files and builds a workload."""

    #: the format's name in messages
    format: ClassVar[str]
    #: whether submit times are Unix times; if so, the first submission becomes time 0
    absolute: ClassVar[bool] = True
    #: whether a log may consist of several files, in time order
    in_parts: ClassVar[bool] = False
    #: whether unreadable records are left out unless reading is strict
    lenient: ClassVar[bool] = False
    #: whether the log has the number of requested GPUs
    counts_gpus: ClassVar[bool] = False

    #: units of the machine, if known
    machine_size: int | None = None

    def __init__(self, options: LogOptions | None = None) -> None:
        self.options = options or LogOptions()
        self.zone = self.options.zone()
        if self.options.units == "gpus" and not self.counts_gpus:
            expected = "sacct output, Slurm events, PBS accounting, or the log of a GPU cluster (pods, Philly, Helios)"
            raise TraceError("the log has no numbers of requested GPUs", expected=expected, found=self.format)
        #: facts about the machine, as in SWF's header
        self.header: dict[str, str] = {}
        #: turns texts into labels; equal labels share one object
        self.names = cache(as_label)
        #: messages about records that are left out; an error would keep the record and more in memory
        self._faults: list[str] = []
        self._first_fault: TraceError | None = None

    @abstractmethod
    def read(self, stream: io.BufferedReader, where: str) -> None:
        """Read a file, called `where` in messages.

        Raises:
            TraceError: a line cannot be read.
        """

    def leave_out(self, fault: TraceError) -> None:
        """Leave out an unreadable record; raise `fault` instead if reading is strict.

        Formats that are not `lenient` are always read strictly.
        """
        if self.options.strict or not self.lenient:
            raise fault
        self._first_fault = self._first_fault or fault
        self._faults.append(str(fault))

    def remarks(self) -> tuple[str, ...]:
        """Return messages about what the reader ignored, each with its count."""
        return ()

    @abstractmethod
    def records(self) -> list[Record]:
        """Return the job records; jobs with equal submit times keep this order."""

    def workload(self, path: PathText) -> Workload:
        """Return the workload, sorted by submit time; `path` gives its name."""
        records = sorted(self._usable(self.records(), path), key=attrgetter("submit"))
        submit = _column(records, "submit", np.float64)
        epoch = float(np.floor(submit[0])) if self.absolute else None
        return Workload(
            name=trace_name(path),
            source=PurePath(path).name,
            ids=[record.id for record in records],
            submit=submit - (epoch or 0.0),
            size=_column(records, "size", np.int64),
            walltime=_column(records, "walltime", np.float64),
            runtime=_column(records, "runtime", np.float64),
            columns=_known(records, ("allocated", "status", PER_NODE, WHOLE), np.int64),
            measures=_known(records, ("wait", "exact_wait"), np.float64),
            labels=_labels(records),
            requests=[one.request for one in records] if any(one.request is not None for one in records) else None,
            machine_size=self.machine_size,
            epoch=epoch,
            timezone=self.options.timezone,
            header=self.header,
            format=self.format,
            left_out={BAD_RECORD: len(self._faults)} if self._faults else {},
            faults=tuple(self._faults),
            remarks=self.remarks(),
        )

    def _usable(self, records: list[Record], path: PathText) -> list[Record]:
        """Return the valid records with distinct ids; raise TraceError if there are none."""
        usable: dict[str, Record] = {}
        for record in records:
            try:
                _check(record)
            except TraceError as fault:
                self.leave_out(fault)
                continue
            if record.id in usable:
                raise TraceError(
                    f"job id {quoted(record.id)} occurs twice",
                    where=record.place,
                    expected="each id once",
                    found=f"the id of the job at {usable[record.id].place}",
                    hint="Remove one of the two, or give it another id.",
                )
            usable[record.id] = record
        if not usable:
            if self._first_fault is not None:
                raise self._first_fault
            raise TraceError("has no jobs", where=str(path), expected=f"jobs of {self.format}", hint="Check the file.")
        return list(usable.values())

    @classmethod
    def parse(cls, stream: io.BufferedReader, path: PathText, options: LogOptions | None = None) -> Workload:
        """Read a log that is a single file; `path` gives its name.

        Jobs are sorted by submit time.
        """
        log = cls(options)
        log.read(stream, str(path))
        return log.workload(path)


def _check(record: Record) -> None:
    job = record.id
    if not job or not job.isprintable() or " " in job or "!" in job:
        raise line_fault(record.place, "the job has no usable id", "a printable text without blanks and '!'", job)
    for name, value in (
        ("submit time", record.submit),
        ("size", record.size),
        ("allocated size", record.allocated),
        ("requested time", record.walltime if record.walltime != float("inf") else 0),
        ("run time", record.runtime),
        ("wait", record.wait),
    ):
        if not -1 <= value <= LARGEST:
            what, hint = f"{name} of job {quoted(job)}", "Correct or remove the line."
            raise out_of_range(what, record.place, f"0 to {decimal_text(LARGEST)}", decimal_text(value), hint)


def _column(records: list[Record], name: str, dtype: type) -> NDArray[Any]:
    return np.array(list(map(attrgetter(name), records)), dtype=dtype)


def _known(records: list[Record], names: tuple[str, ...], dtype: type) -> dict[str, NDArray[Any]]:
    """Return {name: column} of the named fields that at least one job has."""
    columns = {name: _column(records, name, dtype) for name in names}
    return {name: column for name, column in columns.items() if np.any(column != -1)}


def _labels(records: list[Record]) -> dict[str, list[str]]:
    """Return {name: text of each job} of the labels that at least one job has."""
    columns = {name: [record.labels.get(name, "") for record in records] for name in LABELS}
    return {name: texts for name, texts in columns.items() if any(texts)}


def numbered_lines(stream: io.BufferedReader, where: str) -> Iterator[tuple[str, str]]:
    """Yield (place, line) of each line that is not blank.

    Bytes that are not UTF-8 become escapes such as ``\\xe4``.
    """
    for number, line in enumerate(stream, start=1):
        if line == b"\n":
            continue
        if b"\0" in line:
            raise binary_file(f"{where}, line {number}")
        text = line.decode("utf-8-sig" if number == 1 else "utf-8", "backslashreplace").rstrip("\r\n")
        if text and not text.isspace():
            yield f"{where}, line {number}", text


def whole_number(text: str, place: str, name: str) -> int:
    """Return a whole number of at most 15 digits; raise TraceError for other texts."""
    if is_number(text):
        return int(text)
    raise fault(place, name, "is not a whole number", "0 or more, at most 15 digits", text)


def fault(place: str, name: str, what: str, expected: str, found: str) -> TraceError:
    """Return the error for an unreadable field of a log."""
    return line_fault(f"{place}, field {name}", what, expected, found)
