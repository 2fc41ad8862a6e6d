"""Compare runs of the same jobs, and explain the wait of one job."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, Final

from pipistrelle.api.results import Run, folder_of
from pipistrelle.api.tables import Table, html_table, text_rows
from pipistrelle.protocol.base.errors import InputError
from pipistrelle.reports.explain.explanation import Explanation, account
from pipistrelle.reports.explain.looks import Look, RunIndex, TooMuch
from pipistrelle.reports.report.comparison import compare as compared
from pipistrelle.reports.report.differences import first_difference
from pipistrelle.runs.folders.files import read_run
from pipistrelle.runs.folders.run_jobs import read_run_jobs

_FIGURES: Final = ("metric", "run", "scheduler", "mean", "p50", "p95", "difference", "half_width", "better", "worse")


class Comparison:
    """The result of `compare`: several runs, compared by their common jobs.

    Common jobs have ended in all of the runs.

    Attributes:
        facts: all results as plain values, as printed by ``pipistrelle compare --json``.
        jobs: the number of common jobs.
    """

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts = facts
        self.jobs = int(facts["jobs"])

    @property
    def same(self) -> bool:
        """Whether all runs have equal decisions and equal jobs."""
        return all(one is None for one in self.facts["first_difference"])

    @property
    def figures(self) -> Table:
        """The metrics of the runs: one row per metric and run.

        Each row has the mean, quantiles, and the difference to the first run.
        Times are in seconds. Each difference has the half-width of its confidence interval. ``better`` and ``worse``
        count the jobs with a lower and a higher value than in the first run.
        """
        return Table.of(self._figures())

    @property
    def classes(self) -> Table:
        """The mean wait (s) by class of jobs, and its difference to the first run.

        The table has one row per class and run.
        """
        rows = []
        for name, classes in self.facts["classes"].items():
            for one in classes:
                for number, (wait, against) in enumerate(
                    zip(one["mean_wait"], [None, *one["against_first"]], strict=True), 1
                ):
                    told = {"by": name, "class": one["class"], "jobs": one["jobs"], "run": number, "mean_wait": wait}
                    rows.append(told | {"scheduler": self._name(number)} | _against(against))
        return Table.of(rows)

    def _figures(self) -> list[dict[str, Any]]:
        rows = []
        for figure in self.facts["figures"]:
            for number, (run, against) in enumerate(
                zip(figure["runs"], [None, *figure["against_first"]], strict=True), 1
            ):
                told = {"metric": figure["metric"], "run": number, "scheduler": self._name(number), **run}
                rows.append(told | _against(against))
        return rows

    def _name(self, number: int) -> str:
        return str(self.facts["runs"][number - 1]["scheduler"])

    def _shown(self) -> list[list[str]]:
        return [[_text(row.get(name)) for name in _FIGURES] for row in self._figures()]

    @property
    def _title(self) -> str:
        return f"{self.jobs:,} jobs that ended in all of {len(self.facts['runs'])} runs"

    def __repr__(self) -> str:
        return "\n".join([self._title, *text_rows(_FIGURES, self._shown())])

    def _repr_html_(self) -> str:
        return html_table(_FIGURES, self._shown(), caption=self._title)


def compare(*runs: Run | str | PathLike[str], by: str | Sequence[str] = ()) -> Comparison:
    """Compare runs of the same workload with the first run, job by job.

    Confidence intervals need scipy.

    Args:
        runs: two or more runs, or their folders.
        by: also compare classes of jobs: ``size``, ``runtime``, or a label of the log such as ``user`` or ``queue``.

    Raises:
        PipistrelleError: fewer than two runs, no common job, no such label, or missing outputs.
    """
    if len(runs) < 2:
        raise InputError("a comparison needs at least two runs", where="compare", found=str(len(runs)))
    read = [read_run_jobs(folder_of(run, "compare")) for run in runs]
    found = compared(read, (by,) if isinstance(by, str) else by)
    found["first_difference"] = [first_difference(read[0], other) for other in read[1:]]
    return Comparison(found)


class JobExplanation:
    """The result of `explain`: the reasons why a job waited.

    Attributes:
        details: all that is known about the job's wait.
        then: the state of the job at the requested time; None if no time was requested, or the state is not known.
    """

    def __init__(self, details: Explanation, then: Look | None = None) -> None:
        self.details = details
        self.then = then

    @property
    def text(self) -> str:
        """The reasons for the wait in one sentence, followed by remarks."""
        told = self.details
        unknown = [] if told.not_replayed is None else [f"The run was not repeated, because {told.not_replayed}."]
        return "\n".join([told.answer, *told.remarks, *unknown])

    @property
    def timeline(self) -> Table:
        """What kept the job waiting, period by period.

        The table has one row per period in which the same limit kept the job waiting. Times are in seconds.
        """
        names = ("begin", "end", "limit", "detail")
        return Table.of([{name: getattr(one, name) for name in names} for one in self._stretches])

    @property
    def _stretches(self) -> Sequence[Any]:
        return self.details.timeline

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        rows = [[_text(one.begin), _text(one.end), one.limit, one.detail] for one in self._stretches]
        return html_table(["from, s", "to, s", "limited by", "detail"], rows, below=self.text)


def explain(
    run: Run | str | PathLike[str],
    job: str | int,
    *,
    at: float | None = None,
    repeat: bool = True,
    trust: bool | None = None,
) -> JobExplanation:
    """Explain why a job waited.

    The first call for a run repeats the simulation and keeps an index of it.

    Args:
        run: a run or its folder.
        job: the job's id, with or without its prefix.
        at: also report the job's state at this simulated time (s).
        repeat: whether to repeat the run; otherwise only its outputs are used.
        trust: whether to execute the Python scheduler that the folder names; default: only for runs of this process.

    Raises:
        PipistrelleError: there is no such job, it did not wait at that time, or repeating the run failed.
    """
    name = str(job)
    mine = isinstance(run, Run) and run._trusted
    index = _index(run, name, repeat=repeat, trust=mine if trust is None else trust)
    return JobExplanation(*account(index, name, at))


def _index(run: Run | str | PathLike[str], job: str, *, repeat: bool, trust: bool) -> RunIndex:
    from pipistrelle.reports.explain.index import open_index  # slow to import

    def wanted(one: str, _: object = None) -> bool:
        return job in (one, one.partition("!")[2])

    again = run._again if isinstance(run, Run) else None
    if again is None or not repeat:
        return open_index(folder_of(run, "explain"), repeat=repeat, wanted=wanted, trust=trust)
    from pipistrelle.reports.explain.making import repeated

    assert isinstance(run, Run)
    known = run.__dict__.get("_index")
    if known is not None:
        return known  # type: ignore[no-any-return]
    files = read_run(run.folder)
    try:
        found = repeated("", files, *again.parts())
    except TooMuch:
        return repeated("", files, *again.parts(), only=wanted)
    run.__dict__["_index"] = found
    return found


def _against(against: dict[str, Any] | None) -> dict[str, Any]:
    names = ("difference", "half_width", "ratio_of_means", "better", "worse", "same")
    return {name: None if against is None else against[name] for name in names}


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
