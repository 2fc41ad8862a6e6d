"""Paper 001: partitions by reliability on Intrepid (docs/how-to/reliability.md)."""

import math
from collections.abc import Mapping
from itertools import pairwise
from math import fsum
from statistics import mean, variance
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.models.reliability.jobs import PROBABILITIES, change, job_reliability, required_mttf
from pipistrelle.models.reliability.loss import erlang_c, printed_queueing
from pipistrelle.models.reliability.resources import described, needs
from pipistrelle.models.samples.estimates import change_of_rates, scipy_part
from pipistrelle.models.workloads.classes import get, load_classes
from pipistrelle.papers.bench import Bench
from pipistrelle.papers.entry import Series, Tolerance, bars
from pipistrelle.papers.sheet import Compute, Sheet
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.platforms.topology.partitions import HOUR, RankedClass, partition, partition_sizes, ranks
from pipistrelle.reports.placement.partitions import compare
from pipistrelle.runs.inputs.named import load_platform

#: largest useful half-width, in percentage points, of the interval of a change of failures
_TELLING: Final = 30.0
_BLOCKING: Final = (0.0, 0.1, 0.2, 0.3, 0.4)


def _classes() -> list[RankedClass]:
    """Return the job classes of table 4.2 of paper 001, by size."""
    return [one.sizes for one in described(get("intrepid-classes")).classes]


def table_4_1(bench: Bench, sheet: Sheet) -> None:
    """Check the percentages and sums of table 4.1 of paper 001."""
    printed = sheet.printed
    sizes, counts, shares = zip(*printed["requested"], strict=True)
    for size, count, share in zip(sizes, counts, shares, strict=True):
        sheet.row("share", 100 * count / printed["all_jobs"], share, size=size)
    sheet.row("jobs", sum(counts))
    sheet.row("all", 100 * sum(counts) / printed["all_jobs"])
    sheet.chart("jobs", [bars("jobs of table 4.1", counts, paper=True)], names=list(map(str, sizes)))


def table_4_2(bench: Bench, sheet: Sheet) -> None:
    """Compare the numbers of jobs in table 4.2 of paper 001 with its rates."""
    printed, classes = sheet.printed, _classes()
    for one, jobs in zip(classes, printed["jobs"], strict=True):
        sheet.row("jobs", one.rate * printed["hours"], jobs, size=one.size)
    whole = {size: count for size, count, _ in printed["requested"]}
    sheet.row(
        "same", sum(whole.get(size) == jobs for size, jobs in zip(printed["sizes"], printed["jobs"], strict=True))
    )
    sheet.row("load", fsum(one.load for one in classes) / 40960)


def table_4_3(bench: Bench, sheet: Sheet) -> None:
    """Compute the MTTF that the nodes of each job class need (table 4.3 of paper 001)."""
    classes = _classes()
    for one, line in zip(classes, sheet.printed["required"].strip().splitlines(), strict=True):
        for chance, text in zip(PROBABILITIES, line.split(), strict=True):
            digit = 0.01 if "E" not in text else 10.0 ** (int(text.partition("E+")[2]) - 2)
            ours = required_mttf(chance, one.size, one.service_95)
            near = Tolerance(absolute=0.51 * digit + 2e-5 * ours)
            sheet.row("required", ours, float(text), near=near, size=one.size, chance=chance)
    lines = [[required_mttf(chance, one.size, one.service_95) for chance in PROBABILITIES] for one in classes]
    chances = list(PROBABILITIES)
    sheet.chart("required", [Series(f"{one.size:,}", chances, y) for one, y in zip(classes, lines, strict=True)])


def table_4_4(bench: Bench, sheet: Sheet) -> None:
    """Compute the cost and rank of each class (table 4.4 of paper 001)."""
    classes, printed = _classes(), sheet.printed
    order = ranks(classes)
    for at, one in enumerate(classes):
        sheet.row("cost", one.cost, printed["costs"][at], size=one.size)
        sheet.row("rank", order.index(at) + 1, printed["ranks"][at], size=one.size)


def table_4_5(bench: Bench, sheet: Sheet) -> None:
    """Compute the nodes that each class needs (table 4.5 of paper 001).

    They depend on the blocking probability.
    """
    printed = sheet.printed
    for one, most in zip(_classes(), printed["most"], strict=True):
        sheet.row("most", one.load, most, size=one.size)
    for blocking in (0.1, 0.2):
        found = needs(printed["most"], blocking)
        for types, table, ours in (
            ("types I and IV", "one_four", found.plain),
            ("types II and III", "two_three", found.by_size),
        ):
            for size, said, value in zip(printed["sizes"], printed[table][f"{blocking:g}"], ours, strict=True):
                sheet.row("needs", value, said, size=size, blocking=blocking, types=types)


def _capacities(sheet: Sheet, chained: bool) -> None:
    """Compute how many nodes each job class needs, by blocking probability.

    These are figures 4.2 and 4.3 of paper 001. ``chained`` selects job types II and III instead of I and IV; see
    `Needs`.
    """
    loads = [one.load for one in _classes()]
    found = [needs(loads, blocking) for blocking in _BLOCKING]
    series = [
        Series(f"{size:,}", list(_BLOCKING), [(one.by_size if chained else one.plain)[at] for one in found])
        for at, size in enumerate(sheet.printed["sizes"])
    ]
    totals = [fsum(one.y[place] for one in series) for place in range(len(_BLOCKING))]
    series.append(Series("all", list(_BLOCKING), totals))
    falling = sum(all(b <= a for a, b in pairwise(one.y)) for one in series)
    straight = max(
        abs(one.y[place] - (one.y[0] + (one.y[-1] - one.y[0]) * _BLOCKING[place] / _BLOCKING[-1]))
        for one in series
        for place in range(len(_BLOCKING))
    )
    sheet.row("total", totals[0], blocking=_BLOCKING[0])
    sheet.row("total", totals[-1], blocking=_BLOCKING[-1])
    sheet.claim("straight", straight < 1e-6, error=straight)
    sheet.claim("fewer", falling == len(series), falling=falling, lines=len(series))
    sheet.chart("nodes", series, types="types II and III" if chained else "types I and IV")


def _queues(sheet: Sheet, chained: bool) -> None:
    """Compute the queues of each class, also by Erlang's C.

    These are figures 4.4 and 4.5 of paper 001. ``chained`` selects job types II and III instead of I and IV; see
    `Needs`.
    """
    classes = _classes()
    loads = [one.load for one in classes]
    lines: list[list[Series]] = [[], [], []]
    for at, one in enumerate(classes):
        kept = []
        for blocking in _BLOCKING:
            found = needs(loads, blocking)
            capacity = (found.by_size if chained else found.plain)[at]
            if (told := printed_queueing(capacity, one.rate * one.service, blocking, one.service)) is not None:
                kept.append((blocking, told))
        for place, column in enumerate(lines):
            column.append(Series(f"{one.size:,}", [x for x, _ in kept], [told[place] for _, told in kept]))
    curves = [one for column in lines for one in column]
    rising = sum(all(b >= a for a, b in pairwise(one.y)) for one in curves)
    unstable = sum(erlang_c(int(one.load // one.size), one.rate * one.service) is None for one in classes)
    sheet.claim("rise", rising == len(curves), rising=rising, curves=len(curves))
    sheet.row("longest", max(value for series in lines[2] for value in series.y) * 3600)
    sheet.claim("end", not unstable, unstable=unstable, classes=len(classes))
    for name, column in zip(("chance to wait", "length of the queue", "mean wait, h"), lines, strict=True):
        sheet.chart("queue", column, what=name)


def _middles() -> NDArray[np.float64]:
    """Return each node's MTTF (h), shape (40960,).

    It is the middle of the node's range in paper 001.
    """
    platform = load_platform("intrepid")
    return Machine(platform.units, platform.info).nodes.mttf / HOUR


def _partitions(sheet: Sheet, blocking: float) -> list[tuple[int, float]]:
    """Return the number of nodes and the MTTF (h) of each partition.

    They depend on the blocking probability.
    """
    platform = load_platform("intrepid")
    machine = Machine(platform.units, platform.info)
    said = sheet.printed["one_four"].get(f"{blocking:g}", sheet.printed["most"])
    sized, _ = partition_sizes(_classes(), 40960, blocking, said)
    found, _ = partition(sized, _middles(), machine)
    return [(len(one.units), one.mttf) for one in found]


def _partition_rows(sheet: Sheet, *levels: float) -> None:
    series = []
    for blocking in levels:
        ours, paper = _partitions(sheet, blocking), sheet.printed["partitions"][f"{blocking:g}"]
        for number, ((nodes, hours), (size, mttf)) in enumerate(zip(paper, ours, strict=True), 1):
            sheet.row("partition", size, nodes, number=number, blocking=blocking)
            sheet.row("partition_mttf", mttf, hours, number=number, blocking=blocking)
        places = list(range(1, len(ours) + 1))
        series += [
            Series(f"paper, {blocking:g}", places, [hours for _, hours in paper], paper=True),
            Series(f"ours, {blocking:g}", places, [mttf for _, mttf in ours]),
        ]
    sheet.chart("partitions", series)


def table_4_7(bench: Bench, sheet: Sheet) -> None:
    """Compute the partitions of table 4.7 of paper 001.

    Also compute the nodes outside all partitions.
    """
    _partition_rows(sheet, 0.2)
    sheet.row("left", partition_sizes(_classes(), 40960, 0.2, sheet.printed["one_four"]["0.2"])[1])


def table_4_8(bench: Bench, sheet: Sheet) -> None:
    """Compute the probabilities that jobs survive (table 4.8 of paper 001)."""
    times = {one.size: one.service_95 for one in _classes()}
    for size, mttf, before, after in sheet.printed["lasts"]:
        sheet.row("before", job_reliability(sheet.printed["machine"], size, times[size]), before, size=size)
        sheet.row("after", job_reliability(mttf, size, times[size]), after, size=size)


def table_4_9(bench: Bench, sheet: Sheet) -> None:
    """Check the ratios of MTTFs in table 4.9 of paper 001."""
    for size, cells in sheet.printed["ratios"]:
        for column, (mttf, ratio) in zip(sheet.printed["columns"], cells, strict=True):
            sheet.row("ratio", mttf / sheet.printed["machine"], ratio, size=size, column=column)


def table_4_10(bench: Bench, sheet: Sheet) -> None:
    """Compute table 4.10 of paper 001 in minutes; the paper mixes minutes and hours."""
    printed = sheet.printed
    given = {size: mttf for size, mttf, *_ in printed["lasts"]}
    near = Tolerance(absolute=0.006)
    mixed, own = 0, []
    for size, longer, cost in printed["checkpoints"]:
        found = change(size, printed["dump"], 60 * printed["machine"], 60 * given[size])
        as_printed = change(size, printed["dump"], printed["machine"], given[size])
        mixed += near.holds(longer, as_printed.interval) + near.holds(cost, as_printed.cost)
        own.append(found.cost)
        sheet.row("interval", found.interval, longer, size=size)
        sheet.row("cost", found.cost, cost, size=size)
    sheet.row("saved", -fsum(own))
    sheet.row("mixed", mixed, count=2 * len(own))
    sheet.row("life", 60 * given[16384] / 16384)


def table_5_1(bench: Bench, sheet: Sheet) -> None:
    """Compare the MTTF ranges of table 5.1 of paper 001 with the bundled platform."""
    ranges, lives = sheet.printed["ranges"], _middles()
    for upper, count, first, last in ranges:
        sheet.row("range", first - last + 1, count, low=upper - 500, high=upper)
    counts = [count for _, count, *_ in ranges]
    sheet.row("all", sum(counts))
    sheet.claim("bundled", [int(((lives >= upper - 500) & (lives < upper)).sum()) for upper, *_ in ranges] == counts)
    sheet.row("mean", float(lives.mean()), sheet.printed["simulated_total"][0])
    _ranges_chart(sheet)


def figure_5_1(bench: Bench, sheet: Sheet) -> None:
    """Count the nodes in each range of MTTF (figure 5.1 of paper 001).

    The result has the largest and the smallest of these numbers.
    """
    counts = [count for _, count, *_ in sheet.printed["ranges"]]
    sheet.row("largest", max(counts))
    sheet.row("smallest", min(counts))
    _ranges_chart(sheet)


def _ranges_chart(sheet: Sheet) -> None:
    ranges = sheet.printed["ranges"]
    nodes = bars("nodes", [count for _, count, *_ in ranges], paper=True)
    sheet.chart("ranges", [nodes], names=[f"{upper - 500:,}" for upper, *_ in ranges])


def table_5_2(bench: Bench, sheet: Sheet) -> None:
    """Simulate how partitions change failures (table 5.2 of paper 001).

    Also check the table's sums.
    """
    printed = sheet.printed
    parts = [_compared_runs(bench, seed)["partitions"] for seed in range(1, bench.size.seeds + 1)]
    points = []
    for at, (mttf, before, after, *_, impact) in enumerate(printed["simulated"][: len(parts[0])]):
        closed = 100 * parts[0][at]["closed"]
        sheet.row("mttf", parts[0][at]["mttf"], mttf, number=at + 1)
        sheet.row("impact", 100 * (1 - after / before), impact, number=at + 1)
        failed = [sum(part[at]["failed"][when] for part in parts) for when in (0, 1)]
        held = [fsum(part[at]["held"][when] for part in parts) for when in (0, 1)]
        told = 100 * (after / before - 1)
        found = change_of_rates(failed, held)
        ours, low, high = (None if end is None else 100 * end for end in (found.value, found.low, found.high))
        within = None
        if low is not None and high is not None and (high - low) / 2 <= _TELLING:
            within = low <= told <= high
        sheet.row("more", ours, told, interval=(low, high), agrees=within, number=at + 1)
        sheet.row("busy", closed, told, agrees=None, number=at + 1)
        points.append((told, closed, ours or 0.0))
    for at, (name, total) in enumerate(zip(printed["columns"], printed["simulated_total"][1:], strict=True), 1):
        sheet.row("sum", sum(one[at] for one in printed["simulated"]), total, column=name)
    places, names = [float(place) for place in range(1, 6)], ("table 5.2", "equally busy nodes", "emulated")
    lines = zip(names, zip(*points, strict=True), strict=True)
    sheet.chart("more", [Series(name, places, list(y), paper=name == names[0]) for name, y in lines])


def _compared_runs(bench: Bench, seed: int) -> dict[str, Any]:
    hours = bench.size.hours

    def make() -> dict[str, Any]:
        return compare(load_classes("intrepid-classes"), load_platform("intrepid"), seed=seed, duration=f"{hours:g}h")

    found: dict[str, Any] = bench.part(f"001/table-5.2/{hours:g} h, seed {seed}", make)
    return found


def p_values(bench: Bench, sheet: Sheet) -> None:
    """Compute the p values of paper 001: Student's one-sided test of two samples."""
    printed = sheet.printed
    for name, ours, machine, said in (
        ("analysis", printed["assigned"], printed["machine"], printed["p_values"][0]),
        ("simulation", printed["assigned_simulated"], printed["simulated_total"][0], printed["p_values"][1]),
    ):
        # All MTTFs before are equal, so their variance is zero.
        count = len(ours)
        found = (mean(ours) - machine) / math.sqrt(variance(ours) / 2 * 2 / count)
        law = scipy_part("stats").t(2 * count - 2)
        p = float(law.sf(found))
        sheet.row("p", float(law.cdf(found)), said, name=name)
        sheet.claim("better", p < 0.05, name=name, after=mean(ours), before=machine, p=p)


def _by_rank(sheet: Sheet) -> list[int]:
    """Return the job sizes of the classes in the order of their ranks."""
    return [size for _, size in sorted(zip(sheet.printed["ranks"], sheet.printed["sizes"], strict=True))]


def table_a_1(bench: Bench, sheet: Sheet) -> None:
    """Compare tables A.1 and A.2 of paper 001 with its other results.

    These are its table 4.8 and computed MTTFs.
    """
    lasts = {size: mttf for size, mttf, *_ in sheet.printed["lasts"]}
    for size, hours in zip(_by_rank(sheet), sheet.printed["assigned"], strict=True):
        sheet.row("analysis", lasts[size], hours, size=size)
    own, whole = [mttf for _, mttf in _partitions(sheet, 0.0)], float(_middles().mean())
    given = [own[0], whole, own[1], whole, own[2], own[3], *(5 * [own[4]])]
    for size, hours, ours in zip(_by_rank(sheet), sheet.printed["assigned_simulated"], given, strict=True):
        sheet.row("simulation", ours, hours, size=size)


def table_a_3(bench: Bench, sheet: Sheet) -> None:
    """Compute table A.3 of paper 001: what checkpoints save, and the sums.

    Hours are read as minutes, as in the paper.
    """
    printed = sheet.printed
    given = dict(zip(_by_rank(sheet), printed["assigned_simulated"], strict=True))
    costs = {size: cost for size, _, cost in printed["checkpoints"]}
    for size, simulated, analysed in printed["costs"]:
        mixed = change(size, printed["dump"], printed["simulated_total"][0], given[size])
        sheet.row("simulation", -mixed.cost, simulated, size=size)
        sheet.row("analysis", -costs[size], analysed, size=size)
    for at, name in enumerate(("simulation", "analysis")):
        sheet.row("sum", fsum(one[at + 1] for one in printed["costs"]), printed["nets"][at], column=name)


def figure_b_2(bench: Bench, sheet: Sheet) -> None:
    """Count the lines of figure B.2 of paper 001 that follow from its figure B.1."""
    lines = [line.split() for line in sheet.printed["lines"].strip().splitlines()]
    right = sum(
        [_clock(int(submitted)), _clock(int(service)), str(int(processors) // 4)] == told
        for _, submitted, service, processors, *told in lines
    )
    sheet.row("lines", right, len(lines))


def _clock(seconds: int) -> str:
    return f"{seconds // 86400:02}:{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


COMPUTED: Final[Mapping[str, Compute]] = {
    "table-4.1": table_4_1,
    "table-4.2": table_4_2,
    "table-4.3": table_4_3,
    "table-4.4": table_4_4,
    "figure-4.2": lambda bench, sheet: _capacities(sheet, chained=False),
    "figure-4.3": lambda bench, sheet: _capacities(sheet, chained=True),
    "figure-4.4": lambda bench, sheet: _queues(sheet, chained=True),
    "figure-4.5": lambda bench, sheet: _queues(sheet, chained=False),
    "table-4.5": table_4_5,
    "table-4.6": lambda bench, sheet: _partition_rows(sheet, 0.0, 0.1),
    "table-4.7": table_4_7,
    "table-4.8": table_4_8,
    "table-4.9": table_4_9,
    "table-4.10": table_4_10,
    "table-5.1": table_5_1,
    "figure-5.1": figure_5_1,
    "table-5.2": table_5_2,
    "table-a.1": table_a_1,
    "p-values": p_values,
    "table-a.3": table_a_3,
    "figure-b.2": figure_b_2,
}
