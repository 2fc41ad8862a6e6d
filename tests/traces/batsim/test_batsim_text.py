"""Writing Batsim's JSON, as a file and as single objects."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipistrelle.traces.batsim.text import job_text, profile_texts, with_members
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.load import load, save
from pipistrelle.traces.logs.dependencies import renumber
from pipistrelle.traces.profiles import Delay, Parallel
from pipistrelle.traces.workload import Workload

SHARED_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def job(**changes):
    """Return a job as JSON has it, with changes."""
    return {"id": "1", "subtime": 10, "walltime": 200, "res": 2, "profile": "d100"} | changes


def text(*jobs, profiles=None, **changes):
    """Return a workload file's text, with changes."""
    profiles = {"d100": {"type": "delay", "delay": 100}} if profiles is None else profiles
    return json.dumps({"nb_res": 4, "jobs": list(jobs) or [job()], "profiles": profiles} | changes)


TIMES = st.one_of(st.integers(1, 10**9).map(float), st.floats(0.001, 1e9))
NAMES = st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters="!"), min_size=1, max_size=5)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Return a workload that Batsim's JSON can represent."""
    ids = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    known = draw(st.dictionaries(st.text(st.characters(exclude_categories=("Cs",))), TIMES, min_size=1, max_size=3))
    profiles = [draw(st.sampled_from(sorted(known))) for _ in ids]
    return Workload(
        name="w",
        source="w.json",
        ids=ids,
        submit=np.array(sorted(draw(TIMES) for _ in ids), dtype=np.float64),
        size=np.array([draw(st.integers(1, 2**53)) for _ in ids], dtype=np.int64),
        walltime=np.array([draw(st.one_of(TIMES, st.just(np.inf))) for _ in ids], dtype=np.float64),
        runtime=np.array([known[name] for name in profiles], dtype=np.float64),
        profiles=profiles,
        table={name: Delay(name=name, delay=delay) for name, delay in known.items()},
        profile_json={name: json.dumps({"type": "delay", "delay": delay}).encode() for name, delay in known.items()},
        machine_size=draw(st.integers(1, 2**53)),
    )


@SHARED_FOLDER
@given(workloads())
def test_round_trip(tmp_path, workload):
    """What is written is read back equal, to the last bit."""
    path = tmp_path / "w.json"
    save(workload, path)
    assert load(path) == workload


def test_fields_and_profiles_are_written_again(tmp_path):
    """Unknown fields of jobs and profiles are kept, profiles with their parts; unused profiles are left out."""
    path = tmp_path / "w.json"
    profiles = {
        "unused": {"type": "smpi"},
        "part": {"type": "delay", "delay": 5.0, "ret": 3, "why": "x"},
        "d100": {"type": "composed", "seq": ["part"], "repeat": 2},
        "p": {"type": "parallel", "cpu": [1e9, 2], "com": [0, 0, 1, 0]},
    }
    path.write_text(text(job(deps=[1, {"a": None}], user="é"), job(id=2, profile="p"), profiles=profiles))
    workload = load(path)
    save(workload, path)
    assert load(path) == workload
    assert path.read_text(encoding="utf-8") == (
        '{"nb_res": 4,\n"jobs": [\n'
        '{"id": "1", "subtime": 10, "walltime": 200, "res": 2, "profile": "d100", "deps": [1,{"a":null}], '
        '"user": "\\u00e9"},\n'
        '{"id": "2", "subtime": 10, "walltime": 200, "res": 2, "profile": "p"}\n'
        '],\n"profiles": {\n"d100": {"type":"composed","seq":["part"],"repeat":2},\n'
        '"part": {"type":"delay","delay":5,"ret":3,"why":"x"},\n'
        '"p": {"type":"parallel","cpu":[1000000000.0,2],"com":[0,0,1,0]}\n}}\n'
    )
    assert workload.table["p"] == Parallel(name="p", cpu=(1e9, 2), com=(0, 0, 1, 0))


def test_run_times_that_were_changed_are_written(tmp_path):
    """A workload whose run times were changed gets delays with these times, whatever its profiles were."""
    path = tmp_path / "w.json"
    path.write_text(text(profiles={"d100": {"type": "parallel_homogeneous", "cpu": 1e9}}))
    changed = replace(load(path), runtime=np.array([7.0]))
    save(changed, path)
    assert load(path).table == {"d100": Delay(name="d100", delay=7)}


def test_usage_traces_are_not_written(tmp_path):
    """A profile that names files next to the workload is not written to another folder, which lacks them."""
    path = tmp_path / "w.json"
    (tmp_path / "t.txt").write_text("r0\nr1\n")
    (tmp_path / "r0").write_text("0 m_usage 0.5 1e9\n")
    (tmp_path / "r1").write_text("1 m_usage 1 1e9\n")
    path.write_text(text(profiles={"d100": {"type": "usage_trace", "trace": "t.txt"}}))
    workload = load(path)
    assert workload.table["d100"].phases == (((0.5, 1e9),), ((1, 1e9),))
    with pytest.raises(TraceError, match=r"profile 'd100': a profile with trace files cannot be written\. Copy"):
        save(workload, path)


def test_written_text(tmp_path):
    """The file has one job per line, and whole numbers have no fraction."""
    path = tmp_path / "w.json"
    path.write_text(
        text(job(), job(id=2, walltime=-1, subtime=10.25), profiles={"d100": {"type": "delay", "delay": 1e2}})
    )
    save(load(path), path)
    assert path.read_text() == (
        '{"nb_res": 4,\n"jobs": [\n'
        '{"id": "1", "subtime": 10, "walltime": 200, "res": 2, "profile": "d100"},\n'
        '{"id": "2", "subtime": 10.25, "res": 2, "profile": "d100"}\n'
        '],\n"profiles": {\n"d100": {"type":"delay","delay":100}\n}}\n'
    )


def test_log_to_json(tmp_path, job_line):
    """A log gets profiles named by run time, and the largest job's size if the machine's is not known."""
    path = tmp_path / "x.swf"
    path.write_text(job_line({4: 3477, 8: 7}) + job_line({1: 2, 4: 12.5}))
    workload = load(path)
    save(workload, tmp_path / "x.json")
    again = load(tmp_path / "x.json")
    assert again.profiles == ["3477", "12.5"] == [workload.profile_of(row) for row in range(2)]
    assert again.machine_size == 7
    for name in ("submit", "size", "walltime", "runtime"):
        assert np.array_equal(getattr(again, name), getattr(workload, name))


@pytest.mark.parametrize(
    ("changes", "what", "found"),
    [({4: 0}, "run time", "0"), ({9: -1}, "requested time", "-1"), ({8: 0, 5: -1}, "size", "-1")],
)
def test_writer_refuses_what_batsim_refuses(tmp_path, job_line, changes, what, found):
    """A log must be cleaned before it is written as JSON; no file is begun."""
    path = tmp_path / "x.swf"
    path.write_text(job_line() + job_line({1: 2, **changes}) + job_line({1: 3, **changes}))
    with pytest.raises(TraceError) as caught:
        save(load(path), tmp_path / "x.json")
    assert str(caught.value) == (
        f"x, job '2': Batsim's JSON cannot hold a job without {what}: expected a positive number, "
        f"found {found} (and 1 more such job). Such jobs cannot be simulated: "
        "remove them with 'workload convert --clean'."
    )
    assert not (tmp_path / "x.json").exists()


def test_writer_refuses_a_profile_of_two_run_times(tmp_path):
    """One profile name cannot have two run times."""
    path = tmp_path / "w.json"
    path.write_text(text(job(), job(id=2)))
    with pytest.raises(TraceError, match="has two run times: expected 100, found 7"):
        save(replace(load(path), runtime=np.array([100.0, 7.0])), path)


def test_writer_refuses_no_jobs(tmp_path):
    """A workload without jobs is not written, because it could not be read."""
    path = tmp_path / "w.json"
    path.write_text(text())
    with pytest.raises(TraceError, match="there are no jobs to write"):
        save(load(path).select([]), path)


def test_the_objects_that_schedulers_get(tmp_path):
    """A job's object keeps every member of the file's in its place, except that its id is complete."""
    path = tmp_path / "w.json"
    path.write_text(
        text(job(id=7, deps=["1", {"a": 1.50}], walltime=-1), profiles={"d100": {"delay": 1, "type": "delay"}})
    )
    workload = load(path)
    expected = b'{"id":"w0!7","subtime":10,"walltime":-1,"res":2,"profile":"d100","deps":["1", {"a": 1.5}]}'
    assert job_text(workload, 0, "w0!7") == expected
    assert profile_texts(workload) == {"d100": b'{"delay":1,"type":"delay"}'}
    assert with_members(b'{"a":"id", "\\u0069d" : 3, "id": 4}', id='w0!"') == b'{"a":"id","id":"w0!\\""}'


def test_the_objects_of_logs(tmp_path, job_line):
    """Jobs of a log are described by their columns, their profiles are named by run time."""
    path = tmp_path / "x.swf"
    path.write_text(job_line({2: 2.5}) + job_line({1: 2, 2: 3, 4: 12.5}) + job_line({1: 3, 2: 4}))
    workload = load(path)
    workload.walltime[1] = np.inf
    assert job_text(workload, 0, "w0!1") == b'{"id":"w0!1","subtime":2.5,"walltime":200,"res":4,"profile":"100"}'
    assert job_text(workload, 1, "w0!2") == b'{"id":"w0!2","subtime":3,"res":4,"profile":"12.5"}'
    assert profile_texts(workload) == {
        "100": b'{"type":"delay","delay":100}',
        "12.5": b'{"type":"delay","delay":12.5}',
    }


@given(
    st.dictionaries(st.text(max_size=5), st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=3)),
    st.text(max_size=5),
    st.sampled_from([None, 1]),
)
def test_any_object_gets_its_id(members, job_id, indent):
    """The rest of a job's object is unchanged."""
    raw = json.dumps({**members, "id": 1}, indent=indent).encode()
    assert json.loads(with_members(raw, id=job_id)) == {**members, "id": job_id}


def test_schedulers_get_changed_labels(tmp_path):
    """Schedulers get a renamed job, and jobs that depend on it, with the new name; everything else is unchanged."""
    jobs = (
        '{"id": "a", "subtime": 0, "res": 1, "walltime": 9, "profile": "p", "user": 7, "x": [1]}, '
        '{"id": "b", "subtime": 1, "res": 1, "walltime": 9, "profile": "p", "dependency": "afterok:a", "y": null}'
    )
    path = tmp_path / "w.json"
    path.write_text(f'{{"jobs": [{jobs}], "profiles": {{"p": {{"type": "delay", "delay": 5}}}}}}')
    renamed = renumber(load(path))
    save(renamed, tmp_path / "again.json")

    for workload in (renamed, load(tmp_path / "again.json")):
        texts = [json.loads(job_text(workload, row, f"w0!{row + 1}")) for row in range(2)]
        assert texts[0] == {
            "id": "w0!1", "subtime": 0, "res": 1, "walltime": 9, "profile": "p", "user": 7, "x": [1],
        }  # fmt: skip
        assert texts[1]["dependency"] == "afterok:1"
        assert texts[1]["y"] is None
