"""The program's log, based on loguru.

The import of loguru is slow, so it happens only for the first message.
"""

import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from loguru import Logger, Message

_OURS: Final = __name__.partition(".")[0]
#: libraries between a message and the caller
_THEIRS: Final = ("loguru", "contextlib", "importlib", "functools")


class PipistrelleWarning(UserWarning):
    """Doubtful input of a Python script or notebook.

    A command would log it as a warning.
    """


def _as_warnings(log: "Logger") -> None:
    """Turn warnings in the log into Python warnings.

    They point at the user's line of code.
    """
    from contextlib import suppress

    with suppress(ValueError):  # a program that uses loguru has removed or changed loguru's own output: leave that
        log.remove(0)
    log.add(_warn, level="WARNING", format="{message}", filter=_OURS, catch=False)


def _warn(message: "Message") -> None:
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in (_OURS, *_THEIRS):
        frame, level = frame.f_back, level + 1
    warnings.warn(message.record["message"], PipistrelleWarning, stacklevel=level)


_prepared: list[Callable[["Logger"], None]] = [_as_warnings]


def prepare_log(set_up: Callable[["Logger"], None]) -> None:
    """Register ``set_up`` to be called once, just before the log's first message.

    A function that was registered before is no longer called.
    """
    _prepared[:] = [set_up]


def logger() -> "Logger":
    """Return the program's log.

    Call this before running user code, which may use loguru. Unless a command has called `prepare_log`, warnings in the
    log become Python warnings.
    """
    from loguru import logger as log

    while _prepared:
        _prepared.pop()(log)
    return log
