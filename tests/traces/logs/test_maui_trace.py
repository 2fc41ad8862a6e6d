"""Maui's workload traces."""

import numpy as np
import pytest

from pipistrelle.platforms.requests.requests import NodeRequest, RequestBook
from pipistrelle.runs.inputs.maui_machine import maui_platform
from pipistrelle.traces.load import load, not_kept, save
from pipistrelle.traces.logs.maui_nodes import MauiNode
from pipistrelle.traces.requests import with_requests


def line(**changes: str) -> str:
    """Return a job line of a trace; fields are changed by their number: f6="-1"."""
    text = (
        "w1.17 2 48 alice users 3600 Completed [qprod:1] 1488355200 1488355210 1488355210 1488357010 [NONE] [NONE] "
        "[NONE] >= 0 >= 0 [NONE] 1488355200 48 24 high:normal [RESTARTABLE] OPEN-1-1 run.sh [NONE] 0 86400 ALL 1 "
        "0 0 0 0 0 r1:r2 isrv5 [NONE] [NONE] [NONE] [NONE] [NONE]"
    )
    fields = text.split()
    for number, value in changes.items():
        fields[int(number[1:]) - 1] = value
    return " ".join(fields) + "\n"


@pytest.fixture
def read(tmp_path):
    """Return a function that loads a trace's text."""

    def load_it(text: str, **options: str):
        path = tmp_path / "workload"
        path.write_text(text)
        return load(path, **options)

    return load_it


def test_a_trace(read):
    """A job has the labels, times and nodes of its line."""
    log = read("VERSION 310\n# a remark\n" + line())
    assert (log.ids, log.format, log.epoch) == (["w1.17"], "Maui workload trace", 1488355200.0)
    assert (log.size.tolist(), log.walltime.tolist(), log.runtime.tolist()) == ([2], [3600.0], [1800.0])
    assert (log.measures["wait"].tolist(), log.columns["status"].tolist()) == ([10.0], [1])
    assert {name: texts[0] for name, texts in log.labels.items()} == {
        "name": "run.sh",
        "user": "alice",
        "group": "users",
        "account": "OPEN-1-1",
        "queue": "qprod",
        "qos": "normal",
        "state": "Completed",
    }


def test_jobs_that_did_not_run(read):
    """A job that did not run has no run time, one without a limit has an infinite one."""
    log = read(line(f7="NotRun", f10="0", f11="0", f12="0", f6="-1") + line(f1="b", f7="Removed"))
    assert log.runtime.tolist() == [-1.0, 1800.0]
    assert log.walltime.tolist() == [np.inf, 3600.0]
    assert log.columns["status"].tolist() == [0, 5]


@pytest.mark.parametrize(
    ("changes", "nodes", "processors"),
    [
        ({}, 2, 48),
        ({"f2": "0"}, 2, 48),
        ({"f2": "0", "f23": "-1"}, 48, 48),
        ({"f32": "2"}, 2, 96),
        ({"f3": "[NONE]", "f2": "3"}, 3, 3),
    ],
)
def test_sizes(read, changes, nodes, processors):
    """Nodes are those requested, or as many as the tasks need; processors are those of all tasks."""
    assert read(line(**changes)).size.tolist() == [nodes]
    assert read(line(**changes), units="processors").size.tolist() == [processors]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            line() + line(f1="b").rsplit(" ", 1)[0],
            "FILE, line 2: too few fields: expected 44 fields of a Maui workload",
        ),
        (line().strip() + " x\n", "FILE, line 1: too many fields"),
        (line(f9="soon"), "FILE, line 1, field 9 (Submission Time): is not a whole number"),
        (line(f9="-1"), "FILE, line 1, field 9 (Submission Time): is not a time"),
        (line(f12="1488355000"), "FILE, line 1, field 12 (Completion Time): is before the start"),
        (line(f3="many"), "FILE, line 1, field 3 (Tasks Requested): is not a whole number"),
        (
            line() + line(),
            "FILE, line 2: job id 'w1.17' occurs twice: expected each id once, found the id of the job at",
        ),
        ("VERSION 310\n", "FILE: has no jobs"),
        (line(f3="9" * 15, f32="9" * 15), "FILE, line 1: the size of job"),
    ],
)
def test_errors(refused, text, message):
    """Each error has its file, line and field."""
    options = {"units": "processors"} if "size" in message else {}
    assert refused(text, **options).startswith(message)


def test_required_features(read, tmp_path):
    """Required features are a job's constraint, in both directions; other constraints cannot be written."""
    log = read(line(f20="[mic][ib:1][mic]") + line(f1="b") + line(f1="c", f20="[gpu]"))
    assert log.labels["constraint"] == ["mic&ib", "", "gpu"]
    save(log, tmp_path / "again.maui")
    again = load(tmp_path / "again.maui")
    assert again.labels["constraint"] == log.labels["constraint"]
    assert not any("constraint" in lost for lost in not_kept(log, "x.maui"))
    other = with_requests(log, constraint=["mic|ib", "", "gpu"])
    assert "constraint (except for required node features)" in not_kept(other, "x.maui")
    save(other, tmp_path / "again.maui")
    assert load(tmp_path / "again.maui").labels["constraint"] == ["", "", "gpu"]


def test_features_of_a_resource_trace_meet_them():
    """Each alone; a feature that no node has is named."""
    nodes = [
        MauiNode(name, "", "AVAILABLE", 24, 1, 1, 1, "", "", features, ("batch",))
        for name, features in (("r1", ("mic", "ib")), ("r2", ("mic", "ib")), ("r3", ()))
    ]
    info = maui_platform(nodes, "x").info
    book = RequestBook(info.pools)

    assert str(book.allowed(NodeRequest("mic&ib"))) == str(book.allowed(NodeRequest("ib"))) == "0-1"
    assert book.refusal(NodeRequest("mic&gpu"), 1) == "no pool meets its constraint 'mic&gpu': none has 'gpu'"
