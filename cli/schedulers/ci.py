"""``pipistrelle check cases``: rerun test cases.

Their results are compared with the expected (golden) results.
"""

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.schedulers.verdicts import junit_option, name_option, print_verdict, write_junit
from pipistrelle.cli.terminal.console import import_numpy, show
from pipistrelle.cli.terminal.exits import DIFFERENT
from pipistrelle.cli.terminal.guard import FILE_OR_FOLDER
from pipistrelle.protocol.base.errors import PipistrelleError

if TYPE_CHECKING:
    from collections.abc import Sequence


#: exit code for errors, the same as that of diff(1)
_TROUBLE: Final = 2
_STYLES: Final = {
    "same": "green",
    "within": "green",
    "differs": "bold red",
    "failed": "bold red",
    "updated": "yellow",
    "new": "yellow",
}


def _names(ctx: click.Context) -> list[str]:
    """Return the names of the cases in the given folder, or of the bundled cases."""
    from pipistrelle.reports.cases.case import bundled_folder, case_folders

    with suppress(PipistrelleError):
        return [folder.name for folder in case_folders(ctx.params.get("folder") or bundled_folder())]
    return []


@click.command(cls=Command)
@click.argument("folder", required=False, type=FILE_OR_FOLDER)
@click.option("--update", is_flag=True, help="Replace the expected results by the new ones; print the changes.")
@junit_option("case")
@name_option("cases", "easy-*", _names)
@click.option("--list", "as_list", is_flag=True, help="List the cases and what each checks; run none.")
def command(folder: Path | None, update: bool, junit: Path | None, names: tuple[str, ...], as_list: bool) -> int:
    """Rerun test cases and compare their results with the expected results.

    A case is a folder with a run's inputs and its expected results ('pipistrelle help ci'). FOLDER is a case or holds
    several. Without FOLDER, the bundled cases are run. The exit code is 0 if all results are equal or within the
    tolerances of their case, 1 if some differ and 2 if a case could not run.

    \b
    pipistrelle check cases
    pipistrelle check cases tests/cases --junit report.xml
    """
    if update and folder is None:
        raise click.UsageError("--update needs a FOLDER, because bundled cases cannot be changed.")
    if as_list and (update or junit is not None):
        raise click.UsageError("--list runs no case: omit --update and --junit.")
    import_numpy()

    from pipistrelle.reports.cases.case import bundled_folder, case_folders

    folders = case_folders(bundled_folder() if folder is None else folder, names)
    if as_list:
        _print_list(folders)
        return 0
    from pipistrelle.reports.cases.play import play

    outcomes, seconds = [], []
    for one in folders:
        began = time.perf_counter()
        outcomes.append(play(one, update=update))
        seconds.append(time.perf_counter() - began)
        last = outcomes[-1]
        print_verdict(last.verdict, _STYLES[last.verdict], last.name, last.lines)
    if junit is not None:
        told = {"differs": "failed", "failed": "error"}
        both = zip(outcomes, seconds, strict=True)
        tests = [(one.name, told.get(one.verdict, "passed"), took, one.lines) for one, took in both]
        write_junit(junit, "pipistrelle check cases", tests)
    verdicts: list[str] = [outcome.verdict for outcome in outcomes]
    counts = [f"{count} {verdict}" for verdict in _STYLES if (count := verdicts.count(verdict))]
    show(f"{len(verdicts)} case{'s' if len(verdicts) > 1 else ''}: {', '.join(counts)}", "bold")
    if "failed" in verdicts:
        return _TROUBLE
    return DIFFERENT if "differs" in verdicts else 0


def _print_list(folders: "Sequence[Path]") -> None:
    from pipistrelle.reports.cases.case import read_case

    for number, folder in enumerate(folders):
        case = read_case(folder)
        if number:
            click.echo()
        show(case.name, "bold")
        for text in filter(None, (case.proves, case.because)):
            show(f"  {' '.join(text.split())}")
