"""The readers of outage logs: each format, its errors by line, and the real logs."""

import gzip

import numpy as np
import pytest

from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.outages.load import load_outage_log
from pipistrelle.traces.outages.rows import unix_time

LANL_HEAD = (
    "System,machine type,nodes,nodenum,nodenumz,node install,node prod,node decom,Prob Started,Prob Fixed,"
    "Facilities,Hardware,Human Error,Network,Undetermined,Software\n"
)
LANL_ROW = "20,cluster,3,1,1,1-Oct,1-Dec,current,1/6/2002 10:54,1/6/2002 11:00,,CPU,,,,\n"
TITAN_HEAD = "SN,location,insert,remove,duration,out,event\n"
TITAN = (
    TITAN_HEAD
    + "01,c0-0c0s0n0,2014-01-21 10:00:00,2016-01-21 10:00:00,63072000,TRUE,DBE\n"
    + "01,c0-0c0s0n0,,2016-01-21 09:00:00,,,DBE\n"
    + "01,c0-0c0s0n1,2016-02-01 00:00:00,2019-01-01 00:00:00,92016000,FALSE,\n"
    + "02,c0-0c0s0n0,2017-01-01 00:00:00,2019-01-01 00:00:00,63072000,FALSE,\n"
)
SACCTMGR = (
    "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n"
    "zeus||2023-01-01T00:00:00|Unknown||Cluster Registered TRES|\n"
    "zeus|n2|2023-01-02T00:00:00|2023-01-02T01:00:00|DOWN*|Not responding|slurm(64030)\n"
    "zeus|n10|2023-01-03T00:00:00|Unknown|DRAIN||root(0)\n"
)
TABLE = (
    "   NodeName           TimeStart             TimeEnd  State      Reason\n"
    "----------- ------------------- ------------------- ------ -----------\n"
    "         n2 2023-01-02T00:00:00 2023-01-02T01:00:00  DOWN*   no reply \n"
)
SCONTROL = (
    "NodeName=n1 Arch=x86_64 CoresPerSocket=8\n   State=IDLE ThreadsPerCore=1\n\n"
    "NodeName=n2 Arch=x86_64\n   State=DOWN+DRAIN ThreadsPerCore=1\n"
    "   Reason=bad DIMM, slot 3 [root@2023-02-03T04:05:06]\n"
)
PBS = (
    "02/07/2017 12:00:00;0004;Server@zeus;Node;n1;attributes set: state = offline\n"
    "02/07/2017 12:00:10;0004;Server@zeus;Node;n1;attributes set: comment = no power\n"
    "02/07/2017 12:01:00;0100;Server@zeus;Job;17.zeus;enqueuing into batch\n"
    "02/07/2017 12:02:00;0002;Server@zeus;Node;n1;node down: communication closed\n"
    "02/07/2017 13:00:00;0004;Server@zeus;Node;n1;attributes set: state - offline\n"
    "02/07/2017 13:30:00.25;0002;Server@zeus;Node;n1;node up\n"
    "02/07/2017 14:00:00;0004;PBS_Server;node;n2;attributes set: state + down,job-exclusive\n"
)
BATSIM = (
    '{"timestamp": 5, "type": "machine_unavailable", "resources": "0-1"}\n'
    '{"timestamp": 9, "type": "machine_available", "resources": "1"}\n'
    '{"timestamp": 7, "type": "note"}\n'
)


@pytest.fixture
def read(tmp_path):
    """Return a function that reads text as a log."""

    def load(text):
        path = tmp_path / "log.txt"
        path.write_text(text, encoding="utf-8")
        return load_outage_log(path)

    return load


def rows(log):
    """Return a log's outages as tuples, with times relative to the first begin."""
    first = log.down.min()
    return [
        (log.nodes[node], down - first, up - first, cause)
        for node, down, up, cause in zip(log.node, log.down, log.up, log.cause, strict=True)
    ]


def test_csv(read):
    """Numbers, sets of numbers and names; an empty end means never; the cause is optional."""
    log = read("node,down,up,cause,announced\n3,10,20.5,fan,\n0-1 7,12,,,5\n")

    assert rows(log) == [("3", 0, 10.5, "fan"), *((node, 2, np.inf, "failure") for node in ("0", "1", "7"))]
    assert (log.format, log.absolute, log.nodes) == ("CSV", False, ("0", "1", "3", "7"))
    assert log.announced.tolist()[1:] == [5.0, 5.0, 5.0]


def test_csv_with_dates_and_names(read):
    """Dates mean Unix time; columns may be in any order; names are sorted by the numbers in them."""
    log = read("down,up,node\n2017-01-29 08:00,2017-01-29T09:00:30,n10\n2017-01-29 08:30,2017-01-29 09:00,n2\n")

    assert log.absolute
    assert log.nodes == ("n2", "n10")
    assert rows(log) == [("n10", 0, 3630, "failure"), ("n2", 1800, 3600, "failure")]


def test_csv_with_names_by_a_rule(read):
    """Each of its names has the outage; ranges keep leading zeros, and several in one name give all combinations."""
    log = read('node,down,up\nn[009-010],1,2\n"login, c[0-1]s[4,6-7]",3,4\n')

    assert log.nodes == ("c0s4", "c0s6", "c0s7", "c1s4", "c1s6", "c1s7", "login", "n009", "n010")
    assert [row[1:3] for row in rows(log)] == [(0, 1)] * 2 + [(2, 3)] * 7


def test_lanl(read):
    """Nodes are SYSTEM/NUMBER, nodes without failures are included, observed from production to the end."""
    log = read(LANL_HEAD + LANL_ROW + LANL_ROW.replace("1/6/2002 11:00", "1/6/2002 10:54").replace(",1,1,", ",3,2,"))

    assert rows(log) == [("20/1", 0, 360, "Hardware: CPU"), ("20/2", 0, 60, "Hardware: CPU")]
    assert (log.nodes, log.classes) == (("20/0", "20/1", "20/2"), ("20",))
    assert log.begin.tolist() == [unix_time(2001, 12, 1)] * 3
    assert log.end.tolist() == [unix_time(2002, 1, 6, 11)] * 3
    lives = log.watched()
    assert sorted(lives.failed.tolist()) == [False, False, True, True]
    assert log.numbered(NodeSet.parse("1-9")).nodes == ("20/1", "20/2")


def test_titan(read):
    """A row with an event is an outage without an end; lives have the GPU's age; batches are classes."""
    log = read(TITAN)

    assert [row[0] for row in rows(log)] == ["c0-0c0s0n0"] * 2
    assert np.isnan(log.up).all()
    assert log.nodes == ("c0-0c0s0n0", "c0-0c0s0n1")
    lives = log.watched()
    assert lives.entered.tolist() == [0, 63072000, 0]
    assert lives.failed.tolist() == [True, False, False]
    assert (len(log.only("old")), len(log.only("new"))) == (2, 0)
    assert len(log.only("new").watched()) == 1
    cut = log.within(unix_time(2015, 1, 21, 10), unix_time(2016, 1, 1)).watched()
    assert cut.failed.tolist() == [False]
    assert cut.entered.tolist() == [365 * 86400]


def test_slurm(read):
    """sacctmgr's two forms; the cluster's own events are ignored, an unknown end means never."""
    log = read(SACCTMGR)

    assert rows(log) == [("n2", 0, 3600, "Not responding"), ("n10", 86400, np.inf, "DRAIN")]
    assert log.notes == ("1 events of the cluster itself are left out",)
    assert rows(read(SACCTMGR.replace("\n", "|\n"))) == rows(log)
    assert rows(read(TABLE)) == [("n2", 0, 3600, "no reply")]


@pytest.mark.parametrize("text", [SCONTROL, SCONTROL.replace("\n   ", " ")])
def test_scontrol(read, text):
    """Nodes in a bad state are down since the time in the reason's brackets."""
    log = read(text)

    assert rows(log) == [("n2", 0, np.inf, "bad DIMM, slot 3")]
    assert log.nodes == ("n1", "n2")


def test_pbs(read):
    """A node is down while it has any bad state; other records are ignored."""
    assert rows(read(PBS)) == [("n1", 0, 5400.25, "offline"), ("n2", 7200, np.inf, "down,job-exclusive")]


def test_batsim(read):
    """From unavailable to available; other types of events are ignored."""
    log = read(BATSIM)

    assert rows(log) == [("0", 0, np.inf, "machine_unavailable"), ("1", 0, 4, "machine_unavailable")]
    assert log.notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node,down,up\n1,2\n", "line 2: the row has another number of cells than the header"),
        ("node,down,up\n\n1,x,3\n", "line 3: the time 'down' cannot be read"),
        ("node,down,up\n1,-2,3\n", "line 2: the time 'down' cannot be read"),
        ("node,down,up\n1,3,3\n", "line 2: the outage ends no later than it begins"),
        ("node,down,up\n1,1,2017-01-29 08:00\n", "line 2: times are mixed"),
        ("node,down,up\n,1,2\n", "line 2: the row has no node"),
        ("node,down,up\n3-1,1,2\n", "line 2: the nodes cannot be read"),
        ("node,down,up\n0-99999999,1,2\n", "line 2: there are too many nodes"),
        ("node,down,up\nn[4-1],1,2\n", "line 2: the names of nodes cannot be read: expected names such as n[001-016]"),
        ("node,down,up\nn[1-4,1,2\n", "line 2: the names of nodes cannot be read"),
        ("node,down,up\nn1]-[4],1,2\n", "line 2: the names of nodes cannot be read"),
        ("node,down,up\nn[0-99999999],1,2\n", "line 2: the names of nodes cannot be read"),
        ("node,down,up\nc[0-9999]s[0-9999],1,2\n", "line 2: the names of nodes cannot be read"),
        ('node,down,up\n"n1,",1,2\n', "line 2: the names of nodes cannot be read"),
        ("node,down,up,announced\n1,1,2,1.5\n", "line 2: the outage is announced after it begins"),
        ("node,down,up,cuase\n", "line 1: unknown column 'cuase'. Did you mean 'cause'?"),
        ("node,down,cause\n", "line 1: the column 'up' is missing"),
        ("node,down,up\n1,1,2013-02-30 10:00\n", "line 2: the time 'up' cannot be read"),
        (LANL_HEAD + LANL_ROW.replace("11:00", "25:00"), "line 2: the time 'Prob Fixed' cannot be read"),
        (LANL_HEAD + LANL_ROW.replace("11:00", "10:00"), "line 2: the failure is fixed before it began"),
        (LANL_HEAD + LANL_ROW + LANL_ROW.replace("1-Dec", "1-Dez"), "line 3: a month cannot be read"),
        (LANL_HEAD + LANL_ROW.replace(",1,1,", ",1,x,"), "line 2: 'nodenumz' is no number"),
        (LANL_HEAD.replace("Hardware", "Hard") + LANL_ROW, "line 1: the column 'Hardware' is missing"),
        (TITAN.replace("DBE\n", "XYZ\n", 1), "line 2: the event is unknown: expected DBE or OTB, found 'XYZ'"),
        (TITAN.replace("2016-01-21 10", "2013-01-21 10"), "line 2: the life is not longer than 0 s"),
        (TITAN.replace("63072000", "y", 1), "line 2: 'duration' cannot be read"),
        (TITAN.replace("2016-01-21 09:00:00", ""), "line 3: 'remove' is missing"),
        (SACCTMGR.replace("2023-01-02T01", "2023-01-01T01"), "line 3: the event ends before it begins"),
        (SACCTMGR.replace("T01:00:00", "T1"), "line 3: TimeEnd cannot be read"),
        (SACCTMGR.replace("|TimeEnd|", "|End|"), "line 1: the column 'TimeEnd' is missing"),
        (SACCTMGR.replace("|Not responding|", "|"), "line 3: the row has another number of cells"),
        ("NodeName TimeStart\nn1\n", "line 2: the table has no line of dashes"),
        (SCONTROL.replace("@2023", " 2023"), "line 4: the node is down without a start time"),
        (PBS + "nonsense\n", "line 8: the line is not a record"),
        (PBS.replace("13:30:00.25", "11:30:00"), "line 6: the time is before that of an earlier line"),
        (BATSIM + "{\n", "line 4: is not valid JSON"),
        ("hello\n", "unknown format of outages"),
    ],
)
def test_malformed_rows_are_named(read, text, message):
    """File and line, the error, what was expected and what was found."""
    with pytest.raises(TraceError) as caught:
        read(text)

    assert "log.txt" in str(caught.value)
    assert message in str(caught.value)


def test_unknown_classes_and_numbers(read):
    """A class or a number that does not exist is rejected."""
    log = read(LANL_HEAD + LANL_ROW)
    with pytest.raises(TraceError, match="unknown class of nodes '21'"):
        log.only("21")
    with pytest.raises(TraceError, match="no node has such a number"):
        log.numbered(NodeSet.parse("77"))
    with pytest.raises(TraceError, match="chosen by number"):
        read(TITAN).numbered(NodeSet.parse("0"))


def test_lives_follow_from_outages(read):
    """Up from an end to the next begin; planned outages end a life without a failure; other nodes are censored."""
    log = read("node,down,up,cause,announced\n0,10,20,a,\n0,15,30,b,\n0,50,60,c,40\n1,80,,d,\n").within(None, 100.0)
    lives = log.with_silent(3).watched()

    found = list(zip(lives.begin.tolist(), lives.left.tolist(), lives.failed.tolist(), strict=True))
    assert found == [(0, 10, True), (0, 80, True), (0, 100, False), (30, 20, False), (60, 40, False)]
    assert log.overlaps() == 1
    with pytest.raises(TraceError, match="number of nodes does not match"):
        log.with_silent(1)


def test_the_log_of_lanl(traces_dir):
    """All 23,739 failures of 23 systems load, in the time of the table, with the sizes of the systems."""
    log = load_outage_log(next(traces_dir.glob("LA-UR-05-7318*")))
    sizes = dict(zip(log.classes, np.bincount(log.node_group).tolist(), strict=True))

    assert (len(log), len(log.classes)) == (23_739, 23)
    assert (sizes["2"], sizes["18"], sizes["20"], sizes["17"]) == (49, 1024, 512, 1)
    assert len(log.only("20")) == 2478
    assert log.line.tolist() == list(range(2, 23_741))
    assert log.overlaps() < 200


def test_the_lives_of_titan(traces_dir):
    """All 37,343 rows load: 6,367 events, 36,185 lives, 18,687 places, the batches as in the project's own summary."""
    log = load_outage_log(next(traces_dir.glob("Titan-GPU-lives*")))
    lives = log.watched()

    assert (len(log), len(lives), len(log.nodes)) == (6367, 36_185, 18_687)
    assert int(lives.failed.sum()) == 5209
    assert log.notes[0].startswith("37,343 rows; 1,158")


def test_compressed_logs(tmp_path):
    """gzip is recognised by its bytes."""
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"node,down,up\n1,2,3\n"))

    assert len(load_outage_log(path)) == 1


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "is a folder: expected a file of outages. Name a file in it."),
        (b"PK\x03\x04", "is a zip archive, which is not supported: expected a file of outages, plain or compressed"),
        (
            b"node,down,up\n\0",
            "is a binary file (it contains NUL bytes): expected a file of outages, plain or compressed",
        ),
    ],
)
def test_a_file_that_is_not_an_outage_log_is_rejected(tmp_path, content, says):
    """The message says that a file of outages was expected, not a workload."""
    path = tmp_path / "x"
    path.mkdir() if content is None else path.write_bytes(content)

    with pytest.raises(TraceError) as caught:
        load_outage_log(path)
    assert says in str(caught.value)


def test_a_missing_outage_log_is_reported(tmp_path):
    """The message is the same for a file that does not exist."""
    with pytest.raises(TraceError, match="no such file: expected a file of outages"):
        load_outage_log(tmp_path / "x")
