"""`pipistrelle-batsim` with a short scheduler that listens as Batsim's schedulers do, and without one."""

import csv
import json
import signal
import sys

import pytest

from pipistrelle.cli.run import batsim

CLUSTER = """<?xml version='1.0'?>
<platform version="4.1"><zone id="z" routing="None">
<host id="master_host" speed="1Gf"/><host id="h0" speed="1Gf"/><host id="h1" speed="1Gf"/>
<host id="h2" speed="1Gf"/><host id="h3" speed="1Gf"/>
</zone></platform>
"""
#: id, submit time, walltime, size, profile; FCFS runs them 0-50, 5-105, 105-165 (too long), 105-165
JOBS = (("1", 0, 100, 1, "d50"), ("2", 5, 200, 3, "d100"), ("3", 10, 60, 2, "d100"), ("4", 10, 90, 1, "d60"))
PROFILES = {f"d{n}": {"type": "delay", "delay": n} for n in (50, 60, 100)}

#: listens, keeps the notices, and does what its second argument names
PEER = """
import json, sys, time
import zmq

endpoint, way, *rest = sys.argv[1:]
socket = zmq.Context.instance().socket(zmq.REP)
socket.bind(endpoint)
replies = [text for side, text in map(json.loads, open(rest[0])) if side == "sched->batsim"] if way == "replay" else []
waiting, free, seen = [], set(), open("seen.jsonl", "w")
while True:
    frame = socket.recv()
    seen.write(frame.decode() + "\\n")
    seen.flush()
    notice = json.loads(frame)
    now, decisions, kinds = notice["now"], [], [event["type"] for event in notice["events"]]
    for event in notice["events"]:
        data = event["data"]
        if event["type"] == "SIMULATION_BEGINS":
            free = set(range(data["nb_compute_resources"]))
            size = len(free)
        elif event["type"] == "JOB_SUBMITTED":
            waiting.append(data["job"])
        elif event["type"] == "JOB_COMPLETED":
            for part in data["alloc"].split():
                low, _, high = part.partition("-")
                free.update(range(int(low), int(high or low) + 1))
    if way == "dies" and waiting:
        sys.exit(7)
    if way == "hangs" and waiting:
        time.sleep(3600)
    while waiting and (way == "illegal" or waiting[0]["res"] <= len(free) or waiting[0]["res"] > size):
        job = waiting.pop(0)
        kind, data = "EXECUTE_JOB", {"job_id": job["id"]}
        if way == "illegal":
            data["alloc"] = "0-99"
        elif job["res"] > size:
            kind = "REJECT_JOB"
        else:
            units = sorted(free)[:job["res"]]
            free -= set(units)
            data["alloc"] = " ".join(map(str, units))
        decisions.append({"timestamp": now, "type": kind, "data": data})
    reply = replies.pop(0) if replies else json.dumps({"now": now, "events": decisions})
    socket.send_string(reply)
    if "SIMULATION_ENDS" in kinds:
        break
socket.close()
"""


@pytest.fixture
def files(shell):
    """Write platform, workload and scheduler into the test's folder, and return the options that name the first two."""
    shell.write("cluster.xml", CLUSTER)
    write_jobs(shell, "jobs.json")
    shell.write("peer.py", PEER)
    return ["-p", "cluster.xml", "-w", "jobs.json"]


def write_jobs(shell, name, jobs=JOBS, profiles=PROFILES, **more):
    """Write a workload for four hosts."""
    keys = ("id", "subtime", "walltime", "res", "profile")
    rows = [dict(zip(keys, job, strict=True)) for job in jobs]
    shell.write(name, json.dumps({"nb_res": 4, "jobs": rows, "profiles": profiles, **more}))


def simulate(shell, *options, way="fcfs", rest=(), patience=("--hello-timeout", "600", "--decision-timeout", "600")):
    """Run the command with the scheduler; return how the command ended and the scheduler's exit code."""
    endpoint = "ipc://batsim.sock"  # relative: a Unix socket's path has at most 107 bytes
    peer = shell.spawn(sys.executable, "peer.py", endpoint, way, *rest)
    outcome = shell.batsim("-s", endpoint, *patience, *options)
    if outcome.code == 0 or way == "dies":
        return outcome, peer.finish().code
    peer.kill()  # if the run failed, the peer may never have been notified
    return outcome, None


def rows_of(shell, prefix="out"):
    """Return the lines of the jobs' file by job."""
    with (shell.folder / f"{prefix}_jobs.csv").open(newline="") as file:
        return {f"{row['workload_name']}!{row['job_id']}": row for row in csv.DictReader(file)}


def begins_of(shell):
    """Return the data of the first message to the scheduler."""
    return json.loads((shell.folder / "seen.jsonl").read_text().splitlines()[0])["events"][0]["data"]


# -- a whole run ------------------------------------------------------------------------------------------------------


def test_a_scheduler_that_listens_is_driven(shell, files):
    """The run follows the scheduler's decisions; the outputs have Batsim's names and are in the current folder."""
    outcome, code = simulate(shell, *files)

    assert code == 0
    assert "jobs on cluster (4 units), a Batsim scheduler" in outcome.ok().out
    assert "outputs in out_*.csv" in outcome.out
    assert {name: (row["starting_time"], row["final_state"]) for name, row in rows_of(shell).items()} == {
        "w0!1": ("0.000000", "COMPLETED_SUCCESSFULLY"),
        "w0!2": ("5.000000", "COMPLETED_SUCCESSFULLY"),
        "w0!3": ("105.000000", "COMPLETED_WALLTIME_REACHED"),
        "w0!4": ("105.000000", "COMPLETED_SUCCESSFULLY"),
    }
    written = {path.name for path in shell.folder.glob("out*")}
    assert written == {"out_jobs.csv", "out_schedule.csv", "out_machine_states.csv"}


def test_outputs_are_written_below_the_prefix(shell, files):
    """The outputs are written where the prefix says, and the folder is created; tracing can be disabled."""
    simulate(
        shell, *files, "-e", "a/b/run1", "--disable-machine-state-tracing", "--disable-schedule-tracing"
    )[0].ok()  # fmt: skip

    assert sorted(path.name for path in (shell.folder / "a" / "b").iterdir()) == ["run1_jobs.csv", "run1_schedule.csv"]


def test_several_workloads(shell, files):
    """Each workload has its own prefix of ids, and its own profiles."""
    write_jobs(shell, "more.json", [("1", 5, 90, 1, "x")], {"x": {"type": "delay", "delay": 7}})

    simulate(shell, *files, "-w", "more.json")[0].ok()

    rows = rows_of(shell)
    assert set(rows) == {"w0!1", "w0!2", "w0!3", "w0!4", "w1!1"}
    assert rows["w1!1"]["execution_time"] == "7.000000"
    assert set(begins_of(shell)["profiles"]) == set(begins_of(shell)["workloads"]) == {"w0", "w1"}


def test_the_first_message_has_the_options(shell, files):
    """The first message's config has the options that change the conversation, and the scheduler's text unchanged."""
    shell.write("sched.cfg", '{"depth": 3}\n')

    outcome, _ = simulate(
        shell, *files, "--forward-profiles-on-submission", "--acknowledge-dynamic-jobs", "--sched-cfg-file", "sched.cfg"
    )  # fmt: skip

    outcome.ok()
    config = begins_of(shell)["config"]
    assert config["profiles-forwarded-on-submission"] is True
    assert config["dynamic-jobs-acknowledged"] is True
    assert config["dynamic-jobs-enabled"] is False
    assert config["sched-config"] == '{"depth": 3}\n'
    assert '"profile":{"type":"delay"' in (shell.folder / "seen.jsonl").read_text().replace(" ", "")


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ([], ["h0", "h1", "h2", "h3"]),
        (["--mmax", "2"], ["h0", "h1"]),
        (["--mmax", "0"], ["h0", "h1", "h2", "h3"]),
        (["--mmax-workload"], ["h0", "h1", "h2"]),
        (["--mmax-workload", "--mmax", "2"], ["h0", "h1"]),
        (["-m", "h1", "-r", "master_host:compute_node"], ["h0", "h2", "h3", "master_host"]),
        (["-r", "h0,h2:storage"], ["h1", "h3"]),
    ],
)
def test_limits_and_roles_choose_the_compute_hosts(shell, files, options, names):
    """Limits and roles choose the compute hosts, which are numbered from 0 by name."""
    write_jobs(shell, "jobs.json", [("1", 0, 90, 1, "d50")], nb_res=3)

    simulate(shell, *files, *options)[0].ok()

    begins = begins_of(shell)
    assert [host["name"] for host in begins["compute_resources"]] == names
    assert [host["id"] for host in begins["compute_resources"]] == list(range(len(names)))
    assert (
        begins["nb_storage_resources"] == len(begins["storage_resources"]) == (2 if "h0,h2:storage" in options else 0)
    )


def test_a_job_larger_than_the_machine_is_for_the_scheduler_to_reject(shell, files):
    """Such a job is submitted, as Batsim does."""
    write_jobs(shell, "jobs.json", [*JOBS, ("5", 20, 90, 9, "d50")])

    simulate(shell, *files)[0].ok()

    assert rows_of(shell)["w0!5"]["final_state"] == "REJECTED"


def test_external_events_reach_the_scheduler(shell, files):
    """Known events become NOTIFY; unknown ones only when they are forwarded, otherwise the file is rejected."""
    shell.write(
        "events.txt",
        '{"timestamp": 200, "type": "machine_unavailable", "resources": "1-2"}\n'
        '{"timestamp": 190, "type": "lunch", "menu": ["soup"]}\n',
    )
    refused, _ = simulate(shell, *files, "--events", "events.txt")
    refused.failed(2, "events.txt, line 2", "unknown type 'lunch'")

    simulate(shell, *files, "--events", "events.txt", "--forward-unknown-events")[0].ok()

    seen = [json.loads(line) for line in (shell.folder / "seen.jsonl").read_text().splitlines()]
    told = [(e["timestamp"], e["data"]) for n in seen for e in n["events"] if e["type"] == "NOTIFY"]
    assert begins_of(shell)["config"]["forward-unknown-events"] is True
    assert [data["type"] for _, data in told if data["type"] != "no_more_static_job_to_submit"] == [
        "lunch",
        "event_machine_unavailable",
        "no_more_external_event_to_occur",
    ]
    assert next(time for time, data in told if data["type"] == "event_machine_unavailable") == 200
    assert next(data for _, data in told if data["type"] == "lunch")["menu"] == ["soup"]


@pytest.mark.parametrize(
    ("recording", "options"),
    [
        ("batsched_easy_bf", []),
        ("batsched_easy_bf_fast", []),
        ("batsched_conservative_bf", []),
        ("batsched_filler", []),
        ("batsched_killer", []),
        ("batsched_submitter", ["--forward-profiles-on-submission", "--enable-dynamic-jobs"]),
        ("pybatsim_easyBackfill", []),
        ("pybatsim_fillerSched", []),
    ],
)
def test_recorded_schedulers_lead_to_the_recorded_outputs(shell, files, batsim4_dir, recording, options):
    """With the replies of a real batsched or pybatsim, the jobs' file is Batsim's, value by value."""
    outcome, code = simulate(
        shell, "-p", batsim4_dir / "nonet4.xml", "-w", batsim4_dir / "tiny.json", *options,
        way="replay", rest=[batsim4_dir / f"wire_{recording}.jsonl"],
    )  # fmt: skip

    outcome.ok()
    assert code == 0
    with (batsim4_dir / f"tiny.{recording}.jobs.csv").open(newline="") as file:
        theirs = {f"{row['workload_name']}!{row['job_id']}": row for row in csv.DictReader(file)}
    ours = rows_of(shell)
    assert {name: {k: value(v) for k, v in row.items()} for name, row in ours.items()} == {
        name: {k: value(v) for k, v in row.items()} for name, row in theirs.items()
    }


def value(text):
    """Return a number with Batsim's six decimals, or the text."""
    try:
        return f"{float(text):.6f}"
    except ValueError:
        return text


# -- without a scheduler ----------------------------------------------------------------------------------------------


def test_without_a_scheduler_all_jobs_start_at_once(shell, files):
    """Every job starts at time 0 on the first hosts, whatever its submit time and whichever jobs run there."""
    outcome = shell.batsim(*files, "--no-sched", "-e", "alone").ok()

    assert "no scheduler" in outcome.out
    rows = rows_of(shell, "alone")
    assert {row["starting_time"] for row in rows.values()} == {"0.000000"}
    assert [rows[f"w0!{n}"]["allocated_resources"] for n in range(1, 5)] == ["0", "0-2", "0-1", "0"]
    assert [rows[f"w0!{n}"]["finish_time"] for n in range(1, 5)] == [
        "50.000000",
        "100.000000",
        "60.000000",
        "60.000000",
    ]


def test_the_workload_may_be_changed_first(shell, files):
    """With the steps of `run`; each of several workloads is changed."""
    write_jobs(shell, "more.json")
    options = (*files, "-w", "more.json", "--no-sched")
    shell.batsim(*options, "--transform", "filter --size 2: then filter --first 1").ok()

    assert list(rows_of(shell)) == ["w0!2", "w1!2"]
    shell.batsim(*options, "--transform", "filter -o x.json").failed(2, "a step of a run writes no file")


def test_progress_lines_without_a_terminal(shell, files, monkeypatch, capsys):
    """As with `run`; not if only errors are printed."""
    monkeypatch.chdir(shell.folder)
    monkeypatch.setattr("pipistrelle.cli.terminal.heartbeat._LONG_S", 0.0)
    for words, lines in (([], ["day 0 00:00: 0/4 jobs, 0 running, queue 0, 0 s so far"]), (["-q"], [])):
        batsim.command.main([*files, "--no-sched", *words], standalone_mode=False)
        assert capsys.readouterr().err.splitlines() == lines


def test_without_a_scheduler_a_job_must_fit(shell, files):
    """No scheduler could reject it."""
    write_jobs(shell, "jobs.json", [*JOBS, ("5", 20, 90, 9, "d50")])

    shell.batsim(*files, "--no-sched").failed(2, "job w0!5", "larger than the machine", "at most 4 hosts")


def test_energy_has_files_of_its_own(shell, project_root):
    """With -E the hosts' energy is measured, and two more files are written."""
    folder = project_root / "docs" / "examples" / "batsim"

    shell.batsim(
        "-p", folder / "cluster.xml", "-w", folder / "jobs.json", "-E", "--no-sched", "-e", "on/out"
    ).ok()  # fmt: skip

    written = {path.name.removeprefix("out_") for path in (shell.folder / "on").iterdir()}
    assert written == {"jobs.csv", "schedule.csv", "machine_states.csv", "consumed_energy.csv", "pstate_changes.csv"}
    rows = rows_of(shell, "on/out")
    assert all(float(row["consumed_energy"]) > 0 for row in rows.values())


def test_verbosity_levels(shell, files):
    """quiet prints nothing; network-only logs each message of both sides; debugging also shows the summary."""
    assert simulate(shell, *files, "-q")[0].ok().out == ""

    network, _ = simulate(shell, *files, "-v", "network-only")
    debug, _ = simulate(shell, *files, "--verbosity=debug")

    assert network.code == debug.code == 0
    assert network.out == ""
    assert "makespan" in debug.out
    for text in (network.err, debug.err):
        lines = text.splitlines()
        assert sum('sends {"now"' in line for line in lines) == sum('received {"now"' in line for line in lines) + 1
        assert "SIMULATION_BEGINS" in lines[0]
        assert any("EXECUTE_JOB" in line for line in lines)


# -- what can go wrong while it runs ----------------------------------------------------------------------------------


def test_an_illegal_decision_ends_the_run(shell, files):
    """Batsim's protocol has no message for it; what was written is kept."""
    outcome, _ = simulate(shell, *files, way="illegal")

    outcome.failed(3, "illegal decision", "w0!1")
    assert rows_of(shell) == {}


def test_a_scheduler_that_dies(shell, files):
    """The run ends with the usual code."""
    outcome, code = simulate(shell, *files, way="dies")

    assert code == 7
    outcome.failed(4, "scheduler")


def test_a_scheduler_that_is_silent(shell, files):
    """The server waits for the given time limit."""
    outcome, _ = simulate(shell, *files, "--decision-timeout", "3", way="hangs")

    outcome.failed(4, "within 3 s")


def test_an_interrupt_keeps_the_outputs(shell, files, wait_until):
    """Ctrl-C while the scheduler computes its reply ends the run with the usual code."""
    peer = shell.spawn(sys.executable, "peer.py", "ipc://batsim.sock", "hangs")
    command = shell.spawn(*shell.batsim_command, *files, "-s", "ipc://batsim.sock")
    seen = shell.folder / "seen.jsonl"
    wait_until(lambda: seen.is_file() and "JOB_SUBMITTED" in seen.read_text())

    command.signal(signal.SIGINT)

    command.finish().failed(130, "interrupted")
    assert (shell.folder / "out_schedule.csv").is_file()
    peer.kill()


def test_a_server_waits_a_limited_time_for_a_listener(shell, files):
    """The scheduler may start later than the server, but not too late."""
    shell.batsim(*files, "-s", "ipc://nobody.sock", "--hello-timeout", "0.5").failed(4, "ipc://nobody.sock")

    assert not list(shell.folder.glob("out*"))


def test_registration_that_is_never_finished(shell, files):
    """A scheduler that may register jobs must say when it is done; otherwise the run stalls with a message."""
    outcome, _ = simulate(shell, *files, "--enable-dynamic-jobs")

    outcome.failed(5, "may still register jobs", "registration_finished")
    assert len(rows_of(shell)) == 4
