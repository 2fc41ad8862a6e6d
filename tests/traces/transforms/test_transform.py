"""Transforming workloads: what is cut, scaled and redistributed, and what is unchanged."""

import json
from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.traces.batsim.workload import parse_batsim
from pipistrelle.traces.clean import clean
from pipistrelle.traces.describe import offered_load
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.generator import generate
from pipistrelle.traces.load import load, save
from pipistrelle.traces.transforms.arrivals import Gaps, redraw_submits, shuffle_submits
from pipistrelle.traces.transforms.cut import changed, forget_in, from_zero, keep, sample
from pipistrelle.traces.transforms.scale import (
    draw_walltimes,
    fix_walltimes,
    scale_arrivals,
    scale_machine,
    scale_runtimes,
    scale_sizes,
    scale_to_load,
    scale_walltimes,
    stretch_remark,
    walltimes_of_runtimes,
)
from pipistrelle.traces.workload import Workload

JSON = {
    "nb_res": 8,
    "jobs": [
        {"id": "a", "subtime": 0, "res": 2, "walltime": 30, "profile": "d10", "owner": "x"},
        {"id": "b", "subtime": 5, "res": 4, "profile": "twice"},
    ],
    "profiles": {
        "d10": {"type": "delay", "delay": 10, "ret": 3},
        "d4": {"type": "delay", "delay": 4},
        "twice": {"type": "composed", "repeat": 2, "seq": ["d4", "d4"]},
    },
}


def rng(seed: int = 1) -> np.random.Generator:
    """Return a random generator."""
    return np.random.Generator(np.random.PCG64(seed))


def make(rows, **more) -> Workload:
    """Return a workload of (submit, size, walltime, runtime), with ids from 1 and a user each."""
    columns = np.array(rows, dtype=np.float64).reshape(len(rows), 4)
    return Workload(
        name="t",
        source="t.swf",
        ids=[str(number) for number in range(1, len(rows) + 1)],
        submit=columns[:, 0],
        size=columns[:, 1].astype(np.int64),
        walltime=columns[:, 2],
        runtime=columns[:, 3],
        columns={"user": np.arange(1, len(rows) + 1, dtype=np.int64)},
        machine_size=64,
        **more,
    )


def batsim() -> Workload:
    """Return the small workload in Batsim's JSON."""
    return parse_batsim(json.dumps(JSON).encode(), "w.json")


jobs = st.tuples(st.integers(0, 10**6), st.integers(-1, 64), st.integers(-1, 10**5), st.integers(-1, 10**5))
workloads = st.lists(jobs, min_size=1, max_size=30).map(lambda rows: make(sorted(rows)))
seeds = st.integers(0, 1000)


@given(workloads, st.data())
def test_jobs_that_are_kept_stay_as_they_are(workload, data):
    """Kept jobs have the same columns, in the same order; the input is unchanged."""
    before = workload.select(np.arange(len(workload)))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(workload), max_size=len(workload))))
    if not mask.any():
        with pytest.raises(TraceError, match="no job is left"):
            keep(workload, mask)
    else:
        assert keep(workload, mask) == workload.select(mask)
    assert workload == before


def test_an_empty_selection_tells_when_jobs_were_submitted():
    """A log may begin long after its time 0, so that a period from 0 on has no job."""
    late = replace(generate(jobs=5, units=8, seed=1), submit=np.arange(5.0) * 86400 + 1000 * 86400)
    with pytest.raises(TraceError, match=r"5 jobs, submitted on days 1,000 to 1,004 of the log.*'rebase'"):
        keep(late, np.zeros(5, dtype=np.bool_))


def test_dependencies_on_dropped_jobs_are_removed():
    """Neither in the text of dependencies nor as preceding jobs; dependencies on kept jobs stay."""
    workload = make(
        [(0, 1, 10, 10)] * 4,
        labels={"dependency": ["", "afterok:1", "afterok:1:2,afterany:1?after:2+30", "singleton,afterok:1"]},
    )
    workload = changed(workload, columns={"preceding": np.array([-1, 1, 2, 99], dtype=np.int64)})

    kept = keep(workload, np.array([False, True, True, True]))

    assert kept.labels["dependency"] == ["", "afterok:2?after:2+30", "singleton"]
    assert kept.columns["preceding"].tolist() == [-1, 2, 99]
    assert workload.labels["dependency"][1] == "afterok:1"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("afterok:3:4,afterany:7", "afterok:3"),
        ("after:4?afterok:5", "afterok:5"),
        ("afterok:4", ""),
        ("AFTEROK:4:5", "AFTEROK:5"),
        ("singleton", "singleton"),
        ("expand:4", "expand:4"),
        ("after:4+30(unfulfilled),after:5", "after:5"),
    ],
)
def test_dropped_jobs_are_removed_from_dependencies(text, left):
    """Jobs 4 and 7 are gone; unknown kinds are unchanged."""
    assert forget_in(text, {"4", "7"}) == left


def test_the_header_counts_the_jobs_that_are_left():
    """Its counts follow, and the date of the last job is removed; without a change the header is unchanged."""
    header = {"MaxJobs": "2", "MaxRecords": "2", "EndTime": "then", "Computer": "c"}
    workload = make([(0, 1, 1, 1), (1, 1, 1, 1)], header=header)

    assert keep(workload, np.array([True, False])).header == {"MaxJobs": "1", "MaxRecords": "1", "Computer": "c"}
    assert keep(workload, np.array([True, True])).header == header


@given(workloads, st.integers(1, 40), seeds)
def test_a_sample_has_the_number_asked_for(workload, count, seed):
    """Each job occurs at most once, in order; equal seeds give equal samples."""
    some = sample(workload, count, rng(seed))
    rows = [workload.ids.index(job) for job in some.ids]

    assert len(rows) == min(count, len(workload))
    assert rows == sorted(set(rows))
    assert some == sample(workload, count, rng(seed))


def test_time_0_moves_and_dates_stay():
    """The first job is submitted at 0, and the epoch moves by the same time."""
    moved = from_zero(make([(100, 1, 1, 1), (150, 1, 1, 1)], epoch=1000.0))

    assert moved.submit.tolist() == [0, 50]
    assert moved.epoch == 1100
    assert from_zero(make([(7, 1, 1, 1)])).epoch is None


@given(workloads)
def test_arrivals_scaled_there_and_back_are_the_same(workload):
    """Scaling by 2 and then by 1/2, or the other way round, changes nothing."""
    assert scale_arrivals(scale_arrivals(workload, 2), 0.5) == workload
    assert scale_arrivals(scale_arrivals(workload, 0.5), 2) == workload
    assert scale_arrivals(workload, 1) == workload


def test_arrivals_are_scaled_from_the_first_job_on():
    """The first one is unchanged."""
    assert scale_arrivals(make([(100, 1, 1, 1), (110, 1, 1, 1)]), 0.25).submit.tolist() == [100, 102.5]


def test_a_load_is_reached():
    """It counts the jobs that can run, on the trace's machine or another one."""
    workload = make([(0, 8, 50, 100), (10, 99, 50, 100), (100, 16, 50, 10), (200, 1, 5, -1)])

    for units in (None, 20):
        scaled = scale_to_load(workload, 1.25, units)
        assert offered_load(clean(scaled, units or 64)[0], units or 64) == pytest.approx(1.25, rel=1e-12)


@given(workloads)
def test_run_times_scaled_there_and_back_are_the_same(workload):
    """Unknown run times stay unknown, and requested times do not change."""
    double = scale_runtimes(workload, 2)

    assert np.array_equal(double.runtime <= 0, workload.runtime <= 0)
    assert np.array_equal(double.walltime, workload.walltime)
    assert scale_runtimes(double, 0.5) == workload


def test_profiles_of_delays_are_scaled(tmp_path):
    """Delays and profiles composed of them; the return code is unchanged; the written file has the new run times."""
    scaled = scale_runtimes(batsim(), 1.5)
    save(scaled, tmp_path / "w.json")
    again = load(tmp_path / "w.json")

    assert scaled.runtime.tolist() == again.runtime.tolist() == [15, 24]
    text = json.loads((tmp_path / "w.json").read_text())
    assert text["profiles"]["d10"] == {"type": "delay", "delay": 15, "ret": 3}
    assert text["profiles"]["d4"]["delay"] == 6
    assert batsim().runtime.tolist() == [10, 16]


def test_jobs_objects_follow_their_columns():
    """The JSON object that schedulers get has the new values, and the unknown fields."""
    workload = scale_walltimes(scale_sizes(scale_arrivals(batsim(), 3), 2), 2)
    first, second = (json.loads(text) for text in workload.job_json)

    assert first == {"id": "a", "subtime": 0, "res": 4, "walltime": 60, "profile": "d10", "owner": "x"}
    assert second == {"id": "b", "subtime": 15, "res": 8, "profile": "twice"}
    assert "walltime" not in json.loads(fix_walltimes(batsim(), inf).job_json[0])


def test_sizes_are_rounded_and_at_least_1():
    """Halves are rounded up, an unknown size stays unknown, and the machine is unchanged."""
    scaled = scale_sizes(make([(0, size, 1, 1) for size in (1, 5, 10, 64, -1)]), 0.25)

    assert scaled.size.tolist() == [1, 1, 3, 16, -1]
    assert scaled.machine_size == 64


@given(workloads, st.integers(1, 10**6))
def test_jobs_that_fit_a_machine_fit_the_other(workload, units):
    """Sizes are scaled in proportion, to at least 1."""
    scaled = scale_machine(workload, units)

    assert scaled.machine_size == units
    assert int(scaled.size.max()) <= units
    assert np.array_equal(scaled.size > 0, workload.size > 0)


@given(workloads, st.integers(1, 200), st.integers(0, 100), seeds)
def test_requested_times_are_a_percentage_of_run_times(workload, low, more, seed):
    """Whole seconds, never below the lowest percentage, and less than a second above the highest."""
    limits = walltimes_of_runtimes(workload, low, low + more, rng(seed)).walltime
    ran = workload.runtime > 0

    assert np.array_equal(limits, np.floor(limits))
    assert np.all(limits[ran] * 100 >= low * workload.runtime[ran])
    assert np.all(limits[ran] * 100 < (low + more) * workload.runtime[ran] + 100)
    assert np.array_equal(limits[~ran], workload.walltime[~ran])


def test_a_whole_percentage_is_not_rounded_up():
    """101 % of 57,600 s is 58,176 s, though 1.01 times as much is a little more."""
    limits = walltimes_of_runtimes(make([(0, 1, 1, 57600), (0, 1, 1, 57601)]), 101, 101, rng()).walltime

    assert limits.tolist() == [58176, 58178]


def test_requested_times_are_set():
    """All to one, to none, or randomly to one of two, both of which occur."""
    workload = make([(0, 1, 7, 1)] * 400)

    assert set(fix_walltimes(workload, 3600).walltime) == {3600}
    assert set(fix_walltimes(workload, inf).walltime) == {inf}
    assert set(draw_walltimes(workload, 3, 6, rng()).walltime) == {3, 4, 5, 6}
    assert scale_walltimes(make([(0, 1, wanted, 1) for wanted in (8, -1, inf)]), 0.5).walltime.tolist() == [4, -1, inf]


@given(workloads, seeds, st.sampled_from([inf, 1000.0, 0.5]))
def test_shuffling_preserves_work_and_submit_times(workload, seed, window):
    """The same jobs at the same times, each in its window, in order; equal seeds give the same."""
    shuffled = shuffle_submits(workload, rng(seed), window)
    was = dict(zip(workload.ids, workload.submit, strict=True))
    first = workload.submit.min()

    assert sorted(shuffled.submit) == sorted(workload.submit) == shuffled.submit.tolist()
    assert sorted(shuffled.ids) == sorted(workload.ids)
    work = (workload.size * workload.runtime).sum()
    assert (shuffled.size * shuffled.runtime).sum() == work
    for job, time in zip(shuffled.ids, shuffled.submit, strict=True):
        assert (time - first) // window == (was[job] - first) // window
    assert shuffled == shuffle_submits(workload, rng(seed), window)


def test_shuffling_gives_every_order():
    """Each of three jobs comes first about as often."""
    workload = make([(0, 1, 1, 1), (1, 1, 1, 1), (2, 1, 1, 1)])
    firsts = [shuffle_submits(workload, rng(seed)).ids[0] for seed in range(300)]

    assert all(70 < firsts.count(job) < 130 for job in workload.ids)


@pytest.mark.parametrize(
    ("gaps", "mean"), [(Gaps("fixed", 7.5), 7.5), (Gaps("exp", 20), 20), (Gaps("unif", 10, 30), 20)]
)
def test_submit_times_are_drawn_again(gaps, mean):
    """The jobs keep their order, the first one its time, and the mean gap is as requested."""
    workload = make([(100 + number, 1, 1, 1) for number in range(4000)])
    drawn = redraw_submits(workload, gaps, rng())
    between = np.diff(drawn.submit)

    assert drawn.ids == workload.ids
    assert drawn.submit[0] == 100
    assert between.mean() == pytest.approx(mean, rel=0.05)
    assert between.min() >= gaps.low if gaps.kind == "unif" else between.min() >= 0
    assert np.array_equal(drawn.submit, np.round(drawn.submit, 3))


def test_all_jobs_can_be_submitted_at_once():
    """With a gap of 0 they are all submitted with the first one."""
    assert set(redraw_submits(make([(5, 1, 1, 1), (9, 1, 1, 1)]), Gaps("fixed", 0), rng()).submit) == {5}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: scale_arrivals(w, 0), "out of range"),
        (lambda w: scale_arrivals(w, nan), "out of range"),
        (lambda w: scale_arrivals(w, 9e15), "a submit time would be too large"),
        (lambda w: scale_runtimes(w, 1e15), "a run time would be too large"),
        (lambda w: scale_walltimes(w, 1e15), "a requested time would be too large"),
        (lambda w: scale_sizes(w, 9e15), "the size would be too large"),
        (lambda w: scale_machine(changed(w, machine_size=None), 4), "size is unknown"),
        (lambda w: scale_to_load(changed(w, machine_size=None), 1), "--machine-size"),
        (lambda w: scale_to_load(keep(w, np.array([True, False])), 1), "no load"),
        (lambda w: fix_walltimes(w, 0), "out of range"),
        (lambda w: draw_walltimes(w, 0, 3, rng()), "the range is empty"),
        (lambda w: draw_walltimes(w, 4, 3, rng()), "the range is empty"),
        (lambda w: walltimes_of_runtimes(w, 0.5, 2, rng()), "not a whole number"),
        (lambda w: walltimes_of_runtimes(w, 3, inf, rng()), "the range is empty"),
        (lambda w: shuffle_submits(w, rng(), 0), "out of range"),
        (lambda w: sample(w, 0, rng()), "no job is left"),
        (lambda w: changed(w, submit=w.submit - 1), "before time 0"),
        (lambda _: Gaps("exp", 0), "out of range"),
        (lambda _: Gaps("unif", 3, 2), "out of range"),
        (lambda _: Gaps("fixed", -1), "out of range"),
    ],
)
def test_what_makes_no_sense_is_refused(change, message):
    """Each is a user error with its own message."""
    with pytest.raises(TraceError, match=message):
        change(make([(0, 2, 10, 10), (9, 2, 10, 10)]))


def test_jobs_that_compute_have_no_run_time_to_scale():
    """Their run times cannot be multiplied, nor requested times derived from them; sizes of ranks are fixed."""
    text = {
        "nb_res": 8,
        "jobs": [{"id": 1, "subtime": 0, "res": 2, "walltime": 9, "profile": "p"}],
        "profiles": {"p": {"type": "parallel", "cpu": [1, 1], "com": [0, 0, 0, 0]}},
    }
    workload = parse_batsim(json.dumps(text).encode(), "w.json")

    with pytest.raises(TraceError, match="depends on the hosts cannot be multiplied"):
        scale_runtimes(workload, 2)
    with pytest.raises(TraceError, match="cannot be used for requested times"):
        walltimes_of_runtimes(workload, 110, 110, rng())
    with pytest.raises(TraceError, match="made for a fixed number"):
        scale_sizes(workload, 2)


def test_the_requested_times_of_a_real_log(traces_dir):
    """LANL's January 2018 has requested times of 101 % of the run times, rounded up: ours are the same, job by job."""
    log = load(traces_dir / "LANL-Grizzly-2018-01.swf")

    assert np.array_equal(walltimes_of_runtimes(log, 101, 101, rng()).walltime, log.walltime)


def test_a_real_log_is_cut_and_put_together(traces_dir):
    """KTH's log: kept and dropped jobs are the whole; after shuffling by day each day has as many jobs."""
    log = load(traces_dir / "KTH-SP2-1996-2.1-cln.swf.gz")
    mask = log.size > 4
    shuffled = shuffle_submits(log, rng(), 86400)

    assert len(keep(log, mask)) + len(keep(log, ~mask)) == len(log)
    assert np.array_equal(scale_arrivals(scale_arrivals(log, 2), 0.5).submit, log.submit)
    assert np.array_equal(shuffled.submit, log.submit)
    assert (shuffled.size * shuffled.runtime).sum() == (log.size * log.runtime).sum()
    assert shuffled.ids != log.ids


def test_one_long_job_after_a_change_of_load_is_named():
    """A job of 145 days among jobs of an hour bounds the utilisation of a whole run; the run shows that it does."""
    rows = [(600 * number, 10, 7200, 3600) for number in range(1, 201)]
    scaled = scale_to_load(make([*rows, (120000, 1, 12600000, 12528000)]), 0.9, 100)
    said = stretch_remark(scaled, 100)

    assert said is not None
    assert "job '201' runs 145 d, but all others could end 2.58 d after the first submission" in said
    assert "a utilisation of 1.55% at most" in said
    assert stretch_remark(scale_to_load(make(rows), 0.9, 100), 100) is None
    assert stretch_remark(scaled) is not None
    assert stretch_remark(changed(scaled, machine_size=None)) is None


def test_one_job_far_from_all_others_is_named():
    """If it is submitted months before or after the others, a load over the whole span says nothing about them."""
    rows = [(600 * number, 10, 7200, 3600) for number in range(1, 201)]
    for alone in (0, 50_000_000):
        moved = [(submit + (20_000_000 if alone == 0 else 0), *rest) for submit, *rest in rows]
        said = stretch_remark(scale_to_load(make(sorted([*moved, (alone, 1, 60, 60)])), 0.9, 100), 100)

        assert said is not None
        assert ("before all others" if alone == 0 else "after all others") in said
