"""The scheduler's decisions: one struct per type.

On the wire a decision is ``{"timestamp", "type", "data"}``.

A decision takes effect at its ``timestamp``, at or after the notice's ``now``, because a scheduler may model the time
that deciding takes. Constructors do not validate; only the codec does, when it decodes.
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
from pipistrelle.protocol.resources.nodes import NodeTake


class ExecuteJobData(Struct, frozen=True, omit_defaults=True, gc=False):
    """Start a queued job on exactly these units.

    On a machine whose nodes have resources, ``takes`` divides the job's tasks and GPUs among its nodes. It may be
    absent if each node gets the same number of tasks; the server then picks the GPUs.
    """

    job_id: JobId
    alloc: Allocation
    why: Why | None = None
    takes: Annotated[
        tuple[NodeTake, ...],
        Meta(max_length=MAX_ENTRIES, description="what the job takes of its nodes (feature resources)"),
    ] = ()


class RejectJobData(Struct, frozen=True, omit_defaults=True, gc=False):
    """Reject a queued job permanently."""

    job_id: JobId
    why: Why | None = None


class KillJobData(Struct, frozen=True, omit_defaults=True):
    """Kill running jobs now; a job that has just ended by itself is not an error."""

    job_ids: Annotated[tuple[JobId, ...], Meta(max_length=MAX_ENTRIES, description="the jobs to end")]
    why: Why | None = None


class PreemptJobData(Struct, frozen=True, omit_defaults=True, gc=False):
    """Preempt a running job after ``grace`` seconds (feature ``preemption``)."""

    job_id: JobId
    mode: Annotated[PreemptMode, Meta(description="requeue the job, requeue it after a new dump, or cancel it")] = (
        "requeue"
    )
    grace: Seconds = 0.0
    why: Why | None = None


class CallMeLaterData(Struct, frozen=True, omit_defaults=True, gc=False):
    """Ask for a REQUESTED_CALL at ``timestamp``; an ``id`` makes it cancellable."""

    timestamp: Instant
    id: CallId = ""


class CancelCallData(Struct, frozen=True, gc=False):
    """Cancel a pending CALL_ME_LATER."""

    id: CallId


class RegisterJobData(Struct, frozen=True, omit_defaults=True):
    """Submit a job created by the scheduler (feature ``dynamic_jobs``).

    ``runtime`` is the job's actual run time.
    """

    job_id: JobId
    job: JobDescription
    runtime: Seconds


class SetJobMetadataData(Struct, frozen=True, gc=False):
    """Attach a text to a job; the server writes the text to the jobs file."""

    job_id: JobId
    metadata: Annotated[str, Meta(description="free text; it replaces any earlier metadata of the job")]


class StopData(Struct, frozen=True, omit_defaults=True, gc=False):
    """End the simulation now; the outputs are written as usual."""

    reason: Annotated[str, Meta(description="free text, kept in the outputs")] = ""


class Decision(Struct, tag_field="type", frozen=True, gc=False):
    """An action to take at ``timestamp``."""

    timestamp: Instant


class ExecuteJob(Decision, frozen=True, tag="EXECUTE_JOB", gc=False):
    """Start a queued job."""

    data: ExecuteJobData


class RejectJob(Decision, frozen=True, tag="REJECT_JOB", gc=False):
    """Reject a queued job permanently."""

    data: RejectJobData


class KillJob(Decision, frozen=True, tag="KILL_JOB", gc=False):
    """Kill running jobs."""

    data: KillJobData


class PreemptJob(Decision, frozen=True, tag="PREEMPT_JOB", gc=False):
    """Preempt a running job: take back its units."""

    data: PreemptJobData


class CallMeLater(Decision, frozen=True, tag="CALL_ME_LATER", gc=False):
    """Ask for a REQUESTED_CALL at a later time."""

    data: CallMeLaterData


class CancelCall(Decision, frozen=True, tag="CANCEL_CALL", gc=False):
    """Cancel a pending CALL_ME_LATER."""

    data: CancelCallData


class RegisterJob(Decision, frozen=True, tag="REGISTER_JOB", gc=False):
    """Submit a job created by the scheduler."""

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
    """A placeholder for a decision that could not be read; it is never sent."""

    decision: str
    code: RejectionCode
    message: str
