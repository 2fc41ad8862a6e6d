"""Write files that stay complete even if the program is killed.

A file is replaced at once, or extended by whole rows.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from io import FileIO
from typing import BinaryIO, Final

PathText = str | os.PathLike[str]

_PART: Final = ".part"
#: most bytes of a target's name in the name of the file beside it, as file systems limit names to 255 bytes
_LONGEST_NAME: Final = 240
#: errors of files that cannot be flushed, such as pipes
_UNFLUSHABLE: Final = (errno.EINVAL, errno.ENOTSUP, errno.EROFS)
#: access rights of a new file, before the umask
_MODE: Final = 0o666
#: number of bytes that the kernel stores at once
_PAGE: Final = 4096
_STANDARD_STREAMS: Final = range(3)
#: most bytes that are read from a pipe or device, which may never end
_MOST_STREAMED: Final = 64 << 20


def without_waiting(path: PathText, flags: int) -> int:
    """Open a file, without waiting for a writer if it is a named pipe.

    A pipe without a writer is read as empty. Pass this function as the ``opener`` of `open`.
    """
    number = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(number, True)
    return number


def only_regular(path: PathText, flags: int) -> int:
    """Open a regular file; OSError for a pipe or device, which may never end.

    Pass this function as the ``opener`` of `open`.
    """
    number = without_waiting(path, flags)
    if stat.S_ISREG(os.fstat(number).st_mode):
        return number
    os.close(number)
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))


def read_whole(path: PathText) -> bytes:
    """Return a file's content; do not wait if it is a pipe without a writer.

    All code that reads a whole file uses this function.

    Raises:
        OSError: the file cannot be read, or it is a pipe or device with more than 64 MiB.
    """
    with open(path, "rb", opener=without_waiting) as file:
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file.read()
        content = file.read(_MOST_STREAMED + 1)
    if len(content) > _MOST_STREAMED:
        raise OSError(errno.EFBIG, "a pipe or device with more than 64 MiB", os.fspath(path))
    return content


def read_whole_text(path: PathText) -> str:
    """Return a text file's content with ``\\n`` as line breaks and without a byte-order mark.

    Raises OSError, and UnicodeDecodeError if the content is not UTF-8.
    """
    text = read_whole(path).decode("utf-8-sig")  # some editors write a byte-order mark
    return text.replace("\r\n", "\n").replace("\r", "\n")


class Replacement:
    """A new version of a file, written beside its target.

    `commit` replaces the target at once. Until `commit` the target stays as it is, even if the process is killed. Links
    are followed. Pipes, devices and the standard streams are written directly. The constructor and `commit` raise
    OSError if they fail.

    Args:
        fresh: raise FileExistsError if the target exists.
        mode: the target's access rights; None: keep its present rights, or give a new file the usual ones.
    """

    def __init__(self, path: PathText, *, fresh: bool = False, mode: int | None = None) -> None:
        self._target = _behind_links(path)
        self._part: str | None = None
        if fresh and os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(path))
        if self._target is None:
            self.file: BinaryIO = open(path, "wb")  # noqa: SIM115 - `commit` and `discard` close it
            return
        self._part, number = _opened_beside(self._target, mode)
        self.file = open(number, "wb")  # noqa: SIM115
        if fresh and os.path.lexists(self._target):  # another process has just made it; we hold the lock now
            self.discard()
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), self._target)

    def commit(self) -> None:
        """Flush the file to disk and replace the target; discard the file if that fails."""
        try:
            self.file.flush()
            flush_to_disk(self.file.fileno())
            if self._part is not None and self._target is not None:
                os.replace(self._part, self._target)
                self._part = None
        except BaseException:
            self.discard()
            raise
        self.file.close()
        if self._target is not None:
            _flush_folder(os.path.dirname(self._target))

    def discard(self) -> None:
        """Remove the new file and leave the target as it is.

        Bytes already written to a pipe are not taken back.
        """
        with suppress(OSError):
            if self._part is not None:  # still locked, so it is ours
                os.unlink(self._part)
        self._part = None
        with suppress(OSError):
            self.file.close()


@contextmanager
def whole_file(path: PathText, *, fresh: bool = False, mode: int | None = None) -> Iterator[BinaryIO]:
    """Yield a file that replaces ``path`` at the end of the ``with`` block.

    It does not replace ``path`` if the block ends with an error. Every command writes its files with this function, so
    a file is never half written. The arguments and the errors are those of `Replacement`.
    """
    replacement = Replacement(path, fresh=fresh, mode=mode)
    try:
        try:
            yield replacement.file
        except BaseException:
            replacement.discard()
            raise
        replacement.commit()
    except OSError as error:
        if error.filename is None:  # a full disk
            error.filename = os.fspath(path)
        raise


def write_whole(path: PathText, chunks: Iterable[bytes]) -> None:
    """Replace a file's content at once.

    If that fails, raise OSError and leave the file unchanged.
    """
    with whole_file(path) as file:
        for chunk in chunks:
            file.write(chunk)


def write_together(
    files: Sequence[tuple[PathText, bytes, int | None]],
    *,
    fresh: bool = False,
    ready: Callable[[], object] = lambda: None,
) -> None:
    """Replace several files.

    If one of them cannot be written, raise OSError and leave all unchanged. All are on disk before the first one is
    replaced. If the process is killed between two replacements, only the first files are new.

    Args:
        files: (path, content, access rights or None) of each, in the order of replacement.
        fresh: as in `Replacement`.
        ready: called when all are on disk, before the first one is replaced.
    """
    with ExitStack() as stack:
        for path, content, mode in reversed(files):  # the last one that is opened is replaced first
            file = stack.enter_context(whole_file(path, fresh=fresh, mode=mode))
            file.write(content)
            file.flush()
            flush_to_disk(file.fileno())
        ready()


def write_rows(file: FileIO, rows: bytes, *, quotes: bool = True) -> tuple[int, OSError | None]:
    """Write whole rows to an unbuffered file.

    Return the number of bytes written, and the error that prevented the rest, or None. After an error the file ends
    with the last row that fitted.

    Args:
        quotes: whether the rows are CSV, in which a quoted field may contain line breaks. If not, each line is a row.
    """
    done = 0
    try:
        at = file.tell() if file.seekable() else 0
        for end in _pieces(rows, at):
            while done < end:  # a nearly full disk takes only a part
                done += file.write(memoryview(rows)[done:end])
    except OSError as error:
        whole = _end_of_rows(rows, done, quotes=quotes)
        if whole < done:
            with suppress(OSError):  # not a regular file
                file.truncate(file.seek(whole - done, os.SEEK_CUR))
        return whole, error
    return done, None


def flush_to_disk(number: int) -> None:
    """Wait until the content of the open file ``number`` is on disk.

    Do nothing for a pipe or device.
    """
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in _UNFLUSHABLE:
            raise


def is_still(path: PathText, number: int) -> bool:
    """Return whether ``path`` still names the open file with this descriptor."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(number))
    except FileNotFoundError:
        return False


def _behind_links(path: PathText) -> str | None:
    """Return the file that ``path`` leads to.

    Return None for a pipe, a device or a standard stream.
    """
    target = os.path.realpath(path)
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return target
    if not stat.S_ISREG(found.st_mode) or any(_is_open(number, found) for number in _STANDARD_STREAMS):
        return None
    return target


def _is_open(number: int, found: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.fstat(number), found)
    except OSError:
        return False


def _opened_beside(target: str, mode: int | None) -> tuple[str, int]:
    """Return the name and the descriptor of a new locked file in the target's folder.

    If a killed process left such a file, that file is used again.
    """
    folder, name = os.path.split(target)
    short = os.fsdecode(os.fsencode(name)[:_LONGEST_NAME])
    part = os.path.join(folder, f".{short}{_PART}")
    # Follow no link and wait for no pipe: others may write to the folder, too.
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    while True:
        number = os.open(part, flags, _MODE if mode is None else mode)
        try:
            _lock(number, target)
            if not is_still(part, number):  # another process has just finished with it
                os.close(number)
                continue
            os.ftruncate(number, 0)
            if mode is not None:
                os.fchmod(number, mode)
            else:
                with suppress(OSError):  # a new target, or a file system without access rights
                    os.fchmod(number, stat.S_IMODE(os.stat(target).st_mode))
        except OSError:
            with suppress(OSError):
                os.close(number)
            raise
        return part, number


def _lock(number: int, target: str) -> None:
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BlockingIOError(errno.EAGAIN, "another process is writing this file", target) from None
    except OSError:  # a file system without locks
        return


def _flush_folder(folder: str) -> None:
    with suppress(OSError):  # the file is in place, and not every file system can do it
        number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _pieces(rows: bytes, at: int) -> Iterator[int]:
    """Yield the offsets in ``rows`` at which each write should end.

    SIGKILL can end a write between two memory pages. So one write holds the lines that lie within one page, and a line
    that crosses into the next page has a write of its own. Then SIGKILL seldom cuts a row. The first row begins at byte
    ``at`` of the file.
    """
    end = 0
    while end < len(rows):
        page = end + _PAGE - (at + end) % _PAGE
        begin = end
        end = len(rows) if len(rows) <= page else rows.rfind(b"\n", begin, page) + 1
        if end <= begin:
            end = rows.find(b"\n", page) + 1 or len(rows)
        yield end


def _end_of_rows(rows: bytes, end: int, *, quotes: bool) -> int:
    """Return the end of the last row that is complete within the first ``end`` bytes."""
    while end:
        end = rows.rfind(b"\n", 0, end) + 1
        if not quotes or rows.count(b'"', 0, end) % 2 == 0:
            break
        end -= 1
    return end
