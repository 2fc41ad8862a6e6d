"""Paper 004: stable GPUs for leadership jobs on Titan (docs/placement.md, docs/placing.md)."""

from math import fsum
from typing import Any, Final

import numpy as np

from pipistrelle.models.workloads.class_jobs import generate_jobs
from pipistrelle.models.workloads.classes import load_classes
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
from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.read import parse_platform
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.platforms.topology.orders import node_order
from pipistrelle.protocol.base.lengths import parse_seconds
from pipistrelle.reports.placement.run import list_order
from pipistrelle.reports.placement.stability import TABLE_II as PRINTED_TABLE_II
from pipistrelle.reports.placement.stability import table_ii
from pipistrelle.reports.placement.titan_month import (
    BUCKETS,
    CASES,
    FIRST_FIT,
    HOUR,
    LEADERSHIP,
    MONTH,
    TABLE_II,
    WEEK,
    Month,
    drawn_machine,
    drawn_outages,
    failure_share,
    interval,
    machine_of,
    month,
    paper_share,
)
from pipistrelle.runs.inputs.named import load_platform
from pipistrelle.schedulers.catalogue.presets import library_preset
from pipistrelle.traces.outages.load import load_outage_log

_LIVES: Final = "Titan-GPU-lives-2013-2019.csv.xz"
_DATE: Final = "2017-05-01"
#: section IV: stable GPUs of the simulation
_STABLE: Final = 8_500
#: table I: {bin: (least and most nodes, longest run, boost in days)}
_BINS: Final = {
    "Bin60": (11_250, 18_688, "24h", 15),
    "Bin20": (3_750, 11_249, "24h", 5),
    "Bin0": (125, 3_749, "6h", 0),
    "SmallMaxJobs": (1, 124, "2h", 0),
}
_WEEKS: Final = MONTH / HOUR / WEEK
_PARTS: Final = 20
_EXACT: Final = Tolerance()
_CPU: Final = "DE16 + CPU-only, reordered"


def _table_1(bench: Bench) -> Finding:
    told = {one["name"]: one for one in library_preset("titan-bins").order_options["bins"]}
    rows = []
    largest = load_platform("titan").units
    for name, (least, most, longest, boost) in _BINS.items():
        own = told[name]
        days = parse_seconds(own.get("boost", "0d"), or_zero=True) / 86_400.0
        rows += [
            compared(f"{name}: least nodes", least, own["smallest"], _EXACT),
            compared(f"{name}: most nodes", most, largest, _EXACT),
            compared(
                f"{name}: longest run",
                parse_seconds(longest) / HOUR,
                parse_seconds(own["longest-walltime"]) / HOUR,
                _EXACT,
                "h",
            ),
            compared(f"{name}: boost", boost, days, _EXACT, "d"),
        ]
        largest = own["smallest"] - 1
    return Finding(rows)


def _table_2(bench: Bench) -> Finding:
    ours = table_ii()
    near = Tolerance(absolute=0.05)
    rows = [
        compared(f"{new:,} new GPUs, {4_000 - new:,} old", hours, ours[new], near, "h")
        for new, hours in PRINTED_TABLE_II.items()
    ]
    return Finding(rows)


def _specification(bench: Bench) -> Finding:
    titan = Machine(load_platform("titan").units, load_platform("titan").info)
    nodes = len(titan.nodes)
    near = Tolerance(absolute=0.5)
    return Finding(
        [
            compared("nodes, a GPU each", 18_688, nodes, _EXACT),
            compared("new and old GPUs of the motivating example together", 9_500 + 9_188, nodes, _EXACT),
            compared("GPUs of Summit over Titan's, % more", 48, 100 * (27_648 / nodes - 1), near, "%"),
            compared(
                "a fifth of the machine, rounded up to a bound",
                LEADERSHIP,
                nodes / 5,
                Tolerance(relative=0.005),
                "nodes",
            ),
        ]
    )


def _log(bench: Bench) -> dict[str, dict[str, int]]:
    """Return by month how many failures of GPUs there are, of which by double-bit errors, and lives that ended so."""
    path, digest = bench.trace(_LIVES)

    def make() -> dict[str, dict[str, int]]:
        log = load_outage_log(path)
        found: dict[str, dict[str, int]] = {"all": {}, "DBE": {}, "lives": {}}
        assert log.lives is not None
        for name, times in (
            ("all", log.down.tolist()),
            ("DBE", [time for time, cause in zip(log.down.tolist(), log.cause, strict=True) if cause == "DBE"]),
            ("lives", (log.lives.begin + (log.lives.left - log.lives.entered))[log.lives.failed].tolist()),
        ):
            months = np.array(times).astype(np.int64).astype("datetime64[s]").astype("datetime64[M]")
            names, counts = np.unique(months, return_counts=True)
            found[name] = {str(one): int(count) for one, count in zip(names, counts, strict=True)}
        return found

    told: dict[str, dict[str, int]] = bench.part(f"004/failures/{_LIVES}, {digest}", make)
    return told


def _monthly(counts: dict[str, int], begin: str, end: str) -> float:
    """Return the mean of months from one to another, both included."""
    months = np.arange(np.datetime64(begin), np.datetime64(end) + 1).astype(str).tolist()
    return fsum(counts.get(one, 0) for one in months) / len(months)


def _figure_1(bench: Bench) -> Finding:
    told = _log(bench)
    failed = told["all"]
    before, since = _monthly(failed, "2014-01", "2015-06"), _monthly(failed, "2015-07", "2015-12")
    peak, after = _monthly(failed, "2016-04", "2017-01"), _monthly(failed, "2017-08", "2018-05")
    most = max(told["lives"].values()) / 30, max(failed.values()) / 30
    rows = [
        claimed("failures start increasing in July "
        "2015", "they do", since > 3 * before, f"{before:.1f} a month before, {since:.1f} since"),
        claimed("at the peak a day costs", "12 nodes on average", most[0] <= 12 <= most[1],
            f"{most[0]:.1f} GPUs that failed for good, {most[1]:.1f} failures in the worst month"),
        claimed("after the replacement the rate has "
        "stabilised", "it has", after < peak / 2, f"{peak:.0f} a month, then {after:.0f}"),
    ]  # fmt: skip
    names = sorted(failed)
    places = list(range(len(names)))
    series = [Series("failures of GPUs", places, [failed[one] for one in names])]
    chart = Chart("failures of GPUs by month", "month", "failures", series, kind="bars", names=names)
    return Finding(rows, [chart], ["The paper's figure is by week."])


def _figure_2(bench: Bench) -> Finding:
    told = _log(bench)["DBE"]
    years = [str(year) for year in range(2014, 2019)]
    counts = [sum(count for month_, count in told.items() if month_.startswith(year)) for year in years]
    early = told.get("2016-01", 0) + told.get("2016-02", 0)
    rows = [
        compared("double-bit errors in January and February 2016", 47, early, Tolerance(relative=0.1)),
        compared("in 2015", 58, counts[1], Tolerance(relative=0.1)),
        claimed("the rate is low into mid 2015 and accelerates through "
        "2016", "it is", counts[0] < counts[1] < counts[2],
            ", ".join(f"{count:,} in {year}" for year, count in zip(years, counts, strict=True))),
    ]  # fmt: skip
    bars = Series("double-bit errors", list(range(len(years))), counts)
    return Finding(rows, [Chart("double-bit errors by year", "year", "errors", [bars], kind="bars", names=years)])


def _replaced(bench: Bench) -> Finding:
    path, digest = bench.trace(_LIVES)
    rows = []
    for date, said, near in (("2017-05-01", 8_500, 0.02), ("2017-08-01", 9_500, 0.02)):

        def make(date: str = date) -> int:
            platform = machine_of(path, date)
            stable = Machine(platform.units, platform.info).nodes.stable
            return 0 if stable is None else int(stable.sum())

        ours = bench.part(f"004/stable/{_LIVES}, {digest}, {date}", make)
        rows.append(compared(f"new GPUs on {date}", said, ours, Tolerance(relative=near)))
    return Finding(rows)


def _blocks() -> tuple[Machine, Any]:
    """Return a torus of 2 x 2 x 2 blocks, and the places of its nodes in ALPS's order, shape (nodes, 3)."""
    shape = (8, 4, 8)
    nodes = 2 * shape[0] * shape[1] * shape[2]
    text = f'name = "blocks"\ntopology = {{ kind = "torus", shape = {list(shape)}, nodes_per_router = 2 }}\n'
    platform = parse_platform(f'{text}pools = [{{ name = "all", nodes = {nodes} }}]\n', "blocks")
    machine = Machine(platform.units, platform.info)
    return machine, machine.topology.place[node_order("alps", machine)]


def _figure_4(bench: Bench) -> Finding:
    _, places = _blocks()
    first = places[:64]
    sides = [int(side) for side in first.max(axis=0) - first.min(axis=0) + 1]
    cubes = [first[16 * number : 16 * (number + 1)] for number in range(4)]
    whole = sum([int(side) for side in cube.max(axis=0) - cube.min(axis=0) + 1] == [2, 2, 2] for cube in cubes)
    steps = np.abs(np.diff(first, axis=0)).sum(axis=1)
    rows = [
        compared(f"side of a block along {name}", said, side, _EXACT)
        for name, said, side in zip("xyz", (4, 2, 4), sides, strict=True)
    ]
    rows += [
        compared("cubes of 2 x 2 x 2 in it", 4, whole, _EXACT),
        claimed(
            "each is a Hilbert curve",
            "one hop a step",
            int(steps.max()) <= 1,
            f"at most {int(steps.max())} hops a step",
        ),
    ]
    return Finding(rows)


def _figure_5(bench: Bench) -> Finding:
    _, places = _blocks()
    blocks = [tuple(int(side) for side in places[64 * number] // (4, 2, 4)) for number in range(len(places) // 64)]
    whole = all(
        (places[64 * number : 64 * (number + 1)] // (4, 2, 4) == block).all() for number, block in enumerate(blocks)
    )
    rows = [
        claimed("blocks follow each other along z, then y, then x", "as drawn", blocks == sorted(blocks), f"{blocks}"),
        claimed(
            "a block is filled before the next", "it is", whole, f"{len(blocks)} of {len(blocks)}" if whole else "not"
        ),
    ]
    return Finding(rows)


def _figure_7(bench: Bench) -> Finding:
    platform = drawn_machine(_STABLE, 1)
    machine = Machine(platform.units, platform.info)
    stable = machine.nodes.stable
    assert stable is not None
    base, aware = list_order(machine, "alps", False), list_order(machine, "alps", True)
    first = stable[aware[:_STABLE]].all() and not stable[aware[_STABLE:]].any()
    kept = (aware[:_STABLE] == base[stable[base]]).all() and (aware[_STABLE:] == base[~stable[base]]).all()
    share = 100 * float(stable[base[:_STABLE]].mean())
    return Finding(
        [
            FigureRow("stable nodes among the first 8,500 of ALPS's list", None, share, "%"),
            claimed(
                "new GPUs are at the top of the list, old ones below",
                "they are",
                bool(first),
                "as told" if first else "no",
            ),
            claimed("the ordering of each kind is maintained", "it is", bool(kept), "as told" if kept else "no"),
        ]
    )


def _plain(one: Month, machine: int) -> dict[str, Any]:
    """Return a month's figures as plain values."""
    low = {name: (one.nodes > a * machine) & (one.nodes <= b * machine) for name, (a, b) in BUCKETS.items()}
    return {
        "utilisation": one.utilisation,
        "stable hours": one.stable_hours,
        "gpu stable hours": one.gpu_stable_hours,
        "leadership hours": one.leadership_hours,
        "delivered": list(one.delivered),
        "struck": list(one.struck),
        "hops": one.mean_hops,
        "bucket hops": {name: float(one.hops[mine].mean()) for name, mine in low.items()},
        "bucket stable": {name: list(one.stable_nodes(name, machine)) for name in BUCKETS},
    }


def _month(bench: Bench, case: str, seed: int, machine: str = "drawn", draw: int | None = None) -> dict[str, Any]:
    """Return a month of Titan: ``machine`` "drawn" with 8,500 stable nodes anywhere, or "lives"."""
    key = machine if machine == "drawn" else f"{_LIVES}, {bench.trace(_LIVES)[1]}, {_DATE}"

    def make() -> dict[str, Any]:
        platform = _machine(bench, machine, seed)
        jobs = generate_jobs(load_classes("titan-month"), seed)
        told = Machine(platform.units, platform.info)
        stable = told.nodes.stable
        assert stable is not None
        outages = None if draw is None else drawn_outages(stable, TABLE_II, draw)
        one = month(platform, jobs, case, outages)
        order = list_order(told, "alps", False)
        held = [float(part.mean()) for part in np.array_split(one.held[order], _PARTS)]
        return {**_plain(one, platform.units), "held": held}

    name = f"004/month/{case}, seed {seed}, {key}" + ("" if draw is None else f", failures {draw}")
    found: dict[str, Any] = bench.part(name, make)
    return found


def _machine(bench: Bench, machine: str, seed: int) -> Platform:
    return drawn_machine(_STABLE, seed) if machine == "drawn" else machine_of(bench.trace(_LIVES)[0], _DATE)


def _months(bench: Bench, case: str, machine: str = "drawn") -> list[dict[str, Any]]:
    return [_month(bench, case, seed, machine) for seed in range(1, bench.size.months + 1)]


def _mean(months: list[dict[str, Any]], *path: str | int) -> float:
    """Return the mean over months of a figure."""
    values = []
    for one in months:
        told: Any = one
        for step in path:
            told = told[step]
        values.append(told)
    return fsum(values) / len(values)


def _figure_6(bench: Bench) -> Finding:
    months = {case: _months(bench, case) for case in (FIRST_FIT, "DE16, base")}
    series = []
    for case, runs in months.items():
        hours = [_mean(runs, "held", place) for place in range(_PARTS)]
        series.append(Series(case, [100 * (place + 0.5) / _PARTS for place in range(_PARTS)], hours))
    before = series[0].y
    fifth = _PARTS // 5
    first, last = fsum(before[:fifth]) / fifth, fsum(before[-fifth:]) / fifth
    falls = first > last
    rows = [
        claimed("the front of the list gets the most hours, its end the fewest", "first fit", falls,
            f"{first:,.1f} h a node in the first fifth, {last:,.1f} in the last"),
    ]  # fmt: skip
    return Finding(
        rows, [Chart("hours of a node by its position in ALPS's list", "position, %", "h in the month", series)]
    )


def _bucket(bench: Bench, name: str, said: float | None, machine: str = "drawn") -> Finding:
    """Return one of figures 8 to 10: stable GPUs of a bucket's jobs under four policies."""
    cases = [case for case in CASES if "CPU-only" not in case]
    months = {case: _months(bench, case, machine) for case in cases}
    rows = []
    for case, runs in months.items():
        least = min(one["bucket stable"][name][1] for one in runs)
        most = max(one["bucket stable"][name][2] for one in runs)
        rows.append(
            FigureRow(
                f"{case}: stable GPUs of the mean job", None, _mean(runs, "bucket stable", name, 0), "", least, most
            )
        )
    for point in ("DE16", "Bin20Bin60"):
        more = _mean(months[f"{point}, reordered"], "bucket stable", name, 0) - _mean(
            months[f"{point}, base"], "bucket stable", name, 0
        )
        if said is not None and point == "DE16":
            rows.append(
                compared(f"{point}: more for the mean {name} job when reordered", said, more, Tolerance(relative=0.2))
            )
        else:
            rows.append(FigureRow(f"{point}: more for the mean {name} job when reordered", None, more))
        rows.append(
            claimed(f"{point}: reordered lists give {name} jobs more stable GPUs", "they do", more > 0, f"{more:+,.0f}")
        )
    spots = list(range(3))
    series = [
        Series(case, spots, [_mean(runs, "bucket stable", name, at) for at in (1, 0, 2)])
        for case, runs in months.items()
    ]
    chart = Chart(f"stable GPUs of {name} jobs", "", "GPUs", series, kind="bars", names=("least", "mean", "most"))
    return Finding(rows, [chart], ["Low and high of a policy are the least and the most of its jobs."])


def _figure_8(bench: Bench) -> Finding:
    return _bucket(bench, "Bin20", 500)


def _figure_9(bench: Bench) -> Finding:
    return _bucket(bench, "Bin40", None)


def _figure_10(bench: Bench) -> Finding:
    return _bucket(bench, "Bin60", 1_000)


def _figure_11(bench: Bench, machine: str = "drawn") -> Finding:
    months = {case: _months(bench, case, machine) for case in CASES}
    rows = []
    for point in ("DE16", "Bin20Bin60"):
        base, aware = (_mean(months[f"{point}, {kind}"], "stable hours") for kind in ("base", "reordered"))
        rows += [
            compared(
                f"{point}: more stable hours of leadership jobs",
                33,
                100 * (aware / base - 1),
                Tolerance(absolute=5),
                "%",
            ),
            compared(f"{point}: the same a week", 200_000, (aware - base) / _WEEKS, Tolerance(relative=0.2), "h"),
        ]
    gain = _mean(months[_CPU], "gpu stable hours") - _mean(months["DE16, reordered"], "gpu stable hours")
    rows += [
        compared(
            "CPU-only accounts from the other end: stable hours of GPU jobs, a week",
            100_000,
            gain / _WEEKS,
            Tolerance(relative=0.2),
            "h",
        ),
        claimed("they add stable hours", "they do", gain > 0, f"{gain:+,.0f} h in the month"),
    ]
    share = {case: 100 * _mean(runs, "utilisation") for case, runs in months.items()}
    spread = max(share.values()) - min(share.values())
    rows.append(
        claimed(
            "utilisation stays", "it does", spread < 0.5, f"{min(share.values()):.2f} to {max(share.values()):.2f} %"
        )
    )
    whole = 200_000 / (1 / 3) / (18_688 * WEEK * _STABLE / 18_688)
    rows.append(
        FigureRow("leadership jobs' share of hours with which +33 % are 200,000 h a week", None, 100 * whole, "%")
    )
    names = list(CASES)
    bars = Series(
        "stable hours of leadership jobs",
        list(range(len(names))),
        [_mean(months[case], "stable hours") / _WEEKS for case in names],
    )
    return Finding(rows, [Chart("stable hours of leadership jobs a week", "", "h", [bars], kind="bars", names=names)])


def _figure_11_lives(bench: Bench) -> Finding:
    found = _figure_11(bench, "lives")
    eight, ten = _bucket(bench, "Bin20", 500, "lives"), _bucket(bench, "Bin60", 1_000, "lives")
    return Finding([*found.rows, *eight.rows[-4:], *ten.rows[-4:]], [*found.charts, *eight.charts, *ten.charts])


def _figure_12(bench: Bench) -> Finding:
    base, cpu = _months(bench, "DE16, base"), _months(bench, _CPU)
    rows, series = [], []
    for name, runs in (("DE16, base", base), (_CPU, cpu)):
        series.append(Series(name, list(range(len(BUCKETS))), [_mean(runs, "bucket hops", one) for one in BUCKETS]))
    for bucket in BUCKETS:
        more = _mean(cpu, "bucket hops", bucket) - _mean(base, "bucket hops", bucket)
        rows.append(claimed(f"{bucket}: fragmentation increases", "it does", more > 0, f"{more:+.3f} hops"))
    chart = Chart("mean hops between nodes of a job", "", "hops", series, kind="bars", names=list(BUCKETS))
    return Finding(rows, [chart])


def _figure_15(bench: Bench) -> Finding:
    """Return leadership jobs' share of failures: by closed forms, and simulated with failures at table II's rates."""
    form = 100 * paper_share(_STABLE / 18_688, TABLE_II)
    rows = [
        claimed("closed form: 55 % of hours, a third more stable ones", "less than 45 %", form < 45, f"{form:.1f} %"),
    ]
    series: dict[str, list[float]] = {"simulated": [], "closed form": []}
    names = [case for case in CASES if "CPU-only" not in case]
    shares = {}
    for case in names:
        runs = [_month(bench, case, 1, "drawn", draw) for draw in range(1, bench.size.draws + 1)]
        struck = [sum(one["struck"][kind] for one in runs) for kind in (0, 1)]
        stable = fsum(one["stable hours"] for one in runs)
        own = stable, fsum(one["leadership hours"] for one in runs) - stable
        every = [fsum(one["delivered"][kind] for one in runs) for kind in (0, 1)]
        share, expected = struck[0] / sum(struck), failure_share(own, every, TABLE_II)
        low, high = interval(expected, sum(struck))
        shares[case] = share
        name = f"{case}: share of {sum(struck):,} failures"
        rows.append(FigureRow(name, None, 100 * share, "%"))
        rows.append(
            FigureRow(f"{name}, by the form with its own hours", None, 100 * expected, "%", 100 * low, 100 * high)
        )
        series["simulated"].append(100 * share)
        series["closed form"].append(100 * expected)
    for point in ("DE16", "Bin20Bin60"):
        less = 100 * (shares[f"{point}, base"] - shares[f"{point}, reordered"])
        rows.append(
            compared(
                f"{point}: fewer of the failures strike leadership jobs", 10, less, Tolerance(absolute=3), "points"
            )
        )
    bars = [Series(name, list(range(len(names))), values) for name, values in series.items()]
    chart = Chart("share of failures that strike leadership jobs", "", "%", bars, kind="bars", names=names)
    return Finding(rows, [chart], ["Low and high are where the simulated share lies by chance if the form is right."])


_MONTH: Final = f"python benchmarks/titan_month.py {_LIVES}"
_OURS: Final = (
    "The paper tells neither how many jobs each bin had nor how long they ran: its month is ours. A reserved job "
    "starts the moment that "
    "enough nodes are free, and has nearly all of these: it can choose only if others have left the stable ones, as "
    "with Bin20Bin60."
)
_RUNS: Final = "Application run times on Titan itself."

PAPER: Final = Paper(
    "004",
    "stable GPUs for leadership jobs on Titan",
    "C. Zimmer, D. Maxwell, S. McNally, S. Atchley and S. S. Vazhkudai, GPU Age-Aware Scheduling to Improve the "
    "Reliability of "
    "Leadership Jobs on Titan, 2018",
    (
        Entry(
            "specification",
            "numbers of nodes and GPUs",
            "sections I to III",
            "18,688 nodes, 9,500 of them with new GPUs; 48 % more in Summit; a leadership job has a fifth of the "
            "machine.",
            "pipistrelle show titan",
            _specification,
        ),
        Entry(
            "figure-1",
            "failures of GPUs",
            "figure 1, section II-C",
            "They start increasing in July 2015, cost 12 nodes a day at the peak, and stabilise after the replacement.",
            f"pipistrelle outages describe {_LIVES}",
            _figure_1,
            reason="The figure's numbers by week cannot be read in the text that we have; its claims are checked "
            "with TitanGPULife.",
            needs=(_LIVES,),
        ),
        Entry(
            "figure-2",
            "double-bit errors by year",
            "figure 2, section II-C",
            "58 in 2015, 47 in the first two months of 2016.",
            f"pipistrelle outages describe {_LIVES}",
            _figure_2,
            expects="differs",
            reason="The paper counts job failures, TitanGPULife events of GPUs, of which a device may have several.",
            needs=(_LIVES,),
        ),
        Entry(
            "figure-3",
            "failures and NVIDIA's predictions",
            "figure 3, section II-C",
            "The model predicted over 90 % of the failures at their peak.",
            reason="NVIDIA's predictive model is not published.",
        ),
        Entry(
            "replaced",
            "GPUs that were replaced",
            "sections I and II-C",
            "Roughly 8,500 by early 2017, 9,500 as of July 2017.",
            f"--node-table {_LIVES},at=2017-05-01 (docs/placement.md)",
            _replaced,
            expects="differs",
            reason="TitanGPULife has fewer new GPUs in August than the paper says; of some places it knows no "
            "life that day.",
            needs=(_LIVES,),
        ),
        Entry(
            "table-1",
            "bins of MOAB's configuration",
            "table I, section II-D",
            "Nodes, longest run and aging boost of four bins.",
            "pipistrelle show titan-bins",
            _table_1,
        ),
        Entry(
            "figure-4",
            "ALPS's building block",
            "figure 4, section II-D",
            "4 x 2 x 4 routers: four Hilbert curves of 2 x 2 x 2.",
            "--node-order alps (docs/placing.md)",
            _figure_4,
        ),
        Entry(
            "figure-5",
            "blocks in a torus",
            "figure 5, section II-D",
            "They fill z, then y, then x.",
            "--node-order alps (docs/placing.md)",
            _figure_5,
        ),
        Entry(
            "table-2",
            "time between failures of a job by its GPUs",
            "table II, section III",
            "A job of 4,000 nodes with 0 to 4,000 new GPUs.",
            "pipistrelle placement titan",
            _table_2,
        ),
        Entry(
            "figure-6",
            "hours of nodes by position in the list",
            "figure 6, section III",
            "First fit gives most hours to the front of the list, the fewest to its end.",
            f"pipistrelle placement report RUN; {_MONTH}",
            _figure_6,
            reason="The jobs are ours, a month like Titan's.",
        ),
        Entry(
            "figure-7",
            "the list reordered",
            "figure 7, section III",
            "All new GPUs first, the order of each kind kept.",
            "--node-order alps --age-aware (docs/placing.md)",
            _figure_7,
        ),
        Entry(
            "figure-8",
            "stable GPUs of jobs over 20 %",
            "figure 8, section IV",
            "The average job saw almost 500 more when the list is reordered with the demarcation at 16 nodes.",
            _MONTH,
            _figure_8,
            expects="differs",
            reason=_OURS,
        ),
        Entry(
            "figure-9",
            "stable GPUs of jobs over 40 %",
            "figure 9, section IV",
            "Both reordered models improve significantly.",
            _MONTH,
            _figure_9,
            reason="The text has no numbers of the figure; its claim is checked. A month has few such jobs: over "
            "several months "
            f"it holds with Bin20Bin60 alone. {_OURS}",
        ),
        Entry(
            "figure-10",
            "stable GPUs of jobs over 60 %",
            "figure 10, section IV",
            "Over 1,000 nodes more on average.",
            _MONTH,
            _figure_10,
            expects="differs",
            reason=_OURS,
        ),
        Entry(
            "figure-11",
            "stable hours of leadership jobs",
            "figure 11, section IV, and the abstract",
            "33 % or 200,000 hours a week more; CPU-only accounts from the other end add almost 100,000.",
            _MONTH,
            _figure_11,
            expects="differs",
            reason=_OURS,
        ),
        Entry(
            "figure-11-lives",
            "the same with the GPUs of May 1, 2017",
            "figures 8 to 11, section IV",
            "As figures 8, 10 and 11, with the stable GPUs where they were.",
            f"{_MONTH} --at {_DATE}",
            _figure_11_lives,
            expects="differs",
            reason=_OURS,
            needs=(_LIVES,),
        ),
        Entry(
            "figure-12",
            "fragmentation",
            "figure 12, section IV",
            "Network fragmentation increases as expected.",
            _MONTH,
            _figure_12,
            reason="The text has no numbers of the figure; its claim is checked in mean hops between a job's nodes.",
        ),
        Entry("figure-13", "run times of jobs of 4,096 nodes", "figure 13, section IV-A", "Normalised.", reason=_RUNS),
        Entry("figure-14", "run times of jobs of 8,192 nodes", "figure 14, section IV-A", "Normalised.", reason=_RUNS),
        Entry(
            "figure-15",
            "leadership jobs' share of failures",
            "figure 15, section IV-B",
            "Around 55 % before, less than 45 % from August to November 2017.",
            f"pipistrelle placement titan; {_MONTH}",
            _figure_15,
            expects="differs",
            reason=f"The jobs of production are not public. {_OURS}",
        ),
        Entry(
            "what-if",
            "whom the failures would have struck",
            "section IV-B",
            "65 and 69 % in leadership jobs by the original list in September and October 2017, 46 and 43 % by the "
            "revised one.",
            reason="It needs the jobs that ran on Titan then, which are not public; 'pipistrelle placement whatif' "
            "does it "
            "for a run.",
        ),
    ),
    "placing.md",
)
