"""Reading and writing SWF."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipistrelle.traces.clean import NO_SUBMIT, clean
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.load import load, save
from pipistrelle.traces.logs.swf import FIELDS
from pipistrelle.traces.transforms.join import merge
from pipistrelle.traces.workload import Workload

SHARED_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
MEND = "Correct the line, or put ';' before it to leave it out."


def test_every_field(tmp_path):
    """Each field is read into the column of the workload's description."""
    path = tmp_path / "log.swf"
    path.write_text(
        "; Version: 2.2\n; MaxNodes: 8\n; MaxProcs: 16 (all)\n; UnixStartTime: 1000\n; TimeZoneString: Europe/Oslo\n"
        "; Note: one\n;       two\n;\n;  free text, no directive\n; Note: three\n\n"
        "5 10 3 100.5 4 99.25 1024 -1 200 2048 1 7 2 11 12 13 4 60\r\n"
        "6 10.0 -1 1 4.0 -1 -1 2 -1 -1 0 8 2 -1 -1 -1 -1 -1"
    )
    workload = load(path)
    assert (workload.name, workload.source, workload.machine_size) == ("log", "log.swf", 16)
    assert (workload.epoch, workload.timezone, workload.profiles) == (1000.0, "Europe/Oslo", None)
    assert workload.header["Note"] == "one\ntwo\nthree"
    assert workload.ids == ["5", "6"]
    assert workload.submit.tolist() == [10, 10]
    assert workload.size.tolist() == [4, 2]
    assert workload.walltime.tolist() == [200, -1]
    assert workload.runtime.tolist() == [100.5, 1]
    assert {name: column.tolist() for name, column in workload.columns.items()} == {
        "allocated": [4, 4],
        "status": [1, 0],
        "user": [7, 8],
        "group": [2, 2],
        "application": [11, -1],
        "queue": [12, -1],
        "partition": [13, -1],
        "preceding": [4, -1],
    }
    assert {name: column.tolist() for name, column in workload.measures.items()} == {
        "wait": [3, -1],
        "cpu_time": [99.25, -1],
        "memory": [1024, -1],
        "requested_memory": [2048, -1],
        "think_time": [60, -1],
    }


def test_jobs_without_submit_time(tmp_path, job_line):
    """Jobs whose submit time is missing are left out and counted once, also by `clean`, copies and sorted logs."""
    path = tmp_path / "log.swf"
    lines = [job_line({1: job, 2: submit}) for job, submit in ((1, 7), (2, -1), (3, 5), (4, -1))]
    with pytest.raises(TraceError, match=r"log\.swf, line 3, field 2.*is negative"):
        load(_written(path, [lines[0], lines[1], job_line({1: 3, 2: -2})]))
    with pytest.raises(TraceError, match="are not in the order"):
        load(_written(path, lines))
    log = load(_written(path, lines), sort=True)
    assert (log.ids, log.submit.tolist(), log.left_out) == (["3", "1"], [5, 7], {NO_SUBMIT: 2})
    assert load(_written(path, lines[:2])).left_out == {NO_SUBMIT: 1}
    cleaned, dropped = clean(log, None)
    assert (cleaned.ids, dropped, clean(cleaned, None)[1]) == (["3", "1"], {NO_SUBMIT: 2}, {})
    assert clean(log, 0)[1] == {NO_SUBMIT: 2, "larger than the machine": 2}
    assert merge([log, log]).left_out == {NO_SUBMIT: 4}
    with pytest.raises(TraceError, match="no job has a submit time"):
        load(_written(path, lines[1:2]))


def _written(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", (None, None, None)),
        ("; MaxNodes: 8\n", (8, None, None)),
        ("; MaxProcs: -1\n; MaxNodes: 8\n", (8, None, None)),
        (";MaxProcs:8\n", (8, None, None)),
        ("; MaxProcs: unknown\n; UnixStartTime: yesterday\n; TimeZoneString:\n", (None, None, None)),
        ("; UnixStartTime: nan\n", (None, None, None)),
        ("; UnixStartTime: 0\n", (None, 0.0, None)),
        ("\ufeff; MaxProcs: 8\n", (8, None, None)),
    ],
)
def test_header(tmp_path, job_line, header, expected):
    """Directives give machine size, epoch and time zone; an unusable one is not an error."""
    path = tmp_path / "x.swf"
    path.write_text(header + job_line(), encoding="utf-8")
    workload = load(path)
    assert (workload.machine_size, workload.epoch, workload.timezone) == expected


def test_comments_may_have_odd_bytes(tmp_path, job_line):
    """Comments that are not UTF-8 are read leniently, before and between the jobs."""
    path = tmp_path / "x.swf"
    path.write_bytes(b"; Computer: Mj\xf6lner\n" + job_line().encode() + b"; \xff\n" + job_line({1: 2}).encode())
    workload = load(path)
    assert workload.header == {"Computer": "Mj\ufffdlner"}
    assert len(workload) == 2


def test_sort(tmp_path, job_line):
    """With sort the jobs are sorted by submit time, equal ones in the file's order."""
    path = tmp_path / "x.swf"
    path.write_text("".join(job_line({1: job, 2: submit}) for job, submit in ((3, 9), (8, 5), (7, 5), (1, 9))))
    workload = load(path, sort=True)
    assert workload.ids == ["8", "7", "3", "1"]
    assert workload.submit.tolist() == [5, 5, 9, 9]


ERRORS = [
    ({4: "x"}, "4 (run time): is not a number: expected a number, found 'x'."),
    ({4: "1_0"}, "4 (run time): is not a number: expected a number, found '1_0'."),
    ({4: "0x10"}, "4 (run time): is not a number: expected a number, found '0x10'."),
    ({8: "4-5"}, "8 (requested processors): is not a number: expected a whole number, found '4-5'."),
    ({8: "4.5"}, "8 (requested processors): is not a whole number: expected a whole number, found '4.5'."),
    ({12: "0.1"}, "12 (user): is not a whole number: expected a whole number, found '0.1'."),
    ({9: "nan"}, "9 (requested time): is not finite: expected a number, found 'nan'."),
    ({6: "inf"}, "6 (average CPU time): is not finite: expected a number, found 'inf'."),
    ({18: "-Infinity"}, "18 (think time): is not finite: expected a number, found '-Infinity'."),
    ({7: "1e999"}, "7 (used memory): is not finite: expected a number, found '1e999'."),
    ({2: "1e16"}, "2 (submit time): is too large: expected at most 9007199254740992, found '1e16'."),
    (
        {2: "-5"},
        "2 (submit time): is negative: expected a number that is not negative, found '-5'.",
    ),
    ({1: "-1"}, "1 (job number): is negative: expected a whole number that is not negative, found '-1'."),
    ({1: "7a"}, "1 (job number): is not a number: expected a whole number that is not negative, found '7a'."),
    ({4: "\u0661"}, "4 (run time): is not a number: expected a number, found '\u0661'."),
]


@pytest.mark.parametrize(("changes", "message"), ERRORS)
def test_field_errors(refused, job_line, changes, message):
    """The message has file, line, number and label of the field, what was expected and what was found."""
    text = "; MaxProcs: 9\n" + job_line() + job_line({1: 2, **changes})
    assert refused(text) == f"FILE, line 3, field {message} {MEND}"


SHAPES = [
    (
        "1 2 3\n",
        "FILE, line 1: too few fields: expected 18 numbers, or a comment after ';', found 3, from '1' to '3'. "
        "Check that the file is SWF and complete.",
    ),
    (
        "1 " * 19,
        "FILE, line 1: too many fields: expected 18 numbers, or a comment after ';', found 19, from '1' to '1'. "
        "Check that the file is SWF and complete.",
    ),
    (
        "JobName|User|Start\n",
        "FILE, line 1: too few fields: expected 18 numbers, or a comment after ';', found 1, "
        "from 'JobName|User|Start' to 'JobName|User|Start'. "
        "Slurm's accounting must be output of 'sacct --parsable2' with a header that has JobID; "
        "without a header, name the columns: --columns JobID,Submit,...",
    ),
    (
        "<html>\n",
        "FILE, line 1: this is no trace of leases: expected <lease-workload>, found '<html>'. "
        "'pipistrelle help workloads' shows a trace of leases.",
    ),
    (
        "; only a header\n",
        "FILE: has no jobs: expected lines of 18 numbers. Check that the file is complete.",
    ),
    (
        b"\xe9t\xe9 1\n",
        "FILE, line 1: is not UTF-8 text: found '\\\\xe9t\\\\xe9 1'. Only comments may contain other bytes.",
    ),
]


@pytest.mark.parametrize(("content", "message"), SHAPES)
def test_shape_errors(refused, content, message):
    """Lines that are not jobs, and files without jobs, are rejected."""
    assert refused(content) == message


def test_a_field_that_is_not_utf8_is_rejected(refused, job_line):
    """A field that is not UTF-8 is rejected with that reason."""
    line = job_line({4: "@"}).encode().replace(b"@", b"\xff1")
    assert refused(line).startswith("FILE, line 1, field 4 (run time): is not UTF-8 text: found")


def test_nul_beyond_the_first_block(refused, job_line):
    """NUL bytes are found wherever they are."""
    text = "".join(job_line({1: job}) for job in range(1, 5000)) + "; \0\n"
    assert "line 5000: is a binary file (it contains NUL bytes)" in refused(text)


def test_first_fault_is_reported(refused, job_line):
    """The error in the earliest line is reported first, whatever its kind."""
    assert "line 1, field 4" in refused(job_line({4: "x"}) + "1 2 3\n")


def test_duplicate_job_numbers(refused, job_line):
    """The second line with a job number is rejected, and the message names the first one."""
    text = "".join(job_line({1: job}) for job in (4, 2, 3, 2, 4))
    assert refused(text) == (
        "FILE, line 4, field 1 (job number): the job number occurs twice: expected each job number once, "
        "found 2, as on line 2. Remove one of the two lines, or give it another number."
    )


def test_unsorted(refused, job_line):
    """Submit times that go back are refused, and the message names the option that sorts."""
    text = "; x\n" + "".join(job_line({1: job, 2: submit}) for job, submit in ((1, 5), (2, 9), (3, 8.5)))
    assert refused(text) == (
        "FILE, line 4, field 2 (submit time): the jobs are not in the order of their submit times: "
        "expected at least 9, as on line 3, found 8.5. Use --sort to sort them while reading."
    )


@SHARED_FOLDER
@given(st.binary(max_size=200))
def test_any_bytes_give_a_workload_or_a_trace_error(tmp_path, content):
    """Any bytes raise nothing but TraceError."""
    path = tmp_path / "x.swf"
    path.write_bytes(content)
    with pytest.raises(TraceError):
        load(path)


TOKENS = st.one_of(
    st.integers(-2, 10).map(str),
    st.floats().map(str),
    st.sampled_from(["", "1_0", ";", "é", "1e5", "4.0", "-0", "+3", ".5", "5.", "--1", "1e", "9" * 400, "0x1", "\x0b"]),
)


@SHARED_FOLDER
@given(st.lists(st.dictionaries(st.integers(1, 18), TOKENS, max_size=2), min_size=1, max_size=4), st.booleans())
def test_malformed_lines_give_a_workload_or_a_trace_error(tmp_path, job_line, changes, sort):
    """A line is read or rejected with its number; no other exception is raised, and all values are finite."""
    path = tmp_path / "x.swf"
    path.write_text("".join(job_line({1: row, **change}) for row, change in enumerate(changes)), encoding="utf-8")
    try:
        workload = load(path, sort=sort)
    except TraceError as error:
        assert str(path) in str(error)  # noqa: PT017
    else:
        assert bool(np.all(np.isfinite(workload.submit)))
        assert bool(np.all(np.diff(workload.submit) >= 0))


def column(count: int, elements: st.SearchStrategy) -> st.SearchStrategy:
    """Return a strategy for a column with this number of values."""
    return st.lists(elements, min_size=count, max_size=count)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Return a workload that an SWF file can represent."""
    count = draw(st.integers(1, 8))
    time = st.one_of(st.integers(0, 10**9).map(float), st.floats(0, 1e9))
    whole = {field.column: st.integers(-1, 2**53) for field in FIELDS if field.column and field.whole}
    other = {field.column: st.floats(-1, 1e12) for field in FIELDS if field.column and not field.whole}
    columns = {name: np.array(draw(column(count, values)), dtype=np.int64) for name, values in whole.items()}
    measures = {name: np.array(draw(column(count, values)), dtype=np.float64) for name, values in other.items()}
    header = {"Version": "2.2", "Note": "one\ntwo", "MaxProcs": "77", "UnixStartTime": "5", "TimeZoneString": "UTC"}
    return Workload(
        name="x",
        source="x.swf",
        ids=list(map(str, draw(st.lists(st.integers(0, 2**53), min_size=count, max_size=count, unique=True)))),
        submit=np.array(sorted(draw(column(count, time))), dtype=np.float64),
        size=np.array(draw(column(count, st.integers(1, 10**6))), dtype=np.int64),
        walltime=np.array(draw(column(count, st.floats(-1, 1e9))), dtype=np.float64),
        runtime=np.array(draw(column(count, st.floats(-1, 1e9))), dtype=np.float64),
        columns={name: values for name, values in columns.items() if np.any(values != -1)},
        measures={name: values for name, values in measures.items() if np.any(values != -1)},
        machine_size=77,
        epoch=5.0,
        timezone="UTC",
        header=header,
    )


@SHARED_FOLDER
@given(workloads())
def test_round_trip(tmp_path, workload):
    """What is written is read back equal, to the last bit."""
    path = tmp_path / "x.swf"
    save(workload, path)
    assert load(path) == workload


def test_header_follows_the_workload(tmp_path, job_line):
    """The written header has the machine size, epoch and zone that were changed after reading."""
    path = tmp_path / "x.swf"
    path.write_text("; MaxNodes: 4\n; UnixStartTime: 9\n; TimeZoneString: UTC\n; Note: n\n" + job_line())
    workload = load(path)
    save(replace(workload, machine_size=9, epoch=12.5, timezone="Asia/Tokyo"), path)
    again = load(path)
    assert (again.machine_size, again.epoch, again.timezone) == (9, 12.5, "Asia/Tokyo")
    assert again.header["Note"] == "n"
    save(replace(workload, machine_size=None, epoch=None, timezone=None), path)
    assert load(path).header == {"Note": "n"}


def test_no_walltime_is_written_as_missing(tmp_path, job_line):
    """A job without a limit becomes one without a request: SWF has only -1."""
    path = tmp_path / "x.swf"
    path.write_text(job_line())
    save(replace(load(path), walltime=np.array([np.inf])), path)
    assert load(path).walltime.tolist() == [-1]


@pytest.mark.parametrize("job", ["a", "007", "", "-1", "1.0", "9007199254740993"])
def test_writer_refuses_ids_that_are_no_numbers(tmp_path, job_line, job):
    """SWF ids are whole numbers; otherwise no file is written."""
    path = tmp_path / "x.swf"
    path.write_text(job_line())
    workload = replace(load(path), ids=[job])
    with pytest.raises(TraceError, match="SWF cannot hold this job id"):
        save(workload, tmp_path / "y.swf")
    assert not (tmp_path / "y.swf").exists()


def test_writer_refuses_jobs_that_compute(tmp_path, job_line):
    """A job whose hosts determine its duration has no run time to write."""
    path = tmp_path / "x.swf"
    path.write_text(job_line() + job_line({1: 2}))
    with pytest.raises(TraceError) as caught:
        save(replace(load(path), runtime=np.array([1, np.nan]), profiles=["a", "b"]), path)
    assert str(caught.value) == (
        "x, job '2': SWF cannot hold a job whose run time depends on its hosts: "
        "expected a profile of delays, found profile 'b'. Keep the workload in Batsim's JSON."
    )


def test_writer_refuses_no_jobs(tmp_path, job_line):
    """A workload without jobs is not written, because it could not be read."""
    path = tmp_path / "x.swf"
    path.write_text(job_line())
    with pytest.raises(TraceError, match="there are no jobs to write"):
        save(load(path).select([]), path)


@pytest.mark.parametrize("file", ["KTH-SP2-1996-2.1-cln.swf.gz", "LANL-Grizzly-2018-01.swf", "ALCF-Theta-2022.swf.gz"])
def test_real_logs_round_trip(traces_dir, tmp_path, file):
    """A real log is written and read back equal, header included."""
    workload = load(traces_dir / file)
    save(workload, tmp_path / file)
    assert load(tmp_path / file) == workload


def test_real_header(traces_dir):
    """KTH-SP2's header is read completely, with its notes in order."""
    workload = load(traces_dir / "KTH-SP2-1996-2.1-cln.swf.gz")
    assert (workload.epoch, workload.timezone) == (843480031.0, "Europe/Stockholm")
    assert workload.header["Computer"] == "IBM SP2"
    assert workload.header["Note"].startswith("uses the EASY scheduler\nTHIS IS A CLEANED VERSION")
    assert workload.ids[0] == "15"
    assert workload.profile_of(0) == "3477"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak from /proc")
def test_a_large_log_takes_little_memory(traces_dir, project_root):
    """Curie's 312,826 jobs load in well under 200 MB."""
    program = (
        "import sys; from pipistrelle.traces.load import load; load(sys.argv[1]);"
        "print(open('/proc/self/status').read())"
    )
    command = [sys.executable, "-c", program, str(traces_dir / "CEA-Curie-2011-2.1-cln.swf.gz")]
    status = subprocess.run(command, check=True, capture_output=True, text=True, cwd=project_root).stdout
    peak = re.search(r"VmHWM:\s*(\d+) kB", status)  # getrusage would count the parent before exec
    assert peak is not None
    assert int(peak[1]) < 175_000
