"""Run a case and compare the results with its golden results."""

import tempfile
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.reports.cases.case import CASE_FILE, Case, read_case
from pipistrelle.reports.cases.golden import golden_difference, is_complete, summary_in, write_golden
from pipistrelle.reports.cases.tolerances import tolerated_figures
from pipistrelle.reports.report.differences import difference_lines
from pipistrelle.runs.execution.connection import InProcess, WithChild
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.server.errors import Interrupted, OutputFailed


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """The outcome of a case.

    Attributes:
        verdict: ``same`` or ``differs``; ``within`` if results differ, but all metrics with tolerances are within their
            tolerances; ``failed`` if the case could not be run or compared; ``updated`` or ``new`` if golden results
            were written.
        lines: what differs or failed.
        difference: as in `golden_difference`; None if nothing differs or the results could not be compared.
    """

    name: str
    verdict: Literal["same", "within", "differs", "failed", "updated", "new"]
    lines: list[str]
    difference: dict[str, Any] | None = None


def play(folder: Path, *, update: bool = False) -> CaseOutcome:
    """Run the case in a folder; ``update`` replaces golden results that differ.

    During the run, the process changes to the case's folder, because file names are relative to it.

    Raises:
        OutputFailed: the golden results cannot be written; the old ones are unchanged.
        KeyboardInterrupt: if the user interrupts.
    """
    name = folder.resolve().name
    try:
        case = read_case(folder)
        with tempfile.TemporaryDirectory(prefix="pipistrelle-") as home:
            return _played(case, Path(home).resolve(), update)
    except OutputFailed:
        raise
    except PipistrelleError as error:
        return CaseOutcome(name, "failed", [str(error)])


def _played(case: Case, out: Path, update: bool) -> CaseOutcome:
    spec = case.spec
    alone = spec.batsim is not None and spec.batsim.no_sched
    apart = not alone and (spec.program is not None or spec.dialect == "batsim")
    with chdir(case.folder):
        result = run(spec, RunOptions(connection=WithChild() if apart else InProcess(), out=out, check=False))
    if isinstance(result.failure, Interrupted):
        raise KeyboardInterrupt from result.failure
    fails = [] if result.failure is None else [f"the run fails: {result.failure}"]
    if update and not is_complete(case.golden):
        write_golden(out, case.golden)
        return CaseOutcome(case.name, "new", fails)
    figures = tolerated_figures(case.tolerances, summary_in(case.golden), summary_in(out), str(case.folder / CASE_FILE))
    found = golden_difference(case.golden, out)
    if found is None:
        return CaseOutcome(case.name, "same", [])
    lines = [str(one) for one in figures]
    verdict: Literal["within", "updated", "differs"] = "updated" if update else "differs"
    if not update and figures and all(one.holds for one in figures) and not found["inputs"] and not fails:
        verdict = "within"
    else:
        lines += [*difference_lines(found, "golden", "now"), *fails]
    if update:
        write_golden(out, case.golden)
    return CaseOutcome(case.name, verdict, lines, found)
