"""A fork of this process that answers requests, for studies with Python objects.

A request is one line, and so is its answer.
"""

import os
import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from time import monotonic, sleep
from typing import BinaryIO, Final, NoReturn

from pipistrelle.protocol.base.log import logger
from pipistrelle.studies.errors import StudyError

#: time between two checks whether a fork has ended (s)
_LOOK_S: Final = 0.005
_NAME: Final = "pipistrelle worker"


class Fork:
    """A forked process that answers requests, one per line.

    Its methods are those of `subprocess.Popen`. The process ends, at the latest, when its input is closed and all
    requests are answered.

    Args:
        respond: returns the answer to a request; the fork calls it.
        others: file descriptors of other forks' pipes, which this fork must not hold open.

    Raises:
        StudyError: the process cannot be forked.
    """

    def __init__(self, respond: Callable[[bytes], bytes], others: Iterable[int] = ()) -> None:
        asked, asks = os.pipe()
        answers, answered = os.pipe()
        try:
            with warnings.catch_warnings():
                # Python 3.12 warns if there are other threads, such as those of a notebook. The fork uses none of them.
                warnings.simplefilter("ignore", DeprecationWarning)
                self.pid = os.fork()
        except OSError as error:
            raise StudyError(f"cannot start a worker ({error.strerror or error})") from None
        if not self.pid:
            _serve(respond, asked, answered, [asks, answers, *others])
        os.close(asked)
        os.close(answered)
        self.stdin: BinaryIO = os.fdopen(asks, "wb")
        self.stdout: BinaryIO = os.fdopen(answers, "rb", 0)
        self.returncode: int = 0
        self._ended = False

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the process has ended, and return its exit code.

        The exit code is -N if signal N ended the process.

        Raises:
            subprocess.TimeoutExpired: the process still runs after ``timeout`` (s).
        """
        until = None if timeout is None else monotonic() + timeout
        while not self._ended:
            pid, status = os.waitpid(self.pid, 0 if until is None else os.WNOHANG)
            if pid:
                self._ended, self.returncode = True, os.waitstatus_to_exitcode(status)
            elif until is not None and monotonic() > until:
                raise subprocess.TimeoutExpired(_NAME, timeout or 0.0)
            else:
                sleep(_LOOK_S)
        return self.returncode

    def kill(self) -> None:
        """End the process at once."""
        if not self._ended:
            os.kill(self.pid, signal.SIGKILL)


def _serve(respond: Callable[[bytes], bytes], asked: int, answered: int, closed: Iterable[int]) -> NoReturn:
    """Answer requests, one per line, until the input ends; then end the process.

    The exit handlers of the parent process do not run in this process.
    """
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for one in closed:
            with suppress(OSError):
                os.close(one)
        # a notebook's streams need threads that a fork lacks; what a policy prints goes to standard error
        sys.stdout = sys.stderr = os.fdopen(os.dup(2), "w", buffering=1, errors="backslashreplace")
        logger().remove()  # the parent has logged the warnings about inputs
        with os.fdopen(asked, "rb") as lines, os.fdopen(answered, "wb", 0) as answers:
            for line in lines:
                answers.write(respond(line) + b"\n")
        code = 0
    except BrokenPipeError:
        code = 0  # the parent is gone
    except BaseException:
        with suppress(Exception):
            traceback.print_exc()
    finally:
        os._exit(code)
