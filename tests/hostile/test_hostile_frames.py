"""Malformed and hostile frames: thousands from a seeded mutator, more from hypothesis, and every bug found this way."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.protocol import codec
from pipistrelle.protocol.base.errors import PipistrelleError, RemoteProtocolError
from pipistrelle.protocol.batsim import codec as batsim_codec
from pipistrelle.protocol.batsim import notices, reply_reader
from pipistrelle.protocol.batsim.session import BatsimSchedulerSession
from pipistrelle.protocol.decisions import AnyDecision
from pipistrelle.protocol.events import (
    AnyEvent,
    DecisionRejected,
    DecisionRejectedData,
    JobDescription,
    JobStarted,
    JobStartedData,
    JobSubmitted,
    JobSubmittedData,
    SimulationBegins,
    SimulationBeginsData,
)
from pipistrelle.protocol.fields import MOST_UNITS, TAKEOVER, EndReason, Feature, RejectionCode
from pipistrelle.protocol.messages import HelloData, Notice, Reply, WelcomeData
from pipistrelle.protocol.session import SchedulerSession
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.server.errors import Illegal

VECTORS = Path(__file__).parents[2] / "protocol" / "vectors"
SIDES = ["server-native", "server-batsim", "scheduler-native", "scheduler-batsim"]
#: every decoder of frames, of both dialects
DECODERS: dict[str, Callable[[bytes], Any]] = {
    "hello": codec.decode_hello,
    "greeting": codec.decode_greeting,
    "notice": codec.decode_notice,
    "reply": codec.decode_reply,
    "batsim notice": lambda frame: batsim_codec.decode_notice(frame, 1, profiles=True),
    "batsim reply": lambda frame: batsim_codec.decode_reply(frame, Notice(1, 5.0, [])),
}

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner))


@pytest.fixture
def hostile(monkeypatch: pytest.MonkeyPatch, project_root: Path) -> Any:
    """Return the benchmark, as a module."""
    monkeypatch.syspath_prepend(project_root / "benchmarks")
    import hostile_frames  # type: ignore[import-not-found]

    return hostile_frames


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("frames", [300, pytest.param(6000, marks=pytest.mark.slow)])
def test_hostile_frames_are_refused_or_end_a_run_as_documented(hostile: Any, side: str, frames: int) -> None:
    """No traceback, hang or broken invariant; a message is one line, and a rejected frame changes nothing."""
    tally = hostile.tried(side, frames, seed=frames)
    assert tally.tried >= frames
    assert min(tally.refused, tally.taken) > frames / 20
    assert [str(find) for find in tally.finds] == []


@pytest.mark.parametrize("side", SIDES)
def test_every_kind_of_message_is_mutated(hostile: Any, side: str) -> None:
    """The mutator uses all kinds of events and decisions in a dialect's own tables, with all fields and words."""
    from hostile import mutator, tables  # type: ignore[import-not-found]

    kinds = {
        "server-native": get_args(AnyDecision),
        "scheduler-native": get_args(AnyEvent),
        "server-batsim": reply_reader.DECISION_TYPES,
        "scheduler-batsim": notices.EVENT_TYPES,
    }[side]
    names = {kind if isinstance(kind, str) else str(kind.__struct_config__.tag) for kind in kinds}
    tally = hostile.tried(side, 400, seed=1)

    assert names - tally.kinds.keys() == set()
    fields = {name for struct in (WelcomeData, JobDescription, Reply) for name in struct.__struct_fields__}
    assert fields <= {*tables.field_names()}
    assert {*get_args(Feature), *get_args(EndReason), *get_args(RejectionCode), TAKEOVER} <= {*mutator.TEXTS}


@pytest.mark.slow
@pytest.mark.parametrize("side", SIDES)
def test_hostile_frames_over_sockets(project_root: Path, side: str) -> None:
    """Commands as separate processes: each ends with a documented exit code and prints at most one line."""
    if not hasattr(os, "pidfd_open"):
        pytest.skip("there are no descriptors of processes")
    command = [sys.executable, project_root / "benchmarks" / "hostile_frames.py", "--side", f"{side}-socket"]
    done = subprocess.run([*command, "--frames", "60"], capture_output=True, text=True, check=False)
    assert " 0 finds" in done.stdout, done
    assert done.returncode == 0


def put(tree: Any, path: list[int], value: Any) -> Any:
    """Return a JSON tree with another value at a place; the place is a number, taken modulo the number of places."""
    if not path or not isinstance(tree, dict | list) or not tree:
        return value
    if isinstance(tree, list):
        at = path[0] % len(tree)
        return [*tree[:at], put(tree[at], path[1:], value), *tree[at + 1 :]]
    name = sorted(tree)[path[0] % len(tree)]
    return {**tree, name: put(tree[name], path[1:], value)}


def decoded(kind: str, frame: bytes) -> Any:
    """Return a frame's message; None if it is rejected, which must give a message that can be printed."""
    refusal = ""
    try:
        return DECODERS[kind](frame)
    except RemoteProtocolError as error:
        refusal = str(error)
    assert refusal.isprintable()
    return None


@settings(max_examples=120)
@given(
    data=st.data(),
    path=st.lists(st.integers(0, 20), max_size=5),
    value=values,
    kind=st.sampled_from(sorted(DECODERS)),
)
def test_a_valid_frame_with_any_value_is_decoded_or_rejected(
    data: st.DataObject, path: list[int], value: Any, kind: str
) -> None:
    """It is decoded or rejected; encoded and decoded again, it is the same."""
    name = kind.rpartition(" ")[2]
    file = data.draw(st.sampled_from(sorted(VECTORS.glob(f"{name}-valid-*.json"))))
    frame = json.dumps(put(json.loads(file.read_bytes()), path, value)).encode()
    message = decoded(kind, frame)
    if message is not None and "batsim" not in kind:
        again = codec.encode(message)
        assert codec.encode(DECODERS[kind](again)) == again or b"(malformed)" in again


@settings(max_examples=100)
@given(frame=st.binary(max_size=60), kind=st.sampled_from(sorted(DECODERS)))
def test_any_bytes_are_rejected_or_decoded(frame: bytes, kind: str) -> None:
    """They are rejected; bytes that happen to be a message do no harm."""
    decoded(kind, frame)


# -- bugs found -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("notice", "says"),
    [
        ('{"seq": 1, "now": 4.0, "events": []}', "time goes back: expected at least 5.0, found 4.0"),
        (
            '{"seq": 1, "now": 6.0, "events": [{"type": "NO_MORE_JOBS", "timestamp": 7.0, "data": {}}]}',
            "time is out of order: expected from 0.0 to 6.0, found 7.0",
        ),
        (
            '{"seq": 1, "now": 6.0, "events": [{"type": "NO_MORE_JOBS", "timestamp": 6.0, "data": {}}, '
            '{"type": "NO_MORE_JOBS", "timestamp": 2.0, "data": {}}]}',
            r"events\[1\].timestamp: an event's time is out of order: expected from 6.0 to 6.0, found 2.0",
        ),
    ],
)
@pytest.mark.parametrize("batsim", [False, True])
def test_a_notice_whose_time_goes_back_is_rejected(notice: str, says: str, batsim: bool) -> None:
    """The time may not go back within a notice or since the last one; the session does not change."""
    session: Any = BatsimSchedulerSession() if batsim else SchedulerSession()
    if not batsim:
        session.send_hello(HelloData("s"))
    session.state, session.now = "SERVER_TURN", 5.0
    with pytest.raises(RemoteProtocolError, match=says):
        session.receive_notice(notice.encode())
    assert (session.state, session.seq, session.now) == ("SERVER_TURN", 0, 5.0)


def test_the_text_of_an_illegal_decision_is_one_short_line() -> None:
    """The text quotes the scheduler in the notice with the rejection, in messages and in outputs."""
    text = str(Illegal("unknown_job", f"no job {'n' * 70_000}\n\x1b[2J was submitted"))
    assert len(text) < 600
    assert text.isprintable()
    assert text.startswith("no job nnn")
    assert text.endswith("was submitted")


def test_a_machine_with_too_many_units_is_rejected() -> None:
    """A Batsim that sends such a number does not cost memory either."""
    begins = '{"timestamp": 0, "type": "SIMULATION_BEGINS", "data": {"nb_resources": %s}}'
    frame = f'{{"seq": 1, "now": 0, "events": [{begins}]}}'
    assert codec.decode_notice((frame % MOST_UNITS).encode())
    with pytest.raises(RemoteProtocolError, match="nb_resources"):
        codec.decode_notice((frame % (MOST_UNITS + 1)).encode())
    of_batsim = frame.replace("%s", '%s, "compute_resources": [{"id": 0}]')
    with pytest.raises(RemoteProtocolError, match="not numbered from 0 without gaps"):
        batsim_codec.decode_notice((of_batsim % MOST_UNITS).encode(), 1)
    with pytest.raises(RemoteProtocolError, match="there are no compute hosts"):
        batsim_codec.decode_notice((of_batsim % (MOST_UNITS + 1)).encode(), 1)


def test_an_event_with_a_long_name_is_rejected_in_a_short_message() -> None:
    """The message names the event."""
    frame = json.dumps({"now": 0.0, "events": [{"type": "n" * 70_000, "timestamp": "soon"}]})
    with pytest.raises(RemoteProtocolError, match=r"an event n+\.\.\.n+ of Batsim's") as refused:
        batsim_codec.decode_notice(frame.encode(), 1)
    assert len(str(refused.value)) < 1000


BEGINS = SimulationBegins(0.0, SimulationBeginsData(4))


@pytest.mark.parametrize(
    "event",
    [
        DecisionRejected(5.0, DecisionRejectedData("malformed", "m" * 9000, 1, 0, "EXECUTE_JOB")),
        DecisionRejected(5.0, DecisionRejectedData("unknown_type", "what?", 1, 0, "d" * 9000)),
        JobStarted(5.0, JobStartedData("j" * 9000 + "\x1b[2J", "0-1")),
    ],
)
def test_a_server_text_is_cut_in_the_schedulers_message(event: Any) -> None:
    """However long the server's texts are, the message is one short line without terminal control codes."""
    runtime = Runtime(make_policy("easy"))
    runtime.welcome(WelcomeData(1, (), "run"))
    runtime.answer(Notice(1, 0.0, [BEGINS]))
    with pytest.raises(PipistrelleError) as ended:
        runtime.answer(Notice(2, 5.0, [event]))
    assert len(str(ended.value)) < 1500
    assert str(ended.value).isprintable()


def test_wrong_recorded_nodes_are_the_servers_fault() -> None:
    """A scheduler that starts jobs there ends as after any wrong frame; nodes that the machine lacks do no harm."""
    runtime = Runtime(make_policy("recorded"))
    runtime.welcome(WelcomeData(1, ("recorded",), "run"))
    runtime.answer(Notice(1, 0.0, [BEGINS]))
    for name, nodes in (("w0!1", "9-12"), ("w0!2", "unknown_unit")):
        job = JobDescription(name, 1, 5.0, recorded_start=0.0, recorded_nodes=nodes)
        notice = Notice(2 + (name == "w0!2"), 0.0, [JobSubmitted(0.0, JobSubmittedData(name, job))])
        if name == "w0!1":
            runtime.answer(notice)
        else:
            with pytest.raises(RemoteProtocolError, match="'recorded_nodes' of 'w0!2' is not a set of nodes"):
                runtime.answer(notice)
