"""Events and decisions of Batsim 3 and 4 that the native dialect does not have.

They are structs like the native ones, but not members of the native unions: only `pipistrelle.protocol.batsim.codec`
reads and writes them. Constructors do not validate. A ``msgspec.Raw`` is one undecoded JSON value. Jobs and profiles
stay undecoded, so workload, scheduler and engine pass on all their fields, even unknown ones.
"""

from typing import Annotated, Any

from msgspec import Meta, Raw, Struct, field

from pipistrelle.protocol.decisions import Decision, ExecuteJobData
from pipistrelle.protocol.events import Event, JobDescription, JobSubmittedData, Progress, SimulationBeginsData
from pipistrelle.protocol.fields import Allocation, JobId

PState = Annotated[str, Meta(description="number of a power state of the hosts, in decimal")]

# -- events -----------------------------------------------------------------------------------------------------------


class BatsimBeginsData(SimulationBeginsData, frozen=True, omit_defaults=True, kw_only=True):
    """The machine, the configuration and the workloads in Batsim's form.

    ``nb_resources`` is the number of compute resources; Batsim's field of that name includes storage. The lists of
    resources have one object per host (``id``, ``name``, ``state``, ``properties``, ``zone_properties``). ``profiles``
    is {prefix of job ids: {profile name: its JSON object}}.
    """

    nb_compute_resources: int = 0
    nb_storage_resources: int = 0
    allow_compute_sharing: bool = False
    allow_storage_sharing: bool = True
    compute_resources: list[dict[str, Any]] = field(default_factory=list)
    storage_resources: list[dict[str, Any]] = field(default_factory=list)
    profiles: dict[str, dict[str, Raw]] = field(default_factory=dict)


class BatsimJob(JobDescription, frozen=True, omit_defaults=True, gc=False, kw_only=True):
    """A job with ``raw``, its JSON object in the workload.

    The object has the full id, such as ``"w0!1"``. Only ``raw`` is written to frames.
    """

    raw: Raw


class BatsimSubmittedData(JobSubmittedData, frozen=True, omit_defaults=True, gc=False):
    """A job joined the queue; ``profile_raw`` is the job's profile as a JSON object, if sent."""

    profile_raw: Raw | None = None


class TaskProgress(Progress, frozen=True, omit_defaults=True, gc=False, kw_only=True):
    """The progress of a killed job with a composed profile.

    ``current_task_index`` counts the parts of the profile from 0; it is -1 if no part had begun. ``current_task`` is
    the progress of that part. ``progress``, the completed share of the job, is 0 because Batsim does not send it.
    """

    current_task_index: int
    current_task: Progress | None = None


class ResourceStateChangedData(Struct, frozen=True, gc=False):
    """All given hosts have reached the given power state."""

    resources: Allocation
    state: PState


class ResourceStateChanged(Event, frozen=True, tag="RESOURCE_STATE_CHANGED", gc=False):
    """Hosts have reached the state that a SET_RESOURCE_STATE asked for."""

    data: ResourceStateChangedData


class Notify(Event, frozen=True, tag="NOTIFY"):
    """A notification from the server; only ``data["type"]`` is always present.

    A notification of the type ``no_more_static_job_to_submit`` is read as the native NoMoreJobs.
    """

    data: dict[str, Any]


class Answer(Event, frozen=True, tag="ANSWER"):
    """The server's answer to a QUERY: ``data`` is {request: answer}.

    An answer on energy is the energy used since time 0, in joules.
    """

    data: dict[str, Any]


class Query(Event, frozen=True, tag="QUERY"):
    """A query from the server: ``data["requests"]`` is {request: its arguments}."""

    data: dict[str, Any]


# -- decisions --------------------------------------------------------------------------------------------------------


class BatsimExecuteJobData(ExecuteJobData, frozen=True, omit_defaults=True):
    """Start a queued job, with a position in the allocation for each of its ranks.

    ``mapping`` is {rank: position} and has every rank. Ranks and positions count from 0 and are decimal texts.
    """

    mapping: dict[str, str] | None = None


class BatsimExecuteJob(Decision, frozen=True, tag="EXECUTE_JOB"):
    """An EXECUTE_JOB with a mapping; one without a mapping is read as the native ExecuteJob."""

    data: BatsimExecuteJobData


class SetResourceStateData(Struct, frozen=True, gc=False):
    """Switch the given hosts to the given power state."""

    resources: Allocation
    state: PState


class SetResourceState(Decision, frozen=True, tag="SET_RESOURCE_STATE", gc=False):
    """Switch hosts to another power state."""

    data: SetResourceStateData


class RegisterProfileData(Struct, frozen=True, gc=False):
    """Add a profile to a workload; create the workload if it does not exist."""

    workload_name: Annotated[str, Meta(description="prefix of job ids")]
    profile_name: str
    profile: Raw


class RegisterProfile(Decision, frozen=True, tag="REGISTER_PROFILE", gc=False):
    """Add a profile for jobs to be registered later."""

    data: RegisterProfileData


class BatsimRegisterJobData(Struct, frozen=True, omit_defaults=True, gc=False):
    """Submit a job created by the scheduler, as a JSON object like a workload's."""

    job_id: JobId
    job: Raw
    profile: Raw | None = None


class BatsimRegisterJob(Decision, frozen=True, tag="REGISTER_JOB", gc=False):
    """Submit a job created by the scheduler."""

    data: BatsimRegisterJobData


class ChangeJobStateData(Struct, frozen=True, omit_defaults=True, gc=False):
    """Declare that a job is in the given state, one of Batsim's names."""

    job_id: JobId
    job_state: str
    kill_reason: str = ""


class ChangeJobState(Decision, frozen=True, tag="CHANGE_JOB_STATE", gc=False):
    """Declare that a job is in another state."""

    data: ChangeJobStateData


class NotifyServer(Decision, frozen=True, tag="NOTIFY"):
    """A notification from the scheduler, of the type ``data["type"]``.

    Batsim supports ``registration_finished`` and ``continue_registration``.
    """

    data: dict[str, Any]


class QueryServer(Decision, frozen=True, tag="QUERY"):
    """A query from the scheduler: ``data["requests"]`` is {request: its arguments}."""

    data: dict[str, Any]


class AnswerServer(Decision, frozen=True, tag="ANSWER"):
    """The scheduler's answer to a QUERY of the server: {request: answer}."""

    data: dict[str, Any]
