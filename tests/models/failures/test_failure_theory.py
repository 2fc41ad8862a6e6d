"""Generated outages against theory, with confidence intervals: counts, availability, Weibull parameters; all seeded."""

import math

import numpy as np
import pytest

from pipistrelle.models.reliability.fits import fit_exponential, fit_weibull
from pipistrelle.platforms.failures.durations import Exponential, Fixed, Lognormal, Weibull
from pipistrelle.platforms.failures.models import FailureModel
from pipistrelle.platforms.failures.outage import csv_chunks
from pipistrelle.platforms.failures.plan import FailurePlan, Source
from pipistrelle.studies.trials.lifetimes import Estimate
from pipistrelle.traces.outages.load import load_outage_log

HOUR = 3600.0


def counts_and_downtimes(plan: FailurePlan, nodes: range, seed: int, horizon: float) -> tuple[Estimate, Estimate]:
    """Return the failures of a node up to the horizon, and the share of its second half that it is down."""
    outages = plan.outages(seed, horizon)
    chosen = (outages.node >= nodes.start) & (outages.node < nodes.stop)
    node = outages.node[chosen] - nodes.start
    late = np.clip(outages.up[chosen], horizon / 2, horizon) - np.clip(outages.down[chosen], horizon / 2, horizon)
    counts = np.bincount(node, minlength=len(nodes)).astype(np.float64)
    down = np.bincount(node, weights=late, minlength=len(nodes)) / (horizon / 2)
    return Estimate.of(counts), Estimate.of(down)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_counts_and_availability_of_two_kinds_of_nodes(seed: int) -> None:
    """Of nodes that are alternately up and down, exponentially, from new: the exact mean count, and MTTR's share.

    E N(t) = a t + (b / (b + m))^2 (1 - e^(-t (b + m))), with rates b of failure and m of repair, a = b m / (b + m): the
    renewal function of D. R. Cox, "Renewal Theory", 1962, for a sum of two exponential times.
    """
    horizon = 3000 * HOUR
    kinds = {range(500): (60 * HOUR, 12 * HOUR), range(500, 900): (300 * HOUR, 2 * HOUR)}
    plan = FailurePlan(
        tuple(Source(FailureModel(Exponential(up), Exponential(down)), nodes) for nodes, (up, down) in kinds.items())
    )
    for nodes, (up, down) in kinds.items():
        fails, mended = 1 / up, 1 / down
        both = fails + mended
        expected = fails * mended / both * horizon + (fails / both) ** 2 * -math.expm1(-both * horizon)
        counts, downtime = counts_and_downtimes(plan, nodes, seed, horizon)

        assert counts.half < 0.05 * counts.value
        assert abs(counts.value - expected) < 2 * counts.half
        assert abs(downtime.value - down / (up + down)) < 2 * downtime.half
        assert plan.sources[0].model.availability(1) == pytest.approx(60 / 72)


@pytest.mark.parametrize(
    ("uptime", "repair"),
    [(Weibull.of_mean(50 * HOUR, 0.7), Fixed(10 * HOUR)), (Lognormal.of_mean(50 * HOUR, 1.0), Exponential(10 * HOUR))],
)
def test_availability_of_other_distributions(uptime: Weibull | Lognormal, repair: Fixed | Exponential) -> None:
    """In the long run means alone count: MTBF / (MTBF + MTTR), within two intervals of confidence."""
    plan = FailurePlan((Source(FailureModel(uptime, repair), range(500)),))
    _, downtime = counts_and_downtimes(plan, range(500), 8, 6000 * HOUR)

    assert downtime.half < 0.005
    assert abs(downtime.value - 10 / 60) < 2 * downtime.half


@pytest.mark.parametrize("shape", [0.6, 1.0, 1.8])
def test_weibull_parameters_come_back_from_streams(shape: float, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Of the 95 % intervals of 20 streams, read back from files, 15 or more hold shape and scale, as 99.97 % of samples
    do; the means of what is fitted are the true values within two intervals of confidence and 1 %.
    """
    pytest.importorskip("scipy")
    law = Weibull.of_mean(300 * HOUR, shape)
    model = FailureModel(law, Exponential(HOUR))
    held = {"shape": 0, "scale": 0}
    fitted: dict[str, list[float]] = {"shape": [], "scale": []}
    path = tmp_path_factory.mktemp("streams") / "stream.csv"
    for seed in range(20):
        outages = model.outages(range(40), seed, 4000 * HOUR)
        path.write_bytes(b"".join(csv_chunks(outages)))
        fit = fit_weibull(load_outage_log(path).within(None, 4000 * HOUR).watched())
        for name, truth in (("shape", shape), ("scale", law.scale)):
            low, high = getattr(fit, f"{name}_interval")
            held[name] += low < truth < high
            fitted[name].append(getattr(fit, name) / truth)

    assert min(held.values()) >= 15
    for ratios in fitted.values():
        mean = Estimate.of(np.array(ratios))
        assert abs(mean.value - 1) < 0.01 + 2 * mean.half


def test_an_exponential_mean_comes_back(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The fit's interval holds the mean time between failures of the model."""
    pytest.importorskip("scipy")
    path = tmp_path_factory.mktemp("streams") / "stream.csv"
    outages = FailureModel(Exponential(300 * HOUR), Fixed(HOUR)).outages(range(100), 3, 4000 * HOUR)
    path.write_bytes(b"".join(csv_chunks(outages)))
    fit = fit_exponential(load_outage_log(path).within(None, 4000 * HOUR).watched())

    assert fit.mean_interval is not None
    assert fit.mean_interval[0] < 300 * HOUR < fit.mean_interval[1]
