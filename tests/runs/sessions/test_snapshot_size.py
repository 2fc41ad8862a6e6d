"""Snapshots that unpack to far more than a run's state needs."""

import gzip
import hashlib
import os
from pathlib import Path

import msgspec
import pytest

from pipistrelle.runs.execution.pause import StateError, restoring
from pipistrelle.runs.sessions import snapshot
from pipistrelle.runs.sessions.snapshot import FORMAT, SnapshotError, SnapshotHeader, read_snapshot


@pytest.mark.parametrize("piece", [b" ", b"{},"])
def test_a_snapshot_that_swells_is_refused(tmp_path: Path, piece: bytes) -> None:
    """More than 16 MiB and more than 40 times its size; most of the content is never unpacked."""
    path = tmp_path / "out_snapshot0000000001.gz"
    path.write_bytes(gzip.compress(b"{}\n" + piece * (20 << 20), 1))

    with pytest.raises(SnapshotError, match="unpacks to more than 40 times its size"):
        read_snapshot(path)


def test_a_large_snapshot_that_hardly_swells_is_read(tmp_path: Path) -> None:
    """The limit is relative; here the digest is what is wrong."""
    path = tmp_path / "out_snapshot0000000001.gz"
    path.write_bytes(gzip.compress(b"{}\n" + os.urandom(9 << 20).hex().encode(), 1))

    with pytest.raises(SnapshotError, match="the snapshot is damaged"):
        read_snapshot(path)


@pytest.mark.parametrize("piece", [b"{},", b"[],", b"1.5,", b'{"a":0},'])
def test_a_state_of_many_small_values_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: bytes) -> None:
    """Its digest fits, and it swells little, but its values would take 25 times its size in memory."""
    monkeypatch.setattr(snapshot, "_LITTLE", 1 << 20)
    body = b"[" + piece * 200_000 + b"0]"
    header = SnapshotHeader(
        snapshot=FORMAT,
        pipistrelle="0",
        sha256=hashlib.sha256(body).hexdigest(),
        notices=1,
        now=0.0,
        in_process=True,
        spec={},
    )
    path = tmp_path / "out_snapshot0000000001.gz"
    path.write_bytes(gzip.compress(msgspec.json.encode(header) + b"\n" + body, 9))

    with pytest.raises(SnapshotError, match="takes more memory"):
        read_snapshot(path)
    monkeypatch.setattr(snapshot, "_LITTLE", 1 << 30)
    assert len(read_snapshot(path)[1]) == 200_001


def test_a_state_without_its_parts_is_named_as_damaged() -> None:
    """Its digest may fit: another program can write one."""
    with pytest.raises(StateError, match=r"cannot be restored.*KeyError.*server"), restoring():
        _ = {}["server"]
