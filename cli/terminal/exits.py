"""Exit codes in addition to `PipistrelleError.exit_code`.

docs/reference/cli.md lists all exit codes.
"""

import errno
import os
import signal
from typing import Final

#: a comparison found differences
DIFFERENT: Final = 1
#: the reader of the output is gone
GONE: Final = 1
#: an output cannot be written; the exit code of `OutputFailed`
NOT_WRITTEN: Final = 6
#: EX_SOFTWARE and EX_OSERR of sysexits.h
BUG: Final = 70
NO_MEMORY: Final = 71
#: Ctrl-C, SIGTERM or SIGHUP; shells use the same exit code
INTERRUPTED: Final = 128 + signal.SIGINT

_LESS: Final = "reduce the work."
#: system errors that exit with `NOT_WRITTEN`, and those that exit with `NO_MEMORY`
FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS)

_FILES: Final = (errno.EMFILE, errno.ENFILE)


def exhausted(error: BaseException) -> str | None:
    """Return a message if an error was caused by a lack of descriptors or memory.

    Return None for other errors. Errors that were raised while handling such an error count too, whatever their own
    text.
    """
    one: BaseException | None = error
    while one is not None:
        number = _number(one)
        if number in _FILES:
            whose = "this process" if number == errno.EMFILE else "the system"
            return f"{whose} is out of file descriptors ({os.strerror(number)}); raise the limit (ulimit -n) or {_LESS}"
        if number in EXHAUSTED:
            return f"{os.strerror(number)}; raise the limit (ulimit, batch system) or {_LESS}"
        one = one.__cause__ or one.__context__
    return None


def _number(error: BaseException) -> int:
    """Return the system's error number (errno) of an exception; 0 if it has none."""
    if isinstance(error, ImportError):  # a shared library cannot be opened
        return next((number for number in _FILES if os.strerror(number) in str(error)), 0)
    number = getattr(error, "errno", None)  # also ZMQError's, which is no OSError
    return number if isinstance(number, int) else 0
