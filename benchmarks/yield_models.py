"""Compare theory and simulation of the yield of failure-tolerant applications.

An application has spare nodes, or is moldable or grid-shaped. The yield is the share of node time that becomes useful
work. The setting is that of a paper: 22,500 nodes that each fail once in 20 years, and checkpoints that take two
minutes to write or read. Prints:

- yields by formula and by simulation, with 95 % intervals;
- whether 1 % of spare nodes keeps the yield above 89 % if the wait for an allocation is a day;
- the duration of checkpointed jobs, and Daly's prediction;
- statistics of generated outages, and their expected values.

    python benchmarks/yield_models.py [--failures 20000] [--runs 1000] [--seed 1]
"""

import argparse
import math
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipistrelle.models.reliability.fits import fit_weibull
from pipistrelle.models.samples.estimates import normal_quantile
from pipistrelle.platforms.failures.checkpointing import daly_interval, daly_time
from pipistrelle.platforms.failures.durations import Exponential, Fixed, Weibull
from pipistrelle.platforms.failures.models import FailureModel
from pipistrelle.platforms.failures.outage import csv_chunks
from pipistrelle.platforms.failures.yield_model import (
    SHAPES,
    SLIDES,
    Allocation,
    Form,
    Shape,
    YieldError,
    YieldModel,
)
from pipistrelle.server.attempts.progress import AttemptProgress
from pipistrelle.studies.trials.lifetimes import Estimate, Lifetimes, live
from pipistrelle.traces.outages.load import load_outage_log
from pipistrelle.traces.resilience import Resilience

_HOUR, _YEAR = 3600.0, 365.25 * 86400.0
_WAITS = (0.1, 0.3, 1.0, 3.0, 10.0, 24.0, 100.0)
#: length of the job in `best_interval`, in Daly's intervals; and the largest distance of the tested intervals from
#: Daly's, as a natural logarithm
_DUMPS = 300
_AROUND = 0.3
_ONE = range(1)
#: greatest number of attempts of a job
_MOST_ATTEMPTS = 1_000_000


def generator(*key: int) -> np.random.Generator:
    """Return a random generator whose seed is ``key``."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(key)))


def percent(estimate: Estimate) -> str:
    """Return an estimated share and its confidence interval in percent, as text."""
    return f"{100 * estimate.value:6.2f} [{100 * estimate.low:.2f}, {100 * estimate.high:.2f}]"


@cache
def lived(shape: Shape, spares: int, failures: int, seed: int) -> Lifetimes:
    """Simulate at least 50 allocations of an application, one after another.

    The allocations together have about ``failures`` failures.
    """
    count = max(failures // (spares + 1), 50)
    return live(shape, SLIDES, failures=spares, lifetimes=count, generator=generator(seed, len(shape), spares))


def yields(failures: int, seed: int) -> None:
    """Print the yield of each type of application for each queue wait.

    Each yield is given by formula and by simulation.
    """
    print(f"interval {SLIDES.interval:.0f} s, a failure in {SLIDES.mtbf_of_all / _HOUR:.3f} h")
    print("wait h  application  spares  % of N  paper %  exact %  simulated %               paper - simulated, points")
    worst = 0.0
    for wait in _WAITS:
        for shape in (None, *SHAPES):
            paper = YieldModel(shape or "rigid", SLIDES, most=0 if shape is None else None)
            exact = YieldModel(paper.shape, SLIDES, form="exact", most=paper.most)
            best = paper.optimum(wait * _HOUR)
            simulated = lived(paper.shape, best.failures, failures, seed).yield_after(wait * _HOUR)
            apart = 100 * (best.share - simulated.value)
            worst = max(worst, abs(apart))
            print(
                f"{wait:6g}  {shape or 'no spares':11}  {best.failures:6}  {100 * best.failures / SLIDES.nodes:6.2f}"
                f"  {100 * best.share:7.2f}  {100 * exact.yields(wait * _HOUR)[best.failures]:7.2f}"
                f"  {percent(simulated)}  {apart:6.2f}"
            )
    print(f"greatest difference: {worst:.2f} points")
    print("\nlargest wait with fewer than 2 % of N as the best number of spares, and for yields of 89 % and 80 %")
    for shape in SHAPES:
        model = YieldModel(shape, SLIDES)
        hours = [wait for wait in np.arange(1.0, 120.0, 0.5) if model.optimum(wait * _HOUR).failures < 450]
        targets = [model.largest_wait(target) for target in (0.89, 0.8)]
        told = ", ".join(f"{one.wait / _HOUR:.1f} h with {one.failures}" for one in targets if one)
        print(f"{shape:8}  {max(hours):.1f} h; {told}")


def claim(failures: int, seed: int) -> None:
    """Print yields with 1 % of spare nodes and a queue wait of a day.

    Yields under variations of this setting are printed, too.
    """
    day, few = 24 * _HOUR, SLIDES.nodes // 100
    print("\n1 % of spares and a day's wait: 89 %?  yield % by application; ceiling: the yield without any wait")
    settings: dict[str, tuple[Allocation, Form]] = {
        "as told": (SLIDES, "paper"),
        "as told, exact": (SLIDES, "exact"),
        "Daly's interval": (replace(SLIDES, optimum="daly"), "paper"),
        "no reads": (replace(SLIDES, read=0.0), "paper"),
        "MTBF 24 years": (replace(SLIDES, mtbf=24 * _YEAR), "paper"),
        "18,688 nodes": (replace(SLIDES, nodes=18_688), "paper"),
    }
    print(f"{'':16}" + "".join(f"{shape:>10}" for shape in SHAPES) + "   ceiling")
    for name, (one, form) in settings.items():
        shares = [YieldModel(shape, one, form=form).yields(day)[one.nodes // 100] for shape in SHAPES]
        ceiling = YieldModel("rigid", one, form=form, most=0).yields(0.0)[0]
        told = "".join(f"{100 * share:10.2f}" for share in (*shares, ceiling))
        print(f"{name:16}{told}")
    for shape in SHAPES:
        model = YieldModel(shape, SLIDES)
        wait = model.largest_wait(0.89, few)
        best = model.optimum(day)
        print(
            f"{shape:8}  simulated {percent(lived(shape, few, failures, seed).yield_after(day))}; 89 % up to a wait of "
            f"{wait.wait / _HOUR if wait else 0:.1f} h; best {100 * best.share:.2f} % with {best.failures}"
        )
    years = np.arange(18.0, 24.0, 0.05)
    enough = [
        year
        for year in years.tolist()
        if min(YieldModel(shape, replace(SLIDES, mtbf=year * _YEAR)).yields(day)[few] for shape in SHAPES) > 0.89
    ]
    print(f"all three are above 89 % from a node MTBF of {min(enough):.2f} years on")


def completion_time(work: float, interval: float, dump: float, read: float, mtbf: float) -> float:
    """Return the expected duration (s) of a job with checkpoints and failures.

    The job writes checkpoints (dumps) and restarts after each failure. The formula differs from `daly_time` (equation
    20 of J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", 2006) in two ways:
    the last interval may be shorter and has no dump, and nothing is read before the first dump is complete. Let L be
    the time of an interval and its dump, and M the mean time between failures. The first interval takes M (e^(L/M) -
    1), each later one M e^(R/M) (e^(L/M) - 1).

    Args:
                work: duration of the job without failures and checkpoints (s).
        interval: time of work between two dumps (s).
        dump, read: times of writing and of reading a dump (s); ``read`` is R in the formula.
        mtbf: M of the whole allocation (s).

    Returns:
        The duration; inf if an interval or a read is more than 600 times as long as M.
    """
    if max(min(interval + dump, work), read) > 600.0 * mtbf:
        return math.inf
    dumps = max(math.ceil(work / interval) - 1, 0)
    last = mtbf * math.expm1((work - dumps * interval) / mtbf)
    if not dumps:
        return last
    step = mtbf * math.expm1((interval + dump) / mtbf)
    return step + math.exp(read / mtbf) * ((dumps - 1) * step + last)


def completion_times(
    resilience: Resilience, *, work: float, mtbf: float, runs: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Simulate a job that restarts at once after each failure.

    Return the durations of the runs (s), shape (runs,).

    Args:
        resilience: what the job does at a failure; of kind "checkpoint", or another kind that tolerates no failure.
        work: duration of the job without checkpoints and failures (s).
        mtbf: mean time between failures of the allocation (s).
        runs: number of simulations.
        generator: source of the random times between failures.

    Raises:
        YieldError: the job has not ended after a million failures.
    """
    taken = np.empty(runs)
    for run in range(runs):
        now = saved = 0.0
        for gap in _gaps(mtbf, generator):
            course = AttemptProgress(resilience, start=now, work=work, saved=saved, nodes=_ONE, rates=1.0 / mtbf)
            if course.finish <= now + gap:
                taken[run] = course.finish
                break
            now += gap
            course.strike(now, _ONE)
            saved = course.account(now).saved
        else:
            raise YieldError(
                "a job does not end", found=f"{_MOST_ATTEMPTS:,} failures, one in {mtbf:g} s, in {work:g} s of work"
            )
    return taken


def best_interval(dump: float, read: float, mtbf: float, *, runs: int, seed: int) -> Estimate:
    """Estimate by simulation the checkpoint interval that minimises a job's duration.

    The interval is in seconds of work. Each run simulates a job of `_DUMPS` Daly intervals with five intervals around
    Daly's, under the same failures. A parabola is fitted to the mean durations over the logarithm of the interval; its
    minimum is the estimate. The error of the parabola is below 0.7 % if the MTBF is at least five times the dump time.

    Args:
        dump, read: times of a dump and of reading it (s).
        mtbf: mean time between failures of the allocation (s).
        runs: number of simulated jobs, at least 2.
        seed: seed of the random numbers; each run has its own.
    """
    centre = daly_interval(dump, mtbf)
    work = _DUMPS * centre
    parts = np.rint(_DUMPS * np.exp(np.linspace(-_AROUND, _AROUND, 5)))  # whole intervals, without a shorter last one
    times = np.empty((runs, parts.size))
    for run in range(runs):
        for column, interval in enumerate((work / parts).tolist()):
            way = Resilience("checkpoint", interval, dump, read)
            chance = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(run,))))
            times[run, column] = completion_times(way, work=work, mtbf=mtbf, runs=1, generator=chance)[0]
    bent, slope, _ = np.linalg.pinv(np.vander(np.log(_DUMPS / parts), 3)) @ times.T
    best = -float(slope.mean() / bent.mean()) / 2
    spread = float((slope + 2 * best * bent).std(ddof=1)) / abs(2 * float(bent.mean()))
    half = normal_quantile(0.975) * spread / math.sqrt(runs)
    return Estimate(*(centre * math.exp(value) for value in (best, best - half, best + half)))


def _gaps(mtbf: float, generator: np.random.Generator) -> Iterator[float]:
    return (float(generator.exponential(mtbf)) for _ in range(_MOST_ATTEMPTS))


def completion(runs: int, seed: int) -> None:
    """Print the durations of jobs, and the best checkpoint intervals.

    Each job lasts a hundred intervals.
    """
    print("\njobs of 100 of Daly's intervals; M the MTBF, C dump and read; times in M")
    print("M / C  interval   Daly's     exact  simulated                    simulated / Daly's")
    mtbf = 1e5
    for ratio in (5, 10, 20, 50, 100, 200, 500, 1000):
        dump = mtbf / ratio
        interval = daly_interval(dump, mtbf)
        work = 100 * interval
        way = Resilience("checkpoint", interval, dump, dump)
        mean = Estimate.of(completion_times(way, work=work, mtbf=mtbf, runs=runs, generator=generator(seed, ratio)))
        exact = completion_time(work, interval, dump, dump, mtbf)
        told = daly_time(work, interval, dump, dump, mtbf)
        print(
            f"{ratio:5}  {interval / mtbf:8.4f}  {told / mtbf:7.3f}  {exact / mtbf:8.3f}"
            f"  {mean.value / mtbf:7.3f} [{mean.low / mtbf:.3f}, {mean.high / mtbf:.3f}]"
            f"  {mean.value / told:.4f} [{mean.low / told:.4f}, {mean.high / told:.4f}]"
        )
    print("\nbest interval / Daly's: by equation 20, and as simulated; cost of Daly's interval over the best, %")
    for ratio, jobs in ((5, 200), (20, 400), (100, 600), (1000, 2000)):
        dump = mtbf / ratio
        interval = daly_interval(dump, mtbf)
        grid = interval * np.geomspace(0.5, 2.0, 20_001)
        times = np.array([daly_time(1.0, one, dump, dump, mtbf) for one in grid.tolist()])
        found = best_interval(dump, dump, mtbf, runs=jobs * runs // 1000, seed=seed)
        print(
            f"{ratio:5}  {grid[times.argmin()] / interval:.4f}"
            f"  {found.value / interval:.4f} [{found.low / interval:.4f}, {found.high / interval:.4f}]"
            f"  {100 * (daly_time(1.0, interval, dump, dump, mtbf) / times.min() - 1):.4f}"
        )


def outages(seed: int) -> None:
    """Print statistics of generated outages and their theoretical values."""
    print("\nfailures of a node, and share of time that it is up: 1,000 nodes, MTBF 60 h, MTTR 12 h")
    up, down, horizon, nodes = 60 * _HOUR, 12 * _HOUR, 6000 * _HOUR, 1000
    both = 1 / up + 1 / down
    expected = horizon / (up + down) + (1 / up / both) ** 2 * -math.expm1(-both * horizon)
    made = FailureModel(Exponential(up), Exponential(down)).outages(range(nodes), seed, horizon)
    counts = Estimate.of(np.bincount(made.node, minlength=nodes).astype(np.float64))
    late = np.clip(made.up, horizon / 2, horizon) - np.clip(made.down, horizon / 2, horizon)
    share = Estimate.of(np.bincount(made.node, weights=late, minlength=nodes) / (horizon / 2))
    print(
        f"failures      theory {expected:7.3f}    generated {counts.value:.3f} [{counts.low:.3f}, {counts.high:.3f}]"
        f", ratio {counts.value / expected:.4f}"
    )
    up_share = Estimate(1 - share.value, 1 - share.high, 1 - share.low)
    print(f"availability  theory {100 * up / (up + down):7.3f} %  generated {percent(up_share)} %")
    print("\nWeibull of mean 300 h: shape and scale (h), fitted")
    for number, shape in enumerate((0.6, 0.7, 1.0, 1.8)):
        law = Weibull.of_mean(300 * _HOUR, shape)
        stream = FailureModel(law, Fixed(_HOUR)).outages(range(100), seed + number, 8000 * _HOUR)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "stream.csv"
            path.write_bytes(b"".join(csv_chunks(stream)))
            log = load_outage_log(path)
        fit = fit_weibull(log.within(None, 8000 * _HOUR).watched())
        assert fit is not None
        assert fit.shape_interval is not None
        assert fit.scale_interval is not None
        low, high = (value / _HOUR for value in fit.scale_interval)
        print(
            f"{shape:g}: {fit.shape:.4f} [{fit.shape_interval[0]:.4f}, {fit.shape_interval[1]:.4f}]; "
            f"{law.scale / _HOUR:.2f}: {(fit.scale or math.nan) / _HOUR:.2f} [{low:.2f}, {high:.2f}]"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--failures", type=int, default=20_000, help="failures simulated for each yield")
    parser.add_argument("--runs", type=int, default=1000, help="jobs of each completion time")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    yields(options.failures, options.seed)
    claim(options.failures, options.seed)
    completion(options.runs, options.seed)
    outages(options.seed)
