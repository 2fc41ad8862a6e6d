"""The output of Slurm's sacct."""

import numpy as np
import pytest

from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.load import load, load_parts
from pipistrelle.traces.workload import Workload

LOG = """\
User|JobID|JobName|Partition|Account|Group|QOS|Submit|Start|End|Elapsed|Timelimit|State|NNodes|NCPUS
alice|100|run|batch|proj1|users|normal|2024-01-31T08:00:00|2024-01-31T08:05:00|2024-02-01T09:05:30|1-01:00:30|2-00:00:00|\
COMPLETED|4|128
|100.batch|batch||proj1|||2024-01-31T08:05:00|2024-01-31T08:05:00|2024-02-01T09:05:30|1-01:00:30||COMPLETED|1|32
|100.extern|extern||proj1|||2024-01-31T08:05:00|2024-01-31T08:05:00|2024-02-01T09:05:30|1-01:00:30||COMPLETED|4|128
|100.0|hydra||proj1|||2024-01-31T08:05:02|2024-01-31T08:05:02|2024-02-01T09:05:30|1-01:00:28||COMPLETED|4|128
bob|101_3|a|b|batch|proj2|users|high|2024-01-31T08:10:00|2024-01-31T08:10:01|2024-01-31T08:10:31|00:00:30|UNLIMITED|\
FAILED|1|1
bob|102+0|het|gpu|proj2|users|high|2024-01-31T08:20:00|2024-01-31T08:20:00|2024-01-31T08:30:00|00:10:00|\
Partition_Limit|TIMEOUT|1|16
bob|102+1|het|gpu|proj2|users|high|2024-01-31T08:20:00|2024-01-31T08:20:00|2024-01-31T08:30:00|00:10:00|01:00:00|\
CANCELLED by 1234|2K|16
bob|103|p|gpu|proj2|users|high|2024-01-31T08:30:00|Unknown|Unknown|00:00:00|01:00:00|PENDING|1|16
bob|104|c|gpu|proj2|users|high|2024-01-31T08:40:00|None|2024-01-31T08:50:00|00:00:00|30:00|CANCELLED by 7|1|0
"""


@pytest.fixture
def read(tmp_path):
    """Return a function that loads a table's text."""

    def load_it(text: str, **options: str) -> Workload:
        path = tmp_path / "jobs.txt"
        path.write_text(text)
        return load(path, **options)

    return load_it


def test_a_table(read):
    """Jobs, tasks of arrays and components of heterogeneous jobs are jobs; steps are not; a name may have bars."""
    log = read(LOG)
    assert log.ids == ["100", "101_3", "102+0", "102+1", "103", "104"]
    assert (log.format, log.epoch) == ("Slurm sacct", 1706688000.0)
    assert log.submit.tolist() == [0.0, 600.0, 1200.0, 1200.0, 1800.0, 2400.0]
    assert log.runtime.tolist() == [90030.0, 30.0, 600.0, 600.0, -1.0, 0.0]
    assert log.walltime.tolist() == [172800.0, np.inf, np.inf, 3600.0, 3600.0, 1800.0]
    assert log.size.tolist() == [4, 1, 1, 2000, 1, 1]
    assert log.measures["wait"].tolist() == [300.0, 1.0, 0.0, 0.0, -1.0, 600.0]
    assert log.columns["status"].tolist() == [1, 0, 0, 5, -1, 5]
    assert log.labels["state"] == ["COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "PENDING", "CANCELLED"]
    assert log.labels["name"][1] == "a|b"
    assert log.labels["qos"][:2] == ["normal", "high"]
    assert log.labels["queue"][0] == "batch"
    assert log.labels["account"][0] == "proj1"


def test_processors(read):
    """With processors, the CPUs count."""
    assert read(LOG, units="processors").size.tolist() == [128, 1, 16, 16, 16, -1]


def test_columns_in_any_order_and_form(read):
    """Raw columns, Unix times and a bar at the end of each line (--parsable) give the same jobs."""
    text = (
        "NNodes|TimelimitRaw|ElapsedRaw|Submit|Start|JobIDRaw|\n2|90|100|1706688000|1706688010|5|\n"
        "1|UNLIMITED|7|2024-01-31T09:00:00+0100|Unknown|6|\n"
    )
    log = read(text)
    assert (log.ids, log.submit.tolist(), log.epoch) == (["5", "6"], [0.0, 0.0], 1706688000.0)
    assert (log.walltime.tolist(), log.runtime.tolist()) == ([5400.0, np.inf], [100.0, 7.0])


def test_start_and_end_instead_of_elapsed(read):
    """Without Elapsed, the run time is that from Start to End; times may lack seconds."""
    log = read("JobID|Submit|Start|End|ReqNodes\n1|2018-12-31T08:27|2018-12-31T08:28|2019-01-01T08:28|7\n")
    assert (log.runtime.tolist(), log.measures["wait"].tolist()) == ([86400.0], [60.0])


def test_a_clock_with_summer_time(read):
    """Dates are in the given zone, also in the night when the clock changes."""
    text = "JobID|Submit|Elapsed|NNodes\n1|2024-03-31T01:59:00|1:00|1\n2|2024-03-31T03:00:00|1:00|1\n"
    log = read(text, timezone="Europe/Berlin")
    assert (log.epoch, log.submit.tolist()) == (1711846740.0, [0.0, 60.0])


def test_requeued_jobs(read):
    """If a job occurs several times, the latest record counts, with the first submission."""
    head = "JobID|Submit|Start|Elapsed|NNodes|State\n"
    log = read(
        head + "1|2024-01-31T08:00:00|2024-01-31T08:10:00|00:05:00|2|NODE_FAIL\n"
        "1|2024-01-31T08:15:00|2024-01-31T08:20:00|00:30:00|2|COMPLETED\n"
    )
    assert (log.ids, log.submit.tolist(), log.runtime.tolist()) == (["1"], [0.0], [1800.0])
    assert (log.epoch, log.measures["wait"].tolist()) == (1706688000.0, [1200.0])


def test_several_files(read, tmp_path):
    """Tables may be concatenated, in one file or in several, with columns in another order."""
    first, second = "JobID|Submit|Elapsed|NNodes\n1|10|5|2\n", "NNodes|Elapsed|Submit|JobID\n3|6|20|2\n"
    log = read(first + "JobID|Submit|Elapsed|NNodes\n2|20|6|3\n")
    (tmp_path / "a").write_text(first)
    (tmp_path / "b").write_text(second)
    parts = load_parts([tmp_path / "a", tmp_path / "b"])
    assert parts.ids == log.ids == ["1", "2"]
    assert parts.size.tolist() == log.size.tolist() == [2, 3]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("sbatch --dependency=afterok:1:2 job.sh", "afterok:1:2"),
        ("sbatch -d afterany:1 job.sh", "afterany:1"),
        ("sbatch --dependency after:1+30,singleton --wrap 'a | b'", "after:1+30,singleton"),
        ("sbatch job.sh", ""),
    ],
)
def test_dependencies(read, line, expected):
    """Dependencies are in the job's submit command."""
    log = read(f"JobID|Submit|Elapsed|NNodes|SubmitLine|User\n3|10|1:00|1|{line}|u\n")
    assert log.labels.get("dependency", [""]) == [expected]
    assert log.labels["user"] == ["u"]


ROW = "JobID|Submit|Start|Elapsed|NNodes|Timelimit\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("JobID|Submit|NNodes\n", "FILE, line 1: the column Elapsed is missing: expected Elapsed or ElapsedRaw or"),
        ("JobID|Elapsed|NNodes\n", "FILE, line 1: the column Submit is missing"),
        ("JobID|submit|Elapsed|NNodes\n", "FILE, line 1: the column Submit is missing"),
        ("JobID|Submit|Elapsed|AllocCPUS\n", "FILE, line 1: the column AllocNodes is missing"),
        (ROW + "1|x|Unknown|1:00|1|\n", "FILE, line 2, field Submit: is not a time"),
        (ROW + "1|Unknown|Unknown|1:00|1|\n", "FILE, line 2, field Submit: is not a time"),
        (ROW + "1|2024-02-30T08:00:00|Unknown|1:00|1|\n", "FILE, line 2, field Submit: is not a time"),
        (ROW + "1|10|soon|1:00|1|\n", "FILE, line 2, field Start: is not a time"),
        (ROW + "1|10|20|long|1|\n", "FILE, line 2, field Elapsed: is not a duration"),
        (ROW + "1|10|20|1:00|many|\n", "FILE, line 2, field NNodes: is not a whole number"),
        (ROW + "1|10|20|1:00|1|always\n", "FILE, line 2, field Timelimit: is not a duration"),
        (ROW + "1|10|20|1:00\n", "FILE, line 2: the row has another number of columns than the header"),
        (ROW + "|10|20|1:00|1|\n", "FILE, line 2: the job has no usable id"),
        (ROW, "FILE: has no jobs"),
        (ROW + "1.batch|10|20|1:00|1|\n", "FILE: has no jobs"),
        ("JobID|Submit|Start|End|NNodes\n1|10|20|15|1\n", "FILE, line 2, field End: is before the start"),
    ],
)
def test_errors(refused, text, message):
    """Each error has its file, line and column."""
    assert refused(text).startswith(message)


def test_parts_of_different_logs(tmp_path):
    """Files of different formats, or of one that is never split, cannot be parts of one log."""
    (tmp_path / "a").write_text("JobID|Submit|Elapsed|NNodes\n1|10|5|2\n")
    (tmp_path / "b").write_text("03/01/2017 08:00:00;Q;1.a;queue=q\n")
    (tmp_path / "c").write_text("1 0 -1 100 4 -1 -1 4 200 -1 1 7 2 -1 -1 -1 -1 -1\n")
    for names in ("ab", "ba", "ac", "ca", "cc"):
        with pytest.raises(TraceError, match="the file cannot be part of a log in several files"):
            load_parts([tmp_path / name for name in names])


HEADLESS = (
    "7|alice|2024-01-31T08:00:00|01:00:00|2\n7.batch||2024-01-31T08:00:00|01:00:00|1\n"
    "8|bob|2024-01-31T09:00:00|5:00|4|\n"
)


@pytest.mark.parametrize("columns", ["JobID,User,Submit,Elapsed,NNodes", "JobID|User%20|Submit|Elapsed|NNodes|"])
def test_a_log_without_header(tmp_path, columns):
    """The columns can be given; a header in the file has precedence, and several files may lack it."""
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text(HEADLESS)
    second.write_text("NNodes|JobID|Submit|Elapsed\n3|9|2024-01-31T10:00:00|1:00\n")
    log = load(first, columns=columns)
    assert (log.ids, log.labels["user"], log.size.tolist(), log.runtime.tolist()) == (
        ["7", "8"],
        ["alice", "bob"],
        [2, 4],
        [3600.0, 300.0],
    )
    assert load_parts([first, second], columns=columns).size.tolist() == [2, 4, 3]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (None, "FILE, line 1: too few fields"),
        ("JobID,User,Submit,Elapsed", "--columns: the column AllocNodes is missing"),
        ("JobID,User,Submit,Elapsed,NNodes,NCPUS", "FILE, line 1: the row has another number of columns"),
    ],
)
def test_wrong_columns_of_a_log_without_header(refused, columns, message):
    """Missing, superfluous or unknown columns are reported, and without columns the option to give them."""
    said = refused(HEADLESS, columns=columns)
    assert said.startswith(message)
    assert columns is not None or "--columns JobID,Submit,..." in said


GPUS = """\
JobID|Submit|Start|ElapsedRaw|NNodes|ReqTRES|AllocTRES|Constraint
1|0|10|60|2|billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,node=2|cpu=8,gres/gpu=8,node=2|nvlink
2|1|10|60|3|cpu=8,gres/gpu=4,node=3||
3|2|10|60|2|cpu=64,node=2|cpu=64,node=2|a100
4|3|Unknown|0|1|gres/gpu:a100=1,gres/gpu:k80=2||
5|4|Unknown|0||gres/gpu=6,node=3||
"""


def test_gpus(read):
    """AllocTRES counts, otherwise ReqTRES; units are GPUs then, or nodes for other jobs; a model can be required."""
    log = read(GPUS, units="gpus")

    assert log.size.tolist() == [8, 4, 2, 3, 6]
    assert log.columns["units_per_node"].tolist() == [4, -1, -1, 3, 2]
    assert log.columns["allocated"].tolist() == [8, -1, 2, -1, -1]
    assert log.labels["constraint"] == ["nvlink&unit=gpu&a100", "unit=gpu", "a100&unit=node", "unit=gpu", "unit=gpu"]


def test_gpus_of_several_models_are_counted(read):
    """A request has GPUs of one kind: a message counts the jobs that ask for more; what they got may differ."""
    log = read(GPUS)
    asked = {name: one for name, one in zip(log.ids, log.requests, strict=True) if one is not None}

    assert log.remarks == (
        "1 job with GPUs of several models in ReqTRES may get any model: a request has GPUs of one kind",
    )
    assert (asked["4"].gpu_models, asked["1"].gpu_models) == ((), ("a100",))


def test_constraints(read):
    """The column is kept unchanged, whatever sizes count, and written again."""
    log = read(GPUS)

    assert log.size.tolist() == [2, 3, 2, 1, -1]
    assert log.labels["constraint"] == ["nvlink", "", "a100", "", ""]
    assert "units_per_node" not in log.columns


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("JobID|Submit|ElapsedRaw|NNodes\n1|0|5|1\n", "the column AllocTRES is missing"),
        ("JobID|Submit|ElapsedRaw|ReqTRES\n1|0|5|gres/gpu=x\n", "field ReqTRES: is not a whole number"),
    ],
)
def test_gpus_that_cannot_be_counted(read, text, says):
    """The columns with GPUs are needed, and must have numbers."""
    with pytest.raises(TraceError, match=says):
        read(text, units="gpus")
