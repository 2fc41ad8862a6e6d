"""Runs in Batsim's dialect with snapshots that are resumed: the scheduler is replayed all messages."""

import json
import signal

import pytest

HOST = (
    '<host id="h{}" speed="1Gf, 0.5Gf" core="2"><prop id="wattage_per_state" value="95:120:190, 90:110:150"/>'
    '<prop id="wattage_off" value="10"/></host>'
)
ENDPOINT = "ipc://batsim.sock"  # relative: a Unix socket's path has at most 107 bytes
PATIENCE = ("--hello-timeout", "60", "--decision-timeout", "60")


@pytest.fixture
def files(shell):
    """Write a platform, a workload with jobs of all kinds and an events' file; return the options that name them."""
    hosts = "".join(HOST.format(number) for number in range(8))
    shell.write(
        "cluster.xml",
        '<?xml version=\'1.0\'?>\n<platform version="4.1"><zone id="z" routing="None">'
        f'<host id="master_host" speed="1Gf"/>{hosts}</zone></platform>\n',
    )
    profiles = {
        "wait": {"type": "delay", "delay": 40},
        "work": {"type": "parallel_homogeneous", "cpu": 3e10, "com": 0},
        "both": {"type": "composed", "repeat": 3, "seq": ["wait", "work"]},
    }
    jobs = [
        {
            "id": str(number),
            "subtime": 12 * number + 1 / (number + 1),
            "res": (1, 2, 3, 8)[number * number % 4 if number % 5 else 3],
            "walltime": (60, 100, 400)[number % 3],
            "profile": list(profiles)[number // 2 % 3],
        }
        for number in range(120)
    ]
    shell.write("jobs.json", json.dumps({"nb_res": 8, "jobs": jobs, "profiles": profiles}))
    events = [
        {"type": "machine_unavailable", "resources": "2-3", "timestamp": 300},
        {"type": "machine_available", "resources": "2-3", "timestamp": 900},
    ]
    shell.write("events.txt", "".join(f"{json.dumps(event)}\n" for event in events))
    return ["-p", "cluster.xml", "-w", "jobs.json", "--events", "events.txt", "--energy", "-q"]


def outputs(shell, prefix="out"):
    """Return the outputs without wall-clock figures and snapshots."""
    found = {path.name: path.read_bytes() for path in shell.folder.glob(f"{prefix}_*.csv")}
    name = f"{prefix.rpartition('/')[2]}_schedule.csv"
    columns, values = found[name].decode().splitlines()
    row = dict(zip(columns.split(","), values.split(","), strict=True))
    found[name] = {**row, "scheduling_time": "", "simulation_time": ""}
    return found


def snapshots(shell, prefix="out"):
    """Return the names of a run's snapshots."""
    return sorted(path.name for path in shell.folder.glob(f"{prefix}_snapshot-*.gz"))


def decide(shell):
    """Start a scheduler that listens."""
    return shell.start("schedule", "easy", "--dialect", "batsim", "--bind", ENDPOINT, "--quiet")


def test_a_run_of_pipistrelle_batsim_resumes_to_the_same_bytes(shell, files):
    """From each of its snapshots, given by its name or by the prefix; the outputs have the same bytes."""
    scheduler = decide(shell)
    shell.batsim(*files, "-e", "sub/whole", "-s", ENDPOINT, *PATIENCE).ok()
    assert scheduler.finish().code == 0
    whole = outputs(shell, "sub/whole")
    assert len(whole) == 5
    scheduler = decide(shell)
    keep = ("--snapshot-every", "sim:500s", "--keep-snapshots", "3", "--leave-snapshots")
    shell.batsim(*files, "-e", "sub/whole", "-s", ENDPOINT, *PATIENCE, *keep).ok()
    scheduler.finish()
    assert outputs(shell, "sub/whole") == whole
    kept = snapshots(shell, "sub/whole")
    assert len(kept) == 3
    shell.run("resume", "sub/whole", "--quiet", "--out", "x").failed(2, "--out", "can only be continued in place")
    shell.run("resume", "sub/whole", "--quiet", "--scheduler", "fcfs", "--out", "x").failed(2, "in Batsim's dialect")
    shell.run("resume", "sub/whole", "--endpoint", ENDPOINT).failed(2, "--connect, not --endpoint")
    for path in (*(f"sub/{name}" for name in kept), "sub/whole"):
        scheduler = decide(shell)
        stays = () if path == "sub/whole" else ("--leave-snapshots",)
        outcome = shell.run("resume", path, "--connect", ENDPOINT, *PATIENCE, *stays)
        assert outcome.code == 0, outcome
        assert "outputs in sub/whole_*.csv" in outcome.out
        scheduler.finish()
        assert outputs(shell, "sub/whole") == whole
    assert not list((shell.folder / "sub").glob("*whole_s[ne]*"))


@pytest.mark.parametrize("more", [(), ("--no-sched",), ("--enable-dynamic-jobs", "--acknowledge-dynamic-jobs")])
def test_an_interrupted_run_goes_on(shell, files, wait_until, more):
    """SIGTERM ends it with a last snapshot, with a scheduler and without."""
    alone = "--no-sched" in more
    calls = ("-s", ENDPOINT, *PATIENCE)
    words = [*files, *more, *calls]
    if alone:  # there is no scheduler to notify of events
        words = [*files[:4], "--energy", "-q", *more, "--enable-compute-sharing"]
    scheduler = None if alone else decide(shell)
    shell.batsim(*words).ok()
    whole = outputs(shell)
    scheduler = None if alone else decide(shell)
    kept = ("--snapshot-every", "sim:50s", "--leave-snapshots")
    run = shell.spawn(*shell.batsim_command, *words, *kept, "-v", "network-only")
    wait_until(lambda: len(snapshots(shell)) == 2)
    run.signal(signal.SIGTERM)
    run.finish()
    if scheduler is not None:
        scheduler.finish()
    scheduler = None if alone else decide(shell)
    outcome = shell.run("resume", "out", *(() if alone else ("--connect", ENDPOINT)), "--quiet")
    assert outcome.code == 0, outcome
    assert outputs(shell) == whole
    assert snapshots(shell) == []


def test_a_scheduler_that_decides_differently_is_rejected(shell, files):
    """Its replies are compared; the message says where they first differ."""
    scheduler = decide(shell)
    shell.batsim(*files, "-s", ENDPOINT, *PATIENCE, "--snapshot-every", "sim:500s", "--leave-snapshots").ok()
    scheduler.finish()
    other = shell.start("schedule", "fcfs", "--dialect", "batsim", "--bind", ENDPOINT, "--quiet")
    shell.run("resume", "out", "--connect", ENDPOINT, "--quiet").failed(2, "decides differently than before")
    other.finish()
    shell.run("resume", "out", "--connect", ENDPOINT, "--hello-timeout", "0.2").failed(4, "no scheduler was there")


def test_run_and_serve_resume_in_the_batsim_dialect(shell):
    """Their folders can be resumed like those of the native dialect."""
    run = ("--dialect", "batsim", "--until", "36h", "--quiet")
    keep = ("--snapshot-every", "sim:12h", "--leave-snapshots")
    shell.run("run", *run, *keep, "--out", "out").ok()
    whole = shell.files("out")
    names = sorted(name for name in whole if "snapshot" in name)
    shell.run("resume", f"out/{names[0]}", "--out", "again", "--quiet").ok()
    scheduler = decide(shell)
    shell.run("serve", *run, *keep, "--out", "served", "--connect", ENDPOINT).ok()
    scheduler.finish()
    shell.run("resume", "served").failed(2, "--connect ADDRESS")
    scheduler = decide(shell)
    shell.run("resume", "served", "--out", "third", "--quiet", "--connect", ENDPOINT).ok()
    scheduler.finish()
    for name in (name for name in whole if name.endswith(".csv")):
        assert shell.files("again")[name] == whole[name], name
        assert shell.files("third")[name] == shell.files("served")[name], name


def test_pybatsim_is_replayed_all_messages(shell, files, clients):
    """An unmodified client of Batsim is also brought back to its state."""

    def play(program, *words):
        client = shell.spawn(*clients.pybatsim("easyBackfill", ENDPOINT))
        outcome = program(*words)
        assert outcome.code == 0, (outcome, client.out, client.err)
        client.finish()
        return outputs(shell)

    keep = ("--snapshot-every", "sim:500s", "--leave-snapshots")
    whole = play(shell.batsim, *files[:4], "-q", "-s", ENDPOINT, *PATIENCE, *keep)
    assert play(shell.run, "resume", snapshots(shell)[0], "--connect", ENDPOINT, "--quiet") == whole
