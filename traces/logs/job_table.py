"""Putting a workload together from the jobs of a centre's log: what all readers of such logs share."""

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from pathlib import PurePath
from typing import Final, NamedTuple, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from pipistrelle.protocol.base.errors import did_you_mean, printable, quoted
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.files import PathText, binary_file, trace_name
from pipistrelle.traces.logs.kinds import Units
from pipistrelle.traces.workload import LABELS, LARGEST, Floats, Ints, Workload, decimal_text

#: the numbers of SWF's field 11, status
FAILED: Final = 0
COMPLETED: Final = 1
CANCELLED: Final = 5
UNKNOWN: Final = -1

#: Slurm's states of jobs that have not ended
GOING_ON: Final = frozenset(("PENDING", "RUNNING", "SUSPENDED", "REQUEUED", "RESIZING", "REQUEUE_HOLD"))

_MOST_DIGITS: Final = 15


class LogOptions(NamedTuple):
    """How a centre's log is to be read: what sizes count, and the zone of its clock (None: UTC)."""

    units: Units = "nodes"
    timezone: str | None = None

    def zone(self) -> tzinfo:
        """Return the zone of the log's clock.

        Raises
        ------
        TraceError
            if there is no such zone, or the units are none of `Units`.
        """
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
                f"there is no time zone {quoted(self.timezone)}",
                expected="a name such as Europe/Prague, or UTC",
                hint="The names are those of the tz database.",
            ) from None


class NameNumbers:
    """Makes texts of a log fit for labels: printable, without blanks around; equal ones are one object."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        """Return the text as a label."""
        name = self._known.get(text)
        if name is None:
            name = self._known[text] = printable(text.strip())
        return name


@dataclass(slots=True)
class Record:
    """A job as a reader finds it.

    Parameters
    ----------
    place
        where it stands, for messages: file and line.
    id
        its name; `assemble` checks it.
    submit
        s, in the log's own count: Unix time, or since its beginning.
    size
        units asked for, -1 if the log does not say.
    walltime
        requested time, s, ``inf`` for no limit.
    runtime, wait
        s, -1 if not known.
    allocated
        units that it got, -1 if not known.
    status
        `FAILED`, `COMPLETED`, `CANCELLED` or `UNKNOWN`.
    labels
        as in `Workload.labels`; those that are not known may be absent.
    """

    place: str
    id: str
    submit: float
    size: int
    walltime: float
    runtime: float
    wait: float = -1.0
    allocated: int = -1
    status: int = UNKNOWN
    labels: dict[str, str] = field(default_factory=dict)


def assemble(
    records: list[Record],
    path: PathText,
    *,
    format: str,
    timezone: str | None = None,
    absolute: bool = True,
    machine_size: int | None = None,
) -> Workload:
    """Return the workload of these jobs, by submit time, equal ones in the order of `records`.

    Parameters
    ----------
    path
        serves for the name and for messages.
    absolute
        submit times are Unix times: the first becomes time 0, and the epoch.

    Raises
    ------
    TraceError
        if there is no job, an id is unusable or occurs twice, or a number is out of range.
    """
    if not records:
        raise TraceError("has no jobs", where=str(path), expected=f"jobs of {format}", hint="Check the file.")
    places: dict[str, str] = {}
    for record in records:
        _check(record)
        if record.id in places:
            raise TraceError(
                f"job id {quoted(record.id)} occurs twice",
                where=record.place,
                expected="each id once",
                found=f"the id of the job at {places[record.id]}",
                hint="Leave one of the two out, or give it another id.",
            )
        places[record.id] = record.place
    records = sorted(records, key=lambda record: record.submit)
    submit = np.array([record.submit for record in records], dtype=np.float64)
    epoch = float(np.floor(submit[0])) if absolute else None
    return Workload(
        name=trace_name(path),
        source=PurePath(path).name,
        ids=[record.id for record in records],
        submit=submit - (epoch or 0.0),
        size=np.array([record.size for record in records], dtype=np.int64),
        walltime=np.array([record.walltime for record in records], dtype=np.float64),
        runtime=np.array([record.runtime for record in records], dtype=np.float64),
        columns=_columns(records),
        measures=_measures(records),
        labels=_labels(records),
        machine_size=machine_size,
        epoch=epoch,
        timezone=timezone,
        format=format,
    )


def _check(record: Record) -> None:
    job = record.id
    if not job or not job.isprintable() or " " in job or "!" in job:
        raise TraceError(
            "the job has no usable id",
            where=record.place,
            expected="a printable text without blanks and '!'",
            found=quoted(job),
            hint="Mend the line, or remove it.",
        )
    for name, value in (
        ("submit time", record.submit),
        ("size", record.size),
        ("allocated size", record.allocated),
        ("requested time", record.walltime if record.walltime != float("inf") else 0),
        ("run time", record.runtime),
        ("wait", record.wait),
    ):
        if not -1 <= value <= LARGEST:
            raise TraceError(
                f"the {name} of job {quoted(job)} is out of range",
                where=record.place,
                expected=f"0 to {decimal_text(LARGEST)}",
                found=decimal_text(value),
                hint="Mend the line, or remove it.",
            )


def _columns(records: list[Record]) -> dict[str, Ints]:
    columns = {
        "allocated": np.array([record.allocated for record in records], dtype=np.int64),
        "status": np.array([record.status for record in records], dtype=np.int64),
    }
    return {name: column for name, column in columns.items() if np.any(column != -1)}


def _measures(records: list[Record]) -> dict[str, Floats]:
    wait = np.array([record.wait for record in records], dtype=np.float64)
    return {"wait": wait} if np.any(wait != -1) else {}


def _labels(records: list[Record]) -> dict[str, list[str]]:
    """Return the labels that at least one job has."""
    columns = {name: [record.labels.get(name, "") for record in records] for name in LABELS}
    return {name: texts for name, texts in columns.items() if any(texts)}


def numbered_lines(stream: io.BufferedReader, where: str) -> Iterator[tuple[str, str]]:
    """Yield (place, line) for the lines that are not blank, without their ends; a place is ``where, line 7``.

    Bytes that are not UTF-8 become texts such as ``\\xe4``: names in logs may have them.

    Raises
    ------
    TraceError
        at a line with a NUL byte.
    """
    for number, line in enumerate(stream, start=1):
        if b"\0" in line:
            raise binary_file(f"{where}, line {number}")
        text = line.decode("utf-8-sig" if number == 1 else "utf-8", "backslashreplace").rstrip("\r\n")
        if text and not text.isspace():
            yield f"{where}, line {number}", text


def whole_number(text: str, place: str, name: str) -> int:
    """Return a whole number of at most 15 digits, not negative; `name` is the field's, for messages.

    Raises
    ------
    TraceError
        if the text is anything else.
    """
    if text.isdecimal() and text.isascii() and len(text) <= _MOST_DIGITS:
        return int(text)
    raise fault(place, name, "is not a whole number", f"0 or more, at most {_MOST_DIGITS} digits", text)


def fault(place: str, name: str, what: str, expected: str, found: str) -> TraceError:
    """Return the error of a field that cannot be read."""
    return TraceError(
        what,
        where=f"{place}, field {name}",
        expected=expected,
        found=quoted(found),
        hint="Mend the line, or remove it.",
    )
