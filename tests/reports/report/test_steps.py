"""The time-step study: by week, against the log and against the run that is driven by events."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

from pipistrelle.cli.study.steps import command
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.reports.report.accuracy import WEEK
from pipistrelle.reports.report.time_steps import time_steps, week_of
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.traces.generator import generate
from pipistrelle.traces.load import load, save


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Return the path of a log of about four weeks, with waits of 7 s each."""
    from dataclasses import replace

    made = generate(jobs=400, units=16, seed=2, load=0.8)
    submit = np.floor(made.submit * (4 * WEEK / made.submit.max()))
    path = tmp_path_factory.mktemp("log") / "log.swf"
    save(replace(made, submit=submit, measures={"wait": np.full(400, 7.0)}), path)
    return path


def test_weeks_have_the_one_before(log):
    """Week 3 begins two weeks after the first job, with the second before it; time 0 is where that begins."""
    whole = load(log)
    part = week_of(whole, 3, WEEK)
    since = whole.submit - whole.submit[0]

    assert part.ids == [whole.ids[row] for row in np.flatnonzero((since >= WEEK) & (since < 3 * WEEK))]
    assert part.submit[0] + whole.submit[0] + WEEK == whole.submit[whole.ids.index(part.ids[0])]
    assert week_of(whole, 1, WEEK).submit[0] == 0.0
    with pytest.raises(PipistrelleError, match=r"week 9.*one of its weeks 1 to [45]"):
        week_of(whole, 9, WEEK)


def test_errors_grow_with_the_step(log):
    """A step of 1 s is exact where all times are whole seconds; a longer one is not, and costs waits."""
    rows = list(time_steps(RunSpec(workload=(str(log),)), (2,), ("1s", "600s")))

    events, fine, coarse = (row["against_events"] for row in rows)
    assert (events["mean_absolute"], fine["mean_absolute"]) == (0.0, 0.0)
    assert coarse["mean"] > 0
    assert coarse["longer"] > coarse["jobs"] // 2
    whole = load(log)
    since = whole.submit - whole.submit[0]
    assert {row["jobs"] for row in rows} == {int(((since >= WEEK) & (since < 2 * WEEK)).sum())}
    assert rows[0]["against_log"]["real"]["mean"] == 7.0
    with pytest.raises(PipistrelleError, match="weeks begin and end where they do"):
        list(time_steps(RunSpec(workload=(str(log),), until="3d"), (2,)))


def test_command(log, tmp_path):
    """The table, JSON and the file have a line for each run."""
    words = ["-w", str(log), "--week", "2", "--week", "3", "--step", "60s", "--warm-up", "1d", "-q"]
    shown = CliRunner().invoke(command, words)
    told = CliRunner().invoke(command, [*words, "--json", "--csv", str(tmp_path / "s.csv")])

    assert shown.exit_code == told.exit_code == 0, shown.output + told.output
    assert len(shown.output.splitlines()) == 2 + 4
    rows = json.loads(told.output)
    assert [(row["week"], row["step"]) for row in rows] == [(2, None), (2, "60s"), (3, None), (3, "60s")]
    lines = list(csv.DictReader((tmp_path / "s.csv").read_text(encoding="utf-8").splitlines()))
    assert [float(line["log_mean"]) for line in lines] == [row["against_log"]["mean"] for row in rows]
    assert CliRunner().invoke(command, [*words, "--poll", "5s"]).exit_code == 2
