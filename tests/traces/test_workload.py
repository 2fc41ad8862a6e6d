"""The columns of a workload."""

import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.traces.profiles import Delay, ParallelHomogeneous
from pipistrelle.traces.workload import Workload, decimal_text, decimal_texts


def make(count: int = 3) -> Workload:
    """Return a small workload with every kind of column."""
    return Workload(
        name="t",
        source="t.swf",
        ids=[str(row + 1) for row in range(count)],
        submit=np.arange(count, dtype=np.float64),
        size=np.arange(count, dtype=np.int64) + 1,
        walltime=np.full(count, np.inf),
        runtime=np.full(count, 3477.0),
        columns={"user": np.arange(count, dtype=np.int64)},
        measures={"wait": np.arange(count, dtype=np.float64)},
        header={"Note": "x"},
    )


def test_length_and_profile_of_a_log():
    """A log's job has as profile the shortest decimal text of its run time."""
    workload = replace(make(), runtime=np.array([3477.0, 12.5, 1e22]))
    assert len(workload) == 3
    assert [workload.profile_of(row) for row in range(3)] == ["3477", "12.5", "1" + "0" * 22]


def test_profile_of_named():
    """A workload with profiles gives their names."""
    assert replace(make(), profiles=["a", "b", "a"]).profile_of(1) == "b"


def test_frozen_and_without_dict():
    """Fields cannot be set, and no dictionary is kept with each workload."""
    workload = make()
    with pytest.raises(FrozenInstanceError):
        workload.name = "u"
    assert not hasattr(workload, "__dict__")


def test_equality_compares_every_column():
    """Workloads are equal when all their columns are, and have no hash."""
    assert make() == make()
    assert make() != make(2)
    assert make() != "t"
    for change in (
        {"name": "u"},
        {"submit": np.array([0.0, 1.0, 3.0])},
        {"columns": {}},
        {"columns": {"user": np.array([0, 1, 3])}},
        {"measures": {"wait": np.array([0.0, 1.0, 3.0])}},
        {"profiles": ["a", "b", "c"]},
        {"machine_size": 3},
    ):
        assert make() != replace(make(), **change), change
    with pytest.raises(TypeError):
        hash(make())


def test_pickles_for_worker_processes():
    """A workload goes to another process and back unchanged."""
    assert pickle.loads(pickle.dumps(make())) == make()  # noqa: S301


@pytest.mark.parametrize(
    "change",
    [
        {"submit": np.zeros(2)},
        {"submit": np.zeros(3, dtype=np.float32)},
        {"size": np.zeros(3)},
        {"columns": {"user": np.zeros(3)}},
        {"measures": {"wait": np.zeros(4)}},
        {"profiles": ["a"]},
    ],
)
def test_wrong_columns_raise_value_error(change):
    """Columns of another length or type raise ValueError."""
    with pytest.raises(ValueError, match=r"must be|profiles for"):
        replace(make(), **change)


def test_select_by_mask_and_by_index():
    """A mask keeps the order, indices give one; every column follows."""
    workload = replace(make(), profiles=["a", "b", "c"])
    assert workload.select(np.array([True, False, True])) == workload.select([0, 2])
    turned = workload.select(np.array([2, 0]))
    assert turned.ids == ["3", "1"]
    assert turned.profiles == ["c", "a"]
    assert turned.submit.tolist() == [2.0, 0.0]
    assert turned.columns["user"].tolist() == [2, 0]
    assert turned.measures["wait"].tolist() == [2.0, 0.0]
    assert len(workload.select([])) == 0


def test_select_refuses_a_mask_of_another_length():
    """A mask must have one entry per job."""
    with pytest.raises(ValueError, match="mask"):
        make().select(np.array([True]))


@given(st.floats(min_value=0, max_value=1e300))
def test_decimal_text_is_exact(value):
    """The text has no exponent and reads back as the same double."""
    text = decimal_text(value)
    assert "e" not in text
    assert float(text) == value
    assert not text.endswith(".0")


@given(st.lists(st.one_of(st.integers(-5, 2**53).map(float), st.floats(0, 1e6))))
def test_decimal_texts_is_decimal_text_of_each(values):
    """The fast path for whole numbers gives the same texts."""
    assert [decimal_text(value) for value in values] == decimal_texts(np.array(values, dtype=np.float64))


def test_profiles_and_unknown_run_times_compare():
    """Jobs are equal by the profiles that they use; unused profiles and the original text are not compared."""
    p, q = Delay(name="p", delay=1), ParallelHomogeneous(name="p", cpu=1, com=0)
    profiles, runtime = ["p"] * 3, np.full(3, np.nan)
    workload = replace(make(), profiles=profiles, runtime=runtime, table={"p": q}, job_json=[b"{}"] * 3)
    assert workload == replace(workload, table={"p": q, "x": p}, job_json=None, profile_json={})
    assert workload != replace(workload, table={"p": p})
    assert workload != replace(workload, table=None)
    assert workload != replace(workload, runtime=np.ones(3))


def test_profiles_and_text_are_selected():
    """A selection has its jobs' objects, and all the profiles."""
    table, texts = {"p": Delay(name="p", delay=1)}, [b"0", b"1", b"2"]
    workload = replace(make(), profiles=["p"] * 3, table=table, profile_json={"p": b"{}"}, job_json=texts)
    chosen = workload.select([2, 0])
    assert (chosen.job_json, chosen.table, chosen.profile_json) == ([b"2", b"0"], table, {"p": b"{}"})
    assert pickle.loads(pickle.dumps(chosen)) == chosen  # noqa: S301
    with pytest.raises(ValueError, match="2 JSON objects for 3 jobs"):
        replace(workload, job_json=texts[:2])
