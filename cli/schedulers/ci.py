"""``pipistrelle ci``: cases, replayed against their golden results."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.terminal.console import import_numpy, plain, show
from pipistrelle.cli.terminal.exits import DIFFERENT
from pipistrelle.cli.terminal.guard import FilledPath

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from pipistrelle.reports.cases.play import CaseOutcome

#: as with diff(1)
_TROUBLE: Final = 2
_STYLES: Final = {"same": "green", "differs": "bold red", "failed": "bold red", "updated": "yellow", "new": "yellow"}


@click.command(cls=Command)
@click.argument("folder", required=False, type=FilledPath(path_type=Path))
@click.option("--update", is_flag=True, help="Write the golden results of FOLDER's cases anew, and tell what changes.")
@click.option(
    "--junit",
    type=FilledPath(path_type=Path, dir_okay=False),
    metavar="FILE.xml",
    help="Write what came of each case as JUnit's XML, too.",
)
@click.option(
    "-k",
    "--name",
    "names",
    multiple=True,
    metavar="NAME",
    help="Only cases with this in their name, or that it matches, as 'easy-*'; several times for several.",
)
@click.option("--list", "as_list", is_flag=True, help="Tell which cases there are, what they prove and why; run none.")
def command(folder: Path | None, update: bool, junit: Path | None, names: tuple[str, ...], as_list: bool) -> int:
    """Replay cases, and compare what comes of them with their golden results.

    Without FOLDER: the cases of the package, most of them so small that they can be checked by eye. FOLDER is a case
    of your own, or has some in it: see 'pipistrelle help ci'. The exit code is 0 if all results are the same, 1 if some
    differ, 2 if a case could not be run.

    \b
    pipistrelle ci
    pipistrelle ci tests/cases --junit report.xml
    """
    if update and folder is None:
        raise click.UsageError("--update writes to a FOLDER of your own: name it.")
    if as_list and (update or junit is not None):
        raise click.UsageError("--list runs nothing, so there is nothing to --update, nor for --junit.")
    import_numpy()
    from rich.console import Console

    from pipistrelle.reports.cases.case import bundled_folder, case_folders

    folders = case_folders(bundled_folder() if folder is None else folder, names)
    console = Console(highlight=False, emoji=False)
    if as_list:
        _print_list(folders, console)
        return 0
    from pipistrelle.reports.cases.play import play

    outcomes, seconds = [], []
    for one in folders:
        began = time.perf_counter()
        outcomes.append(play(one, update=update))
        seconds.append(time.perf_counter() - began)
        _print_outcome(outcomes[-1], console)
    if junit is not None:
        _write_junit(junit, outcomes, seconds)
    verdicts: list[str] = [outcome.verdict for outcome in outcomes]
    counts = [f"{count} {verdict}" for verdict in _STYLES if (count := verdicts.count(verdict))]
    show(console, f"{len(verdicts)} case{'s' if len(verdicts) > 1 else ''}: {', '.join(counts)}", "bold")
    if "failed" in verdicts:
        return _TROUBLE
    return DIFFERENT if "differs" in verdicts else 0


def _print_list(folders: "Sequence[Path]", console: "Console") -> None:
    from pipistrelle.reports.cases.case import read_case

    for number, folder in enumerate(folders):
        case = read_case(folder)
        if number:
            console.print()
        show(console, case.name, "bold")
        for text in filter(None, (case.proves, case.because)):
            show(console, f"  {' '.join(text.split())}")


def _print_outcome(outcome: "CaseOutcome", console: "Console") -> None:
    line = plain("  ").join([plain(f"{outcome.verdict:<7}", _STYLES[outcome.verdict]), plain(outcome.name)])
    console.print(line, soft_wrap=True)
    for text in outcome.lines:
        show(console, f"           {text}")


def _write_junit(path: Path, outcomes: "Sequence[CaseOutcome]", seconds: "Sequence[float]") -> None:
    from pipistrelle.reports.report.junit import TestLine, junit_xml
    from pipistrelle.server.outputs.once import write_output

    tests = []
    for outcome, time_taken in zip(outcomes, seconds, strict=True):
        verdict = {"differs": "failed", "failed": "error"}.get(outcome.verdict, "passed")
        tests.append(TestLine(outcome.name, verdict, time_taken, outcome.lines))  # type: ignore[arg-type]
    write_output(path, junit_xml("pipistrelle ci", tests), "--junit")
