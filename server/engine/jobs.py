"""A job inside the server, and its states (see docs/explanation/design.md)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf, nan
from typing import Any, Final, Literal, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from pipistrelle.platforms.requests.requests import ANYTHING, NodeRequest
from pipistrelle.platforms.resources.takes import Taken
from pipistrelle.protocol.base.state import message_of, plain
from pipistrelle.protocol.events import JobDescription, JobSubmittedData
from pipistrelle.protocol.fields import JobState
from pipistrelle.protocol.resources.request import Request
from pipistrelle.protocol.units.indices import flagged, flags
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.agenda import Entry
from pipistrelle.traces.profiles import Profile
from pipistrelle.traces.resilience import Resilience

#: maximum bits per id; maximum digits of a number that is stored as a bit
_BITS_PER_ID: Final = 64
_DIGITS: Final = 12
#: number of new ids per batch; fewer than _FEW are added one by one
_NEWEST: Final = 1024
_FEW: Final = 64

State = Literal["SUBMITTED", "RUNNING", "REJECTED", "CANCELLED"] | JobState
Step = Literal["execute", "reject", "cancel", "finish", "fail", "reach_walltime", "kill", "lose_nodes"]

#: {state: {step: next state}}; a final state has no steps. An impossible step is a bug and raises KeyError
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


#: final states of jobs that never ran
NEVER_RAN: Final = frozenset(("REJECTED", "CANCELLED"))

_QUEUE: Final = 3
_UNNAMED: Final = (None, None, None, None, None)

#: fields of a workload that name the user, group, account, queue and QOS of a job
LABEL_NAMES: Final = ("user", "group", "account", "queue", "qos")
#: values of `LABEL_NAMES` for one job; None if the workload has none
Labels = tuple[str | None, str | None, str | None, str | None, str | None]
WorkOf = Callable[[str, str], Profile]


class LogRecord(NamedTuple):
    """A job's start (s) and nodes according to the log; None if unknown.

    ``room`` is set if the log has no start for the job, or if too few units were free at that start. It is the
    first time (s) at which the job fits beside the log's other jobs, or the time at which a cancelled job leaves the
    queue.
    """

    start: float | None = None
    nodes: str | None = None
    room: float | None = None


_NO_RECORD: Final = LogRecord()


class Try(Protocol):
    """One attempt to run a job; see `pipistrelle.server.attempts.attempt.Attempt`."""

    #: number of the attempt, from 0
    number: int
    #: id of the first attempt
    root: str
    #: walltime of the first attempt (s)
    asked: float
    #: submit time that decides its queue position (s); None: the present time
    queued: float | None
    #: why the attempt lost its units; empty if it did not
    cause: str
    retried: bool

    @property
    def has_begun(self) -> bool:
        """Whether the attempt's work has begun."""

    def remaining(self, work: float) -> float:
        """Return the share (0 to 1) of a job's work that earlier attempts left to do.

        ``work`` is the job's whole work (s).
        """


class Job(Struct, eq=False):
    """A job from its submission to its end; times are in simulated seconds.

    ``runtime`` is how long the job takes if nothing ends it earlier. ``walltime`` is the requested limit (inf: none).
    ``start`` and ``end`` are NaN until known, and ``alloc`` is empty until the start. If simulated hosts decide how
    long the job takes, ``work`` is set and ``runtime`` may be NaN.
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
    #: agenda entry of its end while the job runs
    ending: Entry | None = None
    work: Profile | None = None
    #: exit status at its end; not 0 if the job failed
    return_code: int = 0
    #: index in ``alloc`` of each executor of ``work``; None: one executor per unit, in order
    mapping: tuple[int, ...] | None = None
    #: whether the job ends because its work completes, before its walltime
    in_time: bool = True
    #: prologue and epilogue on its units (s); known at its start
    prologue: float = 0.0
    epilogue: float = 0.0
    #: user, group, account, queue and QOS; None if not needed
    labels: Labels | None = None
    #: resilience options of this job; None: the run's default
    resilience: Resilience | None = None
    attempt: Try | None = None
    request: NodeRequest | None = None
    #: what it takes of nodes that jobs share; None on a machine whose nodes have no resources
    resources: Request | None = None
    #: what it takes of the nodes that it holds or held; None on other machines, and before its start
    taken: Taken | None = None
    #: energy of its units while the job ran (J); NaN if not metered
    energy: float = nan
    #: when its submitter cancels the job (s), queued or running; NaN: never
    cancelled_at: float = nan
    #: its recorded start and nodes; None if not needed
    recorded: LogRecord | None = None
    #: submission options that the scheduler decides on; None: none, or the scheduler does not take them
    options: dict[str, str] | None = None
    #: the most whole units that the scheduler may choose for the job; 0: it gets ``size`` units
    most: int = 0
    #: when the job joined the queue (s), if later than its submission; else NaN
    joined: float = nan

    @property
    def queue(self) -> str | None:
        """Name of the job's queue; None if unknown."""
        return None if self.labels is None else self.labels[_QUEUE]

    def admits(self, size: int) -> bool:
        """Return whether the job's submission allows this number of units.

        It does if the submission names this number, or a range that includes it.
        """
        return self.size <= size <= max(self.size, self.most)

    def announcement(self) -> JobSubmittedData:
        """Return the job's data for JOB_SUBMITTED."""
        walltime = None if self.walltime == inf else self.walltime
        recorded = self.recorded or _NO_RECORD
        if (
            self.labels is None
            and self.attempt is None
            and self.request is None
            and recorded is _NO_RECORD
            and self.options is None
        ):
            return JobSubmittedData(self.id, JobDescription(self.id, self.size, walltime, request=self.resources))
        user, group, account, queue, qos = self.labels or _UNNAMED
        number, remaining, queued = 0, 1.0, None
        if self.attempt is not None and self.attempt.number:
            number = self.attempt.number
            remaining = self.attempt.remaining(self.runtime)
            queued = self.attempt.queued
            recorded = _NO_RECORD  # the record is for another attempt
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
            self.resources,
            self.options or {},
        )
        return JobSubmittedData(self.id, job)

    def again(self, attempt: Try, now: float, walltime: float) -> Self:
        """Return a copy of the job to requeue now.

        The copy is a new attempt with this walltime (s).
        """
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
            taken=None,
            energy=nan,
        )

    def as_plain(self) -> dict[str, Any]:
        """Return the job's state as JSON values.

        Of ``work``, the state says only whether it is set. The agenda entry for the job's end is not included.
        """
        known = {name: getattr(self, name) for name in self.__struct_fields__ if name != "ending"}
        known["work"] = self.work is not None
        known["recorded"] = None if self.recorded is None else tuple(self.recorded)
        return {name: plain(value) for name, value in known.items()}

    @classmethod
    def of_plain(cls, state: dict[str, Any], work_of: WorkOf) -> Self:
        """Return the job of a state from `as_plain`; ``work_of`` supplies its work."""
        job = cls(**{name: message_of(value) for name, value in state.items()})
        job.recorded = None if job.recorded is None else LogRecord(*job.recorded)
        job.work = work_of(job.id, job.profile) if state["work"] else None
        return job


@runtime_checkable
class JobSource(Protocol):
    """Interface of a workload's jobs, which can be read from any row of the workload."""

    def from_row(self, row: int) -> Iterator[Job]:
        """Iterate over the jobs, beginning at this row (from 0)."""

    def labels(self) -> dict[str, Labels]:
        """Return {job id: user, group, account, queue and QOS}.

        The result is empty if the jobs have no such labels.
        """


class JobIds:
    """A growing set of job ids.

    A million ids of the form ``PREFIX!NUMBER`` take less than a megabyte, because each is stored as one bit. Ids for
    which bits would waste space, such as very large numbers, are stored as text. New ids are collected, and stored in
    batches or when the set is read.
    """

    __slots__ = ("_bits", "_count", "_newest", "_others")

    def __init__(self, ids: Iterable[str] = ()) -> None:
        #: {prefix: one bit per number}
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
        ids, self._newest = self._newest, []
        if len(ids) < _FEW or not self._take_in_alike([job_id.partition("!") for job_id in ids]):
            for job_id in ids:
                self._take_in_one(job_id)

    def _take_in_alike(self, parts: Sequence[tuple[str, str, str]]) -> bool:
        """Add ids of the form ``PREFIX!NUMBER`` that share one prefix.

        Each id is given as (prefix, ``!``, number). Return whether all ids were added. Add none if an id has another
        form or a much larger number.
        """
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
        """Return whether none of these ids is in the set."""
        return not any(job_id in self for job_id in other)

    def _numbers(self) -> dict[str, NodeSet]:
        self._take_in()
        return {
            prefix: flagged(np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little").astype(bool))
            for prefix, bits in sorted(self._bits.items())
        }

    def state(self) -> dict[str, Any]:
        """Return the ids as JSON values, for a snapshot."""
        numbers = {prefix: str(numbers) for prefix, numbers in self._numbers().items()}
        return {"numbers": numbers, "others": sorted(self._others), "count": self._count}

    def restore(self, state: dict[str, Any]) -> None:
        """Replace all ids by those of a snapshot."""
        self._bits = {
            prefix: bytearray(np.packbits(flags(units, units.last + 1), bitorder="little").tobytes())
            for prefix, text in state["numbers"].items()
            if (units := NodeSet.parse(text))
        }
        self._others = set(state["others"])
        self._newest = []
        self._count = state["count"]


def _numbered(job_id: str) -> tuple[str, int]:
    """Split a job id ``PREFIX!NUMBER`` into prefix and number.

    The number is -1 if the id has another form.
    """
    prefix, _, name = job_id.partition("!")
    if len(name) > _DIGITS or not (name.isascii() and name.isdecimal()) or (name[0] == "0" and name != "0"):
        return prefix, -1
    return prefix, int(name)
