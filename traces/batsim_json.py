"""Batsim's JSON workload: jobs that refer to profiles, read and written."""

import re
from collections.abc import Iterator
from pathlib import PurePath

import msgspec
import numpy as np

from pipistrelle.protocol.errors import did_you_mean
from pipistrelle.traces.errors import TraceError, shown
from pipistrelle.traces.files import PathText, open_trace, trace_name
from pipistrelle.traces.profiles import delay_profile, profile_runtime
from pipistrelle.traces.workload import LARGEST, Workload, decimal_text


class _Job(msgspec.Struct, gc=False):
    id: int | str
    subtime: float
    res: int
    profile: str
    walltime: float | None = None


class _File(msgspec.Struct):
    jobs: list[_Job]
    profiles: dict[str, msgspec.Raw]
    nb_res: int | None = None


_DECODER = msgspec.json.Decoder(_File)
_BYTE = re.compile(r" \(byte (\d+)\)$")
_PATH = re.compile(r" - at `(.*)`$")
_BLOCK = 4096


def read_batsim(path: PathText) -> Workload:
    """Read a workload in Batsim's JSON, plain or compressed; see `parse_batsim`."""
    with open_trace(path) as stream:
        return parse_batsim(stream.read(), path)


def parse_batsim(data: bytes, path: PathText) -> Workload:
    """Return the workload that `data` holds; `path` serves for its name and for messages.

    Jobs are sorted by submit time, equal ones as in the file, as Batsim's loader does. Run times are those of the
    profiles. A walltime that is absent, null or -1 means none. Fields that are not known are ignored.

    Raises
    ------
    TraceError
        if the text is not JSON or a rule of the format is broken; the message has the path in the file.
    """
    where = str(path)
    file = _decode(data, where)
    if not file.jobs:
        raise TraceError("has no jobs", where=f"{where}, $.jobs", expected="at least one job", hint="Check the file.")
    if file.nb_res is not None and not 0 < file.nb_res <= LARGEST:
        raise TraceError(
            "the machine's size is out of range",
            where=f"{where}, $.nb_res",
            expected="a whole number above 0",
            found=shown(file.nb_res),
            hint="nb_res is the number of the machine's resources.",
        )
    ids: list[str] = []
    rows: dict[str, int] = {}
    #: {profile: (its name, run time in s)}; jobs share the name's one object
    known: dict[str, tuple[str, float]] = {}
    for row, job in enumerate(file.jobs):
        name = _job_name(job, f"{where}, $.jobs[{row}]")
        if name in rows:
            raise TraceError(
                f"job id {shown(name)} occurs twice",
                where=f"{where}, $.jobs[{row}].id",
                expected="each id once",
                found=f"the id of $.jobs[{rows[name]}]",
                hint="Give one of the two jobs another id.",
            )
        rows[name] = row
        ids.append(name)
        _check_job(job, name, f"{where}, $.jobs[{row}]")
        if job.profile not in known:
            known[job.profile] = (job.profile, _runtime(file, job.profile, name, row, where))
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
        machine_size=file.nb_res,
    )
    return workload.select(np.argsort(submit, kind="stable"))


def _decode(data: bytes, where: str) -> _File:
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        data.decode()  # msgspec does not look into the texts it skips
        return _DECODER.decode(data)
    except UnicodeDecodeError as error:
        raise TraceError(
            "is not UTF-8 text",
            where=_position(data, error.start, where),
            found=f"byte 0x{data[error.start]:02x}",
            hint="Save the file as UTF-8.",
        ) from error
    except msgspec.ValidationError as error:
        raise _shape_error(error, where, "$") from error
    except msgspec.DecodeError as error:
        text = str(error).removeprefix("JSON is malformed: ")
        match = _BYTE.search(text)
        raise TraceError(
            "is not valid JSON",
            where=_position(data, int(match[1]) if match else len(data), where),
            found=_BYTE.sub("", text),
            hint="Mend the text there, or just before.",
        ) from error
    except RecursionError as error:
        raise _too_deep(where) from error


def _too_deep(where: str) -> TraceError:
    return TraceError("the JSON is nested too deeply", where=where, hint="Leave out what no job needs.")


def _position(data: bytes, offset: int, where: str) -> str:
    before = data[:offset]
    column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
    return f"{where}, line {before.count(10) + 1}, column {column}"


def _shape_error(error: msgspec.ValidationError, where: str, root: str) -> TraceError:
    """Return the error for a value of the wrong type or a missing field, with its path from `root`."""
    text = str(error)
    match = _PATH.search(text)
    path = root + match[1][1:] if match else root
    return TraceError(
        _PATH.sub("", text).replace("`", "'"),
        where=f"{where}, {path}",
        hint="docs/workloads.md shows the format.",
    )


def _job_name(job: _Job, where: str) -> str:
    """Return the job's name without the workload's (``w0!7`` is ``7``)."""
    text = str(job.id)
    name = text.partition("!")[2] if "!" in text else text
    if name and "!" not in name and name.isprintable():
        return name
    raise TraceError(
        "the job has no usable id",
        where=f"{where}.id",
        expected="a number or a printable text, after a workload's name and '!' or without",
        found=shown(text),
        hint="Give the job an id of its own.",
    )


def _check_job(job: _Job, name: str, where: str) -> None:
    most = decimal_text(LARGEST)
    if not 0 <= job.subtime <= LARGEST:
        what, key, expected, value = "submit time", "subtime", f"seconds from 0 to {most}", job.subtime
    elif not 0 < job.res <= LARGEST:
        what, key, expected, value = "size", "res", f"a whole number from 1 to {most}", job.res
    elif job.walltime is not None and job.walltime != -1 and not 0 <= job.walltime <= LARGEST:
        what, key, expected, value = "walltime", "walltime", f"seconds from 0 to {most}, or -1 for none", job.walltime
    else:
        return
    raise TraceError(
        f"the {what} of job {shown(name)} is out of range",
        where=f"{where}.{key}",
        expected=expected,
        found=shown(value if isinstance(value, int) else decimal_text(value)),
        hint="Mend the value.",
    )


def _runtime(file: _File, profile: str, job: str, row: int, where: str) -> float:
    raw = file.profiles.get(profile)
    if raw is None:
        raise TraceError(
            f"profile {shown(profile)} of job {shown(job)} does not exist",
            where=f"{where}, $.jobs[{row}].profile",
            expected="a name in $.profiles",
            hint=_closest(profile, file),
        )
    path = f"$.profiles[{shown(profile)}]"
    try:
        return profile_runtime(profile, raw, job=job, where=f"{where}, {path}")
    except msgspec.ValidationError as error:
        raise _shape_error(error, where, path) from error
    except RecursionError as error:
        raise _too_deep(f"{where}, {path}") from error


def _closest(profile: str, file: _File) -> str:
    names = sorted(file.profiles)
    sentence = did_you_mean(profile, names)
    return sentence if len(names) <= 10 or sentence.startswith("Did") else f"The file has {len(names)} profiles."


def _walltime(job: _Job) -> float:
    return float("inf") if job.walltime is None or job.walltime == -1 else job.walltime


def batsim_chunks(workload: Workload) -> Iterator[bytes]:
    """Return the workload as Batsim's JSON, in pieces; errors come at once, before the first piece.

    Each job gets a profile of type delay under `Workload.profile_of`'s name. ``nb_res`` is the machine's size, or
    the largest job's where that is not known: Batsim asks for a number. Users, queues, the header and the other
    fields of a log are not written: the format has no place for them.

    Raises
    ------
    TraceError
        if the workload has no jobs, or a job that Batsim refuses: without run time, requested time or size; or if
        one profile name stands for two run times.
    """
    if not len(workload):
        raise TraceError("there are no jobs to write", where=workload.name, hint="A trace has at least one job.")
    rules = (
        ("run time", workload.runtime),
        ("requested time", workload.walltime),
        ("size", workload.size),
    )
    for what, values in rules:
        bad = np.flatnonzero(values <= 0)
        if bad.size:
            raise TraceError(
                f"Batsim's JSON cannot keep a job without {what}",
                where=f"{workload.name}, job {shown(workload.ids[int(bad[0])])}",
                expected="a positive number",
                found=f"{decimal_text(float(values[bad[0]]))} (and {bad.size - 1} more such jobs)",
                hint="Such jobs cannot be simulated: leave them out with 'convert --clean'.",
            )
    profiles: dict[str, float] = {}
    for row, runtime in enumerate(workload.runtime.tolist()):
        name = workload.profile_of(row)
        if profiles.setdefault(name, runtime) != runtime:
            raise TraceError(
                f"profile {shown(name)} stands for two run times",
                where=f"{workload.name}, job {shown(workload.ids[row])}",
                expected=decimal_text(profiles[name]),
                found=decimal_text(runtime),
                hint="Give the jobs profiles of different names.",
            )
    return _chunks(workload, profiles)


def _chunks(workload: Workload, profiles: dict[str, float]) -> Iterator[bytes]:
    size = workload.machine_size if workload.machine_size is not None else int(workload.size.max())
    yield b'{"nb_res": %d,\n"jobs": [\n' % size
    last = len(workload) - 1
    for row, job in enumerate(workload.ids):
        walltime = float(workload.walltime[row])
        limit = "" if walltime == float("inf") else f'"walltime": {decimal_text(walltime)}, '
        line = (
            f'{{"id": {_json(job)}, "subtime": {decimal_text(float(workload.submit[row]))}, {limit}'
            f'"res": {workload.size[row]}, "profile": {_json(workload.profile_of(row))}}}'
        )
        yield f"{line}{',' if row < last else ''}\n".encode()
    yield b'],\n"profiles": {\n'
    last = len(profiles) - 1
    for row, (name, runtime) in enumerate(profiles.items()):
        yield f"{_json(name)}: {_json(delay_profile(runtime))}{',' if row < last else ''}\n".encode()
    yield b"}}\n"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
