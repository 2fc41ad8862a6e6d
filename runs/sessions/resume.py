"""Runs that are kept, and go on from their last snapshot as if nothing had happened."""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.fields import STATE
from pipistrelle.protocol.messages import HelloData, Notice, Reply, WelcomeData
from pipistrelle.runs.description.setup import load_setup
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.description.spec_file import convert_spec, with_digests
from pipistrelle.runs.execution.connection import Connection, InProcess, Interrupted
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.sessions.recording import RecordingTransport, header_of
from pipistrelle.runs.sessions.rejoining import Rejoining, apart_from_state, named
from pipistrelle.runs.sessions.replay import Played
from pipistrelle.runs.sessions.session_file import Exchange, SessionReader, SessionWriter
from pipistrelle.runs.sessions.snapshot import (
    SESSION,
    Keeping,
    SnapshotError,
    SnapshotHeader,
    Snapshots,
    last_snapshot,
    read_snapshot,
    snapshot_name,
)
from pipistrelle.runs.sessions.takeover import TakenOver, copy_outputs, resumed_from
from pipistrelle.server.batsim.outputs import BatsimOutputs
from pipistrelle.server.outputs.folder import OUTPUT_PREFIX, SNAPSHOT, SUMMARY_FILE
from pipistrelle.server.outputs.lock import is_written, sole_writer, unwritable_folder
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import Result
from pipistrelle.server.transport.in_process import Transport, bare
from pipistrelle.server.transport.native import NativeTransport
from pipistrelle.server.transport.peer import Peer


@dataclass(slots=True)
class Journaled:
    """A connection to a scheduler of another process, whose session is kept in a folder.

    If the session is there already, the scheduler is brought to where it was after the first ``notices`` of it before
    the run goes on. One that can is given the state back that it had then; any other is played them, and must decide as
    it did.

    Parameters
    ----------
    prefix
        what the outputs' names begin with.
    now, saved
        the simulated time then, in seconds, and that state, as JSON; None: it gave none.
    awaits
        how long (s) another scheduler is waited for when the run's has gone; None: not at all.
    leave
        whether the session stays in the folder.
    """

    connection: Connection
    folder: Path
    notices: int = 0
    prefix: str = OUTPUT_PREFIX
    now: float = 0.0
    saved: str | None = None
    awaits: float | None = None
    leave: bool = True
    writer: SessionWriter | None = None

    def flush(self) -> None:
        """Let all that was said so far reach the file."""
        if self.writer is not None:
            self.writer.flush()

    @contextmanager
    def open(self, spec: RunSpec, setup: Setup, interrupted: Interrupted) -> Iterator[Transport]:
        """Yield what leads to the scheduler, and writes; the scheduler is brought up when it is greeted."""
        path = self.folder / f"{self.prefix}{SESSION}"
        new = path.with_name(f".{path.name}")
        with self.connection.open(spec, setup, interrupted) as transport:
            if isinstance(transport, Peer):
                transport.saves = True
            self.writer = SessionWriter(new if self.notices else path)
            try:
                recording = RecordingTransport(transport, self.writer, header_of(spec, setup))
                if self.notices:
                    yield BroughtUp(recording, self, path, new)
                else:
                    yield recording if self.awaits is None else Rejoining(recording, path, self.awaits)
            finally:
                self.writer.close()
                if not self.leave:
                    with suppress(OSError):
                        path.unlink()
                with suppress(OSError):
                    new.unlink()


class BroughtUp:
    """Another transport whose scheduler is brought to where it was before it is used.

    Parameters
    ----------
    transport
        that one.
    journal
        says where it was.
    path, new
        the session so far, and where it is copied to.
    """

    def __init__(self, transport: RecordingTransport, journal: Journaled, path: Path, new: Path) -> None:
        self._transport = transport
        self._journal = journal
        self._path = path
        self._new = new
        self._notices = journal.notices
        self.apart = transport.apart

    def greet(self, run_id: str, server: str) -> tuple[HelloData, WelcomeData]:
        """Agree with the scheduler, and bring it up; SnapshotError if it is another one, or decides otherwise."""
        reader = SessionReader(self._path)
        hello, welcome = self._transport.greet(run_id, server)
        header = reader.header
        if (apart_from_state(hello), welcome.features) != (apart_from_state(header.hello), header.welcome.features):
            raise SnapshotError(
                "this is another scheduler than that of the run",
                where=str(self._path),
                expected=named(header.hello),
                found=named(hello),
            )
        peer, saved = bare(self._transport.transport), self._journal.saved
        play: Callable[[Exchange], tuple[Notice, Reply, Reply, int] | None] = Played(header, peer)
        if saved is not None and STATE in hello.features and isinstance(peer, NativeTransport):
            peer.restore(self._notices, self._journal.now, saved)
            play = _pass_over
        played = 0
        with closing(reader.exchanges()) as exchanges:
            for exchange in exchanges:
                if played == self._notices or exchange.reply is None:
                    break
                parted = play(exchange)
                if parted is not None:
                    notice = parted[0]
                    raise SnapshotError(
                        "the scheduler decides otherwise than it did: it cannot be brought to where it was",
                        where=f"notice {notice.seq}, simulated time {notice.now!r}",
                        hint=f"'pipistrelle replay {self._path}' shows both decisions.",
                    )
                self._transport.writer.notice(exchange.notice)
                self._transport.writer.reply(exchange.reply)
                played += 1
        if played < self._notices:
            raise SnapshotError(
                "the session ends before the snapshot was taken",
                where=str(self._path),
                expected=f"{self._notices} notices",
                found=str(played),
            )
        self._journal.flush()  # a kill from now on must not find less than what the old file had
        self._new.replace(self._path)
        return hello, welcome

    def send(self, notice: Notice) -> None:
        """Send a notice."""
        self._transport.send(notice)

    def receive(self) -> Reply:
        """Return the reply."""
        return self._transport.receive()

    def save(self) -> str | None:
        """Return the scheduler's state."""
        return self._transport.save()

    def farewell(self, notice: Notice) -> None:
        """Send the last notice."""
        self._transport.farewell(notice)

    def close(self) -> None:
        """Close the other one."""
        self._transport.close()


def _pass_over(exchange: Exchange) -> None:
    """Do nothing with what a scheduler was told: its state has it."""


def run_kept(
    spec: RunSpec, options: RunOptions, keeping: Keeping, last: tuple[SnapshotHeader, dict[str, Any]] | None = None
) -> Result:
    """Carry out a run of which snapshots are taken, or go on with it from the snapshot ``last``.

    What ends it early is not raised. Snapshots and session are in the folder ``options.out``. If the options name other
    outputs, the caller keeps others from writing them.
    """
    folder, connection, journal = options.out, options.connection, None
    assert folder is not None, "a run is kept in a folder"
    alone = spec.batsim is not None and spec.batsim.no_sched
    if not (connection is None or isinstance(connection, InProcess) or alone):
        connection = journal = Journaled(connection, folder, prefix=keeping.prefix, awaits=keeping.awaits)
        if last is not None:
            header, state = last
            journal.notices, journal.now, journal.saved = header.notices, header.now, state.get("saved")
            journal.awaits = None
    flush = (lambda: None) if journal is None else journal.flush
    snapshots = Snapshots(folder, msgspec.to_builtins(spec), keeping, flush)
    options = dataclasses.replace(
        options,
        connection=connection,
        out=folder if options.outputs is None else None,
        check=False,
        between=snapshots,
        lasting=snapshots.take,
        resume=options.resume if last is None else last[1],
    )
    try:
        with snapshots.on_signal():
            result = run(spec, options)
    except PipistrelleError:
        if last is None:  # nothing has begun
            with suppress(OSError):
                (folder / f"{keeping.prefix}{SESSION}").unlink()
        raise
    if result.failure is None and not keeping.leave:
        snapshots.remove()
    return result


class KeptRun(NamedTuple):
    """A run that was kept: its description, a snapshot of it, and where its outputs are and how their names begin."""

    spec: RunSpec
    header: SnapshotHeader
    state: dict[str, Any]
    folder: Path
    prefix: str

    def setup(self, spec: RunSpec | None = None) -> Setup:
        """Return its setup, or that of the run under another policy; PipistrelleError as of `load_setup`."""
        return load_setup(replace(spec or self.spec, resumed=None))


def _place_of(path: Path) -> tuple[Path, str]:
    """Return the folder of a run's outputs and what their names begin with, as of `read_run`."""
    if path.is_file():
        found = path.name.partition(SNAPSHOT)
        return path.parent, found[0] if found[1] else OUTPUT_PREFIX
    if path.is_dir() or not path.name:
        return path, OUTPUT_PREFIX
    return path.parent, f"{path.name}_"


def read_run(path: Path, *, elsewhere: bool = False) -> KeptRun:
    """Return a run that was kept, with a snapshot of it.

    Parameters
    ----------
    path
        its folder, for the last snapshot, or a snapshot in it; or what the paths of its outputs begin with.
    elsewhere
        whether nothing will be written there: then the run may still go on.

    Raises
    ------
    PipistrelleError
        when there is none, the run is still going on, or its inputs are not what they were.
    """
    folder, prefix = _place_of(path)
    if not elsewhere and is_written(str(folder / prefix).removesuffix("_")):
        raise SnapshotError("the run still goes on, or another writes there", where=str(folder))
    header, state = read_snapshot(path) if path.is_file() else last_snapshot(folder, prefix)
    spec = with_digests(convert_spec(header.spec, "the snapshot's description of its run"))
    return KeptRun(spec, header, state, folder, prefix)


def resume(kept: KeptRun, options: RunOptions, keeping: Keeping) -> Result:
    """Go on with a run from a snapshot: its outputs will have the bytes that they would have had.

    They are written on as copies in the folder ``options.out``, or where they are if that is None.
    """
    setup = options.setup or kept.setup()
    folder, out = kept.folder, options.out
    outputs = _batsim_outputs(folder, kept.prefix, kept.state)
    if outputs is not None and out is not None:
        raise SnapshotError(
            "the outputs of 'pipistrelle batsim' are written on where they are", where="--out", found=str(out)
        )
    if out is not None:
        made_apart(folder, out)
        copy_outputs(folder, out, whole=True)
    elif outputs is None:
        with suppress(OSError):  # that of its interruption
            (folder / SUMMARY_FILE).unlink()
    where = str(folder / kept.prefix).removesuffix("_")
    options = dataclasses.replace(options, setup=setup, out=out or folder, outputs=outputs)
    keeping = dataclasses.replace(keeping, prefix=kept.prefix)
    with nullcontext() if outputs is None else sole_writer(where, "--export"):
        return run_kept(kept.spec, options, keeping, (kept.header, kept.state))


def _batsim_outputs(folder: Path, prefix: str, state: dict[str, Any]) -> BatsimOutputs | None:
    """Return the outputs of a run of ``pipistrelle batsim``; None if the run's are others."""
    known = state["server"]["outputs"]
    if known is None or "_trace" not in known:
        return None
    machine_states = known["_trace"]["_changes"] is not None
    return BatsimOutputs(str(folder / prefix).removesuffix("_"), machine_states=machine_states)


def take_over(spec: RunSpec, kept: KeptRun, options: RunOptions, keeping: Keeping) -> Result:
    """Go on from a snapshot of a run under another policy, that of ``spec``, in the folder ``options.out``.

    Raises
    ------
    PipistrelleError
        when the policy cannot take the run over, or the snapshot is of another version or workload, or in Batsim's
        dialect.
    """
    folder, out = kept.folder, options.out
    assert out is not None, "a folder of its own"
    check_takeover(spec)
    spec = with_digests(spec)
    setup = options.setup or kept.setup(spec)
    snapshot = folder / snapshot_name(kept.header.notices)
    spec = replace(spec, resumed=resumed_from(snapshot, kept.header, kept.state))
    made_apart(folder, out)
    taken = TakenOver(folder, out, setup, kept.state)
    return run_kept(spec, dataclasses.replace(options, setup=setup, resume=taken), keeping)


def check_takeover(spec: RunSpec) -> None:
    """Raise SnapshotError if no other scheduler can take such a run over."""
    if spec.dialect == "batsim":
        raise SnapshotError(
            "no other scheduler can take a run over in Batsim's dialect, which cannot tell of jobs that run already",
            expected="a run in the native dialect",
        )


def made_apart(folder: Path, out: Path) -> None:
    """Make another folder for the outputs; SnapshotError if it is the same."""
    if out.resolve() == folder.resolve():
        what = "the outputs of a run that goes on otherwise need a folder of their own"
        raise SnapshotError(what, where="--out", found=str(out))
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable_folder(out, error) from None
