"""What the command line says besides its results: errors, and the log."""

import sys
from typing import Final

import click
from loguru import logger

from pipistrelle.protocol.errors import PipistrelleError

_LEVELS: Final = ("WARNING", "INFO", "DEBUG")


def configure_log(verbose: int) -> None:
    """Send the log to standard error, from warnings (0) to debugging (2)."""
    level = _LEVELS[min(verbose, len(_LEVELS) - 1)]
    logger.remove()
    logger.add(sys.stderr, level=level, format="{level.name}: {message}", diagnose=False)


def print_error(error: PipistrelleError) -> None:
    """Say what is wrong, once, on standard error."""
    click.echo(f"pipistrelle: {error}", err=True)


def print_bug(error: Exception) -> None:
    """Say that the program itself is wrong; the traceback is for the log."""
    logger.opt(exception=error).debug("unexpected exception")
    click.echo(
        f"pipistrelle: a bug in pipistrelle itself, please report it: {type(error).__name__}: {error}. "
        "'pipistrelle -vv ...' shows the traceback.",
        err=True,
    )
