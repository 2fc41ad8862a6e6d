"""The log: loguru's, which costs more to import than all of the protocol, so that it comes with the first message."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loguru import Logger

_prepared: list[Callable[["Logger"], None]] = []


def prepare_log(set_up: Callable[["Logger"], None]) -> None:
    """Have the log set up by ``set_up`` before its first message, in place of what was to set it up until now."""
    _prepared[:] = [set_up]


def logger() -> "Logger":
    """Return the log; whoever lets foreign code in asks for it before, which may log with loguru itself."""
    from loguru import logger as log

    while _prepared:
        _prepared.pop()(log)
    return log
