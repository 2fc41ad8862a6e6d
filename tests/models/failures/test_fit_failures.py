"""Maximum likelihood fits recover known parameters, and intervals cover them as often as claimed."""

import numpy as np
import pytest

from pipistrelle.models.reliability.fits import FitError, aic, fit_exponential, fit_log, fit_repair, fit_weibull
from pipistrelle.platforms.description import homogeneous
from pipistrelle.platforms.failures import catalogue as failure_catalogue
from pipistrelle.platforms.failures.durations import Exponential, Fixed, Lognormal, Weibull
from pipistrelle.platforms.failures.models import FailureModel, draw_lengths
from pipistrelle.platforms.failures.outage import csv_chunks
from pipistrelle.platforms.failures.plan import FailurePlan, Source
from pipistrelle.platforms.failures.text import parse_failures
from pipistrelle.traces.outages.load import load_outage_log
from pipistrelle.traces.outages.log import Lives

pytest.importorskip("scipy")
HOUR = 3600.0


def censored(law, count, seed, until):
    """Return lives of this law, censored at an age."""
    drawn = draw_lengths(law, count, seed)
    return Lives(
        np.zeros(count), np.minimum(drawn, until), drawn < until, np.zeros(count), np.zeros(count, dtype=np.int64)
    )


@pytest.mark.parametrize("shape", [0.5, 0.7, 1.0, 3.0])
@pytest.mark.parametrize("until", [0.3, 1.0, 100.0])
def test_weibull_comes_back(shape, until):
    """Shape and scale are recovered, whatever share is censored, within four standard errors."""
    fit = fit_weibull(censored(Weibull(1000.0, shape), 20_000, 5, until * 1000.0))

    for value, found, (low, high) in (
        (shape, fit.shape, fit.shape_interval),
        (1000.0, fit.scale, fit.scale_interval),
    ):
        assert low < found < high
        assert abs(found - value) < 2 * (high - low) / 2
    assert fit.observations + fit.censored == 20_000


def test_intervals_hold_the_truth_as_often_as_they_say():
    """Of 95 % intervals of 300 samples of 60 censored lives, 91 to 99 % hold the true value."""
    law = Weibull(1000.0, 0.7)
    hits = {"shape": 0, "scale": 0, "mean": 0}
    exponential = 0
    for seed in range(300):
        fit = fit_weibull(censored(law, 60, seed, 1500.0))
        for key, value in (("shape", 0.7), ("scale", 1000.0), ("mean", law.mean)):
            low, high = getattr(fit, f"{key}_interval")
            hits[key] += low < value < high
        low, high = fit_exponential(censored(Exponential(1000.0), 60, seed, 1500.0)).mean_interval
        exponential += low < 1000.0 < high

    for key, count in (*hits.items(), ("exponential", exponential)):
        assert 0.91 <= count / 300 <= 0.99, (key, count / 300)


def test_left_truncation():
    """Lives that were watched from an age on only give the same parameters as whole ones."""
    law = Weibull(1000.0, 3.0)
    drawn = draw_lengths(law, 60_000, 9)
    entered = np.linspace(0.0, 900.0, drawn.size)
    seen = drawn > entered
    size = int(seen.sum())
    lives = Lives(
        entered[seen], drawn[seen], np.ones(size, dtype=np.bool_), np.zeros(size), np.zeros(size, dtype=np.int64)
    )
    fit = fit_weibull(lives)

    assert fit.shape == pytest.approx(3.0, rel=0.02)
    assert fit.scale == pytest.approx(1000.0, rel=0.02)
    assert fit_weibull(lives).shape_interval[0] < 3.0 < fit.shape_interval[1]


def test_exponential_is_exposure_over_failures():
    """Mean and interval of 10 failures in 1000 s: the textbook's Poisson interval."""
    lives = Lives(
        np.zeros(10), np.full(10, 100.0), np.ones(10, dtype=np.bool_), np.zeros(10), np.zeros(10, dtype=np.int64)
    )
    fit = fit_exponential(lives)

    assert fit.mean == 100.0
    assert fit.mean_interval == pytest.approx((1000 / 18.39036, 1000 / 4.795389), rel=1e-5)


def test_the_better_model_wins():
    """AIC takes the simpler model for most exponential lives (five in six), and the Weibull for others."""
    for law, least, most in ((Exponential(HOUR), 0, 10), (Weibull(HOUR, 0.8), 39, 40)):
        samples = [censored(law, 500, seed, HOUR) for seed in range(40)]
        chosen = sum(aic(fit_weibull(lives)) < aic(fit_exponential(lives)) for lives in samples)
        assert least <= chosen <= most


@pytest.mark.parametrize("law", [Exponential(HOUR), Weibull(HOUR, 0.6), Lognormal(HOUR, 1.2)])
def test_repairs_come_back(law):
    """The kind of the distribution and its parameters are recovered."""
    fit = fit_repair(draw_lengths(law, 20_000, 1))

    assert type(fit.durations()) is type(law)
    assert fit.durations().mean == pytest.approx(law.mean, rel=0.05)


def test_a_generated_stream_is_fitted(tmp_path):
    """From a model to a file and back: Weibull shape, scale and repair."""
    model = FailureModel(Weibull.of_mean(200 * HOUR, 0.7), Lognormal(HOUR, 1.0))
    outages = model.outages(range(300), 4, 4000 * HOUR)
    path = tmp_path / "stream.csv"
    path.write_bytes(b"".join(csv_chunks(outages)))
    fitted = fit_log(load_outage_log(path).within(None, 4000 * HOUR), name="again")

    assert fitted.nodes == 300
    assert fitted.failures.shape == pytest.approx(0.7, rel=0.03)
    assert fitted.failures.mean == pytest.approx(200 * HOUR, rel=0.05)
    low, high = fitted.failures.shape_interval
    assert low < 0.7 < high
    assert fitted.repair.durations().mean == pytest.approx(model.repair.mean, rel=0.05)
    assert fitted.spec().uptime == fitted.failures.durations()


def test_the_library_is_our_own_fit(traces_dir):
    """lanl-18 and titan-2016 come out of the logs with the parameters that are shipped."""
    lanl = load_outage_log(next(traces_dir.glob("LA-UR-05-7318*"))).only("18")
    shipped = failure_catalogue.get("lanl-18")
    fitted = fit_log(lanl, name="lanl-18", description=shipped.description, source=shipped.source)

    assert fitted.failures.shape == pytest.approx(shipped.failures.shape, rel=1e-6)
    assert fitted.failures.mean_interval == pytest.approx(shipped.failures.mean_interval, rel=1e-6)
    assert fitted.repair.median == pytest.approx(shipped.repair.median)


@pytest.mark.parametrize(("name", "years"), [("lanl-18", 3.36), ("lanl-19", 2.94), ("lanl-20", 3.77)])
def test_the_library_gives_as_many_failures_as_were_observed(name, years):
    """Over the log's span the model fails as often as the machine did, within 6 %, in the mean of five seeds."""
    model = failure_catalogue.get(name)
    source = parse_failures(name, failure_catalogue.specs()).source(homogeneous(model.nodes, name), None)
    counts = [len(FailurePlan((source,)).outages(seed, years * 31557600.0)) for seed in range(5)]

    assert np.mean(counts) == pytest.approx(model.failures.observations, rel=0.06)


def test_too_little_is_refused():
    """Nothing failed, one failure, or an unknown model: each has a message."""
    quiet = FailurePlan((Source(FailureModel(Exponential(1e12), Fixed(1.0)), range(3)),)).outages(1, HOUR)
    assert len(quiet) == 0
    lives = censored(Exponential(1e12), 5, 1, HOUR)
    with pytest.raises(FitError, match="too few failures to fit: expected at least 1"):
        fit_exponential(lives)
    with pytest.raises(FitError, match="too few failures to fit: expected at least 2"):
        fit_weibull(lives)
    with pytest.raises(FitError, match="too few repairs"):
        fit_repair(np.full(4, 3.0))


def test_an_unknown_model(tmp_path):
    """The closest name is proposed."""
    path = tmp_path / "x.csv"
    path.write_text("node,down,up\n1,2,3\n")
    with pytest.raises(FitError, match="Did you mean 'weibull'"):
        fit_log(load_outage_log(path), name="x", model="weibul")
