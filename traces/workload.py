"""The jobs of a trace in columns, as all readers return them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from heapq import merge
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.resources.request import Request

if TYPE_CHECKING:  # profiles import this module
    from pipistrelle.traces.profiles import Profile

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: names of labels, in display order
LABELS: Final = (
    *("name", "user", "group", "account", "queue", "qos", "partition", "dependency", "state", "constraint"),
    "node_list",
    "options",
)
#: label: what a job requires of its nodes; units per node and whole nodes are columns
CONSTRAINT: Final = "constraint"
#: measure: time from submission to cancellation of a job that had not started (s)
CANCELLED_AFTER: Final = "cancelled_after"
#: label: names of the nodes that a job got
NODE_LIST: Final = "node_list"
#: label: submission options that only the scheduler uses, such as ``--begin=now+90 --nice=50``
OPTIONS: Final = "options"
PER_NODE: Final = "units_per_node"
WHOLE: Final = "whole_nodes"
#: member of a job's JSON object: what it takes of shared nodes
REQUEST: Final = "request"

#: upper bound for times (s), sizes and counts; above it neighbouring integers share one double
LARGEST = float(2**53)


def is_number(text: str, most: int = 15) -> bool:
    """Return whether a text is an unsigned whole number of at most `most` digits."""
    return text.isdecimal() and text.isascii() and len(text) <= most


def is_plain_number(text: str, most: int = 15) -> bool:
    """Return whether a text is an unsigned whole number without leading zeros."""
    return is_number(text, most) and str(int(text)) == text


def decimal_text(value: float) -> str:
    """Return the shortest exact decimal text of a double, without exponent."""
    text = repr(float(value))
    if "e" in text:
        text = format(Decimal(text), "f")
    return text.removesuffix(".0")


def decimal_texts(values: Floats) -> list[str]:
    """Return `decimal_text` of each value, fast if all are whole numbers."""
    if np.array_equal(values, np.floor(values)) and bool(np.all(np.abs(values) <= LARGEST)):
        return list(map(str, values.astype(np.int64).tolist()))
    return [decimal_text(value) for value in values.tolist()]


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """The jobs of one trace as columns, whose arrays must not be changed.

    Args:
        source: the file's name without folder, or the generator's name.
        format: the kind of file, e.g. ``Slurm sacct``, or ""; equality ignores it.
        ids: job names without workload prefix, unique; length n.
        submit: submit times, s after time 0, shape (n,), finite and >= 0.
        size: units each job requests, shape (n,); not positive if missing (`clean` drops such jobs).
        walltime: requested times (s), shape (n,); inf: no limit; not positive: missing (`clean` drops such jobs).
        runtime: logged run times (s), shape (n,), not cut at the walltime; not positive if missing. With a profile it
            is the sum of the profile's delays, or NaN if it depends on the hosts.
        profiles: profile name of each job, length n; None for a log.
        table: the usable profiles by name: those of jobs, their parts, and others of the file; None for a log.
        profile_json: the JSON object of every profile of the file, by name, in file order; None for a log.
        job_json: the JSON object of each job as in the file, with ``id`` and unknown fields, length n; None for a log.
            `pipistrelle.traces.batsim.text.job_text` makes the text for schedulers.
        columns: whole-number fields of the log by name (-1: missing), shape (n,) each: ``allocated``, ``status``,
            ``user``, ``group``, ``application``, ``queue``, ``partition``, ``preceding``, ``units_per_node`` (requested
            units per node) and ``whole_nodes`` (1 if the job shares no node). Fields without any value are absent.
        measures: fractional fields, likewise: ``wait`` (s), ``cpu_time`` (s), ``memory`` (KB), ``requested_memory``
            (KB), ``think_time`` (s), ``exact_wait`` (s from submission to the time at which a job must start),
            ``cancelled_after`` (s from submission to cancellation in the queue; see
            `pipistrelle.traces.clean.with_cancellations`).
        labels: text fields by name, length n each, "" if missing: ``name``, ``user``, ``group``, ``account``,
            ``queue``, ``qos``, ``partition``, ``dependency`` (such as ``afterok:17``), ``state``, ``constraint`` (on
            nodes, in Slurm's syntax: ``gpu_model=a100&nvlink``), ``node_list`` (nodes that the job got:
            ``n[001-004],n007``), ``options`` (options of sbatch that only the scheduler uses: ``--begin=now+90
            --nice=50``).
        requests: what each job takes on shared nodes, length n. The entry None means ``size`` processors. None instead
            of the list means that no job has a request.
        epoch: Unix time (s) of time 0, or None.
        timezone: the machine's time zone, e.g. ``Europe/Stockholm``, or None.
        header: the file's header by directive; lines of a repeated directive are joined by newlines.
        left_out: how many jobs the reader left out, by reason; `clean` includes them in its counts.
        faults: messages about unreadable records that were left out, each with its line.
        remarks: messages about what the reader ignored, each with its count.
    """

    name: str
    source: str
    ids: list[str]
    submit: Floats
    size: Ints
    walltime: Floats
    runtime: Floats
    profiles: list[str] | None = None
    table: "dict[str, Profile] | None" = None
    profile_json: dict[str, bytes] | None = None
    job_json: list[bytes] | None = None
    columns: dict[str, Ints] = field(default_factory=dict)
    measures: dict[str, Floats] = field(default_factory=dict)
    labels: dict[str, list[str]] = field(default_factory=dict)
    requests: list[Request | None] | None = None
    machine_size: int | None = None
    epoch: float | None = None
    timezone: str | None = None
    header: dict[str, str] = field(default_factory=dict)
    format: str = ""
    left_out: dict[str, int] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.ids)
        if self.profiles is not None and len(self.profiles) != count:
            raise ValueError(f"{len(self.profiles)} profiles for {count} jobs")
        if self.job_json is not None and len(self.job_json) != count:
            raise ValueError(f"{len(self.job_json)} JSON objects for {count} jobs")
        if self.requests is not None and len(self.requests) != count:
            raise ValueError(f"{len(self.requests)} requests for {count} jobs")
        for name, texts in self.labels.items():
            if len(texts) != count:
                raise ValueError(f"{len(texts)} texts of {name} for {count} jobs")
        floats = {"submit": self.submit, "walltime": self.walltime, "runtime": self.runtime, **self.measures}
        ints = {"size": self.size, **self.columns}
        for group, dtype in ((floats, np.float64), (ints, np.int64)):
            for name, array in group.items():
                if array.shape != (count,) or array.dtype != dtype:
                    raise ValueError(f"{name} must be {dtype.__name__}[{count}], not {array.dtype}{array.shape}")

    def __len__(self) -> int:
        return len(self.ids)

    def __eq__(self, other: object) -> bool:
        """Compare the jobs; JSON text and unused profiles do not count."""
        if not isinstance(other, Workload):
            return NotImplemented
        return (
            self._fixed() == other._fixed()
            and self.labels == other.labels
            and all(_same(mine, its) for mine, its in zip(self._core(), other._core(), strict=True))
            and _same_columns(self.columns, other.columns)
            and _same_columns(self.measures, other.measures)
        )

    __hash__ = None  # type: ignore[assignment]  # arrays are mutable

    def _fixed(self) -> tuple[object, ...]:
        fixed = (self.name, self.source, self.machine_size, self.epoch, self.timezone, self.header)
        return (*fixed, self.ids, self.profiles, self.requests, self._work())

    def _work(self) -> "dict[str, Profile | None] | None":
        """Return {profile name: profile} of the profiles that jobs use.

        The profile is None if it is unusable. The result is None for a log.
        """
        if self.table is None or self.profiles is None:
            return None
        return {name: self.table.get(name) for name in set(self.profiles)}

    def _core(self) -> tuple[NDArray[Any], ...]:
        return (self.submit, self.size, self.walltime, self.runtime)

    def profile_of(self, index: int) -> str:
        """Return the profile name of a job.

        In a log this is the run time, such as ``3477``.
        """
        if self.profiles is not None:
            return self.profiles[index]
        return decimal_text(float(self.runtime[index]))

    def select(self, which: NDArray[np.bool_] | NDArray[np.integer[Any]] | Sequence[int]) -> "Workload":
        """Return some of the jobs, by a mask of shape (n,) or by indices in order."""
        chosen = np.asarray(which)
        if chosen.dtype == np.bool_:
            if chosen.shape != (len(self),):
                raise ValueError(f"a mask of shape {chosen.shape} for {len(self)} jobs")
            chosen = np.flatnonzero(chosen)
        elif chosen.size == 0:  # an empty list makes an array of floats, which numpy refuses as an index
            chosen = np.zeros(0, dtype=np.int64)
        rows = chosen.tolist()
        return replace(
            self,
            ids=[self.ids[row] for row in rows],
            submit=self.submit[chosen],
            size=self.size[chosen],
            walltime=self.walltime[chosen],
            runtime=self.runtime[chosen],
            profiles=None if self.profiles is None else [self.profiles[row] for row in rows],
            job_json=None if self.job_json is None else [self.job_json[row] for row in rows],
            columns={name: column[chosen] for name, column in self.columns.items()},
            measures={name: column[chosen] for name, column in self.measures.items()},
            labels={name: [texts[row] for row in rows] for name, texts in self.labels.items()},
            requests=None if self.requests is None else [self.requests[row] for row in rows],
            header=dict(self.header),
        )


def label_column(workload: Workload, name: str) -> list[str] | None:
    """Return a text field of each job, such as ``user``, length n; "" if missing.

    A job's text is its label, or else its number in the log, such as ``7``. The result is None if the log has
    neither. Do not change the list, because it may belong to the workload.
    """
    texts = workload.labels.get(name)
    column = workload.columns.get(name)
    if column is None:
        return texts
    numbers = column.tolist()
    written = {number: str(number) for number in set(numbers)} | {-1: ""}  # few distinct values
    return either(texts, [written[number] for number in numbers])


def request_of(workload: Workload, row: int) -> dict[str, str | int | bool | Request]:
    """Return what a job requires of its nodes, as members of its JSON object."""
    found: dict[str, str | int | bool | Request] = {}
    texts = workload.labels.get(CONSTRAINT)
    if texts is not None and texts[row]:
        found[CONSTRAINT] = texts[row]
    for name in (PER_NODE, WHOLE):
        column = workload.columns.get(name)
        if column is not None and column[row] > 0:
            found[name] = name == WHOLE or int(column[row])
    request = None if workload.requests is None else workload.requests[row]
    if request is not None:
        found[REQUEST] = request
    return found


def either(texts: list[str] | None, others: list[str]) -> list[str]:
    """Return each job's text in `texts` or, if that is empty, in `others`; length n."""
    return others if texts is None else [text or other for text, other in zip(texts, others, strict=True)]


def _same(mine: NDArray[Any], its: NDArray[Any]) -> bool:
    """Return whether two columns are equal; NaN equals NaN."""
    return np.array_equal(mine, its, equal_nan=True)


def _same_columns(mine: dict[str, NDArray[Any]], its: dict[str, NDArray[Any]]) -> bool:
    return mine.keys() == its.keys() and all(_same(mine[name], its[name]) for name in mine)


#: rows converted from arrays to numbers at a time
_BLOCK = 4096


def submissions(workloads: Mapping[str, Workload]) -> Iterator[tuple[str, int]]:
    """Yield (prefix, row) of every job of some workloads, by submit time.

    Jobs with equal times are in the order of `workloads`, then by row. The jobs of each workload must be sorted by
    submit time, as readers and `clean` leave them.
    """
    if len(workloads) == 1:
        for prefix, workload in workloads.items():
            yield from ((prefix, row) for row in range(len(workload)))
        return
    streams = (_rows(workload, place, prefix) for place, (prefix, workload) in enumerate(workloads.items()))
    for _time, _place, row, prefix in merge(*streams):
        yield prefix, row


def _rows(workload: Workload, place: int, prefix: str) -> Iterator[tuple[float, int, int, str]]:
    for begin in range(0, len(workload), _BLOCK):
        times = workload.submit[begin : begin + _BLOCK].tolist()
        for row, time in enumerate(times, start=begin):
            yield time, place, row, prefix


def both(one: str, other: str) -> str:
    """Join two constraints on nodes: the result requires both; "" means no constraint."""
    if not one or not other or one == other:
        return one or other
    return "&".join(f"({text})" if "|" in text else text for text in (one, other))
