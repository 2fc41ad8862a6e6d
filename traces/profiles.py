"""Batsim's profiles: what a job does, by profile type. One entry of `PROFILE_TYPES` a type."""

from collections.abc import Callable

import msgspec

from pipistrelle.protocol.errors import did_you_mean
from pipistrelle.traces.errors import TraceError, shown
from pipistrelle.traces.workload import LARGEST, decimal_text


class _Typed(msgspec.Struct):
    type: str


class _Delay(msgspec.Struct):
    delay: float


def _delay_runtime(raw: msgspec.Raw, where: str) -> float:
    delay = msgspec.json.decode(raw, type=_Delay).delay
    if not 0 < delay <= LARGEST:
        raise TraceError(
            "the delay is out of range",
            where=where,
            expected=f"seconds above 0, at most {decimal_text(LARGEST)}",
            found=decimal_text(delay),
            hint="A job must last for some time.",
        )
    return delay


#: {profile type: its JSON and where it stands -> run time of the job, s}
PROFILE_TYPES: dict[str, Callable[[msgspec.Raw, str], float]] = {
    "delay": _delay_runtime,
}


def profile_runtime(name: str, raw: msgspec.Raw, *, job: str, where: str) -> float:
    """Return the run time (s) of a job with this profile; `job` is one that uses it, for messages.

    Raises
    ------
    TraceError
        if the type is not run or a value is out of range.
    msgspec.ValidationError
        if a field is missing or has the wrong type; the path in it starts at the profile.
    """
    kind = msgspec.json.decode(raw, type=_Typed).type
    runtime_of = PROFILE_TYPES.get(kind)
    if runtime_of is None:
        raise TraceError(
            f"profile {shown(name)} of job {shown(job)} has type {shown(kind)}, which is not run",
            where=where,
            expected=" or ".join(PROFILE_TYPES),
            hint=did_you_mean(kind, list(PROFILE_TYPES)),
        )
    return runtime_of(raw, where)


def delay_profile(runtime: float) -> dict[str, object]:
    """Return the profile of a job that lasts `runtime` seconds."""
    return {"type": "delay", "delay": int(runtime) if runtime.is_integer() else runtime}
