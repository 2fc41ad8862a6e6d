"""Paper 001: partitions of nodes by their reliability, on Intrepid (docs/reliability.md)."""

import math
from itertools import pairwise
from math import fsum
from statistics import mean, variance
from typing import Any, Final

import numpy as np

from pipistrelle.models.reliability.checkpointing import change
from pipistrelle.models.reliability.loss import erlang_c, printed_queueing
from pipistrelle.models.reliability.resources import described, needs
from pipistrelle.models.reliability.weibull import PROBABILITIES, job_reliability, required_mttf
from pipistrelle.models.samples.estimates import scipy_part
from pipistrelle.models.workloads.classes import get, load_classes
from pipistrelle.papers import guided_tables as printed
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
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.platforms.topology.partitions import HOUR, RankedClass, partition, partition_sizes, ranks
from pipistrelle.reports.placement.partitions import compare
from pipistrelle.runs.inputs.named import load_platform

EXACT: Final = Tolerance()
#: half the width (points) of the widest interval of a change of failures that still tells something
_TELLING: Final = 30.0
_BLOCKING: Final = (0.0, 0.1, 0.2, 0.3, 0.4)


def _classes() -> list[RankedClass]:
    """Return the classes of table 4.2, by size."""
    return [one.sizes for one in described(get("intrepid-classes")).classes]


def _table_4_2(bench: Bench) -> Finding:
    whole = {size: count for size, (count, _) in printed.REQUESTED.items()}
    rows = []
    for one, jobs in zip(_classes(), printed.JOBS, strict=True):
        expected = one.rate * printed.PEAK_HOURS
        rows.append(
            compared(f"jobs of {one.size:,} nodes at its rate in 1,824 h", jobs, expected, Tolerance(relative=0.05))
        )
    same = [size for size, jobs in zip(printed.SIZES, printed.JOBS, strict=True) if whole.get(size) == jobs]
    rows.append(FigureRow("classes whose jobs are those of table 4.1, of eight months", None, len(same)))
    load = fsum(one.load for one in _classes()) / 40960
    rows.append(FigureRow("offered load", None, load))
    return Finding(rows)


def _table_4_3(bench: Bench) -> Finding:
    rows = []
    lines = [line.split() for line in printed.REQUIRED.strip().splitlines()]
    for one, line in zip(_classes(), lines, strict=True):
        for chance, text in zip(PROBABILITIES, line, strict=True):
            digit = 0.01 if "E" not in text else 10.0 ** (int(text.partition("E+")[2]) - 2)
            ours = required_mttf(chance, one.size, one.service_95)
            near = Tolerance(absolute=0.51 * digit, relative=2e-5)
            near = Tolerance(absolute=near.absolute + near.relative * ours)
            rows.append(compared(f"{one.size:,} nodes, chance {chance:g}", float(text), ours, near, "h"))
    lines_of = [
        Series(
            f"{one.size:,}", list(PROBABILITIES), [required_mttf(p, one.size, one.service_95) for p in PROBABILITIES]
        )
        for one in _classes()
    ]
    what = "mean time to failure of a node, h"
    return Finding(rows, [Chart("what nodes must live", "chance that a job lasts", what, lines_of, log_y=True)])


def _table_4_4(bench: Bench) -> Finding:
    classes = _classes()
    order = ranks(classes)
    rows = []
    for at, one in enumerate(classes):
        rows += [
            compared(f"{one.size:,} nodes: cost", printed.COSTS[at], one.cost, Tolerance(absolute=0.0005), "node-h"),
            compared(f"{one.size:,} nodes: rank", printed.RANKS[at], order.index(at) + 1, EXACT),
        ]
    return Finding(rows)


def _table_4_5(bench: Bench) -> Finding:
    rows = []
    node = Tolerance(absolute=1.0)
    for one, most in zip(_classes(), printed.MOST, strict=True):
        near = Tolerance(absolute=0.51, relative=0.0025)
        rows.append(compared(f"{one.size:,} nodes: C_max", most, one.load, near, "nodes"))
    for blocking in (0.1, 0.2):
        found = needs(printed.MOST, blocking)
        for name, said, ours in (
            ("types I and IV", printed.ONE_FOUR[blocking], found.plain),
            ("types II and III", printed.TWO_THREE[blocking], found.by_size),
        ):
            for size, paper, value in zip(printed.SIZES, said, ours, strict=True):
                rows.append(compared(f"{size:,} nodes at {blocking:g}, {name}", paper, value, node, "nodes"))
    return Finding(rows)


def _capacities(chained: bool) -> Finding:
    """Return figures 4.2 and 4.3: nodes by blocking."""
    loads = [one.load for one in _classes()]
    series = []
    for at, size in enumerate(printed.SIZES):
        found = [needs(loads, blocking) for blocking in _BLOCKING]
        series.append(
            Series(f"{size:,}", list(_BLOCKING), [(one.by_size if chained else one.plain)[at] for one in found])
        )
    totals = [fsum(one.y[place] for one in series) for place in range(len(_BLOCKING))]
    series.append(Series("all", list(_BLOCKING), totals))
    falling = sum(all(b <= a for a, b in pairwise(one.y)) for one in series)
    straight = max(
        abs(one.y[place] - (one.y[0] + (one.y[-1] - one.y[0]) * _BLOCKING[place] / _BLOCKING[-1]))
        for one in series
        for place in range(len(_BLOCKING))
    )
    rows = [
        FigureRow("nodes of all classes at 0", None, totals[0], "nodes"),
        FigureRow("nodes of all classes at 0.4", None, totals[-1], "nodes"),
        claimed(
            "blocking and nodes are related in a straight line", "they are", straight < 1e-6, f"within {straight:.1g}"
        ),
        claimed(
            "the more blocking, the fewer nodes",
            "for each class",
            falling == len(series),
            f"of {falling} of {len(series)} lines, that of all among them",
        ),
    ]
    kind = "types II and III" if chained else "types I and IV"
    return Finding(rows, [Chart(f"nodes by blocking, {kind}", "chance of blocking", "nodes", series, log_y=True)])


def _figure_4_2(bench: Bench) -> Finding:
    return _capacities(chained=False)


def _figure_4_3(bench: Bench) -> Finding:
    return _capacities(chained=True)


def _queues(chained: bool) -> Finding:
    """Return figures 4.4 and 4.5: equations 3.17 to 3.19 as printed, and Erlang's C beside."""
    classes = _classes()
    loads = [one.load for one in classes]
    lines: list[list[Series]] = [[], [], []]
    rising = count = 0
    for at, one in enumerate(classes):
        erlang = one.rate * one.service
        told = []
        for blocking in _BLOCKING:
            capacity = (needs(loads, blocking).by_size if chained else needs(loads, blocking).plain)[at]
            told.append(printed_queueing(capacity, erlang, blocking, one.service))
        kept = [(x, y) for x, y in zip(_BLOCKING, told, strict=True) if y is not None]
        for place, column in enumerate(lines):
            values = [y[place] for _, y in kept]
            column.append(Series(f"{one.size:,}", [x for x, _ in kept], values))
            rising += all(b >= a for a, b in pairwise(values))
            count += 1
    unstable = [one.size for one in classes if erlang_c(int(one.load // one.size), one.rate * one.service) is None]
    longest = max(value for series in lines[2] for value in series.y)
    rows = [
        claimed(
            "chance, length and wait rise with blocking", "they do", rising == count, f"{rising} of {count} curves do"
        ),
        FigureRow("longest wait by equation 3.19", None, longest * 3600, "s"),
        claimed(
            "queues have an end",
            "where a < n",
            not unstable,
            f"by Erlang's C, in C_max nodes, {len(unstable)} of {len(classes)} classes have queues without end",
        ),
    ]
    names = ("chance to wait", "length of the queue", "mean wait, h")
    charts = [
        Chart(f"{name} by blocking", "chance of blocking", name, each) for name, each in zip(names, lines, strict=True)
    ]
    return Finding(rows, charts)


def _figure_4_4(bench: Bench) -> Finding:
    return _queues(chained=True)


def _figure_4_5(bench: Bench) -> Finding:
    return _queues(chained=False)


def _middles() -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return what nodes live by the middles of table 5.1's ranges, h, shape (40960,)."""
    platform = load_platform("intrepid")
    return Machine(platform.units, platform.info).nodes.mttf / HOUR


def _partitions(blocking: float) -> list[tuple[int, float]]:
    platform = load_platform("intrepid")
    machine = Machine(platform.units, platform.info)
    said = printed.ONE_FOUR.get(blocking, printed.MOST)
    sized, _ = partition_sizes(_classes(), 40960, blocking, said)
    found, _ = partition(sized, _middles(), machine)
    return [(len(one.units), one.mttf) for one in found]


def _partition_rows(levels: tuple[float, ...]) -> Finding:
    rows, series = [], []
    for blocking in levels:
        ours = _partitions(blocking)
        for number, ((nodes, hours), (size, mttf)) in enumerate(
            zip(printed.PARTITIONS[blocking], ours, strict=True), 1
        ):
            rows += [
                compared(f"partition {number} at {blocking:g}: nodes", nodes, size, EXACT, "nodes"),
                compared(f"partition {number} at {blocking:g}: MTTF", hours, mttf, Tolerance(relative=0.02), "h"),
            ]
        places = list(range(1, len(ours) + 1))
        paper = [hours for _, hours in printed.PARTITIONS[blocking]]
        series += [
            Series(f"paper, {blocking:g}", places, paper, paper=True),
            Series(f"ours, {blocking:g}", places, [mttf for _, mttf in ours]),
        ]
    return Finding(rows, [Chart("mean time to failure of partitions", "partition", "h", series)])


def _table_4_6(bench: Bench) -> Finding:
    return _partition_rows((0.0, 0.1))


def _table_4_7(bench: Bench) -> Finding:
    found = _partition_rows((0.2,))
    _, left = partition_sizes(_classes(), 40960, 0.2, printed.ONE_FOUR[0.2])
    return Finding(
        [*found.rows, compared("nodes of no partition", printed.EXTRA[0], left, EXACT, "nodes")], found.charts
    )


def _table_4_8(bench: Bench) -> Finding:
    times = {one.size: one.service_95 for one in _classes()}
    rows = []
    near = Tolerance(absolute=0.000051)
    for size, (mttf, before, after) in printed.LASTS.items():
        rows += [
            compared(f"{size:,} nodes before", before, job_reliability(printed.MACHINE, size, times[size]), near),
            compared(f"{size:,} nodes after", after, job_reliability(mttf, size, times[size]), near),
        ]
    return Finding(rows)


def _table_4_10(bench: Bench) -> Finding:
    """Return the changes in one unit of time, minutes, and that the table's are the dump in minutes with hours."""
    given = {size: mttf for size, (mttf, *_) in printed.LASTS.items()}
    rows = []
    near = Tolerance(absolute=0.006)
    mixed = 0
    own = []
    for size, (longer, cost) in printed.CHECKPOINTS.items():
        found = change(size, printed.DUMP, 60 * printed.MACHINE, 60 * given[size])
        as_printed = change(size, printed.DUMP, printed.MACHINE, given[size])
        mixed += near.holds(longer, as_printed.interval) + near.holds(cost, as_printed.cost)
        own.append(found.cost)
        rows += [
            compared(f"{size:,} nodes: interval", longer, found.interval, near, "min"),
            compared(f"{size:,} nodes: cost", cost, found.cost, near, "node-min/h"),
        ]
    count = 2 * len(printed.CHECKPOINTS)
    rows += [
        compared("net saved", printed.SAVED, -fsum(own), near, "node-min/h"),
        FigureRow(f"of {count} figures, how many are the dump in minutes with lives in hours", None, mixed),
        FigureRow("life of a job of 16,384 nodes", None, 60 * given[16384] / 16384, "min"),
    ]
    return Finding(rows)


def _table_5_1(bench: Bench) -> Finding:
    rows = []
    for upper, count, first, last in printed.RANGES:
        rows.append(compared(f"{upper - 500:,} to {upper:,} h: nodes by their numbers", count, first - last + 1, EXACT))
    counts = [count for _, count, *_ in printed.RANGES]
    rows.append(compared("nodes of all ranges", 40960, sum(counts), EXACT))
    told = _middles()
    ours = [int(((told >= upper - 500) & (told < upper)).sum()) for upper, *_ in printed.RANGES]
    agrees = ours == counts
    rows.append(
        claimed("the bundled platform intrepid has these counts", "as printed", agrees, "it has" if agrees else "no")
    )
    rows.append(
        compared("mean of all nodes", printed.SIMULATED_TOTAL[0], float(told.mean()), Tolerance(absolute=0.005), "h")
    )
    return Finding(rows, [printed.ranges_chart()])


def _table_5_2(bench: Bench) -> Finding:
    """Return the change of failures per unit-hour as the emulator counts it, and the sums of the table's columns."""
    hours = bench.size.hours
    parts = [_compared_runs(bench, hours, seed) for seed in range(1, bench.size.seeds + 1)]
    first = parts[0]
    rows = []
    series: list[list[float]] = [[], [], [], []]
    for at, (said, one) in enumerate(zip(printed.SIMULATED, first["partitions"], strict=False), 1):
        _, before, after, *_, impact = said
        rows.append(compared(f"partition {at}: MTTF", said[0], one["mttf"], Tolerance(relative=0.001), "h"))
        rows.append(
            compared(
                f"partition {at}: its own arithmetic of the impact",
                impact,
                100 * (1 - after / before),
                printed.DIGIT,
                "%",
            )
        )
        failed = [sum(part["partitions"][at - 1]["failed"][when] for part in parts) for when in (0, 1)]
        held = [fsum(part["partitions"][at - 1]["held"][when] for part in parts) for when in (0, 1)]
        low = high = ours = None
        if all(failed) and all(held):
            ratio = failed[1] / held[1] / (failed[0] / held[0])
            spread = math.exp(1.959963984540054 * math.sqrt(1 / failed[0] + 1 / failed[1]))
            ours, low, high = 100 * (ratio - 1), 100 * (ratio / spread - 1), 100 * (ratio * spread - 1)
        told = 100 * (after / before - 1)
        name = f"partition {at}: more failures in partitions than on random nodes"
        told_apart = low is not None and high is not None and (high - low) / 2 <= _TELLING
        within = low <= told <= high if told_apart and low is not None and high is not None else None
        rows.append(FigureRow(name, told, ours, "%", low, high, within))
        rows.append(
            FigureRow(f"partition {at}: the same where all nodes are equally busy", told, 100 * one["closed"], "%")
        )
        for column, value in zip(series, (told, 100 * one["closed"], ours or 0.0), strict=False):
            column.append(value)
    columns = list(zip(*[one[1:5] for one in printed.SIMULATED], strict=True))
    names = ("node failures before", "node failures after", "failed jobs before", "failed jobs after")
    for name, column, total in zip(names, columns, printed.SIMULATED_TOTAL[1:], strict=True):
        rows.append(compared(f"sum of its column, {name}", total, sum(column), EXACT))
    places = [float(place) for place in range(1, 6)]
    chart = Chart(
        "failures in partitions over those on random nodes",
        "partition",
        "%",
        [
            Series("table 5.2", places, series[0], paper=True),
            Series("equally busy nodes", places, series[1]),
            Series("emulated", places, series[2]),
        ],
    )
    return Finding(rows, [chart], [f"{bench.size.seeds} run(s) of {hours:,.0f} h"])


def _compared_runs(bench: Bench, hours: float, seed: int) -> dict[str, Any]:
    def make() -> dict[str, Any]:
        return compare(load_classes("intrepid-classes"), load_platform("intrepid"), seed=seed, duration=f"{hours:g}h")

    found: dict[str, Any] = bench.part(f"001/table-5.2/{hours:g} h, seed {seed}", make)
    return found


def _p_values(bench: Bench) -> Finding:
    """Return the p values of the one-sided test of two independent samples with equal variances (Student's)."""
    rows = []
    near = Tolerance(absolute=0.0000005)
    for name, ours, machine, said in (
        ("analysis", printed.ASSIGNED, printed.MACHINE, printed.P_VALUES[0]),
        ("simulation", printed.ASSIGNED_SIMULATED, printed.SIMULATED_TOTAL[0], printed.P_VALUES[1]),
    ):
        # Those before are all alike, so that they have no variance.
        count = len(ours)
        error = math.sqrt(variance(ours) / 2 * 2 / count)
        found = (mean(ours) - machine) / error
        law = scipy_part("stats").t(2 * count - 2)
        rows += [
            compared(f"{name}: p that what classes get is less than before", said, float(law.cdf(found)), near),
            claimed(
                f"{name}: classes get more reliable nodes",
                "they do (p < 0.05)",
                float(law.sf(found)) < 0.05,
                f"mean {mean(ours):,.0f} h after, {machine:,.0f} h before: p = {float(law.sf(found)):.3f}",
            ),
        ]
    return Finding(rows)


def _assigned(bench: Bench) -> Finding:
    rows = []
    by_rank = [size for _, size in sorted(zip(printed.RANKS, printed.SIZES, strict=True))]
    for size, hours in zip(by_rank, printed.ASSIGNED, strict=True):
        rows.append(compared(f"{size:,} nodes: as table 4.8", hours, printed.LASTS[size][0], EXACT, "h"))
    own = [mttf for _, mttf in _partitions(0.0)]
    given = [own[0], float(_middles().mean()), own[1], float(_middles().mean()), own[2], own[3], *(5 * [own[4]])]
    for size, hours, ours in zip(by_rank, printed.ASSIGNED_SIMULATED, given, strict=True):
        rows.append(
            compared(
                f"{size:,} nodes: of the ranges' middles, as table A.2", hours, ours, Tolerance(relative=0.02), "h"
            )
        )
    return Finding(rows)


def _table_a_3(bench: Bench) -> Finding:
    rows = []
    given = dict(
        zip(
            [size for _, size in sorted(zip(printed.RANKS, printed.SIZES, strict=True))],
            printed.ASSIGNED_SIMULATED,
            strict=True,
        )
    )
    near = Tolerance(absolute=0.02)
    for size, (simulated, analysed) in printed.COST_CHANGES.items():
        mixed = change(size, printed.DUMP, printed.SIMULATED_TOTAL[0], given[size])
        rows.append(
            compared(f"{size:,} nodes: simulation, hours as minutes", simulated, -mixed.cost, near, "node-min/h")
        )
        said = -printed.CHECKPOINTS[size][1]
        rows.append(compared(f"{size:,} nodes: analysis, as table 4.10", analysed, said, near, "node-min/h"))
    for at, name in enumerate(("simulation", "analysis")):
        total = fsum(costs[at] for costs in printed.COST_CHANGES.values())
        rows.append(compared(f"sum of its column, {name}", printed.NETS[at], total, near, "node-min/h"))
    return Finding(rows)


_PLAN: Final = "pipistrelle reliability plan intrepid-classes"
_AT: Final = f"{_PLAN} -p intrepid"
_CHECK: Final = "arithmetic with what the table prints"

PAPER: Final = Paper(
    "001",
    "partitions of nodes by reliability on Intrepid",
    "S. Umamaheshwaran, Reliability Guided Resource Allocation for Large-scale Supercomputing Systems, Master's "
    "thesis, Purdue University, 2014",
    (
        Entry(
            "table-4.1",
            "jobs by requested processors, and figure 4.1",
            "table 4.1 and figure 4.1, section 4.1",
            "Of 68,936 jobs 95.89 % ask for a power of two processors.",
            _CHECK,
            printed.table_4_1,
            reason="The log of Intrepid is not here: its counts are taken from the table, its percentages and sums "
            "are checked.",
        ),
        Entry(
            "table-4.2",
            "rates, services and numbers of jobs",
            "table 4.2, section 4.1",
            "Rates and services of the peak time from April 1 to June 15, 2009, with the number of jobs submitted.",
            "pipistrelle show intrepid-classes",
            _table_4_2,
            expects="differs",
            reason="The rates are those of the peak time; from 128 nodes on the numbers of jobs are those of all "
            "eight months (table 4.1), "
            "some of them eight times what the rates give. Class 9 is printed with 16385 nodes.",
        ),
        Entry(
            "table-4.3",
            "the mean time to failure that nodes must have",
            "table 4.3, section 4.2",
            "For eleven classes and nine chances that a job lasts, by equation 4.1.",
            _PLAN,
            _table_4_3,
            reason="Equation 4.1 as printed lacks the number of nodes; the table has n T for T.",
        ),
        Entry(
            "table-4.4",
            "costs and ranks of classes",
            "table 4.4, section 4.2",
            "n T, and the rank by it.",
            _PLAN,
            _table_4_4,
        ),
        Entry(
            "figure-4.2",
            "nodes by blocking, types I and IV",
            "figure 4.2, section 4.2",
            "The more blocking is allowed, the fewer nodes a class needs, in a straight line.",
            f"{_PLAN} --picture plan.svg",
            _figure_4_2,
        ),
        Entry(
            "figure-4.3",
            "nodes by blocking, types II and III",
            "figure 4.3, section 4.2",
            "The more blocking is allowed, the fewer nodes a class needs, in a straight line.",
            _PLAN,
            _figure_4_3,
            expects="differs",
            reason="With these types a class is given what the next smaller one is refused: one with less load than "
            "that needs more "
            "nodes with more blocking, as 128 nodes in table 4.5 itself (31, 41, 56).",
        ),
        Entry(
            "figure-4.4",
            "queues by blocking, type III",
            "figure 4.4, section 4.2",
            "Chance to wait, length of the queue and wait rise with blocking.",
            _PLAN,
            _figure_4_4,
            expects="differs",
            reason="Equations 3.17 to 3.19 set a number of jobs beside a number of nodes: their waits are seconds "
            "and mean nothing. "
            "C_max is what a class asks for, so that by Erlang's C no queue in front of it has an end.",
        ),
        Entry(
            "figure-4.5",
            "queues by blocking, type IV",
            "figure 4.5, section 4.2",
            "Chance to wait, length of the queue and wait rise with blocking.",
            _PLAN,
            _figure_4_5,
            expects="differs",
            reason="Equations 3.17 to 3.19 set a number of jobs beside a number of nodes: their waits are seconds "
            "and mean nothing. "
            "C_max is what a class asks for, so that by Erlang's C no queue in front of it has an end.",
        ),
        Entry(
            "table-4.5",
            "nodes of each class",
            "table 4.5, section 4.2",
            "C_max, and the nodes at blocking of 0.1 and 0.2 for all types.",
            _PLAN,
            _table_4_5,
            expects="differs",
            reason="Types II and III at 0.2 follow from no form that we found, equation 3.14 included: 512 nodes "
            "have hundreds fewer than "
            "by both forms. All others are within a node, C_max within what table 4.2's rounding leaves.",
        ),
        Entry(
            "table-4.6",
            "partitions at 0 and 0.1",
            "table 4.6, section 4.2",
            "Nodes of each partition, and their mean time to failure.",
            _AT,
            _table_4_6,
            reason="The lives of the nodes are not given but as ranges of 500 h (table 5.1): their middles are "
            "within 2 %.",
        ),
        Entry(
            "table-4.7",
            "partitions at 0.2",
            "table 4.7, section 4.2",
            "Nodes of each partition, and their mean time to failure.",
            _AT,
            _table_4_7,
            reason="The lives of the nodes are not given but as ranges of 500 h (table 5.1): their middles are "
            "within 2 %.",
        ),
        Entry(
            "table-4.8",
            "chances that jobs last",
            "table 4.8, section 4.3",
            "Before and after, by equation 3.7.",
            _AT,
            _table_4_8,
        ),
        Entry(
            "table-4.9",
            "reliability over what it was",
            "table 4.9, section 4.3",
            "The ratio of mean times to failure for each class and type.",
            _CHECK,
            printed.table_4_9,
        ),
        Entry(
            "table-4.10",
            "checkpoints before and after",
            "table 4.10, section 4.3",
            "How the optimal interval and the cost of checkpoints change; 377.42 node-minutes an hour are saved.",
            _PLAN,
            _table_4_10,
            expects="differs",
            reason="The table has the dump in minutes with lives in hours. In one unit of time far less is saved; "
            "equation 4.5 as "
            "printed lacks a factor besides, and all of it is for one node's life, not the job's.",
        ),
        Entry(
            "table-5.1",
            "nodes by ranges of reliability",
            "table 5.1, section 5.2",
            "40,960 nodes in 14 ranges of 500 h.",
            "pipistrelle show intrepid",
            _table_5_1,
            expects="differs",
            reason="The first range names 1,471 nodes and the last 831, where the counts say 1,470 and 832.",
        ),
        Entry(
            "figure-5.1",
            "the same as a histogram",
            "figure 5.1, section 5.2",
            "The numbers of table 5.1.",
            "pipistrelle show intrepid",
            printed.figure_5_1,
            expects="made anew",
            reason="The picture's numbers are those of table 5.1.",
        ),
        Entry(
            "table-5.2",
            "failures before and after, simulated",
            "table 5.2, section 5.3",
            "Failures of nodes and failed jobs by partition, on random nodes and in partitions.",
            "pipistrelle reliability compare intrepid-classes -p intrepid",
            _table_5_2,
            expects="differs",
            reason="+101.5 % for the last partition, -21.2 % for the second and 80 % more failed jobs cannot follow "
            "from table 5.1: no part "
            "of the machine is hit twice as often as the average. The last impact is -101.5 %, not -100 %, and the "
            "sums of failed "
            "jobs are not those of their columns.",
        ),
        Entry(
            "table-a.1",
            "what classes are given, and table A.2",
            "tables A.1 and A.2, appendix A",
            "The mean time to failure that each class is given, by analysis and by simulation.",
            _AT,
            _assigned,
        ),
        Entry(
            "p-values",
            "the tests of appendix A",
            "text of appendix A",
            "p = 0.003775 and 0.004358: reliability of jobs with high need has increased.",
            "a one-sided t test of two independent samples",
            _p_values,
            expects="differs",
            reason="Both p values are those of the test that classes get less than before, each class counting the "
            "same, whose mean "
            "falls. They speak against the hypothesis that they are given for.",
        ),
        Entry(
            "table-a.3",
            "what checkpoints cost less",
            "table A.3, appendix A",
            "481.18 node-minutes an hour by simulation, 377.42 by analysis.",
            _CHECK,
            _table_a_3,
            expects="differs",
            reason="Hours as minutes, as in table 4.10. The column of the simulation does not add up to its net.",
        ),
        Entry(
            "figure-b.2",
            "lines of the log, converted",
            "figures B.1 and B.2, appendix B",
            "Seconds as days:hours:minutes:seconds, processors over four.",
            _CHECK,
            printed.figure_b_2,
        ),
    ),
    "reliability.md",
)
