"""Runs compared with each other, against figures computed by hand and by brute force over the outputs."""

import csv
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.reports.report.comparison import BATCHES, Together, compare, half_width
from pipistrelle.reports.report.differences import first_difference
from pipistrelle.runs.execution.run import RunOptions, run_in_process
from pipistrelle.runs.folders.run_jobs import ReportError, read_run_jobs
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.traces.generator import generate


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return the jobs of three runs: fcfs, easy, and easy with failures."""
    folder = tmp_path_factory.mktemp("runs")
    workload = generate(jobs=600, units=64, seed=3, load=1.0)
    for policy in ("fcfs", "easy"):
        run_in_process(workload, policy, options=RunOptions(out=folder / policy))
    outages = Outages.of([Outage(node, 50_000.0 * (node + 1), 50_000.0 * (node + 1) + 3600.0) for node in range(30)])
    run_in_process(
        workload, "easy", reliability=Reliability(outages=outages), options=RunOptions(out=folder / "failing")
    )
    return {name: read_run_jobs(folder / name) for name in ("fcfs", "easy", "failing")}


def test_jobs_are_those_of_the_summary(runs):
    """Attempts of a job are one job: number and mean wait are the summary's, with failures too."""
    for run in runs.values():
        assert len(run) == run.summary["jobs"] - run.summary["rejected"]
        assert run.wait.mean() == pytest.approx(run.summary["mean_wait"])
        assert run.turnaround.mean() == pytest.approx(run.summary["mean_turnaround"])
        assert run.bounded_slowdown.mean() == pytest.approx(run.summary["mean_bounded_slowdown"])


def test_figures_are_those_of_the_files(runs):
    """Means, differences and better/worse counts, recomputed from the lines of both files."""
    waits = []
    for name in ("fcfs", "easy"):
        with (runs[name].folder / "out_jobs.csv").open() as file:
            waits.append({row["job_id"]: float(row["waiting_time"]) for row in csv.DictReader(file)})
    apart = [waits[1][job] - waits[0][job] for job in waits[0]]
    found = compare([runs["fcfs"], runs["easy"]])
    wait = found["figures"][0]

    assert found["jobs"] == 600
    assert found["same_workload"]
    assert wait["metric"] == "wait"
    assert wait["runs"][1]["mean"] == pytest.approx(math.fsum(waits[1].values()) / 600)
    assert wait["runs"][0]["p50"] == pytest.approx(np.median(list(waits[0].values())))
    assert wait["against_first"][0]["difference"] == pytest.approx(math.fsum(apart) / 600)
    assert wait["against_first"][0]["better"] == sum(one < 0 for one in apart)
    assert wait["against_first"][0]["worse"] == sum(one > 0 for one in apart)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


@pytest.mark.parametrize("by", ["size", "runtime", "user"])
def test_classes_are_a_division(runs, by):
    """Each job is in one class, and means by class, weighted, are the mean of all."""
    found = compare([runs["fcfs"], runs["easy"], runs["failing"]], [by])
    classes = found["classes"][by]

    assert sum(one["jobs"] for one in classes) == found["jobs"]
    for number, run in enumerate(found["figures"][0]["runs"]):
        total = math.fsum(one["jobs"] * one["mean_wait"][number] for one in classes)
        assert total / found["jobs"] == pytest.approx(run["mean"])


def test_sizes_go_in_powers_of_four(runs):
    """1, 2 to 4, 5 to 16, 17 to 64."""
    names = [one["class"] for one in compare([runs["easy"], runs["easy"]], ["size"])["classes"]["size"]]

    assert names == ["1", "2-4", "5-16", "17-64"]


def test_a_run_is_the_same_as_itself(runs):
    """No difference, of no job, with an interval of length 0."""
    found = compare([runs["failing"], runs["failing"]])

    assert first_difference(runs["failing"], runs["failing"]) is None
    assert all(figure["against_first"][0]["half_width"] == 0.0 for figure in found["figures"])


def test_where_two_runs_part(runs):
    """The first other decision, and the first job: both of the same instant where a job is started earlier."""
    part = first_difference(runs["fcfs"], runs["easy"])
    job, decision = part["job"], part["decision"]

    assert float(decision["second"]["time"]) <= float(decision["first"]["time"])
    assert decision["second"]["why"].startswith("backfilled before w0!")
    assert job["at"] == min(job["first"]["start"], job["second"]["start"])
    assert job["id"] == decision["second"]["job"]
    assert part["jobs"] == sum(
        (runs["fcfs"].start[at], runs["fcfs"].alloc[at])
        != (runs["easy"].start[runs["easy"].places[name]], runs["easy"].alloc[runs["easy"].places[name]])
        for name, at in runs["fcfs"].places.items()
    )


def test_only_jobs_in_common_count(tmp_path):
    """Another size is another job; runs without any in common are refused."""
    one, other = (generate(jobs=40, units=16, seed=seed, load=0.5) for seed in (1, 2))
    run_in_process(one, "fcfs", options=RunOptions(out=tmp_path / "one"))
    run_in_process(other, "fcfs", options=RunOptions(out=tmp_path / "other"))
    read = [read_run_jobs(tmp_path / name) for name in ("one", "other")]
    with pytest.raises(ReportError, match="no job in common"):
        Together.of(read)


@settings(max_examples=30)
@given(st.lists(st.floats(-1e6, 1e6), min_size=0, max_size=400), st.floats(-1e3, 1e3))
def test_an_interval_does_not_depend_on_where_zero_is(values, shift):
    """Too few jobs give no interval either."""
    apart = np.array(values)
    half = half_width(apart)

    assert (half is None) == (len(values) < 20)
    if half is not None:
        assert half_width(apart + shift) == pytest.approx(half, rel=1e-6, abs=1e-3)


def test_intervals_hold_as_often_as_they_say():
    """Of independent normal differences 95 % of intervals hold the mean 0, here 1,000 times."""
    rng = np.random.default_rng(7)
    samples = rng.normal(size=(1000, 10 * BATCHES))
    held = sum(abs(sample.mean()) <= half_width(sample) for sample in samples)

    assert 930 <= held <= 968
