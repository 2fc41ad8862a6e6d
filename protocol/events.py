"""The server's events: one struct per type.

On the wire an event is ``{"timestamp", "type", "data"}``. Events in a notice are in the order in which they happened.
Events at one instant have this order: ends of jobs, submissions, calls, effects of decisions (SPEC.md, "Order").
Constructors do not validate; only the codec does, when it decodes.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from pipistrelle.protocol.fields import (
    Allocation,
    Attempt,
    BytesPerSecond,
    CallId,
    Cause,
    Constraint,
    EndReason,
    Index,
    Instant,
    JobId,
    JobState,
    Label,
    MaintenanceId,
    Message,
    NodeNumbers,
    Nodes,
    Options,
    PositiveSeconds,
    Profile,
    RejectionCode,
    Seconds,
    Sequence,
    Share,
    Units,
    UnitsPerNode,
    WholeNodes,
)
from pipistrelle.protocol.resources.nodes import NodeResources, NodeTake
from pipistrelle.protocol.resources.request import Request


class JobDescription(Struct, frozen=True, omit_defaults=True, gc=False):
    """A job as the scheduler sees it: the request, without the actual runtime.

    Without ``walltime`` the job may run without limit. Only the batsim dialect uses ``profile``. The labels ``user``,
    ``group``, ``account``, ``queue`` and ``qos`` are absent if the workload does not give them. A job that lost its
    nodes or was preempted is submitted again: ``attempt`` is then 1, 2, ..., and ``remaining`` is the share of its work
    that is left. ``constraint``, ``units_per_node`` and ``whole_nodes`` restrict the nodes that the job may use;
    without them it may use any units. ``recorded_start`` and ``recorded_nodes`` are the job's start and nodes in the
    log (feature ``recorded``). If the recorded start is unknown, or too few units were free then, ``recorded_room`` is
    the first time at which enough units were free. On a machine whose nodes have resources (feature ``resources``),
    ``res`` is the least number of nodes, and ``request`` says what the job takes on them. ``options`` are the
    submission's options (feature ``options``), such as ``begin`` and ``nice``.
    """

    id: JobId
    res: Units
    walltime: PositiveSeconds | None = None
    subtime: Instant | None = None
    profile: Profile | None = None
    user: Label | None = None
    group: Label | None = None
    account: Label | None = None
    queue: Label | None = None
    qos: Label | None = None
    attempt: Attempt = 0
    remaining: Share = 1.0
    constraint: Constraint | None = None
    units_per_node: UnitsPerNode | None = None
    whole_nodes: WholeNodes = False
    recorded_start: Instant | None = None
    recorded_nodes: NodeNumbers | None = None
    recorded_room: Instant | None = None
    request: Request | None = None
    options: Options = field(default_factory=dict)


class PoolInfo(Struct, frozen=True, omit_defaults=True):
    """A group of equal nodes, with inclusive intervals of node and unit numbers.

    ``mttf`` is the mean time to failure of one node. ``age`` is the time that the nodes have been in service at time 0.
    """

    name: Annotated[str, Meta(description="the pool's name, unique on its machine")]
    nodes: Annotated[str, Meta(description="the pool's nodes as intervals of the machine's node numbers: '0-95'")]
    units: Allocation
    units_per_node: Units = 1
    unit: Annotated[str, Meta(description="what a unit is: 'node', 'core' or 'gpu'")] = "node"
    properties: Annotated[
        dict[str, str | int | float | bool], Meta(description="other properties of the pool's nodes, by name")
    ] = field(default_factory=dict)
    prologue: Seconds = 0.0
    epilogue: Seconds = 0.0
    names: Annotated[str, Meta(description="names of the pool's nodes, as 'n[001-096]'; empty: no names")] = ""
    node_class: Annotated[str, Meta(description="class of the pool's nodes, such as a model; empty: no class")] = ""
    mttf: PositiveSeconds | None = None
    age: Seconds | None = None
    resources: NodeResources | None = None
    weight: Annotated[int, Meta(ge=0, description="placements that use weights prefer nodes with a lower one")] = 1


class NodeGroupInfo(Struct, frozen=True, omit_defaults=True):
    """Properties of some nodes, which override the properties of pools and of earlier groups."""

    nodes: NodeNumbers
    node_class: Annotated[str, Meta(description="class of the group's nodes; empty: unchanged")] = ""
    mttf: PositiveSeconds | None = None
    age: Seconds | None = None
    properties: Annotated[
        dict[str, str | int | float | bool], Meta(description="other properties of the group's nodes, by name")
    ] = field(default_factory=dict)


class ClassInfo(Struct, frozen=True, omit_defaults=True):
    """The limits on the jobs of one queue, enforced by the scheduler.

    Jobs of the queue may use only ``units``. An absent limit means no limit. A job's node count is the smallest number
    of nodes that holds its units.
    """

    name: Annotated[str, Meta(min_length=1, description="the queue's name, unique on its machine")]
    units: Allocation
    priority: Annotated[float, Meta(description="the queue's priority, a pure number; the highest is first")] = 0.0
    max_nodes: Nodes | None = None
    max_nodes_per_user: Nodes | None = None
    max_nodes_per_job: Nodes | None = None
    max_walltime: PositiveSeconds | None = None
    prologue: Seconds = 0.0
    epilogue: Seconds = 0.0


class TopologyInfo(Struct, frozen=True, omit_defaults=True):
    """The network: which router each node is attached to.

    Each router has ``nodes_per_router`` places for nodes. Places are numbered from 0, router by router: place p is at
    router p // nodes_per_router. Places in ``absent`` have no node. The nodes 0, 1, ... are at the other places, in
    order. A router has one coordinate in each dimension of ``shape``. ``numbering`` says how the coordinates follow
    from the router's number.
    """

    kind: Annotated[
        Literal["torus", "mesh", "groups", "flat"],
        Meta(description="a grid of routers with or without wrap-around links, nested groups, or no structure"),
    ]
    shape: Annotated[
        tuple[Annotated[int, Meta(ge=1)], ...],
        Meta(description="routers per dimension; for 'groups' the outermost first; empty for 'flat'"),
    ] = ()
    nodes_per_router: Nodes = 1
    numbering: Annotated[
        tuple[tuple[Annotated[int, Meta(ge=0)], Annotated[int, Meta(ge=1)]], ...],
        Meta(
            description="digits of a router's number, slowest first: [the digit's dimension, number of values]; digits"
            " of one dimension: the most significant first; absent: one digit per dimension, in order"
        ),
    ] = ()
    absent: Annotated[str, Meta(description="the places without a node, in the form of units: '0-3 8-11'")] = ""
    hops: Annotated[
        tuple[Annotated[int, Meta(ge=1)], ...],
        Meta(
            description="for 'groups', one number per dimension: hops between two routers of one innermost group, then"
            " of one group of the next level, and so on; absent: 2, 4, ..."
        ),
    ] = ()
    bandwidth: Annotated[
        tuple[BytesPerSecond | Annotated[tuple[BytesPerSecond, ...], Meta(min_length=1)], ...],
        Meta(
            description="bytes/s of a link in each direction, per dimension: one value for all links, or one per link,"
            " from coordinate 0 to 1, from 1 to 2, ...; absent: unknown"
        ),
    ] = ()
    names: Annotated[str, Meta(description="names of all places for nodes, as 'c[0-3]n[0-7]'; empty: no names")] = ""


class PlatformInfo(Struct, frozen=True, omit_defaults=True):
    """The machine: its pools of nodes, its queues and its network."""

    name: Annotated[str, Meta(description="the machine's name")]
    pools: Annotated[tuple[PoolInfo, ...], Meta(description="the machine's pools, by ascending unit numbers")]
    classes: Annotated[tuple[ClassInfo, ...], Meta(description="the machine's queues with limits")] = ()
    topology: TopologyInfo | None = None
    groups: Annotated[tuple[NodeGroupInfo, ...], Meta(description="nodes that differ from others of their pools")] = ()
    licenses: Annotated[dict[str, int], Meta(description="{licence: number that all running jobs may hold}")] = field(
        default_factory=dict
    )


class SimulationBeginsData(Struct, frozen=True, omit_defaults=True):
    """The machine and the run's configuration.

    ``nb_resources`` is the number of schedulable units, which are numbered from 0. ``workloads`` maps a job id's
    prefix to the workload's name.
    """

    nb_resources: Units
    platform: PlatformInfo | None = None
    workloads: Annotated[dict[str, str], Meta(description="{prefix of job ids: name of the workload}")] = field(
        default_factory=dict
    )
    config: Annotated[dict[str, Any], Meta(description="settings of the run, for information: any JSON values")] = (
        field(default_factory=dict)
    )


class JobSubmittedData(Struct, frozen=True, omit_defaults=True, gc=False):
    """A job joined the queue; the scheduler must start or reject it at some time."""

    job_id: JobId
    job: JobDescription


class JobStartedData(Struct, frozen=True, omit_defaults=True, gc=False):
    """A running job that an earlier scheduler started; sent to a scheduler that takes over the run."""

    job_id: JobId
    alloc: Allocation
    takes: Annotated[tuple[NodeTake, ...], Meta(description="what the job takes of its nodes (feature resources)")] = ()
    preempted: Annotated[bool, Meta(description="whether the job is being preempted and runs for its grace period")] = (
        False
    )


class JobCompletedData(Struct, frozen=True, omit_defaults=True, gc=False):
    """A job ended and its units are free."""

    job_id: JobId
    job_state: Annotated[JobState, Meta(description="how the job ended")]
    alloc: Allocation = ""
    return_code: Annotated[int, Meta(description="0 if the job completed successfully, else another number")] = 0
    cause: Annotated[
        str, Meta(description="why the job lost its nodes: the outage's cause, or 'preempted'; empty: it did not")
    ] = ""


class JobCancelledData(Struct, frozen=True, gc=False):
    """The job's submitter cancelled it while it was queued; it has left the queue."""

    job_id: JobId


class Progress(Struct, frozen=True, omit_defaults=True, gc=False):
    """The progress of a killed job: ``progress`` is the completed share of its work."""

    progress: Share
    profile_name: Profile | None = None


class JobKilledData(Struct, frozen=True, omit_defaults=True):
    """The result of one KILL_JOB; ``job_progress`` lists only the jobs that KILL_JOB ended."""

    job_ids: Annotated[tuple[JobId, ...], Meta(description="the jobs that the KILL_JOB named")]
    job_progress: Annotated[dict[str, Progress], Meta(description="{id of a killed job: the job's progress}")] = field(
        default_factory=dict
    )


class RequestedCallData(Struct, frozen=True, omit_defaults=True, gc=False):
    """A call requested with CALL_ME_LATER is due; ``id`` is the request's id."""

    id: CallId = ""


class NoMoreJobsData(Struct, frozen=True, gc=False):
    """The last job of the workloads was submitted; REGISTER_JOB can still add jobs."""


class DecisionRejectedData(Struct, frozen=True, omit_defaults=True, gc=False):
    """A decision was illegal and had no effect.

    It was decision number ``index`` (from 0) of the reply to notice ``reply_to``.
    """

    code: Annotated[RejectionCode, Meta(description="which rule was broken, for programs")]
    message: Message
    reply_to: Sequence
    index: Index
    decision: Annotated[str, Meta(description="the decision's type as sent; empty if the decision had none")]
    job_id: Annotated[str, Meta(description="the decision's job; empty unless the decision names exactly one")] = ""


class NodesFailedData(Struct, frozen=True, omit_defaults=True):
    """Nodes failed: no job can start on their units until they are repaired.

    The jobs that ran on these nodes and could not continue have ended. Each had a JOB_COMPLETED before this event.
    """

    nodes: NodeNumbers
    units: Allocation
    cause: Cause = ""


class NodesRepairedData(Struct, frozen=True):
    """Nodes are repaired: jobs can start on them, except on units under maintenance."""

    nodes: NodeNumbers
    units: Allocation


class MaintenanceAnnouncedData(Struct, frozen=True, omit_defaults=True):
    """Nodes will be down from ``begin`` to ``end``; jobs still running on them are ended."""

    id: MaintenanceId
    begin: Instant
    end: Instant
    nodes: NodeNumbers
    units: Allocation
    cause: Cause = ""


class MaintenanceBeginsData(Struct, frozen=True, omit_defaults=True):
    """Announced maintenance begins: no job can start on these units until it ends."""

    id: MaintenanceId
    nodes: NodeNumbers
    units: Allocation


class MaintenanceEndsData(Struct, frozen=True, omit_defaults=True):
    """Maintenance is over: jobs can start on these units again, except on failed ones."""

    id: MaintenanceId
    nodes: NodeNumbers
    units: Allocation


class SimulationEndsData(Struct, frozen=True):
    """The reason why the simulation ended; no event follows."""

    reason: Annotated[EndReason, Meta(description="why the simulation ended, for programs")] = "completed"
    message: Message = ""


class Event(Struct, tag_field="type", frozen=True, gc=False):
    """Something that happened at ``timestamp``."""

    timestamp: Instant


class SimulationBegins(Event, frozen=True, tag="SIMULATION_BEGINS"):
    """The first event of the first notice: the simulation begins."""

    data: SimulationBeginsData


class SimulationEnds(Event, frozen=True, tag="SIMULATION_ENDS"):
    """The last event of the last notice; the scheduler does not reply to it."""

    data: SimulationEndsData = field(default_factory=SimulationEndsData)


class JobSubmitted(Event, frozen=True, tag="JOB_SUBMITTED", gc=False):
    """A job joined the queue."""

    data: JobSubmittedData


class JobStarted(Event, frozen=True, tag="JOB_STARTED", gc=False):
    """A job was started by an earlier scheduler (feature ``takeover``)."""

    data: JobStartedData


class JobCompleted(Event, frozen=True, tag="JOB_COMPLETED", gc=False):
    """A job ended."""

    data: JobCompletedData


class JobCancelled(Event, frozen=True, tag="JOB_CANCELLED", gc=False):
    """A queued job was cancelled (feature ``cancellations``)."""

    data: JobCancelledData


class JobKilled(Event, frozen=True, tag="JOB_KILLED", gc=False):
    """A KILL_JOB was executed."""

    data: JobKilledData


class RequestedCall(Event, frozen=True, tag="REQUESTED_CALL", gc=False):
    """A CALL_ME_LATER is due."""

    data: RequestedCallData = field(default_factory=RequestedCallData)


class NoMoreJobs(Event, frozen=True, tag="NO_MORE_JOBS", gc=False):
    """The last job of the workloads was submitted."""

    data: NoMoreJobsData = field(default_factory=NoMoreJobsData)


class DecisionRejected(Event, frozen=True, tag="DECISION_REJECTED", gc=False):
    """A decision of the last reply was illegal."""

    data: DecisionRejectedData


class NodesFailed(Event, frozen=True, tag="NODES_FAILED", gc=False):
    """Nodes went down (feature ``failures``)."""

    data: NodesFailedData


class NodesRepaired(Event, frozen=True, tag="NODES_REPAIRED", gc=False):
    """Nodes are up again (feature ``failures``)."""

    data: NodesRepairedData


class MaintenanceAnnounced(Event, frozen=True, tag="MAINTENANCE_ANNOUNCED", gc=False):
    """Maintenance is planned (feature ``failures``)."""

    data: MaintenanceAnnouncedData


class MaintenanceBegins(Event, frozen=True, tag="MAINTENANCE_BEGINS", gc=False):
    """Planned maintenance begins (feature ``failures``)."""

    data: MaintenanceBeginsData


class MaintenanceEnds(Event, frozen=True, tag="MAINTENANCE_ENDS", gc=False):
    """Maintenance is over (feature ``failures``)."""

    data: MaintenanceEndsData


AnyEvent = (
    SimulationBegins
    | SimulationEnds
    | JobSubmitted
    | JobStarted
    | JobCompleted
    | JobCancelled
    | JobKilled
    | RequestedCall
    | NoMoreJobs
    | DecisionRejected
    | NodesFailed
    | NodesRepaired
    | MaintenanceAnnounced
    | MaintenanceBegins
    | MaintenanceEnds
)
