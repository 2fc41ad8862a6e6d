"""Starting in the middle of a log: jobs that ran or were queued then are there, with their remaining times."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.runs.description.setup import load_jobs
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.server.setup.recorded import RecordedFigures
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.load import save
from pipistrelle.traces.transforms.start import AFTERWARDS, begun_at
from pipistrelle.traces.workload import Workload


def log_of(rows):
    """Return a log of jobs: submission, wait, run time, requested time."""
    submit, wait, runtime, walltime = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    return Workload(
        name="log",
        source="log",
        ids=[str(number + 1) for number in range(len(rows))],
        submit=submit,
        size=np.ones(len(rows), dtype=np.int64),
        walltime=walltime,
        runtime=runtime,
        measures={"wait": wait},
        machine_size=4,
        epoch=1000.0,
        header={"MaxProcs": "4"},
    )


ROWS = [
    (0.0, 10.0, 50.0, 60.0),  # ran from 10 to 60
    (5.0, 95.0, 20.0, 30.0),  # waited until 100
    (6.0, 2.0, 12.0, 30.0),  # ended at 20
    (7.0, -1.0, 12.0, 30.0),  # wait unknown
    (8.0, 2.0, 100.0, 25.0),  # its requested time ended at 35
    (40.0, 0.0, 9.0, 9.0),  # submitted then
    (70.0, 5.0, 9.0, 9.0),
]


def test_warm():
    """A running job has its remaining run time, a queued one its remaining wait; dates are unchanged."""
    begun = begun_at(log_of(ROWS), 40.0, warm=True)

    assert begun.ids == ["1", "2", "6", "7"]
    assert begun.submit.tolist() == [0.0, AFTERWARDS, AFTERWARDS, 30.0]
    assert begun.runtime.tolist() == [20.0, 20.0, 9.0, 9.0]
    assert begun.walltime.tolist() == [30.0, 30.0, 9.0, 9.0]
    assert (begun.submit + begun.measures["wait"]).tolist() == [0.0, 60.0, AFTERWARDS, 35.0]
    assert begun.epoch == 1040.0


def test_cold():
    """Without these jobs only later ones remain."""
    begun = begun_at(log_of(ROWS), 40.0, warm=False)

    assert (begun.ids, begun.submit.tolist(), begun.epoch) == (["6", "7"], [0.0, 30.0], 1040.0)


def test_what_cannot_be():
    """A log without starts cannot begin warm; a time after all jobs leaves none."""
    with pytest.raises(TraceError, match="running jobs are unknown"):
        begun_at(log_of([(0.0, -1.0, 5.0, 5.0)]), 1.0, warm=True)
    with pytest.raises(TraceError, match="no job is left"):
        begun_at(log_of(ROWS), 1000.0, warm=False)
    with pytest.raises(PipistrelleError, match="--warm requires --from"):
        load_jobs(RunSpec(warm=True), "demo")
    with pytest.raises(PipistrelleError, match="--from"):
        load_jobs(RunSpec(from_="soon"), "demo")


NUMBERS = st.tuples(st.integers(0, 60), st.integers(0, 30), st.integers(1, 40), st.sampled_from([20, 50]))


@given(st.lists(NUMBERS, min_size=1, max_size=12).map(sorted), st.integers(1, 59))
@settings(deadline=None, max_examples=40)
def test_recorded_starts_stay(rows, time):
    """By the machine's clock each remaining job starts when it did, or has already started."""
    log = log_of([tuple(map(float, row)) for row in rows])
    starts = dict(zip(log.ids, (log.submit + log.measures["wait"]).tolist(), strict=True))
    try:
        begun = begun_at(log, float(time), warm=True)
    except TraceError:
        assert all(start + min(row[2], row[3]) <= time for row, start in zip(rows, starts.values(), strict=True))
        return
    for row, name in enumerate(begun.ids):
        start = float(begun.submit[row] + begun.measures["wait"][row])
        assert start == max(starts[name] - time, begun.submit[row])
        assert begun.runtime[row] == rows[int(name) - 1][2] - max(time - starts[name], 0)
    assert np.all(np.diff(begun.submit) >= 0)


@pytest.mark.parametrize("scheduler", ["recorded", "easy", "maui"])
def test_runs_begin_there(tmp_path, scheduler):
    """A running job starts at time 0 under any scheduler; the description keeps the options."""
    rows = [(float(at), 5.0 * (at % 3), 40.0 + at, 80.0) for at in range(0, 90, 10)]
    save(log_of(rows), tmp_path / "log.swf")
    spec = RunSpec(workload=(str(tmp_path / "log.swf"),), scheduler=scheduler, from_="35s", warm=True)
    result = run(spec, RunOptions(out=tmp_path / "out"))

    lines = [line.split(",") for line in (tmp_path / "out" / "out_jobs.csv").read_text(encoding="utf-8").splitlines()]
    ran = [line for line in lines[1:] if line[3] == "0.000000"]
    assert len(ran) == sum(row[0] + row[1] < 35 < row[0] + row[1] + row[2] for row in rows)
    assert {line[8] for line in ran} == {"0.000000"}
    assert b'"from": "35s"' in (tmp_path / "out" / "out_command.json").read_bytes()
    if scheduler == "recorded":
        figures = result.summary.recorded
        assert isinstance(figures, RecordedFigures)
        assert figures.late == figures.no_room


def test_options_are_of_the_description():
    """The option's word, a Python keyword, is also the field's name."""
    assert replace(RunSpec(), from_="3d").from_ == "3d"
