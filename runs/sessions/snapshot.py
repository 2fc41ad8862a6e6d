"""Save snapshots of a run's state.

They are saved regularly, on a signal, and before an interrupt. Each snapshot is a file ``out_snapshot-N.gz`` next to
the outputs, where N is the number of notices so far. It is written completely or not at all. It has two lines of JSON:
the header (`SnapshotHeader`) and the state.
"""

import gzip
import hashlib
import io
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
from pipistrelle.protocol.base.whole import only_regular, write_whole
from pipistrelle.protocol.fields import package_version
from pipistrelle.runs.execution.pause import Pause
from pipistrelle.server.outputs.csv_file import unwritable
from pipistrelle.server.outputs.folder import OUTPUT_PREFIX, SNAPSHOT, snapshots_in
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.files import Counted, Swelling

FORMAT: Final = 2
#: default number of snapshots to keep
KEPT: Final = 2
#: file of the run's session with a scheduler process; a replay of it restores the scheduler's state
SESSION: Final = "session.jsonl.gz"
JOURNAL: Final = f"{OUTPUT_PREFIX}{SESSION}"
_SIMULATED: Final = "sim:"
#: number of bytes of a snapshot to unpack at a time
_BLOCK: Final = 1 << 20
#: a snapshot may unpack to this many times its own size, about four times what states need, or to this many bytes
_SWELLS: Final = 40
_SMALL: Final = 16 << 20
#: approximate memory of one object, list and value of a state (bytes)
_OF_OBJECT, _OF_LIST, _OF_VALUE = 240, 80, 32
#: largest memory of a state: bytes per byte of the file, and bytes that are always allowed
_TAKES: Final = 60
_LITTLE: Final = 512 << 20


class SnapshotError(PipistrelleError):
    """A snapshot cannot be used.

    It is missing, damaged or of another version, or the run cannot continue from it.
    """


class SnapshotHeader(Struct, frozen=True, kw_only=True):
    """The header of a snapshot: the run, its progress, and the digest of the state."""

    snapshot: int
    pipistrelle: str
    sha256: str
    notices: int
    now: float
    in_process: bool
    spec: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Every:
    """The time between two snapshots; inf: never.

    It is given in wall-clock and in simulated seconds.
    """

    wall: float = inf
    simulated: float = inf

    @classmethod
    def of(cls, text: str) -> "Every":
        """Parse an interval such as ``10m`` (wall clock) or ``sim:7d`` (simulated time)."""
        if text.startswith(_SIMULATED):
            return cls(simulated=parse_seconds(text.removeprefix(_SIMULATED), "time between snapshots"))
        return cls(wall=parse_seconds(text, "time between snapshots"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """Settings that say when a run saves snapshots, and which snapshots it keeps.

    Attributes:
        every: time between snapshots; the first is saved as early as possible, so that problems show at once.
        most: number of snapshots to keep.
        leave: keep snapshots and session when the run ends normally.
        prefix: first part of the names of the output files.
        awaits: how long to wait (s) for a new scheduler process if the scheduler dies; None: do not wait. A resumed run
            never waits.
    """

    every: Every = Every()
    most: int = KEPT
    leave: bool = False
    prefix: str = OUTPUT_PREFIX
    awaits: float | None = None


class Snapshots:
    """The snapshots of a run; the run calls this object between every two notices.

    Args:
        folder: the folder of the outputs.
        spec: the run's description, as plain values.
        before: called before each snapshot, to write what must be on disk by then.
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
        """Within the ``with`` block, request a snapshot when SIGUSR1 arrives."""
        handler = signal.signal(signal.SIGUSR1, self._ask)
        try:
            yield
        finally:
            signal.signal(signal.SIGUSR1, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self._asked = True

    def __call__(self, pause: Pause) -> None:
        """Take a snapshot if one is due or requested."""
        if self._asked or time.monotonic() >= self._due or pause.now >= self._due_simulated:
            self.take(pause)

    def take(self, pause: Pause) -> None:
        """Take a snapshot now; raise OutputFailed if it cannot be written."""
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
            in_process=state["state"] is not None,  # the saved state of another process is stored separately
            spec=self._spec,
        )
        path = self._folder / snapshot_name(pause.notices, self._prefix)
        try:
            write_whole(path, [gzip.compress(msgspec.json.encode(header) + b"\n" + body, compresslevel=1, mtime=0)])
        except OSError as error:
            raise unwritable(path, error) from None
        for old in snapshots_in(self._folder, self._prefix)[: -self._keep]:
            with suppress(OSError):
                old.unlink()
        self._due = time.monotonic() + self._every.wall
        self._due_simulated = pause.now + self._every.simulated

    def remove(self) -> None:
        """Remove all snapshots, temporary files of killed runs, and the session."""
        left = self._folder.glob(f".{escape(self._prefix + SNAPSHOT)}*.gz.*")
        kept = snapshots_in(self._folder, self._prefix)
        for path in [*left, *kept, self._folder / f"{self._prefix}{SESSION}"]:
            with suppress(OSError):
                path.unlink()


def snapshot_name(notices: int, prefix: str = OUTPUT_PREFIX) -> str:
    """Return the file name of the snapshot after ``notices`` notices."""
    return f"{prefix}{SNAPSHOT}{notices:010}.gz"


def last_snapshot(folder: Path, prefix: str = OUTPUT_PREFIX) -> tuple[SnapshotHeader, dict[str, Any]]:
    """Read the latest intact snapshot, or raise SnapshotError.

    Warn about damaged ones.
    """
    for path in reversed(snapshots_in(folder, prefix)):
        try:
            return read_snapshot(path)
        except SnapshotError as error:
            logger().warning("{}", error)
    raise SnapshotError(
        "there is no snapshot to resume from",
        where=printable(str(folder)),
        expected=f"an intact file {printable(prefix)}{SNAPSHOT}N.gz",
        hint="'pipistrelle run --snapshot-every 10m' writes snapshots; a run that ends normally removes them.",
    )


def _memory_of(body: bytearray) -> int:
    """Return about how much memory the values of a JSON text take (bytes)."""
    return _OF_OBJECT * body.count(b"{") + _OF_LIST * body.count(b"[") + _OF_VALUE * body.count(b",")


def read_snapshot(path: Path) -> tuple[SnapshotHeader, dict[str, Any]]:
    """Read a snapshot's header and state, or raise SnapshotError."""
    where = printable(str(path))
    try:
        body = bytearray()
        with open(path, "rb", opener=only_regular) as raw:
            packed = Counted(raw)
            file = io.BufferedReader(
                Swelling(gzip.GzipFile(fileobj=packed), packed, where, swells=_SWELLS, small=_SMALL), _BLOCK
            )
            head = file.readline()
            while block := file.read(_BLOCK):  # memory is needed for the state only
                body += block
        header = msgspec.json.decode(head, type=SnapshotHeader)
        if hashlib.sha256(body).hexdigest() != header.sha256:
            raise SnapshotError("the snapshot is damaged", where=where)
        if header.snapshot != FORMAT:
            raise SnapshotError(
                "the snapshot has another format", where=where, expected=str(FORMAT), found=str(header.snapshot)
            )
        if _memory_of(body) > max(_LITTLE, _TAKES * packed.count):
            raise SnapshotError("the state takes more memory than that of a real run", where=where)
        return header, from_json(body)
    except TraceError as error:
        raise error.at(where, SnapshotError) from None
    except (OSError, EOFError, zlib.error, ValueError, RecursionError) as error:
        raise SnapshotError(f"the snapshot is damaged ({printable(str(error))[:200]})", where=where) from None
