"""Files as a whole: pipes and devices are neither waited for nor read without end."""

import errno
import os
import threading
from pathlib import Path

import pytest

from pipistrelle.protocol.base import whole
from pipistrelle.protocol.base.whole import only_regular, read_whole, read_whole_text


def test_a_pipe_that_is_written_is_read(tmp_path: Path) -> None:
    """A shell's <(command) counts as a file."""
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(tmp_path / "pipe", os.O_WRONLY)

    def write() -> None:
        os.write(writer, b"a\r\nb\rc")
        os.close(writer)

    thread = threading.Thread(target=write)
    thread.start()

    assert read_whole_text(f"/dev/fd/{reader}") == "a\nb\nc"
    thread.join()
    os.close(reader)


def test_a_device_is_read_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """/dev/zero never ends."""
    monkeypatch.setattr(whole, "_MOST_STREAMED", 100)
    with pytest.raises(OSError, match="more than 64 MiB") as error:
        read_whole("/dev/zero")
    assert error.value.errno == errno.EFBIG


def test_tables_of_runs_are_regular_files(tmp_path: Path) -> None:
    """A folder and a device are refused."""
    with pytest.raises(IsADirectoryError):
        only_regular(tmp_path, os.O_RDONLY)
    with pytest.raises(OSError, match="not a regular file"):
        only_regular("/dev/null", os.O_RDONLY)
