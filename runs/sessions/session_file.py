"""The session file: the run's description, every message, and a chain of digests.

Each line is one JSON object. The first line is the header (`SessionHeader`). Then lines ``{"notice":FRAME}`` and
``{"reply":FRAME}`` alternate, with messages as sent. After every few hundred messages, and at the end,
``{"chain":TEXT}`` has the beginning of the SHA-256 of everything before it.
"""

import gzip
import hashlib
import io
import lzma
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from time import monotonic
from typing import IO, Any, Final, Literal, NamedTuple, cast

import msgspec
from msgspec import Struct

from pipistrelle.protocol import codec
from pipistrelle.protocol.base.errors import PipistrelleError, ProtocolError, printable
from pipistrelle.protocol.base.whole import Replacement, flush_to_disk, only_regular, write_rows
from pipistrelle.protocol.batsim import codec as batsim_codec
from pipistrelle.protocol.messages import HelloData, Notice, Reply, WelcomeData
from pipistrelle.server.outputs.csv_file import unwritable
from pipistrelle.traces.files import Counted, Swelling

FORMAT: Final = 2
#: number of hexadecimal digits of the digest in a chain line
_CHAIN: Final = 16
_COMPRESSED: Final = (".zst", ".gz", ".xz")
#: number of lines, or of bytes, written at once; and the longest time until they are written (wall-clock s)
_LINES: Final = 512
_MANY: Final = 1 << 20
_LATE_S: Final = 10.0
#: number of bytes read at once
_BYTES: Final = 1 << 16
#: the text before and after a message in its line of the file
_NOTICE: Final = b'{"notice":'
_REPLY: Final = b'{"reply":'
_END: Final = b"}\n"
#: maximum bytes of a line: a message of the server may name every job of a log
_LONGEST: Final = 1 << 30
#: compression level of zstandard: higher levels take longer than a round trip
_LEVEL: Final = 1
_HINT: Final = "'pipistrelle run --record FILE' writes one."


class SessionError(PipistrelleError):
    """A file is not a session, or is damaged."""


class SessionHeader(Struct, frozen=True, kw_only=True):
    """The header of a session: the run's description and the greetings of both sides.

    Attributes:
        epoch: Unix time of simulated time 0 (s); None: unknown.
    """

    session: int
    pipistrelle: str
    run_id: str
    hello: HelloData
    welcome: WelcomeData
    spec: dict[str, Any]
    epoch: float | None = None
    dialect: Literal["native", "batsim"] = "native"

    def read_notice(self, frame: bytes, seq: int) -> Notice:
        """Decode a recorded notice, or raise SessionError."""
        try:
            if self.dialect == "batsim":
                return batsim_codec.decode_notice(frame, seq)
            notice = codec.decode_notice(frame)
        except ProtocolError as error:
            raise SessionError(f"this is not a notice ({error})", where=f"notice {seq}", hint=_HINT) from None
        if not isinstance(notice, Notice):
            raise SessionError("this is not a notice", where=f"notice {seq}", hint=_HINT)
        return notice

    def read_reply(self, frame: bytes, notice: Notice) -> Reply:
        """Decode a recorded reply to a notice, or raise SessionError."""
        try:
            if self.dialect == "batsim":
                return batsim_codec.decode_reply(frame, notice)
            return codec.decode_reply(frame)
        except ProtocolError as error:
            raise SessionError(f"this is not a reply ({error})", where=f"notice {notice.seq}", hint=_HINT) from None


class _Chain(Struct, frozen=True, forbid_unknown_fields=True):
    chain: str


class Exchange(NamedTuple):
    """A recorded notice and the reply to it (None: no reply).

    Notices are numbered from 1.
    """

    seq: int
    notice: bytes
    reply: bytes | None


_header: Final = msgspec.json.Decoder(SessionHeader)
_chain: Final = msgspec.json.Decoder(_Chain)


class SessionWriter:
    """The writer of a session file; the file's suffix selects the compression.

    The suffixes ``.zst``, ``.gz`` and ``.xz`` compress the file. Any other suffix means no compression.

    Args:
        replaces: whether an existing file stays until the new session is complete. If not, it is overwritten at once.

    Raises:
        OutputFailed: the file cannot be written; every method raises it.
        SessionError: the suffix requires a package that is not installed.
    """

    def __init__(self, path: Path, *, replaces: bool = False) -> None:
        self._path = path
        self._new: Replacement | None = None
        self._chain = hashlib.sha256()
        #: lines not written yet, and the total bytes of their messages
        self._lines: list[bytes] = []
        self._held = 0
        self._due = inf
        self._begun = False
        zstd = _zstandard(path) if path.suffix == ".zst" else None
        try:
            if replaces and path.is_file():
                self._new = Replacement(path)
            if self._new is not None:
                self._raw: Any = self._new.file
            else:
                self._raw = path.open("wb") if path.suffix in _COMPRESSED else path.open("wb", buffering=0)
            self._file: Any
            if zstd is not None:
                self._file = zstd.ZstdCompressor(level=_LEVEL).stream_writer(self._raw, closefd=False)
            elif path.suffix == ".gz":
                self._file = gzip.GzipFile(fileobj=self._raw, mode="wb", filename="", mtime=0, compresslevel=1)
            elif path.suffix == ".xz":
                self._file = lzma.LZMAFile(self._raw, "wb", preset=0)  # noqa: SIM115 - `close` closes it
            else:
                self._file = self._raw
        except OSError as error:
            raise unwritable(path, error, "--record") from None

    def begin(self, header: SessionHeader) -> None:
        """Write the header of the session."""
        self._lines.append(msgspec.json.encode(header) + b"\n")
        self._begun = True
        self.flush()

    def notice(self, frame: bytes) -> None:
        """Write a notice, and flush if a flush is due.

        This is called while the scheduler is deciding.
        """
        self._add(_NOTICE, frame)
        if len(self._lines) >= _LINES or self._held >= _MANY or monotonic() >= self._due:
            self.flush()

    def reply(self, frame: bytes) -> None:
        """Keep a reply; it is written together with the next notice."""
        self._add(_REPLY, frame)

    def _add(self, kind: bytes, frame: bytes) -> None:
        if b"\n" in frame or b"\r" in frame:  # only white space: JSON strings escape line breaks
            frame = frame.replace(b"\n", b" ").replace(b"\r", b" ")
        self._lines.append(kind + frame + _END)
        self._held += len(frame)

    def flush(self) -> None:
        """Write everything recorded so far to the file."""
        if self._lines:
            lines = b"".join(self._lines)
            self._lines.clear()
            self._chain.update(lines)
            chain = b'{"chain":"%b"}\n' % self._chain.hexdigest()[:_CHAIN].encode()
            self._chain.update(chain)
            try:
                if isinstance(self._file, io.FileIO):
                    _, error = write_rows(self._file, lines + chain, quotes=False)
                    if error is not None:
                        raise error
                else:
                    self._file.write(lines + chain)
                if self._file is not self._raw and not isinstance(self._file, lzma.LZMAFile):
                    self._file.flush()
                self._raw.flush()
            except OSError as error:
                raise unwritable(self._path, error, "--record") from None
        self._held, self._due = 0, monotonic() + _LATE_S

    def close(self) -> None:
        """Write everything recorded so far, and close the file.

        An earlier session is then replaced.
        """
        try:
            self.flush()
            if self._file is not self._raw:
                self._file.close()
            if self._new is None:
                self._raw.flush()
                flush_to_disk(self._raw.fileno())
            elif self._begun:
                self._new.commit()
        except OSError as error:
            raise unwritable(self._path, error, "--record") from None
        finally:
            if self._new is None:
                self._raw.close()
            else:
                self._new.discard()


class SessionReader:
    """The reader of a session file.

    Each iteration starts at the beginning of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._opened() as lines:
            first = next(lines, b"")
        try:
            self.header = _header.decode(first)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            what = f"this is not a session ({printable(str(error))[:200]})"
            raise SessionError(what, where=self._where, hint=_HINT) from None
        if self.header.session != FORMAT:
            found, expected = f"format {self.header.session}", f"format {FORMAT}"
            raise SessionError("the session has another format", where=self._where, expected=expected, found=found)

    def exchanges(self) -> Generator[Exchange, None, None]:
        """Yield each notice with its reply; the last notice may have no reply.

        An incomplete end of the file is skipped.

        Raises:
            SessionError: a line is malformed, or a digest of the chain does not match.
        """
        seq = 0
        notice = b""
        with self._opened() as lines:
            for number, line in _checked(lines, self._where):
                if line.startswith(_NOTICE) and not notice:
                    notice = line[len(_NOTICE) : -len(_END)]
                    seq += 1
                elif line.startswith(_REPLY) and notice:
                    yield Exchange(seq, notice, line[len(_REPLY) : -len(_END)])
                    notice = b""
                else:
                    raise _no_line(self._where, number, "a reply is missing" if notice else "a notice is missing")
        if notice:
            yield Exchange(seq, notice, None)

    @property
    def _where(self) -> str:
        return printable(str(self._path))

    @contextmanager
    def _opened(self) -> Iterator[Iterator[bytes]]:
        """Yield an iterator over the file's lines.

        The iterator stops at a line that is too long, or where the file is incomplete.
        """
        try:
            with open(self._path, "rb", opener=only_regular) as raw:
                head = raw.peek(4)[:4]
                packed = Counted(raw)
                opened: Any = None
                if head.startswith(b"\x28\xb5\x2f\xfd"):
                    opened = _zstandard(self._path).ZstdDecompressor().stream_reader(packed, read_across_frames=True)
                elif head.startswith(b"\x1f\x8b"):
                    opened = gzip.GzipFile(fileobj=packed)
                elif head.startswith(b"\xfd7zX"):
                    opened = lzma.LZMAFile(cast(IO[bytes], packed))  # noqa: SIM115 - ends with what it reads
                yield _lines(
                    raw if opened is None else io.BufferedReader(Swelling(opened, packed, self._where), _BYTES)
                )
        except OSError as error:
            what = f"cannot read the session ({error.strerror or error})"
            raise SessionError(what, where=self._where, hint=_HINT) from None


def _checked(lines: Iterator[bytes], where: str) -> Iterator[tuple[int, bytes]]:
    """Yield each message with its line number.

    A message is yielded once a digest of the file has verified it.
    """
    digest = hashlib.sha256(next(lines, b""))
    together: list[bytes] = []
    first = 2
    for line in lines:
        if not line.endswith(b"\n"):  # an incomplete line
            return
        if line.startswith((_NOTICE, _REPLY)) and line.endswith(_END):
            together.append(line)
            continue
        last = first + len(together)
        try:
            chain = _chain.decode(line).chain
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _no_line(where, last, printable(str(error))[:200]) from None
        digest.update(b"".join(together))
        if chain != digest.hexdigest()[:_CHAIN]:
            what = "the chain of digests is broken: a line was changed"
            raise SessionError(what, where=f"{where}, lines {first} to {last}", hint=_HINT)
        digest.update(line)
        yield from enumerate(together, first)
        together.clear()
        first = last + 1


def _no_line(where: str, number: int, why: str) -> SessionError:
    return SessionError(f"this is not a line of a session ({why})", where=f"{where}, line {number}", hint=_HINT)


def _lines(stream: Any) -> Iterator[bytes]:
    while True:
        try:
            line = stream.readline(_LONGEST)
        except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile):  # the compressed data is incomplete
            return
        if not line:
            return
        yield line


def _zstandard(path: Path) -> Any:
    try:
        import zstandard  # from an extra, needed only for this suffix
    except ImportError:
        raise SessionError(
            "zstandard is not installed",
            where=printable(str(path)),
            expected="the extra 'record': pip install 'pipistrelle[record]'",
            hint="A name that ends in .jsonl.gz needs no extra.",
        ) from None
    return zstandard
