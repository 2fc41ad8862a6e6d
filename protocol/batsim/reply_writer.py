"""Write a scheduler's replies in Batsim's form."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Raw, Struct

from pipistrelle.protocol.base.errors import LocalProtocolError
from pipistrelle.protocol.batsim.messages import (
    AnswerServer,
    BatsimExecuteJob,
    BatsimExecuteJobData,
    BatsimRegisterJob,
    BatsimRegisterJobData,
    ChangeJobState,
    NotifyServer,
    QueryServer,
    RegisterProfile,
    RegisterProfileData,
    SetResourceState,
)
from pipistrelle.protocol.decisions import (
    CallMeLater,
    Decision,
    ExecuteJob,
    ExecuteJobData,
    KillJob,
    RegisterJob,
    RejectJob,
    SetJobMetadata,
)
from pipistrelle.protocol.fields import LATEST, LeaveReason
from pipistrelle.protocol.frames import MAX_FRAME_BYTES, UNWRITABLE, encode_value, encoder, too_long
from pipistrelle.protocol.messages import Reply


class _Written(Struct, gc=False, omit_defaults=True):
    now: float
    events: Sequence[Decision]
    leaves: LeaveReason | None = None
    keeps: tuple[str, ...] = ()


def encode_reply(reply: Reply, *, why: bool = False) -> bytes:
    """Return the frame of a reply.

    Batsim requires that decisions are sorted by time and that none is later than the reply's ``now``. So decisions are
    sorted, and ``now`` is raised to the last one's time. Batsim refuses unknown fields, so ids of calls are omitted.
    Reasons and ``keeps`` are sent only with ``why``, to a server that accepts them. A native REGISTER_JOB becomes a job
    with a delay profile.

    Raises:
        LocalProtocolError: if Batsim has no form for a decision or wake filter, a number is NaN or infinite, a value
            has no JSON form, or the frame is longer than `MAX_FRAME_BYTES`.
    """
    now, events = reply.now, reply.events
    finite = 0 <= now <= LATEST
    for decision in events:
        # Nearly all decisions are of these kinds: they need no conversion, and their numbers are valid.
        if type(decision) is not ExecuteJob or decision.timestamp != now or not _is_plain(decision.data, why):
            now, events = _in_batsims_way(reply, why)
            finite = False
            break
    if reply.leaves is not None and why:
        return encoder.encode(_Written(now, [], reply.leaves))
    if reply.wake is not None:
        raise LocalProtocolError("the batsim dialect has no wake filter", where="$.wake", expected="none")
    written = _Written(now, events, None, reply.keeps if why else ())
    try:
        frame = encoder.encode(written) if finite else _checked(written)
    except UNWRITABLE:
        frame = _checked(written)  # raises an error with the reason
    if len(frame) > MAX_FRAME_BYTES:
        too_long(len(frame), LocalProtocolError)
    return frame


def _checked(written: _Written) -> bytes:
    return encode_value(written, "a reply of the batsim dialect")


def _in_batsims_way(reply: Reply, why: bool) -> tuple[float, list[Decision]]:
    events: list[Decision] = []
    for decision in reply.events:
        kind = type(decision)
        events += [decision] if why and kind in _REASONED else _WRITERS.get(kind, _inexpressible)(decision)
    events.sort(key=lambda decision: decision.timestamp)
    # `max` may lose a NaN, but the encoder finds it in the events.
    return max(reply.now, max((decision.timestamp for decision in events), default=0.0)), events


def _is_plain(data: ExecuteJobData, why: bool) -> bool:
    return (why or data.why is None) and not data.takes


def _as_it_is(decision: Decision) -> list[Decision]:
    return [decision]


def _execution(decision: ExecuteJob | BatsimExecuteJob) -> list[Decision]:
    data = decision.data
    if data.takes:
        raise LocalProtocolError(
            "the batsim dialect cannot divide a job among shared nodes", where="takes", expected="none"
        )
    if isinstance(data, BatsimExecuteJobData) and data.mapping is not None:
        mapped = BatsimExecuteJobData(data.job_id, data.alloc, mapping=data.mapping)
        return [BatsimExecuteJob(decision.timestamp, mapped)]
    return [ExecuteJob(decision.timestamp, ExecuteJobData(data.job_id, data.alloc))]


def _bare(decision: RejectJob | KillJob | CallMeLater) -> list[Decision]:
    """Return the decision alone, without the fields that Batsim refuses.

    These are the reason of a rejection or a kill, and the id of a call.
    """
    data: Any = decision.data
    return [type(decision)(decision.timestamp, type(data)(getattr(data, data.__struct_fields__[0])))]


def _registration(decision: RegisterJob) -> list[Decision]:
    now, data = decision.timestamp, decision.data
    workload, bang, name = data.job_id.partition("!")
    if not (workload and name):
        raise LocalProtocolError(
            "a job is registered under an id without a workload", expected="WORKLOAD!NAME", found=f"'{data.job_id}'"
        )
    profile = f"{name}{bang}delay"
    job: dict[str, Any] = {"id": data.job_id, "subtime": now, "res": data.job.res, "profile": profile}
    if data.job.walltime is not None:
        job["walltime"] = data.job.walltime
    delay = _raw({"type": "delay", "delay": data.runtime})
    return [
        RegisterProfile(now, RegisterProfileData(workload, profile, delay)),
        BatsimRegisterJob(now, BatsimRegisterJobData(data.job_id, _raw(job))),
    ]


def _raw(value: dict[str, Any]) -> Raw:
    return Raw(encode_value(value, "REGISTER_JOB"))


def _inexpressible(decision: Decision) -> list[Decision]:
    raise LocalProtocolError(f"the batsim dialect has no decision {decision.__struct_config__.tag}")


_WRITERS: Final[dict[type[Any], Callable[[Any], list[Decision]]]] = {
    ExecuteJob: _execution,
    BatsimExecuteJob: _execution,
    **dict.fromkeys((RejectJob, KillJob, CallMeLater), _bare),
    RegisterJob: _registration,
    **dict.fromkeys((SetJobMetadata, SetResourceState, RegisterProfile, BatsimRegisterJob), _as_it_is),
    **dict.fromkeys((ChangeJobState, NotifyServer, QueryServer, AnswerServer), _as_it_is),
}

#: decisions that can have a reason
_REASONED: Final = (ExecuteJob, BatsimExecuteJob, RejectJob, KillJob)
