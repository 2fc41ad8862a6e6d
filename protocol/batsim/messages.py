"""What only the batsim dialect has: events and decisions of Batsim 3 and 4 without a native counterpart.

They are structs like the native ones and go through the same tables, but no member of the native unions: only
`pipistrelle.protocol.batsim.codec` reads and writes them. Constructors do not validate.

``msgspec.Raw`` holds one JSON value as the text that it is on the wire: what a workload says of a job or a profile
reaches a scheduler, and what a scheduler says of them reaches the engine, with every field that nobody here knows.
"""

from typing import Annotated, Any

from msgspec import Meta, Raw, Struct, field

from pipistrelle.protocol.decisions import Decision, ExecuteJobData
from pipistrelle.protocol.events import Event, JobDescription, JobSubmittedData, Progress, SimulationBeginsData
from pipistrelle.protocol.fields import Allocation, JobId

PState = Annotated[str, Meta(description="number of a power state of the hosts, in decimal")]

# -- events -----------------------------------------------------------------------------------------------------------


class BatsimBeginsData(SimulationBeginsData, frozen=True, omit_defaults=True, kw_only=True):
    """The machine, the configuration and the workloads as Batsim tells them.

    ``nb_resources`` is the number of compute resources: Batsim's field of that name counts storage, too, which is
    ``nb_compute_resources + nb_storage_resources``. ``compute_resources`` and ``storage_resources`` hold one object a
    host (``id``, ``name``, ``state``, ``properties``, ``zone_properties``). ``profiles`` is
    {prefix of job ids: {name of a profile: its JSON object}}.
    """

    nb_compute_resources: int = 0
    nb_storage_resources: int = 0
    allow_compute_sharing: bool = False
    allow_storage_sharing: bool = True
    compute_resources: list[dict[str, Any]] = field(default_factory=list)
    storage_resources: list[dict[str, Any]] = field(default_factory=list)
    profiles: dict[str, dict[str, Raw]] = field(default_factory=dict)


class BatsimJob(JobDescription, frozen=True, omit_defaults=True, gc=False, kw_only=True):
    """A job with its own JSON object.

    ``raw`` is that object as the workload has it, its ``id`` being the whole id (``"w0!1"``); it alone is written.
    """

    raw: Raw


class BatsimSubmittedData(JobSubmittedData, frozen=True, omit_defaults=True, gc=False):
    """A job joined the queue; ``profile_raw`` is its profile's JSON object if profiles are forwarded."""

    profile_raw: Raw | None = None


class TaskProgress(Progress, frozen=True, omit_defaults=True, gc=False, kw_only=True):
    """How far a killed job of a composed profile had come.

    ``current_task_index`` counts the parts from 0, and is -1 when none had begun; ``current_task`` is how far that
    part had come. ``progress``, the done share of the whole, is not on Batsim's wire: 0 when it was read from there.
    """

    current_task_index: int
    current_task: Progress | None = None


class ResourceStateChangedData(Struct, frozen=True, gc=False):
    """All of these hosts are in this power state now."""

    resources: Allocation
    state: PState


class ResourceStateChanged(Event, frozen=True, tag="RESOURCE_STATE_CHANGED", gc=False):
    """A SET_RESOURCE_STATE was carried out."""

    data: ResourceStateChangedData


class Notify(Event, frozen=True, tag="NOTIFY"):
    """The server notifies the scheduler; ``data["type"]`` says of what, and only that is always there.

    ``no_more_static_job_to_submit`` is none of these: it is the native NoMoreJobs.
    """

    data: dict[str, Any]


class Answer(Event, frozen=True, tag="ANSWER"):
    """The answer to a scheduler's QUERY: {what was asked: answer}; ``consumed_energy`` is in J since time 0."""

    data: dict[str, Any]


class Query(Event, frozen=True, tag="QUERY"):
    """The server asks: ``data["requests"]`` is {what is asked: its arguments}."""

    data: dict[str, Any]


# -- decisions --------------------------------------------------------------------------------------------------------


class BatsimExecuteJobData(ExecuteJobData, frozen=True, omit_defaults=True):
    """Start a waiting job with its ranks placed by hand.

    ``mapping`` is {rank: place in the allocation}, both counted from 0 and in decimal; the ranks are complete.
    """

    mapping: dict[str, str] | None = None


class BatsimExecuteJob(Decision, frozen=True, tag="EXECUTE_JOB"):
    """An EXECUTE_JOB with a mapping; one without is the native ExecuteJob."""

    data: BatsimExecuteJobData


class SetResourceStateData(Struct, frozen=True, gc=False):
    """Bring these hosts into this power state."""

    resources: Allocation
    state: PState


class SetResourceState(Decision, frozen=True, tag="SET_RESOURCE_STATE", gc=False):
    """Switch hosts to another power state."""

    data: SetResourceStateData


class RegisterProfileData(Struct, frozen=True, gc=False):
    """Add a profile to a workload, which is made if there is none of that name."""

    workload_name: Annotated[str, Meta(description="prefix of job ids")]
    profile_name: str
    profile: Raw


class RegisterProfile(Decision, frozen=True, tag="REGISTER_PROFILE", gc=False):
    """Add a profile for jobs that will be registered."""

    data: RegisterProfileData


class BatsimRegisterJobData(Struct, frozen=True, omit_defaults=True, gc=False):
    """Submit a job of the scheduler's own: its JSON object as a workload would have it."""

    job_id: JobId
    job: Raw
    profile: Raw | None = None


class BatsimRegisterJob(Decision, frozen=True, tag="REGISTER_JOB", gc=False):
    """Submit a job of the scheduler's own."""

    data: BatsimRegisterJobData


class ChangeJobStateData(Struct, frozen=True, omit_defaults=True, gc=False):
    """Declare a job to be in a state, by its name in Batsim."""

    job_id: JobId
    job_state: str
    kill_reason: str = ""


class ChangeJobState(Decision, frozen=True, tag="CHANGE_JOB_STATE", gc=False):
    """Declare a job to be in another state."""

    data: ChangeJobStateData


class NotifyServer(Decision, frozen=True, tag="NOTIFY"):
    """The scheduler notifies the server; ``data["type"]`` is a text that says of what.

    Batsim knows ``registration_finished`` and ``continue_registration``.
    """

    data: dict[str, Any]


class QueryServer(Decision, frozen=True, tag="QUERY"):
    """The scheduler asks: ``data["requests"]`` is {what is asked: its arguments}, such as ``consumed_energy``."""

    data: dict[str, Any]


class AnswerServer(Decision, frozen=True, tag="ANSWER"):
    """The answer to a server's QUERY: {what was asked: answer}."""

    data: dict[str, Any]
