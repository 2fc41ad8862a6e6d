"""Read and write the Standard Workload Format, 18 numbers per line.

The format: D. Feitelson, "The Standard Workload Format", Parallel Workloads Archive, version 2.2.
"""

import io
import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.base.errors import quoted
from pipistrelle.traces.clean import NO_SUBMIT, require_ids, require_runtimes
from pipistrelle.traces.errors import TraceError, line_fault
from pipistrelle.traces.files import PathText, binary_file, trace_name
from pipistrelle.traces.logs.swf_numbers import numbered
from pipistrelle.traces.workload import LARGEST, Floats, Ints, Workload, decimal_text, decimal_texts, is_plain_number

FORMAT: Final = "SWF"


class Field(NamedTuple):
    """One of the 18 fields of a line, and its column's name in `Workload`, if any."""

    label: str
    whole: bool
    column: str | None = None


FIELDS = (
    Field("job number", True),
    Field("submit time", False),
    Field("wait time", False, "wait"),
    Field("run time", False),
    Field("allocated processors", True, "allocated"),
    Field("average CPU time", False, "cpu_time"),
    Field("used memory", False, "memory"),
    Field("requested processors", True),
    Field("requested time", False),
    Field("requested memory", False, "requested_memory"),
    Field("status", True, "status"),
    Field("user", True, "user"),
    Field("group", True, "group"),
    Field("application", True, "application"),
    Field("queue", True, "queue"),
    Field("partition", True, "partition"),
    Field("preceding job", True, "preceding"),
    Field("think time", False, "think_time"),
)
_JOB, _SUBMIT, _RUNTIME, _ALLOCATED, _REQUESTED, _WALLTIME = 0, 1, 3, 4, 7, 8
_NOT_NEGATIVE = (_JOB, _SUBMIT)
_WHOLE = np.array([field.whole for field in FIELDS])

_OLD_HAIZEA = 10  # columns of Haizea's text traces, which preceded its XML
_BLOCK = 4096  # lines converted at once, which bounds the memory for text
_DIRECTIVE = re.compile(r";\s*([A-Z][A-Za-z]*)\s*:(.*)")
_CONTINUED = re.compile(r";(\t|\s{2})")
_COUNT = re.compile(r"[0-9]{1,15}")


def parse_swf(stream: io.BufferedReader, path: PathText, *, sort: bool = False) -> Workload:
    """Parse a workload in SWF; `path` gives its name.

    Jobs must be sorted by submit time, unless `sort` is true. Sorting keeps the order of jobs with equal times. The
    size is field 8, or field 5 if field 8 is missing. Jobs with submit time -1, which means missing, are left out and
    counted.
    """
    reader = _Reader(str(path))
    reader.read(stream)
    return reader.workload(path, sort=sort)


class _Reader:
    """A parser that reads the header and fields of an SWF file.

    It reads one block of lines at a time.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        #: {directive: its lines}
        self.header: dict[str, list[str]] = {}
        #: [field][block]: values, shape (lines of the block,)
        self.parts: list[list[Floats]] = [[] for _ in FIELDS]
        #: [block]: line numbers, shape (lines of the block,)
        self.line_parts: list[Ints] = []
        self._directive: str | None = None

    def read(self, stream: io.BufferedReader) -> None:
        flat: list[bytes] = []
        numbers: list[int] = []
        suspect = False
        for number, line in enumerate(stream, start=1):
            fields = line.removeprefix(b"\xef\xbb\xbf").split() if number == 1 else line.split()
            if not fields:
                self._directive = None
                continue
            if b"\0" in line:
                raise binary_file(f"{self.where}, line {number}")
            if fields[0].startswith(b";"):
                self._comment(line)
                continue
            if len(fields) != len(FIELDS):
                self._block(flat, numbers, suspect)  # report a fault in an earlier line first
                raise self._wrong_count(fields, number, first=not self.line_parts)
            suspect = suspect or b"_" in line  # float() accepts 1_000, SWF does not
            self._directive = None
            flat += fields
            numbers.append(number)
            if len(numbers) == _BLOCK:
                self._block(flat, numbers, suspect)
                flat, numbers, suspect = [], [], False
        self._block(flat, numbers, suspect)

    def _comment(self, line: bytes) -> None:
        """Store a header directive, or a line that continues it after a tab or two spaces."""
        text = line.decode("utf-8-sig", "replace").strip()  # some archived headers are not UTF-8
        match = _DIRECTIVE.fullmatch(text)
        if match:
            self._directive = match[1]
            self.header.setdefault(match[1], []).append(_one_line(match[2]))
        elif not text.lstrip(";").strip():
            self._directive = None
        elif self._directive and _CONTINUED.match(text):
            self.header[self._directive].append(_one_line(text[1:]))

    def _block(self, flat: list[bytes], numbers: list[int], suspect: bool) -> None:
        if not numbers:
            return
        try:
            values = np.array(list(map(float, flat)), dtype=np.float64).reshape(len(numbers), len(FIELDS))
        except ValueError:
            values = None
        if values is None or suspect or not _acceptable(values):
            raise self._first_fault(flat, numbers)
        self.line_parts.append(np.array(numbers, dtype=np.int64))
        for index, parts in enumerate(self.parts):
            parts.append(values[:, index].copy())  # a copy: a view would keep all 18 fields in memory

    def _first_fault(self, flat: list[bytes], numbers: list[int]) -> TraceError:
        """Return the error of the first invalid field in a block of lines."""
        places = ((number, index) for number in numbers for index in range(len(FIELDS)))
        faults = (self._check(index, text, number) for (number, index), text in zip(places, flat, strict=True))
        return next(fault for fault in faults if fault)

    def _check(self, index: int, text: bytes, number: int) -> TraceError | None:
        """Return the error in a field of a line; None if the field is valid."""
        expected = "a whole number" if FIELDS[index].whole else "a number"
        if index in _NOT_NEGATIVE:
            expected += " that is not negative"
        try:
            value = float(text) if b"_" not in text else None
        except ValueError:
            value = None
        if value is None:
            return self._fault("is not a number", number, index, expected, text)
        if not np.isfinite(value):
            return self._fault("is not finite", number, index, expected, text)
        if abs(value) > LARGEST:
            return self._fault("is too large", number, index, f"at most {decimal_text(LARGEST)}", text)
        if FIELDS[index].whole and not value.is_integer():
            return self._fault("is not a whole number", number, index, expected, text)
        if index in _NOT_NEGATIVE and value < 0 and (index == _JOB or value != -1):
            return self._fault("is negative", number, index, expected, text)
        return None

    def _fault(self, what: str, number: int, index: int, expected: str, text: bytes) -> TraceError:
        where = f"{self.where}, line {number}, field {index + 1} ({FIELDS[index].label})"
        hint = "Correct the line, or put ';' before it to leave it out."
        return _not_text(where, text) or line_fault(where, what, expected, _readable(text), hint)

    def _wrong_count(self, fields: list[bytes], number: int, *, first: bool) -> TraceError:
        what = "too few fields" if len(fields) < len(FIELDS) else "too many fields"
        where = f"{self.where}, line {number}"
        line = b" ".join(fields)
        if first and len(fields) == _OLD_HAIZEA:
            return _not_text(where, line) or TraceError(
                "this is no SWF: ten columns are Haizea's old text of leases, which is not supported",
                where=where,
                expected=f"{len(FIELDS)} numbers, or Haizea's XML of leases",
                hint="Write the leases as XML; 'pipistrelle help workloads' shows a trace.",
            )
        sacct = (
            "Slurm's accounting must be output of 'sacct --parsable2' with a header that has JobID; "
            "without a header, name the columns: --columns JobID,Submit,..."
        )
        hint = sacct if line.count(b"|") > 1 else "Check that the file is SWF and complete."
        return _not_text(where, line) or TraceError(
            what,
            where=where,
            expected=f"{len(FIELDS)} numbers, or a comment after ';'",
            found=f"{len(fields)}, from {quoted(_readable(fields[0]))} to {quoted(_readable(fields[-1]))}",
            hint=hint,
        )

    def _take(self, index: int) -> Floats:
        """Return all values read for a field, shape (n,).

        The reader drops its copy, to free the memory.
        """
        column = np.concatenate(self.parts[index])
        self.parts[index] = []
        return column

    def workload(self, path: PathText, *, sort: bool) -> Workload:
        if not self.line_parts:
            raise TraceError(
                "has no jobs", where=self.where, expected="lines of 18 numbers", hint="Check that the file is complete."
            )
        lines = np.concatenate(self.line_parts)
        jobs = self._take(_JOB).astype(np.int64)
        self._check_unique(jobs, lines)
        submit = self._take(_SUBMIT)
        told = np.flatnonzero(submit >= 0)
        missing = submit.size - told.size
        if not told.size:
            raise TraceError(
                "no job has a submit time", where=self.where, expected="field 2 in seconds, -1 where it is missing"
            )
        if not sort:
            self._check_order(submit[told], lines[told])
        runtime, walltime = self._take(_RUNTIME), self._take(_WALLTIME)
        requested = self._take(_REQUESTED).astype(np.int64)
        allocated = self.parts[_ALLOCATED]
        size = np.where(requested > 0, requested, np.concatenate(allocated).astype(np.int64))
        columns: dict[str, Ints] = {}
        measures: dict[str, Floats] = {}
        for index, field in enumerate(FIELDS):
            if field.column is None:
                continue
            values = self._take(index)
            if np.all(values == -1):
                continue
            if field.whole:
                columns[field.column] = values.astype(np.int64)
            else:
                measures[field.column] = values
        header = {key: "\n".join(texts) for key, texts in self.header.items()}
        workload = Workload(
            name=trace_name(path),
            source=PurePath(path).name,
            ids=list(map(str, jobs.tolist())),
            submit=submit,
            size=size,
            walltime=walltime,
            runtime=runtime,
            columns=columns,
            measures=measures,
            machine_size=_machine_size(header),
            epoch=_epoch(header),
            timezone=header.get("TimeZoneString") or None,
            header=header,
            format=FORMAT,
            left_out={NO_SUBMIT: missing} if missing else {},
        )
        if sort:
            return workload.select(told[np.argsort(submit[told], kind="stable")])
        return workload.select(told) if missing else workload

    def _check_unique(self, jobs: Ints, lines: Ints) -> None:
        values, first = np.unique(jobs, return_index=True)
        if values.size == jobs.size:
            return
        repeated = np.ones(jobs.size, dtype=np.bool_)
        repeated[first] = False
        again = int(np.flatnonzero(repeated)[0])
        before = int(first[np.searchsorted(values, jobs[again])])
        raise TraceError(
            "the job number occurs twice",
            where=f"{self.where}, line {lines[again]}, field 1 (job number)",
            expected="each job number once",
            found=f"{jobs[again]}, as on line {lines[before]}",
            hint="Remove one of the two lines, or give it another number.",
        )

    def _check_order(self, submit: Floats, lines: Ints) -> None:
        back = np.flatnonzero(np.diff(submit) < 0)
        if not back.size:
            return
        row = int(back[0]) + 1
        raise TraceError(
            "the jobs are not in the order of their submit times",
            where=f"{self.where}, line {lines[row]}, field 2 (submit time)",
            expected=f"at least {decimal_text(submit[row - 1])}, as on line {lines[row - 1]}",
            found=decimal_text(submit[row]),
            hint="Use --sort to sort them while reading.",
        )


def _acceptable(values: Floats) -> bool:
    """Return whether every value is in the allowed range; NaN is not."""
    whole = values[:, _WHOLE]
    return bool(
        np.all(np.abs(values) <= LARGEST)
        and np.array_equal(whole, np.floor(whole))
        and np.all(values[:, _JOB] >= 0)
        and np.all((values[:, _SUBMIT] >= 0) | (values[:, _SUBMIT] == -1))
    )


def _not_text(where: str, text: bytes) -> TraceError | None:
    try:
        text.decode()
    except UnicodeDecodeError:
        return TraceError(
            "is not UTF-8 text",
            where=where,
            found=quoted(_readable(text)),
            hint="Only comments may contain other bytes.",
        )
    return None


def _readable(text: bytes) -> str:
    """Return the text with bytes that are not UTF-8 as ``\\xff``."""
    return text.decode("utf-8", "backslashreplace")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _machine_size(header: dict[str, str]) -> int | None:
    """Return the machine size of the header: MaxProcs, or else MaxNodes, if above 0."""
    for key in ("MaxProcs", "MaxNodes"):
        match = _COUNT.match(header.get(key, ""))
        if match and int(match[0]) > 0:
            return int(match[0])
    return None


def _epoch(header: dict[str, str]) -> float | None:
    try:
        value = float(header.get("UnixStartTime", "nan"))
    except ValueError:
        return None
    return value if 0 <= value <= LARGEST else None


def swf_chunks(workload: Workload) -> Iterator[bytes]:
    """Return a workload as SWF text, in pieces.

    Errors are raised before the first piece. A job without a time limit gets the requested time -1. Profile names are
    lost. Names of users, groups, queues and partitions become numbers, which the header explains. Only one preceding
    job of each job's dependencies is kept.
    """
    require_runtimes(workload, "SWF")
    require_ids(workload, "SWF", _is_number, "a whole number without leading zeros")
    return _chunks(numbered(workload))


def _is_number(job: str) -> bool:
    return is_plain_number(job, 16) and int(job) <= LARGEST


def _chunks(workload: Workload) -> Iterator[bytes]:
    yield _header_text(workload).encode()
    fixed: dict[int, NDArray[np.float64] | NDArray[np.int64]] = {
        _SUBMIT: workload.submit,
        _RUNTIME: workload.runtime,
        _REQUESTED: workload.size,
        _WALLTIME: np.where(np.isinf(workload.walltime), -1.0, workload.walltime),
    }
    for start in range(0, len(workload), _BLOCK):
        rows = slice(start, start + _BLOCK)
        ids = workload.ids[rows]
        texts = [ids]
        for index, field in enumerate(FIELDS[1:], start=1):
            column = fixed.get(index)
            if column is None and field.column:
                column = workload.columns.get(field.column, workload.measures.get(field.column))
            texts.append(["-1"] * len(ids) if column is None else decimal_texts(column[rows].astype(np.float64)))
        yield "".join(" ".join(fields) + "\n" for fields in zip(*texts, strict=True)).encode()


def _header_text(workload: Workload) -> str:
    """Return the header's lines.

    Machine size, epoch and time zone are the current ones.
    """
    header = dict(workload.header)
    for key, now, old in (
        ("MaxProcs", workload.machine_size, _machine_size(header)),
        ("UnixStartTime", workload.epoch, _epoch(header)),
        ("TimeZoneString", workload.timezone, header.get("TimeZoneString") or None),
    ):
        if now != old:
            for gone in (key, "MaxNodes") if key == "MaxProcs" else (key,):
                header.pop(gone, None)
            if now is not None:
                header[key] = now if isinstance(now, str) else decimal_text(now)
    return "".join(f"; {key}: {line}".rstrip() + "\n" for key, value in header.items() for line in value.split("\n"))
