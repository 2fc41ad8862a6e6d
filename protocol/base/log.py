"""The log of loguru, imported with the first message because the import is slow."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loguru import Logger

_prepared: list[Callable[["Logger"], None]] = []


def prepare_log(set_up: Callable[["Logger"], None]) -> None:
    """Register ``set_up``, which is called just before the log's first message; it replaces an earlier one."""
    _prepared[:] = [set_up]


def logger() -> "Logger":
    """Return the log; call this before running user code, which may use loguru."""
    from loguru import logger as log

    while _prepared:
        _prepared.pop()(log)
    return log
