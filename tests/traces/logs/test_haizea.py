"""Haizea's lease traces."""

import pytest
from msgspec import UNSET

from pipistrelle.platforms.description import homogeneous
from pipistrelle.runs.inputs.named import platform_for
from pipistrelle.runs.inputs.steps import Filter
from pipistrelle.server.errors import SetupError
from pipistrelle.server.setup.setup import Setup
from pipistrelle.traces.load import load
from pipistrelle.traces.logs.haizea import is_lease_trace


def lease(arrival: str, nodes: str, duration: str, *, attributes: str = "", start: str = "", real: str = "") -> str:
    """Return a request of a lease."""
    realduration = f'<realduration time="{real}"/>' if real else ""
    return (
        f'<lease-request arrival="{arrival}">{realduration}\n<lease {attributes} preemptible="true">\n'
        f'<nodes><node-set numnodes="{nodes}"><res type="CPU" amount="100"/></node-set></nodes>\n'
        f'<start>{start}</start>\n<duration time="{duration}"></duration>\n'
        '<software><disk-image id="foobar.img" size="1024"/></software></lease></lease-request>\n'
    )


def trace(*leases: str) -> str:
    """Return a trace of these leases on 40 nodes of two kinds."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<lease-workload name="sample">\n<description>x</description>\n'
        '<site><resource-types names="CPU Memory"/><nodes><node-set numnodes="30"><res type="CPU" amount="100"/>'
        '</node-set></nodes><nodes><node-set numnodes="10"/></nodes></site>\n'
        f"<lease-requests>\n{''.join(leases)}</lease-requests>\n</lease-workload>\n"
    )


@pytest.fixture
def read(tmp_path):
    """Return a function that loads a trace's text."""

    def load_it(text: str, **options: str):
        path = tmp_path / "leases.lwf"
        path.write_text(text)
        assert is_lease_trace(path)
        return load(path, **options)

    return load_it


def test_a_trace(read):
    """Leases are jobs by arrival, on the site's nodes; times may have days and fractions."""
    log = read(
        trace(
            lease("00:08:02:29", "64", "00:00:05:35"),
            lease("07:56:57.50", "4", "02:06:06.00", attributes='id="7" user="bob"', real="01:00:00.00"),
        )
    )
    assert (log.ids, log.format, log.machine_size) == (["7", "1"], "Haizea leases", 40)
    assert (log.submit.tolist(), log.epoch) == ([28617.5, 28949.0], None)
    assert (log.walltime.tolist(), log.runtime.tolist()) == ([7566.0, 335.0], [3600.0, 335.0])
    assert (log.size.tolist(), log.labels) == ([4, 64], {"user": ["bob", ""]})


def test_several_sets_of_nodes(read):
    """A lease of several sets of nodes requests all of them."""
    text = lease("00:00:00", "1", "00:10:00").replace("</nodes>", '<node-set numnodes="2"/></nodes>')
    assert read(trace(text)).size.tolist() == [3]


def test_a_lease_at_an_exact_time(read):
    """A lease that must start at a time waits until then, in its own queue; a run rejects it."""
    exact = lease("00:10:00", "1", "00:10:00", start='<exact time="00:30:00.00"/>')
    log = read(trace(lease("00:00:00", "2", "00:10:00"), exact))
    assert log.measures["wait"].tolist() == [-1.0, 1200.0]
    assert log.measures["exact_wait"].tolist() == [-1.0, 1200.0]
    assert log.labels["queue"] == ["", "advance-reservation"]
    with pytest.raises(SetupError, match=r"job 2 must start at 1,800 s exactly.*filter --queue advance-reservation"):
        Setup.of(homogeneous(40, "m"), log)
    assert Setup.of(homogeneous(40, "m"), Filter(queue=("advance-reservation",), invert=True).apply(log)).jobs == 1


def test_reliability(read):
    """The reliability that a lease requests is its QOS: the highest of its sets of nodes."""
    want = '<res type="Reliability" amount="{}"/>'
    one = lease("00:00:00", "1", "00:10:00").replace("</node-set>", want.format(5) + "</node-set>")
    two = lease("00:00:01", "1", "00:10:00").replace(
        "</nodes>", f'<node-set numnodes="2">{want.format(7)}{want.format(3)}</node-set></nodes>'
    )
    site = trace(one, two, lease("00:00:02", "1", "00:10:00")).replace(
        '<node-set numnodes="10"/>', f'<node-set numnodes="10">{want.format(1)}</node-set>'
    )
    log = read(site)
    assert log.labels["qos"] == ["reliability-5", "reliability-3", ""]
    assert (log.header, log.machine_size) == ({"Nodes": "30\n10 reliability-1"}, 40)
    pools = platform_for(log).pools
    assert [(pool.nodes, pool.node_class) for pool in pools] == [(30, UNSET), (10, "reliability-1")]


def test_old_text_of_ten_columns(refused):
    """The text format that Haizea read before XML is recognised; a truncated line of SWF is not."""
    assert refused("0 100 -1 600 4 100 1024 0 1 foobar.img\n").startswith(
        "FILE, line 1: this is no SWF: ten columns are Haizea's old text of leases, which is not supported: expected 18"
    )
    swf = "1 0 -1 100 2 -1 -1 2 200 -1 1 1 1 -1 -1 -1 -1 -1\n"
    assert refused(swf + " ".join(swf.split()[:10])).startswith("FILE, line 2: too few fields")


def test_ids(read):
    """Leases without an id get a free number."""
    log = read(trace(*(lease("00:00:01", "1", "00:10:00", attributes=a) for a in ('id="2"', "", ""))))
    assert log.ids == ["2", "3", "4"]


BOMB = '<?xml version="1.0"?>\n<!DOCTYPE x [<!ENTITY a "b"><!ENTITY c "&a;&a;">]>\n<lease-workload>&c;</lease-workload>'
GOOD = trace(lease("00:00:00", "1", "00:10:00"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD[:-20], "FILE, line 12, column 1: this is not XML: "),
        (BOMB, "FILE, line 2: a trace declares no entities"),
        (GOOD.replace("00:10:00", "soon"), "FILE, line 10: the lease's duration is not a time: expected [DD:]HH:MM:SS"),
        (GOOD.replace('arrival="00:00:00"', ""), "FILE, line 6: the lease's arrival is not a time"),
        (GOOD.replace('numnodes="1"', 'numnodes="x"'), "FILE, line 8: numnodes is not a whole number"),
        (GOOD.replace('numnodes="1"', 'numnodes="0"'), "FILE, line 6: the lease requests no nodes"),
        (
            GOOD.replace(
                'type="CPU" amount="100"/></node-set></nodes>\n<start>',
                'type="Reliability"/></node-set></nodes>\n<start>',
            ),
            "FILE, line 8: a reliability is not a whole number: expected 1, the highest, to 10",
        ),
        ("<platform/>", "FILE, line 1: this is no trace of leases: expected <lease-workload>, found '<platform>'"),
        ("<lease-workload/>", "FILE: has no jobs"),
        ("<lease-workload>&x;</lease-workload>", "FILE, line 1, column 17: this is not XML"),
        ("<lease-workload>" + "<a>" * 200, "FILE, line 1: elements are nested too deep"),
        (GOOD.encode() + b"\xff", "FILE, byte"),
    ],
)
def test_errors(refused, text, message):
    """Each error has its file and line, and nothing is expanded."""
    assert refused(text).startswith(message)


def test_no_processors(refused):
    """Leases request nodes only."""
    assert "the log does not count processors" in refused(GOOD, units="processors")
