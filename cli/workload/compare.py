"""``pipistrelle workload compare``: two workloads side by side."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from pipistrelle.cli.options.files import json_option
from pipistrelle.cli.options.names import completed
from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.terminal.console import print_json, print_table, show
from pipistrelle.cli.terminal.guard import FILE, refuse_overwriting

if TYPE_CHECKING:
    from pipistrelle.traces.workload import Workload

_C = TypeVar("_C", bound=Callable[..., Any])

_PAGES: Final = (".html", ".svg")


def _page(ctx: click.Context, param: click.Parameter, path: Path | None) -> Path | None:
    if path is not None and path.suffix not in _PAGES:
        raise click.UsageError(f"--page writes HTML or SVG: name an .html or .svg file, not '{path.name}'.", ctx)
    return path


def page_option(text: str) -> Callable[[_C], _C]:
    """Return the option ``--page``; ``text`` is its help."""
    return click.option("--page", type=FILE, callback=_page, help=text)


def write_page(page: Path, first: "Workload", second: "Workload") -> dict[str, Any]:
    """Write an HTML or SVG page that compares two workloads.

    Return the compared statistics.
    """
    from pipistrelle.models.likeness.comparison import compare

    found = compare(first, second)
    _write(page, found)
    return found


def _write(page: Path, found: dict[str, Any]) -> None:
    from pipistrelle.models.likeness.page import html, svg
    from pipistrelle.traces.files import write_trace

    write_trace(page, [(html if page.suffix == ".html" else svg)(found).encode()])


@click.command("compare", cls=Command)
@click.argument("first", metavar="A", shell_complete=completed("workload", or_file=True))
@click.argument("second", metavar="B", shell_complete=completed("workload", or_file=True))
@page_option("Also write the comparison as an .html page or an .svg picture.")
@json_option
def compare_command(first: str, second: str, page: Path | None, as_json: bool) -> None:
    """Compare two workloads: distributions, arrivals, users.

    A and B are bundled names or files.
    """
    from pipistrelle.models.likeness.comparison import compare
    from pipistrelle.models.likeness.page import rows
    from pipistrelle.runs.inputs.named import load_workload

    refuse_overwriting([first, second], [page])
    found = compare(load_workload(first, sort=True), load_workload(second, sort=True))
    if page is not None:
        _write(page, found)
    if as_json:
        print_json(found)
        return

    columns, *lines = rows(found)
    print_table("Two workloads", columns, lines, ("",))
    if page is not None:
        show(f"side by side in {page}")
