"""Open and write trace files, plain or compressed."""

import bz2
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import IO, Any, cast

from pipistrelle.protocol.base.errors import InputError, cut
from pipistrelle.protocol.base.whole import read_whole_text, whole_file, without_waiting
from pipistrelle.traces.errors import TraceError, TraceOutputError

PathText = str | os.PathLike[str]

_BUFFER = 1 << 16
#: most times its own size that a compressed file may unpack to; `_SMALL` bytes are always allowed
_SWELLS = 200
_SMALL = 32 << 20
_GZIP, _XZ, _BZIP2 = b"\x1f\x8b", b"\xfd7zXZ\x00", b"BZh"
_NOT_READ = {b"PK\x03\x04": "a zip archive", b"\x28\xb5\x2f\xfd": "a zstd file", b"7z\xbc\xaf": "a 7z archive"}
#: most characters of a name in a message; a file may name others
_LONGEST_NAME = 1000
_AGAIN = "Copy or download the file again."
_TRACE = "a workload file"


@contextmanager
def open_trace(path: PathText, *, may_be_empty: bool = False, what: str = _TRACE) -> Iterator[io.BufferedReader]:
    """Open a trace for reading bytes; decompress gzip, xz and bzip2 by signature.

    ``what`` names the expected kind of file in messages. Read errors inside the with-block also become a `TraceError`.

    Raises:
        TraceError: the file is missing, a folder, unreadable, binary, truncated or corrupt; or it is empty and empty
            files are not allowed.
    """
    where = cut(_checked_name(path), _LONGEST_NAME)
    expected = None if what == _TRACE else what
    try:
        with open(path, "rb", opener=without_waiting) as raw:
            stream = _uncompressed(raw, where, what)
            head = stream.peek(_BUFFER)
            if not head and not may_be_empty:
                raise TraceError("is empty", where=where, hint="A trace has at least one job.")
            if b"\0" in head:
                raise binary_file(where, what)
            yield stream
    except FileNotFoundError as error:
        raise TraceError("no such file", where=where, expected=expected, hint="Check the path.") from error
    except IsADirectoryError as error:
        raise TraceError("is a folder", where=where, expected=what, hint="Name a file in it.") from error
    except EOFError as error:
        raise TraceError(
            "the compressed data end too early: the file is truncated", where=where, hint=_AGAIN
        ) from error
    except (gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise TraceError("the compressed data are corrupt", where=where, found=str(error), hint=_AGAIN) from error
    except OSError as error:
        if error.errno is None:  # bz2 reports corrupt data this way
            raise TraceError("the compressed data are corrupt", where=where, found=str(error), hint=_AGAIN) from error
        raise TraceError(
            "cannot be read", where=where, expected=expected, found=error.strerror, hint="Check the file's permissions."
        ) from error


def is_inside(path: str, folder: str) -> bool:
    """Return whether a path is a regular file in a folder or below.

    Links are resolved.
    """
    real, here = os.path.realpath(path), os.path.realpath(folder or ".")
    return os.path.isfile(real) and os.path.commonpath((real, here)) == here


def beginning(path: PathText) -> bytes:
    """Return a file's first bytes, decompressed; b"" if it cannot be read."""
    if not os.path.isfile(path):  # reading a pipe would consume the bytes
        return b""
    try:
        with open_trace(path) as stream:
            return stream.peek(_BUFFER)
    except TraceError:
        return b""


def _checked_name(path: PathText) -> str:
    """Return the path as text; raise TraceError if no file can have this name."""
    where = os.fspath(path)
    try:
        possible = b"\0" not in os.fsencode(where)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise TraceError("no file can have this name", where=ascii(where), hint="Check the path.")
    return where


def binary_file(where: str, what: str = _TRACE) -> TraceError:
    """Return the error for a binary file."""
    return TraceError(
        "is a binary file (it contains NUL bytes)",
        where=where,
        expected=f"{what}, plain or compressed with gzip, xz or bzip2",
        hint="Check that it is the right file.",
    )


def _uncompressed(raw: io.BufferedReader, where: str, what: str) -> io.BufferedReader:
    head = raw.peek(len(_XZ))
    for magic, kind in _NOT_READ.items():
        if head.startswith(magic):
            raise TraceError(
                f"is {kind}, which is not supported",
                where=where,
                expected=f"{what}, plain or compressed with gzip, xz or bzip2",
                hint="Unpack it first.",
            )
    opened: gzip.GzipFile | lzma.LZMAFile | bz2.BZ2File
    packed = Counted(raw)
    if head.startswith(_GZIP):
        opened = gzip.GzipFile(fileobj=packed, mode="rb")
    elif head.startswith(_XZ):
        opened = lzma.LZMAFile(cast(IO[bytes], packed))  # noqa: SIM115  # the reader around it closes it
    elif head.startswith(_BZIP2):
        opened = bz2.BZ2File(packed)
    else:
        return raw
    # a buffered reader splits lines twice as fast as the decompressors do
    return io.BufferedReader(Swelling(opened, packed, where), _BUFFER)


class Counted(io.RawIOBase):
    """A compressed file, perhaps a pipe, that counts the bytes read from it."""

    def __init__(self, raw: io.BufferedReader) -> None:
        self._raw = raw
        self.count = 0

    def readable(self) -> bool:
        """Return True: the file can be read."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Read at most `size` bytes, and count them."""
        data = self._raw.read(size)
        self.count += len(data)
        return data


class Swelling(io.RawIOBase):
    """The content of a compressed file; a decompression bomb raises TraceError.

    The limit is relative to the bytes read so far, so a large bomb fails as early as a small one.

    Args:
        swells: the greatest allowed ratio of unpacked to packed size.
        small: a number of unpacked bytes that is allowed at any ratio; None: 32 MiB.
    """

    def __init__(
        self, opened: Any, packed: Counted, where: str, *, swells: int = _SWELLS, small: int | None = None
    ) -> None:
        self._opened = opened
        self._packed = packed
        self._where = where
        self._count = 0
        self._swells = swells
        self._small = _SMALL if small is None else small

    def readable(self) -> bool:
        """Return True: the file can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read decompressed bytes into `buffer`; return how many."""
        data: bytes = self._opened.read1(len(buffer))  # first return the data before a truncation
        buffer[: len(data)] = data
        self._count += len(data)
        if self._count > max(self._small, self._swells * self._packed.count):
            raise TraceError(
                f"unpacks to more than {self._swells} times its size, which no real file does",
                where=self._where,
                hint="If the file is genuine, unpack it first.",
            )
        return len(data)

    def close(self) -> None:
        """Close the decompressor."""
        self._opened.close()
        super().close()


def write_trace(path: PathText, chunks: Iterable[bytes]) -> None:
    """Replace a file by chunks of bytes.

    Files with the suffix .gz or .xz are compressed reproducibly.
    """
    where = _checked_name(path)
    try:
        with whole_file(path) as raw, _compressor(raw, where) as stream:
            for chunk in chunks:
                stream.write(chunk)
    except OSError as error:
        raise TraceOutputError(
            "cannot be written", where=where, found=error.strerror, hint="Check the folder and its permissions."
        ) from error


@contextmanager
def _compressor(raw: IO[bytes], where: str) -> Iterator[IO[bytes]]:
    if where.endswith(".gz"):
        # no time or name in the header, so equal jobs give equal files
        with gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0, compresslevel=9) as packed:
            yield cast(IO[bytes], packed)
    elif where.endswith(".xz"):
        with lzma.LZMAFile(raw, "wb", preset=6) as packed_xz:
            yield cast(IO[bytes], packed_xz)
    else:
        yield raw


def trace_name(path: PathText) -> str:
    """Return the file's name without folder, compression suffix and format suffix."""
    name = PurePath(path).name
    for suffixes in ((".gz", ".xz", ".bz2"), (".swf", ".json", ".sacct", ".maui", ".events")):
        for suffix in suffixes:
            if len(name) > len(suffix):
                name = name.removesuffix(suffix)
    return name


def read_text(path: PathText) -> str:
    """Return a text file's content; InputError if it cannot be read or is not UTF-8."""
    try:
        return read_whole_text(path)
    except OSError as error:
        raise InputError(f"cannot read the file ({error.strerror or error})", where=str(path)) from None
    except UnicodeDecodeError as error:
        raise InputError(
            "the file is not UTF-8 text", where=f"{path}, byte {error.start}", hint="Is it the right file?"
        ) from None


def text_if_file(name: str) -> str | None:
    """Return the content of the text file with this name.

    Return None if the file does not exist.
    """
    return read_text(name) if os.path.isfile(name) else None
