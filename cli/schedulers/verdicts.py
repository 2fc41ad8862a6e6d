"""Options and output shared by ``check cases`` and ``check scheduler``."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from pipistrelle.cli.terminal.console import plain, results, show
from pipistrelle.cli.terminal.guard import FILE

_C = TypeVar("_C", bound=Callable[..., Any])


def name_option(tests: str, example: str, names: Callable[[click.Context], Iterable[str]]) -> Callable[[_C], _C]:
    """Return the option ``--name``, which selects tests by name.

    Args:
        tests: the word for several tests in the help.
        example: a pattern of names for the help.
        names: returns the names that shells complete.
    """

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in names(ctx) if name.startswith(incomplete)]

    text = f"Run only {tests} with NAME in their name; NAME can be a pattern: '{example}'; repeatable."
    return click.option("-k", "--name", "names", multiple=True, metavar="NAME", help=text, shell_complete=complete)


def junit_option(test: str) -> Callable[[_C], _C]:
    """Return the option ``--junit``; ``test`` is the word for one test in its help."""
    return click.option(
        "--junit", type=FILE, metavar="FILE.xml", help=f"Also write the result of each {test} as JUnit XML."
    )


def print_verdict(verdict: str, style: str, name: str, lines: Iterable[str]) -> None:
    """Print the verdict on a test, in this style, and the ``lines`` with details."""
    line = plain("  ").join([plain(f"{verdict:<7}", style), plain(name)])
    results().print(line, soft_wrap=True)
    for text in lines:
        show(f"           {text}")


def write_junit(path: Path, suite: str, tests: Iterable[tuple[str, str, float, Sequence[str]]]) -> None:
    """Write (name, verdict, wall-clock seconds, lines) of each test as JUnit XML."""
    from pipistrelle.reports.report.junit import TestLine, junit_xml
    from pipistrelle.server.outputs.once import write_output

    write_output(path, junit_xml(suite, [TestLine(*test) for test in tests]), "--junit")  # type: ignore[arg-type]
