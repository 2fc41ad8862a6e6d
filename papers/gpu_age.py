"""Paper 004: stable GPUs for Titan's leadership jobs (docs/how-to/placement.md)."""

from collections.abc import Mapping
from math import fsum
from typing import Any, Final

import numpy as np

from pipistrelle.models.workloads.class_jobs import generate_jobs
from pipistrelle.models.workloads.classes import load_classes
from pipistrelle.papers.bench import Bench
from pipistrelle.papers.entry import Series, bars
from pipistrelle.papers.sheet import Compute, Sheet
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
#: number of stable GPUs in the paper's simulation (section IV)
_STABLE: Final = 8_500
_WEEKS: Final = MONTH / HOUR / WEEK
_PARTS: Final = 20
_POINTS: Final = ("DE16", "Bin20Bin60")
_CPU: Final = "DE16 + CPU-only, reordered"
#: the policies of figures 8 to 10 and 15 of paper 004
_POLICIES: Final = tuple(case for case in CASES if "CPU-only" not in case)


def _machine(platform: Platform) -> Machine:
    return Machine(platform.units, platform.info)


def _stable(machine: Machine) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return for each node whether its GPU is stable.

    All are False if the platform has no GPU data.
    """
    stable = machine.nodes.stable
    return np.zeros(len(machine.nodes), dtype=np.bool_) if stable is None else stable


def table_1(bench: Bench, sheet: Sheet) -> None:
    """Compare table 1 of paper 004 with the bins of the bundled preset ``titan-bins``."""
    bins = {one["name"]: one for one in library_preset("titan-bins").order_options["bins"]}
    largest = load_platform("titan").units
    for name, least, most, longest, boost in sheet.printed["bins"]:
        own = bins[name]
        sheet.row("least", own["smallest"], least, bin=name)
        sheet.row("most", largest, most, bin=name)
        sheet.row("longest", parse_seconds(own["longest-walltime"]) / HOUR, longest, bin=name)
        sheet.row("boost", parse_seconds(own.get("boost", "0d"), or_zero=True) / 86_400.0, boost, bin=name)
        largest = own["smallest"] - 1


def table_2(bench: Bench, sheet: Sheet) -> None:
    """Compute table 2 of paper 004: the MTBF of jobs with 4,000 nodes."""
    ours = table_ii()
    for new, hours in PRINTED_TABLE_II.items():
        sheet.row("mtbf", ours[new], hours, new=new, old=4_000 - new)


def specification(bench: Bench, sheet: Sheet) -> None:
    """Count the nodes and GPUs of Titan."""
    nodes = len(_machine(load_platform("titan")).nodes)
    sheet.row("nodes", nodes)
    sheet.row("both", nodes)
    sheet.row("summit", 100 * (27_648 / nodes - 1))
    sheet.row("fifth", nodes / 5, LEADERSHIP)


def _log(bench: Bench) -> dict[str, dict[str, int]]:
    """Return counts of GPU failures by month.

    The counts are of all failures, double-bit errors, and GPUs that failed permanently.
    """
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
    """Return the mean of monthly counts from ``begin`` to ``end``, both included."""
    months = np.arange(np.datetime64(begin), np.datetime64(end) + 1).astype(str).tolist()
    return fsum(counts.get(one, 0) for one in months) / len(months)


def figure_1(bench: Bench, sheet: Sheet) -> None:
    """Count the failures of Titan's GPUs by month."""
    told = _log(bench)
    failed = told["all"]
    before, since = _monthly(failed, "2014-01", "2015-06"), _monthly(failed, "2015-07", "2015-12")
    peak, after = _monthly(failed, "2016-04", "2017-01"), _monthly(failed, "2017-08", "2018-05")
    lives, failures = max(told["lives"].values()) / 30, max(failed.values()) / 30
    sheet.claim("increase", since > 3 * before, before=before, since=since)
    sheet.claim("peak", lives <= 12 <= failures, lives=lives, failures=failures)
    sheet.claim("stable", after < peak / 2, peak=peak, after=after)
    names = sorted(failed)
    sheet.chart("failures", [bars("failures of GPUs", [failed[one] for one in names])], names=names)


def figure_2(bench: Bench, sheet: Sheet) -> None:
    """Count the double-bit errors of Titan's GPUs by year."""
    told = _log(bench)["DBE"]
    counts = {
        str(year): sum(count for month, count in told.items() if month.startswith(str(year)))
        for year in range(2014, 2019)
    }
    sheet.row("early", told.get("2016-01", 0) + told.get("2016-02", 0))
    sheet.row("year", counts["2015"])
    rising = counts["2014"] < counts["2015"] < counts["2016"]
    sheet.claim("rate", rising, counts=", ".join(f"{count:,} in {year}" for year, count in counts.items()))
    sheet.chart("errors", [bars("double-bit errors", list(counts.values()))], names=list(counts))


def replaced(bench: Bench, sheet: Sheet) -> None:
    """Count Titan's new (stable) GPUs on the paper's dates, from the log of all GPUs."""
    path, digest = bench.trace(_LIVES)
    for date, said in sheet.printed["dates"].items():

        def make(date: str = date) -> int:
            return int(_stable(_machine(machine_of(path, date))).sum())

        sheet.row("new", bench.part(f"004/stable/{_LIVES}, {digest}, {date}", make), said, date=date)


def _blocks() -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return coordinates of the nodes of an 8 x 4 x 8 torus in ALPS's order.

    The result has shape (nodes, 3).
    """
    shape = (8, 4, 8)
    nodes = 2 * shape[0] * shape[1] * shape[2]
    text = f'name = "blocks"\ntopology = {{ kind = "torus", shape = {list(shape)}, nodes_per_router = 2 }}\n'
    machine = _machine(parse_platform(f'{text}pools = [{{ name = "all", nodes = {nodes} }}]\n', "blocks"))
    places: np.ndarray[Any, np.dtype[np.int64]] = machine.topology.place[node_order("alps", machine)]
    return places


def _sides(places: np.ndarray[Any, np.dtype[np.int64]]) -> list[int]:
    return [int(side) for side in places.max(axis=0) - places.min(axis=0) + 1]


def figure_4(bench: Bench, sheet: Sheet) -> None:
    """Measure the building block of ALPS's node order (figure 4 of paper 004)."""
    first = _blocks()[:64]
    for axis, said, side in zip("xyz", (4, 2, 4), _sides(first), strict=True):
        sheet.row("side", side, said, axis=axis)
    sheet.row("cubes", sum(_sides(cube) == [2, 2, 2] for cube in np.split(first, 4)))
    hops = int(np.abs(np.diff(first, axis=0)).sum(axis=1).max())
    sheet.claim("hilbert", hops <= 1, hops=hops)


def figure_5(bench: Bench, sheet: Sheet) -> None:
    """Check the order of ALPS's building blocks in a torus (figure 5 of paper 004)."""
    blocks = np.split(_blocks() // (4, 2, 4), 8)
    corners = [tuple(int(side) for side in block[0]) for block in blocks]
    sheet.claim("order", corners == sorted(corners), blocks=corners)
    sheet.claim("filled", all((block == block[0]).all() for block in blocks), count=len(blocks))


def figure_7(bench: Bench, sheet: Sheet) -> None:
    """Reorder ALPS's list of nodes by the age of GPUs (figure 7 of paper 004)."""
    machine = _machine(drawn_machine(_STABLE, 1))
    stable = _stable(machine)
    base, aware = list_order(machine, "alps", False), list_order(machine, "alps", True)
    first = stable[aware[:_STABLE]].all() and not stable[aware[_STABLE:]].any()
    kept = (aware[:_STABLE] == base[stable[base]]).all() and (aware[_STABLE:] == base[~stable[base]]).all()
    sheet.row("share", 100 * float(stable[base[:_STABLE]].mean()))
    sheet.claim("top", bool(first))
    sheet.claim("kept", bool(kept))


def _plain(one: Month, machine: int) -> dict[str, Any]:
    """Return the results of a simulated month as plain values.

    The machine has ``machine`` nodes.
    """
    inside = {name: (one.nodes > a * machine) & (one.nodes <= b * machine) for name, (a, b) in BUCKETS.items()}
    return {
        "utilisation": one.utilisation,
        "stable hours": one.stable_hours,
        "gpu stable hours": one.gpu_stable_hours,
        "leadership hours": one.leadership_hours,
        "delivered": list(one.delivered),
        "struck": list(one.struck),
        "hops": one.mean_hops,
        "bucket hops": {name: float(one.hops[mine].mean()) for name, mine in inside.items()},
        "bucket stable": {name: list(one.stable_nodes(name, machine)) for name in BUCKETS},
    }


def _month(bench: Bench, case: str, seed: int, machine: str = "drawn", draw: int | None = None) -> dict[str, Any]:
    """Return the results of a simulated month of Titan under the policy ``case``.

    Stable GPUs are drawn at random (``machine`` "drawn") or come from the log of real GPUs ("lives"). ``seed`` is for
    the jobs and the drawn GPUs, ``draw`` for failures; without ``draw`` no node fails.
    """
    drawn = machine == "drawn"
    key = machine if drawn else f"{_LIVES}, {bench.trace(_LIVES)[1]}, {_DATE}"

    def make() -> dict[str, Any]:
        platform = drawn_machine(_STABLE, seed) if drawn else machine_of(bench.trace(_LIVES)[0], _DATE)
        told = _machine(platform)
        outages = None if draw is None else drawn_outages(_stable(told), TABLE_II, draw)
        one = month(platform, generate_jobs(load_classes("titan-month"), seed), case, outages)
        parts = np.array_split(one.held[list_order(told, "alps", False)], _PARTS)
        return {**_plain(one, platform.units), "held": [float(part.mean()) for part in parts]}

    name = f"004/month/{case}, seed {seed}, {key}" + ("" if draw is None else f", failures {draw}")
    found: dict[str, Any] = bench.part(name, make)
    return found


def _months(bench: Bench, case: str, machine: str = "drawn") -> list[dict[str, Any]]:
    return [_month(bench, case, seed, machine) for seed in range(1, bench.size.months + 1)]


def _mean(months: list[dict[str, Any]], *path: str | int) -> float:
    """Return the mean over months of the value under the nested keys ``path``."""
    values = []
    for one in months:
        told: Any = one
        for step in path:
            told = told[step]
        values.append(told)
    return fsum(values) / len(values)


def figure_6(bench: Bench, sheet: Sheet) -> None:
    """Simulate how long each node in ALPS's list of nodes is in use."""
    positions = [100 * (place + 0.5) / _PARTS for place in range(_PARTS)]
    series = []
    for case in (FIRST_FIT, "DE16, base"):
        runs = _months(bench, case)
        series.append(Series(case, positions, [_mean(runs, "held", place) for place in range(_PARTS)]))
    fifth = _PARTS // 5
    first, last = fsum(series[0].y[:fifth]) / fifth, fsum(series[0].y[-fifth:]) / fifth
    sheet.claim("front", first > last, first=first, last=last)
    sheet.chart("hours", series)


def _bucket(bench: Bench, sheet: Sheet, name: str, machine: str = "drawn") -> None:
    """Simulate how many stable GPUs the jobs of one size bin get, by policy.

    The result is one of the figures 8 to 10 of paper 004.
    """
    months = {case: _months(bench, case, machine) for case in _POLICIES}
    for case, runs in months.items() if machine == "drawn" else ():
        ends = [one["bucket stable"][name] for one in runs]
        span = min(one[1] for one in ends), max(one[2] for one in ends)
        sheet.row("mean_job", _mean(runs, "bucket stable", name, 0), interval=span, case=case)
    for point in _POINTS:
        base, aware = (_mean(months[f"{point}, {kind}"], "bucket stable", name, 0) for kind in ("base", "reordered"))
        said = sheet.printed["more"].get(name) if point == "DE16" else None
        sheet.row("more", aware - base, said, point=point, bucket=name)
        sheet.claim("reordered", aware > base, point=point, bucket=name, more=aware - base)
    lines = [bars(case, [_mean(runs, "bucket stable", name, at) for at in (1, 0, 2)]) for case, runs in months.items()]
    sheet.chart("buckets", lines, bucket=name)


def figure_11(bench: Bench, sheet: Sheet, machine: str = "drawn") -> None:
    """Simulate leadership jobs' hours on stable GPUs (figure 11 of paper 004)."""
    months = {case: _months(bench, case, machine) for case in CASES}
    for point in _POINTS:
        base, aware = (_mean(months[f"{point}, {kind}"], "stable hours") for kind in ("base", "reordered"))
        sheet.row("hours", 100 * (aware / base - 1), point=point)
        sheet.row("weekly", (aware - base) / _WEEKS, point=point)
    gain = _mean(months[_CPU], "gpu stable hours") - _mean(months["DE16, reordered"], "gpu stable hours")
    sheet.row("cpu", gain / _WEEKS)
    sheet.claim("added", gain > 0, gain=gain)
    shares = [100 * _mean(runs, "utilisation") for runs in months.values()]
    sheet.claim("utilisation", max(shares) - min(shares) < 0.5, low=min(shares), high=max(shares))
    sheet.row("stable_share", 100 * (200_000 / (1 / 3) / (18_688 * WEEK * _STABLE / 18_688)))
    hours = [_mean(runs, "stable hours") / _WEEKS for runs in months.values()]
    sheet.chart("hours", [bars("stable hours of leadership jobs", hours)], names=list(CASES))


def figure_11_lives(bench: Bench, sheet: Sheet) -> None:
    """Simulate figures 8, 10 and 11 of paper 004 with Titan's real stable GPUs."""
    figure_11(bench, sheet, "lives")
    _bucket(bench, sheet, "Bin20", "lives")
    _bucket(bench, sheet, "Bin60", "lives")


def figure_12(bench: Bench, sheet: Sheet) -> None:
    """Simulate the mean hops between a job's nodes (figure 12 of paper 004)."""
    cases = ("DE16, base", _CPU)
    hops = [[_mean(_months(bench, case), "bucket hops", bucket) for bucket in BUCKETS] for case in cases]
    for bucket, base, cpu in zip(BUCKETS, *hops, strict=True):
        sheet.claim("hops", cpu > base, bucket=bucket, more=cpu - base)
    sheet.chart("hops", [bars(case, values) for case, values in zip(cases, hops, strict=True)], names=list(BUCKETS))


def figure_15(bench: Bench, sheet: Sheet) -> None:
    """Compute leadership jobs' share of failures, by formula and by simulation."""
    form = 100 * paper_share(_STABLE / 18_688, TABLE_II)
    sheet.claim("closed", form < 45, form=form)
    forms, shares = [], {}
    for case in _POLICIES:
        runs = [_month(bench, case, 1, "drawn", draw) for draw in range(1, bench.size.draws + 1)]
        struck = [sum(one["struck"][kind] for one in runs) for kind in (0, 1)]
        stable = fsum(one["stable hours"] for one in runs)
        own = stable, fsum(one["leadership hours"] for one in runs) - stable
        every = [fsum(one["delivered"][kind] for one in runs) for kind in (0, 1)]
        share, expected = struck[0] / sum(struck), failure_share(own, every, TABLE_II)
        low, high = interval(expected, sum(struck))
        shares[case] = share
        forms.append(100 * expected)
        sheet.row("share", 100 * share, case=case, failures=sum(struck))
        sheet.row("form", 100 * expected, interval=(100 * low, 100 * high), case=case, failures=sum(struck))
    for point in _POINTS:
        sheet.row("fewer", 100 * (shares[f"{point}, base"] - shares[f"{point}, reordered"]), point=point)
    simulated = [100 * share for share in shares.values()]
    sheet.chart("share", [bars("simulated", simulated), bars("closed form", forms)], names=_POLICIES)


COMPUTED: Final[Mapping[str, Compute]] = {
    "specification": specification,
    "figure-1": figure_1,
    "figure-2": figure_2,
    "replaced": replaced,
    "table-1": table_1,
    "figure-4": figure_4,
    "figure-5": figure_5,
    "table-2": table_2,
    "figure-6": figure_6,
    "figure-7": figure_7,
    "figure-8": lambda bench, sheet: _bucket(bench, sheet, "Bin20"),
    "figure-9": lambda bench, sheet: _bucket(bench, sheet, "Bin40"),
    "figure-10": lambda bench, sheet: _bucket(bench, sheet, "Bin60"),
    "figure-11": figure_11,
    "figure-11-lives": figure_11_lives,
    "figure-12": figure_12,
    "figure-15": figure_15,
}
