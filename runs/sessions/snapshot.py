"""Snapshots of a run: taken now and then, on a signal, and before an interrupt ends it; written whole or not at all.

A snapshot is a file beside the outputs, ``out_snapshot-N.gz`` with the number of notices so far: gzip of two lines of
JSON. The first is the header (`SnapshotHeader`), with the SHA-256 of the second, which is the state.
"""

import gzip
import hashlib
import os
import signal
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from glob import escape
from math import inf
from pathlib import Path
from types import FrameType
from typing import Any, Final

import msgspec
from msgspec import Struct

from pipistrelle.protocol.base.errors import PipistrelleError, printable
from pipistrelle.protocol.base.lengths import parse_seconds
from pipistrelle.protocol.base.log import logger
from pipistrelle.protocol.base.state import from_json, to_json
from pipistrelle.protocol.fields import package_version
from pipistrelle.runs.execution.pause import Pause
from pipistrelle.server.outputs.csv_file import unwritable
from pipistrelle.server.outputs.folder import OUTPUT_PREFIX, SNAPSHOT, snapshots_in

FORMAT: Final = 2
#: how many are kept unless a user says otherwise
KEPT: Final = 2
#: the session of a run whose scheduler is another process: its state is made again by playing it
SESSION: Final = "session.jsonl.gz"
JOURNAL: Final = f"{OUTPUT_PREFIX}{SESSION}"
_SIMULATED: Final = "sim:"
#: bytes of a snapshot's state, unpacked: more is no honest one
_LONGEST: Final = 1 << 34


class SnapshotError(PipistrelleError):
    """There is no snapshot to go on from, or it is none of this version."""


class SnapshotHeader(Struct, frozen=True, kw_only=True):
    """What a snapshot is of: the run, how far it was, and whether its scheduler's state is in it."""

    snapshot: int
    pipistrelle: str
    sha256: str
    notices: int
    now: float
    in_process: bool
    spec: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Every:
    """How often snapshots are taken: after so many seconds of the wall clock, or of simulated time; inf: not so."""

    wall: float = inf
    simulated: float = inf

    @classmethod
    def of(cls, text: str) -> "Every":
        """Return what ``10m`` or ``sim:7d`` says; LengthError if it says nothing."""
        if text.startswith(_SIMULATED):
            return cls(simulated=parse_seconds(text.removeprefix(_SIMULATED), "time between snapshots"))
        return cls(wall=parse_seconds(text, "time between snapshots"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """How a run is kept, so that it can go on later.

    Parameters
    ----------
    every
        how often snapshots are taken; the first is at the first pause, so that what cannot be kept shows at once.
    most
        how many of them stay.
    leave
        whether snapshots and session stay when the run has come to its own end; else they are removed.
    prefix
        what the outputs' names begin with.
    awaits
        how long (s) another scheduler is waited for when that of a run which begins has gone; None: not at all.
    """

    every: Every = Every()
    most: int = KEPT
    leave: bool = False
    prefix: str = OUTPUT_PREFIX
    awaits: float | None = None


class Snapshots:
    """Takes the snapshots of a run; called with each of its pauses.

    Parameters
    ----------
    folder
        of the outputs.
    spec
        the run's description, plain values.
    keeping
        how often, and how many stay.
    before
        called before each, so that what else is written is there by then.
    """

    def __init__(
        self, folder: Path, spec: dict[str, Any], keeping: Keeping, before: Callable[[], None] = lambda: None
    ) -> None:
        self._folder = folder
        self._spec = spec
        self._every = keeping.every
        self._keep = keeping.most
        self._before = before
        self._prefix = keeping.prefix
        self._due = -inf
        self._due_simulated = -inf
        self._asked = False

    @contextmanager
    def on_signal(self) -> Iterator[None]:
        """Let SIGUSR1 ask for a snapshot meanwhile."""
        handler = signal.signal(signal.SIGUSR1, self._ask)
        try:
            yield
        finally:
            signal.signal(signal.SIGUSR1, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self._asked = True

    def __call__(self, pause: Pause) -> None:
        """Take one if it is time, or somebody has asked."""
        if self._asked or time.monotonic() >= self._due or pause.now >= self._due_simulated:
            self.take(pause)

    def take(self, pause: Pause) -> None:
        """Take one; OutputFailed if it cannot be written."""
        self._asked = False
        self._before()
        state = pause.state()
        body = to_json(state)
        header = SnapshotHeader(
            snapshot=FORMAT,
            pipistrelle=package_version(),
            sha256=hashlib.sha256(body).hexdigest(),
            notices=pause.notices,
            now=pause.now,
            in_process=state["state"] is not None,  # what is saved of another process is beside it
            spec=self._spec,
        )
        path = self._folder / snapshot_name(pause.notices, self._prefix)
        beside = self._folder / f".{path.name}.{os.getpid()}"
        try:
            with beside.open("wb") as file:
                file.write(gzip.compress(msgspec.json.encode(header) + b"\n" + body, compresslevel=1, mtime=0))
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        except OSError as error:
            with suppress(OSError):
                beside.unlink()
            raise unwritable(path, error) from None
        for old in snapshots_in(self._folder, self._prefix)[: -self._keep]:
            with suppress(OSError):
                old.unlink()
        self._due = time.monotonic() + self._every.wall
        self._due_simulated = pause.now + self._every.simulated

    def remove(self) -> None:
        """Remove all snapshots, what kills have left of some, and the session: the run has come to its end."""
        left = self._folder.glob(f".{escape(self._prefix + SNAPSHOT)}*.gz.*")
        kept = snapshots_in(self._folder, self._prefix)
        for path in [*left, *kept, self._folder / f"{self._prefix}{SESSION}"]:
            with suppress(OSError):
                path.unlink()


def snapshot_name(notices: int, prefix: str = OUTPUT_PREFIX) -> str:
    """Return what a snapshot is called that was taken after so many notices."""
    return f"{prefix}{SNAPSHOT}{notices:010}.gz"


def last_snapshot(folder: Path, prefix: str = OUTPUT_PREFIX) -> tuple[SnapshotHeader, dict[str, Any]]:
    """Return the last snapshot that is whole; those that are not are warned of.

    Raises
    ------
    SnapshotError
        when there is none.
    """
    for path in reversed(snapshots_in(folder, prefix)):
        try:
            return read_snapshot(path)
        except SnapshotError as error:
            logger().warning("{}", error)
    raise SnapshotError(
        "there is no snapshot to go on from",
        where=printable(str(folder)),
        expected=f"a file {printable(prefix)}{SNAPSHOT}N.gz that is whole",
        hint="'pipistrelle run --snapshot-every 10m' writes some; a run that has come to its end leaves none.",
    )


def read_snapshot(path: Path) -> tuple[SnapshotHeader, dict[str, Any]]:
    """Return what a snapshot holds; SnapshotError if it is not whole, or of another format."""
    where = printable(str(path))
    try:
        with gzip.open(path) as file:
            head, _, body = file.read(_LONGEST).partition(b"\n")
        header = msgspec.json.decode(head, type=SnapshotHeader)
        if hashlib.sha256(body).hexdigest() != header.sha256:
            raise SnapshotError("the snapshot is not whole", where=where)
        if header.snapshot != FORMAT:
            raise SnapshotError(
                "a snapshot of another format", where=where, expected=str(FORMAT), found=str(header.snapshot)
            )
        return header, from_json(body)
    except (OSError, EOFError, zlib.error, ValueError, RecursionError) as error:
        raise SnapshotError(f"this is no whole snapshot ({printable(str(error))[:200]})", where=where) from None
