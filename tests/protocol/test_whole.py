"""Files that are replaced at once, and files that grow by whole rows."""

import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipistrelle.protocol.base.whole import Replacement, whole_file, write_rows, write_together, write_whole


@contextmanager
def limited(size: int) -> Iterator[None]:
    """Let files grow to this size only, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_the_old_file_stands_until_the_new_one_is_whole(tmp_path: Path) -> None:
    """Whoever reads meanwhile reads the old content."""
    target = tmp_path / "x"
    target.write_bytes(b"old")
    with whole_file(target) as file:
        file.write(b"new")
        file.flush()
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError])
def test_an_error_keeps_the_old_file_and_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    """The error passes."""
    target = tmp_path / "x"
    target.write_bytes(b"old")

    def write() -> None:
        with whole_file(target) as file:
            file.write(b"new")
            raise error

    with pytest.raises(error):
        write()
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("size", [1, 4096, 100_000])
def test_a_full_disk_keeps_the_old_file(tmp_path: Path, size: int) -> None:
    """Whether it is noticed while writing or at the end; the error names the file."""
    target = tmp_path / "x"
    target.write_bytes(b"old")
    with limited(size), pytest.raises(OSError, match="too large") as refused:
        write_whole(target, [b"n" * 4096] * 30)
    assert refused.value.filename == str(target)
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x"]


def test_links_are_followed_and_rights_are_kept(tmp_path: Path) -> None:
    """The link stays a link, and an executable file stays executable."""
    (tmp_path / "far").mkdir()
    target = tmp_path / "far" / "x"
    target.write_bytes(b"old")
    target.chmod(0o751)
    (tmp_path / "link").symlink_to("far/x")
    write_whole(tmp_path / "link", [b"new"])
    assert (tmp_path / "link").is_symlink()
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o751
    (tmp_path / "dangling").symlink_to("far/y")
    write_whole(tmp_path / "dangling", [b"new"])
    assert (tmp_path / "far" / "y").read_bytes() == b"new"


def test_a_new_file_has_the_usual_rights(tmp_path: Path) -> None:
    """The umask holds."""
    (tmp_path / "plain").write_bytes(b"")
    write_whole(tmp_path / "x", [b"new"])
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_private_files_are_private_from_the_beginning(tmp_path: Path) -> None:
    """Even if a killed process left a readable file beside it."""
    (tmp_path / ".key.part").write_bytes(b"left")
    (tmp_path / ".key.part").chmod(0o666)
    with whole_file(tmp_path / "key", mode=0o600) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
        assert os.fstat(file.fileno()).st_size == 0
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


def test_a_fresh_file_replaces_nothing(tmp_path: Path) -> None:
    """Neither a file nor a link to nothing."""
    (tmp_path / "x").write_bytes(b"old")
    (tmp_path / "y").symlink_to("nowhere")
    for name in "xy":
        with pytest.raises(FileExistsError), whole_file(tmp_path / name, fresh=True):
            raise AssertionError("it must not begin")
    assert sorted(os.listdir(tmp_path)) == ["x", "y"]


def test_two_writers_of_one_file(tmp_path: Path) -> None:
    """The second is refused and harms nothing; afterwards it may write."""
    first = Replacement(tmp_path / "x")
    first.file.write(b"first")
    with pytest.raises(BlockingIOError, match="another process is writing this file"):
        Replacement(tmp_path / "x")
    first.commit()
    assert (tmp_path / "x").read_bytes() == b"first"
    write_whole(tmp_path / "x", [b"second"])
    assert (tmp_path / "x").read_bytes() == b"second"


def test_what_a_killed_process_left_is_used_again(tmp_path: Path) -> None:
    """No file piles up."""
    for _ in range(3):
        code = (
            "import os, signal, sys\n"
            "from pipistrelle.protocol.base.whole import whole_file\n"
            "with whole_file(sys.argv[1]) as file:\n"
            "    file.write(b'half'); file.flush(); os.kill(os.getpid(), signal.SIGKILL)"
        )
        done = subprocess.run([sys.executable, "-c", code, tmp_path / "x"], check=False)
        assert done.returncode == -signal.SIGKILL
        assert os.listdir(tmp_path) == [".x.part"]
    write_whole(tmp_path / "x", [b"new"])
    assert os.listdir(tmp_path) == ["x"]


def test_no_planted_link_is_followed(tmp_path: Path) -> None:
    """A link or a pipe in the place of the new file is an error at once, and does no harm."""
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / ".x.part").symlink_to("precious")
    with pytest.raises(OSError, match="symbolic links"):
        write_whole(tmp_path / "x", [b"new"])
    os.mkfifo(tmp_path / ".y.part")
    with pytest.raises(OSError, match="No such device"):
        write_whole(tmp_path / "y", [b"new"])
    assert (tmp_path / "precious").read_bytes() == b"precious"


def test_the_longest_names(tmp_path: Path) -> None:
    """A name of 255 bytes can be written, also if they are not characters."""
    for name in ("x" * 255, "ü" * 127, os.fsdecode(b"\xff" * 250)):
        write_whole(tmp_path / name, [b"new"])
        assert (tmp_path / name).read_bytes() == b"new"


@pytest.mark.parametrize("name", ["/dev/stdout", "link"])
def test_standard_output_is_written_directly(tmp_path: Path, name: str) -> None:
    """A pipe, and a file that the shell has opened: what else the program prints follows."""
    (tmp_path / "link").symlink_to("/dev/stdout")
    code = (
        "import sys; from pipistrelle.protocol.base.whole import write_whole\n"
        f"write_whole({name!r}, [b'new\\n']); print('printed')"
    )
    words = [sys.executable, "-c", code]
    assert subprocess.run(words, cwd=tmp_path, check=True, capture_output=True).stdout == b"new\nprinted\n"
    with (tmp_path / "file").open("ab") as file:
        subprocess.run(words, cwd=tmp_path, check=True, stdout=file)
    assert (tmp_path / "file").read_bytes() == b"new\nprinted\n"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    """The error is the system's."""
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path, [b"new"])
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "missing" / "x", [b"new"])


ROWS = b'1,one\n2,"two\nlines ""and"" quotes"\n3,three\n'


@pytest.mark.parametrize("size", range(1, len(ROWS) + 1))
def test_rows_that_do_not_fit_are_cut_at_the_last_whole_row(tmp_path: Path, size: int) -> None:
    """A quoted line break ends no row; what is left is written when there is room."""
    path = tmp_path / "x.csv"
    with path.open("wb", buffering=0) as file:
        with limited(size):
            written, error = write_rows(file, ROWS)
        ends = [0, 6, len(ROWS) - 8, len(ROWS)]
        assert written == max(end for end in ends if end <= size)
        assert path.read_bytes() == ROWS[:written]
        assert (error is None) == (written == len(ROWS))
        assert write_rows(file, ROWS[written:]) == (len(ROWS) - written, None)
    assert path.read_bytes() == ROWS


def test_lines_of_json_are_cut_at_the_last_line_also_in_a_file_that_is_appended_to(tmp_path: Path) -> None:
    """Quotes have no meaning there; the earlier lines stay."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a":"\\""}\n')
    with path.open("ab", buffering=0) as file, limited(30):
        written, error = write_rows(file, b'{"b":"\\""}\n{"c":"\\""}\n', quotes=False)
    assert (written, error is None) == (11, False)
    assert path.read_bytes() == b'{"a":"\\""}\n{"b":"\\""}\n'


def test_files_are_replaced_together_or_not_at_all(tmp_path: Path) -> None:
    """If the last one does not fit, the first one is not replaced either; what `ready` does comes between."""
    files = [(tmp_path / name, content, None) for name, content in (("a", b"new"), ("b", b"n" * 9000))]
    for path, _, _ in files:
        path.write_bytes(b"old")
    seen: list[bytes] = []
    with limited(5000), pytest.raises(OSError, match="too large") as refused:
        write_together(files, ready=lambda: seen.append(b"never"))
    assert refused.value.filename == str(tmp_path / "b")
    assert [path.read_bytes() for path, _, _ in files] == [b"old", b"old"]

    write_together(files, ready=lambda: seen.append((tmp_path / "a").read_bytes()))
    assert seen == [b"old"]
    assert [path.read_bytes() for path, _, _ in files] == [b"new", b"n" * 9000]
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]
