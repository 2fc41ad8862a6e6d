"""Field types of the protocol with units and bounds, and limits of the protocol."""

from typing import Annotated, Final, Literal, get_args

from msgspec import Meta

#: protocol version of this package, as in SPEC.md; independent of the package's version
PROTOCOL_VERSION = 1
#: oldest protocol version that this package understands
PROTOCOL_OLDEST = 1

#: bounds that keep sums and products of times finite
LONGEST = 1e16
LATEST = 1e18

#: maximum number of decisions in a reply, and of illegal decisions before the next notice
MAX_DECISIONS = 1_000_000
MAX_REJECTIONS = 10_000
#: maximum number of pending calls, and of jobs that a scheduler may register
MAX_CALLS = 100_000
MAX_REGISTERED = 1_000_000
#: maximum number of units or nodes of a machine: unit numbers have 15 digits
MOST_UNITS = 10**15
#: maximum number of entries of any other list in a scheduler's frame
MAX_ENTRIES = 1_000_000
#: maximum number of wake conditions for a type of event
MAX_CONDITIONS = 100
#: maximum number of strings, without field names, in a scheduler's frame: short strings take much memory
MAX_TEXTS = 5_000_000
#: maximum length of a scheduler's state in bytes of JSON
MAX_STATE = 60 * 1024 * 1024

Seconds = Annotated[float, Meta(ge=0, le=LONGEST, description="a duration in seconds, finite")]
PositiveSeconds = Annotated[float, Meta(gt=0, le=LONGEST, description="a duration in seconds, finite, above zero")]
Instant = Annotated[
    float, Meta(ge=0, le=LATEST, description="simulated time in seconds since time 0, an IEEE double, finite")
]
Sequence = Annotated[
    int, Meta(ge=0, description="number of a message from the server: 0 for WELCOME, from 1 for notices")
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
Share = Annotated[float, Meta(ge=0, le=1, description="a share of a job's work, 0 to 1")]
Index = Annotated[int, Meta(ge=0, description="position of a decision in its reply, from 0")]
Profile = Annotated[str, Meta(description="name of a job's profile; batsim dialect only")]
Label = Annotated[str, Meta(min_length=1, description="a name as the job's submitter gave it")]
Constraint = Annotated[
    str, Meta(min_length=1, description="constraint on the job's nodes, as in Slurm: 'gpu_model=a100&nvlink|pool=big'")
]
Options = Annotated[
    dict[Annotated[str, Meta(min_length=1, max_length=64)], Annotated[str, Meta(max_length=4096)]],
    Meta(description="{long name of an option of Slurm's sbatch: its value}"),
]
UnitsPerNode = Annotated[
    int, Meta(ge=1, le=MOST_UNITS, description="units on each of the job's nodes; the last node may have fewer")
]
WholeNodes = Annotated[bool, Meta(description="whether the job needs whole nodes, of 'units_per_node' units each")]
Attempt = Annotated[
    int, Meta(ge=0, description="how often the job lost its nodes or was preempted, and was submitted again")
]
NodeNumbers = Annotated[str, Meta(description="a set of node numbers as inclusive intervals: '0-3 8'")]
Cause = Annotated[str, Meta(description="why nodes are down, from the failure model or the log")]
MaintenanceId = Annotated[str, Meta(min_length=1, description="name of a maintenance, unique in the run")]
Version = Annotated[int, Meta(description="a version of the protocol, the N of pipistrelle/N")]
Message = Annotated[str, Meta(description="a text for people; programs use the code")]

JobState = Literal[
    "COMPLETED_SUCCESSFULLY",
    "COMPLETED_FAILED",
    "COMPLETED_WALLTIME_REACHED",
    "COMPLETED_KILLED",
]

#: event types that a reply's ``wake`` may list; all others always wake the scheduler
WakeType = Literal["JOB_SUBMITTED", "JOB_COMPLETED", "JOB_KILLED", "NO_MORE_JOBS"]

#: optional parts of the protocol that a HELLO may request
Feature = Literal[
    "cancellations",
    "dynamic_jobs",
    "failures",
    "labels",
    "lookahead",
    "options",
    "preemption",
    "recorded",
    "resources",
    "wake_filter",
    "wake_when",
]
FEATURES: tuple[Feature, ...] = get_args(Feature)

#: feature in a HELLO: the scheduler can take over another scheduler's run; never in a WELCOME
TAKEOVER: Final = "takeover"
#: feature in a HELLO: the scheduler can save and restore its state; a WELCOME has ``max_state`` instead
STATE: Final = "state"

#: modes of preemption: requeue the job without the work since its last dump, requeue it after a new dump, or cancel it
PreemptMode = Literal["requeue", "checkpoint", "cancel"]
#: the ``cause`` in the JOB_COMPLETED of a preempted job
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

#: why a scheduler leaves before the simulation ends
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
    "wrong_resources",
    "past_time",
    "unknown_call",
    "duplicate_call",
    "duplicate_job",
    "too_large",
    "too_many",
    "feature_off",
]

#: the version in pyproject.toml; reading it from the installed package's metadata would take 20 ms
_VERSION: Final = "0.2.0"

RefusalCode = Literal["version", "feature", "busy", "malformed", "protocol_error"]


def package_version() -> str:
    """Return the version of the package."""
    return _VERSION
