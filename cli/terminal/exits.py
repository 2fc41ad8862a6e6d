"""Exit codes in addition to `PipistrelleError.exit_code`; docs/reference/cli.md lists all."""

import errno
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

#: system errors that exit with `NOT_WRITTEN`, and those that exit with `NO_MEMORY`
FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS)
