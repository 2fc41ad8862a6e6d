"""Files themselves: compressed, broken, missing; formats by content; names to write."""

import bz2
import gzip
import lzma
import os
import threading

import pytest

from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.files import open_trace, trace_name
from pipistrelle.traces.load import SUFFIXES, load, save

PACKERS = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}

KNOWN = ".swf, .swf.gz, .swf.xz, .json, .json.gz, .json.xz, .sacct, .sacct.gz, .sacct.xz, .maui, .maui.gz, .maui.xz"


@pytest.fixture
def swf(job_line) -> bytes:
    """Return a small SWF file."""
    return ("; MaxProcs: 9\n" + "".join(job_line({1: job, 2: job * 7}) for job in range(1, 400))).encode()


@pytest.mark.parametrize("packer", PACKERS.values(), ids=PACKERS)
@pytest.mark.parametrize("name", ["x.swf", "x.swf.gz", "x.swf.xz", "x"])
def test_compression_is_known_by_content(tmp_path, swf, packer, name):
    """The suffix does not matter: the first bytes determine the compression."""
    (tmp_path / name).write_bytes(packer(swf))
    assert len(load(tmp_path / name)) == 399
    (tmp_path / name).write_bytes(swf)
    assert len(load(tmp_path / name)) == 399


def test_compressed_json(tmp_path):
    """JSON is recognised by its brace, with any name and compression, also after blanks."""
    job, profile = b'{"id": 1, "subtime": 0, "res": 1, "profile": "p"}', b'{"type": "delay", "delay": 1}'
    content = b' \n\t{"jobs": [%s], "profiles": {"p": %s}}' % (job, profile)
    for packer in (bytes, *PACKERS.values()):
        (tmp_path / "x.swf").write_bytes(packer(content))
        assert load(tmp_path / "x.swf").profiles == ["p"]


def test_several_gzip_members(tmp_path, swf):
    """Concatenated gzip files are one file, as for gunzip."""
    (tmp_path / "x.gz").write_bytes(gzip.compress(swf[:500]) + gzip.compress(swf[500:]))
    assert len(load(tmp_path / "x.gz")) == 399


def test_a_pipe_is_read_once(tmp_path, swf):
    """A path that cannot be rewound, such as a shell's <(command), is read like a file."""
    reading, writing = os.pipe()

    def write():
        with open(writing, "wb") as pipe:
            pipe.write(swf)

    writer = threading.Thread(target=write)
    with open(reading, "rb"):
        writer.start()
        assert len(load(f"/dev/fd/{reading}")) == 399
        writer.join()


AGAIN = "Copy or download the file again."


@pytest.mark.parametrize("packer", PACKERS.values(), ids=PACKERS)
def test_truncated(refused, swf, packer):
    """A compressed file that ends early is rejected, wherever it ends."""
    packed = packer(swf)
    for cut in (len(packed) - 1, len(packed) // 2, 12):
        assert refused(packed[:cut]) == f"FILE: the compressed data end too early: the file is truncated. {AGAIN}"


@pytest.mark.parametrize("packer", PACKERS.values(), ids=PACKERS)
def test_corrupt(refused, swf, packer):
    """A compressed file with changed bytes is refused."""
    packed = packer(swf)
    half = len(packed) // 2
    message = refused(packed[:half] + bytes(byte ^ 0xFF for byte in packed[half:]))
    assert message.startswith("FILE: the compressed data are corrupt: found ")
    assert message.endswith(f". {AGAIN}")


def test_garbage_after_gzip(refused, swf):
    """The data after a compressed member must be compressed, too."""
    assert "the compressed data are corrupt" in refused(gzip.compress(swf) + b"garbage")


READ = "expected a workload file, plain or compressed with gzip, xz or bzip2"

BINARY = f"FILE: is a binary file (it contains NUL bytes): {READ}. Check that it is the right file."


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "FILE: is empty. A trace has at least one job."),
        (gzip.compress(b"", mtime=0), "FILE: is empty. A trace has at least one job."),
        (b"\x89PNG\r\n\0\0", BINARY),
        (
            "; x\n".encode("utf-16"),
            BINARY,
        ),
        (b"PK\x03\x04...", f"FILE: is a zip archive, which is not supported: {READ}. Unpack it first."),
        (b"\x28\xb5\x2f\xfd...", f"FILE: is a zstd file, which is not supported: {READ}. Unpack it first."),
        (b"7z\xbc\xaf...", f"FILE: is a 7z archive, which is not supported: {READ}. Unpack it first."),
    ],
)
def test_content_that_is_no_trace(refused, content, message):
    """Files that are empty, binary or otherwise packed are rejected with their kind."""
    assert refused(content) == message


def test_missing_files_and_folders_are_rejected(tmp_path):
    """Missing files, folders and impossible names are refused."""
    for path, message in (
        (tmp_path / "no.swf", "no such file. Check the path."),
        (tmp_path, "is a folder: expected a workload file. Name a file in it."),
        (tmp_path / ("x" * 300), "cannot be read: found File name too long. Check the file's permissions."),
    ):
        with pytest.raises(TraceError) as caught:
            load(path)
        assert str(caught.value) == f"{path}: {message}"
    for name in ("a\0b", "a\ud800"):
        for action in (load, lambda path: save(load_demo(), path + ".swf")):
            with pytest.raises(TraceError, match=r"no file can have this name\. Check the path\."):
                action(name)


def load_demo():
    """Return some workload."""
    from pipistrelle.traces.catalogue import load_bundled

    return load_bundled("demo").select(range(3))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable(tmp_path, swf):
    """A file without read permission is rejected."""
    path = tmp_path / "x.swf"
    path.write_bytes(swf)
    path.chmod(0)
    with pytest.raises(TraceError, match="cannot be read: found Permission denied"):
        load(path)


def test_sort_reaches_swf(tmp_path, job_line):
    """The option of load sorts an SWF file."""
    path = tmp_path / "x.swf"
    path.write_text(job_line({2: 9}) + job_line({1: 2, 2: 8}))
    assert load(path, sort=True).ids == ["2", "1"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_written_bytes_depend_on_the_jobs_only(tmp_path, suffix):
    """Equal workloads give equal bytes, under another name and at another time, and are read back."""
    workload = load_demo()
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    save(workload, first)
    save(workload, second)
    os.utime(second, (0, 0))
    assert first.read_bytes() == second.read_bytes()
    assert load(first).ids == ["1", "2", "3"]
    if suffix.endswith(".gz"):
        assert first.read_bytes()[3:8] == bytes(5)  # no flags, so no name and no time
    else:
        starts = (b"; ", b"{", b"JobID|", b"1 ")
        assert first.read_bytes().startswith(b"\xfd7zXZ" if suffix.endswith(".xz") else starts)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("x.sfw", "Did you mean '.swf'?"),
        ("x.jsn", "Did you mean '.json'?"),
        ("x.swf.bz2", f"Known: {KNOWN}."),
        ("x", f"Known: {KNOWN}."),
        ("x.pbs", "PBS accounting files can be read, but not written."),
        ("x.xml", "Haizea leases can be read, but not written."),
    ],
)
def test_unknown_suffix(tmp_path, name, hint):
    """A suffix without a format is rejected with the known suffixes, before anything is written."""
    with pytest.raises(TraceError) as caught:
        save(load_demo(), tmp_path / name)
    assert str(caught.value) == (
        f"{tmp_path / name}: the file's suffix names no format: expected a name that ends in the "
        f"suffix of a format, found '{name}'. {hint}"
    )
    assert not (tmp_path / name).exists()


def test_cannot_write(tmp_path):
    """A folder that does not exist is reported as such."""
    with pytest.raises(TraceError, match=r"cannot be written: found No such file or directory\. Check the folder"):
        save(load_demo(), tmp_path / "no" / "x.swf")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a/KTH-SP2-1996-2.1-cln.swf.gz", "KTH-SP2-1996-2.1-cln"),
        ("w.json", "w"),
        ("w.json.xz", "w"),
        ("log.bz2", "log"),
        ("log.txt", "log.txt"),
        (".swf", ".swf"),
    ],
)
def test_trace_name(path, name):
    """A trace is named after its file, without the known suffixes."""
    assert trace_name(path) == name


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_a_bomb_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch, suffix):
    """A file that unpacks to far more than its size is rejected, unless the unpacked data is small."""
    path = tmp_path / f"bomb.json{suffix}"
    path.write_bytes(PACKERS[suffix[1:]](b"[" * 3_000_000))
    with open_trace(path) as stream:
        assert len(stream.read()) == 3_000_000
    monkeypatch.setattr("pipistrelle.traces.files._SMALL", 1 << 20)
    with (
        pytest.raises(TraceError, match="unpacks to more than 200 times its size"),
        open_trace(path) as stream,
    ):
        stream.read()


def test_a_large_bomb_is_detected_as_early_as_a_small_one(tmp_path, monkeypatch):
    """The part that was read counts, not the rest of the file."""
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b"[" * (1 << 26)) + os.urandom(1 << 20))
    monkeypatch.setattr("pipistrelle.traces.files._SMALL", 1 << 20)
    with open_trace(path) as stream, pytest.raises(TraceError, match="unpacks to more than 200 times"):
        stream.read(40 << 20)  # Python 3.12 and later read 128 KiB of a file at once, which may unpack to 25 MiB


def test_a_compressed_log_may_come_by_a_pipe(tmp_path, monkeypatch):
    """Of any length: the size of a pipe is unknown."""
    monkeypatch.setattr("pipistrelle.traces.files._SMALL", 1 << 10)
    reading, writing = os.pipe()
    os.write(writing, gzip.compress(os.urandom(2000).hex().encode()))
    os.close(writing)
    try:
        with open_trace(f"/dev/fd/{reading}") as stream:
            assert len(stream.read()) == 4000
    finally:
        os.close(reading)
