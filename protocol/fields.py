"""Named field types: the unit, the bounds and the description of each quantity, written once."""

from functools import cache
from typing import Annotated, Final, Literal, get_args

from msgspec import Meta

#: protocol version spoken by this package, apart from the package's own version; SPEC.md names the same.
PROTOCOL_VERSION = 1
#: oldest protocol version that this package still understands.
PROTOCOL_OLDEST = 1

#: bounds far beyond any cluster's life that keep sums and products of times finite
LONGEST = 1e16
LATEST = 1e18

#: how many decisions one reply may have, and how many illegal ones there may be before the next notice
MAX_DECISIONS = 1_000_000
MAX_REJECTIONS = 10_000
#: calls that may be pending at a time, and jobs that a scheduler may register in all
MAX_CALLS = 100_000
MAX_REGISTERED = 1_000_000
#: units, or nodes, of the largest machine that there can be: a unit's number has 15 digits
MOST_UNITS = 10**15
#: entries of any other list in a scheduler's frame
MAX_ENTRIES = 1_000_000
#: texts in a scheduler's frame, names of fields apart: what takes most memory for its length, when it is read
MAX_TEXTS = 5_000_000
#: bytes of the JSON of a scheduler's state
MAX_STATE = 60 * 1024 * 1024

Seconds = Annotated[float, Meta(ge=0, le=LONGEST, description="a duration in seconds, finite")]
PositiveSeconds = Annotated[float, Meta(gt=0, le=LONGEST, description="a duration in seconds, finite, above zero")]
Instant = Annotated[
    float, Meta(ge=0, le=LATEST, description="simulated time in seconds since time 0, an IEEE double, finite")
]
Sequence = Annotated[
    int, Meta(ge=0, description="number of a message of the server; WELCOME is 0, notices count from 1")
]
Units = Annotated[int, Meta(ge=1, le=MOST_UNITS, description="a number of schedulable units (nodes, cores or GPUs)")]
Nodes = Annotated[int, Meta(ge=1, le=MOST_UNITS, description="a number of nodes")]
BytesPerSecond = Annotated[float, Meta(gt=0, le=LONGEST, description="bytes/s, finite, above zero")]
JobId = Annotated[str, Meta(min_length=1, description="WORKLOAD!NAME, for example 'w0!17'")]
Allocation = Annotated[
    str,
    Meta(
        description="a set of units as inclusive intervals in decimal, separated by single spaces: '0-3 8-19'",
    ),
]
Why = Annotated[str, Meta(description="the scheduler's reason, free text, kept in the outputs")]
CallId = Annotated[str, Meta(description="the scheduler's name for a call; empty for a call without one")]
Share = Annotated[float, Meta(ge=0, le=1, description="the done share of a job's work, 0 to 1")]
Index = Annotated[int, Meta(ge=0, description="place of a decision in its reply, counted from 0")]
Profile = Annotated[str, Meta(description="name of a job's profile; batsim dialect only")]
Label = Annotated[str, Meta(min_length=1, description="a name as the job's submitter gave it")]
Constraint = Annotated[
    str, Meta(min_length=1, description="which nodes the job may have, as Slurm's: 'gpu_model=a100&nvlink|pool=big'")
]
UnitsPerNode = Annotated[
    int, Meta(ge=1, le=MOST_UNITS, description="so many units on each of its nodes, the rest on one more")
]
WholeNodes = Annotated[bool, Meta(description="whether it shares no node: 'units_per_node' are all that a node has")]
Attempt = Annotated[
    int, Meta(ge=0, description="how often the job has lost its nodes, or was preempted, and was submitted anew")
]
NodeNumbers = Annotated[str, Meta(description="a set of nodes, written like units: '0-3 8'")]
Cause = Annotated[str, Meta(description="why nodes are down, as the failure model or the log says")]
MaintenanceId = Annotated[str, Meta(min_length=1, description="name of a maintenance, unique in the run")]
Version = Annotated[int, Meta(description="a version of the protocol, the N of pipistrelle/N")]
Message = Annotated[str, Meta(description="a text for people; programs look at the code beside it")]

JobState = Literal[
    "COMPLETED_SUCCESSFULLY",
    "COMPLETED_FAILED",
    "COMPLETED_WALLTIME_REACHED",
    "COMPLETED_KILLED",
]

#: event types that a reply's ``wake`` may list; the others always wake the scheduler.
WakeType = Literal["JOB_SUBMITTED", "JOB_COMPLETED", "JOB_KILLED", "NO_MORE_JOBS"]

#: optional parts of the protocol that a HELLO may ask for.
Feature = Literal["cancellations", "dynamic_jobs", "failures", "labels", "preemption", "recorded", "wake_filter"]
FEATURES: tuple[Feature, ...] = get_args(Feature)

#: what a HELLO names among its features if the scheduler can take over a run that another one began; no WELCOME has it
TAKEOVER: Final = "takeover"
#: the same, if it can give its state and take it back; a WELCOME with ``max_state`` says that it will be asked to
STATE: Final = "state"

#: what becomes of a job that is preempted: it comes back without its work since its last dump, or after one more, or
#: not at all
PreemptMode = Literal["requeue", "checkpoint", "cancel"]
#: what a JOB_COMPLETED gives as the cause of the end of a job that was preempted
PREEMPTED: Final = "preempted"

EndReason = Literal[
    "completed",
    "stopped",
    "horizon",
    "stalled",
    "strict",
    "interrupted",
    "scheduler_left",
    "scheduler_interrupted",
    "scheduler_killed",
    "scheduler_timeout",
    "scheduler_error",
    "protocol_error",
    "error",
]

#: why a scheduler leaves before the simulation is over
LeaveReason = Literal["interrupted", "error"]

RejectionCode = Literal[
    "malformed",
    "unknown_type",
    "unknown_job",
    "wrong_state",
    "bad_allocation",
    "unknown_unit",
    "busy_unit",
    "wrong_size",
    "wrong_units",
    "past_time",
    "unknown_call",
    "duplicate_call",
    "duplicate_job",
    "too_large",
    "too_many",
    "feature_off",
]

RefusalCode = Literal["version", "busy", "malformed", "protocol_error"]


@cache
def package_version() -> str:
    """Return the version of the installed package."""
    from importlib.metadata import PackageNotFoundError, version  # it imports a mail reader, for one text

    try:
        return version("pipistrelle")
    except PackageNotFoundError:  # an uninstalled clone
        return "0+uninstalled"
