"""Files of external events."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipistrelle.traces.batsim.events import ExternalEvent, read_events
from pipistrelle.traces.errors import TraceError

MACHINES = {"type": "machine_unavailable", "resources": "0-3 8", "timestamp": 10}


@pytest.fixture
def path(tmp_path):
    """Return the path of the events' file."""
    return tmp_path / "events.txt"


def lines(*events):
    """Return the lines as a file's text."""
    return "".join(f"{json.dumps(event)}\n" for event in events)


def test_events_come_by_time(path):
    """Sorted by time; at one time available, unavailable, then all others, in the file's order; blank lines skipped."""
    available = MACHINES | {"type": "machine_available"}
    generic = {"type": "generic", "timestamp": 10, "data": [1, {"x": None}]}
    early = {"type": "late", "timestamp": 0.5, "resources": 7}
    path.write_text("\n" + lines(generic, MACHINES, MACHINES | {"resources": "9 7"}, available, early) + "  \r\n")
    assert read_events(path) == (
        ExternalEvent(0.5, "late", "", early),
        ExternalEvent(10.0, "machine_available", "0-3 8", available),
        ExternalEvent(10.0, "machine_unavailable", "0-3 8", MACHINES),
        ExternalEvent(10.0, "machine_unavailable", "7 9", MACHINES | {"resources": "9 7"}),
        ExternalEvent(10.0, "generic", "", generic),
    )


def test_a_file_without_events(path):
    """An empty file has no events."""
    path.write_text("")
    assert read_events(path) == ()


def test_unknown_types_can_be_refused(path):
    """Without the option that forwards them, unknown types are refused with their line."""
    path.write_text(lines(MACHINES, {"type": "machine_unavailble", "timestamp": 1}))
    assert len(read_events(path)) == 2
    with pytest.raises(TraceError) as caught:
        read_events(path, unknown=False)
    assert str(caught.value) == (
        f"{path}, line 2, $.type: unknown type 'machine_unavailble'. Did you mean 'machine_unavailable'? "
        "Others can be forwarded to the scheduler."
    )


FORMAT = "'pipistrelle help workloads' shows the format."


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "FILE, line 2: is not valid JSON: expected one JSON object per line, found '{'. Correct the line."),
        (
            "{} {}",
            "FILE, line 2: is not valid JSON: expected one JSON object per line, found '{} {}'. Correct the line.",
        ),
        ("[1]", f"FILE, line 2, $: Expected 'object', got 'array'. {FORMAT}"),
        ('{"type": "x"}', f"FILE, line 2, $: Object missing required field 'timestamp'. {FORMAT}"),
        ('{"timestamp": 1}', f"FILE, line 2, $: Object missing required field 'type'. {FORMAT}"),
        ('{"timestamp": "1", "type": "x"}', f"FILE, line 2, $.timestamp: Expected 'float', got 'str'. {FORMAT}"),
        (
            '{"timestamp": -1, "type": "x"}',
            "FILE, line 2, $.timestamp: the timestamp is out of range: expected seconds from 0 to 9007199254740992, "
            "found -1. Correct the value.",
        ),
        (
            '{"timestamp": 1, "type": "machine_available"}',
            f"FILE, line 2, $: Object missing required field 'resources'. {FORMAT}",
        ),
        (
            '{"timestamp": 1, "type": "machine_available", "resources": ""}',
            "FILE, line 2, $.resources: names no resources: expected intervals such as '0-3 8'. Name them.",
        ),
        ('{"timestamp": 1, "type": "machine_available", "resources": "3-1"}', "FILE, line 2, $.resources: "),
        ('{"timestamp": 1, "type": "machine_available", "resources": "a"}', "FILE, line 2, $.resources: "),
        (
            '{"a":' * 100000 + "1" + "}" * 100000,
            "FILE, line 2: the JSON is nested too deeply. Remove what no job needs.",
        ),
    ],
)
def test_errors(path, line, message):
    """The message has the file and line."""
    path.write_text(lines(MACHINES) + line + "\n")
    with pytest.raises(TraceError) as caught:
        read_events(path)
    assert str(caught.value).replace(str(path), "FILE").startswith(message)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60))
def test_any_bytes_give_events_or_a_trace_error(path, content):
    """Any bytes raise nothing but TraceError."""
    path.write_bytes(lines(MACHINES).encode() + content)
    try:
        assert len(read_events(path)) >= 1
    except TraceError as error:
        assert str(path) in str(error)  # noqa: PT017
