"""What a witness saw of the jobs that waited, as it is kept."""

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
    """What a witness saw of a waiting job once the scheduler had decided.

    ``limit`` is what limited it, ``detail`` which one. ``free`` are the units that were free and open to its class;
    ``place`` its place in the queue, from 1, of ``waiting`` jobs, and ``first`` who is first, None where nothing was
    free and nobody looked at the queue. ``reservation`` is by when it will start (s; inf: no one can tell), None where
    the scheduler does not tell; ``terms`` what its place depends on.
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
    """Nodes that went down or came up, at ``time`` (s), and how many units they have."""

    time: float
    what: Literal["failed", "maintenance", "repaired"]
    nodes: str
    units: int


class Seen(Struct):
    """What came out of a replay, as far as it concerns one job.

    ``queued`` is when the job joined the queue (s), later than its submission where it waited for others before; None:
    it never did. ``rejected`` is when it was rejected (s), None if it was not. ``submitted`` are all jobs that joined
    the queue, by id.
    """

    looks: list[Look]
    queued: float | None
    rejected: float | None
    happenings: list[Happening]
    submitted: dict[str, JobLine]


class Replayed(Struct):
    """What came out of a replay: ``looks`` are each job's, packed; ``queued`` and ``rejected`` times (s), by job id."""

    looks: dict[str, bytes]
    queued: dict[str, float]
    rejected: dict[str, float]
    happenings: list[Happening]
    submitted: dict[str, JobLine]

    def of(self, job_id: str) -> Seen:
        """Return what was seen of one job."""
        packed = self.looks.get(job_id)
        looks = [] if packed is None else _looks.decode(zlib.decompress(packed))
        return Seen(looks, self.queued.get(job_id), self.rejected.get(job_id), self.happenings, self.submitted)


class RunIndex(Struct):
    """All that explains the jobs of a run.

    ``not_replayed`` says why the run was not repeated, None if it was. ``depends_on`` is {job id: which jobs it was to
    wait for, in words}; ``others`` are ids of jobs that never joined the queue; ``polls`` whether the scheduler looks
    only at fixed steps.
    """

    key: str
    files: RunFiles
    not_replayed: str | None = None
    replayed: Replayed | None = None
    depends_on: dict[str, str] = {}
    others: list[str] = []
    polls: bool = False


class TooMuch(Exception):
    """More was seen than anybody wants to keep."""


def packed(looks: list[Look]) -> bytes:
    """Return looks as `Replayed` keeps them."""
    return zlib.compress(_packer.encode(looks), 1)


_packer: Final = msgspec.msgpack.Encoder()
_looks: Final = msgspec.msgpack.Decoder(list[Look])
