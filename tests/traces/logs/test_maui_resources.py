"""Maui's resource traces."""

import pytest

from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.load import load
from pipistrelle.traces.logs.maui_nodes import is_resource_trace, read_maui_resources

LINE = (
    "COMPUTENODE AVAILABLE 1488355200 r1i0n0 isrv5 131072 131000 1 24 1 1 1 [NONE] x86_64 [mic][ib] "
    "[qprod:24][qmic:24] [NONE] 1.0 [NONE] [NONE] [NONE]\n"
)


@pytest.fixture
def trace(tmp_path):
    """Return a function that writes a trace."""

    def write(text: str):
        path = tmp_path / "resources"
        path.write_text(text)
        return path

    return write


def test_a_node(trace):
    """A node has the name, size, features and classes of its line."""
    drained = LINE.replace("AVAILABLE", "DRAINED").replace("r1i0n0", "r1i0n1").replace("[mic][ib]", "-")
    nodes = read_maui_resources(trace("# nodes\n" + LINE + drained))
    assert [node.name for node in nodes] == ["r1i0n0", "r1i0n1"]
    assert (nodes[0].processors, nodes[0].memory, nodes[0].swap, nodes[0].disk) == (24, 131000, 131072, 1)
    assert (nodes[0].features, nodes[0].classes) == (("mic", "ib"), ("qprod", "qmic"))
    assert (nodes[0].system, nodes[0].architecture, nodes[0].manager) == ("", "x86_64", "isrv5")
    assert (nodes[1].state, nodes[1].features) == ("DRAINED", ())


def test_it_is_known_by_its_first_line(trace, tmp_path):
    """The error for a resource trace says that it contains no jobs."""
    path = trace(LINE)
    assert is_resource_trace(path)
    with pytest.raises(TraceError, match="is a Maui resource trace: a machine, not its jobs"):
        load(path)
    assert not is_resource_trace(trace("1 2 3\n"))
    assert not is_resource_trace(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LINE + LINE.rsplit(" ", 1)[0], "line 2: the line describes no node"),
        (LINE.replace("AVAILABLE", "UP"), "line 1: the line describes no node"),
        (LINE + LINE, "line 2: the node occurs twice"),
        (LINE.replace(" 24 1 1", " x 1 1"), "line 1, field 9 (Configured Processors): is not a whole number"),
        ("# nothing\n", "has no nodes"),
    ],
)
def test_errors(trace, text, message):
    """Each error has its line and field."""
    with pytest.raises(TraceError) as caught:
        read_maui_resources(trace(text))
    assert message in str(caught.value)
