"""The batsim dialect's session: strict turns, one beginning, one end, and a table without dead ends."""

import json
from pathlib import Path

import pytest

from pipistrelle.protocol.base.errors import LocalProtocolError, RemoteProtocolError
from pipistrelle.protocol.batsim import codec
from pipistrelle.protocol.batsim.messages import BatsimSubmittedData
from pipistrelle.protocol.batsim.session import (
    BATSIM_TRANSITIONS,
    BatsimSchedulerSession,
    BatsimServerSession,
)
from pipistrelle.protocol.decisions import ExecuteJob, ExecuteJobData, RejectJob, RejectJobData
from pipistrelle.protocol.events import NoMoreJobs, SimulationBegins, SimulationBeginsData, SimulationEnds
from pipistrelle.protocol.messages import Notice, Reply

FIRST = Notice(1, 0.0, [SimulationBegins(0.0, SimulationBeginsData(4))])
SECOND = Notice(2, 10.0, [NoMoreJobs(10.0)])
LAST = Notice(3, 20.0, [SimulationEnds(20.0)])


def begun() -> tuple[BatsimServerSession, BatsimSchedulerSession]:
    """Return both ends after the first exchange."""
    server, scheduler = BatsimServerSession(), BatsimSchedulerSession()
    scheduler.receive_notice(server.send_notice(FIRST))
    server.receive_reply(scheduler.send_reply(Reply(1, 0.0)))
    return server, scheduler


def test_a_whole_conversation() -> None:
    """Notices and replies take turns; the last notice has a reply, too, and then both are done."""
    server, scheduler = begun()
    decision = ExecuteJob(10.0, ExecuteJobData("w0!1", "0-3", "it fits"))

    assert scheduler.receive_notice(server.send_notice(SECOND)) == SECOND
    assert server.receive_reply(scheduler.send_reply(Reply(2, 10.0, [decision]))) == Reply(2, 10.0, [decision])
    assert scheduler.receive_notice(server.send_notice(LAST)) == LAST
    assert server.receive_reply(scheduler.send_reply(Reply(3, 20.0))) == Reply(3, 20.0)
    assert server.state == scheduler.state == "CLOSED"


def test_only_our_server_receives_reasons() -> None:
    """A scheduler sends its reasons to our server, but not to Batsim, which would reject them."""
    decision = RejectJob(0.0, RejectJobData("w0!1", "too large"))
    message = json.loads(codec.encode_notice(FIRST))
    ours = BatsimSchedulerSession()
    ours.receive_notice(json.dumps(message).encode())
    del message["server"]
    theirs = BatsimSchedulerSession()
    theirs.receive_notice(json.dumps(message).encode())

    assert (ours.ours, theirs.ours) == (True, False)
    assert b"too large" in ours.send_reply(Reply(1, 0.0, [decision]))
    assert b"too large" not in theirs.send_reply(Reply(1, 0.0, [decision]))


def test_forwarded_profiles_are_read_when_announced(batsim4_dir: Path) -> None:
    """The first notice says whether profiles follow with the jobs."""
    scheduler = BatsimSchedulerSession()
    submissions = []
    for line in (batsim4_dir / "wire_batsched_submitter.jsonl").read_text().splitlines():
        direction, text = json.loads(line)
        if direction == "batsim->sched":
            notice = scheduler.receive_notice(text.encode())
            submissions += [event.data for event in notice.events if hasattr(event.data, "job")]
            scheduler.send_reply(Reply(notice.seq, notice.now))

    assert scheduler.state == "CLOSED"
    assert submissions
    assert all(isinstance(data, BatsimSubmittedData) and data.profile_raw is not None for data in submissions)


def test_the_first_notice_begins_the_simulation() -> None:
    """Neither side accepts another event first, or a second beginning."""
    with pytest.raises(LocalProtocolError, match="NOTICE is not allowed in state IDLE"):
        BatsimServerSession().send_notice(Notice(1, 0.0, []))
    with pytest.raises(RemoteProtocolError, match="expected FIRST_NOTICE"):
        BatsimSchedulerSession().receive_notice(b'{"now":0,"events":[]}')
    with pytest.raises(RemoteProtocolError, match="expected FIRST_NOTICE, found LAST_NOTICE"):
        BatsimSchedulerSession().receive_notice(codec.encode_notice(LAST))
    server, _ = begun()
    with pytest.raises(LocalProtocolError, match="FIRST_NOTICE is not allowed"):
        server.send_notice(FIRST)


def test_turns_are_strict() -> None:
    """Out of turn, messages are neither sent nor accepted, and the state is unchanged."""
    server, scheduler = begun()
    before = (server.state, server.seq, scheduler.state, scheduler.seq)

    with pytest.raises(RemoteProtocolError, match="REPLY is not allowed in state SERVER_TURN"):
        server.receive_reply(b'{"now":0,"events":[]}')
    with pytest.raises(LocalProtocolError, match="REPLY is not allowed in state SERVER_TURN"):
        scheduler.send_reply(Reply(1, 0.0))
    with pytest.raises(LocalProtocolError, match="numbered without gaps"):
        server.send_notice(LAST)
    with pytest.raises(RemoteProtocolError, match="cannot be read"):
        scheduler.receive_notice(b"{")
    assert (server.state, server.seq, scheduler.state, scheduler.seq) == before
    scheduler.receive_notice(server.send_notice(SECOND))
    with pytest.raises(LocalProtocolError, match="NOTICE is not allowed in state SCHEDULER_TURN"):
        server.send_notice(Notice(3, 10.0, []))
    with pytest.raises(LocalProtocolError, match="a reply answers the last notice"):
        scheduler.send_reply(Reply(1, 10.0))
    with pytest.raises(RemoteProtocolError, match="cannot be read"):
        server.receive_reply(b"{")
    assert server.receive_reply(scheduler.send_reply(Reply(2, 10.0))) == Reply(2, 10.0)


def test_what_cannot_be_encoded_changes_nothing() -> None:
    """If an outgoing message is rejected, the turn is unchanged."""
    server, scheduler = begun()
    with pytest.raises(LocalProtocolError, match="not finite"):
        server.send_notice(Notice(2, float("nan"), []))
    scheduler.receive_notice(server.send_notice(SECOND))
    with pytest.raises(LocalProtocolError, match="not finite"):
        scheduler.send_reply(Reply(2, float("nan")))
    scheduler.send_reply(Reply(2, 10.0))


def test_nothing_is_decided_after_the_end() -> None:
    """Our scheduler cannot decide then; decisions of another one are read and ignored."""
    server, scheduler = begun()
    scheduler.receive_notice(server.send_notice(Notice(2, 10.0, [SimulationEnds(10.0)])))
    late = [RejectJob(10.0, RejectJobData("w0!1"))]

    with pytest.raises(LocalProtocolError, match="the simulation is over"):
        scheduler.send_reply(Reply(2, 10.0, late))
    assert server.receive_reply(codec.encode_reply(Reply(2, 10.0, late))) == Reply(2, 10.0)
    with pytest.raises(LocalProtocolError, match="the session is over"):
        server.send_notice(LAST)


def test_every_state_can_be_reached_and_left() -> None:
    """Every state in the table is known and can be reached, and exactly one is final."""
    reached, new = {"IDLE"}, ["IDLE"]
    while new:
        for state in BATSIM_TRANSITIONS[new.pop()].values():  # type: ignore[index]
            if state not in reached:
                reached.add(state)
                new.append(state)

    assert reached == set(BATSIM_TRANSITIONS)
    assert [state for state, table in BATSIM_TRANSITIONS.items() if not table] == ["CLOSED"]
