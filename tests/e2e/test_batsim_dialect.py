"""The batsim dialect between real processes: the same schedules, and the same handling of failing peers."""

import json
import os
import signal

import pytest

POLICIES = ["fcfs", "easy", "easy-sjbf", "filler"]
BEGINS = {
    "timestamp": 0.0,
    "type": "SIMULATION_BEGINS",
    "data": {"nb_compute_resources": 4, "config": {"redis-enabled": False}, "workloads": {"w0": "t.json"}},
}


def listen(shell, fault, *options, endpoint="{endpoint}"):
    """Run the small workload with a listening peer."""
    return shell.run(
        "run", "-p", "tiny", "-w", shell.small(), "--dialect", "batsim", "--out", "out", "--hello-timeout", "600",
        "--decision-timeout", "600", *options, "--scheduler", *shell.peer("listener", fault, endpoint=endpoint),
    )  # fmt: skip


def apart_from_names(config):
    """Return a configuration without the scheduler's and run's entries that differ between the dialects."""
    said = {"run_id", "scheduler", "batsim"}
    return {key: value for key, value in json.loads(config).items() if key not in said}


@pytest.mark.parametrize("policy", POLICIES)
def test_both_dialects_give_the_same_bytes(shell, policy):
    """Every output of `run --dialect batsim` is that of `run`, except the configuration's entries for the dialect."""
    shell.run("workload", "generate", "--jobs", "400", "--machine-size", "32", "--seed", "7", "-o", "made.swf").ok()
    files = {}
    for dialect, out in (("native", "n"), ("batsim", "b")):
        shell.run("run", "-w", "made.swf", "--scheduler", policy, "--dialect", dialect, "--out", out).ok()
        files[dialect] = shell.files(out)
        assert len(files[dialect]) == 7
    native, batsim = (files[dialect].pop("out_config.json") for dialect in ("native", "batsim"))
    summaries = [json.loads(files[dialect].pop("out_summary.json")) for dialect in ("native", "batsim")]
    assert summaries[0].pop("inputs_sha256") != summaries[1].pop("inputs_sha256")

    assert summaries[0] == summaries[1]
    assert files["native"] == files["batsim"]
    assert apart_from_names(native) == apart_from_names(batsim)
    assert json.loads(batsim)["scheduler"]["name"] == policy


def test_tcp_gives_the_same_bytes_and_takes_any_free_port(shell):
    """`--endpoint` says where the scheduler listens; the port may be any free one."""
    shell.run("workload", "generate", "--jobs", "200", "--machine-size", "32", "--seed", "7", "-o", "made.swf").ok()
    command = ("run", "-w", "made.swf", "--dialect", "batsim")
    shell.run(*command, "--out", "ipc").ok()
    shell.run(*command, "--out", "tcp", "--endpoint", "tcp://127.0.0.1:*").ok()

    assert shell.files("tcp") == shell.files("ipc")


@pytest.mark.parametrize("first", ["scheduler", "server"])
def test_two_terminals_in_both_orders(shell, free_endpoint, first):
    """The side that starts first waits; both end with 0, and the outputs are those of `run`."""
    small = shell.small()
    shell.run("run", "-p", "tiny", "-w", small, "--out", "ran", "--dialect", "batsim").ok()
    schedule = ("schedule", "easy", "--dialect", "batsim", "--bind", free_endpoint)
    serve = ("serve", "-p", "tiny", "-w", small, "--dialect", "batsim", "--connect", free_endpoint, "--out", "served")
    if first == "scheduler":
        scheduler = shell.start(*schedule).until("listening at ")
        server = shell.start(*serve)
    else:
        server = shell.start(*serve).until("connecting to ")
        scheduler = shell.start(*schedule)

    assert "outputs in served" in server.finish().ok().out
    assert "the simulation ended" in scheduler.finish().ok().out
    served, ran = shell.files("served"), shell.files("ran")
    assert apart_from_names(served.pop("out_config.json")) == apart_from_names(ran.pop("out_config.json"))
    assert served == ran


def test_an_independent_client_that_listens_is_served(shell):
    """An independent client over ipc, started by `run`, receives the end of the run, and `run` waits for it."""
    outcome = listen(shell, "good").ok()

    assert [job[0] for job in shell.ended_jobs()] == ["2", "1", "3", "4"]
    assert "peer at 500.0 NOTIFY" in outcome.out
    assert "peer ended" in outcome.out


def test_a_scheduler_that_is_late_is_waited_for(shell):
    """If nothing listens at first, the server retries within the time limit."""
    assert "peer ended" in listen(shell, "late-1.5").ok().out


def test_a_last_reply_that_never_comes_does_not_matter(shell):
    """SIMULATION_ENDS may stay unanswered."""
    assert "peer ended" in listen(shell, "farewell-none").ok().out


@pytest.mark.parametrize(
    ("fault", "fragment", "reason"),
    [
        ("before-exit-0", "ended with exit code 0", None),
        ("before-exit-7", "ended with exit code 7", None),
        ("begins-exit-0", "ended with exit code 0", None),
        ("mid-exit-0", "ended with exit code 0", "scheduler_left"),
        ("mid-exit-7", "ended with exit code 7", "scheduler_error"),
        ("mid-SIGKILL", "was killed by SIGKILL", "scheduler_killed"),
        ("mid-SIGINT", "was interrupted by SIGINT", "scheduler_interrupted"),
    ],
)
def test_a_scheduler_that_dies_ends_the_run_at_once(shell, fault, fragment, reason):
    """Its death is noticed long before the time limits."""
    outcome = listen(shell, fault)
    outcome.failed(4, fragment, "before the simulation was over", "listener.py")

    if fault.startswith("mid"):
        assert [job[0] for job in shell.ended_jobs()] == ["2", "1"]
        assert shell.end_reason() == reason


@pytest.mark.parametrize(
    ("fault", "fragments"),
    [
        ("before-hang", ["no scheduler was there within 1 s", "no program listens there"]),
        ("begins-hang", ["scheduler 'listener' did not answer the message of time 0.0 within 1 s"]),
        ("mid-hang", ["did not answer the message of time 100.0 within 1 s", "--decision-timeout"]),
    ],
)
def test_a_scheduler_that_hangs_meets_a_time_limit(shell, fault, fragments):
    """The message names the limit and what was unanswered."""
    limit = "--hello-timeout" if fault == "before-hang" else "--decision-timeout"
    listen(shell, fault, limit, "1").failed(4, *fragments)

    if fault == "mid-hang":
        assert shell.end_reason() == "scheduler_timeout"


@pytest.mark.parametrize(
    ("kind", "fragment"),
    [
        ("text", "start everything, please"),
        ("empty", "an empty frame"),
        ("null", "expected a reply"),
        ("truncated", "expected a reply"),
        ("nan", "expected a reply"),
        ("past", "dated before its notice"),
        ("no-events", "missing required field `events`"),
        ("control", "one pipistrelle: two"),
        ("parts", "its reply has several parts"),
        ("huge", "the frame is too long"),
    ],
)
def test_garbage_ends_the_run_with_one_message(shell, kind, fragment):
    """The message quotes what is not a reply; results of jobs that had ended are kept."""
    outcome = listen(shell, f"mid-garbage-{kind}").failed(4, fragment)

    assert "\x1b" not in outcome.err
    assert [job[0] for job in shell.ended_jobs()] == ["2", "1"]
    if kind != "parts":
        assert "peer ended" in outcome.out  # it received the end of the run


@pytest.mark.slow
def test_a_frame_beyond_all_limits_costs_no_memory(shell):
    """ZeroMQ closes the connection; the message says what that looks like."""
    listen(shell, "mid-garbage-enormous").failed(4, "disconnected after")


@pytest.mark.parametrize("fault", ["kind-REQ", "tcp-silent"])
def test_a_listener_that_is_not_a_rep_socket_is_named(shell, free_endpoint, fault):
    """A socket of another kind, or no ZeroMQ at all, gets a message while the server waits."""
    outcome = listen(shell, fault, "--hello-timeout", "1.5", "--endpoint", free_endpoint)

    outcome.failed(4, "no scheduler was there within 1.5 s", "no ZeroMQ socket of the kind REP")


def test_a_dead_scheduler_of_another_terminal_is_noticed(shell, free_endpoint):
    """Only the connection shows it; the scheduler may reconnect, but the run does not continue with another peer."""
    peer = shell.spawn(*shell.peer("listener", "waits-60", endpoint=free_endpoint))
    server = shell.start(
        "serve", "-p", "tiny", "-w", shell.small(), "--dialect", "batsim", "--connect", free_endpoint,
        "--decision-timeout", "600", "--out", "out",
    )  # fmt: skip
    peer.until("at 60.0")
    os.kill(peer.pid, signal.SIGKILL)
    again = shell.spawn(*shell.peer("listener", "good", endpoint=free_endpoint))

    server.finish().failed(4, "the scheduler disconnected after the message of time 60.0")
    assert shell.end_reason() == "scheduler_left"
    assert "at" not in again.out
    again.kill()


def test_an_interrupt_ends_the_run_and_the_scheduler(shell, free_endpoint):
    """Ctrl-C at the server: the scheduler's pending reply is read, it receives the end, and outputs are kept."""
    peer = shell.spawn(*shell.peer("listener", "waits-60", endpoint=free_endpoint))
    server = shell.start(
        "serve", "-p", "tiny", "-w", shell.small(), "--dialect", "batsim", "--connect", free_endpoint, "--out", "out"
    )
    peer.until("at 60.0")
    server.signal(signal.SIGINT)
    server.noticed()
    shell.write("go", "")

    assert server.finish().code == 130
    assert "peer ended" in peer.finish().out
    assert [job[0] for job in shell.ended_jobs()] == ["2"]


# -- our scheduler and a foreign server --------------------------------------------------------------------------------


def served(shell, endpoint, frames, policy="easy", *options):
    """Send frames to our scheduler and return how the peer and the scheduler ended."""
    text = "\n".join(frame if isinstance(frame, str) else json.dumps(frame) for frame in frames)
    path = shell.write("frames.txt", text)
    scheduler = shell.start("schedule", policy, "--dialect", "batsim", "--bind", endpoint, *options)
    peer = shell.spawn(*shell.peer("connector", path, endpoint=endpoint))
    return peer, scheduler


def message(now, *events):
    """Return a message with events of (type, data)."""
    return {"now": now, "events": [{"timestamp": now, "type": kind, "data": data} for kind, data in events]}


@pytest.mark.parametrize("recorded", ["batsched_easy_bf", "pybatsim_easyBackfill"])
def test_a_real_batsims_messages_get_the_recorded_decisions(shell, free_endpoint, batsim4_dir, recorded):
    """Given a real Batsim's messages, our EASY backfilling starts and rejects what the recorded one did."""
    lines = (batsim4_dir / f"wire_{recorded}.jsonl").read_text().splitlines()
    conversation = [json.loads(line) for line in lines]
    told = [text for direction, text in conversation if direction == "batsim->sched"]
    decided = [json.loads(text)["events"] for direction, text in conversation if direction == "sched->batsim"]
    peer, scheduler = served(shell, free_endpoint, told)

    out = peer.finish().out
    scheduler.finish().ok()
    ours = [json.loads(line.removeprefix("peer got "))["events"] for line in out.splitlines() if "got" in line]
    flat = [
        [sorted((e["type"], e["data"]["job_id"], e["data"].get("alloc")) for e in events) for events in replies]
        for replies in (ours, decided)
    ]
    assert flat[0] == flat[1]


def test_a_server_that_vanishes_is_noticed(shell, free_endpoint):
    """The scheduler ends with one message, exit code 4."""
    peer, scheduler = served(shell, free_endpoint, [{"now": 0.0, "events": [BEGINS]}])

    assert "done" in peer.finish().out
    scheduler.finish().failed(4, "the server disconnected before the simulation was over")


def test_a_server_that_never_comes_meets_a_time_limit(shell, free_endpoint):
    """The endpoint and the limit are named."""
    outcome = shell.run("schedule", "easy", "--dialect", "batsim", "--bind", free_endpoint, "--hello-timeout", "0.5")

    outcome.failed(4, "no server connected within 0.5 s", free_endpoint)


def test_a_second_server_is_turned_away_and_the_first_undisturbed(shell, free_endpoint):
    """Our scheduler serves one simulation; a later server is rejected at once."""
    job = {"id": "w0!1", "res": 2, "walltime": 60, "subtime": 5, "profile": "p"}
    frames = [
        {"now": 0.0, "events": [BEGINS]},
        "@wait",
        message(5.0, ("JOB_SUBMITTED", {"job_id": "w0!1", "job": job})),
        message(8.0, ("SIMULATION_ENDS", {})),
    ]
    peer, scheduler = served(shell, free_endpoint, frames)
    peer.until("waits")
    second = shell.run("serve", "--dialect", "batsim", "--connect", free_endpoint, "--out", "second")

    second.failed(4, "this scheduler serves another simulation")
    shell.write("go", "")
    assert '"alloc":"0-1"' in peer.finish().out
    outcome = scheduler.finish()
    assert outcome.code == 0
    assert "WARNING: turned a second server away" in outcome.err


@pytest.mark.parametrize(
    ("frame", "fragments"),
    [
        ("nonsense", ["cannot be read", "nonsense"]),
        ('{"type": "HELLO", "data": {"name": "lost"}}', ["cannot be read"]),
        (
            {"now": 0.0, "events": [BEGINS | {"data": BEGINS["data"] | {"config": {"redis-enabled": True}}}]},
            ["Redis", "without --enable-redis"],
        ),
        (message(5.0, ("JOB_COMPLETED", {"job_id": "w0!1"})), []),
    ],
)
def test_a_first_message_that_batsim_does_not_send_is_rejected(shell, free_endpoint, frame, fragments):
    """Garbage, our own dialect, jobs in Redis, a conversation that has already begun."""
    peer, scheduler = served(shell, free_endpoint, [frame])

    scheduler.finish().failed(4, *fragments)
    peer.kill()


def test_machines_that_fail_and_return(shell, free_endpoint):
    """Jobs start on the available machines, and a question for a waiting time is answered."""

    def submitted(name, size):
        job = {"id": name, "res": size, "walltime": 60, "subtime": 5, "profile": "p"}
        return ("JOB_SUBMITTED", {"job_id": name, "job": job})

    gone = ("NOTIFY", {"type": "event_machine_unavailable", "resources": "0-1", "timestamp": 1.0})
    back = ("NOTIFY", {"type": "event_machine_available", "resources": "0-1", "timestamp": 7.0})
    unheard = ("NOTIFY", {"type": "unheard_of", "resources": 3})
    question = {"requests": {"estimate_waiting_time": {"job_id": "x!1", "job": {"id": "x!1", "res": 4}}}}
    peer, scheduler = served(
        shell,
        free_endpoint,
        [
            {"now": 0.0, "events": [BEGINS]},
            message(1.0, gone, unheard, ("RESOURCE_STATE_CHANGED", {"resources": "3", "state": "1"})),
            message(5.0, submitted("w0!1", 1), submitted("w0!2", 3)),
            message(7.0, back, ("QUERY", question)),
            message(8.0, ("SIMULATION_ENDS", {})),
        ],
    )  # fmt: skip

    lines = [json.loads(line.removeprefix("peer got ")) for line in peer.finish().out.splitlines() if "got" in line]
    scheduler.finish().ok()
    assert lines[1]["events"] == []
    assert [event["data"]["alloc"] for event in lines[2]["events"]] == ["2"]
    answer, start = lines[3]["events"]
    assert answer["data"] == {"estimate_waiting_time": {"job_id": "x!1", "estimated_waiting_time": 60.0}}
    assert start["data"]["alloc"] == "0-1 3"


# -- the command line -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "fragment"),
    [
        (["run", "--dialect", "batsim", "--in-process"], "--in-process uses no protocol"),
        (["run", "--dialect", "batch"], "'batch' is not one of 'native', 'batsim'"),
        (["serve", "--dialect", "batsim"], "needs --connect"),
        (["serve", "--connect", "tcp://127.0.0.1:5"], "--connect needs --dialect batsim"),
        (
            ["serve", "--dialect", "batsim", "--connect", "tcp://127.0.0.1:5", "--endpoint", "tcp://127.0.0.1:6"],
            "omit --endpoint",
        ),
        (["serve", "--dialect", "batsim", "--connect", "tcp://node7:5"], "reached from other machines, or is on one"),
        (["serve", "--dialect", "batsim", "--connect", "tcp://*:5"], "cannot connect to *"),
        (["serve", "--dialect", "batsim", "--connect", "tcp://127.0.0.1:*"], "cannot connect to *"),
        (["serve", "--dialect", "batsim", "--connect", "localhost:5"], "this is no endpoint"),
        (["schedule", "easy"], "--connect"),
        (["schedule", "easy", "--bind", "tcp://127.0.0.1:5"], "--bind needs --dialect batsim"),
        (["schedule", "easy", "--dialect", "batsim"], "needs --bind"),
        (["schedule", "easy", "--dialect", "batsim", "--connect", "tcp://127.0.0.1:5"], "not --connect"),
        (["schedule", "easy", "--dialect", "batsim", "--bind", "tcp://0.0.0.0:5"], "reached from other machines"),
        (["run", "--dialect", "batsim", "--endpoint", "tcp://0.0.0.0:5"], "reached from other machines"),
    ],
)
def test_wrong_combinations_are_refused(shell, words, fragment):
    """Each ends with exit code 2 and says what to do instead, without waiting."""
    shell.run(*words).failed(2, fragment)


def test_a_star_is_loopback_unless_others_are_allowed(shell, free_endpoint):
    """`tcp://*:PORT` is Batsim's usual spelling: a message says how it is interpreted."""
    port = free_endpoint.rpartition(":")[2]
    command = ("schedule", "easy", "--dialect", "batsim", "--bind", f"tcp://*:{port}", "--hello-timeout", "0.3")
    narrow = shell.run(*command)
    wide = shell.run(*command, "--insecure")

    assert f"listening at tcp://127.0.0.1:{port};" in narrow.out
    assert "listening at 127.0.0.1 instead of *" in narrow.out
    assert f"listening at tcp://0.0.0.0:{port};" in wide.out


def test_a_bound_endpoint_in_use_is_refused(shell, free_endpoint):
    """The second scheduler at a port gets an error message."""
    first = shell.start("schedule", "easy", "--dialect", "batsim", "--bind", free_endpoint).until("listening at ")
    shell.run("schedule", "easy", "--dialect", "batsim", "--bind", free_endpoint).failed(2, "the endpoint is in use")
    first.kill()
