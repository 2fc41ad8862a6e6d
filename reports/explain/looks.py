"""Observations of the queued jobs, made while a run is simulated again."""

import zlib
from collections.abc import Callable, Mapping
from typing import Final, Literal

import msgspec
from msgspec import Struct

from pipistrelle.runs.folders.files import JobLine, RunFiles
from pipistrelle.server.engine.jobs import Labels

#: names of a job's labels
LABELS: Final = ("user", "group", "account", "queue", "qos")
#: returns whether a job counts, given its id and labels
Wanted = Callable[[str, Labels], bool]
Limit = Literal[
    "dependency",
    "class",
    "limit",
    "units",
    "down",
    "nodes",
    "window",
    "order",
    "poll",
    "other",
    "unknown",
    "resources",
]


class Look(Struct, frozen=True, array_like=True):
    """An observation of a queued job, made right after the scheduler decided.

    ``limit`` is the kind of limit that keeps the job waiting, and ``detail`` names the limit. ``free`` is the number
    of free units that the job's class may use. ``place`` is the job's position in the queue, from 1. The queue has
    ``waiting`` jobs, and ``first`` is the first of them. ``place``, ``waiting`` and ``first`` are None if no unit was
    free, because the queue was not examined. ``reservation`` is the job's latest reserved start (s; inf if unknown), or
    None. ``terms`` are the terms of its priority.
    """

    time: float
    limit: Limit
    detail: str
    free: int
    place: int | None = None
    waiting: int | None = None
    first: str | None = None
    reservation: float | None = None
    terms: Mapping[str, float] | None = None


class Happening(Struct, frozen=True):
    """A change of the machine at ``time`` (s).

    It says which nodes went down or came up, and their number of units.
    """

    time: float
    what: Literal["failed", "maintenance", "repaired"]
    nodes: str
    units: int


class Seen(Struct):
    """The observations of one job while the run was simulated again.

    ``queued`` is when the job joined the queue (s), after its dependencies; None if it never did. ``rejected`` is when
    it was rejected (s), or None. ``submitted`` has all jobs that joined the queue, by id.
    """

    looks: list[Look]
    queued: float | None
    rejected: float | None
    happenings: list[Happening]
    submitted: dict[str, JobLine]


class Replayed(Struct):
    """The observations of all jobs while the run was simulated again, by job id.

    The observations are stored as bytes. Times are in seconds.
    """

    looks: dict[str, bytes]
    queued: dict[str, float]
    rejected: dict[str, float]
    happenings: list[Happening]
    submitted: dict[str, JobLine]

    def of(self, job_id: str) -> Seen:
        """Return the observations of the job ``job_id``."""
        packed = self.looks.get(job_id)
        looks = [] if packed is None else _looks.decode(zlib.decompress(packed))
        return Seen(looks, self.queued.get(job_id), self.rejected.get(job_id), self.happenings, self.submitted)


class RunIndex(Struct):
    """All facts that explain the jobs of a run.

    ``not_replayed`` says why the run was not repeated; None if it was repeated. ``depends_on`` is {job id: names of the
    jobs that it waits for}. ``others`` are the ids of jobs that never joined the queue. ``polls`` tells whether the
    scheduler decides only at fixed steps.
    """

    key: str
    files: RunFiles
    not_replayed: str | None = None
    replayed: Replayed | None = None
    depends_on: dict[str, str] = {}
    others: list[str] = []
    polls: bool = False


class TooMuch(Exception):
    """The observations of a run's jobs would need too much memory."""


def packed(looks: list[Look]) -> bytes:
    """Return the observations of a job in the packed form of `Replayed`."""
    return zlib.compress(_packer.encode(looks), 1)


_packer: Final = msgspec.msgpack.Encoder()
_looks: Final = msgspec.msgpack.Decoder(list[Look])
