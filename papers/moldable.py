"""Paper 003: spares, moldable and grid-shaped applications that wait for a new allocation (docs/resilience.md)."""

from dataclasses import replace
from itertools import pairwise
from typing import Final

import numpy as np

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
from pipistrelle.platforms.failures.yield_model import SHAPES, Allocation, Shape, YieldModel, grid_teams
from pipistrelle.studies.trials.lifetimes import live

_HOUR: Final = 3600.0
_YEAR: Final = 365.25 * 86400.0
#: slide "Main Applicative Scenario"
_SETTING: Final = Allocation(nodes=150 * 150, mtbf=20 * _YEAR, dump=120.0, read=120.0)
#: the waits of the charts, h
_WAITS: Final = tuple(float(f"{hours:.3g}") for hours in np.geomspace(0.1, 100.0, 31))
_TARGETS: Final = tuple(share / 100 for share in range(70, 91))
_DAY: Final = 24 * _HOUR
#: no spares, and the shapes
_ALL: Final[tuple[Shape | None, ...]] = (None, *SHAPES)


def _model(shape: Shape | None, allocation: Allocation = _SETTING) -> YieldModel:
    """Return the slides' sums for a shape; without spares each allocation ends with its first failure."""
    return YieldModel(shape or "rigid", allocation, most=0 if shape is None else None)


def _name(shape: Shape | None) -> str:
    return shape or "no spares"


def _simulated(bench: Bench, shape: Shape | None, spares: int, wait: float) -> tuple[float, float, float]:
    """Return the yield (%) of allocations that the server's code lives through, and its 95 % interval."""
    count = max(bench.size.failures // (spares + 1), 20)

    def make() -> list[list[float]]:
        key = np.random.SeedSequence(1, spawn_key=(_ALL.index(shape), spares))
        lived = live(
            shape or "rigid",
            _SETTING,
            failures=spares,
            lifetimes=count,
            generator=np.random.Generator(np.random.PCG64(key)),
        )
        return [list(lived.yield_after(hours * _HOUR)) for hours in bench.size.waits]

    waits = ", ".join(f"{hours:g}" for hours in bench.size.waits)
    found = bench.part(f"003/lifetimes/{_name(shape)}, {spares} spares, {count} allocations, waits {waits} h", make)
    value, low, high = (100 * share for share in found[bench.size.waits.index(wait)])
    return value, low, high


def _example(bench: Bench) -> Finding:
    ours = 6 / 8 * 0.8 * 1 / 1.05
    return Finding([compared("6/8 x 0.8 x 1/1.05", 0.57, ours, Tolerance(absolute=0.005))])


def _setting(bench: Bench) -> Finding:
    titan = replace(_SETTING, nodes=18_688)
    daily = 86_400.0 / titan.mtbf_of_all
    return Finding(
        [
            compared("nodes: 150 x 150", 22_500, _SETTING.nodes, Tolerance()),
            compared("30 % of 100 TB at 1.4 TB/s", 2.0, 30 / 1.4 / 60, Tolerance(absolute=0.25), "min"),
            FigureRow("all 100 TB at 1.4 TB/s", None, 100 / 1.4 / 60, "min"),
            claimed("failures a day of 18,688 nodes", "a few", 1 < daily < 10, f"{daily:.2f}"),
            FigureRow("time between failures of all 22,500 nodes", None, _SETTING.mtbf_of_all / _HOUR, "h"),
            FigureRow("work between two dumps", None, _SETTING.interval / 60, "min"),
        ]
    )


def _grids(bench: Bench) -> Finding:
    """Return how many nodes of 6 x 6 work after each failure."""
    teams = grid_teams(36, 11).astype(int).tolist()
    spares = [36 - failed - team for failed, team in enumerate(teams)]
    rows = [
        compared("(a) nodes of the grid at first", 36, teams[0], Tolerance()),
        compared("(b) after the first failure: 5 x 6", 30, teams[1], Tolerance()),
        compared("(b) spares then", 5, spares[1], Tolerance()),
        claimed("(c) further failures are replaced by spares", "5 of them", teams[1:7] == [30] * 6, f"{teams[1:7]}"),
        compared("(d) the next failure: 5 x 5", 25, teams[7], Tolerance()),
        compared("(d) spares then: p - 2", 4, spares[7], Tolerance()),
    ]
    chart = Chart(
        "nodes that work in a grid of 6 x 6",
        "failures",
        "nodes",
        [Series("grid", list(range(len(teams))), teams), Series("spares", list(range(len(teams))), spares)],
        kind="steps",
    )
    return Finding(rows, [chart])


def _time(bench: Bench) -> Finding:
    """Return T_R = T_M, the sum of mu_i and the wait."""
    rows = []
    for spares in (0, 53, 259):
        own = sum(_SETTING.mtbf / (_SETTING.nodes - failed) for failed in range(spares + 1)) + _DAY
        for shape in ("rigid", "moldable"):
            found = float(_model(shape).between_restarts(_DAY)[spares])
            rows.append(
                compared(f"{shape}, F = {spares}, D = 24 h", own / _HOUR, found / _HOUR, Tolerance(relative=1e-9), "h")
            )
    return Finding(rows)


def _work(bench: Bench) -> Finding:
    """Return the slides' yields beside what is simulated, at the best F."""
    rows = []
    for wait in bench.size.waits:
        for shape in _ALL:
            best = _model(shape).optimum(wait * _HOUR)
            value, low, high = _simulated(bench, shape, best.failures, wait)
            name = f"{_name(shape)}, F = {best.failures}, D = {wait:g} h"
            rows.append(compared(name, 100 * best.share, value, Tolerance(absolute=0.5), "%", (low, high)))
    return Finding(rows, notes=["Under 'paper' is what the slides' forms say: the text has no numbers of the plots."])


def _yields(bench: Bench) -> Finding:
    series = []
    found: dict[Shape | None, list[float]] = {}
    for shape in _ALL:
        model = _model(shape)
        found[shape] = [100 * model.optimum(wait * _HOUR).share for wait in _WAITS]
        series.append(Series(_name(shape), _WAITS, found[shape]))
    none = found[None]
    at = {wait: place for place, wait in enumerate(_WAITS)}
    day = max(wait for wait in _WAITS if wait <= 24)
    rows = [
        claimed(
            "even with a wait in minutes, the yield drops extremely fast without spares",
            "it does",
            none[0] - none[at[1.0]] > 5,
            f"{none[0]:.1f} % after 6 minutes, {none[at[1.0]]:.1f} % after an hour, {none[at[10.0]]:.1f} % after ten",
        ),
        claimed(
            "the impact of wait time is mitigated",
            "by spares",
            min(found[shape][at[day]] for shape in SHAPES) > 85,
            ", ".join(f"{shape} {found[shape][at[day]]:.2f} % after {day:g} h" for shape in SHAPES),
        ),
        claimed(
            "moldable approaches are comparable in efficiency to rigid ones",
            "they are",
            max(abs(a - b) for a, b in zip(found["moldable"], found["rigid"], strict=True)) < 2,
            f"at most {max(abs(a - b) for a, b in zip(found['moldable'], found['rigid'], strict=True)):.2f} points "
            f"apart",
        ),
    ]
    return Finding(rows, [Chart("optimal yield by wait", "wait, h", "yield, %", series, log_x=True)])


def _failures(bench: Bench) -> Finding:
    series = []
    beyond = {}
    for shape in SHAPES:
        model = _model(shape)
        best = [model.optimum(wait * _HOUR).failures for wait in _WAITS]
        series.append(Series(shape, _WAITS, best))
        beyond[shape] = next((w for w, count in zip(_WAITS, best, strict=True) if count >= 0.02 * _SETTING.nodes), None)
    worst = max(one.y[-1] for one in series)
    rows = [
        claimed(
            "the best number of failures is less than 2 % of total resources",
            "it is",
            all(wait is None for wait in beyond.values()),
            f"up to {100 * worst / _SETTING.nodes:.2f} % at {_WAITS[-1]:g} h",
        )
    ]
    for shape, wait in beyond.items():
        rows.append(FigureRow(f"{shape}: the first of these waits with 2 % or more", None, wait, "h"))
    rises = all(a <= b for one in series for a, b in pairwise(one.y))
    rows.append(claimed("it rises with the wait", "it does", rises, f"{rises}"))
    return Finding(rows, [Chart("optimal number of failures by wait", "wait, h", "failures", series, log_x=True)])


def _lengths(bench: Bench) -> Finding:
    series = []
    for shape in _ALL:
        model = _model(shape)
        lives = [float(model.life[model.optimum(wait * _HOUR).failures]) / 86_400.0 for wait in _WAITS]
        series.append(Series(_name(shape), _WAITS, lives))
    rigid, moldable = (next(one.y for one in series if one.name == name) for name in ("rigid", "moldable"))
    longer = all(b >= a for a, b in zip(rigid, moldable, strict=True))
    day = _WAITS.index(max(wait for wait in _WAITS if wait <= 24))
    told = f"{rigid[day]:.1f} and {moldable[day]:.1f} days for a wait of {_WAITS[day]:g} h"
    rows = [
        claimed(
            "moldable applications keep their allocation longer than rigid ones", "a major difference", longer, told
        )
    ]
    return Finding(rows, [Chart("length of allocations by wait", "wait, h", "days", series, log_x=True, log_y=True)])


def _targets(bench: Bench) -> Finding:
    series, rows = [], []
    for shape in _ALL:
        model = _model(shape)
        found = [(target, model.largest_wait(target)) for target in _TARGETS]
        kept = [(100 * target, best.wait / _HOUR) for target, best in found if best is not None and best.wait > 0]
        series.append(Series(_name(shape), [x for x, _ in kept], [y for _, y in kept]))
        best = model.largest_wait(0.89)
        rows.append(
            FigureRow(f"{_name(shape)}: largest wait for 89 %", None, None if best is None else best.wait / _HOUR, "h")
        )
    return Finding(rows, [Chart("largest wait by target yield", "target yield, %", "wait, h", series, log_y=True)])


def _conclusion(bench: Bench) -> Finding:
    few = _SETTING.nodes // 100
    rows = []
    for shape in SHAPES:
        share = 100 * float(_model(shape).yields(_DAY)[few])
        holds = share > 89
        rows.append(claimed(f"{shape}: 1 % of spares and a day's wait", "above 89 %", holds, f"{share:.2f} %"))
        value, low, high = _simulated(bench, shape, few, 24.0)
        rows.append(FigureRow(f"{shape}: the same, simulated", None, value, "%", low, high))
        wait = _model(shape).largest_wait(0.89, few)
        rows.append(
            FigureRow(f"{shape}: 89 % holds up to a wait of", None, None if wait is None else wait.wait / _HOUR, "h")
        )
    readings = {
        "reads take no time": replace(_SETTING, read=0.0),
        "MTBF of a node 24 years": replace(_SETTING, mtbf=24 * _YEAR),
        "18,688 nodes": replace(_SETTING, nodes=18_688),
    }
    for name, one in readings.items():
        least = min(100 * float(_model(shape, one).yields(_DAY)[one.nodes // 100]) for shape in SHAPES)
        rows.append(FigureRow(f"the least of the three if {name}", None, least, "%"))
    return Finding(rows)


_YIELD: Final = "pipistrelle yield --nodes 22500 --mtbf 20y --dump 2min"

PAPER: Final = Paper(
    "003",
    "spares, moldable and grid-shaped applications",
    "V. Le Fevre et al., Performance of moldable applications, slides, ENS Lyon, August 28, 2018",
    (
        Entry(
            "wait-times",
            "waits on the K computer",
            "slide 'How long is the Wait Time?'",
            "Average waits by size of allocation, of hours to days.",
            reason="The operations data of K are not given; the plot's numbers are lost in the text that we have.",
        ),
        Entry(
            "example",
            "a yield by hand",
            "slide on the yield",
            "8 nodes, 2 spares, checkpoints of 20 %, a wait of 5 %: about 0.57.",
            "6/8 x 0.8 x 1/1.05",
            _example,
        ),
        Entry(
            "setting",
            "the setting of all plots",
            "slide 'Main Applicative Scenario'",
            "22,500 nodes, an MTBF of 20 years each, and dumps of 2 minutes: 30 % of 100 TB at 1.4 TB/s.",
            f"{_YIELD} --waits 24h",
            _setting,
            expects="differs",
            reason="30 TB at 1.4 TB/s take a fraction of a minute. The plots are made with 2 minutes.",
        ),
        Entry(
            "grids",
            "how a grid shrinks",
            "slides 'Applications Models: GridShaped'",
            "6 x 6 nodes lose a row to the first failure, use its other nodes as spares, then lose a column.",
            "pipistrelle.platforms.failures.yield_model.grid_teams",
            _grids,
        ),
        Entry(
            "time",
            "the time between two restarts",
            "slides 'Rigid' and 'Moldable Applications - Time'",
            "T_R = T_M = the sum of mu_i, i = N ... N - F, and the wait D.",
            f"{_YIELD} --spares 259 --waits 24h",
            _time,
        ),
        Entry(
            "work",
            "the forms of the yield",
            "slides '... - Work' and '... - Yield'",
            "Yields of rigid and moldable applications, to the first order.",
            f"{_YIELD} --waits 1h,24h --simulate 1000",
            _work,
            reason="For the grid there is no form on the slides; ours counts in the same way.",
        ),
        Entry(
            "yields",
            "optimal yield by wait",
            "slide 'Optimal yield as function of the wait time'",
            "Without spares the yield drops extremely fast; spares mitigate that; moldable and rigid are comparable.",
            f"{_YIELD} --waits 0.1h,1h,10h,24h,100h",
            _yields,
            reason="The plot's numbers are lost in the text that we have; its claims are checked.",
        ),
        Entry(
            "failures",
            "optimal number of failures by wait",
            "slide 'Optimal number of failures tolerated between two full restarts'",
            "Less than 2 % of total resources.",
            f"{_YIELD} --waits 0.1h,1h,10h,24h,100h",
            _failures,
            expects="differs",
            reason="It holds up to some wait for each application, which the figures tell, not for all waits up to "
            "100 h.",
        ),
        Entry(
            "lengths",
            "length of allocations by wait",
            "slide on the length of allocations",
            "A major difference between moldable and rigid applications.",
            f"{_YIELD} --waits 0.1h,1h,10h,24h,100h",
            _lengths,
            reason="The plot's numbers are lost in the text that we have; its claim is checked.",
        ),
        Entry(
            "targets",
            "largest wait for a target yield",
            "slide 'Maximum wait time allowed to reach a target yield'",
            "By target yield and application.",
            f"{_YIELD} --target 89%",
            _targets,
            expects="made anew",
            reason="The plot's numbers are lost in the text that we have.",
        ),
        Entry(
            "conclusion",
            "1 % of spares keep the yield above 89 %",
            "slide 'Conclusion'",
            "For any kind of applications, even with a day of wait time.",
            f"{_YIELD} --spares 1% --waits 24h --simulate 1000",
            _conclusion,
            expects="differs",
            reason="By the slides' own forms it holds for moldable applications alone; rigid and grid-shaped ones "
            "are just below. With "
            "restarts that read nothing, a node MTBF of 24 years or Titan's 18,688 nodes it holds for all three.",
        ),
    ),
    "resilience.md",
)
