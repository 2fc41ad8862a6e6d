"""Merging several workloads, and copying one: every job is there, with its own id."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.traces.batsim.workload import parse_batsim
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.load import load, save
from pipistrelle.traces.logs.labels import named_column
from pipistrelle.traces.transforms.arrivals import Gaps
from pipistrelle.traces.transforms.join import copies, copy_ids, merge
from pipistrelle.traces.workload import Workload


def rng(seed: int = 1) -> np.random.Generator:
    """Return a random generator."""
    return np.random.Generator(np.random.PCG64(seed))


def make(submits, first: int = 1, name: str = "t", **more) -> Workload:
    """Return a workload of jobs submitted at these times, numbered from `first`; each runs as long as its number."""
    numbers = np.arange(first, first + len(submits), dtype=np.int64)
    return Workload(
        name=name,
        source=f"{name}.swf",
        ids=list(map(str, numbers.tolist())),
        submit=np.array(submits, dtype=np.float64),
        size=np.ones(len(submits), dtype=np.int64),
        walltime=np.full(len(submits), 1e6),
        runtime=numbers.astype(np.float64),
        **more,
    )


def batsim(name: str, delay: float, job: str = "1") -> Workload:
    """Return a workload in Batsim's JSON of one job whose profile is called p."""
    text = {
        "jobs": [{"id": job, "subtime": 3, "res": 1, "profile": "p", "owner": name}],
        "profiles": {"p": {"type": "composed", "seq": ["d", "d"]}, "d": {"type": "delay", "delay": delay}},
    }
    return parse_batsim(json.dumps(text).encode(), f"{name}.json")


times = st.lists(st.integers(0, 50), min_size=1, max_size=20).map(sorted)


def kinds(*workloads: Workload) -> Counter:
    """Return the number of jobs by submit time and run time."""
    return Counter((s, r) for w in workloads for s, r in zip(w.submit.tolist(), w.runtime.tolist(), strict=True))


@given(st.lists(times, min_size=1, max_size=4))
def test_merging_keeps_every_job(lists):
    """All jobs with their times, in order, with different ids, whether or not ids were equal before."""
    parts = [make(submits, 100 * number) for number, submits in enumerate(lists, start=1)]
    clashing = [make(submits) for submits in lists]

    for some in (parts, clashing):
        whole = merge(some)
        assert kinds(whole) == kinds(*some)
        assert whole.submit.tolist() == sorted(whole.submit.tolist())
        assert len(set(whole.ids)) == len(whole)
    assert sorted(merge(parts).ids) == sorted(job for part in parts for job in part.ids)


def test_equal_times_go_in_the_order_of_the_workloads():
    """Within one workload they keep its order; equal ids are numbered in the new order."""
    whole = merge([make([0, 5, 5]), make([0, 5], 2)])

    assert whole.ids == ["1", "2", "3", "4", "5"]
    assert whole.runtime.tolist() == [1, 2, 2, 3, 3]
    assert merge([make([1, 1]), make([0, 1], 7)]).ids == ["7", "1", "2", "8"]


def test_dependencies_follow_the_new_numbers():
    """A job depends on the job of its own workload, whatever that job's new id is."""
    first = make([10, 20], labels={"dependency": ["", "afterok:1"]})
    second = make([0, 30], columns={"preceding": np.array([-1, 1], dtype=np.int64)})

    whole = merge([first, second])

    assert whole.runtime.tolist() == [1, 1, 2, 2]
    assert whole.labels["dependency"] == ["", "", "afterok:2", ""]
    assert whole.columns["preceding"].tolist() == [-1, -1, -1, 1]


def test_missing_columns_are_filled():
    """Columns get -1, labels are empty."""
    first = make([0], columns={"user": np.array([7])}, labels={"queue": ["q"]})
    second = make([1], 2, measures={"memory": np.array([2.5])})

    whole = merge([first, second])

    assert whole.columns["user"].tolist() == [7, -1]
    assert whole.measures["memory"].tolist() == [-1, 2.5]
    assert whole.labels["queue"] == ["q", ""]


def test_times_are_aligned():
    """By dates, by the times 0, or by the first jobs; the epoch is kept if there is one."""
    early, late = make([5], epoch=1000.0, timezone="UTC"), make([7, 8], 2, epoch=1100.0, timezone="UTC")

    dates = merge([late, early], "date")
    assert (dates.submit.tolist(), dates.epoch, dates.timezone) == ([5, 107, 108], 1000, "UTC")
    zero = merge([early, late], "zero")
    assert (zero.submit.tolist(), zero.epoch) == ([5, 7, 8], None)
    assert merge([early, make([6], 2, epoch=1000.0)], "zero").epoch == 1000
    assert merge([early, late], "first").submit.tolist() == [0, 0, 1]
    with pytest.raises(TraceError, match="the workload has no dates"):
        merge([early, make([1], 2)], "date")


def test_the_machine_and_the_header_of_several():
    """The largest machine; header lines that all have; a zone that all have."""
    first = make([0], header={"Computer": "x", "Version": "2"}, machine_size=8, timezone="UTC")
    second = make([0], 2, "u", header={"Computer": "y", "Version": "2"}, machine_size=16)

    whole = merge([first, second])

    assert (whole.name, whole.source) == ("t+u", "t.swf u.swf")
    assert (whole.machine_size, whole.timezone, whole.header) == (16, None, {"Version": "2"})


def test_numbers_that_headers_explain_differently_become_names(tmp_path):
    """Queue 1 of one workload and queue 1 of another stay separate, also in a file of numbers."""

    def one(first: int, line: str) -> Workload:
        return make([0, 1], first, columns={"queue": np.array([1, 2])}, header={"Queue": line})

    whole = merge([one(1, "1 batch\n2 fast"), one(3, "1 fast")])
    save(whole, tmp_path / "m.swf")
    again = load(tmp_path / "m.swf")

    named = dict(zip(whole.ids, whole.labels["queue"], strict=True))
    assert named == {"1": "batch", "2": "fast", "3": "fast", "4": "2"}
    assert dict(zip(again.ids, named_column(again, "queue"), strict=True)) == named
    same = merge([one(1, "1 batch"), one(3, "1 batch")])
    assert (same.columns["queue"].tolist(), same.header) == ([1, 1, 2, 2], {"Queue": "1 batch"})
    apart = merge([one(1, "1 batch"), one(3, "1 batch")], apart=True)
    assert apart.labels["queue"] == ["batch", "batch@2", "2", "2@2"]
    assert "Queue" not in apart.header


def test_dependencies_of_copies_survive_writing(tmp_path):
    """Also in Batsim's JSON, where the jobs' own objects name the originals."""
    text = {
        "jobs": [
            {"id": "1", "subtime": 0, "res": 1, "profile": "d"},
            {"id": "2", "subtime": 1, "res": 1, "profile": "d", "dependency": "afterok:1"},
        ],
        "profiles": {"d": {"type": "delay", "delay": 5}},
    }
    several = copies(parse_batsim(json.dumps(text).encode(), "w.json"), 2, rng(), every=10)
    save(several, tmp_path / "c.json")

    assert load(tmp_path / "c.json").labels["dependency"] == ["", "afterok:1", "", "afterok:11"]


def test_users_of_different_workloads_are_kept_apart():
    """Their numbers continue, and names get the workload's number; without the option, equal ones are the same user."""

    def one(first: int) -> Workload:
        columns = {"user": np.array([3, -1], dtype=np.int64)}
        return make([0, 1], first, columns=columns, labels={"queue": ["q", ""]})

    apart = merge([one(1), one(3), one(5)], apart=True)

    assert sorted(apart.columns["user"].tolist()) == [-1, -1, -1, 3, 6, 9]
    assert sorted(apart.labels["queue"]) == ["", "", "", "q", "q@2", "q@3"]
    assert set(merge([one(1), one(3)]).columns["user"].tolist()) == {3, -1}


def test_profiles_of_one_name_do_not_mix(tmp_path):
    """Each job keeps its profile, also after writing and reading; equal profiles are merged; a log's become delays."""
    whole = merge([batsim("a", 10), batsim("b", 20, "2"), batsim("c", 10, "3"), make([4], 9)])
    save(whole, tmp_path / "m.json")
    again = load(tmp_path / "m.json")

    assert whole.profiles == ["p", "p@2", "p", "9"]
    assert whole.runtime.tolist() == again.runtime.tolist() == [20, 40, 20, 9]
    text = json.loads((tmp_path / "m.json").read_text())
    assert text["profiles"]["p@2"]["seq"] == ["d@2", "d@2"]
    assert [job.get("owner") for job in text["jobs"]] == ["a", "b", "c", None]


@given(times, st.integers(1, 5), st.integers(0, 100), st.sampled_from(["job", "copy", "once"]))
def test_copying_multiplies_the_counts(submits, count, every, draw):
    """Each job is copied as often as requested, with its own id, in order; the originals are unchanged."""
    workload = make(submits)
    several = copies(workload, count, rng(), every=float(every), shift=(0.0, 10.0), draw=draw)

    assert Counter(several.runtime.tolist()) == Counter(dict.fromkeys(workload.runtime.tolist(), count))
    assert len(set(several.ids)) == len(several) == count * len(workload)
    assert several.submit.tolist() == sorted(several.submit.tolist())
    of_originals = several.select([several.ids.index(job) for job in workload.ids])
    assert of_originals == replace(workload)
    assert several == copies(workload, count, rng(), every=float(every), shift=(0.0, 10.0), draw=draw)


def test_copies_are_submitted_when_requested():
    """At the same time after the originals, regularly, later, earlier, randomly, or at given times."""
    workload = make([10, 20])

    assert copies(workload, 2, rng()).ids == ["1", "11", "2", "12"]
    assert copies(workload, 3, rng(), every=100).submit.tolist() == [10, 20, 110, 120, 210, 220]
    assert copies(workload, 3, rng(), shift=(5, 5)).submit.tolist() == [10, 15, 15, 20, 25, 25]
    assert copies(workload, 2, rng(), shift=(-10, -10)).submit.tolist() == [0, 10, 10, 20]
    assert copies(workload, 2, rng(), gaps=Gaps("fixed", 3)).submit.tolist() == [10, 10, 13, 20]
    with pytest.raises(TraceError, match="before time 0"):
        copies(workload, 2, rng(), shift=(-11, -11))
    with pytest.raises(TraceError, match="out of range"):
        copies(workload, 2, rng(), shift=(-1e308, 1e308))


def shifts(draw: str) -> list[list[float]]:
    """Return the shift of each job of three copies, by copy."""
    workload = make([0, 0, 0])
    several = copies(workload, 4, rng(), shift=(5, 9), draw=draw)
    return [[several.submit[several.ids.index(str(10 * k + job))] for job in (1, 2, 3)] for k in (1, 2, 3)]


def test_how_often_a_shift_is_drawn():
    """Per job, per copy, or once; always within its bounds."""
    assert len({time for copy in shifts("job") for time in copy}) == 9
    assert [len(set(copy)) for copy in shifts("copy")] == [1, 1, 1]
    assert len({copy[0] for copy in shifts("copy")}) == 3
    assert len({time for copy in shifts("once") for time in copy}) == 1
    assert all(5 <= time <= 9 for draw in ("job", "copy", "once") for copy in shifts(draw) for time in copy)


def test_a_copy_depends_on_copies():
    """It depends on the copies of the jobs that its original depends on; unknown jobs stay unknown."""
    workload = make(
        [0, 1, 2],
        labels={"dependency": ["", "afterok:1", "afterany:1:2,after:77"]},
        columns={"preceding": np.array([-1, 1, 2], dtype=np.int64)},
    )

    several = copies(workload, 2, rng(), every=10)

    assert several.ids == ["1", "2", "3", "11", "12", "13"]
    assert several.labels["dependency"][3:] == ["", "afterok:11", "afterany:11:12,after:77"]
    assert several.columns["preceding"].tolist() == [-1, 1, 2, -1, 11, 12]


def test_the_ids_of_copies():
    """Whole numbers get another leading digit, others a trailing number; neither may equal an existing id."""
    assert copy_ids(["11", "28490"], 1) == ["100011", "128490"]
    assert copy_ids(["11", "28490"], 12) == ["1200011", "1228490"]
    assert copy_ids(["a", "7"], 2) == ["a.2", "7.2"]
    assert copy_ids(["07", "7"], 1) == ["07.1", "7.1"]
    with pytest.raises(TraceError, match="too large for copies"):
        copy_ids(["1234567890123456"], 1)
    taken = replace(make([0, 1]), ids=["a", "a.1"])
    with pytest.raises(TraceError, match=r"two jobs would have the same id.*'a\.1'"):
        copies(taken, 2, rng())
    with pytest.raises(TraceError, match="at least 1"):
        copies(taken, 0, rng())
    with pytest.raises(TraceError, match="there would be too many jobs"):
        copies(taken, 10**9, rng())


def test_two_real_logs_are_merged(traces_dir):
    """KTH and Theta by date: every job, its run time, its own user."""
    logs = [load(traces_dir / f"{name}.swf.gz") for name in ("KTH-SP2-1996-2.1-cln", "ALCF-Theta-2022")]
    whole = merge(logs, "date", apart=True)

    assert len(whole) == 28476 + 23911 if len(logs[0]) == 28476 else len(whole) == sum(map(len, logs))
    assert whole.runtime.sum() == logs[0].runtime.sum() + logs[1].runtime.sum()
    assert whole.epoch == 0
    assert whole.machine_size == 4360
