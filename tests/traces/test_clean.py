"""Which jobs are dropped, and the order of those that are kept."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.traces.clean import (
    BAD_RECORD,
    NO_RUNTIME,
    NO_SIZE,
    NO_SUBMIT,
    NO_WALLTIME,
    REASONS,
    TOO_LARGE,
    clean,
    count_overruns,
)
from pipistrelle.traces.load import load
from pipistrelle.traces.workload import Workload


def make(rows: list[tuple[str, float, int, float, float]]) -> Workload:
    """Return a workload of (id, submit, size, walltime, runtime)."""
    return Workload(
        name="t",
        source="t",
        ids=[row[0] for row in rows],
        submit=np.array([row[1] for row in rows], dtype=np.float64),
        size=np.array([row[2] for row in rows], dtype=np.int64),
        walltime=np.array([row[3] for row in rows], dtype=np.float64),
        runtime=np.array([row[4] for row in rows], dtype=np.float64),
    )


@pytest.mark.parametrize(
    ("size", "walltime", "runtime", "reason"),
    [
        (1, 10, 0, NO_RUNTIME),
        (1, 10, -1, NO_RUNTIME),
        (-1, -1, 0, NO_RUNTIME),
        (1, 0, 10, NO_WALLTIME),
        (1, -1, 10, NO_WALLTIME),
        (99, 0, 10, NO_WALLTIME),
        (0, 10, 10, NO_SIZE),
        (-1, 10, 10, NO_SIZE),
        (9, 10, 10, TOO_LARGE),
    ],
)
def test_each_reason(size, walltime, runtime, reason):
    """A job that breaks several rules is counted under the first of them."""
    kept, dropped = clean(make([("1", 0, size, walltime, runtime), ("2", 0, 8, 1, 1)]), 8)
    assert kept.ids == ["2"]
    assert dropped == {reason: 1}


def test_reasons_come_in_their_order():
    """The counts are in the order of the rules, whatever the order of the jobs."""
    rows = [("1", 0, 99, 1, 1), ("2", 0, 0, 1, 1), ("3", 0, 1, 0, 1), ("4", 0, 1, 1, 0), ("5", 0, 1, 1, 0)]
    kept, dropped = clean(replace(make(rows), left_out={BAD_RECORD: 4, NO_SUBMIT: 3}), 8)
    assert len(kept) == 0
    expected = [(BAD_RECORD, 4), (NO_SUBMIT, 3), (NO_RUNTIME, 2), (NO_WALLTIME, 1), (NO_SIZE, 1), (TOO_LARGE, 1)]
    assert list(dropped.items()) == expected
    assert tuple(dropped) == REASONS


def test_jobs_without_a_fixed_run_time_are_kept():
    """A job whose hosts determine its duration is kept, and is not an overrun."""
    workload = make([("1", 0, 1, 10, float("nan"))])
    assert clean(workload, 8) == (workload, {})
    assert count_overruns(workload) == 0


def test_ids_can_compare_as_text():
    """Jobs with equal submit times are sorted by their ids' numbers, or as texts like in Batsim."""
    workload = make([("9", 0, 1, 1, 1), ("10", 0, 1, 1, 1), ("1", 5, 1, 1, 1)])
    assert clean(workload, None)[0].ids == ["9", "10", "1"]
    assert clean(workload, None, ids_as_text=True)[0].ids == ["10", "9", "1"]


def test_no_walltime_and_no_machine_size_are_no_reason():
    """A job without a limit is kept, and without a machine size no job is too large."""
    workload = make([("1", 0, 10**9, float("inf"), 1)])
    assert clean(workload, None) == (workload, {})


def test_numeric_ids_order_as_numbers():
    """Jobs of one instant are sorted by their numbers."""
    rows = [(name, 5, 1, 1, 1) for name in ("10", "9", "100", "2")] + [("500", 1, 1, 1, 1)]
    assert clean(make(rows), 8)[0].ids == ["500", "2", "9", "10", "100"]


def test_other_ids_order_as_text():
    """If one id is not a number, all of them compare as text."""
    rows = [(name, 5, 1, 1, 1) for name in ("10", "9", "b", "a1")]
    assert clean(make(rows), 8)[0].ids == ["10", "9", "a1", "b"]


def test_equal_numbers_do_not_tie():
    """Ids with equal numbers still have a fixed order."""
    rows = [(name, 5, 1, 1, 1) for name in ("7", "007", "07", "1")]
    assert clean(make(rows), 8)[0].ids == clean(make(rows[::-1]), 8)[0].ids == ["1", "007", "07", "7"]


def test_overruns():
    """A job overruns if it ran longer than requested; exactly as long is not an overrun."""
    assert count_overruns(make([("1", 0, 1, 10, 11), ("2", 0, 1, 10, 10), ("3", 0, 1, float("inf"), 99)])) == 1


JOBS = st.tuples(st.integers(0, 5), st.integers(-1, 9), st.integers(-1, 3), st.integers(-1, 3))


@given(st.lists(JOBS, max_size=20), st.randoms(use_true_random=False))
def test_result_does_not_depend_on_the_order_of_the_input(jobs, random):
    """Any order of the same jobs gives the same result, sorted, and every job is kept or counted."""
    rows = [(str(number), *map(float, job)) for number, job in enumerate(jobs)]
    kept, dropped = clean(make(rows), 8)
    random.shuffle(rows)
    again, dropped_again = clean(make(rows), 8)
    assert kept == again
    assert dropped == dropped_again
    assert all(dropped.values())
    assert len(kept) + sum(dropped.values()) == len(rows)
    keys = [(submit, int(job)) for submit, job in zip(kept.submit, kept.ids, strict=True)]
    assert keys == sorted(keys)
    assert clean(kept, 8) == (kept, {})


@pytest.mark.parametrize(
    ("file", "units", "jobs", "expected"),
    [
        ("KTH-SP2-1996-2.1-cln.swf.gz", 100, 28476, (28467, {NO_RUNTIME: 8, NO_SIZE: 1}, 475)),
        pytest.param(
            "CEA-Curie-2011-2.1-cln.swf.gz", 93312, 312826, (295540, {NO_RUNTIME: 17286}, 5416), marks=pytest.mark.slow
        ),
        pytest.param("HPC2N-2002-2.2-cln.swf.gz", 240, 202871, (202871, {}, 14817), marks=pytest.mark.slow),
        ("ALCF-Theta-2022.swf.gz", 4360, 23911, (23911, {}, 6264)),
        ("LANL-Grizzly-2018-01.swf", 1490, 774, (774, {}, 0)),
    ],
)
def test_real_logs(traces_dir, file, units, jobs, expected):
    """The real logs give the known counts for their own machines, and submit times are sorted."""
    left, dropped, overruns = expected
    workload = load(traces_dir / file)
    assert (len(workload), workload.machine_size) == (jobs, units)
    kept, counts = clean(workload, units)
    assert len(kept) == left
    assert counts == dropped
    assert count_overruns(kept) == overruns
    assert bool(np.all(np.diff(kept.submit) >= 0))
    smaller, counts = clean(workload, units // 2)
    assert counts[TOO_LARGE] == left - len(smaller)
