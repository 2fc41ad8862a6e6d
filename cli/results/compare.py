"""``pipistrelle compare``: compare runs of the same jobs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pipistrelle.cli.options.files import all_json_option
from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.terminal.console import import_numpy, print_json, print_table, show
from pipistrelle.cli.terminal.exits import DIFFERENT
from pipistrelle.cli.terminal.guard import FILE, FILE_OR_FOLDER, refuse_overwriting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipistrelle.runs.folders.run_jobs import RunJobs

_TITLES: Final = {"wait": "wait (s)", "turnaround": "turnaround (s)", "bounded_slowdown": "bounded slowdown"}
#: headings: difference of the mean from run 1, and numbers of jobs that wait less and more
_APART: Final = "mean - run 1's"
_SPLIT: Final = "better/worse"
#: number of jobs printed
_MOST_JOBS: Final = 5
_JOB_COLUMNS: Final = "job_id,submission_time,size"


@click.command(cls=Command)
@click.argument("runs", nargs=-1, required=True, type=FILE_OR_FOLDER, metavar="RUN RUN...")
@click.option(
    "--by",
    multiple=True,
    metavar="WHAT",
    show_default="size, and queue if jobs have queues",
    help="Also compare groups of jobs: by size, runtime, user, group, account, queue or qos; repeatable.",
)
@all_json_option
@click.option(
    "--jobs", type=FILE, metavar="FILE.csv", help="Also write a CSV file: the wait and end of each job in each run."
)
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even if the runs differ.")
def command(runs: tuple[Path, ...], by: tuple[str, ...], as_json: bool, jobs: Path | None, exit_zero: bool) -> int:
    """Compare the first run with each of the other runs, job by job.

    Each RUN is the output folder of a run, or a test case with its expected results ('pipistrelle help ci'). The exit
    code is 0 if the runs are equal, 1 if they differ and 2 for errors.

    \b
    pipistrelle compare pipistrelle-out/demo-fcfs-1 pipistrelle-out/demo-easy-1
    pipistrelle compare pipistrelle-out/demo-easy-1 tests/cases/demo
    """
    if len(runs) < 2:
        raise click.UsageError("give at least two runs.")
    refuse_overwriting([], [jobs])
    import_numpy()
    from pipistrelle.reports.cases.golden import golden_in
    from pipistrelle.reports.report.comparison import compare, labels_of
    from pipistrelle.reports.report.differences import changed_waits, first_difference
    from pipistrelle.runs.folders.run_jobs import read_run_jobs

    runs = tuple(map(golden_in, runs))
    read = [read_run_jobs(folder) for folder in runs]
    found = compare(read, by or ("size", *(["queue"] if "queue" in labels_of(read) else [])))
    found["first_difference"] = [first_difference(read[0], other) for other in read[1:]]
    if jobs is not None:
        _write_jobs(jobs, read)
    if as_json:
        print_json(found)
    else:
        _print(found, [changed_waits(read[0], other) for other in read[1:]])
        if jobs is not None:
            click.echo(f"jobs in {jobs}")
    differ = any(one is not None for one in found["first_difference"])
    return DIFFERENT if differ and not exit_zero else 0


def _write_jobs(path: Path, runs: "Sequence[RunJobs]") -> None:
    """Write one CSV line for each job that all runs have."""
    from pipistrelle.reports.report.comparison import Together
    from pipistrelle.server.outputs.csv_file import csv_text
    from pipistrelle.traces.files import write_trace

    both = Together.of(runs)
    first, places = both.runs[0], both.places[0].tolist()
    heads = "".join(f",wait_{number},end_{number}" for number in range(1, len(runs) + 1))
    columns = []
    for run, at in zip(both.runs, both.places, strict=True):
        columns += [run.wait[at].tolist(), run.end[at].tolist()]
    lines = [f"{_JOB_COLUMNS}{heads}\n"]
    for place, *values in zip(places, *columns, strict=True):
        texts = ",".join(f"{value:.6f}" for value in values)
        lines.append(f"{csv_text(first.ids[place])},{first.submit[place]:.6f},{first.size[place]},{texts}\n")
    write_trace(path, [line.encode() for line in lines])


def _print(found: dict[str, Any], waits: "Sequence[Sequence[tuple[str, float, float]]]") -> None:
    runs = found["runs"]
    rows = []
    for number, run in enumerate(runs, 1):
        reason = run["reason"] or "cut short"
        share = "" if run["utilisation"] is None else f"{100 * run['utilisation']:.2f} %"
        ended = (f"{run['ended']:,}", f"{run['rejected']:,}", share)
        rows.append((f"{number}", run["scheduler"], reason, *ended, run["folder"]))
    columns = ("run", "scheduler", "ended by", "jobs", "refused", "utilisation", "folder")
    print_table("Runs", columns, rows, {"scheduler", "ended by", "folder"})
    if not found["same_workload"]:
        show("The runs have different workloads: only the jobs that occur in all of them are compared.")
    others = max(run["not_in_common"] for run in runs)
    show(
        f"{found['jobs']:,} jobs ended in all runs" + (f"; up to {others:,} jobs of a run did not" * bool(others) + ".")
    )
    for figure in found["figures"]:
        _print_figure(figure)
    for name, classes in found["classes"].items():
        _print_classes(name, classes, len(runs))
    for number, changes in enumerate(waits, 2):
        _print_waits(number, changes)
    for number, difference in enumerate(found["first_difference"], 2):
        _print_difference(number, difference)


def _print_figure(figure: dict[str, Any]) -> None:
    click.echo()
    rows = []
    for number, (run, against) in enumerate(zip(figure["runs"], [None, *figure["against_first"]], strict=True), 1):
        quantiles = [_number(run[name]) for name in ("mean", "p50", "p95", "p100")]
        rows.append((f"{number}", *quantiles, *(("", "") if against is None else _against(against))))
    columns = ("run", "mean", "median", "95 %", "most", _APART, _SPLIT)
    print_table(_TITLES[figure["metric"]], columns, rows, ())


def _print_classes(name: str, classes: list[dict[str, Any]], runs: int) -> None:
    click.echo()
    rows = []
    for one in classes:
        for number, (wait, against) in enumerate(zip(one["mean_wait"], [None, *one["against_first"]], strict=True), 1):
            named = (one["class"], f"{one['jobs']:,}") if number == 1 else ("", "")
            rows.append((*named, f"{number}", _number(wait), *(("", "") if against is None else _against(against))))
    columns = (name, "jobs", "run", "mean wait", _APART, _SPLIT)
    print_table(f"wait (s) by {name}", columns, rows, {name})


def _against(against: dict[str, Any]) -> tuple[str, str]:
    half = against["half_width"]
    apart = f"{_number(against['difference'], sign=True)}" + ("" if half is None else f" ± {_number(half)}")
    return apart, f"{against['better']:,}/{against['worse']:,}"


def _number(value: float, *, sign: bool = False) -> str:
    """Return a number with two decimals, or with none from 1,000 on.

    With ``sign``, plus signs are shown, too.
    """
    decimals = 0 if abs(value) >= 1000 else 2
    return f"{value:{'+' if sign else ''},.{decimals}f}"


def _print_waits(number: int, waits: "Sequence[tuple[str, float, float]]") -> None:
    """Print the jobs whose waits changed most."""
    if not waits:
        return
    click.echo()
    rows: list[tuple[str, ...]] = [
        (job, _number(first), _number(second), _number(second - first, sign=True))
        for job, first, second in waits[:_MOST_JOBS]
    ]
    if len(waits) > _MOST_JOBS:
        rows.append((f"... {len(waits) - _MOST_JOBS:,} more (--jobs)",))
    title = f"Largest changes of wait (s), of {len(waits):,} jobs that waited differently"
    print_table(title, ("job", "run 1", f"run {number}", "change"), rows, ("job",))


def _print_difference(number: int, difference: dict[str, Any] | None) -> None:
    from pipistrelle.reports.report.differences import difference_lines

    click.echo()
    if difference is None:
        show(f"Runs 1 and {number} are the same: every decision, every job.", "bold")
        return
    show(f"Runs 1 and {number} differ:", "bold")
    for line in difference_lines(difference, "run 1", f"run {number}"):
        show(f"  {line}")
