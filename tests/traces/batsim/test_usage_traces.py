"""Usage traces: the files that a profile of this type names."""

import os
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.usage_traces import read_usage_trace


@pytest.fixture
def written(tmp_path):
    """Return a function that writes files and returns the path of the first."""

    def write(**files):
        for name, content in files.items():
            (tmp_path / name).write_text(content)
        return tmp_path / next(iter(files))

    return write


def read(path):
    """Return the usage trace of the profile whose list is this file."""
    return read_usage_trace(path.name, str(path.parent))


def test_what_lies_outside_the_folder_is_not_read(tmp_path):
    """Applies to a list and to a rank's file, however the path is written; within the folder `..` is allowed."""
    (tmp_path / "w" / "traces").mkdir(parents=True)
    (tmp_path / "secret").write_text("0 m_usage 1 1\n")
    (tmp_path / "list").write_text("w/rank\n")
    (tmp_path / "w" / "rank").write_text("0 m_usage 1 1\n")
    (tmp_path / "w" / "traces" / "fine").write_text("../rank\n")
    (tmp_path / "w" / "traces" / "out").write_text("/../../secret\n")
    folder = str(tmp_path / "w")
    assert read_usage_trace("traces/../traces/fine", folder) == (((1.0, 1.0),),)
    for name in ("../list", "/../list", "traces/../../list", "traces/out", ".."):
        with pytest.raises(TraceError, match="is no file in the workload's folder"):
            read_usage_trace(name, folder)


def test_links_and_pipes_are_not_followed_out_of_the_folder(tmp_path):
    """A link inside the folder is read; one that leads out, or a pipe, is refused without waiting."""
    folder = tmp_path / "w"
    folder.mkdir()
    (tmp_path / "secret").write_text("0 m_usage 1 1\n")
    (folder / "rank").write_text("0 m_usage 1 1\n")
    (folder / "link").symlink_to("rank")
    (folder / "leak").symlink_to("../secret")
    os.mkfifo(folder / "pipe")
    (folder / "good").write_text("link\n")
    for name in ("leak", "pipe"):
        (folder / f"list-{name}").write_text(f"{name}\n")

    assert read_usage_trace("good", str(folder)) == (((1.0, 1.0),),)
    for name in ("leak", "pipe", "list-leak", "list-pipe"):
        with pytest.raises(TraceError, match="is no file in the workload's folder"):
            read_usage_trace(name, str(folder))


def test_phases_of_each_rank(written):
    """Ranks are numbered in the order of their files; lines of other ranks, comments and empty lines are ignored."""
    path = written(
        t="r0\n\n/r1  \n", r0="0 m_usage 0.01 1000\n\n0 m_usage 1 0\n", r1="# x\n0 m_usage 1 1\n1 m_usage 0 5e9"
    )
    assert read(path) == (((0.01, 1000.0), (1.0, 0.0)), ((0.0, 5e9),))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"t": "\n"},
            "FOLDER/t: lists no files: expected the file of each rank, one per line. A job has at least one rank.",
        ),
        ({"t": "r0\n"}, "FOLDER/r0: no such file. Check the path."),
        (
            {"t": "../\n"},
            "FOLDER: the usage trace is no file in the workload's folder: found '../'. "
            "Copy it into the workload's folder; links may not lead out of it.",
        ),
        ({"t": "./\n"}, "FOLDER/.: is a folder: expected a workload file. Name a file in it."),
        (
            {"t": "r0\n", "r0": "1 m_usage 1 1\n"},
            "FOLDER/r0: has no phase of rank 0: expected a line 'RANK m_usage SHARE FLOPS', RANK being 0. "
            "Ranks are numbered from 0, in the order of their files.",
        ),
        (
            {"t": "r0\n", "r0": "0 m_usage 1 1\n0 compute 1e9\n"},
            "FOLDER/r0, line 2: is not a phase of a usage trace: expected a line 'RANK m_usage SHARE FLOPS', found "
            "'0 compute 1e9'. Other actions are not supported.",
        ),
        (
            {"t": "r0\n", "r0": "0 m_usage 1.5 1\n"},
            "FOLDER/r0, line 1: the share is out of range: "
            "expected a number from 0 to 1, found '1.5'. Correct the value.",
        ),
        (
            {"t": "r0\n", "r0": "0 m_usage nan 1\n"},
            "FOLDER/r0, line 1: the share is out of range: "
            "expected a number from 0 to 1, found 'nan'. Correct the value.",
        ),
        (
            {"t": "r0\n", "r0": "0 m_usage 1 x\n"},
            "FOLDER/r0, line 1: the work is out of range: "
            "expected flops from 0 to 1e+30, found 'x'. Correct the value.",
        ),
    ],
)
def test_errors(written, tmp_path, files, message):
    """The message has the file and line."""
    with pytest.raises(TraceError) as caught:
        read(written(**files))
    assert str(caught.value).replace(str(tmp_path), "FOLDER") == message


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=30), st.binary(max_size=30))
def test_any_bytes_give_phases_or_a_trace_error(tmp_path, names, phases):
    """Any content raises nothing but TraceError."""
    (tmp_path / "t").write_bytes(b"r0\n" + names)
    (tmp_path / "r0").write_bytes(b"0 m_usage 1 1\n" + phases)
    with suppress(TraceError):
        assert read(tmp_path / "t")[0][0] == (1, 1)
