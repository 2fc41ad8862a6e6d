"""Labels: which users, queues, dependencies and so on each format keeps."""

from dataclasses import replace

import numpy as np
import pytest

from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.load import load, not_kept, save
from pipistrelle.traces.logs.dependencies import parse_dependency, rename_dependency, renumber
from pipistrelle.traces.logs.labels import dependency_column, named_column, state_column
from pipistrelle.traces.workload import LABELS, Workload, label_column

SACCT = """\
JobID|JobName|User|Group|Account|Partition|QOS|Dependency|State|Submit|Start|End|ElapsedRaw|Timelimit|NNodes
1|a|alice|g1|acc1|batch|normal||COMPLETED|1706688000|1706688010|1706688110|100|01:00:00|2
2|b|bob|g1|acc2|gpu|high|afterany:1|TIMEOUT|1706688005|1706688110|1706691710|3600|01:00:00|4
3|c|alice|g2|acc1|batch|normal|afterok:1:2|CANCELLED|1706688020|Unknown|Unknown|50|1-00:00:00|1
"""


@pytest.fixture
def log(tmp_path) -> Workload:
    """Return a log with all labels except the partition."""
    path = tmp_path / "log.sacct"
    path.write_text(SACCT)
    return load(path)


@pytest.fixture
def through(tmp_path):
    """Return a function that writes a workload and reads it again, from format to format."""

    def go(workload: Workload, *suffixes: str) -> Workload:
        for suffix in suffixes:
            save(workload, tmp_path / f"x{suffix}")
            workload = load(tmp_path / f"x{suffix}")
        return workload

    return go


def test_label_column(log):
    """A label is preferred to a number, row by row; -1 and "" mean none."""
    both = replace(
        log, labels={"user": ["x", "", ""]}, columns={"user": np.array([5, 6, -1]), "queue": np.zeros(3, int)}
    )
    assert label_column(both, "user") == ["x", "6", ""]
    assert label_column(both, "queue") == ["0", "0", "0"]
    assert label_column(both, "account") is None
    assert label_column(log, "account") == ["acc1", "acc2", "acc1"]


def test_named_column(log):
    """Numbers that the header explains get names, unless names would be ambiguous."""
    numbers = {"queue": np.array([1, 2, 7]), "user": np.array([1, 2, 3])}
    named = replace(log, labels={}, columns=numbers, header={"Queue": "1 batch\n2 gpu", "User": "1 x\n2 x"})
    assert named_column(named, "queue") == ["batch", "gpu", "7"]
    assert named_column(named, "user") == ["1", "2", "3"]


def test_labels_are_checked_selected_and_compared(log):
    """Labels are selected with their jobs, compared, and must have one text per job."""
    assert log.select([2, 0]).labels["user"] == ["alice", "alice"]
    assert log.select([2, 0]).format == "Slurm sacct"
    assert log != replace(log, labels={})
    assert log == replace(log, format="")
    with pytest.raises(ValueError, match="2 texts of user for 3 jobs"):
        replace(log, labels={"user": ["a", "b"]})


def test_sacct_to_sacct(log, through):
    """sacct output is written and read without loss, except for allocations."""
    again = through(log, ".sacct")
    assert again.labels == log.labels
    assert again.measures["wait"].tolist() == log.measures["wait"].tolist()
    assert (again.epoch, again.ids) == (log.epoch, log.ids)
    for name in ("submit", "runtime", "walltime", "size"):
        assert np.array_equal(getattr(again, name), getattr(log, name))


def test_sacct_to_json_to_sacct(log, through):
    """Batsim's JSON keeps all labels, and restores them."""
    assert through(log, ".json").labels == log.labels
    assert through(log, ".json", ".sacct").labels == log.labels
    assert through(log, ".json.gz", ".json").labels == log.labels


def test_sacct_to_swf_and_back(log, through):
    """SWF keeps users, groups and queues as numbers that its header explains, and one preceding job."""
    swf = through(log, ".swf")
    assert swf.columns["user"].tolist() == [1, 2, 1]
    assert swf.columns["queue"].tolist() == [1, 2, 1]
    assert swf.columns["preceding"].tolist() == [-1, 1, 2]
    assert swf.columns["status"].tolist() == [1, 0, 5]
    assert swf.header["Queue"] == "1 batch\n2 gpu"
    back = through(swf, ".sacct").labels
    assert {name: back[name] for name in ("user", "group", "queue")} == {
        name: log.labels[name] for name in ("user", "group", "queue")
    }
    assert back["dependency"] == ["", "afterany:1", "afterany:2"]
    assert back["state"] == ["COMPLETED", "FAILED", "CANCELLED"]


def test_swf_to_json_to_swf(tmp_path, job_line, through):
    """Numbers of users, groups, queues and partitions, statuses and preceding jobs are unchanged."""
    path = tmp_path / "a.swf"
    lines = [
        {1: 1, 12: 7, 13: 2, 15: 3, 16: 1, 11: 1},
        {1: 2, 12: 40, 13: -1, 15: 0, 16: 2, 11: 5, 17: 1},
        {1: 3, 12: -1},
    ]
    path.write_text("".join(map(job_line, lines)))
    log = load(path)
    again = through(log, ".json", ".swf")
    for name in ("user", "group", "queue", "partition", "preceding", "status"):
        assert again.columns[name].tolist() == log.columns[name].tolist(), name
    assert not again.header.keys() & {"User", "Group", "Queue", "Partition"}


def test_labels_to_maui_and_back(log, through):
    """A Maui trace keeps names without blanks, and no dependencies."""
    back = through(log, ".maui").labels
    same = ("name", "user", "group", "account", "queue", "qos")
    assert {name: back[name] for name in same} == {name: log.labels[name] for name in same}
    assert back["state"] == ["Completed", "Completed", "Removed"]
    odd = replace(log, labels={"user": ["a b", "", "c"], "queue": ["[fque:1]", "x:y", ""], "qos": ["a:b", "", ""]})
    assert through(odd, ".maui").labels["user"] == ["a_b", "", "c"]
    assert through(odd, ".maui").labels["queue"] == ["fque", "x_y", ""]
    assert through(odd, ".maui").labels["qos"] == ["a_b", "", ""]


def test_what_a_format_does_not_keep(log, through):
    """Each label that gets lost is reported."""
    ends = "state (except for success, failure and cancellation)"
    assert not_kept(log, "x.swf") == ["name", "account", "qos", "dependency (except for the end of one job)", ends]
    assert not_kept(log.select([0, 1]), "x.swf.gz") == ["name", "account", "qos", ends]
    assert not_kept(log.select([0, 2]), "x.swf")[3:] == ["dependency (except for the end of one job)"]
    assert not_kept(log, "x.maui") == [
        "dependency",
        "state (except for removed jobs and jobs that never ran)",
        "allocated",
    ]
    assert not_kept(log.select([0, 2]), "x.maui") == ["dependency", "allocated"]
    assert not_kept(log, "x.sacct.xz") == ["allocated"]
    assert not_kept(replace(log, machine_size=4), "x.sacct") == ["allocated", "the machine's size"]
    assert not_kept(log, "x.json") == ["allocated", "wait"]
    assert not_kept(through(log, ".json"), "x.json") == []


def test_labels_in_batsims_json(tmp_path):
    """Texts and whole numbers are labels; anything else is kept but is not a label; changed labels are written."""
    jobs = (
        '{"id": 1, "subtime": 0, "res": 1, "walltime": 9, "profile": "p", "user": "al", "queue": 7, '
        '"qos": [1], "x": 1}',
        '{"id": 2, "subtime": 1, "res": 1, "walltime": 9, "profile": "p", "user": null, "account": 1.5, '
        '"dependency": "afterok:1"}',
    )
    path = tmp_path / "a.json"
    path.write_text('{"jobs": [' + ", ".join(jobs) + '], "profiles": {"p": {"type": "delay", "delay": 5}}}')
    log = load(path)
    assert log.labels == {"user": ["al", ""], "queue": ["7", ""], "dependency": ["", "afterok:1"]}
    save(log, tmp_path / "b.json")
    text = (tmp_path / "b.json").read_text()
    assert '"user": "al", "queue": 7, "qos": [1], "x": 1}' in text
    assert '"account": 1.5, "dependency": "afterok:1"}' in text
    changed = replace(log, labels={"user": ["", "bob"], "group": ["g", ""]})
    save(changed, tmp_path / "b.json")
    assert load(tmp_path / "b.json").labels == {"user": ["", "bob"], "group": ["g", ""]}


def test_ids_that_formats_cannot_keep(log, through):
    """Ids that would be read differently are rejected, and renumbering helps."""
    odd = replace(log, ids=["1.2", "a", "b"], labels={"dependency": ["", "afterok:1.2", "afterany:a:1.2"]})
    for suffix, name in ((".swf", "SWF"), (".sacct", "Slurm's sacct")):
        with pytest.raises(TraceError, match=f"{name} cannot hold this job id.*--renumber"):
            through(odd, suffix)
    with pytest.raises(TraceError, match="Maui's workload trace cannot hold this job id"):
        through(replace(log, ids=["a b", "c", "d"]), ".maui")
    again = through(renumber(odd), ".sacct")
    assert again.ids == ["1", "2", "3"]
    assert again.labels["dependency"] == ["", "afterok:1", "afterany:2:1"]


def test_parse_and_rename_dependencies():
    """Slurm's and PBS's forms are parsed; unknown ones are unchanged."""
    assert parse_dependency("afterok:1:2,after:3+30?singleton") == [
        ("afterok", ["1", "2"]),
        ("after", ["3"]),
        ("singleton", []),
    ]
    assert parse_dependency("afterany:4_2(unfulfilled)") == [("afterany", ["4_2"])]
    assert parse_dependency("") == []
    assert rename_dependency("afterok:1:2,after:1+30,x", {"1": "9"}) == "afterok:9:2,after:9+30,x"


def test_columns_in_words(log):
    """SWF's preceding jobs and statuses become dependencies and states."""
    swf = replace(log, labels={}, columns={"preceding": np.array([-1, 1, 2]), "status": np.array([1, 0, -1])})
    assert dependency_column(swf) == ["", "afterany:1", "afterany:2"]
    assert state_column(swf) == ["COMPLETED", "FAILED", ""]
    assert dependency_column(replace(log, labels={})) is None
    assert LABELS[0] == "name"
