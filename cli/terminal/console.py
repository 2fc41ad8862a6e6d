"""What the command line says besides its results: errors, and the log."""

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
#: characters of one line that are shown: a peer, or a file, may have said much more
_LONGEST: Final = 4000
#: columns that a text keeps on a narrow terminal
_LEAST_TEXT: Final = 12


def import_numpy() -> None:
    """Import numpy without threads for linear algebra, unless the user asks for some: starting them costs a third.

    Nothing of ours has matrices large enough to be worth a thread. Child processes do not inherit this.
    """
    wish = "OPENBLAS_NUM_THREADS"
    if wish in os.environ:
        return
    os.environ[wish] = "1"
    try:
        import numpy  # noqa: F401 - it looks at the wish when it is imported for the first time
    finally:
        del os.environ[wish]


def configure_log(verbose: int, *, once: bool = False) -> None:
    """Send the log to standard error, from warnings (0) to debugging (2); no message twice if only ``once``."""
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
    if "loguru" in sys.modules:  # somebody else in this process may log, too
        logger()


def say(text: str) -> None:
    """Print one line on standard error; what a file or a peer put into it cannot break it or control the terminal."""
    text = cut(text, _LONGEST)
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
    logger().opt(exception=error).debug("unexpected exception")
    say(
        f"a bug in pipistrelle itself, please report it: {type(error).__name__}: {error}. "
        "'pipistrelle -vv ...' shows the traceback."
    )


def progress_observers(setup: "Setup", wanted: bool | None) -> "list[Observer]":
    """Return the progress bar if standard error is a terminal, unless it is not ``wanted``; None: nobody said so."""
    if wanted is False or not sys.stderr.isatty():
        return []
    from rich.console import Console

    from pipistrelle.cli.terminal.progress import ProgressBar

    return [ProgressBar(setup.jobs, setup.epoch, Console(stderr=True))]


def print_facts(facts: Sequence[tuple[str, str]], indent: str = "") -> None:
    """Print headings and what belongs to them, the texts below each other; no control of the terminal."""
    width = max((len(heading) for heading, _ in facts), default=0)
    for heading, text in facts:
        click.echo(printable(f"{indent}{heading:<{width}}  {text}".rstrip()))


def plain(text: str, style: str = "") -> "Text":
    """Return what may quote a scheduler or a file: no markup, no control of the terminal."""
    from rich.text import Text  # most errors are said without it

    return Text(printable(text), style)


def results() -> "Console":
    """Return the terminal, or the file in its place, that results are printed on."""
    from rich.console import Console

    return Console(highlight=False, emoji=False)


def show(text: str, style: str = "") -> None:
    """Print a line, which a narrow terminal wraps as it likes."""
    results().print(plain(cut(text, _LONGEST), style), soft_wrap=True)


def print_json(value: object) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(value, indent=2, allow_nan=False))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], texts: Collection[str]) -> None:
    """Print a heading, and rows below each other: the columns ``texts`` on the left, numbers on the right.

    No cell is ever shortened but the last, if it is a text, on a terminal that is too narrow. A row of fewer cells than
    there are columns is a remark.
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
    """Print an empty line and a table of which only the first column is text."""
    click.echo()
    print_table(title, columns, rows, columns[:1])


def cells(values: Mapping[str, Any], *forms: str) -> list[str]:
    """Return cells of a table: each a value's name, and its format behind a colon; "-" for a value that is None."""
    parts = [form.partition(":") for form in forms]
    return ["-" if values[name] is None else format(values[name], form) for name, _, form in parts]
