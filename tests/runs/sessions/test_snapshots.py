"""Runs resumed from a snapshot give the same bytes, wherever they were cut; damaged snapshots."""

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.runs.description.setup import load_setup
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.connection import InProcess, WithChild
from pipistrelle.runs.execution.pause import Pause
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.sessions.resume import Journaled, read_run, resume, run_kept
from pipistrelle.runs.sessions.session_file import SessionReader
from pipistrelle.runs.sessions.snapshot import (
    JOURNAL,
    Every,
    Keeping,
    SnapshotError,
    Snapshots,
    last_snapshot,
    read_snapshot,
    snapshots_in,
)

SPEC = RunSpec(failures=("exponential,mtbf=200d",), repair="6h", max_attempts=3, until="2d", queue_lengths=True)


def files(folder: Path) -> dict[str, bytes]:
    """Return a folder's outputs."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the outputs of a run that was never interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    run(SPEC, RunOptions(out=folder))
    return files(folder)


def go_on(folder: Path, connection: WithChild | None = None) -> None:
    """Resume a run."""
    result = resume(read_run(folder), RunOptions(connection=connection), Keeping())
    assert result.failure is None


def kept(folder: Path, watch: Callable[[Pause], None], every: Every) -> None:
    """Carry out a run with snapshots, and call `watch` at each pause after one."""
    snapshots = Snapshots(folder, msgspec.to_builtins(SPEC), Keeping(every=every))

    def between(pause: Pause) -> None:
        snapshots(pause)
        watch(pause)

    run(SPEC, RunOptions(out=folder, between=between))


def test_run_resumes_wherever_it_was_cut_off(whole: dict[str, bytes], tmp_path: Path) -> None:
    """Copies of the folder, as a kill leaves it: with rows after the snapshot, and some that never reached the disk."""
    folder, copies = tmp_path / "run", []

    def watch(pause: Pause) -> None:
        if pause.notices % 53 == 50 or pause.notices == 1:
            copies.append(shutil.copytree(folder, tmp_path / f"copy-{pause.notices}"))

    kept(folder, watch, Every(simulated=21600.0))
    assert len(copies) >= 8
    for number, copy in enumerate(copies):
        if number % 3 == 1:  # killed in the middle of writing the next one
            (copy / ".out_snapshot-9999999999.gz.1").write_bytes(b"\x1f\x8b")
        if number % 3 == 2 and len(snapshots_in(copy)) == 2:  # the disk has lost a part of the last one
            last = snapshots_in(copy)[-1]
            last.write_bytes(last.read_bytes()[:-100])
        go_on(copy)
        for name in [path.name for path in copy.iterdir() if path.name.startswith(".out_snapshot")]:
            (copy / name).unlink()
        ours = files(copy)
        ours.pop("out_command.json")
        assert ours == {name: data for name, data in whole.items() if name != "out_command.json"}


def test_notices_are_kept_when_the_run_resumes(tmp_path: Path) -> None:
    """A kill may strike as soon as the new session has taken the place of the old one: it has as much by then."""
    run(SPEC, RunOptions(out=tmp_path, connection=Journaled(InProcess(), tmp_path)))
    journal = Journaled(InProcess(), tmp_path, 300)
    with journal.open(SPEC, load_setup(SPEC), lambda: False) as transport:
        transport.greet(SessionReader(tmp_path / JOURNAL).header.run_id, "")
        assert len(list(SessionReader(tmp_path / JOURNAL).exchanges())) == 300


def test_snapshots_left_by_kills_are_removed_at_the_end(tmp_path: Path) -> None:
    """A completed run has its outputs in its folder, and nothing else."""
    (tmp_path / ".out_snapshot-0000000001.gz.17").write_bytes(b"\x1f")
    run_kept(SPEC, RunOptions(out=tmp_path), Keeping())
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_run_that_ends_leaves_no_snapshot(whole: dict[str, bytes], tmp_path: Path) -> None:
    """Its outputs equal those of any other run; so do those of a run with an external scheduler."""
    result = run_kept(SPEC, RunOptions(out=tmp_path), Keeping(every=Every(simulated=86400.0), most=3))
    assert result.failure is None
    assert files(tmp_path) == whole


def test_as_many_as_wanted_stay(tmp_path: Path) -> None:
    """The last ones, named by the notices that were answered by then; the first is of the first pause."""
    seen: list[list[str]] = []
    kept(tmp_path, lambda pause: seen.append([path.name for path in snapshots_in(tmp_path)]), Every(simulated=43200.0))
    assert seen[0] == ["out_snapshot-0000000001.gz"]
    assert {len(names) for names in seen} == {1, 2}
    assert len({names[-1] for names in seen}) == 4
    header, state = last_snapshot(tmp_path)
    assert (header.in_process, header.notices) == (True, int(seen[-1][-1][13:23]))
    assert state["format"] == 4


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda data: data[:-9], "snapshot is damaged"),
        (lambda data: b"", "snapshot is damaged"),
        (lambda data: b"nonsense", "snapshot is damaged"),
        (lambda data: gzip.compress(b"[" * 1_000_000), "snapshot is damaged"),
        (lambda data: gzip.compress(gzip.decompress(data)[:-1] + b" "), "the snapshot is damaged"),
        (
            lambda data: gzip.compress(gzip.decompress(data).replace(b'"snapshot":2', b'"snapshot":9', 1)),
            "another format",
        ),
    ],
)
def test_a_snapshot_is_checked_when_it_is_read(tmp_path: Path, damage: Callable[[bytes], bytes], says: str) -> None:
    """Without an intact snapshot the run cannot be resumed."""
    kept(tmp_path, lambda pause: None, Every())
    (path,) = snapshots_in(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(SnapshotError, match=says):
        read_snapshot(path)
    with pytest.raises(SnapshotError, match="there is no snapshot to resume from"):
        read_run(tmp_path)


def test_a_snapshot_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state is that version's own."""
    kept(tmp_path, lambda pause: None, Every())
    monkeypatch.setattr("pipistrelle.runs.execution.pause.package_version", lambda: "9.9")
    with pytest.raises(PipistrelleError, match=r"state of another version of pipistrelle: expected 9\.9"):
        go_on(tmp_path)


def test_scheduler_with_other_decisions_cannot_resume(tmp_path: Path) -> None:
    """An external scheduler is replayed all notices, and must give the same decisions."""
    folder = tmp_path / "run"
    folder.mkdir()
    journal = Journaled(InProcess(), folder)
    run(SPEC, RunOptions(out=folder, connection=journal))
    other = Journaled(InProcess(), folder, 300)
    mine = tmp_path / "easy.toml"  # equal names may have different contents
    mine.write_text('description = "not EASY"\norder = "sjf"\nbackfill = "easy"\nplacement = "lowest"\n')
    with pytest.raises(SnapshotError, match="decides differently than before"):
        run(RunSpec(scheduler=str(mine)), RunOptions(out=tmp_path / "other", connection=other))
    with pytest.raises(SnapshotError, match="this is another scheduler"):
        run(RunSpec(scheduler="fcfs"), RunOptions(out=tmp_path / "other", connection=other))
    with pytest.raises(SnapshotError, match="the session ends before the snapshot was taken"):
        run(SPEC, RunOptions(out=tmp_path / "other", connection=Journaled(InProcess(), folder, 10**9)))
