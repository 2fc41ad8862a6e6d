"""What ``ci`` and ``conformance`` share: which tests are run, and what came of each."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from pipistrelle.cli.terminal.console import plain, results, show
from pipistrelle.cli.terminal.guard import FILE

_C = TypeVar("_C", bound=Callable[..., Any])


def name_option(tests: str, example: str) -> Callable[[_C], _C]:
    """Return the option that chooses among tests by their names."""
    text = f"Only {tests} with this in their name, or that it matches, as '{example}'; several times for several."
    return click.option("-k", "--name", "names", multiple=True, metavar="NAME", help=text)


def junit_option(test: str) -> Callable[[_C], _C]:
    """Return the option that names the file for JUnit's XML."""
    return click.option(
        "--junit", type=FILE, metavar="FILE.xml", help=f"Write what came of each {test} as JUnit's XML, too."
    )


def print_verdict(verdict: str, style: str, name: str, lines: Iterable[str]) -> None:
    """Print what came of a test, and below it what there is to say of it."""
    line = plain("  ").join([plain(f"{verdict:<7}", style), plain(name)])
    results().print(line, soft_wrap=True)
    for text in lines:
        show(f"           {text}")


def write_junit(path: Path, suite: str, tests: Iterable[tuple[str, str, float, Sequence[str]]]) -> None:
    """Write tests as JUnit's XML: the name of each, its verdict, its seconds of wall-clock time, its lines."""
    from pipistrelle.reports.report.junit import TestLine, junit_xml
    from pipistrelle.server.outputs.once import write_output

    write_output(path, junit_xml(suite, [TestLine(*test) for test in tests]), "--junit")  # type: ignore[arg-type]
