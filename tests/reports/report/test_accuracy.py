"""The accuracy of a run against its log: figures computed by hand and by brute force, and the command line."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.cli.results.accuracy import command
from pipistrelle.platforms.description import homogeneous
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.reports.report.accuracy import WEEK, accuracy, curves, distributions, measures
from pipistrelle.reports.report.reality import Beside, beside
from pipistrelle.runs.description.reliability import load_reliability
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import RunOptions, run_in_process
from pipistrelle.runs.folders.run_jobs import ReportError, read_run_jobs
from pipistrelle.traces.generator import generate
from pipistrelle.traces.load import save
from pipistrelle.traces.transforms.cut import from_zero
from pipistrelle.traces.workload import Workload


@pytest.fixture(scope="module")
def log() -> Workload:
    """Return a log of three weeks whose jobs start some time after submission, one at an unknown time."""
    made = generate(jobs=900, units=32, seed=5, load=0.7)
    submit = made.submit * (3 * WEEK / made.submit.max())
    wait = np.random.default_rng(3).integers(0, 5000, len(made)).astype(float)
    wait[7] = -1.0
    return replace(made, submit=submit, measures={"wait": wait})


@pytest.fixture(scope="module")
def folder(log: Workload, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the log and two runs of it."""
    folder = tmp_path_factory.mktemp("runs")
    for policy in ("easy", "recorded"):
        run_in_process(log, policy, platform=homogeneous(32, "m"), options=RunOptions(out=folder / policy))
    save(log, folder / "log.swf")
    return folder


def both_of(folder: Path, log: Workload, name: str = "easy") -> Beside:
    """Return a run beside its log."""
    return beside(read_run_jobs(folder / name), log)


def test_errors_are_simulated_minus_real(folder: Path, log: Workload) -> None:
    """Mean, median and deviation equal numpy's over jobs after the first week, also by week."""
    both = both_of(folder, log)
    found = accuracy(both, by=("week", "size"))

    waits = {name.partition("!")[2]: wait for name, wait in zip(both.run.ids, both.run.wait, strict=True)}
    since = log.submit - log.submit[0]
    rows = [row for row in range(len(log)) if row != 7 and since[row] >= WEEK]
    errors = np.array([waits[log.ids[row]] - log.measures["wait"][row] for row in rows])
    everything = found["all"]
    assert everything["jobs"] == len(errors)
    assert everything["mean"] == pytest.approx(errors.mean())
    assert everything["median"] == pytest.approx(np.median(errors))
    assert everything["deviation"] == pytest.approx(errors.std(ddof=1))
    assert everything["mean_absolute"] == pytest.approx(np.abs(errors).mean())
    assert everything["shorter"] + everything["same"] + everything["longer"] == len(errors)
    assert found["left_out"]["without a start in the log"] == 1
    weeks = {one["class"]: one["jobs"] for one in found["classes"]["week"]}
    expected = {f"{week + 1}": int((since[rows] // WEEK == week).sum()) for week in range(4)}
    assert weeks == {week: jobs for week, jobs in expected.items() if jobs}
    assert sum(one["jobs"] for one in found["classes"]["size"]) == len(errors)


def test_reality_has_no_error(folder: Path, log: Workload) -> None:
    """When the run reproduces a feasible log, errors are zero and the curves are equal."""
    both = both_of(folder, log, "recorded")
    room = np.abs(both.real - both.simulated) <= 2e-6  # the outputs have six decimals
    found = accuracy(both, warm_up=0.0)["all"]

    assert found["same"] == int(room.sum())
    assert found["longer"] == len(both) - int(room.sum())
    if room.all():
        assert (found["mean"], found["deviation"], found["distance"]) == (0.0, 0.0, 0.0)


def test_curves_are_means_over_time(folder: Path, log: Workload) -> None:
    """Each stretch has what brute force finds second by second, on both sides."""
    both = both_of(folder, log)
    table = curves(both, 7200.0)

    for row in table[[0, 5, 30, 60, 100]]:
        low, high = row[0], row[0] + 7200.0

        def held(begin: Any, end: Any, weight: Any, low: float = low, high: float = high) -> float:
            return float((np.clip(np.minimum(end, high) - np.maximum(begin, low), 0, None) * weight).sum() / 7200.0)

        run = both.run
        assert row[1] == pytest.approx(held(both.start, both.end, both.size) / 32)
        assert row[2] == pytest.approx(held(run.start, run.end, run.size) / 32, abs=1e-6)
        assert row[3] == pytest.approx(held(both.submit, both.start, 1.0))
        assert row[4] == pytest.approx(held(run.submit, run.start, 1.0), abs=1e-6)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=30))
@settings(deadline=None, max_examples=40)
def test_distributions(waits: list[tuple[int, int]]) -> None:
    """Each observed wait has the share of jobs that waited no longer; the largest distance is reported."""
    real, simulated = (np.array(column, dtype=float) for column in zip(*waits, strict=True))
    rows = distributions(real, simulated)

    assert rows.tolist() == [
        [wait, (real <= wait).mean(), (simulated <= wait).mean()]
        for wait in sorted({*real.tolist(), *simulated.tolist()})
    ]
    assert measures(real, simulated)["distance"] == np.abs(rows[:, 1] - rows[:, 2]).max()


def test_another_time_zero(folder: Path, log: Workload, tmp_path: Path) -> None:
    """A run of a part of the log that begins at its own time 0 has the same real waits."""
    later = from_zero(log.select(log.submit > WEEK))
    run_in_process(later, "easy", platform=homogeneous(32, "m"), options=RunOptions(out=tmp_path / "later"))
    both = both_of(tmp_path, log, "later")

    expected = later.measures["wait"]
    assert both.real.tolist() == pytest.approx(expected[expected >= 0].tolist(), abs=2e-6)
    assert both.not_in_run == len(log) - len(later)


def test_other_logs_are_refused(folder: Path, log: Workload) -> None:
    """A log without starts, of other jobs, or of other times is none of this run's."""
    run = read_run_jobs(folder / "easy")
    with pytest.raises(ReportError, match="has no start times"):
        beside(run, replace(log, measures={}))
    with pytest.raises(ReportError, match="no job in common"):
        beside(run, replace(log, ids=[f"x{name}" for name in log.ids]))
    with pytest.raises(ReportError, match="submitted at other times"):
        beside(run, replace(log, submit=np.sort(np.sqrt(log.submit))))
    with pytest.raises(ReportError, match="no job is left to compare"):
        accuracy(beside(run, log), warm_up=5 * WEEK)
    with pytest.raises(ReportError, match="stretches of the curves are too short"):
        curves(beside(run, log), 0.5)


def test_command(folder: Path, tmp_path: Path) -> None:
    """Tables, JSON and files agree."""

    def tell(*words: str) -> str:
        found = CliRunner().invoke(command, [str(folder / "easy"), str(folder / "log.swf"), *words])
        assert found.exit_code == 0, found.output
        return found.output

    names = ("csv", "cdf", "curves", "jobs")
    files = [word for name in names for word in (f"--{name}", str(tmp_path / f"{name}.csv"))]
    shown = tell("--by", "week", "--warm-up", "1d", *files)
    told = json.loads(tell("--by", "week", "--warm-up", "1d", "--json"))
    rows = {
        name: list(csv.DictReader((tmp_path / f"{name}.csv").read_text(encoding="utf-8").splitlines()))
        for name in names
    }

    assert f"easy beside the log: {told['all']['jobs']:,} jobs" in shown
    assert float(rows["csv"][0]["mean"]) == told["all"]["mean"]
    assert [row["class"] for row in rows["csv"]] == ["", *(one["class"] for one in told["classes"]["week"])]
    assert len(rows["jobs"]) == told["jobs"]
    assert float(rows["cdf"][-1]["real"]) == float(rows["cdf"][-1]["simulated"]) == 1.0
    assert float(rows["curves"][1]["time"]) - float(rows["curves"][0]["time"]) == told["curves"]["step"]


def test_short_outages_are_left_out(tmp_path: Path) -> None:
    """Jobs under four minutes are left out, as in the paper; invalid lengths and empty choices are rejected."""
    (tmp_path / "o.csv").write_text("node,down,up,cause\n0,10,249,a\n1,10,250,b\n2,10,9999,c\n", encoding="utf-8")
    spec = RunSpec(outages=str(tmp_path / "o.csv"), outages_shortest="4m")
    found = load_reliability(spec, homogeneous(4, "m"), generate(jobs=5, units=4, seed=1, load=0.5))

    assert found is not None
    assert found.outages is not None
    assert [outage.node for outage in found.outages] == [1, 2]
    with pytest.raises(PipistrelleError, match="--outages-shortest"):
        load_reliability(replace_spec(spec, "soon"), homogeneous(4, "m"), generate(jobs=5, units=4, seed=1, load=0.5))
    with pytest.raises(PipistrelleError, match="need --outages FILE"):
        load_reliability(
            RunSpec(outages_shortest="4m"), homogeneous(4, "m"), generate(jobs=5, units=4, seed=1, load=0.5)
        )


def replace_spec(spec: RunSpec, shortest: str) -> RunSpec:
    """Return the description with another shortest outage."""
    return RunSpec(outages=spec.outages, outages_shortest=shortest)
