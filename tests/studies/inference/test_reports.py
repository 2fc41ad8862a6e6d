"""Tables of trials, comparisons, break-even points and charts, on a study with known waits."""

import json
import math
import sys

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.models.samples.estimates import StatisticsError
from pipistrelle.studies.inference.crossing import Curves, break_even
from pipistrelle.studies.inference.gaps import counted_causes, gaps
from pipistrelle.studies.inference.reports import by_size, comparison, summary
from pipistrelle.studies.inference.trials import TrialTable
from pipistrelle.studies.trials.study import Study
from pipistrelle.studies.workers.campaign import run as carry_out_study

EASY = [("policy", "easy")]


@pytest.fixture(scope="module")
def trials(make_trials):
    """Return a study of two policies, three factors and six repair times."""
    return TrialTable.read(make_trials())


def made(curves, x=None, replicas=1):
    """Return trials of curves as {factor: values}, over numbers from 1."""
    numbers = x or list(range(1, len(next(iter(curves.values()))) + 1))
    rows = [
        (factor, number, replica, value + replica * 0.0)
        for factor, values in curves.items()
        for number, value in zip(numbers, values, strict=True)
        for replica in range(replicas)
    ]
    names = ("factor", "x", "replica", "mean_wait")
    return TrialTable({name: [row[place] for row in rows] for place, name in enumerate(names)})


@pytest.mark.parametrize("facts", ["{", "[1]", '{"varied": 3}', '{"axes": [1]}', '{"a":' * 100_000])
def test_metadata_that_describe_no_study_are_refused(facts):
    """One message, for a table that another program or a stranger has made."""
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"replica": [0, 1]}).replace_schema_metadata({"pipistrelle": facts})
    with pytest.raises(StatisticsError, match="metadata do not describe a study"):
        TrialTable.of(table)


def test_axes_are_those_that_the_study_varied(trials, make_trials):
    """A table without axis names is understood, too: axes are the varying columns before the replicas."""
    other = TrialTable.read(make_trials(2, told=False) / "trials.parquet")

    assert trials.axes == other.axes == ["policy", "reliability_factor", "repair"]
    assert len(trials.cells) == 36
    assert trials.values("repair")[:2] == ["1min", "1h"]
    assert trials.number("repair", "13d") == 1123200.0
    assert trials.only([("repair", "60s")]).values("repair") == ["1min"]
    assert trials.only([("reliability-factor", "4.0"), ("reliability-factor", "1")]).values("reliability_factor") == [
        1,
        4,
    ]


def test_a_summary_has_each_metric_of_each_cell(trials):
    """Its means are near the known values, its rows in the order of the table."""
    rows = summary(trials, ["mean_wait", "utilisation"])

    assert len(rows) == 72
    assert rows[0].cell == {"policy": "easy-slices", "reliability_factor": 1, "repair": "1min"}
    assert rows[0].estimate.low < 1000 < rows[0].estimate.high
    assert rows[0].estimate.count == 8
    assert rows[-1].metric == "utilisation"
    assert rows[-1].estimate.relative == pytest.approx(0.0, abs=1e-12)
    medians = summary(trials, ["mean_wait"], quantile=0.5)
    assert medians[0].estimate.low < rows[0].estimate.value < medians[0].estimate.high
    assert {row.metric for row in summary(trials)} == {"mean_wait", "utilisation"}


def test_trials_without_a_figure_are_reported():
    """They are in no mean, and counted."""
    table = TrialTable({"policy": ["a", "a", "b"], "replica": [0, 1, 0], "mean_wait": [4.0, None, math.nan]})
    first, second = summary(table)

    assert (first.estimate.value, first.estimate.low, first.missing) == (4.0, None, 1)
    assert (second.estimate.value, second.missing) == (None, 1)


def test_a_comparison_is_of_pairs(trials):
    """Five per cent are five per cent in each cell, far more sharply than means of either tell."""
    rows = comparison(trials, "policy", "easy-slices", "easy", ["mean_wait"])

    assert len(rows) == 18
    for row in rows:
        assert row.pair.ratio_of_means.value == pytest.approx(1.05)
        assert row.pair.mean_of_ratios.value == pytest.approx(1.05)
        assert row.pair.difference.low > 0
        assert row.pair.gain > 100
        assert row.unpaired == 0


def test_replicas_that_one_lacks_are_left_out():
    """Pairs are of replicas that both have; the number of unpaired ones is stated."""
    table = TrialTable(
        {
            "policy": ["a", "a", "a", "b", "b"],
            "replica": [0, 1, 2, 1, 2],
            "seed": [5, 6, 7, 6, 7],
            "mean_wait": [1.0, 2.0, 3.0, 4.0, 5.0],
        }
    )
    (row,) = comparison(table, "policy", "a", "b")

    assert row.pair.difference.value == 2.0
    assert (row.pair.difference.count, row.unpaired) == (2, 1)


def test_replicas_of_other_seeds_are_no_pairs():
    """Two studies in one table are not compared as if they shared their random numbers."""
    table = TrialTable({"policy": ["a", "b"], "replica": [0, 0], "seed": [5, 6], "mean_wait": [1.0, 2.0]})

    with pytest.raises(StatisticsError, match="different seeds"):
        comparison(table, "policy", "a", "b")


def test_break_even_of_known_curves():
    """Factor 1 waits as factor 2 does in a minute, where 1000 + s/864 = 1414.3; a target, where a line reaches it."""
    numbers = [float(number) for number in np.geomspace(60, 2e6, 23)]
    waits = {factor: [1000 * factor**0.5 + factor * one / 864 for one in numbers] for factor in (1, 2, 4)}
    curves = Curves(made(waits, numbers), "x", "factor", "mean_wait")
    reached, met = break_even(curves, [3000.0])

    assert [row["at"] for row in reached] == pytest.approx(
        [2000 * 864, (3000 - 1000 * 2**0.5) * 432, 1000 * 216], rel=0.005
    )
    first = next(row for row in met if (row["curve"], row["other"]) == (1, 2))
    assert first["at"] == pytest.approx((1000 * 2**0.5 + 120 / 864 - 1000) * 864, rel=0.01)
    assert first["low"] is None
    assert next(row for row in met if (row["curve"], row["other"]) == (2, 1))["at"] == "below"
    assert curves.reach(0, 1e6).at == math.inf


def test_intervals_of_break_even_points_hold_the_truth():
    """Of seeded studies about 95 % of the intervals of a target's repair time hold it."""
    held, runs = 0, 60
    for seed in range(runs):
        rng = np.random.Generator(np.random.PCG64(seed))
        rows = []
        for replica in range(25):
            luck = rng.normal(0.0, 0.1)
            rows += [(x, replica, 10.0 * x * (1 + luck) + rng.normal()) for x in (1, 2, 3, 4, 5, 6, 7, 8)]
        table = TrialTable(dict(zip(("x", "replica", "mean_wait"), map(list, zip(*rows, strict=True)), strict=True)))
        found = Curves(table, "x", None, "mean_wait").reach(0, 45.0)
        held += found.low <= 4.5 <= found.high

    assert 0.87 <= held / runs <= 1.0


@given(st.lists(st.floats(0.0, 1e4, allow_subnormal=False), min_size=2, max_size=12), st.floats(-10.0, 1e4 + 10.0))
@settings(deadline=None, max_examples=80)
def test_what_is_reached_is_on_the_axis_or_beyond(values, target):
    """For any curve, the crossing is between its ends, at one, or reported as beyond; and its value is right."""
    curves = Curves(made({1: values}), "x", None, "mean_wait")
    found = curves.reach(0, target)

    _, path = curves.path(0)
    low, high = min(path[0], path[-1]), max(path[0], path[-1])
    if low + 1e-6 < target < high - 1e-6:
        assert 1.0 <= found.at <= len(values) + 1e-9
    elif not low - 1e-6 <= target <= high + 1e-6:
        assert math.isinf(found.at)


@given(st.integers(0, 1000))
@settings(deadline=None, max_examples=15)
def test_falling_curves_are_reached_as_rising_ones(seed):
    """A falling metric, such as utilisation, reaches its target where its mirror image does."""
    values = np.sort(np.random.Generator(np.random.PCG64(seed)).uniform(1.0, 9.0, 6)).tolist()
    rising = Curves(made({1: values}), "x", None, "mean_wait").reach(0, 5.0)
    falling = Curves(made({1: [10.0 - one for one in values]}), "x", None, "mean_wait").reach(0, 5.0)

    assert falling.at == pytest.approx(rising.at, rel=1e-9) or math.isinf(rising.at)


def test_a_curve_that_falls_by_chance_does_not_turn_the_others():
    """Waits rise with repair times; a reliable machine's, flat except for noise, reach a longer wait later."""
    curves = Curves(made({1: [10.0, 9.9, 9.8], 8: [12.0, 15.0, 30.0]}), "x", "factor", "mean_wait")

    assert curves.reach(0, 12.0).at == math.inf
    assert curves.meet(0, 1, 0).at == math.inf
    assert curves.reach(1, 5.0).at == -math.inf


def test_differences_by_size(trials):
    """Classes from the smallest, their shares, and all jobs at the end."""
    one = trials.only([("repair", "1d"), ("reliability_factor", "4")])
    rows = by_size(one, "policy", "easy-slices", "easy")

    assert [row.name for row in rows] == ["1", "2_15", "16_up", "all"]
    assert [row.share for row in rows] == [0.5, 0.3, 0.2, None]
    assert rows[2].pair.ratio_of_means.value == pytest.approx(1.05 / 1.1)
    with pytest.raises(StatisticsError, match="other axes have more than one value: reliability_factor, repair"):
        by_size(trials, "policy", "easy-slices", "easy")
    with pytest.raises(StatisticsError, match=r"sizes = \[1, 2, 16, 128\]"):
        by_size(one, "policy", "easy-slices", "easy", "utilisation")


def test_omitted_values_are_reported():
    """Windows at both ends, and jobs that had not ended, in a line each; axes have their options' names, too."""
    table = TrialTable(
        {
            "policy": ["a", "b"],
            "replica": [0, 0],
            "warm_up": ["30d", "30d"],
            "drain": [None, None],
            "mean_wait": [1.0, 2.0],
            "running_at_end": [3, 0],
            "waiting_at_end": [0, 1200],
        }
    )

    assert table.remarks() == [
        "left out of each trial: warm-up 30d",
        "means leave out unfinished jobs: up to 3 running and 1,200 queued in a trial",
    ]
    assert table.axis("scheduler") == "policy"
    assert len(table.only([("scheduler", "b")])) == 1


def test_without_pyarrow_the_extra_is_named(make_trials, monkeypatch):
    """One clear error says what to install."""
    folder = make_trials(1)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)

    with pytest.raises(StatisticsError, match=r"pipistrelle\[study\]"):
        TrialTable.read(folder)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"policy": ["a"], "mean_wait": [1.0]}, "column 'replica' is missing"),
        ({"policy": [], "replica": [], "mean_wait": []}, "there are no trials"),
        ({"policy": ["a", "a"], "replica": [0, 0], "mean_wait": [1.0, 2.0]}, "a replica occurs twice"),
    ],
)
def test_tables_that_are_no_study(columns, message):
    """Errors are raised at once."""
    with pytest.raises(StatisticsError, match=message):
        TrialTable(columns)


def test_questions_without_an_answer(trials, tmp_path):
    """No such column, value or axis, a text for a figure, a folder without results."""
    with pytest.raises(StatisticsError, match=r"column 'mean_wiat' is missing\. Did you mean 'mean_wait'"):
        summary(trials, ["mean_wiat"])
    with pytest.raises(StatisticsError, match="policy has no value 'maui'"):
        trials.value("policy", "maui")
    with pytest.raises(StatisticsError, match="'workload' has only one value"):
        trials.axis("workload")
    with pytest.raises(StatisticsError, match="'engine' is not a number"):
        summary(trials, ["engine"])
    with pytest.raises(StatisticsError, match="other axes have more than one value: policy"):
        Curves(trials, "repair", "reliability_factor", "mean_wait")
    with pytest.raises(StatisticsError, match="neither a number nor a length of time"):
        Curves(trials.only([("repair", "1d")]), "policy", "reliability_factor", "mean_wait")
    with pytest.raises(StatisticsError, match="there is no such folder"):
        TrialTable.read(tmp_path / "nowhere")
    with pytest.raises(StatisticsError, match=r"no trials.parquet"):
        TrialTable.read(tmp_path)
    (tmp_path / "x.parquet").write_text("no")
    with pytest.raises(StatisticsError, match="cannot be read as Parquet"):
        TrialTable.read(tmp_path / "x.parquet")


def test_what_variants_set_follows_from_their_names(tmp_path):
    """Logs with their machines are one axis: a variant selects and labels, and two of them can be compared."""
    rows = [
        (log, policy, f"{log}.swf.gz", size, replica, replica, float(size + replica))
        for log, size in (("kth", 100), ("hpc2n", 240))
        for policy in ("fcfs", "easy")
        for replica in range(3)
    ]
    names = ("log", "policy", "workload", "platform", "replica", "seed", "mean_wait")
    variants = [{"name": log, "workload": f"{log}.swf.gz", "platform": "x"} for log in ("kth", "hpc2n")]
    described = {"varied": ["log", "workload", "platform", "policy"], "axes": [["log", variants], ["scheduler", []]]}
    table = pyarrow.table(
        dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)),
        metadata={"pipistrelle": json.dumps(described)},
    )
    trials = TrialTable.of(table)

    assert trials.axes == ["log", "policy"]
    assert trials.only([("log", "kth")]).axes == ["policy"]
    assert comparison(trials, "log", "kth", "hpc2n")[0].pair.difference.value == 140.0
    with pytest.raises(StatisticsError, match="'workload' follows from the variants of 'log': expected an axis: log"):
        trials.axis("workload")
    with pytest.raises(StatisticsError, match="'jobs' is missing"):
        trials.axis("jobs")


def test_causes_of_missing_figures():
    """Stalled trials have the message without its times; other trials say what they lack."""
    columns = {
        "policy": ["a"] * 5,
        "replica": [0, 1, 2, 3, 4],
        "reason": ["stalled", "stalled", "completed", "horizon", "completed"],
        "message": ["simulated time 3.0: no event: found 3.", "m", "", "", ""],
        "cause": ["no event", None, None, None, None],
        "completed": [None, None, 3, 0, 3],
        "killed_at_walltime": [None, None, 0, 0, 0],
        "killed": [None, None, 0, 0, 0],
        "mean_wait": [None, None, 1.0, None, math.nan],
        "jobs_queue_fast": [None, None, 0, 0, 2],
        "mean_wait_queue_fast": [None] * 5,
    }
    trials = TrialTable(columns, axes=["policy"])

    assert [gap.cause for gap in gaps(trials, "mean_wait")] == [
        "stalled: no event",
        "stalled: m",
        "in which no job ended",
        "without this metric (completed)",
    ]
    assert [gap.cause for gap in gaps(trials, "mean_wait_queue_fast")][2:] == [
        "whose workload has no such jobs",
        "whose workload has no such jobs",
        "in which none of these jobs ended",
    ]
    assert counted_causes(gaps(trials, "mean_wait_queue_fast"))["whose workload has no such jobs"] == 2


def test_a_study_in_which_every_trial_stalled_has_the_usual_columns():
    """Its means are empty, and the commands say why."""
    run = {"platform": "demo", "failures": "exponential,mtbf=60d", "repair": "10y"}
    few = {"transform": [{"step": "filter", "first": 40}]}  # job 30 needs all nodes
    table = carry_out_study(Study(run | few, replicas=2), jobs=1).table

    assert set(table.column("reason").to_pylist()) == {"stalled"}
    assert table.column("mean_wait").to_pylist() == [None, None]
    assert "units than are ever up together" in table.column("cause").to_pylist()[0]
    assert summary(TrialTable.of(table), ["mean_wait"])[0].missing == 2
