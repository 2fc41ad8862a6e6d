"""Simulate runs that save snapshots, and continue them.

The results are those of an uninterrupted run.
"""

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
from pipistrelle.runs.description.spec_file import recorded_spec, with_digests
from pipistrelle.runs.execution.connection import Connection, InProcess, Interrupted
from pipistrelle.runs.execution.pause import restoring
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.folders.occupied import check_unoccupied
from pipistrelle.runs.sessions.recording import HeaderMaker, RecordingTransport, header_of
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
    """A connection that records its messages in a session file in the output folder.

    If the folder already has a session, the scheduler is first restored to its state after ``notices`` notices. A
    scheduler that saves its state gets the saved state back. Any other scheduler gets all earlier notices again, and
    must decide as before.

    Attributes:
        prefix: first part of the names of the output files.
        now, saved: simulated time (s) after ``notices`` notices, and the scheduler's state at that time as JSON; None:
            not saved.
        awaits: how long to wait (s) for a new scheduler process if the scheduler dies; None: do not wait.
        leave: whether the session stays in the folder after the run.
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
        """Write everything recorded so far to the session file."""
        if self.writer is not None:
            self.writer.flush()

    @contextmanager
    def open(self, spec: RunSpec, setup: Setup, interrupted: Interrupted) -> Iterator[Transport]:
        """Yield a recording transport; it restores the scheduler's state at the greeting."""
        path = self.folder / f"{self.prefix}{SESSION}"
        new = path.with_name(f".{path.name}")
        with self.connection.open(spec, setup, interrupted) as transport:
            if isinstance(transport, Peer):
                transport.saves = True
            self.writer = SessionWriter(new if self.notices else path)
            try:
                if self.notices:
                    yield BroughtUp(transport, self.writer, header_of(spec, setup), self, path, new)
                elif self.awaits is None:
                    yield RecordingTransport(transport, self.writer, header_of(spec, setup))
                else:
                    assert isinstance(transport, NativeTransport)
                    yield Rejoining(transport, self.writer, header_of(spec, setup), path, self.awaits)
            finally:
                self.writer.close()
                if not self.leave:
                    with suppress(OSError):
                        path.unlink()
                with suppress(OSError):
                    new.unlink()


class BroughtUp(RecordingTransport):
    """A recording transport that restores a scheduler's earlier state.

    It does so when the scheduler connects.

    Args:
        journal: the number of notices before the resumption, the scheduler's saved state, and the connection.
        path, new: the session file so far, and the file to which it is copied.
    """

    def __init__(
        self,
        transport: Transport,
        writer: SessionWriter,
        header: HeaderMaker,
        journal: Journaled,
        path: Path,
        new: Path,
    ) -> None:
        super().__init__(transport, writer, header)
        self._journal = journal
        self._path = path
        self._new = new
        self._notices = journal.notices

    def greet(self, run_id: str, server: str) -> tuple[HelloData, WelcomeData]:
        """Wait for the scheduler's HELLO and restore its state.

        Raise SnapshotError if it is another scheduler, or decides differently than before.
        """
        reader = SessionReader(self._path)
        hello, welcome = super().greet(run_id, server)
        header = reader.header
        if (apart_from_state(hello), welcome.features) != (apart_from_state(header.hello), header.welcome.features):
            raise SnapshotError(
                "this is another scheduler than the run's",
                where=str(self._path),
                expected=named(header.hello),
                found=named(hello),
            )
        peer, saved = bare(self.transport), self._journal.saved
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
                        "the scheduler decides differently than before, so its state cannot be restored",
                        where=f"notice {notice.seq}, simulated time {notice.now!r}",
                        hint=f"'pipistrelle check replay {self._path}' shows both decisions.",
                    )
                self.writer.notice(exchange.notice)
                self.writer.reply(exchange.reply)
                played += 1
        if played < self._notices:
            raise SnapshotError(
                "the session ends before the snapshot was taken",
                where=str(self._path),
                expected=f"{self._notices} notices",
                found=str(played),
            )
        self._journal.flush()  # a kill from now on must not lose what the old file had
        self._new.replace(self._path)
        return hello, welcome


def _pass_over(exchange: Exchange) -> None:
    """Do nothing with a recorded notice and reply.

    The saved state already includes them.
    """


def run_kept(
    spec: RunSpec, options: RunOptions, keeping: Keeping, last: tuple[SnapshotHeader, dict[str, Any]] | None = None
) -> Result:
    """Simulate a run and save snapshots of it, or continue a run.

    The run continues from its snapshot ``last``. Snapshots and session are written to the folder ``options.out``. If
    ``options.outputs`` is given, `run` does not lock this folder, so the caller must. If the run ends early, the result
    has the error; it is not raised.
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
        if last is None:  # the run has not begun
            with suppress(OSError):
                (folder / f"{keeping.prefix}{SESSION}").unlink()
        raise
    if result.failure is None and not keeping.leave:
        snapshots.remove()
    return result


class KeptRun(NamedTuple):
    """A run with snapshots.

    It has its description, one snapshot, the output folder and the prefix.
    """

    spec: RunSpec
    header: SnapshotHeader
    state: dict[str, Any]
    folder: Path
    prefix: str

    def setup(self, spec: RunSpec | None = None) -> Setup:
        """Load the simulation setup of the run, or of ``spec``.

        ``spec`` is the same run under another policy.
        """
        return load_setup(replace(spec or self.spec, resumed=None))


def _place_of(path: Path) -> tuple[Path, str]:
    if path.is_file():
        found = path.name.partition(SNAPSHOT)
        return path.parent, found[0] if found[1] else OUTPUT_PREFIX
    if path.is_dir() or not path.name:
        return path, OUTPUT_PREFIX
    return path.parent, f"{path.name}_"


def read_run(path: Path, *, elsewhere: bool = False) -> KeptRun:
    """Read the description of a run and one of its snapshots.

    Args:
        path: the run's folder or the prefix of its outputs' paths (either means the last snapshot), or a snapshot file.
        elsewhere: whether the continuation will write to another folder. If so, the run itself may still be in
            progress.

    Raises:
        PipistrelleError: there is no snapshot, the run is still running, or its inputs have changed.
    """
    folder, prefix = _place_of(path)
    if not elsewhere and is_written(str(folder / prefix).removesuffix("_")):
        raise SnapshotError("the run is still running, or another run writes there", where=str(folder))
    header, state = read_snapshot(path) if path.is_file() else last_snapshot(folder, prefix)
    spec = recorded_spec(header.spec, "the snapshot's description of its run")
    return KeptRun(spec, header, state, folder, prefix)


def resume(kept: KeptRun, options: RunOptions, keeping: Keeping) -> Result:
    """Continue a run from a snapshot, with the outputs of an uninterrupted run.

    The run continues on copies of its outputs in ``options.out``, or in place if ``options.out`` is None.
    """
    setup = options.setup or kept.setup()
    folder, out = kept.folder, options.out
    outputs = _batsim_outputs(folder, kept.prefix, kept.state)
    if outputs is not None and out is not None:
        raise SnapshotError(
            "the outputs of 'pipistrelle-batsim' can only be continued in place", where="--out", found=str(out)
        )
    if out is not None:
        made_apart(folder, out)
        if not options.overwrite:
            check_unoccupied(out, kept.spec)
        copy_outputs(folder, out, whole=True)
    elif outputs is None:
        with suppress(OSError):  # remove the summary of the interrupted run
            (folder / SUMMARY_FILE).unlink()
    where = str(folder / kept.prefix).removesuffix("_")
    options = dataclasses.replace(options, setup=setup, out=out or folder, outputs=outputs)
    keeping = dataclasses.replace(keeping, prefix=kept.prefix)
    with nullcontext() if outputs is None else sole_writer(where, "--export"):
        return run_kept(kept.spec, options, keeping, (kept.header, kept.state))


def _batsim_outputs(folder: Path, prefix: str, state: dict[str, Any]) -> BatsimOutputs | None:
    with restoring():
        known = state["server"]["outputs"]
        if known is None or "_trace" not in known:
            return None
        machine_states = known["_trace"]["_changes"] is not None
    return BatsimOutputs(str(folder / prefix).removesuffix("_"), machine_states=machine_states)


def take_over(spec: RunSpec, kept: KeptRun, options: RunOptions, keeping: Keeping) -> Result:
    """Continue a run from a snapshot under another policy, in ``options.out``.

    Raises:
        PipistrelleError: the policy cannot take over the run; the snapshot is of another version or workload, or of a
            run in Batsim's dialect.
    """
    folder, out = kept.folder, options.out
    assert out is not None, "a separate folder"
    check_takeover(spec)
    spec = with_digests(spec)
    setup = options.setup or kept.setup(spec)
    snapshot = folder / snapshot_name(kept.header.notices)
    spec = replace(spec, resumed=resumed_from(snapshot, kept.header, kept.state))
    made_apart(folder, out)
    if not options.overwrite:
        check_unoccupied(out, spec)
    taken = TakenOver(folder, out, setup, kept.state)
    return run_kept(spec, dataclasses.replace(options, setup=setup, resume=taken), keeping)


def check_takeover(spec: RunSpec) -> None:
    """Raise SnapshotError if another scheduler cannot take over runs of this dialect."""
    if spec.dialect == "batsim":
        raise SnapshotError(
            "a run in Batsim's dialect cannot be taken over, because the dialect has no message for running jobs",
            expected="a run in the native dialect",
        )


def made_apart(folder: Path, out: Path) -> None:
    """Create the folder ``out`` for the new run.

    Raise SnapshotError if it is ``folder``.
    """
    if out.resolve() == folder.resolve():
        what = "the outputs of the continued run need a folder of their own"
        raise SnapshotError(what, where="--out", found=str(out))
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable_folder(out, error) from None
