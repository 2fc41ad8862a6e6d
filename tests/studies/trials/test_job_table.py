"""The table of a run's jobs: its metrics equal those of the run's summary, and windows filter as stated."""

import math

import msgspec
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.job_table import STATES, JobTable, JobTableBook
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.inputs.steps import Filter
from pipistrelle.server.simulation.simulate import Result
from pipistrelle.studies.measures.metrics import metrics
from pipistrelle.studies.measures.window import Leave, WindowError

FAILING = RunSpec(
    transform=(Filter(first=400),),
    platform="demo",
    failures=("exponential,mtbf=60d",),
    repair="6h",
    checkpoint="daly",
    dump="1min",
)
RUNS = {
    "plain": RunSpec(),
    "fcfs": RunSpec(scheduler="fcfs"),
    "cut": RunSpec(until="20h"),
    "failing": FAILING,
    "failing, cut": msgspec.structs.replace(FAILING, until="2d"),
    "given up": msgspec.structs.replace(FAILING, requeue="never"),
    "before all": RunSpec(until="1s"),
}


def carried_out(spec: RunSpec) -> tuple[JobTable, Result]:
    """Return a run's table and its result."""
    book = JobTableBook(with_nodes=True)
    result = run(spec, RunOptions(observers=[book]))
    summary = result.summary
    return book.table(dropped=sum(summary.dropped.values()), reliability=summary.reliability), result


@pytest.mark.parametrize("name", RUNS)
def test_the_metrics_of_a_whole_run_are_those_of_its_summary(name):
    """Each figure that both have has the same value, to the last bit."""
    table, result = carried_out(RUNS[name])
    figures = metrics(table)
    expected = msgspec.to_builtins(result.summary)
    expected |= expected.pop("reliability") or {}
    del expected["reason"], expected["message"], expected["dropped"]
    expected.pop("by_size", None)
    for kind in ("node_seconds", "unit_seconds"):
        expected |= {f"{kind}_{part}": value for part, value in expected.pop(kind, {}).items()}

    assert {key: figures[key] for key in expected} == expected


def test_requeued_job_is_one_row():
    """Its wait and execution time are summed over its attempts, its units over its holds."""
    table, result = carried_out(FAILING)
    again = np.flatnonzero(table.attempts > 1)

    assert again.size
    assert int(table.attempts.sum()) == table.holder.size == result.summary.reliability.attempts
    row = int(again[0])
    held = table.holder == row
    times = table.held_until[held] - table.held_from[held]
    assert table.execution[row] == pytest.approx(math.fsum(times))
    assert len(table.nodes[row]) == table.held_units[held][-1]
    assert_array_equal(np.sort(table.submit), table.submit)


def test_unfinished_jobs_are_counted_apart():
    """At a horizon running and queued jobs are counted, and are in no mean."""
    table, _ = carried_out(RUNS["cut"])
    figures = metrics(table)
    states = [STATES[state] for state in table.state]

    assert figures["running_at_end"] == states.count("RUNNING") > 0
    assert figures["waiting_at_end"] == states.count("SUBMITTED") > 0
    assert figures["jobs"] == figures["completed"] + figures["killed_at_walltime"] + figures["unfinished"]


def test_windows_by_jobs_and_by_time():
    """Omitted jobs are in no count; the machine's figures are of the remaining time."""
    table, _ = carried_out(RUNS["plain"])
    submit = table.submit
    by_jobs = metrics(table, warm_up=Leave(jobs=20), drain=Leave(jobs=30))
    assert by_jobs["jobs"] == len(table) - 50
    assert (by_jobs["counted_from"], by_jobs["counted_to"]) == (submit[20], submit[-30])
    assert by_jobs["mean_wait"] == pytest.approx(float(table.wait[20:-30].mean()))

    by_time = metrics(table, warm_up=Leave(seconds=7200.0), drain=Leave(seconds=3600.0))
    end = submit[-1] - 3600.0
    inside = (submit >= 7200.0) & (submit < end)
    assert by_time["jobs"] == int(inside.sum())
    held = np.minimum(table.held_until, end) - np.maximum(table.held_from, 7200.0)
    busy = float((np.maximum(held, 0.0) * table.held_units).sum())
    assert by_time["utilisation"] == pytest.approx(busy / (table.units * (end - 7200.0)))


def test_classes_of_sizes():
    """Each class has its jobs, and the classes together have all of them."""
    table, _ = carried_out(RUNS["plain"])
    figures = metrics(table, sizes=(1, 2, 4))

    assert figures["jobs_1"] + figures["jobs_2_3"] + figures["jobs_4_up"] == len(table)
    assert figures["mean_wait_2_3"] == pytest.approx(float(table.wait[(table.size >= 2) & (table.size < 4)].mean()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("30d", Leave(seconds=2_592_000.0)), ("1,000 jobs", Leave(jobs=1000)), ("1 job", Leave(jobs=1))],
)
def test_what_is_left_out_is_read(text, expected):
    """A length of time, or a number of jobs."""
    assert Leave.parse(text, "metrics.warm-up") == expected


def test_a_window_without_anything_is_refused():
    """The message states the amount."""
    table, _ = carried_out(RUNS["plain"])
    with pytest.raises(WindowError, match="leave nothing of the run"):
        metrics(table, warm_up=Leave(jobs=len(table)))
    with pytest.raises(WindowError, match="is not a length of time"):
        Leave.parse("1000 job s", "metrics.warm-up")
