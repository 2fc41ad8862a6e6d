"""Snapshots that unpack to far more than a run's state needs."""

import gzip
import os
from pathlib import Path

import pytest

from pipistrelle.runs.sessions.snapshot import SnapshotError, read_snapshot


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
