"""Schedulers that die, hang or send garbage: one message, the right exit code, no lost output, the peer informed."""

import os
import signal
import socket

import pytest


@pytest.mark.parametrize(
    ("when", "how", "fragment", "reason"),
    [
        ("before-hello", "exit-0", "ended with exit code 0", None),
        ("before-hello", "exit-7", "ended with exit code 7", None),
        ("before-hello", "SIGKILL", "was killed by SIGKILL", None),
        ("after-welcome", "exit-0", "ended with exit code 0", None),
        ("mid-run", "exit-0", "ended with exit code 0", "scheduler_left"),
        ("mid-run", "exit-7", "ended with exit code 7", "scheduler_error"),
        ("mid-run", "raises", "ended with exit code 1", "scheduler_error"),
        ("mid-run", "SIGKILL", "was killed by SIGKILL", "scheduler_killed"),
        ("mid-run", "SIGTERM", "was interrupted by SIGTERM", "scheduler_interrupted"),
    ],
)
def test_a_scheduler_that_dies_ends_the_run_at_once(shell, when, how, fragment, reason):
    """Its death is noticed long before the time limits and ends with exit code 4; jobs that had ended are kept."""
    outcome = shell.simulate("dies", when, how)
    outcome.failed(4, fragment, "before the simulation was over", "dies.py")

    if when == "mid-run":
        assert [job[0] for job in shell.ended_jobs()] == ["2", "1"]
        assert f"ended early: {reason}" in outcome.out
        assert shell.end_reason() == reason
    else:
        assert list((shell.folder / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("when", "fragments"),
    [
        ("before-hello", ["no scheduler connected within 1 s", "connects there and says HELLO"]),
        ("after-welcome", ["scheduler 'peer' did not answer WELCOME within 1 s", "--decision-timeout"]),
        ("mid-run", ["scheduler 'peer' did not answer notice 6 within 1 s", "--decision-timeout"]),
    ],
)
def test_a_scheduler_that_hangs_meets_a_time_limit(shell, when, fragments):
    """The run ends when the limit is over, names it and the last message, and the process is ended."""
    limit = "--hello-timeout" if when == "before-hello" else "--decision-timeout"
    outcome = shell.simulate("hangs", when, options=[limit, "1"])
    outcome.failed(4, *fragments)

    if when == "mid-run":
        assert [job[0] for job in shell.ended_jobs()] == ["2", "1"]
        assert shell.end_reason() == "scheduler_timeout"


def test_a_late_reply_gets_the_end_of_the_run(shell):
    """A reply that arrives soon after the limit is not used, but its sender learns how the run ended."""
    outcome = shell.simulate("hangs", "late", options=["--decision-timeout", "1"])
    outcome.failed(4, "did not answer notice 6 within 1 s")

    assert "peer ended scheduler_timeout" in outcome.out
    assert "did not answer notice 6 within 1 s" in outcome.out


@pytest.mark.parametrize(
    ("kind", "fragments"),
    [
        ("not-json", ["the frame cannot be read", "expected a reply", "start everything"]),
        ("truncated", ["the frame cannot be read"]),
        ("trailing", ["the frame cannot be read"]),
        ("empty", ["an empty frame"]),
        ("not-utf8", ["the frame cannot be read"]),
        ("nul", ["the frame cannot be read"]),
        ("null", ["Expected `object`, got `null`"]),
        ("array", ["Expected `object`, got `array`"]),
        ("text-seq", ["Expected `int`, got `str`", "$.reply_to"]),
        ("no-now", ["missing required field `now`"]),
        ("nan", ["the frame cannot be read"]),
        ("infinite", ["the frame cannot be read"]),
        ("negative", ["$.now"]),
        ("events-object", ["Expected `array`, got `object`", "$.events"]),
        ("unknown-wake", ["JOB_STOLEN", "$.wake"]),
        ("old-reply-to", ["the reply answers another message", "expected 6, found 5"]),
        ("new-reply-to", ["the reply answers another message", "expected 6, found 7"]),
        ("deep", ["the frame cannot be read"]),
        ("deep-events", ["the frame cannot be read"]),
        ("hello-again", ["missing required field `reply_to`"]),
        ("line-break", ["the frame cannot be read", "found one"]),
        ("huge", ["the frame is too long", "found 100,000,0", "expected at most 67,108,864 bytes"]),
        ("huge-text", ["the frame is too long"]),
    ],
)
def test_a_frame_that_is_no_reply_ends_the_run(shell, kind, fragments):
    """The message quotes what is wrong with it, the sender gets the same as REFUSED, and outputs so far are kept."""
    outcome = shell.simulate("garbage", kind)
    outcome.failed(4, "scheduler 'peer' broke the protocol after notice 6", *fragments)

    refusal = next(line for line in outcome.out.splitlines() if line.startswith("peer refused protocol_error"))
    assert fragments[0] in refusal
    assert [job[0] for job in shell.ended_jobs()] == ["2", "1"]
    assert shell.end_reason() == "protocol_error"


def test_a_reply_dated_before_its_notice_ends_the_run(shell):
    """The scheduler receives the reason in SIMULATION_ENDS."""
    outcome = shell.simulate("garbage", "past")
    outcome.failed(4, "$.now", "dated before its notice", "expected at least 100.0, found 99.0")

    assert "peer ended protocol_error" in outcome.out
    assert [job[0] for job in shell.ended_jobs()] == ["2", "1"]


@pytest.mark.parametrize(
    ("kind", "code", "fragments"),
    [
        ("not-json", "malformed", ["expected HELLO", "good evening"]),
        ("empty", "malformed", ["expected HELLO", "an empty frame"]),
        ("reply", "malformed", ["expected HELLO"]),
        ("no-name", "malformed", ["missing required field `name`"]),
        ("old-batsim", "malformed", ["expected HELLO"]),
        ("deep", "malformed", ["expected HELLO"]),
        ("version-99", "version", ["no common protocol version", "99 to 100", "the server speaks 1 to 1"]),
        ("version-named", "version", ["no common protocol version: the server speaks 1 to 1, ?[2J?nnn", "nnn ... nnn"]),
        ("version-0", "version", ["no common protocol version"]),
        ("version-turned", "malformed", ["protocol_min is above protocol_max"]),
    ],
)
def test_a_peer_without_hello_is_rejected(shell, kind, code, fragments):
    """The peer receives the reason, and so does the user when no other scheduler can connect."""
    outcome = shell.simulate("stranger", kind)
    outcome.failed(4, "ended with exit code 0", "1 refused, the last one because", *fragments)

    assert f"peer refused {code} {fragments[0][:26] if code == 'version' else ''}" in outcome.out
    assert "\x1b" not in outcome.err


def test_a_hello_of_100_mb_is_refused(shell):
    """It is refused with a text like any other."""
    outcome = shell.simulate("stranger", "huge")
    outcome.failed(4, "1 refused")

    assert "peer refused malformed" in outcome.out


def test_decisions_before_the_first_notice_are_not_silently_dropped(shell):
    """The reply to WELCOME is empty; one that decides breaks the protocol."""
    outcome = shell.simulate("stranger", "eager")
    outcome.failed(4, "the reply to WELCOME carries decisions", "$.events")

    assert "peer refused protocol_error" in outcome.out


def test_repeated_wrong_hellos_do_not_prolong_the_wait(shell):
    """The time limit holds even if there is always another peer to reject."""
    outcome = shell.simulate("stranger", "for-ever", options=["--hello-timeout", "1"])

    assert outcome.code == 4
    assert "no scheduler connected within 1 s" in outcome.messages[0]


@pytest.mark.parametrize("name", ["markup", "control", "long", "empty", "wide"])
def test_a_scheduler_may_have_any_name(shell, name):
    """Neither markup nor control characters nor length of a name disturb the run or the terminal."""
    outcome = shell.simulate("name", name).ok()

    assert len(shell.ended_jobs()) == 4
    assert "\x1b" not in outcome.out
    assert all(len(line) < 200 for line in outcome.out.splitlines())


@pytest.mark.parametrize("kind", ["with-delimiter", "plain"])
def test_a_dealer_socket_works_too(shell, kind):
    """A client may use DEALER instead of REQ, with and without the empty delimiter."""
    outcome = shell.simulate("dealer", kind).ok()

    assert "peer ended completed" in outcome.out
    assert len(shell.ended_jobs()) == 4


def test_answering_twice_breaks_the_protocol(shell):
    """A second reply to one notice is not taken for the reply to the next one."""
    outcome = shell.simulate("dealer", "plain", "impatient")
    outcome.failed(4, "the reply answers another message")

    assert "peer refused protocol_error" in outcome.out


def test_a_second_scheduler_is_refused_and_the_first_undisturbed(shell):
    """A scheduler that connects while another is served gets REFUSED busy; the run's outputs are undisturbed."""
    small = shell.small()
    shell.run("run", "-p", "tiny", "-w", small, "--out", "alone", "--scheduler", *shell.peer("good")).ok()
    server = shell.start("serve", "-p", "tiny", "-w", small, "--out", "out", "--endpoint", "tcp://127.0.0.1:*")
    endpoint = server.until("listening at ").out.split()[2].rstrip(";")
    first = shell.spawn(*shell.peer("good", "10", endpoint=endpoint)).until("at 10.0")
    seconds = [shell.spawn(*shell.peer("good", endpoint=endpoint)) for _ in range(2)]
    ours = shell.start("schedule", "easy", "--connect", endpoint)

    for second in seconds:
        assert "peer refused busy the server is serving scheduler 'peer' already" in second.finish().out
    ours.finish().failed(4, "the server refused (busy)")
    shell.write("go", "")
    assert "peer ended completed" in first.finish().out
    assert server.finish().code == 0
    assert shell.files("alone") == shell.files("out")


def test_a_scheduler_is_served_after_another_was_rejected(shell):
    """Garbage before the HELLO of another scheduler only causes a warning."""
    server = shell.start("serve", "-p", "tiny", "-w", shell.small(), "--out", "out")
    endpoint = server.until("listening at ").out.split()[2].rstrip(";")
    for kind in ("not-json", "version-99"):
        assert "peer refused" in shell.spawn(*shell.peer("stranger", kind, endpoint=endpoint)).finish().out
    good = shell.spawn(*shell.peer("good", endpoint=endpoint)).finish()

    assert "peer ended completed" in good.out
    outcome = server.finish()
    assert outcome.code == 0
    assert "WARNING: refused a scheduler: no common protocol version" in outcome.err
    assert len(shell.ended_jobs()) == 4


@pytest.mark.parametrize("scheme", ["tcp", "ipc"])
def test_connections_without_messages_do_not_disturb_a_run(shell, scheme):
    """Connections that are opened and closed, or send what is not ZeroMQ, are not taken for the scheduler's."""
    address = "tcp://127.0.0.1:*" if scheme == "tcp" else f"ipc://{shell.temporary}/knock"
    server = shell.start("serve", "-p", "tiny", "-w", shell.small(), "--out", "out", "--endpoint", address)
    endpoint = server.until("listening at ").out.split()[2].rstrip(";")
    scheduler = shell.spawn(*shell.peer("good", "0", endpoint=endpoint)).until("at 0.0")
    for words in (b"", b"GET / HTTP/1.0\r\n\r\n", b"\xff" + b"\0" * 8 + b"\x7f"):
        if scheme == "tcp":
            host, port = endpoint.removeprefix("tcp://").split(":")
            visitor = socket.create_connection((host, int(port)))
        else:
            visitor = socket.socket(socket.AF_UNIX)
            visitor.connect(endpoint.removeprefix("ipc://"))
        visitor.sendall(words)
        visitor.close()
    if scheme == "ipc":  # checks whether the endpoint is in use, which it is
        shell.run("serve", "-w", shell.small(), "--out", "o2", "--endpoint", endpoint).failed(2, "in use")
    shell.write("go", "")

    assert "peer ended completed" in scheduler.finish().out
    assert server.finish().code == 0


def test_a_dead_scheduler_is_noticed_although_others_are_connected(shell):
    """The closed connection counts, not the number of connections."""
    server = shell.start(
        "serve", "-p", "tiny", "-w", shell.small(), "--out", "out", "--endpoint", "tcp://127.0.0.1:*",
        "--decision-timeout", "600",
    )  # fmt: skip
    endpoint = server.until("listening at ").out.split()[2].rstrip(";")
    visitors = [socket.create_connection(("127.0.0.1", int(endpoint.rpartition(":")[2]))) for _ in range(3)]
    scheduler = shell.spawn(*shell.peer("good", "60", endpoint=endpoint)).until("at 60.0")
    os.kill(scheduler.pid, signal.SIGKILL)

    server.finish().failed(4, "scheduler 'peer' disconnected after notice")
    assert shell.end_reason() == "scheduler_left"
    assert [job[0] for job in shell.ended_jobs()] == ["2"]
    for visitor in visitors:
        visitor.close()
