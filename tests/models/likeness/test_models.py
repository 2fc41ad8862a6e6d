"""Models of logs: fitting, sampling and rejected inputs."""

import hashlib
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.models.likeness.campaigns import APART, campaigns_of, repetition
from pipistrelle.models.likeness.comparison import autocorrelation, compare, distance
from pipistrelle.models.likeness.drawing import Draws, generate_like
from pipistrelle.models.likeness.fitting import fit, pieces, planned, with_area, with_serial
from pipistrelle.models.likeness.model import ModelError, get, load_model, mean, model_text, names, parse_model
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.traces.catalogue import load_bundled
from pipistrelle.traces.describe import offered_load
from pipistrelle.traces.generator import generate
from pipistrelle.traces.load import load
from pipistrelle.traces.logs.swf import swf_chunks

SEEDS = st.integers(0, 2**32)


@cache
def demo():
    """Return the bundled workload, and the model that is fitted to it."""
    log = load_bundled("demo")
    return log, fit(log)


def test_the_bundled_grizzly_is_the_papers_year():
    """About 130,000 jobs a year on 1,490 nodes, 45 to 50 % of one node, none longer than the month's 16 hours."""
    model = get("grizzly")
    jobs = generate_like(model, 1)

    assert "grizzly" in names()
    assert (model.machine_size, model.jobs, model.seconds) == (1490, 130_000, 365 * 86400)
    assert model.load == pytest.approx(0.85, abs=1e-3)
    assert len(jobs) == 130_000
    assert 0.45 <= np.mean(jobs.size == 1) <= 0.5
    assert 60 <= jobs.runtime.max() <= 57_700
    assert jobs.submit.max() <= 366 * 86400
    assert "user" not in jobs.columns  # the month's log names none


def test_the_bundled_grizzly_is_what_is_fitted(traces_dir):
    """The bundled file equals what `workload model` makes of the month, except for its texts."""
    found = fit(load(traces_dir / "LANL-Grizzly-2018-01.swf"))
    made = planned(with_serial(found, 0.475), jobs=130_000, duration="365d", load=0.85)
    bundled = get("grizzly")

    for key in bundled.__struct_fields__:
        if key not in ("name", "description", "source"):
            assert getattr(bundled, key) == getattr(made, key), key


def test_a_year_with_a_load_offers_it():
    """Jobs, duration and load together bend the model: the very jobs that are drawn offer the load."""
    jobs = generate_like(get("grizzly"), 3, jobs=130_000, duration="1y", load=0.7)

    assert len(jobs) == 130_000
    assert jobs.submit[-1] - jobs.submit[0] == pytest.approx(365 * 86400, rel=0.01)
    assert offered_load(jobs, 1490) == pytest.approx(0.7, rel=0.02)
    assert 0.45 <= np.mean(jobs.size == 1) <= 0.5


def test_equal_seeds_give_equal_bytes():
    """The jobs of a seed never change: they are the same on any machine."""
    jobs = generate_like(get("grizzly"), 42, duration="14d", load=0.8)

    assert jobs == generate_like(get("grizzly"), 42, duration="14d", load=0.8)
    assert jobs != generate_like(get("grizzly"), 43, duration="14d", load=0.8)
    digest = hashlib.sha256(b"".join(swf_chunks(jobs))).hexdigest()
    assert digest == "2d5bc82ea9a44876b778f7146910883585d3264e974a4957a5ca4632df7dd4ba"


@pytest.mark.parametrize(
    ("wanted", "jobs", "days", "load"),
    [
        ({}, 5000, None, None),
        ({"jobs": 700}, 700, None, None),
        ({"duration": "7d"}, None, 7, None),
        ({"load": 0.5}, None, None, 0.5),
        ({"jobs": 2000, "duration": "5d"}, 2000, 5, None),
        ({"jobs": 2000, "load": 0.9}, 2000, None, 0.9),
        ({"duration": "20d", "load": 1.2}, None, 20, 1.2),
        ({"jobs": 3000, "duration": "20d", "load": 0.6}, 3000, 20, 0.6),
    ],
)
def test_two_of_three_say_the_third(wanted, jobs, days, load):
    """The number of jobs, the submission period and the offered load are those requested."""
    made = generate_like(demo()[1], 5, **wanted)
    span = made.submit[-1] - made.submit[0]

    assert jobs is None or len(made) == jobs
    assert days is None or span == pytest.approx(days * 86400, rel=0.05)
    assert load is None or offered_load(made, 256) == pytest.approx(load, rel=0.05)


def test_a_log_and_its_model_are_alike():
    """The marginals of a sample ten times larger are near those of the log; so are its week, users and load."""
    log, model = demo()
    made = generate_like(model, 9, jobs=50_000)
    found = compare(log, made)
    first, second = found["workloads"]

    assert {key: value for key, value in found["distances"].items() if value > 0.12} == {}
    assert found["distances"]["size"] < 0.05
    assert found["distances"]["runtime"] < 0.03
    assert second["load"] == pytest.approx(first["load"], rel=0.06)
    assert second["repetition"]["users"] == first["repetition"]["users"]
    assert second["repetition"]["busiest"] == pytest.approx(first["repetition"]["busiest"], abs=0.03)
    assert np.corrcoef(first["week"], second["week"])[0, 1] > 0.8


@pytest.mark.parametrize("log", ["KTH-SP2-1996-2.1-cln.swf.gz", "ALCF-Theta-2022.swf.gz"])
def test_real_logs_and_their_models_are_alike(log, traces_dir):
    """Of years of jobs the marginals come near, the correlations have the day's cycle, users their shares."""
    real = load(traces_dir / log, sort=True)
    made = generate_like(fit(real), 1)
    found = compare(real, made)
    first, second = found["workloads"]

    assert found["distances"]["size"] < 0.04
    assert found["distances"]["runtime"] < 0.06
    assert found["distances"]["walltime"] < 0.15
    assert found["distances"]["used"] < 0.15
    assert second["load"] == pytest.approx(first["load"], rel=0.08)
    assert second["repetition"]["same_size"] == pytest.approx(first["repetition"]["same_size"], abs=0.12)
    assert second["repetition"]["same_work"] == pytest.approx(first["repetition"]["same_work"], abs=0.12)
    assert second["autocorrelation"][0] == pytest.approx(first["autocorrelation"][0], abs=0.15)


@given(SEEDS)
@settings(deadline=None, max_examples=15)
def test_more_jobs_change_nothing_of_those_before(seed):
    """Sizes and times of the first jobs by campaigns are the same however many follow."""
    model = demo()[1]
    few, many = (generate_like(model, seed, jobs=count, duration="1y") for count in (200, 400))

    counts = [sorted(zip(made.size.tolist(), made.runtime.tolist(), strict=True)) for made in (few, many)]
    rest = list(counts[1])
    for job in counts[0]:
        rest.remove(job)
    assert len(rest) == 200


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=300))
@settings(deadline=None, max_examples=60)
def test_pieces_keep_range_and_mean(values):
    """A piecewise distribution spans least to greatest and has the right mean, to three digits."""
    found = pieces(np.array(values))
    drawn = Draws(found).values(np.linspace(0.0, 1.0, 4001, endpoint=False))

    assert mean(found) == pytest.approx(math.fsum(values) / len(values), rel=0.02)
    assert min(values) * 0.99 <= drawn.min()
    assert drawn.max() <= max(values) * 1.01
    assert drawn.mean() == pytest.approx(mean(found), rel=0.02)


@given(SEEDS, st.floats(0.2, 2.0), st.floats(0.05, 0.95))
@settings(deadline=None, max_examples=20)
def test_a_bent_model_has_its_mean_and_its_share(seed, factor, share):
    """Bending moves the mean of unit-seconds to the requested value; jobs of one unit keep their share."""
    model = with_serial(demo()[1], share)
    found = with_area(model, factor * model.area)

    assert found.area == pytest.approx(factor * model.area, rel=1e-3)
    assert found.serial == pytest.approx(share, abs=1e-4)


@given(SEEDS)
@settings(deadline=None, max_examples=15)
def test_a_model_survives_its_text(seed):
    """A model of any workload, written as TOML, is read as the same."""
    log = generate(jobs=60 + seed % 200, units=1 + seed % 300, seed=seed)
    model = fit(log)

    assert parse_model(model_text(model), "x.toml") == model


def test_what_is_drawn_is_what_a_model_has():
    """No job is larger, longer or asks for more than the log's jobs did; requests are below run times as often."""
    log, model = demo()
    made = generate_like(model, 11, jobs=20_000)

    assert made.size.max() <= log.size.max()
    assert made.runtime.max() <= 1.01 * log.runtime.max()
    assert made.walltime.max() <= log.walltime.max()
    over = [np.mean(one.runtime > one.walltime) for one in (log, made)]
    assert over[1] == pytest.approx(over[0], abs=0.02)


def test_campaigns_are_runs_of_one_size():
    """A user's jobs of one size are of one campaign while no more than 20 minutes lie between two."""
    log = load_bundled("demo").select(range(6))
    columns = dict(log.columns) | {"user": np.array([1, 1, 2, 1, 1, 1])}
    log = type(log)(
        name="x",
        source="x",
        ids=log.ids,
        submit=np.array([0.0, 100.0, 150.0, 200.0, 200.0 + APART, 300.0 + 2 * APART]),
        size=np.array([4, 4, 4, 2, 4, 4]),
        walltime=log.walltime,
        runtime=log.runtime,
        columns=columns,
    )
    found = campaigns_of(log)

    assert sorted(found.lengths.tolist()) == [1, 1, 1, 1, 2]
    assert found.users == 2
    assert repetition(log)["same_size"] == 0.5  # of user 1's four jobs with one before
    assert repetition(log)["jobs_per_campaign"] == 1.2


def test_distances_and_autocorrelations_by_hand():
    """Kolmogorov and Smirnov's distance, and a series that alternates."""
    assert distance(np.array([1.0, 2.0, 3.0, 4.0]), np.array([3.0, 4.0])) == 0.5
    assert distance(np.array([1.0]), np.zeros(0)) is None
    assert autocorrelation(np.array([0.0, 2.0] * 2), 4) == [-0.75, 0.5, -0.25, None]
    assert autocorrelation(np.ones(5), 1) == [None]


GOOD = model_text(get("grizzly"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("machine_size = 1490", "machine_size = 100", "larger than the machine"),
        ("repeat = ", "again = ", "again"),
        ('duration = "365d"', 'duration = "soon"', "duration"),
        ("sizes = [[1, 1, 297]]", "sizes = [[2, 1, 297]]", "a range is not valid"),
        ("sizes = [[1, 1, 297]]", "sizes = [[1, 1, 0]]", "all weights are 0"),
        ("sizes = [[1, 1, 297]]", "sizes = []", "sizes"),
        ("repeat = 0.", "repeat = 7.", "repeat"),
        ("rounds = [58200]", "rounds = [58200, 60]", "do not ascend"),
    ],
)
def test_wrong_models_are_refused(old, new, message):
    """Each message names what is wrong, and where."""
    text = GOOD.replace(old, new, 1)

    assert text != GOOD
    with pytest.raises(ModelError, match=message) as error:
        parse_model(text, "mine.toml")
    assert "mine.toml" in str(error.value)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"load": 1000.0}, "out of range"),
        ({"serial": 1.5}, "out of range"),
        ({"duration": "now"}, "duration"),
        ({"jobs": 100, "duration": "1y", "load": 5.0}, "the model has no such jobs"),
        ({"jobs": 20_000_000}, "or too many"),
        ({"duration": "1s"}, "no jobs"),
    ],
)
def test_what_does_not_go_with_a_model(wanted, message):
    """Impossible requests are rejected before anything is drawn."""
    with pytest.raises(PipistrelleError, match=message):
        generate_like(demo()[1], 1, **wanted)


def test_logs_that_tell_too_little():
    """Too few jobs, no machine, and only jobs of one unit: each has its own message."""
    log = load_bundled("demo")
    with pytest.raises(ModelError, match="too few jobs to fit"):
        fit(log.select(range(10)))
    nameless = type(log)(
        name="x", source="x", ids=log.ids, submit=log.submit, size=log.size, walltime=log.walltime, runtime=log.runtime
    )
    with pytest.raises(ModelError, match="machine's size is unknown"):
        fit(nameless)
    assert fit(nameless, 256).machine_size == 256
    with pytest.raises(ModelError, match="cannot change"):
        with_serial(fit(log.select(log.size == 1)), 0.5)
    with pytest.raises(ModelError, match="no model"):
        load_model("grizly")
