"""Write workloads in Batsim's JSON, and single jobs and profiles for schedulers."""

from collections.abc import Iterator, Mapping
from math import inf, isnan

import msgspec
import numpy as np

from pipistrelle.protocol.base.errors import quoted
from pipistrelle.protocol.resources.request import Request
from pipistrelle.traces.batsim.profile_reader import delay_json
from pipistrelle.traces.batsim.workload import label_text
from pipistrelle.traces.clean import and_more
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.logs.labels import written_labels
from pipistrelle.traces.profiles import Composed, Delay, Profile, UsageTrace, leaves, runtime_of
from pipistrelle.traces.workload import LABELS, Workload, decimal_text, request_of

_KNOWN = frozenset({"id", "subtime", "walltime", "res", "profile"})
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def job_text(workload: Workload, row: int, job_id: str) -> bytes:
    """Return the JSON object of job `row`, with `job_id` (``w0!7``) as ``id``.

    For a job from a JSON file, this is its object in the file, unknown fields included, with its current labels. For a
    job from a log, the object is built from the job's columns.
    """
    if workload.job_json is not None:
        members = _MEMBERS.decode(workload.job_json[row])
        members["id"] = msgspec.Raw(msgspec.json.encode(job_id))
        _relabel(members, {name: texts[row] for name, texts in workload.labels.items()})
        return msgspec.json.encode(members)
    walltime = float(workload.walltime[row])
    limit = "" if walltime == inf else f',"walltime":{decimal_text(walltime)}'
    text = (
        f'{{"id":{_json(job_id)},"subtime":{decimal_text(float(workload.submit[row]))}{limit},'
        f'"res":{workload.size[row]},"profile":{_json(workload.profile_of(row))}'
        f"{''.join(f',{_json(name)}:{_json(value)}' for name, value in request_of(workload, row).items())}}}"
    )
    return text.encode()


def with_members(raw: bytes, **changes: float | str | bool | list[str] | Request) -> bytes:
    """Return a JSON object with some members changed.

    Args:
        changes: {member: its new value}; a value of inf removes the member.
    """
    members = _MEMBERS.decode(raw)
    for name, value in changes.items():
        if value == inf:
            members.pop(name, None)
        else:
            is_number = isinstance(value, float | int) and not isinstance(value, bool)
            text = decimal_text(value).encode() if is_number else msgspec.json.encode(value)  # type: ignore[arg-type]
            members[name] = msgspec.Raw(text)
    return msgspec.json.encode(members)


def profile_texts(workload: Workload) -> dict[str, bytes]:
    """Return {name: JSON object} of all profiles; a log's run times become delays."""
    if workload.profile_json is not None:
        return {name: msgspec.json.format(raw, indent=-1) for name, raw in workload.profile_json.items()}
    return {
        workload.profile_of(row): delay_json(runtime)
        for row, runtime in enumerate(workload.runtime.tolist())
        if not isnan(runtime)
    }


def batsim_chunks(workload: Workload) -> Iterator[bytes]:
    """Yield a workload in Batsim's JSON, in pieces.

    All errors are raised before the first piece. The file has the profiles that jobs use, with their parts. A job
    without a profile gets a delay with the name from `Workload.profile_of`.

    Batsim requires the machine's size ``nb_res``. If it is unknown, the size of the largest job is written. Unknown
    fields of jobs and profiles are kept. Labels are written under the names of `LABELS`. The header and other columns
    of a log are lost.
    """
    if not len(workload):
        raise TraceError("there are no jobs to write", where=workload.name, hint="A trace has at least one job.")
    needed = {"run time": workload.runtime, "requested time": workload.walltime, "size": workload.size}
    for what, values in needed.items():
        bad = np.flatnonzero(values <= 0)
        if bad.size:
            raise TraceError(
                f"Batsim's JSON cannot hold a job without {what}",
                where=f"{workload.name}, job {quoted(workload.ids[int(bad[0])])}",
                expected="a positive number",
                found=f"{decimal_text(float(values[bad[0]]))}{and_more(bad.size - 1)}",
                hint="Such jobs cannot be simulated: remove them with 'workload convert --clean'.",
            )
    return _chunks(workload, _Profiles(workload).texts())


class _Profiles:
    """The profiles that jobs use, in the order of their first use."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._table = workload.table or {}
        self._runtimes: dict[str, float] = {}

    def texts(self) -> dict[str, str]:
        """Return the JSON text of each profile by its name."""
        for row, runtime in enumerate(self._workload.runtime.tolist()):
            self._need(self._workload.profile_of(row), runtime, row)
        return {name: self._text(name, runtime) for name, runtime in self._runtimes.items()}

    def _need(self, name: str, runtime: float, row: int) -> None:
        if name in self._runtimes:
            if not _same(self._runtimes[name], runtime):
                raise TraceError(
                    f"profile {quoted(name)} has two run times",
                    where=f"{self._workload.name}, job {quoted(self._workload.ids[row])}",
                    expected=decimal_text(self._runtimes[name]),
                    found=decimal_text(runtime),
                    hint="Give the jobs profiles with different names.",
                )
            return
        self._runtimes[name] = runtime
        profile = self._read(name, runtime)
        if profile is None:
            return
        if any(isinstance(leaf, UsageTrace) for leaf in leaves(profile)):
            raise TraceError(
                "a profile with trace files cannot be written",
                where=f"{self._workload.name}, profile {quoted(name)}",
                hint="Copy the workload together with these files.",
            )
        if isinstance(profile, Composed):
            for part_name, part in zip(profile.names, profile.seq, strict=True):
                self._need(part_name, runtime_of(part), row)

    def _read(self, name: str, runtime: float) -> Profile | None:
        """Return the profile from the file, if it still gives the job's run time.

        Otherwise return None.
        """
        profile = self._table.get(name)
        return profile if profile is not None and _same(runtime_of(profile), runtime) else None

    def _text(self, name: str, runtime: float) -> str:
        profile = self._read(name, runtime)
        if profile is None:
            return delay_json(runtime).decode()
        raw = (self._workload.profile_json or {}).get(name)
        if raw is None:
            raise ValueError(f"the table has profile {name!r}, profile_json has not")
        if not isinstance(profile, Delay):
            return msgspec.json.format(raw, indent=-1).decode()
        return with_members(raw, delay=runtime).decode()


def _same(one: float, other: float) -> bool:
    return one == other or (isnan(one) and isnan(other))


def _chunks(workload: Workload, profiles: dict[str, str]) -> Iterator[bytes]:
    size = workload.machine_size if workload.machine_size is not None else int(workload.size.max())
    labels = written_labels(workload)
    yield b'{"nb_res": %d,\n"jobs": [\n' % size
    last = len(workload) - 1
    for row, job in enumerate(workload.ids):
        walltime = float(workload.walltime[row])
        limit = "" if walltime == inf else f'"walltime": {decimal_text(walltime)}, '
        further = _further(workload, labels, row)
        line = (
            f'{{"id": {_json(job)}, "subtime": {decimal_text(float(workload.submit[row]))}, {limit}'
            f'"res": {workload.size[row]}, "profile": {_json(workload.profile_of(row))}{further}}}'
        )
        yield f"{line}{',' if row < last else ''}\n".encode()
    yield b'],\n"profiles": {\n'
    last = len(profiles) - 1
    for row, (name, text) in enumerate(profiles.items()):
        yield f"{_json(name)}: {text}{',' if row < last else ''}\n".encode()
    yield b"}}\n"


def _further(workload: Workload, labels: dict[str, list[str]], row: int) -> str:
    """Return the members of a job's JSON object that have no column of their own.

    The members have the job's current labels.
    """
    wanted = {name: texts[row] for name, texts in labels.items() if texts[row]}
    if workload.job_json is None:
        told = {**wanted, **request_of(workload, row)}
        return "".join(f', "{name}": {_json(value)}' for name, value in told.items())
    members = _MEMBERS.decode(workload.job_json[row])
    if not wanted and members.keys() <= _KNOWN:
        return ""
    _relabel(members, wanted)
    texts = ((key, msgspec.json.format(raw, indent=-1).decode()) for key, raw in members.items() if key not in _KNOWN)
    return "".join(f", {_json(key)}: {text}" for key, text in texts)


def _relabel(members: dict[str, msgspec.Raw], wanted: Mapping[str, str]) -> None:
    """Set the label members to `wanted`; unchanged members keep their JSON text."""
    for name in LABELS:
        old = label_text(members[name]) if name in members else ""
        new = wanted.get(name, "")
        if new != old:
            members.pop(name, None)
            if new:
                members[name] = msgspec.Raw(msgspec.json.encode(new))


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
