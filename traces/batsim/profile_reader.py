"""Read Batsim's profiles from JSON into `pipistrelle.traces.profiles`."""

import os
from collections.abc import Callable, Mapping
from typing import Annotated, Final, get_args

import msgspec

from pipistrelle.protocol.base.errors import did_you_mean, quoted
from pipistrelle.traces.batsim.json_faults import json_faults
from pipistrelle.traces.errors import TraceError, out_of_range
from pipistrelle.traces.files import PathText
from pipistrelle.traces.profiles import (
    Composed,
    Delay,
    Parallel,
    ParallelHomogeneous,
    ParallelHomogeneousTotal,
    Profile,
    UsageTrace,
    runtime_of,
    size_and_depth,
)
from pipistrelle.traces.usage_traces import Phases, read_usage_trace
from pipistrelle.traces.workload import LARGEST, decimal_text

#: more flops or bytes than any real job has, but small enough for finite times and sums
MOST_WORK: Final = 1e30
#: most parts of a composed profile, including repetitions; Batsim creates an object for each part
MOST_PARTS: Final = 1_000_000
#: greatest nesting depth of composed profiles
MOST_NESTED: Final = 50

_Work = Annotated[float, msgspec.Meta(ge=0, le=MOST_WORK)]
#: range of return codes; Batsim reserves negative codes: -1 for a reached walltime, -2 for a kill
_Code = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]

_Times = Annotated[int, msgspec.Meta(ge=1, le=MOST_PARTS)]


class _Typed(msgspec.Struct):
    type: str


class _Spec(msgspec.Struct, tag_field="type", gc=False):
    """The JSON fields that a profile of any type may have."""

    ret: _Code = 0


class _Delay(_Spec, tag="delay", kw_only=True, gc=False):
    delay: float


class _Homogeneous(_Spec, tag="parallel_homogeneous", kw_only=True):
    cpu: _Work
    com: _Work = 0.0


class _Total(_Homogeneous, tag="parallel_homogeneous_total"):
    pass


class _Parallel(_Spec, tag="parallel", kw_only=True):
    cpu: Annotated[tuple[_Work, ...], msgspec.Meta(min_length=1)]
    com: tuple[_Work, ...] = ()


class _Composed(_Spec, tag="composed", kw_only=True):
    seq: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    repeat: _Times | None = None
    nb: _Times | None = None  # the field's name in Batsim 2


class _Usage(_Spec, tag="usage_trace", kw_only=True):
    trace: str


_Any = _Delay | _Homogeneous | _Total | _Parallel | _Composed | _Usage
_DECODER = msgspec.json.Decoder(_Any)

#: supported profile types, as in JSON
PROFILE_TYPES: Final = tuple(str(struct.__struct_config__.tag) for struct in get_args(_Any))

_STORAGE = "It moves data to or from storage, which is not modelled."
_AT_ONCE = "Its parts run at the same time, which is not modelled."
_TALKS = "It talks with the scheduler while it runs, which is not modelled."
#: {unsupported type of some Batsim version: reason or replacement}
_NOT_RUN: Final = {
    "smpi": "It replays messages over a network, which is not modelled.",
    "parallel_homogeneous_pfs": _STORAGE,
    "data_staging": _STORAGE,
    "send": _TALKS,
    "recv": _TALKS,
    "msg_par": "Batsim 3 and 4 call it parallel.",
    "msg_par_hg": "Batsim 3 and 4 call it parallel_homogeneous.",
    "msg_par_hg_tot": "Batsim 3 and 4 call it parallel_homogeneous_total.",
    "msg_par_hg_pfs": _STORAGE,
    "msg_par_hg_pfs0": _STORAGE,
    "ptask": "Batsim 3 and 4 call it parallel.",
    "ptask_homogeneous": "Batsim 3 and 4 call it parallel_homogeneous, or where amounts are spread over the hosts, "
    "parallel_homogeneous_total.",
    "sequential_composition": "Batsim 3 and 4 call it composed.",
    "forkjoin_composition": _AT_ONCE,
    "ptask_merge_composition": _AT_ONCE,
    "ptask_on_storage_homogeneous": _STORAGE,
    "ptask_data_staging_between_storages": _STORAGE,
    "trace_replay": "Batsim 3 and 4 call the replay of usage usage_trace; messages over a network are not modelled.",
    "DelayProfile": "Batsim 3 and 4 call it delay.",
    "ParallelTaskProfile": "Batsim 3 and 4 call it parallel.",
    "ParallelTaskHomogeneousProfile": "Batsim 3 and 4 call it parallel_homogeneous.",
    "SequentialCompositionProfile": "Batsim 3 and 4 call it composed.",
}


class _TooDeepError(TraceError):
    """Composed profiles are nested too deeply; the innermost profile itself is valid."""


def parse_profile(name: str, raw: bytes | msgspec.Raw, others: Mapping[str, Profile], where: str) -> Profile:
    """Parse a job profile from a JSON object that is not in a workload file.

    Such a profile cannot refer to usage traces, which are files.

    Args:
        others: the profiles that a composed profile may name.
        where: location of the object, for messages.
    """

    def part(wanted: str, place: str) -> Profile:
        found = others.get(wanted)
        if found is None:
            raise _no_part(wanted, list(others), place)
        return found

    return _parse(name, raw, part, where, None)


class ProfileTable:
    """The profiles of one workload file; each is parsed when it is first used.

    Usage traces that profiles name are read from `folder`.
    """

    def __init__(self, raws: Mapping[str, msgspec.Raw], where: str, folder: PathText) -> None:
        self._raws = raws
        self._where = where
        self._folder = folder
        self._parsed: dict[str, Profile] = {}
        self._faults: dict[str, TraceError] = {}
        #: names of the profiles being parsed, from the outermost
        self._open: list[str] = []

    def __getitem__(self, name: str) -> Profile:
        """Return the job profile with this name; raise TraceError if it is invalid."""
        known = self._parsed.get(name)
        if known is not None:
            return known
        delay = _plain_delay(name, self._raws[name])
        if delay is not None:
            self._parsed[name] = delay
            return delay
        if name in self._faults:
            raise self._faults[name].with_traceback(None)
        where = f"{self._where}, $.profiles[{quoted(name)}]"
        if name in self._open:
            circle = " > ".join(map(quoted, [*self._open[self._open.index(name) :], name][:10]))
            raise TraceError("the profile is a part of itself", where=where, found=circle, hint="Remove one of them.")
        if len(self._open) > MOST_NESTED:
            raise _too_deep(where)
        self._open.append(name)
        try:
            profile = _parse(name, self._raws[name], self._part, where, self._folder)
        except TraceError as error:
            if len(self._open) == 1 or not isinstance(error, _TooDeepError):
                self._faults[name] = error
            raise
        finally:
            self._open.pop()
        self._parsed[name] = profile
        return profile

    def _part(self, name: str, place: str) -> Profile:
        if name not in self._raws:
            raise _no_part(name, list(self._raws), place)
        return self[name]

    def usable(self) -> dict[str, Profile]:
        """Return every valid job profile by name, in file order."""
        for name in self._raws:
            try:
                self[name]
            except TraceError:
                continue  # an invalid profile is reported only if a job uses it
        return {name: self._parsed[name] for name in self._raws if name in self._parsed}


def _plain_delay(name: str, raw: msgspec.Raw) -> Delay | None:
    """Parse a plain delay, the most frequent type of profile.

    Return None if the profile has another type or is invalid.
    """
    try:
        spec = _DECODER.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # reported later, with the place
        return None
    if isinstance(spec, _Delay) and 0 < spec.delay <= LARGEST:
        return Delay(name=name, delay=spec.delay, ret=spec.ret)
    return None


def _parse(
    name: str, raw: bytes | msgspec.Raw, part: Callable[[str, str], Profile], where: str, folder: PathText | None
) -> Profile:
    """Parse a job profile; `part(name, place)` returns a part of a composed profile."""
    with json_faults(raw, where):
        try:
            spec = _DECODER.decode(raw)
        except msgspec.ValidationError:
            _refuse_type(raw, where)
            raise
    if isinstance(spec, _Delay):
        if not 0 < spec.delay <= LARGEST:
            expected = f"seconds above 0, at most {decimal_text(LARGEST)}"
            raise out_of_range("delay", where, expected, decimal_text(spec.delay), "A job must last for some time.")
        return Delay(name=name, delay=spec.delay, ret=spec.ret)
    if isinstance(spec, _Homogeneous):
        kind = ParallelHomogeneousTotal if isinstance(spec, _Total) else ParallelHomogeneous
        return kind(name=name, cpu=spec.cpu, com=spec.com, ret=spec.ret)
    if isinstance(spec, _Parallel):
        return _parallel(name, spec, where)
    if isinstance(spec, _Usage):
        return UsageTrace(name=name, phases=_phases(spec, where, folder), ret=spec.ret)
    parts = tuple(part(wanted, f"{where}.seq[{place}]") for place, wanted in enumerate(spec.seq))
    if spec.repeat is not None and spec.nb not in (None, spec.repeat):
        raise TraceError(
            "the profile has two numbers of repetitions",
            where=where,
            expected="'repeat', or 'nb' as in Batsim 2",
            found=f"repeat {spec.repeat} and nb {spec.nb}",
            hint="Remove one of the two.",
        )
    repeat = spec.repeat or spec.nb or 1
    return _composed(Composed(name=name, repeat=repeat, seq=parts, names=spec.seq, ret=spec.ret), where)


def _refuse_type(raw: bytes | msgspec.Raw, where: str) -> None:
    """Raise TraceError if the profile's type is known but not supported."""
    try:
        kind = msgspec.json.decode(raw, type=_Typed).type
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # the rest of the object may be invalid JSON
        return
    if kind not in PROFILE_TYPES:
        raise TraceError(
            f"profiles of type {quoted(kind)} are not supported",
            where=where,
            expected=" or ".join(PROFILE_TYPES),
            hint=_NOT_RUN.get(kind) or did_you_mean(kind, list(PROFILE_TYPES)),
        )


def _parallel(name: str, spec: _Parallel, where: str) -> Parallel:
    if spec.com and len(spec.com) != len(spec.cpu) ** 2:
        raise TraceError(
            "the communication matrix has the wrong size",
            where=f"{where}.com",
            expected=f"{len(spec.cpu) ** 2} numbers, from each of the {len(spec.cpu)} ranks to each",
            found=str(len(spec.com)),
            hint="Leave 'com' out if nothing is sent.",
        )
    return Parallel(name=name, cpu=spec.cpu, com=spec.com if any(spec.com) else (), ret=spec.ret)


def _phases(spec: _Usage, where: str, folder: PathText | None) -> tuple[Phases, ...]:
    if folder is None:
        raise TraceError(
            "only a workload file can name a trace file",
            where=f"{where}.trace",
            found=quoted(spec.trace),
            hint="Move the profile to the workload file, as in Batsim.",
        )
    return read_usage_trace(spec.trace, os.fspath(folder))


def _composed(profile: Composed, where: str) -> Composed:
    size, depth = size_and_depth(profile, {})
    if depth > MOST_NESTED:
        raise _too_deep(where)
    seconds = runtime_of(profile)
    if size > MOST_PARTS or seconds > LARGEST:
        raise TraceError(
            "the profile is too long",
            where=where,
            expected=f"at most {MOST_PARTS} parts and {decimal_text(LARGEST)} s, repetitions counted",
            found=f"{size} parts" if size > MOST_PARTS else f"{decimal_text(seconds)} s",
            hint="Make fewer, longer parts.",
        )
    return profile


def _too_deep(where: str) -> _TooDeepError:
    return _TooDeepError(
        "composed profiles are nested too deeply",
        where=where,
        expected=f"at most {MOST_NESTED} in each other",
        hint="Name the innermost parts directly.",
    )


def _no_part(wanted: str, names: list[str], where: str) -> TraceError:
    return TraceError(
        f"profile {quoted(wanted)} does not exist",
        where=where,
        expected="the name of another profile",
        hint=closest(wanted, names),
    )


def closest(wanted: str, names: list[str]) -> str:
    """Return a hint for an unknown name: a similar name, all names, or their number."""
    sentence = did_you_mean(wanted, sorted(names))
    return sentence if len(names) <= 10 or sentence.startswith("Did") else f"There are {len(names)} profiles."


def delay_json(runtime: float) -> bytes:
    """Return the JSON object of a delay profile of `runtime` seconds."""
    return b'{"type":"delay","delay":%s}' % decimal_text(runtime).encode()
