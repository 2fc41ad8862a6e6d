"""Read accounting logs of PBS Pro, OpenPBS and Torque."""

import io
import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from pipistrelle.protocol.base.errors import PipistrelleError, quoted
from pipistrelle.protocol.resources.amounts import MILLI, parse_memory
from pipistrelle.protocol.resources.request import Request
from pipistrelle.traces.errors import TraceError, counted, line_fault
from pipistrelle.traces.logs.job_table import JobLog, LogOptions, Record, Status, fault, numbered_lines, whole_number
from pipistrelle.traces.logs.kinds import Units
from pipistrelle.traces.logs.times import Clock, length
from pipistrelle.traces.workload import CONSTRAINT, NODE_LIST, both

_MOST_CHUNKS: Final = 1_000_000
_PLACE: Final = "Resource_List.place"
_NODECT: Final = "Resource_List.nodect"
_MEMORY: Final = "Resource_List.mem"
_SLOTS: Final = re.compile(r"(\d{1,9})-(\d{1,9})")


#: keys that say what a job requests
ASKING: Final = tuple(f"Resource_List.{name}" for name in ("select", "nodes", "nodect", "ncpus", "procs"))


#: resources that a chunk consumes or that do not describe nodes
_TAKEN: Final = frozenset(
    (
        *("ncpus", "ppn", "ngpus", "gpus", "mem", "vmem", "pmem", "pvmem", "mpiprocs", "ompthreads", "nodect", "host"),
        *("vnode", "naccelerators", "nmics", "mics", "walltime", "cput", "file"),
    )
)
#: Torque's modes of GPU use
_MODES: Final = frozenset(("exclusive", "exclusive_thread", "exclusive_process", "shared", "default", "reseterr"))
_AMOUNT: Final = re.compile(r"[0-9.]+([kmgtp]?[bw])?", re.IGNORECASE)
_WORD: Final = re.compile(r"[^\s&|()=,\[\]{}*^\"']+")


class Chunks(NamedTuple):
    """The chunks of a job: their number, all their GPUs, and what each chunk requests.

    ``processors``, ``gpus`` and ``memory`` (MiB) are per chunk, -1 if chunks differ. The other numbers are totals of
    all chunks. ``constraint`` is "" if any node will do. ``unknown`` are the names of other amounts, which are ignored.
    """

    chunks: int
    all_gpus: int
    processors: int
    gpus: int
    constraint: str
    memory: int
    all_processors: int
    all_memory: int
    unknown: frozenset[str]


def asked_of_nodes(values: Mapping[str, str], place: str) -> Chunks:
    """Parse what a job requests of its nodes in PBS's ``select`` or ``nodes``.

    Node properties are texts or booleans, such as ``gpu_model=a100`` or ``infiniband=True``; in Torque they are single
    words. Numbers are amounts that the chunk consumes. If chunks request different nodes, each chunk may use any of
    these nodes.
    """
    key = next((key for key in ("Resource_List.select", "Resource_List.nodes") if values.get(key)), "")
    count = all_gpus = all_processors = all_memory = 0
    each: set[tuple[int, int, int]] = set()
    constraints: list[str] = []
    unknown = set()
    for chunk in values[key].split("+") if key else ():
        many, parts = _counted(chunk, place, key)
        numbers = {"processors": 1, "gpus": 0}
        memory = 0
        words: list[str] = []
        for part in parts:
            name, is_number, value = part.partition("=")
            if is_number and name in ("ncpus", "ppn", "ngpus", "gpus"):
                kind = "processors" if name in ("ncpus", "ppn") else "gpus"
                numbers[kind] = whole_number(value, place, key)
            elif is_number and name == "mem":
                memory = _memory(value, place, key)
            elif word := _property(name, value, bool(is_number)):
                words.append(word)
            elif is_number and name not in _TAKEN and _AMOUNT.fullmatch(value):
                unknown.add(name)
        count += many
        all_gpus += many * numbers["gpus"]
        all_processors += many * numbers["processors"]
        all_memory += many * memory
        each.add((numbers["processors"], numbers["gpus"], memory))
        constraints.append("&".join(words))
    processors, gpus, memory = each.pop() if len(each) == 1 else (-1, -1, -1)
    constraint = "" if "" in constraints else "|".join(dict.fromkeys(constraints))
    return Chunks(count, all_gpus, processors, gpus, constraint, memory, all_processors, all_memory, frozenset(unknown))


def _counted(chunk: str, place: str, key: str) -> tuple[int, list[str]]:
    """Return how many times a chunk is requested, and its parts.

    A chunk is such as ``2:ncpus=24`` or ``ncpus=24``. In Torque, the first part may be the name of a node.
    """
    first, *parts = chunk.split(":")
    if first.isdecimal():
        return whole_number(first, place, key), parts
    return 1, [first, *parts] if "=" in first else parts


def _memory(text: str, place: str, key: str) -> int:
    """Return an amount of memory in MiB.

    Examples are ``64gb``, ``2000mb``, ``500kb``; a number without a unit is in bytes.
    """
    form = text.lower().removesuffix("w").removesuffix("b")
    try:
        return parse_memory(form, letter="B") if text else 0
    except PipistrelleError as error:
        raise fault(place, key, "is not an amount of memory", error.expected or "", text) from None


def request_of_chunks(values: Mapping[str, str], place: str) -> Request | None:
    """Return what a job's chunks take on shared nodes, as a request.

    Return None if the job has no ``select`` or ``nodes``. Each chunk becomes one task. ``place=scatter`` puts each
    chunk on its own node, ``pack`` puts all chunks on one node, and ``excl`` makes the job share no node. If chunks
    differ, the job becomes tasks of one core each, with the cores, GPUs and memory of all chunks together.
    """
    asked = asked_of_nodes(values, place)
    if not asked.chunks:
        return None
    arrangement = values.get(_PLACE, "").split(":")
    memory = asked.all_memory
    if not memory and values.get(_MEMORY):
        memory = _memory(values[_MEMORY], place, _MEMORY)
    cores = max(asked.all_processors, 1)
    fields: dict[str, Any] = {"memory_per_core": -(-memory // cores)} if memory else {}
    if not {"excl", "exclhost"}.isdisjoint(arrangement):
        fields["exclusive"] = True
    if asked.processors < 1:
        return Request(tasks=cores, gpus=asked.all_gpus, **fields)
    if not {"scatter", "vscatter"}.isdisjoint(arrangement):
        fields |= {"nodes": asked.chunks, "most_nodes": asked.chunks, "tasks_per_node": 1}
    elif "pack" in arrangement:
        fields |= {"nodes": 1, "most_nodes": 1}
    return Request(tasks=asked.chunks, cores_per_task=asked.processors * MILLI, gpus_per_task=asked.gpus, **fields)


def _property(name: str, value: str, has_value: bool) -> str:
    """Return the constraint for one part of a chunk; "" if it is no node property."""
    if name in _TAKEN or _WORD.fullmatch(name) is None:
        return ""
    if not has_value:
        return "" if name in _MODES else name
    if _AMOUNT.fullmatch(value) or _WORD.fullmatch(value) is None:
        return ""
    return f"{name}={value.lower() if value.lower() in ('true', 'false') else value}"


def requested_units(values: Mapping[str, str], ran: int, units: Units, place: str) -> int:
    """Return how many units a job requests; -1 if unknown.

    - ``units`` = ``nodes``: nodect, or else the number in select or nodes. Chunks may share a node, so the result is at
      most `ran`. If these are absent, the result is `ran`. If `ran` is unknown, too, a job with ncpus or procs has one
      node.
    - Otherwise: the largest of ncpus, procs and the sum over select or nodes. If these are absent, the result is `ran`,
      or else nodect.

    Args:
        values: {key of the records: value}, such as ``Resource_List.nodect``.
        ran: units on which the job ran, -1 if unknown.
        place: file and line, for errors.
    """
    chunks = [
        (key, _chunks(values[key], place, key))
        for key in ("Resource_List.select", "Resource_List.nodes", _NODECT)
        if values.get(key) and (key != _NODECT or ":" in values[key])  # some Torque users write a chunk into nodect
    ]
    counted = chunks[0][1] if chunks else None
    numbers = {
        key: whole_number(values[f"Resource_List.{key}"].partition(":")[0], place, f"Resource_List.{key}")
        for key in ("nodect", "ncpus", "procs")
        if values.get(f"Resource_List.{key}")
    }
    if units == "nodes":
        asked = numbers.get("nodect") or (counted[0] if counted else 0)
        if ran > 0:
            return min(asked, ran) if asked else ran
        return asked or (1 if numbers else -1)
    asked = max(numbers.get("ncpus", 0), numbers.get("procs", 0), counted[1] if counted else 0)
    return asked or (ran if ran > 0 else numbers.get("nodect", -1))


def _chunks(text: str, place: str, key: str) -> tuple[int, int]:
    """Return (nodes, processors) that a text requests.

    Examples are ``2:ncpus=24+1:ncpus=12``, ``2:ppn=8`` and ``n1+n2``.
    """
    nodes = processors = 0
    for chunk in text.split("+"):
        count, parts = _counted(chunk, place, key)
        each = 1
        for part in parts:
            name, is_number, value = part.partition("=")
            if is_number and name in ("ncpus", "ppn"):
                each = whole_number(value, place, key)
        nodes += count
        processors += count * max(each, 1)
        if nodes > _MOST_CHUNKS * 1000:
            raise fault(place, key, "is too large", "fewer nodes", text)
    return nodes, processors


def allocated_units(text: str, units: Units) -> int:
    """Return how many units ``exec_host`` lists; -1 if it is empty.

    Forms: ``n1/0*24+n2/0*24`` (PBS Pro), ``n1/0+n1/1`` or ``n1/0-5,7`` (Torque).
    """
    if not text:
        return -1
    if units == "nodes":
        return len({part.partition("/")[0] for part in text.split("+")})
    processors = 0
    for part in text.split("+"):
        _, _, slots = part.partition("/")
        _, times, count = slots.partition("*")
        if times:
            processors += int(count) if count.isdecimal() and len(count) < 10 else 1
            continue
        for slot in slots.split(","):
            span = _SLOTS.fullmatch(slot)
            processors += max(int(span[2]) - int(span[1]) + 1, 1) if span else 1
    return processors


_SERVER: Final = re.compile(r"(\d+(?:\[\d*\])?)\.[\w.-]+", re.ASCII)
_MOVED: Final = re.compile(r"@[\w.-]+", re.ASCII)
#: record types of jobs: queued, started, requeued (R, T), ended
_OF_JOBS: Final = frozenset("QSRTE")
#: {label: its PBS keys; the first key present counts}
_LABELS: Final = {
    "name": ("jobname",),
    "user": ("user",),
    "group": ("group",),
    "account": ("account", "project"),
    "queue": ("queue",),
    "qos": ("qos", "Resource_List.qos"),
    "dependency": ("depend", "dependency"),
}
_KEYS: Final = frozenset(
    (
        *(key for keys in _LABELS.values() for key in keys),
        *("ctime", "qtime", "start", "end", "exec_host", "Exit_status", "resources_used.walltime"),
        *("Resource_List.walltime", _MEMORY),
        *(*ASKING, _PLACE),
    )
)
#: an end record with these keys repeats all earlier values, except perhaps dependencies and QOS
_WHOLE_RECORD: Final = frozenset(("user", "queue", "start", "end", "exec_host"))
_OF_A_RUN: Final = ("start", "end", "exec_host", "Exit_status", "resources_used.walltime")
_NO_PROJECT: Final = "_pbs_project_default"


class _Job:
    """The values of one job, collected from its accounting records so far."""

    __slots__ = ("deleted", "ended", "place", "queued", "rerun", "texts", "values")

    def __init__(self) -> None:
        self.place = ""
        self.values: dict[str, str] = {}
        #: records not yet merged into `values`; the end record of most jobs has all values
        self.texts: list[str] = []
        self.queued: float | None = None
        self.deleted = False
        self.ended = False
        #: whether the last run ended in a requeue and no further run has begun
        self.rerun = False

    def merge(self) -> None:
        """Update `values` from the accounting records in `texts`, and clear these."""
        for text in self.texts:
            self.values.update(_values(text))
        self.texts.clear()


class PbsLog(JobLog):
    """Reader of PBS accounting records, from one or more files in time order.

    Later records of a job replace earlier values: Q (queued), S (start), a (altered), R or T (requeued), E (end).

    - Submit time: ctime, otherwise qtime, otherwise the time of the Q record.
    - Run time: end - start of the last run, otherwise its resources_used.walltime. A job whose last run has not ended
      has no run time. If a job was requeued and did not start again, its last run is the one before the requeue.
    - Requested time: Resource_List.walltime; no limit if absent.
    - Size: nodes. The option ``units`` can select processors (ncpus, procs or ppn) or GPUs (ngpus) instead.
    - Constraint: the node properties in select or nodes. If ``units`` is ``gpus``, jobs with GPUs need nodes whose
      units are GPUs (``unit=gpu``), and other jobs need whole nodes (``unit=node``). Each chunk of GPUs is on its own
      node.
    - On shared nodes, each chunk is a task with the cores, memory and GPUs of select or nodes.
    - ``place=scatter`` puts one chunk on each node. A job with ``excl`` shares no node.

    Records of complete job arrays, unreadable records, and jobs with only a deletion record are left out. ``timezone``
    is the zone of the date at the start of a line. That date counts only if the record has no Unix time.
    """

    format = "PBS accounting"
    in_parts = True
    lenient = True
    counts_gpus = True

    def __init__(self, options: LogOptions | None = None) -> None:
        super().__init__(options)
        self._clock = Clock(self.zone)
        self._jobs: dict[str, _Job] = {}
        self._ignored: Counter[str] = Counter()

    def read(self, stream: io.BufferedReader, where: str) -> None:
        """Read the records of a file; lines that are not job records are left out."""
        for place, text in numbered_lines(stream, where):
            parts = text.split(";", 3)
            time = self._clock.american(parts[0].strip())
            if len(parts) < 3 or time is None or len(parts[1]) != 1:
                what, form = "the line is not an accounting record", "MM/DD/YYYY HH:MM:SS;TYPE;ID;KEY=VALUE ..."
                hint = "Check that the file is complete, and of PBS or Torque."
                self.leave_out(line_fault(place, what, form, text, hint))
                continue
            name = parts[2].strip()
            if "[]" not in name:
                self._take(parts[1], name, time, parts[3] if len(parts) > 3 else "", place)

    def _take(self, kind: str, name: str, time: float, text: str, place: str) -> None:
        if kind in "DA":  # deleted, or aborted by the server
            job = self._jobs.get(name)
            if job is not None and not job.ended:
                job.deleted = True
            return
        if kind not in _OF_JOBS and (kind != "a" or name not in self._jobs):  # a: attributes altered
            return
        job = self._jobs.get(name)
        if job is None:
            job = self._jobs[name] = _Job()
        if kind == "a":
            if not job.ended:
                job.texts.append(text)
            return
        job.place = place
        if kind == "Q" and job.queued is None:
            job.queued = time
        if kind in "SRT":
            job.ended = job.deleted = False  # the job runs or waits again
        if job.rerun and kind in "STE":  # discard the previous run
            job.rerun = False
            job.merge()
            for key in _OF_A_RUN:
                job.values.pop(key, None)
        if kind == "R":
            job.rerun = True
            job.texts.append(text)
            job.merge()
        elif kind == "E":
            job.ended = True
            values = _values(text)
            if not values.keys() >= _WHOLE_RECORD or any("depend" in one or "qos=" in one for one in job.texts):
                job.merge()
            job.texts.clear()
            job.values.update(values)
        elif not job.ended:
            job.texts.append(text)

    def records(self) -> list[Record]:
        """Return the job records of all files that were read."""
        jobs = self._jobs
        short = len({name.partition(".")[0] for name in jobs}) == len(jobs)  # ids are unique without the server's name
        maker = _Maker(self.options.units, self.names, short=short)
        records = []
        for name, job in jobs.items():
            try:
                records.append(maker.record(name, job))
            except TraceError as fault:
                self.leave_out(fault)
        self._ignored = maker.ignored
        return records

    def remarks(self) -> tuple[str, ...]:
        """Return a message about each resource in select or nodes that is ignored."""
        return tuple(
            f"the resource {quoted(name)} that {counted(count, 'job')} asked for in select or nodes is ignored"
            for name, count in sorted(self._ignored.items())
        )


def _values(text: str) -> dict[str, str]:
    """Return {key: value} of the keys that the reader knows, from a record's text.

    A word without a key extends the value before it.
    """
    values: dict[str, str] = {}
    last = ""
    for word in text.split():
        key, equals, value = word.partition("=")
        if key in _KEYS and equals:
            values[key] = value
            last = key
        elif equals and key[:1].isalpha():
            last = ""
        elif last:
            values[last] = f"{values[last]} {word}"
    return values


class _Sizes(NamedTuple):
    """A job's requested and allocated units, units per node, and node constraint."""

    size: int
    allocated: int
    units_per_node: int
    whole_nodes: int
    constraint: str


def _sizes(values: Mapping[str, str], got: int, units: Units, place: str) -> _Sizes:
    """Return a job's sizes.

    `got` is its number of allocated units, or of allocated nodes if ``units`` is ``gpus``.
    """
    asked = asked_of_nodes(values, place)
    arrangement = values.get(_PLACE, "").split(":")
    alone = 1 if units != "nodes" and not {"excl", "exclhost"}.isdisjoint(arrangement) else -1
    if units == "gpus":
        if not asked.all_gpus:
            size = requested_units(values, got, "nodes", place)
            return _Sizes(size, got, -1, -1, both(asked.constraint, "unit=node"))
        return _Sizes(asked.all_gpus, -1, asked.gpus, alone, both(asked.constraint, "unit=gpu"))
    size = requested_units(values, got, units, place)
    scattered = units == "processors" and not {"scatter", "vscatter"}.isdisjoint(arrangement)
    each = asked.processors if scattered and asked.chunks * asked.processors == size else -1
    return _Sizes(size, got, each, alone, asked.constraint)


class _Maker:
    """A converter from accounting records to job records.

    It parses repeated texts once.
    """

    def __init__(self, units: Units, names: Callable[[str], str], *, short: bool) -> None:
        self._units = units
        self._short = short
        self._names = names
        self._seconds = cache(length)
        #: {(allocated units, request texts): sizes}
        self._sizes: dict[tuple[object, ...], _Sizes] = {}
        #: {request texts: request, and names of ignored amounts}
        self._requests: dict[tuple[object, ...], tuple[Request | None, frozenset[str]]] = {}
        #: {name of an ignored amount: number of jobs that ask for it}
        self.ignored: Counter[str] = Counter()

    def record(self, name: str, job: _Job) -> Record:
        """Return the record of a job."""
        job.merge()
        values, place = job.values, job.place
        submit = _unix(values, "ctime", place)
        if submit is None:
            submit = _unix(values, "qtime", place)
        if submit is None:
            submit = job.queued
        if submit is None:
            raise TraceError(
                "the record has no submit time",
                where=f"{place}, job {quoted(name)}",
                expected="ctime or qtime, or an earlier Q record",
                hint="Correct or remove the line.",
            )
        start, end = _unix(values, "start", place), _unix(values, "end", place)
        runtime = -1.0
        ran = job.ended or job.rerun
        if ran and start and end:
            if end < start:
                raise fault(place, "end", "is before the start", f"at least start={values['start']}", values["end"])
            runtime = end - start
        elif ran and "resources_used.walltime" in values:
            runtime = self._length(values, "resources_used.walltime", place)
        limited = bool(values.get("Resource_List.walltime"))
        labels = self._labels(values)
        sizes = self._asked(values, place)
        if sizes.constraint:
            labels[CONSTRAINT] = self._names(sizes.constraint)
        return Record(
            place=place,
            id=name.partition(".")[0] if self._short else name,
            submit=submit,
            size=sizes.size,
            walltime=self._length(values, "Resource_List.walltime", place) if limited else float("inf"),
            runtime=runtime,
            wait=max(start - submit, 0.0) if start else -1.0,
            allocated=sizes.allocated,
            status=_status(job, values),
            units_per_node=sizes.units_per_node,
            whole_nodes=sizes.whole_nodes,
            labels=labels,
            request=self._request(values, place),
        )

    def _request(self, values: dict[str, str], place: str) -> Request | None:
        key = (values.get(_PLACE), values.get(_MEMORY), *map(values.get, ASKING))
        if key not in self._requests:
            self._requests[key] = request_of_chunks(values, place), asked_of_nodes(values, place).unknown
        request, unknown = self._requests[key]
        self.ignored.update(unknown)
        return request

    def _asked(self, values: dict[str, str], place: str) -> "_Sizes":
        units: Units = self._units
        hosts = values.get("exec_host", "")
        got = allocated_units(hosts, "nodes" if units == "gpus" else units)
        key = (got, values.get(_PLACE), *map(values.get, ASKING))
        sizes = self._sizes.get(key)
        if sizes is None:
            sizes = self._sizes[key] = _sizes(values, got, units, place)
        return sizes

    def _length(self, values: dict[str, str], key: str, place: str) -> float:
        seconds = self._seconds(values[key], 1.0)
        if seconds is None:
            raise fault(place, key, "is not a duration", "HH:MM:SS or seconds", values[key])
        return seconds

    def _labels(self, values: dict[str, str]) -> dict[str, str]:
        labels = {}
        for label, keys in _LABELS.items():
            text = _first(values, keys)
            if text:
                if label == "dependency" and self._short:  # afterok:123.server@server becomes afterok:123
                    text = _SERVER.sub(r"\1", _MOVED.sub("", text))
                labels[label] = self._names(text)
        if hosts := values.get("exec_host"):
            found = dict.fromkeys(part.partition("/")[0].partition(":")[0] for part in hosts.split("+"))
            labels[NODE_LIST] = self._names(",".join(found))
        return labels


def _first(values: dict[str, str], keys: tuple[str, ...]) -> str:
    for key in keys:
        if key in values:
            text = values[key].strip("\"'")
            if text and text != _NO_PROJECT:
                return text
    return ""


def _unix(values: dict[str, str], key: str, place: str) -> float | None:
    text = values.get(key, "")
    return float(whole_number(text, place, key)) if text else None


def _status(job: _Job, values: dict[str, str]) -> Status:
    if job.deleted:
        return Status.CANCELLED
    text = values.get("Exit_status", "")
    if not job.ended or not text:
        return Status.UNKNOWN
    if not re.fullmatch(r"-?[0-9]{1,9}", text):
        raise fault(job.place, "Exit_status", "is not a whole number", "0 or another number", text)
    return Status.COMPLETED if int(text) == 0 else Status.FAILED
