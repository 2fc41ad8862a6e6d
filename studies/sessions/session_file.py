"""The file of a session: every frame of both sides, a digest chain over them, and what the run was.

One JSON object a line. The first is the header (`SessionHeader`); each other one has a frame of the native dialect,
``{"notice": FRAME, "chain": TEXT}`` or ``{"reply": FRAME, "chain": TEXT}``, in turn. The chain is the beginning of the
SHA-256 of the header's line and all frames up to this one, each with a newline. A reply's decision that could not be
read stands there as what has replaced it, ``{"type": "(malformed)", ...}``.
"""

import gzip
import hashlib
import io
import lzma
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw, Struct, field

from pipistrelle.protocol.base.errors import PipistrelleError, printable
from pipistrelle.protocol.decisions import AnyDecision, Malformed
from pipistrelle.protocol.fields import package_version
from pipistrelle.protocol.frames import ABSENT, encoder
from pipistrelle.protocol.messages import HelloData, Notice, Reply, WelcomeData
from pipistrelle.server.outputs.csv_file import unwritable

FORMAT: Final = 1
#: hexadecimal digits of the chain that stand in a line
_CHAIN: Final = 16
#: lines are written at least so often, and so many bytes at once
_LINES: Final = 512
_BYTES: Final = 1 << 16
#: bytes of the longest line: a frame of a server may tell of every job of a log
_LONGEST: Final = 1 << 30
#: zstandard's level: higher ones take longer than a round trip
_LEVEL: Final = 1
_HINT: Final = "'pipistrelle run --record FILE' writes one."


class SessionError(PipistrelleError):
    """A file is no session, or not a whole one."""


class SessionHeader(Struct, frozen=True, kw_only=True):
    """What was recorded: the run's description, with the digests of its inputs, and what both sides have said first.

    ``epoch`` is the Unix time of time 0 in seconds, if there is one.
    """

    session: int
    pipistrelle: str
    run_id: str
    hello: HelloData
    welcome: WelcomeData
    spec: dict[str, Any]
    epoch: float | None = None


class _Line(Struct, frozen=True):
    chain: str
    notice: Raw = ABSENT
    reply: Raw = ABSENT


class RecordedReply(Reply, frozen=True):
    """A reply as a session has it."""

    events: list[AnyDecision | Malformed] = field(default_factory=list)


class Exchange(NamedTuple):
    """A notice and its reply; None if none has come."""

    notice: Notice
    reply: Reply | None


_header: Final = msgspec.json.Decoder(SessionHeader)
_line: Final = msgspec.json.Decoder(_Line)
_notice: Final = msgspec.json.Decoder(Notice)
_reply: Final = msgspec.json.Decoder(RecordedReply)


class SessionWriter:
    """Writes a session as the run goes on; the name's ending chooses the compression: ``.zst``, ``.gz``, ``.xz``, none.

    Raises
    ------
    OutputFailed
        when the file cannot be written; from every method.
    SessionError
        when the ending wants a package that is not installed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._chain = hashlib.sha256()
        self._lines: list[bytes] = []
        #: what is not written yet
        self._reply: Reply | None = None
        zstd = _zstandard(path) if path.suffix == ".zst" else None
        try:
            self._raw = path.open("wb")
            self._file: Any
            if zstd is not None:
                self._file = zstd.ZstdCompressor(level=_LEVEL).stream_writer(self._raw)
            elif path.suffix == ".gz":
                self._file = gzip.GzipFile(fileobj=self._raw, mode="wb", filename="", mtime=0, compresslevel=1)
            elif path.suffix == ".xz":
                self._file = lzma.LZMAFile(self._raw, "wb", preset=0)  # noqa: SIM115 - `close` closes it
            else:
                self._file = self._raw
        except OSError as error:
            raise unwritable(path, error, "--record") from None

    def begin(
        self, run_id: str, hello: HelloData, welcome: WelcomeData, spec: dict[str, Any], epoch: float | None
    ) -> None:
        """Write the header."""
        header = SessionHeader(
            session=FORMAT,
            pipistrelle=package_version(),
            run_id=run_id,
            hello=hello,
            welcome=welcome,
            spec=spec,
            epoch=epoch,
        )
        line = msgspec.json.encode(header) + b"\n"
        self._chain.update(line)
        self._lines.append(line)
        self.flush()

    def notice(self, notice: Notice) -> None:
        """Write a notice, behind the reply before it."""
        self._write_reply()
        self._write(b"notice", encoder.encode(notice))

    def reply(self, reply: Reply) -> None:
        """Write the reply to it, with the next notice: a scheduler is at work then, and nobody waits for it."""
        self._reply = reply

    def _write_reply(self) -> None:
        reply, self._reply = self._reply, None
        if reply is not None:
            self._write(b"reply", encoder.encode(reply))

    def _write(self, kind: bytes, frame: bytes) -> None:
        self._chain.update(frame)
        self._chain.update(b"\n")
        chain = self._chain.hexdigest()[:_CHAIN].encode()
        self._lines.append(b'{"%b":%b,"chain":"%b"}\n' % (kind, frame, chain))
        if len(self._lines) >= _LINES and self._reply is None:
            self.flush()

    def flush(self) -> None:
        """Let what there is so far reach the file, compressed as it may still be."""
        self._write_reply()
        try:
            self._file.write(b"".join(self._lines))
            self._lines.clear()
            if self._file is not self._raw and not isinstance(self._file, lzma.LZMAFile):
                self._file.flush()
            self._raw.flush()
        except OSError as error:
            raise unwritable(self._path, error, "--record") from None

    def close(self) -> None:
        """Write what is left and close the file."""
        try:
            self.flush()
            self._file.close()
        except OSError as error:
            raise unwritable(self._path, error, "--record") from None
        finally:
            self._raw.close()


class SessionReader:
    """A session that is read from its file, each time from its beginning.

    Raises
    ------
    SessionError
        when it is none, or one of another format.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._opened() as lines:
            first = next(lines, b"")
        try:
            self.header = _header.decode(first)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            what = f"this is no session ({printable(str(error))[:200]})"
            raise SessionError(what, where=self._where, hint=_HINT) from None
        if self.header.session != FORMAT:
            found, expected = f"format {self.header.session}", f"format {FORMAT}"
            raise SessionError("a session of another format", where=self._where, expected=expected, found=found)

    def exchanges(self) -> Generator[Exchange, None, None]:
        """Yield notices and replies in turn; the last notice has none if the run ended there.

        Raises
        ------
        SessionError
            when a line is none, or the chain is broken; what was cut off at the end is left out.
        """
        chain = hashlib.sha256()
        notice: Notice | None = None
        with self._opened() as lines:
            for number, text in enumerate(lines, start=1):
                if number == 1:
                    chain.update(text)
                    continue
                if not text.endswith(b"\n"):  # cut off
                    break
                try:
                    line = _line.decode(text)
                    frame = line.notice or line.reply
                    if bool(line.notice) == bool(line.reply):
                        raise msgspec.DecodeError("neither a notice nor a reply")
                    chain.update(frame)
                    chain.update(b"\n")
                    if line.chain != chain.hexdigest()[:_CHAIN]:
                        raise msgspec.DecodeError("the chain of digests is broken: a line was changed")
                    if line.notice:
                        if notice is not None:
                            raise msgspec.DecodeError("a reply is missing")
                        notice = _notice.decode(frame)
                    else:
                        if notice is None:
                            raise msgspec.DecodeError("a notice is missing")
                        yield Exchange(notice, _reply.decode(frame))
                        notice = None
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    where = f"{self._where}, line {number}"
                    what = f"this is no line of a session ({printable(str(error))[:200]})"
                    raise SessionError(what, where=where, hint=_HINT) from None
        if notice is not None:
            yield Exchange(notice, None)

    @property
    def _where(self) -> str:
        return printable(str(self._path))

    @contextmanager
    def _opened(self) -> Iterator[Iterator[bytes]]:
        """Yield the lines; one that is too long, or data that end too early, end them."""
        try:
            with self._path.open("rb") as raw:
                head = raw.peek(4)[:4]
                stream: Any = raw
                if head.startswith(b"\x28\xb5\x2f\xfd"):
                    reader = _zstandard(self._path).ZstdDecompressor().stream_reader(raw, read_across_frames=True)
                    stream = io.BufferedReader(reader, _BYTES)
                elif head.startswith(b"\x1f\x8b"):
                    stream = gzip.GzipFile(fileobj=raw)
                elif head.startswith(b"\xfd7zX"):
                    stream = lzma.LZMAFile(raw)  # noqa: SIM115 - ends with what it reads
                yield _lines(stream)
        except OSError as error:
            what = f"cannot read the session ({error.strerror or error})"
            raise SessionError(what, where=self._where, hint=_HINT) from None


def _lines(stream: Any) -> Iterator[bytes]:
    while True:
        try:
            line = stream.readline(_LONGEST)
        except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile):  # cut off
            return
        if not line:
            return
        yield line


def _zstandard(path: Path) -> Any:
    try:
        import zstandard  # in an extra: the other endings need it not
    except ImportError:
        raise SessionError(
            "zstandard is not installed",
            where=printable(str(path)),
            expected="the extra 'record': pip install 'pipistrelle[record]'",
            hint="A name that ends in .jsonl.gz needs none.",
        ) from None
    return zstandard
