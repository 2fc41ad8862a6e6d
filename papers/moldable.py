"""Paper 003: spares, moldable and grid-shaped jobs (docs/how-to/resilience.md)."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Final

import numpy as np

from pipistrelle.papers.bench import Bench
from pipistrelle.papers.entry import Series
from pipistrelle.papers.sheet import Compute, Sheet
from pipistrelle.platforms.failures.yield_model import SHAPES, SLIDES, Allocation, Shape, YieldModel, grid_teams
from pipistrelle.studies.trials.lifetimes import live
from pipistrelle.traces.generator import seeded

_HOUR: Final = 3600.0
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365.25 * _DAY
#: waiting times in the charts, h
_WAITS: Final = tuple(float(f"{hours:.3g}") for hours in np.geomspace(0.1, 100.0, 31))
#: index of the longest waiting time up to one day
_A_DAY: Final = sum(wait <= 24 for wait in _WAITS) - 1
_TARGETS: Final = tuple(share / 100 for share in range(70, 91))
#: cases of the charts: jobs without spares, and the job shapes
_ALL: Final[tuple[Shape | None, ...]] = (None, *SHAPES)


def _model(shape: Shape | None, allocation: Allocation = SLIDES) -> YieldModel:
    """Return the yield model of paper 003 for a job shape, or for jobs without spares."""
    return YieldModel(shape or "rigid", allocation, most=0 if shape is None else None)


def _name(shape: Shape | None) -> str:
    return shape or "no spares"


def _by_wait(shape: Shape | None, of: Callable[[YieldModel, float], float]) -> Series:
    """Return a chart series with a value for each queue wait of paper 003.

    The value is ``of(model, wait)``; waits are in seconds. ``model`` is the yield model for ``shape``.
    """
    model = _model(shape)
    return Series(_name(shape), _WAITS, [of(model, wait * _HOUR) for wait in _WAITS])


def _simulated(bench: Bench, shape: Shape | None, spares: int, wait: float) -> tuple[float, float, float]:
    """Return the simulated yield (%) and the ends of its 95 % interval.

    Each allocation follows a queue wait of ``wait`` hours.
    """
    count = max(bench.size.failures // (spares + 1), 20)

    def make() -> list[list[float]]:
        generator = seeded(1, _ALL.index(shape), spares)
        lived = live(shape or "rigid", SLIDES, failures=spares, lifetimes=count, generator=generator)
        return [list(lived.yield_after(hours * _HOUR)) for hours in bench.size.waits]

    waits = ", ".join(f"{hours:g}" for hours in bench.size.waits)
    found = bench.part(f"003/lifetimes/{_name(shape)}, {spares} spares, {count} allocations, waits {waits} h", make)
    value, low, high = (100 * share for share in found[bench.size.waits.index(wait)])
    return value, low, high


def example(bench: Bench, sheet: Sheet) -> None:
    """Compute the yield of the numeric example in paper 003."""
    sheet.row("share", 6 / 8 * 0.8 * 1 / 1.05)


def setting(bench: Bench, sheet: Sheet) -> None:
    """Check the parameters that all plots of paper 003 use."""
    daily = _DAY / replace(SLIDES, nodes=18_688).mtbf_of_all
    sheet.row("nodes", SLIDES.nodes)
    sheet.row("dump", 30 / 1.4 / 60)
    sheet.row("whole", 100 / 1.4 / 60)
    sheet.claim("daily", 1 < daily < 10, daily=daily)
    sheet.row("between", SLIDES.mtbf_of_all / _HOUR)
    sheet.row("work", SLIDES.interval / 60)


def grids(bench: Bench, sheet: Sheet) -> None:
    """Count the working nodes of a 6 x 6 grid of nodes after each failure."""
    teams = grid_teams(36, 11).astype(int).tolist()
    spares = [36 - failed - team for failed, team in enumerate(teams)]
    sheet.row("first", teams[0])
    sheet.row("after", teams[1])
    sheet.row("spares", spares[1])
    sheet.claim("replaced", teams[1:7] == [30] * 6, teams=teams[1:7])
    sheet.row("next", teams[7])
    sheet.row("left", spares[7])
    failures = list(range(len(teams)))
    sheet.chart("grid", [Series("grid", failures, teams), Series("spares", failures, spares)])


def time(bench: Bench, sheet: Sheet) -> None:
    """Compute the time between two restarts in paper 003.

    This time is the sum of the mean times between the failures that the application survives, plus the wait for a new
    allocation.
    """
    for spares in (0, 53, 259):
        own = sum(SLIDES.mtbf / (SLIDES.nodes - failed) for failed in range(spares + 1)) + _DAY
        for shape in SHAPES[:2]:
            found = float(_model(shape).between_restarts(_DAY)[spares])
            sheet.row("time", found / _HOUR, own / _HOUR, shape=shape, spares=spares)


def work(bench: Bench, sheet: Sheet) -> None:
    """Compare the yields of paper 003 with simulated yields.

    For each application, the number of failures that it survives is the one with the highest yield.
    """
    for wait in bench.size.waits:
        for shape in _ALL:
            best = _model(shape).optimum(wait * _HOUR)
            value, low, high = _simulated(bench, shape, best.failures, wait)
            ends, paper = (low, high), 100 * best.share
            sheet.row("share", value, paper, interval=ends, shape=_name(shape), spares=best.failures, wait=wait)


def yields(bench: Bench, sheet: Sheet) -> None:
    """Compute the highest yield for each queue wait."""
    lines = {shape: _by_wait(shape, lambda model, wait: 100 * model.optimum(wait).share) for shape in _ALL}
    first, hour, ten = (lines[None].y[_WAITS.index(wait)] for wait in (_WAITS[0], 1.0, 10.0))
    sheet.claim("drops", first - hour > 5, first=first, hour=hour, ten=ten)
    after = {shape: lines[shape].y[_A_DAY] for shape in SHAPES}
    told = ", ".join(f"{shape} {share:.2f} % after {_WAITS[_A_DAY]:g} h" for shape, share in after.items())
    sheet.claim("mitigated", min(after.values()) > 85, shares=told)
    apart = max(abs(a - b) for a, b in zip(lines["moldable"].y, lines["rigid"].y, strict=True))
    sheet.claim("comparable", apart < 2, apart=apart)
    sheet.chart("yields", list(lines.values()))


def failures(bench: Bench, sheet: Sheet) -> None:
    """Compute how many survived failures give the highest yield, for each queue wait."""
    lines = [_by_wait(shape, lambda model, wait: model.optimum(wait).failures) for shape in SHAPES]
    beyond = [
        next((wait for wait, count in zip(_WAITS, one.y, strict=True) if count >= 0.02 * SLIDES.nodes), None)
        for one in lines
    ]
    worst = 100 * max(one.y[-1] for one in lines) / SLIDES.nodes
    sheet.claim("few", beyond == [None] * len(lines), worst=worst, wait=_WAITS[-1])
    for one, wait in zip(lines, beyond, strict=True):
        sheet.row("beyond", wait, shape=one.name)
    rises = all(a <= b for one in lines for a, b in pairwise(one.y))
    sheet.claim("rises", rises, rises=rises)
    sheet.chart("failures", lines)


def lengths(bench: Bench, sheet: Sheet) -> None:
    """Compute how long an allocation lasts at the highest yield, for each queue wait."""
    lines = {
        shape: _by_wait(shape, lambda model, wait: float(model.life[model.optimum(wait).failures]) / _DAY)
        for shape in _ALL
    }
    rigid, moldable = lines["rigid"].y, lines["moldable"].y
    longer = all(b >= a for a, b in zip(rigid, moldable, strict=True))
    sheet.claim("longer", longer, rigid=rigid[_A_DAY], moldable=moldable[_A_DAY], wait=_WAITS[_A_DAY])
    sheet.chart("lengths", list(lines.values()))


def targets(bench: Bench, sheet: Sheet) -> None:
    """Compute the longest queue wait at which each target yield is still reached."""
    series = []
    for shape in _ALL:
        model = _model(shape)
        found = [(target, model.largest_wait(target)) for target in _TARGETS]
        kept = [(100 * target, best.wait / _HOUR) for target, best in found if best is not None and best.wait > 0]
        series.append(Series(_name(shape), [x for x, _ in kept], [y for _, y in kept]))
        best = model.largest_wait(0.89)
        sheet.row("wait", None if best is None else best.wait / _HOUR, shape=_name(shape))
    sheet.chart("targets", series)


def conclusion(bench: Bench, sheet: Sheet) -> None:
    """Check the claim in the conclusion of paper 003 about 1 % of spare nodes.

    The claim is about the yield if the wait is one day. Other parameters vary.
    """
    few = SLIDES.nodes // 100
    for shape in SHAPES:
        share = 100 * float(_model(shape).yields(_DAY)[few])
        sheet.claim("above", share > 89, shape=shape, share=share)
        value, low, high = _simulated(bench, shape, few, 24.0)
        sheet.row("simulated", value, interval=(low, high), shape=shape)
        wait = _model(shape).largest_wait(0.89, few)
        sheet.row("wait", None if wait is None else wait.wait / _HOUR, shape=shape)
    readings = {
        "reads take no time": replace(SLIDES, read=0.0),
        "MTBF of a node 24 years": replace(SLIDES, mtbf=24 * _YEAR),
        "18,688 nodes": replace(SLIDES, nodes=18_688),
    }
    for name, one in readings.items():
        least = min(100 * float(_model(shape, one).yields(_DAY)[one.nodes // 100]) for shape in SHAPES)
        sheet.row("least", least, reading=name)


COMPUTED: Final[Mapping[str, Compute]] = {
    "example": example,
    "setting": setting,
    "grids": grids,
    "time": time,
    "work": work,
    "yields": yields,
    "failures": failures,
    "lengths": lengths,
    "targets": targets,
    "conclusion": conclusion,
}
