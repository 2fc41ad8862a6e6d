"""Reading Batsim's JSON."""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipistrelle.traces.batsim.workload import RegisteredJob, job_of_json
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.load import load

SHARED_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def job(**changes):
    """Return a job as JSON has it, with changes."""
    return {"id": "1", "subtime": 10, "walltime": 200, "res": 2, "profile": "d100"} | changes


def text(*jobs, profiles=None, **changes):
    """Return a workload file's text, with changes."""
    profiles = {"d100": {"type": "delay", "delay": 100}} if profiles is None else profiles
    return json.dumps({"nb_res": 4, "jobs": list(jobs) or [job()], "profiles": profiles} | changes)


def test_reads_what_batsim_reads(tmp_path):
    """Ids of all kinds, walltimes of all kinds, unknown fields; sorted by submit time, then in file order."""
    path = tmp_path / "w.json"
    path.write_text(
        text(
            job(id="w0!9", subtime=30.5, walltime=-1, extra=[1]),
            job(id=4, subtime=20, walltime=None),
            job(id="b", subtime=20, walltime=0.5, res=8),
            {"id": "c", "subtime": 0, "res": 1, "profile": "d2"},
            profiles={
                "d100": {"type": "delay", "delay": 100, "real_delay": "x"},
                "d2": {"type": "delay", "delay": 2.5},
                "unused": {"type": "parallel", "cpu": [5e6]},
            },
            description="x",
        )
    )
    workload = load(path)
    assert (workload.name, workload.source, workload.machine_size) == ("w", "w.json", 4)
    assert (workload.epoch, workload.timezone, workload.header, workload.columns) == (None, None, {}, {})
    assert workload.ids == ["c", "4", "b", "9"]
    assert workload.submit.tolist() == [0, 20, 20, 30.5]
    assert workload.size.tolist() == [1, 2, 8, 2]
    assert workload.walltime.tolist() == [np.inf, np.inf, 0.5, np.inf]
    assert workload.runtime.tolist() == [2.5, 100, 100, 100]
    assert workload.profiles == ["d2", "d100", "d100", "d100"]


def test_unknown_members_of_requests_are_counted(tmp_path):
    """What a request asks for under an unknown name is ignored, which a message says with the number of jobs."""
    path = tmp_path / "w.json"
    path.write_text(text(job(request={"task": 2, "tasks": 1}), job(id=2, request={"task": 1}), job(id=3)))
    (remark,) = load(path).remarks
    assert remark == "the unknown member 'task' in the request of 2 jobs is ignored. Did you mean 'tasks'?"


def test_machine_size_may_be_missing(tmp_path):
    """A file without nb_res has no machine size; a byte order mark is allowed."""
    path = tmp_path / "w.json"
    path.write_text(text().replace('"nb_res": 4,', ""), encoding="utf-8-sig")
    assert load(path).machine_size is None


def test_keeps_the_text_of_jobs_and_profiles(tmp_path):
    """Each job and profile keeps its JSON object from the file, in the order of the columns."""
    path = tmp_path / "w.json"
    jobs = ['{"id": 2, "subtime": 9, "res": 1, "profile": "d", "user": {"a": [1]}}']
    jobs.append('{"profile":"p","res":1,"subtime":1e0,"id":"w0!1","walltime":-1}')
    profiles = '"d": {"type": "delay", "delay": 1, "x": 2}, "p" : {"type": "parallel_homogeneous", "cpu": 1e9}'
    path.write_text(f'{{"jobs": [{",".join(jobs)}], "profiles": {{{profiles}, "smpi": {{"type":"smpi"}}}}}}')
    workload = load(path)
    assert workload.job_json == [jobs[1].encode(), jobs[0].encode()]
    assert list(workload.profile_json) == ["d", "p", "smpi"]
    assert workload.profile_json["d"] == b'{"type": "delay", "delay": 1, "x": 2}'
    assert list(workload.table) == ["d", "p"]
    assert np.isnan(workload.runtime[0])
    assert workload.runtime[1] == 1


def test_jobs_registered_during_a_run_are_read():
    """A single job is checked like those of a file; its id keeps no workload prefix."""
    raw = b'{"id":"dynamic!0","subtime":-0.0,"walltime":6,"res":1,"profile":"d","custom":1}'
    assert job_of_json(raw, "REGISTER_JOB") == RegisteredJob("0", 0.0, 1, 6, "d")
    assert job_of_json(b'{"id":3,"subtime":1,"res":2,"profile":"d"}', "x").walltime == np.inf


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (
            b'{"id":"1","subtime":0,"walltime":0,"res":1,"profile":"d"}',
            "REGISTER_JOB.walltime: the walltime of job '1' is out of range: expected seconds above 0, or -1 for none, "
            "found 0. Correct the value.",
        ),
        (
            b'{"id":"1","subtime":0,"walltime":-3,"res":1,"profile":"d"}',
            "REGISTER_JOB.walltime: the walltime of job '1' is out of range: expected seconds from 0 to "
            "9007199254740992, or -1 for none, found '-3'. Correct the value.",
        ),
        (
            b'{"id":"1","subtime":0,"res":"1"}',
            "REGISTER_JOB.res: Expected 'int', got 'str'. 'pipistrelle help workloads' shows the format.",
        ),
        (b"7", "REGISTER_JOB: Expected 'object', got 'int'. 'pipistrelle help workloads' shows the format."),
        (
            b"{",
            "REGISTER_JOB, line 1, column 2: is not valid JSON: found Input data was truncated. "
            "Correct the text there, or just before.",
        ),
    ],
)
def test_registered_jobs_that_are_wrong(raw, message):
    """Each error in a registered job gives one message."""
    with pytest.raises(TraceError) as caught:
        job_of_json(raw, "REGISTER_JOB")
    assert str(caught.value) == message


MOST = "9007199254740992"
FORMAT = "'pipistrelle help workloads' shows the format."
ERRORS = [
    (
        "{",
        "FILE, line 1, column 2: is not valid JSON: found Input data was truncated. "
        "Correct the text there, or just before.",
    ),
    (
        '{"jobs": [\n  {"é": NaN}]}',
        "FILE, line 2, column 9: is not valid JSON: found invalid character. Correct the text there, or just before.",
    ),
    ("[1]", f"FILE, $: Expected 'object', got 'array'. {FORMAT}"),
    ('{"jobs": []}', f"FILE, $: Object missing required field 'profiles'. {FORMAT}"),
    ('{"jobs": [], "profiles": {}}', "FILE, $.jobs: has no jobs: expected at least one job. Check the file."),
    (text(job(res="2")), f"FILE, $.jobs[0].res: Expected 'int', got 'str'. {FORMAT}"),
    (text(job(), job(id=True)), f"FILE, $.jobs[1].id: Expected 'int | str', got 'bool'. {FORMAT}"),
    (text(job(res=4.5)), f"FILE, $.jobs[0].res: Expected 'int', got 'float'. {FORMAT}"),
    (text(job(subtime="1")), f"FILE, $.jobs[0].subtime: Expected 'float', got 'str'. {FORMAT}"),
    (text().replace('"subtime": 10', '"subtime": 1e999'), f"FILE, $.jobs[0].subtime: Number out of range. {FORMAT}"),
    (text({"id": 1}), f"FILE, $.jobs[0]: Object missing required field 'subtime'. {FORMAT}"),
    (
        text(job(subtime=-1)),
        f"FILE, $.jobs[0].subtime: the submit time of job '1' is out of range: expected seconds from 0 to {MOST}, "
        "found '-1'. Correct the value.",
    ),
    (
        text(job(), job(id=2, res=0)),
        f"FILE, $.jobs[1].res: the size of job '2' is out of range: expected a whole number from 1 to {MOST}, "
        "found '0'. Correct the value.",
    ),
    (
        text(job(res=10**30)),
        f"FILE, $.jobs[0].res: the size of job '1' is out of range: expected a whole number from 1 to {MOST}, "
        f"found '{10**30}'. Correct the value.",
    ),
    (
        text(job(walltime=-2.5)),
        f"FILE, $.jobs[0].walltime: the walltime of job '1' is out of range: expected seconds from 0 to {MOST}, "
        "or -1 for none, found '-2.5'. Correct the value.",
    ),
    (
        text(job(profile="d10")),
        "FILE, $.jobs[0].profile: profile 'd10' of job '1' does not exist: expected a name in $.profiles. "
        "Did you mean 'd100'?",
    ),
    (
        text(job(profile="zz"), profiles={f"a{i}": {} for i in range(11)}),
        "FILE, $.jobs[0].profile: profile 'zz' of job '1' does not exist: expected a name in $.profiles. "
        "There are 11 profiles.",
    ),
    (
        text(job(id="w0!7"), profiles={"d100": {"type": "smpi", "trace": "x"}}),
        "FILE, $.profiles['d100']: profiles of type 'smpi' are not supported: "
        "expected delay or parallel_homogeneous or "
        "parallel_homogeneous_total or parallel or composed or usage_trace. "
        "It replays messages over a network, which is not modelled.",
    ),
    (
        text(profiles={"d100": {"type": "composed", "seq": ["p"]}, "p": {"type": "parallel", "cpu": [1, 2, 3]}}),
        "FILE, $.jobs[0].res: profile 'd100' of job '1' is made for another number of resources: expected 3, "
        "found 2. Change the job's 'res' or the profile.",
    ),
    (
        text(profiles={"d100": {"type": "delay", "delay": 0}}),
        f"FILE, $.profiles['d100']: the delay is out of range: expected seconds above 0, at most {MOST}, found 0. "
        "A job must last for some time.",
    ),
    (
        text(profiles={"d100": {"type": "delay", "delay": "1"}}),
        f"FILE, $.profiles['d100'].delay: Expected 'float', got 'str'. {FORMAT}",
    ),
    (
        text(profiles={"d100": {"type": "delay"}}),
        f"FILE, $.profiles['d100']: Object missing required field 'delay'. {FORMAT}",
    ),
    (text(profiles={"d100": 1}), f"FILE, $.profiles['d100']: Expected 'object', got 'int'. {FORMAT}"),
    (
        text(job(id="w0!7"), job(id=7)),
        "FILE, $.jobs[1].id: job id '7' occurs twice: expected each id once, found the id of $.jobs[0]. "
        "Give one of the two jobs another id.",
    ),
    *(
        (
            text(job(id=bad)),
            "FILE, $.jobs[0].id: the job has no usable id: expected a number or a printable text, after a workload's "
            f"name and '!' or without, found {bad!r}. Give the job an id of its own.",
        )
        for bad in ("", "w0!", "a!b!c", "a\nb")
    ),
    (
        text(nb_res=0),
        "FILE, $.nb_res: the machine's size is out of range: expected a whole number above 0, found '0'. "
        "nb_res is the number of the machine's resources.",
    ),
    (
        text(deep=1).replace('"deep": 1', '"deep": ' + "[" * 100000 + "]" * 100000),
        "FILE: the JSON is nested too deeply. Remove what no job needs.",
    ),
    (
        text().encode() + b"\xff",
        f"FILE, line 1, column {len(text()) + 1}: is not UTF-8 text: found byte 0xff. Save the file as UTF-8.",
    ),
]


@pytest.mark.parametrize(("content", "message"), ERRORS, ids=range(len(ERRORS)))
def test_errors(refused, content, message):
    """Each broken rule gives one message with the place in the file, what was expected and what was found."""
    assert refused(content, "w.json") == message


@pytest.mark.parametrize("name", ["x" * 1000, "line\nbreak"])
def test_messages_stay_one_line(refused, name):
    """Long or unprintable names from the file keep the message on one line."""
    message = refused(text(job(profile=name)), "w.json")
    assert "\n" not in message
    assert len(message) < 300


JSONS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=4,
)
KEYS = st.sampled_from(["id", "subtime", "walltime", "res", "profile"])


@SHARED_FOLDER
@given(st.lists(st.dictionaries(KEYS, JSONS, max_size=2), max_size=3), st.dictionaries(KEYS, JSONS, max_size=1), JSONS)
def test_any_json_gives_a_workload_or_a_trace_error(tmp_path, changes, top, profile):
    """Any JSON in the fields raises nothing but TraceError."""
    path = tmp_path / "w.json"
    jobs = [
        job(id=row, **{key: value for key, value in change.items() if key != "id"})
        for row, change in enumerate(changes)
    ]
    profiles = {"d100": {"type": "delay", "delay": profile}, "p": profile}
    path.write_text(json.dumps({"jobs": jobs, "profiles": profiles, **top}), encoding="utf-8")
    try:
        assert len(load(path)) == len(jobs)
    except TraceError as error:
        assert str(path) in str(error)  # noqa: PT017


@SHARED_FOLDER
@given(st.binary(max_size=50), st.integers(0, 300))
def test_any_bytes_give_a_trace_error(tmp_path, content, cut):
    """Truncated or broken JSON raises TraceError and nothing else."""
    path = tmp_path / "w.json"
    path.write_bytes(text().encode()[:cut] + b"!" + content)
    with pytest.raises(TraceError):
        load(path)


def test_batsims_own_files(batsim4_dir):
    """The files that a real Batsim ran are read."""
    tiny = load(batsim4_dir / "tiny.json")
    assert (tiny.ids, tiny.machine_size) == (["1", "2", "3", "4", "5", "6"], 4)
    assert tiny.runtime.tolist() == [100, 50, 60, 60, 60, 60]
    fine = load(batsim4_dir / "w_1000_l0.85_ms.json")
    assert (len(fine), fine.machine_size, fine.runtime[0]) == (1000, 1490, 4029.083)
