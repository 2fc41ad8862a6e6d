"""What a scheduler decides: one struct a decision type, wire form ``{"timestamp", "type", "data"}``.

A decision is carried out at its ``timestamp``, which lies at or after the notice's ``now``: a scheduler may model the
time that deciding takes. Constructors do not validate: only the codec decodes.
"""

from typing import Annotated

from msgspec import Meta, Struct

from pipistrelle.protocol.events import JobDescription
from pipistrelle.protocol.fields import (
    MAX_ENTRIES,
    Allocation,
    CallId,
    Instant,
    JobId,
    PreemptMode,
    RejectionCode,
    Seconds,
    Why,
)


class ExecuteJobData(Struct, frozen=True, omit_defaults=True, gc=False):
    """Start a waiting job on exactly these units."""

    job_id: JobId
    alloc: Allocation
    why: Why | None = None


class RejectJobData(Struct, frozen=True, omit_defaults=True, gc=False):
    """Refuse a waiting job for good."""

    job_id: JobId
    why: Why | None = None


class KillJobData(Struct, frozen=True, omit_defaults=True):
    """End running jobs now; a job that has just ended by itself is not an error."""

    job_ids: Annotated[tuple[JobId, ...], Meta(max_length=MAX_ENTRIES, description="the jobs to be ended")]
    why: Why | None = None


class PreemptJobData(Struct, frozen=True, omit_defaults=True, gc=False):
    """Take a running job's units away, ``grace`` seconds from now (feature ``preemption``)."""

    job_id: JobId
    mode: Annotated[PreemptMode, Meta(description="what becomes of the job: it comes back, or it does not")] = "requeue"
    grace: Seconds = 0.0
    why: Why | None = None


class CallMeLaterData(Struct, frozen=True, omit_defaults=True, gc=False):
    """Ask for a REQUESTED_CALL at ``timestamp``; only a call with an ``id`` can be cancelled."""

    timestamp: Instant
    id: CallId = ""


class CancelCallData(Struct, frozen=True, gc=False):
    """Take a pending CALL_ME_LATER back."""

    id: CallId


class RegisterJobData(Struct, frozen=True, omit_defaults=True):
    """Submit a job of the scheduler's own (feature ``dynamic_jobs``); ``runtime`` is how long it will really take."""

    job_id: JobId
    job: JobDescription
    runtime: Seconds


class SetJobMetadataData(Struct, frozen=True, gc=False):
    """Attach a text to a job; it is written to the jobs file."""

    job_id: JobId
    metadata: Annotated[str, Meta(description="free text; it replaces what was attached before")]


class StopData(Struct, frozen=True, omit_defaults=True, gc=False):
    """End the simulation now, keeping the outputs."""

    reason: Annotated[str, Meta(description="free text, kept in the outputs")] = ""


class Decision(Struct, tag_field="type", frozen=True, gc=False):
    """Something to be done at ``timestamp``."""

    timestamp: Instant


class ExecuteJob(Decision, frozen=True, tag="EXECUTE_JOB", gc=False):
    """Start a waiting job."""

    data: ExecuteJobData


class RejectJob(Decision, frozen=True, tag="REJECT_JOB", gc=False):
    """Refuse a waiting job."""

    data: RejectJobData


class KillJob(Decision, frozen=True, tag="KILL_JOB", gc=False):
    """End running jobs."""

    data: KillJobData


class PreemptJob(Decision, frozen=True, tag="PREEMPT_JOB", gc=False):
    """Take a running job's units away."""

    data: PreemptJobData


class CallMeLater(Decision, frozen=True, tag="CALL_ME_LATER", gc=False):
    """Ask to be woken."""

    data: CallMeLaterData


class CancelCall(Decision, frozen=True, tag="CANCEL_CALL", gc=False):
    """Take a CALL_ME_LATER back."""

    data: CancelCallData


class RegisterJob(Decision, frozen=True, tag="REGISTER_JOB", gc=False):
    """Submit a job of the scheduler's own."""

    data: RegisterJobData


class SetJobMetadata(Decision, frozen=True, tag="SET_JOB_METADATA", gc=False):
    """Attach a text to a job."""

    data: SetJobMetadataData


class Stop(Decision, frozen=True, tag="STOP", gc=False):
    """End the simulation."""

    data: StopData


AnyDecision = (
    ExecuteJob | RejectJob | KillJob | PreemptJob | CallMeLater | CancelCall | RegisterJob | SetJobMetadata | Stop
)


class Malformed(Decision, frozen=True, tag="(malformed)"):
    """A decision that could not be read; never on the wire, it keeps its place in the reply to be rejected there."""

    decision: str
    code: RejectionCode
    message: str
