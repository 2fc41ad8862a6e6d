"""Output of commands: results, errors and the log."""

import json
import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from pipistrelle.protocol.base.errors import PipistrelleError, cut, printable
from pipistrelle.protocol.base.log import logger, prepare_log

if TYPE_CHECKING:
    from loguru import Logger, Record
    from rich.console import Console
    from rich.text import Text

    from pipistrelle.server.engine.observers import Observer
    from pipistrelle.server.setup.setup import Setup

_LEVELS: Final = ("WARNING", "INFO", "DEBUG")
#: most characters of a line
_LONGEST: Final = 4000
#: least width of a text column
_LEAST_TEXT: Final = 12


def import_numpy() -> None:
    """Import numpy without starting threads for linear algebra.

    Threads are started if the user asks for them. Starting the threads would take a third of the import time, and no
    matrix here is large enough to need them. The setting is not passed on to child processes.
    """
    wish = "OPENBLAS_NUM_THREADS"
    if wish in os.environ:
        return
    os.environ[wish] = "1"
    try:
        import numpy  # noqa: F401 - reads the variable at its first import
    finally:
        del os.environ[wish]


def configure_log(verbose: int, *, once: bool = False) -> None:
    """Log to standard error.

    ``verbose`` 0 logs warnings, 1 also information, and 2 also debugging messages. With ``once``, equal messages are
    logged only once.
    """
    level = _LEVELS[min(verbose, len(_LEVELS) - 1)]
    said: set[str] = set()

    def is_new(record: "Record") -> bool:
        if once and record["message"] in said:
            return False
        if once:
            said.add(record["message"])
        return True

    def set_up(log: "Logger") -> None:
        log.remove()
        log.add(sys.stderr, level=level, format="{level.name}: {message}", diagnose=False, filter=is_new)

    prepare_log(set_up)
    if "loguru" in sys.modules:  # another library may have imported it
        logger()


def say(text: str) -> None:
    """Print one line on standard error, with control characters escaped."""
    text = cut(text, _LONGEST)
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    click.echo(f"pipistrelle: {shown}", err=True)


def print_error(error: PipistrelleError) -> None:
    """Print an error on standard error: what is wrong, where, and what to do."""
    say(str(error))


def print_usage_error(error: click.ClickException) -> None:
    """Print an error about the command line, and the command that shows help."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f" Try '{context.command_path} --help'." if context else ""
    message = error.format_message()
    say(f"{message}{'' if message.endswith(('.', '?', '!')) else '.'}{hint}")


def print_bug(error: Exception, command: str) -> None:
    """Print an unexpected exception, and the command that logs its traceback."""
    logger().opt(exception=error).debug("unexpected exception")
    say(
        f"a bug in pipistrelle itself, please report it: {type(error).__name__}: {error}. "
        f"'{command}' shows the traceback."
    )


def progress_observers(setup: "Setup", wanted: bool | None) -> "list[Observer]":
    """Return a list with a progress bar, or an empty list.

    The list is empty if standard error is not a terminal, or if ``wanted`` is False.
    """
    if wanted is False or not sys.stderr.isatty():
        return []
    from rich.console import Console

    from pipistrelle.cli.terminal.progress import ProgressBar

    return [ProgressBar(setup.jobs, setup.epoch, Console(stderr=True))]


def print_facts(facts: Sequence[tuple[str, str]], indent: str = "") -> None:
    """Print (heading, text) pairs in two columns."""
    width = max((len(heading) for heading, _ in facts), default=0)
    for heading, text in facts:
        click.echo(printable(f"{indent}{heading:<{width}}  {text}".rstrip()))


def plain(text: str, style: str = "") -> "Text":
    """Return a text for the terminal, without control characters.

    Markup in the text is not interpreted.
    """
    from rich.text import Text  # most errors do not need it

    return Text(printable(text), style)


def results() -> "Console":
    """Return the console (standard output) to which results are printed."""
    from rich.console import Console

    return Console(highlight=False, emoji=False)


def show(text: str, style: str = "") -> None:
    """Print a line; the terminal wraps it."""
    results().print(plain(cut(text, _LONGEST), style), soft_wrap=True)


def print_json(value: object) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(value, indent=2, allow_nan=False))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], texts: Collection[str]) -> None:
    """Print a title and a table; the columns named in ``texts`` are left-aligned.

    On a narrow terminal, only text in the last column is cut. A row with fewer cells than columns is printed as a note.
    """
    console = results()
    lines = [[plain(cell) for cell in row] for row in (columns, *rows)]
    whole = [line for line in lines if len(line) == len(columns)]
    widths = [max(cell.cell_len for cell in column) for column in zip(*whole, strict=True)]
    if console.is_terminal and columns[-1] in texts:
        widths[-1] = min(widths[-1], max(console.width - sum(widths[:-1]) - 2 * len(widths), _LEAST_TEXT))
    show(title, "bold")
    for line in lines:
        if len(line) == len(columns):
            for name, cell, width in zip(columns, line, widths, strict=True):
                cell.overflow = "ellipsis"
                cell.align("left" if name in texts else "right", width)
        together = plain("  ").join([plain(""), *line])
        together.rstrip()
        together.stylize("dim" if line is lines[0] else "")
        console.print(together, soft_wrap=True)


def print_below(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print an empty line, then a table with a title.

    Only the first column is left-aligned.
    """
    click.echo()
    print_table(title, columns, rows, columns[:1])


def cells(values: Mapping[str, Any], *forms: str) -> list[str]:
    """Return some of the values as table cells; None becomes "-".

    Args:
        values: {name: value}.
        forms: a name and a format for each cell, such as "wait:.2f".
    """
    parts = [form.partition(":") for form in forms]
    return ["-" if values[name] is None else format(values[name], form) for name, _, form in parts]
