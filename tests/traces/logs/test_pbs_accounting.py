"""Accounting logs of PBS and Torque."""

import numpy as np
import pytest

from pipistrelle.traces.clean import BAD_RECORD, clean, faults_text
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.load import load, load_parts
from pipistrelle.traces.workload import Workload

#: PBS Pro: a job of two nodes, whose name has a blank
PRO = """\
03/01/2017 08:00:00;L;license;floating license hour:3 day:10 max:10
03/01/2017 08:00:00;Q;101.isrv5;queue=qroute
03/01/2017 08:00:10;S;101.isrv5;user=alice group=users project=OPEN-1-1 jobname=my job queue=qprod ctime=1488355200 \
qtime=1488355200 etime=1488355200 start=1488355210 exec_host=r1i0n0/0*24+r1i0n1/0*24 \
exec_vnode=(r1i0n0:ncpus=24)+(r1i0n1:ncpus=24) Resource_List.ncpus=48 Resource_List.nodect=2 \
Resource_List.place=free Resource_List.select=2:ncpus=24:mem=4gb Resource_List.walltime=01:00:00
03/01/2017 08:30:10;E;101.isrv5;user=alice group=users project=OPEN-1-1 jobname=my job queue=qprod ctime=1488355200 \
qtime=1488355200 etime=1488355200 start=1488355210 exec_host=r1i0n0/0*24+r1i0n1/0*24 \
exec_vnode=(r1i0n0:ncpus=24)+(r1i0n1:ncpus=24) Resource_List.ncpus=48 Resource_List.nodect=2 \
Resource_List.select=2:ncpus=24:mem=4gb Resource_List.walltime=01:00:00 session=4711 end=1488357010 Exit_status=0 \
resources_used.cput=11:00:00 resources_used.walltime=00:30:02 run_count=1
"""

#: Torque: deletion of a queued job and of a running one, and a job that fails by itself
TORQUE = """\
04/05/2017 13:05:00;Q;44.master;queue=short
04/05/2017 13:05:00;Q;45.master;queue=short
04/05/2017 13:05:00;Q;46.master;queue=short
04/05/2017 13:05:02;D;44.master;requestor=bob@gw
04/05/2017 13:05:07;S;45.master;user=bob group=bob account=physics jobname=STDIN queue=short ctime=1491397500 \
qtime=1491397500 etime=1491397500 start=1491397507 owner=bob@gw exec_host=n01/0-1+n02/0-1 Resource_List.nodect=2 \
Resource_List.nodes=2:ppn=2 Resource_List.walltime=3600
04/05/2017 13:06:50;D;45.master;requestor=bob@gw
04/05/2017 13:06:53;E;45.master;user=bob group=bob account=physics jobname=STDIN queue=short ctime=1491397500 \
qtime=1491397500 etime=1491397500 start=1491397507 owner=bob@gw exec_host=n01/0-1+n02/0-1 Resource_List.nodect=2 \
Resource_List.nodes=2:ppn=2 Resource_List.walltime=3600 session=1 end=1491397613 Exit_status=271 \
resources_used.walltime=00:01:44
04/05/2017 13:07:00;E;46.master;user=bob group=bob jobname=x queue=short ctime=1491397500 qtime=1491397500 \
start=1491397600 exec_host=n01/0+n01/1 Resource_List.nodes=1:ppn=2 end=1491397620 Exit_status=1
04/05/2017 13:08:00;A;12.master;
"""


@pytest.fixture
def read(tmp_path):
    """Return a function that loads a log's text."""

    def load_it(text: str, **options: str) -> Workload:
        path = tmp_path / "20170301"
        path.write_text(text)
        return load(path, **options)

    return load_it


def test_pbs_pro(read):
    """A job has the labels, times and nodes of its records; its latest queue counts."""
    log = read(PRO)
    assert (log.ids, log.format, log.epoch, log.name) == (["101"], "PBS accounting", 1488355200.0, "20170301")
    assert (log.submit.tolist(), log.size.tolist(), log.walltime.tolist()) == ([0.0], [2], [3600.0])
    assert (log.runtime.tolist(), log.measures["wait"].tolist()) == ([1800.0], [10.0])
    assert {name: texts[0] for name, texts in log.labels.items()} == {
        "name": "my job",
        "user": "alice",
        "group": "users",
        "account": "OPEN-1-1",
        "queue": "qprod",
        "node_list": "r1i0n0,r1i0n1",
    }
    assert {name: column.tolist() for name, column in log.columns.items()} == {"allocated": [2], "status": [1]}


def test_processors(read):
    """With processors, ncpus and ppn count."""
    assert read(PRO, units="processors").size.tolist() == [48]
    assert read(TORQUE, units="processors").size[1:].tolist() == [4, 2]


def test_torque(read):
    """Deleted jobs are cancelled, an exit status is a failure, and a job deleted before the log began is left out."""
    log = read(TORQUE)
    assert log.ids == ["44", "45", "46"]
    assert log.columns["status"].tolist() == [5, 5, 0]
    assert log.runtime.tolist() == [-1.0, 106.0, 20.0]
    assert log.size.tolist() == [-1, 2, 1]
    assert log.walltime.tolist() == [np.inf, 3600.0, np.inf]
    assert log.labels["account"] == ["", "physics", ""]


def test_the_clock_of_the_lines(read):
    """Without ctime and qtime the Q record's date counts, in the given zone."""
    lines = "07/01/2017 08:00:00;Q;1.s;queue=q\n07/01/2017 09:00:00;E;1.s;user=u start=1498896000 end=1498896060\n"
    assert read(lines).epoch == 1498896000.0
    assert read(lines, timezone="Europe/Prague").epoch == 1498896000.0 - 7200
    assert read(lines, timezone="Europe/Prague").timezone == "Europe/Prague"


def test_rerun(read):
    """A requeued job has its last run: the one that R ended, if the log has no later one."""
    log = read(
        "03/01/2017 08:00:00;S;7.s;user=u ctime=1488355200 start=1488355300 exec_host=a/0*4 Resource_List.nodect=1\n"
        "03/01/2017 08:10:00;R;7.s;user=u ctime=1488355200 start=1488355300 end=1488355400 Exit_status=-11\n"
        "03/01/2017 08:20:00;S;7.s;user=u ctime=1488355200 start=1488356000 exec_host=b/0*4 Resource_List.nodect=1\n"
        "03/01/2017 08:30:00;E;7.s;user=u ctime=1488355200 start=1488356000 end=1488356050 exec_host=b/0*4 "
        "Exit_status=0\n"
        "03/01/2017 08:00:00;S;8.s;user=u ctime=1488355200 start=1488355300 exec_host=a/0*4 Resource_List.nodect=1\n"
        "03/01/2017 08:10:00;R;8.s;user=u ctime=1488355200 start=1488355300 end=1488355400\n"
        "03/01/2017 08:00:00;S;9.s;user=u ctime=1488355200 start=1488355300 exec_host=a/0*4 Resource_List.nodect=1\n"
        "03/01/2017 08:10:00;R;9.s;user=u ctime=1488355200 start=1488355300 end=1488355400 Exit_status=-11\n"
        "03/01/2017 08:20:00;S;9.s;user=u ctime=1488355200 start=1488356000 exec_host=a/0*4 Resource_List.nodect=1\n"
        "03/01/2017 08:10:00;R;10.s;user=v ctime=1488355200 qtime=1488355200 start=1488355300 end=1488355470 "
        "Resource_List.walltime=01:00:00 Resource_List.nodect=3\n"
    )
    assert log.ids == ["7", "8", "9", "10"]
    assert log.runtime.tolist() == [50.0, 100.0, -1.0, 170.0]
    assert log.measures["wait"].tolist() == [800.0, 100.0, 800.0, 100.0]
    assert log.columns["status"].tolist() == [1, -1, -1, -1]
    assert (log.size.tolist()[3], log.walltime.tolist()[3], log.labels["user"][3]) == (3, 3600.0, "v")


def test_several_days(tmp_path):
    """A job may begin in the file of one day and end in that of the next."""
    first, second = tmp_path / "20170301", tmp_path / "20170302"
    lines = PRO.splitlines(keepends=True)
    first.write_text("".join(lines[:3]))
    second.write_text("".join(lines[3:]))
    assert load(first).runtime.tolist() == [-1.0]
    whole = load_parts([first, second])
    assert (whole.ids, whole.runtime.tolist(), whole.name) == (["101"], [1800.0], "20170301")


def test_arrays(read):
    """Tasks of an array are jobs; records of the array as a whole are ignored."""
    log = read(
        "03/01/2017 08:00:00;Q;9[].s;queue=q\n"
        "03/01/2017 08:00:00;E;9[1].s;user=u ctime=1488355200 start=1488355200 end=1488355201\n"
        "03/01/2017 08:00:00;E;9[2].s;user=u ctime=1488355200 start=1488355200 end=1488355202\n"
        "03/01/2017 08:00:00;E;9[].s;user=u ctime=1488355200 start=1488355200 end=1488355202\n"
    )
    assert log.ids == ["9[1]", "9[2]"]


def test_servers_names_stay_where_needed(read):
    """Ids lose the server's name, unless two jobs would get the same id."""
    one = "03/01/2017 08:00:00;Q;1.a;queue=q\n"
    assert read(one).ids == ["1"]
    assert read(one + one.replace("1.a", "1.b")).ids == ["1.a", "1.b"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("afterok:101.isrv5.it4i.cz@isrv5.it4i.cz", "afterok:101"),
        ("afterok:101.s:102.s,afterany:9[3].s@s", "afterok:101:102,afterany:9[3]"),
        ("after:101", "after:101"),
    ],
)
def test_dependencies(read, text, expected):
    """Ids in dependencies have the form of the jobs' own ids."""
    log = read(f"03/01/2017 08:00:00;Q;103.s;queue=q depend={text}\n")
    assert log.labels["dependency"] == [expected]
    end = "03/01/2017 08:30:10;E;103.s;user=u queue=q ctime=1 start=2 end=3 exec_host=a/0\n"
    log = read(f"03/01/2017 08:00:00;Q;103.s;queue=q depend={text}\n{end}")
    assert (log.labels["dependency"], log.runtime.tolist()) == ([expected], [1.0])


@pytest.mark.parametrize(
    ("values", "nodes", "processors"),
    [
        ("Resource_List.select=2:ncpus=24:mem=4gb+1:ncpus=12", 3, 60),
        ("Resource_List.nodes=2:ppn=8+gpu", 3, 17),
        ("Resource_List.nodes=n01:ppn=2+n02:ppn=2", 2, 4),
        ("Resource_List.ncpus=6", 1, 6),
        ("Resource_List.procs=6", 1, 6),
        ("Resource_List.nodect=48 Resource_List.select=48:ncpus=1 exec_host=a/0*24+b/0*24", 2, 48),
        ("exec_host=a/0-5,7+b/1", 2, 8),
        ("exec_host=a/0+a/1+b/0", 2, 3),
        ("Resource_List.nodect=1:ppn=24:gpu=4", 1, 24),
        ("Resource_List.nodect=2:ppn=24:gpu=4 Resource_List.nodes=2:ppn=8", 2, 16),
        ("", -1, -1),
    ],
)
def test_sizes(read, values, nodes, processors):
    """Sizes come from the request, in all its forms, and from where the job ran."""
    line = f"03/01/2017 08:00:00;S;1.s;ctime=1488355200 {values}\n"
    assert read(line).size.tolist() == [nodes]
    assert read(line, units="processors").size.tolist() == [processors]


S = "03/01/2017 08:00:00;S;1.s;ctime=1488355200"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{S}\nnonsense\n", "FILE, line 2: the line is not an accounting record: expected MM/DD/YYYY"),
        (f"{S}\n13/01/2017 08:00:00;S;1;\n", "FILE, line 2: the line is not an accounting record"),
        (S.replace("ctime=1488355200", ""), "FILE, line 1, job '1.s': the record has no submit time"),
        (S.replace("1488355200", "x"), "FILE, line 1, field ctime: is not a whole number"),
        (f"{S} Resource_List.walltime=soon", "FILE, line 1, field Resource_List.walltime: is not a duration"),
        (f"{S} Resource_List.nodect=-1", "FILE, line 1, field Resource_List.nodect: is not a whole number"),
        (f"{S} Resource_List.select=1:ncpus=x", "FILE, line 1, field Resource_List.select: is not a whole number"),
        (S.replace(";S;", ";E;") + " start=20 end=10", "FILE, line 1, field end: is before the start"),
        (S.replace(";S;", ";E;") + " Exit_status=bad", "FILE, line 1, field Exit_status: is not a whole number"),
        ("03/01/2017 08:00:00;L;license;x\n", "FILE: has no jobs"),
        (S.replace("1.s", "a b"), "FILE, line 1: the job has no usable id"),
    ],
)
def test_errors(refused, text, message):
    """Each error has its file, line and field, if the log has nothing else or is read strictly."""
    assert refused(text, strict=True).startswith(message)
    if "nonsense" not in text and "13/01" not in text:
        assert refused(text).startswith(message)


GOOD_JOB = (
    "03/01/2017 08:30:10;E;5.s;user=u ctime=1488355200 start=1488355200 end=1488355260 Resource_List.nodect=1 "
    "Exit_status=0"
)


@pytest.mark.parametrize(
    ("lines", "numbers", "ids"),
    [
        (["nonsense", GOOD_JOB, "", "03/01/2017 08:30:1"], [1, 4], ["5"]),
        ([GOOD_JOB, GOOD_JOB.replace("5.s", "6.s").replace("nodect=1", "nodect=-1")], [2], ["5"]),
        ([GOOD_JOB.replace("5.s", "6.s").replace("ctime=1", "ctime=x"), GOOD_JOB], [1], ["5"]),
        ([GOOD_JOB.replace("5.s", "a b"), GOOD_JOB], [1], ["5"]),
        ([GOOD_JOB.replace("5.s", "6.s").replace("end=1488355260", "end=1e99"), GOOD_JOB], [1], ["5"]),
    ],
)
def test_one_bad_record_is_left_out(tmp_path, lines, numbers, ids):
    """The other records are read; the bad one is counted, also as a job that cannot run, and its line is named."""
    path = tmp_path / "20170301"
    path.write_text("03/01/2017 08:00:00;L;license;x\n" + "\n".join(lines) + "\n")
    log = load(path)
    assert log.ids == ids
    assert [fault.split(", line ")[1].split(":")[0].split(",")[0] for fault in log.faults] == [
        str(number + 1) for number in numbers
    ]
    assert clean(log, None)[1] == {BAD_RECORD: len(numbers)}
    said = faults_text(log)
    assert said is not None
    assert said.startswith(f"{len(numbers)} record{'s' * (len(numbers) > 1)} of 20170301 left out: {path}, line ")
    with pytest.raises(TraceError, match=rf"line {numbers[0] + 1}\b"):
        load(path, strict=True)


def test_many_bad_records(read):
    """The first errors are shown, the others counted."""
    said = faults_text(read(f"{GOOD_JOB}\n" + "x\n" * 1000))
    assert said is not None
    assert said.startswith("1,000 records of 20170301 left out: ")
    assert said.endswith("And 997 more.")
    assert len(said) < 900


def test_bytes_of_other_encodings(tmp_path):
    """A name with bytes that are not UTF-8 is a name with escapes."""
    path = tmp_path / "log"
    path.write_bytes(S.encode() + b" user=J\xf6rg queue=q\n")
    assert load(path).labels["user"] == ["J\\xf6rg"]


def test_no_such_zone(refused):
    """A time zone that does not exist is reported."""
    assert "unknown time zone 'Europe/Nowhere'" in refused(S, timezone="Europe/Nowhere")
    assert "unknown time zone '../x'" in refused(S, timezone="../x")
    assert "sizes cannot be counted in 'cores'" in refused(S, units="cores")


@pytest.mark.parametrize(
    ("values", "units", "expected"),
    [
        ("Resource_List.select=2:ncpus=8:gpu_model=a100:infiniband=True:mem=4gb", "nodes", (2, -1, -1, "A")),
        ("Resource_List.select=2:ncpus=8 Resource_List.place=scatter", "processors", (16, 8, -1, "")),
        ("Resource_List.select=2:ncpus=8 Resource_List.place=free", "processors", (16, -1, -1, "")),
        ("Resource_List.select=2:ncpus=8+1:ncpus=4 Resource_List.place=scatter", "processors", (20, -1, -1, "")),
        ("Resource_List.select=2:ncpus=8 Resource_List.place=scatter:excl", "processors", (16, 8, 1, "")),
        ("Resource_List.select=2:ncpus=8 Resource_List.place=scatter:excl", "nodes", (2, -1, -1, "")),
        ("Resource_List.select=2:ncpus=8:ngpus=4 Resource_List.place=free:exclhost", "gpus", (8, 4, 1, "unit=gpu")),
        ("Resource_List.select=2:ngpus=4+1:ngpus=2", "gpus", (10, -1, -1, "unit=gpu")),
        ("Resource_List.select=1:ngpus=2:x=a+1:ngpus=2:x=b", "gpus", (4, 2, -1, "(x=a|x=b)&unit=gpu")),
        ("Resource_List.select=1:ngpus=2:x=a+1:ngpus=2", "gpus", (4, 2, -1, "unit=gpu")),
        ("Resource_List.select=3:ncpus=24", "gpus", (3, -1, -1, "unit=node")),
        ("Resource_List.nodes=2:ppn=8:bigmem:gpus=2:shared", "gpus", (4, 2, -1, "bigmem&unit=gpu")),
        ("Resource_List.nodes=2:ppn=8:bigmem", "nodes", (2, -1, -1, "bigmem")),
        ("Resource_List.select=1:ncpus=1:scratch=10gb:lic=2:a=^b:c=d,e", "nodes", (1, -1, -1, "")),
    ],
)
def test_what_chunks_ask_of_nodes(read, values, units, expected):
    """Properties are the constraint; GPUs and, scattered, processors are per node; excl shares no node."""
    log = read(f"03/01/2017 08:00:00;S;1.s;ctime=1488355200 {values}\n", units=units)

    each = log.columns.get("units_per_node", np.array([-1])).tolist()
    whole = log.columns.get("whole_nodes", np.array([-1])).tolist()
    constraint = log.labels.get("constraint", [""])
    wanted = expected[3].replace("A", "gpu_model=a100&infiniband=true")
    assert (log.size.tolist(), each, whole, constraint) == ([expected[0]], [expected[1]], [expected[2]], [wanted])
