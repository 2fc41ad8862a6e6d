"""Paper 000: repair time or reliability on Grizzly.

The tutorial is docs/tutorials/repair-time.md.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from pipistrelle.models.likeness.drawing import generate_like
from pipistrelle.models.likeness.model import load_model
from pipistrelle.models.samples.estimates import Interval
from pipistrelle.models.samples.paired import Paired, paired
from pipistrelle.papers.bench import Bench
from pipistrelle.papers.entry import Series, bars
from pipistrelle.papers.sheet import Compute, Sheet
from pipistrelle.protocol.base.lengths import length_text, parse_seconds
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.inputs.named import load_workload
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.studies.inference.crossing import Curves
from pipistrelle.studies.inference.reports import by_size
from pipistrelle.studies.inference.trials import TrialTable
from pipistrelle.studies.trials.study import Study
from pipistrelle.traces.workload import Workload

_HOUR: Final = 3600.0
_DAY: Final = 86400.0
#: how a year of jobs like Grizzly's is drawn
_REDRAW: Final[dict[str, Any]] = {"step": "redraw", "model": "grizzly", "load": 0.85}
#: classes of run times in figures 5 and 6 of paper 000: from, to (s), name
_TIMES: Final = (
    *((0.0, 600.0, "under 10 min"), (600.0, _HOUR, "10 min to 1 h")),
    *((_HOUR, 14400.0, "1 to 4 h"), (14400.0, np.inf, "4 h or more")),
)


def grid(bench: Bench, factors: list[int]) -> TrialTable:
    """Run the study for figures 7 and 8 of paper 000; return its trials.

    The study is docs/examples/repair-time.toml. ``factors`` multiply the failure rate.
    """
    study = Study(
        {
            "platform": "grizzly",
            "scheduler": "easy",
            "failures": "exponential,smtbf=24h,of=20000",
            "checkpoint": "daly",
            "dump": "10s",
            "read": "10s",
            "checkpoint-walltime": "extended",
            "transform": [{**_REDRAW, "seed": 1}],
        },
        axes={"reliability-factor": factors, "repair": list(bench.size.repairs)},
        replicas=bench.size.replicas,
    )
    return bench.study("000-repair", study)


def _waits(trials: TrialTable, factor: int, repair: str) -> list[float]:
    """Return the mean waits (s) of one failure rate and repair time, by replica."""
    places = trials.axes.index("reliability_factor"), trials.axes.index("repair")
    for cell in trials.cells:
        if (cell.key[places[0]], cell.key[places[1]]) == (factor, repair):
            sample = trials.sample(cell, "mean_wait")
            return [sample[replica] for replica in sorted(sample)]
    raise KeyError((factor, repair))


def _both(trials: TrialTable, first: tuple[int, str], second: tuple[int, str]) -> Paired:
    """Compare the waits of two combinations of failure rate and repair time.

    Waits are paired by replica.
    """
    return paired(_waits(trials, *first), _waits(trials, *second))


def _curves(trials: TrialTable) -> Curves:
    return Curves(trials, "repair", "reliability_factor", "mean_wait")


def _curves_chart(sheet: Sheet, curves: Curves, normalised: bool) -> None:
    lines = []
    scale = 1.0 if normalised else _HOUR
    for number, name in enumerate(curves.names):
        means, ends = curves.line(number, normalised=normalised)
        low, high = (None, None) if ends is None else ((end / scale).tolist() for end in ends)
        lines.append(Series(f"{name}x", (curves.x / _DAY).tolist(), (means / scale).tolist(), low, high))
    sheet.chart("waits", lines, what="mean wait over that with repairs of 1 min" if normalised else "mean wait, h")


def figure_7(bench: Bench, sheet: Sheet) -> None:
    """Simulate mean waits by repair time and failure rate."""
    factors, last = sheet.printed["factors"], bench.size.repairs[-1]
    trials = grid(bench, factors)
    pairs = [_both(trials, (factor, "1min"), (factor, last)) for factor in factors]
    for factor, pair in zip(factors, pairs, strict=True):
        ratio = pair.ratio_of_means
        sheet.row("ratio", ratio.value, interval=_ends(ratio), factor=factor, last=last)
    steepest = pairs[-1].difference
    sheet.claim("felt", steepest.low is not None and steepest.low > 0, apart=_apart(steepest))
    rises = [pair.ratio_of_means.value or 0.0 for pair in pairs]
    steep = rises[-1] == max(rises) and rises[0] < rises[-1]
    sheet.claim("steeper", steep, first=rises[0], last=rises[-1])
    _curves_chart(sheet, _curves(trials), normalised=False)


def _ends(found: Interval) -> tuple[float, float] | None:
    return None if found.low is None or found.high is None else (found.low, found.high)


def _apart(found: Interval) -> str:
    if found.value is None or found.low is None or found.high is None:
        return "one replica alone"
    return f"{found.value:+,.0f} s ({found.low:+,.0f} to {found.high:+,.0f})"


def figure_8(bench: Bench, sheet: Sheet) -> None:
    """Simulate mean waits relative to those with repairs of one minute."""
    curves = _curves(grid(bench, sheet.printed["factors"]))
    ends = [float(curves.line(at, normalised=True)[0][-1]) for at in range(len(curves.names))]
    for name, end in zip(curves.names, ends, strict=True):
        sheet.row("ratio", end, name=name, last=length_text(curves.x[-1]))
    sheet.claim("afford", ends[0] < ends[-1], first=100 * (ends[0] - 1), least=100 * (ends[-1] - 1))
    _curves_chart(sheet, curves, normalised=True)


def break_even(bench: Bench, sheet: Sheet) -> None:
    """Find the repair times that lengthen waits as much as a doubled failure rate."""
    trials = grid(bench, sheet.printed["factors"])
    curves = _curves(trials)
    beyond = {float("inf"): f"more than {length_text(curves.x[-1])}", float("-inf"): "less than 1 min"}
    for factor, repair, other, least in sheet.printed["equal"]:
        labels = {"factor": factor, "repair": repair, "other": other, "least": least}
        found = curves.meet(curves.names.index(factor), curves.names.index(other), 0)
        ours: float | str = beyond.get(found.at, found.at / _DAY)
        paper = parse_seconds(repair) / _DAY
        low, high = (None if end is None or not np.isfinite(end) else end / _DAY for end in (found.low, found.high))
        if isinstance(ours, str):
            sheet.row("time", ours, paper, interval=(low, high), agrees=False, unit="", **labels)
        else:
            near = sheet.figures["time"].tolerance.holds(paper, ours)
            sheet.row("time", ours, paper, interval=(low, high), agrees=near, **labels)
        told = _both(trials, (factor, repair), (other, least)).difference
        value, low, high = (None if end is None else end / _HOUR for end in (told.value, told.low, told.high))
        sheet.row("longer", value, interval=(low, high), agrees=None, **labels)


def counts(bench: Bench, sheet: Sheet) -> None:
    """Count the simulations of paper 000 and compute its failure rate."""
    points = len(sheet.printed["factors"]) * 23
    hours = 24.0 * 20_000 / sheet.printed["nodes"]
    sheet.row("points", points)
    sheet.row("combinations", 2 * points)
    sheet.row("simulations", 2 * points)
    sheet.row("both", 276 + 624)
    sheet.row("mtbf", hours)
    sheet.row("failures", 8760.0 / hours)


def _class_name(name: str) -> str:
    """Describe a size class, such as ``1``, ``2_3`` or ``1024_up``, in words."""
    low, _, high = name.partition("_")
    return f"{low} or more" if high == "up" else f"{low} to {high}" if high not in ("", low) else low


def figure_4(bench: Bench, sheet: Sheet) -> None:
    """Simulate waits by job size under both EASY algorithms."""
    study = Study(
        {"platform": "grizzly", "transform": [{**_REDRAW, "duration": bench.size.backfilled}]},
        axes={"scheduler": ["easy-slices", "easy"]},
        replicas=bench.size.backfilled_replicas,
        metrics={"sizes": sheet.printed["sizes"]},
    )
    points = []
    for one in by_size(bench.study("000-backfill", study), "policy", "easy-slices", "easy"):
        ratio = one.pair.ratio_of_means
        if ratio.value is None:
            continue
        change, ends = 100 * (ratio.value - 1), _ends(ratio)
        if ends is not None:
            ends = 100 * (ends[0] - 1), 100 * (ends[1] - 1)
        if one.name == "all":
            sheet.row("all", change, interval=ends)
            told = f"{change:+.1f} %" + ("" if ends is None else f" ({ends[0]:+.1f} to {ends[1]:+.1f})")
            sheet.claim("same", abs(change) <= 10, change=told)
            continue
        name = _class_name(one.name)
        sheet.row("class", change, sheet.printed["one_node"] if name == "1" else None, interval=ends, name=name)
        points.append((name, change, *(ends or (change, change))))
    names, values, low, high = map(list, zip(*points, strict=True))
    sheet.chart("change", [Series("new over old", list(range(len(names))), values, low, high)], names=names)


def figure_1(bench: Bench, sheet: Sheet) -> None:
    """Run seven jobs under the older EASY algorithm (figure 1 of paper 000)."""
    starts = _starts_of_seven(bench, sheet, "easy-slices")
    sheet.claim("beside", starts["7"] >= starts["6"], seven=starts["7"], six=starts["6"])


def figure_2(bench: Bench, sheet: Sheet) -> None:
    """Run seven jobs under the new EASY algorithm (figure 2 of paper 000)."""
    before = bench.part("000/seven-jobs/easy-slices", lambda: _seven("easy-slices"))
    starts = _starts_of_seven(bench, sheet, "easy")
    sheet.claim("beside", starts["7"] < starts["6"], seven=starts["7"], six=starts["6"])
    sheet.claim("no_later", starts["6"] <= before["6"], six=starts["6"], before=before["6"])


def _starts_of_seven(bench: Bench, sheet: Sheet, scheduler: str) -> dict[str, float]:
    """Return the starts (h) of the seven jobs of figures 1 and 2 of paper 000.

    Also add them to the sheet.
    """
    starts: dict[str, float] = bench.part(f"000/seven-jobs/{scheduler}", lambda: _seven(scheduler))
    for name, hours in starts.items():
        sheet.row("start", hours, job=name)
    return starts


class _Starts(Observer):
    """Records the start (h) of each job."""

    def __init__(self) -> None:
        self.of: dict[str, float] = {}

    def started(self, now: float, job: Job) -> None:
        """Record the start of a job."""
        self.of[job.id.partition("!")[2]] = now / _HOUR


def _seven(scheduler: str) -> dict[str, float]:
    """Run the bundled ``seven-jobs`` under a scheduler; return each job's start (h)."""
    watch = _Starts()
    run(RunSpec(workload=("seven-jobs",), scheduler=scheduler), RunOptions(observers=[watch]))
    return {name: watch.of[name] for name in sorted(watch.of, key=int)}


def figure_5(bench: Bench, sheet: Sheet) -> None:
    """Compare a year of random jobs with figure 5 of paper 000.

    The jobs have the statistics of Grizzly's jobs.
    """
    jobs = generate_like(load_model("grizzly"), 1, load=_REDRAW["load"])
    days = float(jobs.submit[-1] - jobs.submit[0]) / _DAY
    sheet.row("jobs", len(jobs) * 11 * 365.25 / 12 / days)
    _sizes(sheet, jobs, "a year drawn like Grizzly's")


def figure_5_log(bench: Bench, sheet: Sheet) -> None:
    """Count the jobs by size in the published part of Grizzly's log."""
    jobs = load_workload(bench.trace(sheet.entry.needs[0])[0])
    sheet.row("jobs", len(jobs))
    _sizes(sheet, jobs, "January 2018, as the paper's authors publish it")


def _sizes(sheet: Sheet, jobs: Workload, title: str) -> None:
    """Add percentages of jobs by size and run time to the sheet."""
    share = 100 * float((jobs.size == 1).mean())
    sheet.row("one_node", share, agrees=44 <= share <= 51)
    sizes = sheet.printed["sizes"]
    classes = list(zip(sizes, [*sizes[1:], np.inf], strict=True))
    names = [f"{low}-{high - 1:.0f}" if high - 1 > low else str(low) for low, high in classes]
    names[-1] = f"{sizes[-1]} or more"
    series = []
    for low, high, name in _TIMES:
        mine = jobs.size[(jobs.runtime >= low) & (jobs.runtime < high)]
        series.append(bars(name, [100 * float(((mine >= a) & (mine < b)).sum()) / len(jobs) for a, b in classes]))
    sheet.chart("sizes", series, names=names, jobs=title)


COMPUTED: Final[Mapping[str, Compute]] = {
    "figure-1": figure_1,
    "figure-2": figure_2,
    "figure-4": figure_4,
    "figure-5": figure_5,
    "figure-5-log": figure_5_log,
    "counts": counts,
    "figure-7": figure_7,
    "figure-8": figure_8,
    "break-even": break_even,
}
