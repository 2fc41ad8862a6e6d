"""The order in which the jobs of several workloads are submitted."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.traces.workload import Workload, submissions


def workload(*times):
    """Return a workload with these submit times."""
    count = len(times)
    return Workload(
        name="w",
        source="w",
        ids=[str(row) for row in range(count)],
        submit=np.array(times, dtype=np.float64),
        size=np.ones(count, dtype=np.int64),
        walltime=np.full(count, np.inf),
        runtime=np.ones(count),
    )


def test_by_time_then_workload_then_row():
    """Jobs with equal times are in the order of the workloads, then of their rows."""
    both = {"w1": workload(0, 5, 5), "w0": workload(5, 5, 6), "w2": workload()}
    assert list(submissions(both)) == [("w1", 0), ("w1", 1), ("w1", 2), ("w0", 0), ("w0", 1), ("w0", 2)]
    assert list(submissions({"w0": workload(3, 4)})) == [("w0", 0), ("w0", 1)]
    assert list(submissions({})) == []


@given(st.lists(st.lists(st.integers(0, 5).map(float), max_size=8).map(sorted), min_size=2, max_size=4))
def test_every_job_once_in_order(times):
    """It is the stable sort by time of the concatenated workloads."""
    jobs = [(time, f"w{place}", row) for place, column in enumerate(times) for row, time in enumerate(column)]
    expected = [(prefix, row) for _, prefix, row in sorted(jobs, key=lambda job: job[0])]
    assert list(submissions({f"w{place}": workload(*column) for place, column in enumerate(times)})) == expected


def test_long_workloads():
    """Blocks join without loss."""
    times = np.arange(10000.0)
    order = list(submissions({"a": workload(*times), "b": workload(*times + 0.5)}))
    assert order == [(prefix, row) for row in range(10000) for prefix in "ab"]
