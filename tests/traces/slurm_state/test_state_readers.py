"""Readers of what squeue, scontrol, sinfo, sshare and sacct print."""

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict

from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.slurm.state.read import read_state

LIVE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "live"
#: 2026-01-05T08:00:00
NOW = 1_767_600_000
SHOWN = """JobId=36 ArrayJobId=34 ArrayTaskId=0 ArrayTaskThrottle=2 JobName=a=b c
   UserId=ada(1001) GroupId=staff(100) MCS_label=N/A
   Priority=1200 Nice=-5 Account=physics QOS=normal
   JobState=RUNNING Reason=None Dependency=(null)
   RunTime=00:10:00 TimeLimit=00:30:00 TimeMin=N/A
   SubmitTime=2026-01-05T07:00:00 EligibleTime=2026-01-05T07:00:00
   StartTime=2026-01-05T07:50:00 EndTime=2026-01-05T08:20:00 Deadline=N/A
   Partition=batch AllocNode:Sid=head:1
   ReqNodeList=(null) ExcNodeList=(null)
   NodeList=n[01-02]
   NumNodes=2 NumCPUs=8 NumTasks=2 CPUs/Task=4 ReqB:S:C:T=0:0:*:*
   TRES=cpu=8,mem=8000M,node=2,billing=8,gres/gpu=2
   Socks/Node=* NtasksPerN:B:S:C=1:0:*:* CoreSpec=*
   JOB_GRES=gpu:2
     Nodes=n[01-02] CPU_IDs=0-3 Mem=4000 GRES=gpu:1(IDX:0)
   MinCPUsNode=4 MinMemoryNode=4000M MinTmpDiskNode=0
   Features=fast DelayBoot=00:00:00
   OverSubscribe=OK Contiguous=0 Licenses=matlab:2 Network=(null)
   Command=/home/ada/a b=c.sh
   TresPerNode=gres:gpu:1

JobId=34 ArrayJobId=34 ArrayTaskId=1-5%2 ArrayTaskThrottle=2 JobName=a=b c
   UserId=ada(1001) GroupId=staff(100) MCS_label=N/A
   Priority=1100 Nice=0 Account=physics QOS=normal
   JobState=PENDING Reason=JobArrayTaskLimit Dependency=afterok:12(unfulfilled)
   RunTime=00:00:00 TimeLimit=1-00:00:00 TimeMin=N/A
   SubmitTime=2026-01-05T07:00:00 EligibleTime=Unknown
   StartTime=Unknown EndTime=Unknown Deadline=N/A
   Partition=batch,long AllocNode:Sid=head:1
   ReqNodeList=n03 ExcNodeList=n04
   NodeList=(null)
   NumNodes=2-4 NumCPUs=8 NumTasks=8 CPUs/Task=1 ReqB:S:C:T=0:0:*:*
   TRES=cpu=8,mem=8000M,node=2,billing=8
   MinCPUsNode=1 MinMemoryCPU=1000M MinTmpDiskNode=0
   Features=(null) DelayBoot=00:00:00
   OverSubscribe=NO Contiguous=0 Licenses=(null) Network=(null)
"""
JSON = {
    "meta": {},
    "jobs": [
        {
            "job_id": 36, "array_job_id": 34, "array_task_id": 0, "array_max_tasks": 2, "name": "a=b c",
            "user_name": "ada", "group_name": "staff", "account": "physics", "qos": "normal", "nice": -5,
            "priority": 1200, "job_state": "RUNNING", "state_reason": "None", "dependency": "",
            "submit_time": NOW - 3600, "eligible_time": NOW - 3600, "start_time": NOW - 600, "run_time": 600,
            "time_limit": 30, "partition": "batch", "nodes": "n[01-02]", "node_count": 2, "max_nodes": 0, "cpus": 8,
            "tasks": 2, "cpus_per_task": 4, "tasks_per_node": 1, "tres_alloc_str": "cpu=8,mem=8000M,node=2,gres/gpu=2",
            "memory_per_node": 4000, "features": "fast", "licenses": "matlab:2", "tres_per_node": "gres:gpu:1",
            "job_resources": {"allocated_nodes": [
                {"nodename": "n[01-02]", "cpus_used": 4, "memory_allocated": 4000},
            ]},
        },
        {
            "job_id": {"set": True, "infinite": False, "number": 34}, "array_job_id": {"set": True, "number": 34},
            "array_task_id": {"set": False, "number": 0}, "array_task_string": "1-5%2", "array_max_tasks": 2,
            "name": "a=b c", "user_name": "ada", "group_name": "staff", "account": "physics", "qos": "normal",
            "nice": 0, "priority": {"set": True, "number": 1100}, "job_state": ["PENDING"],
            "state_reason": "JobArrayTaskLimit", "dependency": "afterok:12(unfulfilled)",
            "submit_time": {"set": True, "number": NOW - 3600}, "eligible_time": {"set": True, "number": 0},
            "start_time": {"set": True, "number": 0}, "run_time": 0, "time_limit": {"set": True, "number": 1440},
            "partition": "batch,long", "nodes": "", "node_count": {"set": True, "number": 2},
            "max_nodes": {"set": True, "number": 4}, "cpus": {"set": True, "number": 8}, "tasks": 8,
            "cpus_per_task": 1, "tres_req_str": "cpu=8,mem=8000M,node=2,billing=8",
            "memory_per_cpu": {"set": True, "number": 1000}, "required_nodes": "n03", "excluded_nodes": "n04",
            "exclusive": ["true"], "licenses": "",
        },
    ],
}  # fmt: skip


def read(tmp_path, *texts):
    """Return the state that files with these texts describe."""
    paths = []
    for at, text in enumerate(texts):
        paths.append(tmp_path / f"{at}.txt")
        paths[-1].write_text(text)
    return read_state(paths)


def test_records_and_json_describe_the_same_jobs(tmp_path):
    """scontrol's records and the JSON of the same jobs give equal jobs, also in one line per record."""
    shown, plain = read(tmp_path, SHOWN), read(tmp_path, json.dumps(JSON))
    line = read(tmp_path, "\n".join(" ".join(one.split("\n   ")) for one in SHOWN.split("\n\n")))

    assert shown.now == plain.now == line.now == NOW
    assert not shown.faults
    assert not plain.faults
    assert not line.faults
    for other in (plain, line):
        for one, two in zip(shown.jobs, other.jobs, strict=True):
            left, right = asdict(one), asdict(two)
            assert {name for name in left if left[name] != right[name]} <= {"place", "used", "shares"}, (one, two)
    array, task = shown.jobs if shown.jobs[0].waits else shown.jobs[::-1]
    assert (array.number, array.tasks_of_array, array.array_limit) == (34, [1, 2, 3, 4, 5], 2)
    assert (array.nodes, array.max_nodes, array.exclusive, array.dependency) == (2, 4, True, "afterok:12")
    assert (array.memory_kind, array.memory, array.limit) == ("cpu", 1000, 86400.0)
    assert (task.tasks_of_array, task.name, task.gres, task.start) == ([0], "a=b c", {"gpu": 1}, NOW - 600)
    assert [(one.cpus, one.memory, one.gres) for one in task.shares] == [(4, 4000, {"gpu": 1})]


def test_json_of_squeue_22_has_times_of_tests_and_cores(tmp_path):
    """It has neither its own time nor run times, and counts the CPUs of steps only."""
    told = json.loads(json.dumps(JSON))
    for job, tested in zip(told["jobs"], (NOW - 400, NOW - 30), strict=True):
        del job["run_time"]
        job["last_sched_evaluation"] = tested
    cores = {"0": {"cores": {"0": "allocated", "1": "allocated"}}, "1": {"cores": {"0": "allocated"}}}
    told["jobs"][0]["job_resources"]["allocated_nodes"][0] |= {"cpus_used": 0, "sockets": cores}
    state = read(tmp_path, json.dumps(told))
    assert (state.now, state.tested) == (None, NOW - 30)
    assert [share.cpus for job in state.jobs for share in job.shares] == [3]


def test_three_forms_of_squeue_agree(tmp_path):
    """Cells between bars, columns of fixed width and the default output give the same jobs."""
    rows = [("101", "batch", "flow", "ada", "R", "30:00", "2", "n[01-02]"), *(
        (str(number), "batch", "flow", "bob", "PD", "0:00", "1", "(Priority)") for number in (102, 103)
    )]  # fmt: skip
    head = ("JOBID", "PARTITION", "NAME", "USER", "ST", "TIME", "NODES", "NODELIST(REASON)")
    bars = "\n".join("|".join(row) for row in (head, *rows))
    right = "\n".join("".join(f"{cell:>12}" for cell in row[:-1]) + f" {row[-1]}" for row in (head, *rows))
    left = "\n".join("".join(f"{cell:<20}" for cell in row) for row in (head, *rows))

    found = [read(tmp_path, f"2026-01-05T08:00:00\n{text}\n") for text in (bars, right, left)]
    assert [one.now for one in found] == [NOW] * 3
    assert [[asdict(job) | {"place": ""} for job in one.jobs] for one in found[1:]] == [
        [asdict(job) | {"place": ""} for job in found[0].jobs]
    ] * 2
    assert [job.reason for job in found[0].jobs] == ["", "Priority", "Priority"]


def test_bad_rows_are_named_and_skipped(tmp_path):
    """Each row that cannot be read is listed with file, line and field; the others count."""
    head = "JOBID|PARTITION|STATE|NODES|TIME_LIMIT|SUBMIT_TIME\n"
    state = read(
        tmp_path,
        f"{head}1|batch|PENDING|2|1:00|2026-01-05T07:00:00\nx|batch|PENDING|2|1:00|N/A\n2|batch|PENDING\n"
        "3|batch|PENDING|many|1:00|N/A\n4|batch|PENDING|1|soon|N/A\n5|batch|PENDING|1|1:00|yesterday\n",
    )

    assert [job.number for job in state.jobs] == [1]
    assert len(state.faults) == 5
    for number, field in enumerate(("id", "", "nodes", "limit", "submit"), start=3):
        assert f"line {number}" in state.faults[number - 3], state.faults
        assert field in state.faults[number - 3]


def test_sacct_has_running_and_pending_jobs(tmp_path):
    """Rows of sacct are jobs of the queue; steps are left out, ended jobs are kept for dependencies."""
    state = read(
        tmp_path,
        "JobID|User|Account|Partition|State|Submit|Start|Elapsed|Timelimit|NNodes|ReqCPUS|ReqTRES|NodeList|SubmitLine\n"
        "1|ada|physics|batch|COMPLETED|2026-01-05T06:00:00|2026-01-05T06:00:00|01:00:00|02:00:00|1|4|cpu=4|n01|\n"
        "2|ada|physics|batch|RUNNING|2026-01-05T06:00:00|2026-01-05T07:00:00|01:00:00|02:00:00|1|4|cpu=4|n01|\n"
        "2.batch|||||||||||||\n"
        "3|ada|physics|batch|PENDING|2026-01-05T07:00:00|Unknown|00:00:00|02:00:00|2|8|cpu=8,mem=8000M,node=2|"
        "None assigned|sbatch -d afterok:2 x\n"
        "4_[1-3]|ada|physics|batch|PENDING|2026-01-05T07:10:00|Unknown|00:00:00|02:00:00|1|1|cpu=1|None assigned|\n",
    )

    assert state.now == NOW
    assert not state.faults, state.faults
    assert state.ended == {(1, None): "COMPLETED"}
    assert [(job.number, job.state, job.node_list, job.dependency) for job in state.jobs] == [
        (2, "RUNNING", "n01", ""),
        (3, "PENDING", "", "afterok:2"),
        (4, "PENDING", "", ""),
    ]
    assert state.jobs[1].memory == 4000


def test_nodes_reservations_and_shares(tmp_path):
    """Nodes that are down or drained are out; reservations and usage are read from both forms."""
    text = read_state([LIVE / "nodes.txt", LIVE / "reservations.txt", LIVE / "sshare.txt"])
    assert [name for name, node in text.nodes.items() if node.out] == ["n04"]
    assert [(one.name, one.end - one.start, one.flags) for one in text.reservations] == [
        ("service", 7200.0, ("MAINT", "IGNORE_JOBS", "SPEC_NODES"))
    ]
    assert {(one.account, one.user): one.usage for one in text.shares or ()}["physics", "bob"] == 500000.0

    lines = [line.split("|") for line in (LIVE / "sshare.txt").read_text().splitlines()]
    lines.insert(1, ["-" * 12] * len(lines[0]))
    wide = read(tmp_path, "\n".join(" ".join(f"{cell:<12.12}" for cell in line) for line in lines))
    assert (wide.shares, wide.faults) == (text.shares, [])

    told = {
        "nodes": [{"name": "n01", "state": "idle", "state_flags": ["DRAIN"]}, {"name": "n02", "state": ["MIXED"]}],
        "reservations": [{"name": "r", "start_time": 5, "end_time": 9, "node_list": "n01", "flags": ["MAINT"]}],
        "shares": {"shares": [{"name": "ada", "parent": "physics", "type": ["USER"], "usage": 7}]},
    }
    plain = read(tmp_path, json.dumps(told))
    assert {name: node.out for name, node in plain.nodes.items()} == {"n01": True, "n02": False}
    assert [(one.name, one.start, one.nodes) for one in plain.reservations] == [("r", 5.0, "n01")]
    assert [(one.account, one.user, one.usage) for one in plain.shares or ()] == [("physics", "ada", 7.0)]

    table = read(
        tmp_path,
        "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\nbatch*       up 1-00:00:00      2  drng* n[01-02]\n"
        "batch*       up 1-00:00:00      2    mix n[03-04]\ngpu        drain 1-00:00:00      1   idle g01\n",
    )
    assert {name: node.out for name, node in table.nodes.items()} == {"n[01-02]": True, "n[03-04]": False, "g01": False}
    assert table.partitions == {"batch": "up", "gpu": "drain"}


def test_a_later_file_adds_to_an_earlier_one(tmp_path):
    """A job in squeue and scontrol is one job, with what either says."""
    state = read(tmp_path, "JOBID|PARTITION|STATE|NODES\n34_0|batch|RUNNING|2\n", SHOWN)
    assert [job.limit for job in state.jobs if job.holds] == [1800.0]
    turned = read(tmp_path, SHOWN, "JOBID|PARTITION|STATE|NODES\n34_0|batch|RUNNING|2\n")
    assert [job.limit for job in turned.jobs if job.holds] == [1800.0]


def test_long_tables_begin_with_a_date(tmp_path):
    """The output of ``squeue -l`` and ``sinfo -N -l``, as Slurm 22.05.8 printed it; scontrol may show nothing."""
    head = "Mon Jan 05 08:00:00 2026\n"
    jobs = (
        "             JOBID PARTITION     NAME     USER    STATE       TIME TIME_LIMI  NODES NODELIST(REASON)\n"
        "                 4     batch        4      ada  PENDING       0:00     10:00      4 (Priority)\n"
    )
    nodes = "NODELIST   NODES PARTITION       STATE CPUS\nn1             1    batch*   allocated 4\n"
    state = read(tmp_path, head + jobs, head + nodes, "No reservations in the system\n", "No jobs in the system\n")
    assert state.now == NOW
    assert [(job.number, job.limit, job.reason) for job in state.jobs] == [(4, 600.0, "Priority")]
    assert not state.faults
    assert list(state.nodes) == ["n1"]


def test_time_left_says_when_the_table_was_printed(tmp_path):
    """A running job with its start, limit and time left is enough."""
    text = "JOBID|PARTITION|STATE|TIME_LIMIT|TIME_LEFT|START_TIME\n7|batch|RUNNING|20:00|18:40|2026-01-05T07:58:40\n"
    assert read(tmp_path, text).now == NOW


@pytest.mark.parametrize(
    ("text", "words"),
    [("hello\n", "neither a record nor a header"), ("{", "not valid JSON"), ('{"a": 1}', "has no jobs")],
)
def test_other_files_are_refused(tmp_path, text, words):
    """A file of no command is an error that says what is expected."""
    with pytest.raises(TraceError, match=words):
        read(tmp_path, text)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    start=st.sampled_from(
        [SHOWN, json.dumps(JSON), (LIVE / "squeue.txt").read_text(), (LIVE / "nodes.txt").read_text()]
    ),
    at=st.integers(0, 4000),
    more=st.one_of(st.text(max_size=8), st.sampled_from(["|", "=", "\n", "9" * 40, "[1-9999999]", "null", "{}", "[]"])),
)
def test_damaged_files_give_faults_or_one_error(tmp_path, start, at, more):
    """A damaged file is read with faults, or refused with a TraceError."""
    at %= len(start)
    (tmp_path / "x").write_text(start[:at] + more + start[at + len(more) :], encoding="utf-8", errors="replace")
    with suppress(TraceError):
        read_state([tmp_path / "x"])
