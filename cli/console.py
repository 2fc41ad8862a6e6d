"""What the command line says besides its results: errors, and the log."""

import gc
import sys
from typing import Final

import click
from loguru import logger

from pipistrelle.protocol.errors import PipistrelleError

_LEVELS: Final = ("WARNING", "INFO", "DEBUG")


def relax_collector() -> None:
    """Let the collector of cyclic garbage look less often: a run's loop makes none, and looking costs some percent."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def configure_log(verbose: int) -> None:
    """Send the log to standard error, from warnings (0) to debugging (2)."""
    level = _LEVELS[min(verbose, len(_LEVELS) - 1)]
    logger.remove()
    logger.add(sys.stderr, level=level, format="{level.name}: {message}", diagnose=False)


def say(text: str) -> None:
    """Print one line on standard error; what a file or a peer put into it cannot break it or control the terminal."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    click.echo(f"pipistrelle: {shown}", err=True)


def print_error(error: PipistrelleError) -> None:
    """Say what is wrong, once."""
    say(str(error))


def print_usage_error(error: click.ClickException) -> None:
    """Say what is wrong with the command line, and where its rules are to be found."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f" Try '{context.command_path} --help'." if context else ""
    say(f"{error.format_message()}{hint}")


def print_bug(error: Exception) -> None:
    """Say that the program itself is wrong; the traceback is for the log."""
    logger.opt(exception=error).debug("unexpected exception")
    say(
        f"a bug in pipistrelle itself, please report it: {type(error).__name__}: {error}. "
        "'pipistrelle -vv ...' shows the traceback."
    )
