"""Records of what a witness saw of the waiting jobs."""

import zlib
from collections.abc import Callable, Mapping
from typing import Final, Literal

import msgspec
from msgspec import Struct

from pipistrelle.runs.folders.files import JobLine, RunFiles
from pipistrelle.server.engine.jobs import Labels

#: names of the labels
LABELS: Final = ("user", "group", "account", "queue", "qos")
#: tells by id and labels whether a job counts
Wanted = Callable[[str, Labels], bool]
Limit = Literal["dependency", "class", "limit", "units", "down", "nodes", "window", "order", "poll", "other", "unknown"]


class Look(Struct, frozen=True, array_like=True):
    """A waiting job's state after the scheduler decided.

    ``limit`` keeps it waiting, ``detail`` names which one. ``free`` counts the free units open to its class. ``place``
    is its place in the queue, from 1, of ``waiting`` jobs, and ``first`` the first job there; None if nothing was free,
    so that the queue was not examined. ``reservation`` is its latest start (s; inf if unknown), None without one.
    ``terms`` decide its place.
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
    """Nodes that went down or came up at ``time`` (s), with their number of units."""

    time: float
    what: Literal["failed", "maintenance", "repaired"]
    nodes: str
    units: int


class Seen(Struct):
    """The results of a replay for one job.

    ``queued`` is when the job joined the queue (s), after its dependencies; None if it never did. ``rejected`` is when
    it was rejected (s), if it was. ``submitted`` are all jobs that joined the queue, by id.
    """

    looks: list[Look]
    queued: float | None
    rejected: float | None
    happenings: list[Happening]
    submitted: dict[str, JobLine]


class Replayed(Struct):
    """The results of a replay by job id: packed ``looks``, times in seconds."""

    looks: dict[str, bytes]
    queued: dict[str, float]
    rejected: dict[str, float]
    happenings: list[Happening]
    submitted: dict[str, JobLine]

    def of(self, job_id: str) -> Seen:
        """Return the results for one job."""
        packed = self.looks.get(job_id)
        looks = [] if packed is None else _looks.decode(zlib.decompress(packed))
        return Seen(looks, self.queued.get(job_id), self.rejected.get(job_id), self.happenings, self.submitted)


class RunIndex(Struct):
    """Everything that explains the jobs of a run.

    ``not_replayed`` says why the run was not repeated, None if it was. ``depends_on`` is {job id: the jobs it waits
    for, in words}; ``others`` are ids of jobs that never joined the queue; ``polls`` tells whether the scheduler
    decides only at fixed steps.
    """

    key: str
    files: RunFiles
    not_replayed: str | None = None
    replayed: Replayed | None = None
    depends_on: dict[str, str] = {}
    others: list[str] = []
    polls: bool = False


class TooMuch(Exception):
    """The replay saw more than can reasonably be kept."""


def packed(looks: list[Look]) -> bytes:
    """Return looks in the packed form of `Replayed`."""
    return zlib.compress(_packer.encode(looks), 1)


_packer: Final = msgspec.msgpack.Encoder()
_looks: Final = msgspec.msgpack.Decoder(list[Look])
