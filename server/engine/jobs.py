"""A job inside the server, and its life as a table; docs/explanation/design.md draws it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf, nan
from typing import Any, Final, Literal, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from pipistrelle.platforms.requests.requests import ANYTHING, NodeRequest
from pipistrelle.protocol.base.state import message_of, plain
from pipistrelle.protocol.events import JobDescription, JobSubmittedData
from pipistrelle.protocol.fields import JobState
from pipistrelle.protocol.units.indices import flagged, flags
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.agenda import Entry
from pipistrelle.traces.profiles import Profile
from pipistrelle.traces.resilience import Resilience

#: bits that one id may take, and digits of a number that may have a bit
_BITS_PER_ID: Final = 64
_DIGITS: Final = 12
#: so many ids take their places at once, and fewer than this one by one
_NEWEST: Final = 1024
_FEW: Final = 64

State = Literal["SUBMITTED", "RUNNING", "REJECTED", "CANCELLED"] | JobState
Step = Literal["execute", "reject", "cancel", "finish", "fail", "reach_walltime", "kill", "lose_nodes"]

#: {state: {step: next state}}; a state without steps is final. A step that is not there is never asked for: KeyError
LIFE: Final[dict[State, dict[Step, State]]] = {
    "SUBMITTED": {"execute": "RUNNING", "reject": "REJECTED", "cancel": "CANCELLED"},
    "RUNNING": {
        "finish": "COMPLETED_SUCCESSFULLY",
        "fail": "COMPLETED_FAILED",
        "reach_walltime": "COMPLETED_WALLTIME_REACHED",
        "kill": "COMPLETED_KILLED",
        "lose_nodes": "COMPLETED_FAILED",
    },
    "REJECTED": {},
    "CANCELLED": {},
    "COMPLETED_SUCCESSFULLY": {},
    "COMPLETED_FAILED": {},
    "COMPLETED_WALLTIME_REACHED": {},
    "COMPLETED_KILLED": {},
}


#: states of jobs that are over and never ran
NEVER_RAN: Final = frozenset(("REJECTED", "CANCELLED"))

_QUEUE: Final = 3
_UNNAMED: Final = (None, None, None, None, None)

#: what a workload can tell of whose a job is
LABEL_NAMES: Final = ("user", "group", "account", "queue", "qos")
#: their names; None where the workload does not tell
Labels = tuple[str | None, str | None, str | None, str | None, str | None]
#: returns what is done for a job, given its id and the name of its profile
WorkOf = Callable[[str, str], Profile]


class LogRecord(NamedTuple):
    """When (s) and on which nodes a job started in reality, None each if that is not known.

    ``room`` is the first time from which the machine has room for it that no other job of the log needs, where it had
    none then or no start is known; else None.
    """

    start: float | None = None
    nodes: str | None = None
    room: float | None = None


_NO_RECORD: Final = LogRecord()


class Try(Protocol):
    """A job's nth try, where jobs can lose their units; `pipistrelle.server.attempts.attempt.Attempt` is one."""

    #: counted from 0
    number: int
    #: the id of the first attempt
    root: str
    #: the walltime of the first (s)
    asked: float
    #: as of when it queues (s); None: of now
    queued: float | None
    #: what made it lose its units; empty if nothing did
    cause: str
    #: whether a new attempt follows
    retried: bool

    @property
    def has_begun(self) -> bool:
        """Whether it has begun to work."""

    def remaining(self, work: float) -> float:
        """Return the share of a job's work (s) that earlier attempts have left, 0 to 1."""


class Job(Struct, eq=False):
    """A job from its submission to its end; times in seconds of simulated time.

    ``runtime`` is how long the job takes if nothing ends it earlier, ``walltime`` what its user asked for (inf: no
    limit). ``start`` and ``end`` are NaN until they are known, ``alloc`` is empty until the start. ``work`` is what the
    job does where its hosts decide how long that takes; ``runtime`` is NaN then.
    """

    id: str
    submit: float
    size: int
    walltime: float
    runtime: float
    profile: str
    state: State = "SUBMITTED"
    start: float = nan
    end: float = nan
    alloc: NodeSet = NodeSet.EMPTY
    metadata: str = ""
    #: entry on the agenda of the end to come, while the job runs
    ending: Entry | None = None
    work: Profile | None = None
    #: what a job that comes to its end returns; it has failed unless that is 0
    return_code: int = 0
    #: for each executor of ``work``, the place in ``alloc`` where it runs; None: one on each unit, in order
    mapping: tuple[int, ...] | None = None
    #: whether the end on the agenda is that of its work, not of its walltime
    in_time: bool = True
    #: how long its units are taken before it begins to work, and after it has ended (s); known at its start
    prologue: float = 0.0
    epilogue: float = 0.0
    #: names of user, group, account, queue and QOS; None where nobody needs them
    labels: Labels | None = None
    #: how it meets failures; None: as all jobs do
    resilience: Resilience | None = None
    #: where nodes can fail, what is known of this try
    attempt: Try | None = None
    #: what it asks of its nodes; None: nothing
    request: NodeRequest | None = None
    #: joules that its units consumed while it ran; NaN where they are not metered
    energy: float = nan
    #: when it is cancelled (s), whether it waits or runs then; NaN: never
    cancelled_at: float = nan
    #: when and where it ran in reality; None where nobody asks
    recorded: LogRecord | None = None
    #: when it joined the queue (s) if that was not at its submission, as it was kept back, or comes back; else NaN
    joined: float = nan

    @property
    def queue(self) -> str | None:
        """The name of the queue that it was submitted to, None if that is not known."""
        return None if self.labels is None else self.labels[_QUEUE]

    def announcement(self) -> JobSubmittedData:
        """Return what a scheduler is told."""
        walltime = None if self.walltime == inf else self.walltime
        recorded = self.recorded or _NO_RECORD
        if self.labels is None and self.attempt is None and self.request is None and recorded is _NO_RECORD:
            return JobSubmittedData(self.id, JobDescription(self.id, self.size, walltime))
        user, group, account, queue, qos = self.labels or _UNNAMED
        number, remaining, queued = 0, 1.0, None
        if self.attempt is not None and self.attempt.number:
            number = self.attempt.number
            remaining = self.attempt.remaining(self.runtime)
            queued = self.attempt.queued
            recorded = _NO_RECORD  # that was another try's
        asked = self.request or ANYTHING
        job = JobDescription(
            self.id,
            self.size,
            walltime,
            queued,
            None,
            user,
            group,
            account,
            queue,
            qos,
            number,
            remaining,
            asked.constraint,
            asked.units_per_node,
            asked.whole_nodes,
            recorded.start,
            recorded.nodes,
            recorded.room,
        )
        return JobSubmittedData(self.id, job)

    def again(self, attempt: Try, now: float, walltime: float) -> Self:
        """Return the job as it comes back to the queue now, for another attempt with this walltime (s)."""
        return replace(
            self,
            id=f"{attempt.root}#{attempt.number}",
            submit=now,
            walltime=walltime,
            state="SUBMITTED",
            start=nan,
            end=nan,
            alloc=NodeSet.EMPTY,
            metadata="",
            ending=None,
            in_time=True,
            attempt=attempt,
            energy=nan,
        )

    def as_plain(self) -> dict[str, Any]:
        """Return all that is known of it as plain values, without the agenda's entry.

        Of its work they say only whether it has some, which has a name.
        """
        known = {name: getattr(self, name) for name in self.__struct_fields__ if name != "ending"}
        known["work"] = self.work is not None
        known["recorded"] = None if self.recorded is None else tuple(self.recorded)
        return {name: plain(value) for name, value in known.items()}

    @classmethod
    def of_plain(cls, state: dict[str, Any], work_of: WorkOf) -> Self:
        """Return the job that `as_plain` tells of; ``work_of`` returns what is done for a job that has work."""
        job = cls(**{name: message_of(value) for name, value in state.items()})
        job.recorded = None if job.recorded is None else LogRecord(*job.recorded)
        job.work = work_of(job.id, job.profile) if state["work"] else None
        return job


@runtime_checkable
class JobSource(Protocol):
    """A workload's jobs, which can be made from any row on."""

    def from_row(self, row: int) -> Iterator[Job]:
        """Iterate over the jobs from that of a row on, counted from 0."""

    def labels(self) -> dict[str, Labels]:
        """Return {job id: whose it is}, empty if the jobs do not tell."""


class JobIds:
    """A set of ids of jobs that only grows; a million of the usual form, ``PREFIX!NUMBER``, take less than a megabyte.

    What would need much room for a few, such as very large numbers, is kept as it is. The newest ids are noted first,
    and take their places many at once, before anybody asks.
    """

    __slots__ = ("_bits", "_count", "_newest", "_others")

    def __init__(self, ids: Iterable[str] = ()) -> None:
        #: {prefix: a bit for each number}
        self._bits: dict[str, bytearray] = {}
        self._others: set[str] = set()
        self._count = 0
        self._newest: list[str] = []
        for job_id in ids:
            self.add(job_id)

    def add(self, job_id: str) -> None:
        """Add an id."""
        newest = self._newest
        newest.append(job_id)
        if len(newest) >= _NEWEST:
            self._take_in()

    def _take_in(self) -> None:
        """Let the newest ids take their places."""
        ids, self._newest = self._newest, []
        if len(ids) < _FEW or not self._take_in_alike([job_id.partition("!") for job_id in ids]):
            for job_id in ids:
                self._take_in_one(job_id)

    def _take_in_alike(self, parts: Sequence[tuple[str, str, str]]) -> bool:
        """Do so for ids of one prefix and of the usual form, as nearly all are; else return False."""
        prefix = parts[0][0]
        names = [name for other, _, name in parts if other == prefix]
        digits, lengths = "".join(names), set(map(len, names))
        if len(names) < len(parts) or 0 in lengths or max(lengths) > _DIGITS:
            return False
        if not (digits.isascii() and digits.isdecimal()):
            return False
        numbers = np.array([int(name) for name in names], dtype=np.int64)
        most = int(numbers.max())
        if most > _BITS_PER_ID * (self._count + _BITS_PER_ID) or any(name[0] == "0" for name in names):
            return False
        bits = np.frombuffer(self._room_for(prefix, most), np.uint8)
        np.bitwise_or.at(bits, numbers >> 3, np.left_shift(1, numbers & 7).astype(np.uint8))
        self._count += len(names)
        return True

    def _take_in_one(self, job_id: str) -> None:
        prefix, number = _numbered(job_id)
        if number < 0 or number > _BITS_PER_ID * (self._count + _BITS_PER_ID):
            self._others.add(job_id)
            return
        self._room_for(prefix, number)[number >> 3] |= 1 << (number & 7)
        self._count += 1

    def _room_for(self, prefix: str, number: int) -> bytearray:
        """Return the bits of a prefix, with one for this number."""
        bits = self._bits.setdefault(prefix, bytearray())
        place = number >> 3
        if place >= len(bits):
            bits.extend(bytes(max(place + 1, 2 * len(bits)) - len(bits)))
        return bits

    def __contains__(self, job_id: str) -> bool:
        self._take_in()
        prefix, number = _numbered(job_id)
        bits = self._bits.get(prefix, b"")
        if 0 <= number >> 3 < len(bits) and bits[number >> 3] >> (number & 7) & 1:
            return True
        return job_id in self._others

    def __iter__(self) -> Iterator[str]:
        for prefix, numbers in self._numbers().items():
            yield from (f"{prefix}!{number}" for number in numbers)
        yield from self._others

    def __eq__(self, other: object) -> bool:
        return set(self) == (set(other) if isinstance(other, JobIds) else other)

    __hash__ = None  # type: ignore[assignment]  # it changes

    def isdisjoint(self, other: Iterable[str]) -> bool:
        """Tell whether none of these ids is in it."""
        return not any(job_id in self for job_id in other)

    def _numbers(self) -> dict[str, NodeSet]:
        self._take_in()
        return {
            prefix: flagged(np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little").astype(bool))
            for prefix, bits in sorted(self._bits.items())
        }

    def state(self) -> dict[str, Any]:
        """Return the ids as plain values."""
        numbers = {prefix: str(numbers) for prefix, numbers in self._numbers().items()}
        return {"numbers": numbers, "others": sorted(self._others), "count": self._count}

    def restore(self, state: dict[str, Any]) -> None:
        """Have these ids alone."""
        self._bits = {
            prefix: bytearray(np.packbits(flags(units, units.last + 1), bitorder="little").tobytes())
            for prefix, text in state["numbers"].items()
            if (units := NodeSet.parse(text))
        }
        self._others = set(state["others"])
        self._newest = []
        self._count = state["count"]


def _numbered(job_id: str) -> tuple[str, int]:
    """Return prefix and number of an id of the usual form; -1 for the number of any other."""
    prefix, _, name = job_id.partition("!")
    if len(name) > _DIGITS or not (name.isascii() and name.isdecimal()) or (name[0] == "0" and name != "0"):
        return prefix, -1
    return prefix, int(name)
