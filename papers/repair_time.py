"""Paper 000: repair time against reliability on LANL's Grizzly (docs/repair-time.md)."""

from typing import Any, Final

import numpy as np

from pipistrelle.models.likeness.drawing import generate_like
from pipistrelle.models.likeness.model import load_model
from pipistrelle.models.reliability.outage_summary import time_text
from pipistrelle.models.samples.paired import Paired, paired
from pipistrelle.papers.bench import Bench
from pipistrelle.papers.entry import (
    Chart,
    Entry,
    FigureRow,
    Finding,
    Paper,
    Series,
    Tolerance,
    claimed,
    compared,
)
from pipistrelle.protocol.base.lengths import parse_seconds
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import run
from pipistrelle.runs.inputs.named import load_workload
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.studies.inference.crossing import Curves
from pipistrelle.studies.inference.reports import by_size
from pipistrelle.studies.inference.trials import TrialTable
from pipistrelle.studies.trials.study import Study
from pipistrelle.traces.workload import Workload

_HOUR: Final = 3600.0
FACTORS: Final = (1, 2, 4, 8, 16, 32)
#: jobs of a year like Grizzly's
_REDRAW: Final[dict[str, Any]] = {"step": "redraw", "model": "grizzly", "load": 0.85}
#: lower bounds of the classes of sizes in figures 3 to 6
_SIZES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
#: the paper's equalities: {(factor, repair): (factor, repair) that waits as long}
_EQUAL: Final = {(1, "13d"): (2, "1min"), (4, "5d"): (8, "1min")}
#: how far a repair time of ours may be from the paper's, as a share of it
_NEAR: Final = 0.2
_NODES: Final = 1490
_LOG: Final = "LANL-Grizzly-2018-01.swf"


def grid(bench: Bench) -> TrialTable:
    """Return the trials of the grid of figures 7 and 8: that of docs/examples/repair-time.toml, at the bench's size."""
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
        axes={"reliability-factor": list(FACTORS), "repair": list(bench.size.repairs)},
        replicas=bench.size.replicas,
    )
    return bench.study("000-repair", study)


def _waits(trials: TrialTable, factor: int, repair: str) -> list[float]:
    """Return the mean waits (s) of the replicas of a cell, by replica."""
    places = trials.axes.index("reliability_factor"), trials.axes.index("repair")
    for cell in trials.cells:
        if (cell.key[places[0]], cell.key[places[1]]) == (factor, repair):
            sample = trials.sample(cell, "mean_wait")
            return [sample[replica] for replica in sorted(sample)]
    raise KeyError((factor, repair))


def _both(trials: TrialTable, first: tuple[int, str], second: tuple[int, str]) -> Paired:
    """Return how the second cell's waits differ from the first's, replica by replica."""
    return paired(_waits(trials, *first), _waits(trials, *second))


def _curves_chart(trials: TrialTable, normalised: bool) -> Chart:
    curves = Curves(trials, "repair", "reliability_factor", "mean_wait")
    lines = []
    for number, name in enumerate(curves.names):
        means, ends = curves.line(number, normalised=normalised)
        scale = 1.0 if normalised else _HOUR
        low, high = (None, None) if ends is None else (ends[0] / scale, ends[1] / scale)
        told = None if low is None or high is None else (low.tolist(), high.tolist())
        days = (curves.x / 86400.0).tolist()
        lines.append(Series(f"{name}x", days, (means / scale).tolist(), *(told or ())))
    what = "mean wait over that with repairs of 1 min" if normalised else "mean wait, h"
    return Chart(f"{what} by repair time and failure rate", "repair time, days", what, lines)


def _figure_7(bench: Bench) -> Finding:
    trials = grid(bench)
    last = bench.size.repairs[-1]
    rows, rises = [], []
    for factor in FACTORS:
        pair = _both(trials, (factor, "1min"), (factor, last))
        rises.append(pair.ratio_of_means.value or 0.0)
        ratio = pair.ratio_of_means
        ends = None if ratio.low is None or ratio.high is None else (ratio.low, ratio.high)
        rows.append(compared(f"{factor}x: wait at {last} over that at 1 min", None, ratio.value, Tolerance(), "", ends))
    pair = _both(trials, (32, "1min"), (32, last))
    felt = pair.difference.low is not None and pair.difference.low > 0
    rows.append(claimed("a longer repair is felt where nodes fail most", "it is", felt, f"{_apart(pair)} at 32x"))
    steep = rises[-1] == max(rises) and rises[0] < rises[-1]
    rows.append(
        claimed(
            "the less reliable the machine, the steeper the curve",
            "32x the steepest",
            steep,
            f"{rises[0]:.3f} at 1x to {rises[-1]:.3f} at 32x",
        )
    )
    return Finding(rows, [_curves_chart(trials, normalised=False)], [f"{bench.size.replicas} replicas a point"])


def _apart(pair: Paired) -> str:
    found = pair.difference
    if found.value is None or found.low is None or found.high is None:
        return "one replica alone"
    return f"{found.value:+,.0f} s ({found.low:+,.0f} to {found.high:+,.0f})"


def _figure_8(bench: Bench) -> Finding:
    trials = grid(bench)
    curves = Curves(trials, "repair", "reliability_factor", "mean_wait")
    rows = [
        FigureRow(
            f"{name}x at {time_text(curves.x[-1])}, over its wait at 1 min",
            None,
            float(curves.line(at, normalised=True)[0][-1]),
        )
        for at, name in enumerate(curves.names)
    ]
    ends = [row.ours for row in rows]
    first, least = ends[0], ends[-1]
    assert isinstance(first, float)
    assert isinstance(least, float)
    told = f"{100 * (first - 1):+.1f} % at 1x, {100 * (least - 1):+.1f} % at 32x"
    rows.append(claimed("more reliable systems can afford longer repair times", "they can", first < least, told))
    return Finding(rows, [_curves_chart(trials, normalised=True)])


def _break_even(bench: Bench) -> Finding:
    trials = grid(bench)
    curves = Curves(trials, "repair", "reliability_factor", "mean_wait")
    rows = []
    for (factor, repair), (other, least) in _EQUAL.items():
        found = curves.meet(curves.names.index(factor), curves.names.index(other), 0)
        beyond = {float("inf"): f"more than {time_text(curves.x[-1])}", float("-inf"): "less than 1 min"}
        ours: float | str = beyond.get(found.at, found.at / 86400.0)
        paper = parse_seconds(repair) / 86400.0
        ends = [None if end is None or not np.isfinite(end) else end / 86400.0 for end in (found.low, found.high)]
        near = isinstance(ours, float) and abs(ours - paper) <= _NEAR * paper
        name = f"repair time with which {factor}x waits as {other}x with {least}"
        rows.append(FigureRow(name, paper, ours, "" if isinstance(ours, str) else "d", ends[0], ends[1], near))
        told = _both(trials, (factor, repair), (other, least)).difference
        value, low, high = (None if end is None else end / _HOUR for end in (told.value, told.low, told.high))
        name = f"{other}x with {least} waits longer than {factor}x with {repair}"
        rows.append(FigureRow(name, 0.0, value, "h", low, high))
    return Finding(rows)


def _counts(bench: Bench) -> Finding:
    exact = Tolerance()
    points = len(FACTORS) * 23
    hours = 24.0 * 20_000 / _NODES
    return Finding(
        [
            compared("points of figure 7: 6 failure rates x 23 repair times", None, points, exact),
            compared("combinations of the data of 2022, twice that", 276, 2 * points, exact),
            compared("simulations of 2022, 1,000 of each, thousands", 276, 2 * points, exact),
            compared("simulations of both years, thousands", 900, 276 + 624, exact),
            FigureRow("mean time between failures of 1,490 nodes at 1x", None, hours, "h"),
            FigureRow("failures in a year at 1x, and 32 times that", None, 8760.0 / hours),
        ]
    )


def _bounds(name: str) -> tuple[int, float]:
    low, _, high = name.partition("_")
    return int(low), float("inf") if high == "up" else float(high or low)


def _figures_3_4(bench: Bench) -> Finding:
    study = Study(
        {"platform": "grizzly", "transform": [{**_REDRAW, "duration": bench.size.backfilled}]},
        axes={"scheduler": ["easy-slices", "easy"]},
        replicas=bench.size.backfilled_replicas,
        metrics={"sizes": list(_SIZES)},
    )
    rows = by_size(bench.study("000-backfill", study), "policy", "easy-slices", "easy")
    found, names, values, low, high = [], [], [], [], []
    for one in rows:
        ratio = one.pair.ratio_of_means
        if ratio.value is None:
            continue
        change = 100 * (ratio.value - 1)
        ends = None if ratio.low is None or ratio.high is None else (100 * (ratio.low - 1), 100 * (ratio.high - 1))
        if one.name == "all":
            found.append(compared("all jobs: new over old", 2.5, change, Tolerance(absolute=2.5), "%", ends))
            told = f"{change:+.1f} %" + ("" if ends is None else f" ({ends[0]:+.1f} to {ends[1]:+.1f})")
            near = abs(change) <= 10
            found.append(claimed("the mean waits of both are nearly the same", "negligible differences", near, told))
            continue
        least, most = _bounds(one.name)
        name = f"{least}" if least == most else f"{least} or more" if most == float("inf") else f"{least} to {most:.0f}"
        paper = 22.5 if least == most == 1 else None
        found.append(compared(f"jobs of {name} nodes: new over old", paper, change, Tolerance(absolute=10), "%", ends))
        names.append(name)
        values.append(change)
        low.append(change if ends is None else ends[0])
        high.append(change if ends is None else ends[1])
    places = list(range(len(names)))
    chart = Chart(
        "mean wait under easy less that under easy-slices",
        "nodes of a job",
        "% of that under easy-slices",
        [Series("new over old", places, values, low, high)],
        kind="bars",
        names=names,
    )
    return Finding(found, [chart], ["The paper's figures are those of its text about figure 4, the year 2018."])


def _figure_1(bench: Bench) -> Finding:
    starts = bench.part("000/seven-jobs/easy-slices", lambda: _starts_of_seven("easy-slices"))
    late = starts["7"] >= starts["6"]
    told = f"job 7 starts at {starts['7']:g} h, job 6 at {starts['6']:g} h"
    return Finding([*_start_rows(starts), claimed("job 7 runs beside job 5, before job 6", "it does not", late, told)])


def _figure_2(bench: Bench) -> Finding:
    before = bench.part("000/seven-jobs/easy-slices", lambda: _starts_of_seven("easy-slices"))
    starts = bench.part("000/seven-jobs/easy", lambda: _starts_of_seven("easy"))
    told = f"job 7 starts at {starts['7']:g} h, job 6 at {starts['6']:g} h"
    same = f"at {starts['6']:g} h, before at {before['6']:g} h"
    return Finding(
        [
            *_start_rows(starts),
            claimed("job 7 runs beside job 5, before job 6", "it does", starts["7"] < starts["6"], told),
            claimed("job 6 starts no later for it", "it does not", starts["6"] <= before["6"], same),
        ]
    )


def _start_rows(starts: dict[str, float]) -> list[FigureRow]:
    return [FigureRow(f"start of job {name}", None, hours, "h") for name, hours in starts.items()]


class _Starts(Observer):
    """Keeps when each job starts, h."""

    def __init__(self) -> None:
        self.of: dict[str, float] = {}

    def started(self, now: float, job: Job) -> None:
        """Keep it."""
        self.of[job.id.partition("!")[2]] = now / _HOUR


def _starts_of_seven(scheduler: str) -> dict[str, float]:
    """Return when each job of the bundled workload ``seven-jobs`` starts under a scheduler, h."""
    watch = _Starts()
    run(RunSpec(workload=("seven-jobs",), scheduler=scheduler), observers=[watch])
    return {name: watch.of[name] for name in sorted(watch.of, key=int)}


def _figure_5(bench: Bench) -> Finding:
    jobs = generate_like(load_model("grizzly"), 1, load=_REDRAW["load"])
    days = float(jobs.submit[-1] - jobs.submit[0]) / 86400.0
    months = len(jobs) * 11 * 365.25 / 12 / days
    rows = [
        compared("jobs in eleven months", 130_000, months, Tolerance(relative=0.05)),
        _one_node(jobs),
    ]
    return Finding(rows, [_sizes_chart(jobs, "a year drawn like Grizzly's")])


def _figure_5_log(bench: Bench) -> Finding:
    path, _ = bench.trace(_LOG)
    jobs = load_workload(path)
    rows = [FigureRow("jobs of the log", None, len(jobs)), _one_node(jobs)]
    return Finding(rows, [_sizes_chart(jobs, "January 2018, as the paper's authors publish it")])


def _one_node(jobs: Workload) -> FigureRow:
    share = 100 * float((jobs.size == 1).mean())
    return FigureRow("jobs of one node", "around 45 to 50", share, "%", agrees=44 <= share <= 51)


def _sizes_chart(jobs: Workload, title: str) -> Chart:
    """Return the percentages of jobs by size and run time, as bars: the margin by size, in classes of run time."""
    ends = [*_SIZES[1:], np.inf]
    names = [f"{low}-{high - 1:.0f}" if high - 1 > low else str(low) for low, high in zip(_SIZES, ends, strict=True)]
    names[-1] = f"{_SIZES[-1]} or more"
    times = [(0.0, 600.0, "under 10 min"), (600.0, _HOUR, "10 min to 1 h"), (_HOUR, 14400.0, "1 to 4 h")]
    times.append((14400.0, np.inf, "4 h or more"))
    series = []
    for low, high, name in times:
        mine = jobs.size[(jobs.runtime >= low) & (jobs.runtime < high)]
        shares = [100 * float(((mine >= a) & (mine < b)).sum()) / len(jobs) for a, b in zip(_SIZES, ends, strict=True)]
        series.append(Series(name, list(range(len(names))), shares))
    return Chart(f"jobs by nodes and run time: {title}", "nodes", "% of jobs", series, kind="bars", names=names)


_STUDY: Final = "pipistrelle study run docs/examples/repair-time.toml --out study"
_BOTH: Final = (
    "a study of the schedulers easy-slices and easy with sizes in [metrics]; pipistrelle study plot --kind sizes"
)

PAPER: Final = Paper(
    "000",
    "repair time against reliability on LANL's Grizzly",
    "L. A. Horace, C. S. Walker, W. M. Jones, N. A. DeBardeleben, V. E. Hafener and S. T. Senator, Exploring the "
    "Trade-off "
    "Between Repair Time and Reliability in Large Scale Cluster Computers: A Simulation-Based Approach, "
    "LA-UR-24-25237, 2024",
    (
        Entry(
            "table-1",
            "the machine that the simulations ran on",
            "table I, section III",
            "Chicoma: 688 nodes, their memory and processors.",
            reason="It describes a machine; nothing of it is computed.",
        ),
        Entry(
            "figure-1",
            "seven jobs under the older EASY",
            "figure 1, section III-A",
            "The original algorithm has promised job 6 single nodes, so that job 7 is not backfilled beside job 5.",
            "pipistrelle run -w seven-jobs --scheduler easy-slices",
            _figure_1,
            reason="Sizes and run times of the seven jobs are ours: the picture has no numbers.",
        ),
        Entry(
            "figure-2",
            "the same jobs under the new EASY",
            "figure 2, section III-A",
            "The new one counts nodes: job 7 runs beside job 5, and job 6 starts no later.",
            "pipistrelle run -w seven-jobs --scheduler easy",
            _figure_2,
            reason="Sizes and run times of the seven jobs are ours: the picture has no numbers.",
        ),
        Entry(
            "figure-3",
            "waits under both EASYs by size, 2022",
            "figure 3, section III-A",
            "The new algorithm waits about 4 % longer on average; 58 % longer in one class of few jobs.",
            reason="The jobs of 2022 are not to be had here; figure 4 has the same comparison.",
        ),
        Entry(
            "figure-4",
            "waits under both EASYs by size, 2018",
            "figure 4, section III-A",
            "The new algorithm waits under 2.5 % longer on average, jobs of one node about 22.5 %, others within 10 "
            "% either way.",
            _BOTH,
            _figures_3_4,
            reason="Jobs are drawn like Grizzly's, at a load that the paper does not tell; which jobs pass which "
            "depends on it. "
            "Intervals that are too wide to tell anything of a class are not compared.",
        ),
        Entry(
            "table-2",
            "run times of BatSim with both EASYs",
            "table II, section III-A",
            "32,917 s and 6,095 s for 2018 (5.4 times), 476,276 s and 12,047 s for 2022 (39.5 times), on nodes of "
            "Chicoma.",
            reason="Wall times of another program on another machine. benchmarks/queue_depth.py has ours by the "
            "depth of the queue.",
        ),
        Entry(
            "figure-5",
            "jobs of 2018 by nodes and run time",
            "figure 5, section IV",
            "About 130,000 jobs in eleven months, 45 to 50 % of them of one node.",
            "pipistrelle workload generate --like grizzly --load 0.85 --seed 1 -o year.swf.gz",
            _figure_5,
            reason="The picture's cells cannot be read in the text that we have; the model was made to have its "
            "margins.",
        ),
        Entry(
            "figure-5-log",
            "the published part of the log by nodes and run time",
            "figure 5, section IV",
            "The same of the jobs of January 2018 that are among the authors' test data.",
            f"pipistrelle workload describe {_LOG} --picture jobs.svg",
            _figure_5_log,
            expects="differs",
            reason="The jobs of one month are not the year's.",
            needs=(_LOG,),
        ),
        Entry(
            "figure-6",
            "jobs of 2022 by nodes and run time",
            "figure 6, section IV",
            "About 190,000 jobs in seven months.",
            reason="These jobs are not to be had here.",
        ),
        Entry(
            "counts",
            "numbers of simulations, and the failure rate",
            "section IV",
            "6 failure rates and 23 repair times; 276 combinations for 2022 and 624 for 2018, 1,000 of each; 24 h on "
            "20,000 nodes.",
            "24 h x 20,000 / 1,490",
            _counts,
        ),
        Entry(
            "figure-7",
            "mean wait by repair time and failure rate",
            "figure 7, section IV",
            "Waits rise with the repair time, the more so the less reliable the machine.",
            f"{_STUDY}; pipistrelle study plot study -o waits.svg",
            _figure_7,
            reason="The text has no numbers of the curves. Load, run times and dumps of the jobs are ours.",
        ),
        Entry(
            "figure-8",
            "the same over the wait with repairs of a minute",
            "figure 8, section IV",
            "The more reliable systems can afford much longer repair times.",
            f"{_STUDY}; pipistrelle study plot study --kind normalised -o normalised.svg",
            _figure_8,
            reason="The text has no numbers of the curves. Load, run times and dumps of the jobs are ours.",
        ),
        Entry(
            "break-even",
            "repair times that are worth twice the reliability",
            "captions of figure 7, section IV",
            "1x with 13 days waits as 2x with a minute, 4x with 5 days as 8x with a minute.",
            f"{_STUDY}; pipistrelle study break-even study",
            _break_even,
            expects="differs",
            reason="The paper tells neither load nor dumps, and its year of jobs is not to be had. Waits up to 4x "
            "are too much alike here to tell such points (docs/repair-time.md).",
        ),
    ),
    "repair-time.md",
)
