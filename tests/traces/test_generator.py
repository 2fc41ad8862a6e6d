"""The generator and the workloads made with it."""

import gzip
import hashlib
from importlib import resources

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.traces import catalogue
from pipistrelle.traces.clean import clean, count_overruns
from pipistrelle.traces.describe import offered_load
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.generator import EPOCH, FIRST, ROUND_TIMES, RUNTIME_DOUBLINGS, RUNTIME_MIN, USERS, generate
from pipistrelle.traces.load import load, save
from pipistrelle.traces.logs.swf import swf_chunks
from pipistrelle.traces.workload import Workload


@settings(max_examples=60)
@given(
    jobs=st.integers(1, 300),
    units=st.one_of(st.integers(1, 70), st.integers(1, 10_000_000)),
    seed=st.integers(0, 2**64 - 1),
    load=st.floats(0.01, 100),
    epoch=st.integers(0, 2**33).map(float),
)
def test_every_workload_can_run(jobs, units, seed, load, epoch):
    """For any arguments nothing is cleaned, all times are whole, sizes fit, and equal arguments give equal jobs."""
    workload = generate(jobs=jobs, units=units, seed=seed, load=load, epoch=epoch)
    assert len(workload) == jobs
    kept, dropped = clean(workload, units)
    assert dropped == {}
    assert kept == workload
    for times in (workload.submit, workload.walltime, workload.runtime):
        assert np.array_equal(times, np.floor(times))
    assert workload.runtime.min() >= RUNTIME_MIN
    assert workload.runtime.max() < RUNTIME_MIN << RUNTIME_DOUBLINGS
    assert workload.walltime.min() >= ROUND_TIMES[0]
    assert workload.submit[0] == FIRST
    assert workload == generate(jobs=jobs, units=units, seed=seed, load=load, epoch=epoch)


@pytest.mark.parametrize(("jobs", "units", "load"), [(50, 16, 0.5), (5000, 256, 0.85), (130_000, 1490, 1.05)])
def test_offered_load(jobs, units, load):
    """The span gives the requested offered load, also for a trace with deep queues."""
    workload = generate(jobs=jobs, units=units, seed=7, load=load)
    assert offered_load(workload, units) == pytest.approx(load, rel=1e-4)


def test_shape():
    """Most sizes are powers of two, most requests are round times, a few percent are too short, users differ."""
    workload = generate(jobs=20_000, units=1490, seed=3)
    powers = np.mean((workload.size & (workload.size - 1)) == 0)
    assert 0.8 < powers < 0.95
    assert 0.2 < np.mean(workload.size == 1) < 0.4
    assert workload.size.max() > 1024
    assert 0.9 < np.mean(np.isin(workload.walltime, ROUND_TIMES)) < 1
    assert 0.01 < count_overruns(workload) / len(workload) < 0.05
    assert 0.03 < np.mean(workload.walltime == workload.runtime) < 0.12
    counts = np.bincount(workload.columns["user"])[1:]
    assert len(counts) == USERS
    assert counts[0] > 5 * counts[9] > 0


def test_arrivals_follow_day_and_week():
    """More jobs are submitted on a working afternoon than at night or on Sunday, for any epoch."""
    for epoch in (EPOCH, EPOCH + 3.5 * 86400 + 600):
        workload = generate(jobs=50_000, units=64, seed=5, epoch=epoch)
        time = (workload.submit + epoch - EPOCH) % (7 * 86400)  # since Monday, 00:00
        day, hour = time // 86400, time % 86400 // 3600
        working = np.mean((day < 5) & (hour >= 13) & (hour < 16)) / (5 * 3)
        night = np.mean((day < 5) & (hour >= 1) & (hour < 4)) / (5 * 3)
        sunday = np.mean((day == 6) & (hour >= 13) & (hour < 16)) / 3
        assert working > 5 * night
        assert working > 2 * sunday > 0


def test_seeds_differ():
    """Another seed gives other jobs."""
    assert generate(jobs=50, units=8, seed=1) != generate(jobs=50, units=8, seed=2)


def test_same_bytes_everywhere():
    """The bytes for a seed are fixed on every machine and numpy version."""
    text = b"".join(swf_chunks(generate(jobs=2000, units=100, seed=42, load=0.9)))
    assert hashlib.sha256(text).hexdigest() == "bbb09e05c018591f33d794da44926964e77d4ba1f3c6eb87ea2c8d8d8210f814"


def test_round_trip(tmp_path):
    """A generated workload is written and read back with all its columns."""
    workload = generate(jobs=100, units=8, seed=1, name="x")
    save(workload, tmp_path / "x.swf.gz")
    again = load(tmp_path / "x.swf.gz")
    assert again.header == workload.header
    assert again.columns.keys() == workload.columns.keys()
    assert b"".join(swf_chunks(again)) == b"".join(swf_chunks(workload))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"jobs": 0},
            "jobs of the workload to generate: the value is out of range: "
            "expected a number from 1 to 10,000,000, found 0. Choose a value in that range.",
        ),
        ({"units": 10**9}, "units of the workload to generate: the value is out of range"),
        ({"seed": -1}, "seed of the workload to generate: the value is out of range"),
        (
            {"load": 0.0},
            "load of the workload to generate: the value is out of range: expected a number from 0.01 to 100.0",
        ),
        ({"load": float("nan")}, "load of the workload to generate: the value is out of range"),
        ({"epoch": float("inf")}, "epoch of the workload to generate: the value is out of range"),
    ],
)
def test_arguments_out_of_range(changes, message):
    """An argument out of range is refused with the range."""
    with pytest.raises(TraceError) as caught:
        generate(**({"jobs": 5, "units": 4, "seed": 1} | changes))
    assert str(caught.value).startswith(message)


def seven_jobs() -> Workload:
    """Return the jobs of figures 1 and 2 of Horace et al.: all arrive at time 0 and run for as long as they ask."""
    hours = np.array([1, 1, 2, 1, 3, 1, 4], dtype=float)
    note = (
        "by pipistrelle, after figures 1 and 2 of Horace et al.: seven jobs that arrive one after the other at time 0"
    )
    return Workload(
        name="seven-jobs",
        source="pipistrelle",
        ids=list("1234567"),
        submit=np.zeros(7),
        size=np.array([2, 2, 1, 3, 3, 3, 1], dtype=np.int64),
        walltime=3600 * hours,
        runtime=3600 * hours,
        machine_size=4,
        header={"Version": "2.2", "Computer": "none: written by hand", "Note": note},
    )


#: {name of a bundled workload: its recipe}
RECIPES = {
    "demo": lambda: generate(jobs=5000, units=256, seed=1, load=0.85, name="demo"),
    "seven-jobs": seven_jobs,
}


@pytest.mark.parametrize("name", catalogue.names())
def test_bundled_file_is_what_its_recipe_makes(name):
    """A bundled file equals the output of its recipe byte for byte; it is small, and contains no name or time."""
    packed = (resources.files("pipistrelle.traces") / "library" / f"{name}.swf.gz").read_bytes()
    # the text is compared, because another zlib may compress it differently
    assert gzip.decompress(packed) == b"".join(swf_chunks(RECIPES[name]()))
    assert packed[3:8] == bytes(5)
    assert len(packed) < 150_000


def test_catalogue():
    """The bundled workloads have a name, a description and jobs; files and names agree."""
    assert catalogue.names() == ["demo", "seven-jobs"]
    files = (resources.files("pipistrelle.traces") / "library").iterdir()
    assert sorted(file.name for file in files) == [f"{name}.swf.gz" for name in catalogue.names()]
    assert catalogue.describe("demo") == (
        "5,000 jobs for 256 units at load 0.85: five weeks of a small cluster, for examples and first tries"
    )
    demo = catalogue.load_bundled("demo")
    assert (len(demo), demo.machine_size, demo.epoch, demo.name) == (5000, 256, EPOCH, "demo")
    assert 5 < demo.submit[-1] / (7 * 86400) < 6
    assert catalogue.describe("seven-jobs").startswith("7 jobs for 4 units: ")
    seven = catalogue.load_bundled("seven-jobs")
    assert (seven.ids, seven.machine_size) == (list("1234567"), 4)
    assert (seven.submit == 0).all()
    assert (seven.runtime == seven.walltime).all()


@pytest.mark.parametrize("action", [catalogue.describe, catalogue.load_bundled])
def test_unknown_bundled_name(action):
    """An unknown name is refused with the nearest one."""
    with pytest.raises(TraceError) as caught:
        action("dmeo")
    assert str(caught.value) == "'dmeo': no bundled workload has this name. Did you mean 'demo'?"
