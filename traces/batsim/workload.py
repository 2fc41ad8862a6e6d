"""Read Batsim's JSON workloads; `pipistrelle.traces.batsim.text` writes them."""

import os
import re
from functools import cache
from pathlib import PurePath
from typing import Final

import msgspec
import numpy as np

from pipistrelle.protocol.base.errors import did_you_mean, printable, quoted
from pipistrelle.protocol.resources.amounts import AmountError
from pipistrelle.protocol.resources.request import Request
from pipistrelle.traces.batsim.json_faults import json_faults
from pipistrelle.traces.batsim.profile_reader import ProfileTable, closest
from pipistrelle.traces.errors import TraceError, counted, line_fault, out_of_range
from pipistrelle.traces.files import PathText, trace_name
from pipistrelle.traces.profiles import ranks_of, require_ranks, runtime_of
from pipistrelle.traces.workload import LABELS, LARGEST, PER_NODE, WHOLE, Ints, Workload, decimal_text

FORMAT: Final = "Batsim JSON"
_NOTHING: Final = msgspec.Raw()


class _Job(msgspec.Struct, gc=False):
    id: int | str
    subtime: float
    res: int
    profile: str
    walltime: float | None = None
    # labels that are neither text nor whole numbers are ignored
    name: msgspec.Raw = _NOTHING
    user: msgspec.Raw = _NOTHING
    group: msgspec.Raw = _NOTHING
    account: msgspec.Raw = _NOTHING
    queue: msgspec.Raw = _NOTHING
    qos: msgspec.Raw = _NOTHING
    partition: msgspec.Raw = _NOTHING
    dependency: msgspec.Raw = _NOTHING
    state: msgspec.Raw = _NOTHING
    constraint: msgspec.Raw = _NOTHING
    node_list: msgspec.Raw = _NOTHING
    options: msgspec.Raw = _NOTHING
    units_per_node: int | None = None
    whole_nodes: bool | None = None
    request: Request | None = None


class _File(msgspec.Struct):
    jobs: list[_Job]
    profiles: dict[str, msgspec.Raw]
    nb_res: int | None = None


class _Asking(msgspec.Struct, gc=False):
    request: dict[str, msgspec.Raw] | None = None


class _Texts(msgspec.Struct):
    jobs: list[msgspec.Raw]


class RegisteredJob(msgspec.Struct, frozen=True):
    """A job that a scheduler registers; times are in seconds, and inf means no limit."""

    name: str
    submit: float
    size: int
    walltime: float
    profile: str


_DECODER = msgspec.json.Decoder(_File)
_TEXTS = msgspec.json.Decoder(_Texts)
_ASKING = msgspec.json.Decoder(_Asking)
_JOB = msgspec.json.Decoder(_Job)
_TEXT = msgspec.json.Decoder(str)
_WHOLE = re.compile(rb"-?[0-9]{1,18}")
_MOST = decimal_text(LARGEST)


def parse_batsim(data: bytes, path: PathText) -> Workload:
    """Parse a workload in Batsim's JSON; `path` gives its name.

    Jobs are sorted by submit time; ties stay in file order. Run times follow from the profiles and are NaN if they
    depend on the hosts. An absent walltime, null or -1 means no limit.

    Members of a job that are named in `LABELS` become labels if they are texts or whole numbers. Unknown fields stay in
    `Workload.job_json` and `Workload.profile_json`. Usage traces are read from the file's folder.
    """
    where = str(path)
    file, texts = _decode(data, where)
    if not file.jobs:
        raise TraceError("has no jobs", where=f"{where}, $.jobs", expected="at least one job", hint="Check the file.")
    if file.nb_res is not None and not 0 < file.nb_res <= LARGEST:
        place, hint = f"{where}, $.nb_res", "nb_res is the number of the machine's resources."
        raise out_of_range("machine's size", place, "a whole number above 0", quoted(file.nb_res), hint)
    table = ProfileTable(file.profiles, where, os.path.dirname(os.fspath(path)) or ".")
    ids: list[str] = []
    rows: dict[str, int] = {}
    #: {profile: (name, run time (s), numbers of hosts it is made for)}; jobs share the name's object
    known: dict[str, tuple[str, float, frozenset[int]]] = {}
    for row, job in enumerate(file.jobs):
        name = _job_name(job, f"{where}, $.jobs[{row}]")
        if name in rows:
            raise TraceError(
                f"job id {quoted(name)} occurs twice",
                where=f"{where}, $.jobs[{row}].id",
                expected="each id once",
                found=f"the id of $.jobs[{rows[name]}]",
                hint="Give one of the two jobs another id.",
            )
        rows[name] = row
        ids.append(name)
        _check_job(job, name, f"{where}, $.jobs[{row}]")
        if job.profile not in known:
            if job.profile not in file.profiles:
                raise TraceError(
                    f"profile {quoted(job.profile)} of job {quoted(name)} does not exist",
                    where=f"{where}, $.jobs[{row}].profile",
                    expected="a name in $.profiles",
                    hint=closest(job.profile, list(file.profiles)),
                )
            profile = table[job.profile]
            known[job.profile] = (job.profile, runtime_of(profile), ranks_of(profile))
        ranks = known[job.profile][2]
        if ranks and ranks != {job.res}:
            require_ranks(table[job.profile], job.res, job=name, where=f"{where}, $.jobs[{row}].res")
    jobs = file.jobs
    submit = np.array([job.subtime for job in jobs], dtype=np.float64)
    workload = Workload(
        name=trace_name(path),
        source=PurePath(path).name,
        ids=ids,
        submit=submit + 0.0,  # a subtime of -0.0 becomes 0.0
        size=np.array([job.res for job in jobs], dtype=np.int64),
        walltime=np.array([_walltime(job) for job in jobs], dtype=np.float64),
        runtime=np.array([known[job.profile][1] for job in jobs], dtype=np.float64),
        profiles=[known[job.profile][0] for job in jobs],
        table=table.usable(),
        profile_json={name: bytes(raw) for name, raw in file.profiles.items()},
        job_json=list(map(bytes, texts)),
        machine_size=file.nb_res,
        columns=_requested(jobs),
        labels=_labels(jobs),
        requests=[job.request for job in jobs] if any(job.request is not None for job in jobs) else None,
        format=FORMAT,
        remarks=tuple(_unknown_members(jobs, texts)),
    )
    return workload.select(np.argsort(submit, kind="stable"))


def _unknown_members(jobs: list[_Job], texts: list[msgspec.Raw]) -> list[str]:
    """Return a message for each unknown member of the jobs' requests.

    The message has the member's name, the number of jobs that have it, and a similar known name.
    """
    known = list(Request.__struct_fields__)
    counts: dict[str, int] = {}
    for job, text in zip(jobs, texts, strict=True):
        if job.request is not None:
            for name in (_ASKING.decode(text).request or {}).keys() - set(known):
                counts[name] = counts.get(name, 0) + 1
    return [
        f"the unknown member {quoted(name)} in the request of {counted(counts[name], 'job')} is ignored. "
        f"{did_you_mean(name, known)}".rstrip()
        for name in sorted(counts)
    ]


def job_of_json(raw: bytes | msgspec.Raw, where: str) -> RegisteredJob:
    """Parse a job that a scheduler registers, and check it like the jobs of a file.

    The walltime must be above 0, or -1 for no limit. In a file, a walltime of 0 is allowed because `clean` drops such
    jobs.
    """
    with json_faults(raw, where):
        job = _JOB.decode(raw)
    name = _job_name(job, where)
    _check_job(job, name, where)
    walltime = _walltime(job)
    if walltime == 0:
        what, expected = f"walltime of job {quoted(name)}", "seconds above 0, or -1 for none"
        raise out_of_range(what, f"{where}.walltime", expected, "0", "Correct the value.")
    return RegisteredJob(name, job.subtime + 0.0, job.res, walltime, job.profile)


def _decode(data: bytes, where: str) -> tuple[_File, list[msgspec.Raw]]:
    """Return the parsed file and the JSON text of each job."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    with json_faults(data, where, ", $"):
        data.decode()  # msgspec does not validate strings that it skips
        return _DECODER.decode(data), _TEXTS.decode(data).jobs


def _job_name(job: _Job, where: str) -> str:
    """Return the job's name without the workload's prefix (``w0!7`` is ``7``)."""
    text = str(job.id)
    name = text.partition("!")[2] if "!" in text else text
    if name and "!" not in name and name.isprintable():
        return name
    expected = "a number or a printable text, after a workload's name and '!' or without"
    raise line_fault(f"{where}.id", "the job has no usable id", expected, text, "Give the job an id of its own.")


def _check_job(job: _Job, name: str, where: str) -> None:
    if not 0 <= job.subtime <= LARGEST:
        what, key, expected, value = "submit time", "subtime", f"seconds from 0 to {_MOST}", job.subtime
    elif not 0 < job.res <= LARGEST:
        what, key, expected, value = "size", "res", f"a whole number from 1 to {_MOST}", job.res
    elif job.walltime is not None and job.walltime != -1 and not 0 <= job.walltime <= LARGEST:
        what, key, expected, value = "walltime", "walltime", f"seconds from 0 to {_MOST}, or -1 for none", job.walltime
    elif job.units_per_node is not None and not 0 < job.units_per_node <= LARGEST:
        what, key, value = "units on each node", PER_NODE, job.units_per_node
        expected = f"a whole number from 1 to {_MOST}"
    else:
        _check_request(job, name, where)
        return
    found = quoted(value if isinstance(value, int) else decimal_text(value))
    raise out_of_range(f"{what} of job {quoted(name)}", f"{where}.{key}", expected, found, "Correct the value.")


def _check_request(job: _Job, name: str, where: str) -> None:
    if job.request is None:
        return
    try:
        job.request.check()
    except AmountError as error:
        raise error.at(f"{where}.request of job {quoted(name)}", TraceError) from None


def label_text(raw: bytes | msgspec.Raw) -> str:
    """Return a label as text; "" if it is neither text nor a whole number."""
    data = bytes(raw)
    if _WHOLE.fullmatch(data):
        return data.decode()
    return printable(_TEXT.decode(data).strip()) if data.startswith(b'"') else ""


def _labels(jobs: list[_Job]) -> dict[str, list[str]]:
    """Return {name: text of each job} of the labels that at least one job has."""
    text = cache(label_text)
    columns = {name: [text(bytes(getattr(job, name))) for job in jobs] for name in LABELS}
    return {name: texts for name, texts in columns.items() if any(texts)}


def _requested(jobs: list[_Job]) -> dict[str, Ints]:
    """Return the columns ``units_per_node`` and ``whole_nodes``, if any job has them."""
    each = np.array([-1 if job.units_per_node is None else job.units_per_node for job in jobs], dtype=np.int64)
    whole = np.array([1 if job.whole_nodes else -1 for job in jobs], dtype=np.int64)
    return {name: numbers for name, numbers in ((PER_NODE, each), (WHOLE, whole)) if np.any(numbers > 0)}


def _walltime(job: _Job) -> float:
    return float("inf") if job.walltime is None or job.walltime == -1 else job.walltime
