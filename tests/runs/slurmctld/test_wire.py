"""Messages between slurmctld and nodes: as Slurm 22.05 sends them."""

from struct import pack

import pytest

from pipistrelle.runs.slurmctld import wire
from pipistrelle.runs.slurmctld.wire import Message, WireError

#: the beginning of a start of a job as slurmctld 22.05.8 sent it: job 1 with 2 nodes of 2 CPUs
LAUNCH = bytes.fromhex(
    "00000001 00000000 00000000 00000000 00000000 00000000 00000006 626174636800 00000000 0000000000000000 00 00"
    "00000000 fffffffe 00000000 00000000 0000 0001 0000 0000 00000001 00000001 0001 00000001 00000002"
    "00000000 00000000 00000007 6e5b312d325d00"
)
#: a real question of slurmctld, whether a node answers
PING = bytes.fromhex("2600000003f0000000000000000000000000006400000000000000000000000376 6d00")


def test_a_real_message_is_read() -> None:
    """The header and the sender are removed."""
    assert wire.message_of(PING) == Message(wire.PING, b"")


def test_frame_is_read_as_written() -> None:
    """A frame has its length before it."""
    framed = wire.frame(Message(wire.RESULT, wire.result(4002)), 1000)
    assert wire.length_of(framed[:4]) == len(framed) - 4
    assert wire.message_of(framed[4:]) == Message(wire.RESULT, pack(">L", 4002))


def test_old_version_is_read_for_questions_only() -> None:
    """Before a node has registered, slurmctld speaks the oldest version to it."""
    old = wire.frame(Message(wire.REGISTER, b"", 36 << 8), 0)
    assert wire.message_of(old[4:]) == Message(wire.REGISTER, b"", 36 << 8)
    with pytest.raises(WireError, match=r"another protocol.*version 36, type 4005"):
        wire.message_of(wire.frame(Message(wire.LAUNCH, b"", 36 << 8), 0)[4:])


@pytest.mark.parametrize("whole", [b"", b"\x26", PING[:9]])
def test_malformed_message_is_an_error(whole: bytes) -> None:
    """No length is trusted."""
    with pytest.raises(WireError):
        wire.message_of(whole)


def test_start_of_a_job_is_read() -> None:
    """The nodes, and the CPUs on each."""
    start = wire.launch_of(LAUNCH)
    assert (start.job_id, start.array_job, start.array_task) == (1, 0, wire.NO_VALUE)
    assert (start.cpus, start.nodes, start.restarts) == ((1, 1), "n[1-2]", 0)
    with pytest.raises(WireError, match="start of a job in an unknown form"):
        wire.launch_of(LAUNCH[:80])


def test_end_of_a_job_is_read() -> None:
    """With or without a credential before it, the job and its state are found."""
    body = pack(">BLLLLL", 1, 7, wire.NO_VALUE, wire.NO_VALUE, 0, 0) + bytes(40)
    body += pack(">LLLLL", 7, wire.NO_VALUE, wire.NO_VALUE, 0, 0x8004) + bytes(30)
    assert wire.ended_job(body) == (7, 0x8004)
    with pytest.raises(WireError, match="end of a job in an unknown form"):
        wire.ended_job(b"\0" * 50)


def test_registration_names_resources() -> None:
    """A generic resource has the number that Slurm computes from its name."""
    body = wire.registration("g01", 10, (8, 1, 1, 8, 1), 64000, {"gpu:a100": 4})
    assert b"\x00\x75\x70\x67" in body
    assert b"a100\0" in body
