"""``pipistrelle run FILE`` repeats a run from its description, byte for byte or with changes."""

import json
import shutil

import pytest

PLATFORM = """<?xml version='1.0'?>
<platform version="4.1"><zone id="z" routing="Full"><host id="master_host" speed="1Gf"/>
<host id="a" speed="1Gf"/><host id="b" speed="1Gf"/><host id="c" speed="1Gf"/><host id="d" speed="1Gf"/>
</zone></platform>"""
ROWS = tuple((number, 40 * number, 300 + 7 * number, 1 + number % 3, 900) for number in range(1, 40))
CFG = "BACKFILLPOLICY FIRSTFIT\nQUEUETIMEWEIGHT 1\n"
FAILURES = ("--failures", "exponential,mtbf=2h", "--repair", "10min")
CASES = {
    "failures": ["-p", "tiny", *FAILURES, "--checkpoint", "60"],
    "maui": ["-p", "tiny", "--scheduler", "maui", "--config", "maui.cfg"],
    "transforms": [
        "-p",
        "tiny",
        "--transform",
        "filter --size 1:2",
        "--transform",
        "scale --load 0.7 then copy --times 2",
    ],
    "batsim": ["-p", "tiny", "--dialect", "batsim", "--scheduler", "easy-sjbf"],
    "horizon": ["-p", "tiny", "--until", "1h", "--poll", "30s", *FAILURES],
    "horizon-batsim": ["-p", "tiny", "--dialect", "batsim", "--scheduler", "easy-sjbf", "--until", "1h"],
    "parts": [
        "-p",
        "hosts.xml",
        "--backfill",
        "depth",
        "--backfill-depth",
        "2",
        "--no-strict-ordering",
        "--poll",
        "30s",
    ],
}


def outputs(shell, folder):
    """Return {name: content} of a run's outputs."""
    return {path.name: path.read_bytes() for path in sorted((shell.folder / folder).iterdir())}


@pytest.fixture
def inputs(shell):
    """Return the shell with a log, hosts and a maui.cfg in its folder."""
    shell.swf("w.swf", ROWS)
    shell.write("hosts.xml", PLATFORM)
    shell.write("maui.cfg", CFG)
    return shell


@pytest.mark.parametrize("case", CASES)
def test_a_run_is_repeated_byte_for_byte(inputs, case):
    """Over sockets, and in process where possible."""
    inputs.run("run", "-w", "w.swf", *CASES[case], "--out", "first").ok()
    inputs.run("run", "first/out_command.json", "--out", "sockets").ok()

    first = outputs(inputs, "first")
    assert outputs(inputs, "sockets") == first
    assert b"COMPLETED_SUCCESSFULLY" in first["out_jobs.csv"]
    if "batsim" not in case:
        inputs.run("run", "first/out_command.json", "--in-process", "--out", "process").ok()
        assert outputs(inputs, "process") == first
    assert "valid" in inputs.run("validate", "first/out_command.json").ok().out


def test_a_run_with_a_program_is_repeated(inputs):
    """The description contains the program's arguments."""
    inputs.run("run", "-p", "tiny", "-w", "w.swf", "--out", "first", "--scheduler", *inputs.peer("good")).ok()
    inputs.run("run", "first/out_command.json", "--out", "again").ok()

    assert outputs(inputs, "again") == outputs(inputs, "first")


def test_a_run_written_by_hand(inputs):
    """A TOML file equals the run with the same options."""
    failures = 'failures = "exponential,mtbf=2h"\nrepair = "5min"\n'
    inputs.write("run.toml", f'workload = "w.swf"\nplatform = "tiny"\nscheduler = "fcfs"\n{failures}')
    inputs.run("run", "run.toml", "--in-process", "--out", "file").ok()
    words = (
        "-w",
        "w.swf",
        "-p",
        "tiny",
        "--scheduler",
        "fcfs",
        "--failures",
        "exponential,mtbf=2h",
        "--repair",
        "5min",
    )
    inputs.run("run", *words, "--in-process", "--out", "words").ok()

    assert outputs(inputs, "file") == outputs(inputs, "words")
    told = inputs.run("validate", "run.toml").ok().out
    assert "jobs       39\n" in told
    assert "scheduler  fcfs\n" in told


def test_a_run_in_batsims_way_from_a_file(inputs):
    """Batsim's options have their own table; without a scheduler all jobs start at once."""
    jobs = {"nb_res": 4, "jobs": [{"id": "1", "subtime": 9, "res": 1, "walltime": 9, "profile": "d"}]}
    inputs.write("jobs.json", json.dumps(jobs | {"profiles": {"d": {"type": "delay", "delay": 5}}}))
    inputs.write(
        "run.toml",
        'platform = "hosts.xml"\nworkload = ["jobs.json", "jobs.json"]\ndialect = "batsim"\n[batsim]\nno-sched=true\n',
    )
    inputs.run("run", "run.toml", "--out", "file").ok()
    inputs.batsim("-p", "hosts.xml", "-w", "jobs.json", "-w", "jobs.json", "--no-sched", "-e", "b/out").ok()

    assert outputs(inputs, "file")["out_jobs.csv"].count(b"COMPLETED_SUCCESSFULLY,0.000000") == 2
    assert outputs(inputs, "file")["out_jobs.csv"] == outputs(inputs, "b")["out_jobs.csv"]


def test_options_beside_a_file_replace_what_it_says(inputs):
    """An option replaces one value; another scheduler drops the old one's parts and options."""
    inputs.run("run", "-w", "w.swf", *CASES["maui"], "--poll", "30s", "--in-process", "--out", "first").ok()
    inputs.run("run", "first/out_command.json", "--scheduler", "fcfs", "--in-process", "--out", "other").ok()
    inputs.run("run", "-w", "w.swf", "-p", "tiny", "--scheduler", "fcfs", "--in-process", "--out", "plain").ok()
    assert outputs(inputs, "other") == outputs(inputs, "plain")

    inputs.run("run", "first/out_command.json", "--poll", "1min", "--in-process", "--out", "slow").ok()
    now, before = (json.loads(outputs(inputs, name)["out_command.json"]) for name in ("slow", "first"))
    assert now == before | {"poll": "1min"}


def test_what_serve_wrote_needs_a_scheduler(inputs):
    """The description names no scheduler; the error says what to add; it can be served again."""
    for out, words in (("one", ["-p", "tiny", "-w", "w.swf"]), ("two", ["one/out_command.json"])):
        server = inputs.start("serve", *words, "--out", out)
        inputs.run("schedule", "easy", "--connect", out).ok()
        server.finish().ok()
    assert outputs(inputs, "one") == outputs(inputs, "two")

    outcome = inputs.run("run", "one/out_command.json", "--out", "three")
    outcome.failed(2, "names no scheduler", "--scheduler NAME")
    inputs.run("run", "one/out_command.json", "--scheduler", "easy", "--out", "three").ok()
    assert outputs(inputs, "three")["out_jobs.csv"] == outputs(inputs, "one")["out_jobs.csv"]


def test_what_is_wrong_with_a_file(inputs):
    """Each error is one message before anything is written."""
    inputs.run("run", "-p", "tiny", "-w", "w.swf", "--in-process", "--out", "first").ok()
    inputs.write("bad.toml", "shceduler = 'fcfs'\n")
    (inputs.folder / "elsewhere").mkdir()
    shutil.copy(inputs.folder / "first" / "out_command.json", inputs.folder / "elsewhere")
    inputs.run("run", "esy").failed(2, "no run description 'esy'", "Did you mean 'easy'?")
    inputs.run("run", "bad.toml", "--out", "x").failed(2, "bad.toml: unknown key 'shceduler'", "'scheduler'")
    inputs.run("run", "demo").failed(2, "'demo' is a workload: use -w demo.")
    inputs.run("run", "titan").failed(2, "'titan' is a platform: use -p titan.")
    inputs.run("run", "nosuch").failed(2, "Known schedulers: conservative, easy")
    inputs.run("validate", "bad.toml").failed(2, "bad.toml: unknown key 'shceduler'. Did you mean 'scheduler'?")
    inputs.write("eazy.toml", 'scheduler = "eazy"\nworkload = "w.swf"\n')
    inputs.run("validate", "eazy.toml").failed(2, "eazy.toml: scheduler: there is no scheduler 'eazy'", "'easy'")
    inputs.run("run", "first/out_command.json", "--out", "first").failed(2, "also read by this command")
    inputs.run("run", "--transform", "scael --load 1", "--out", "x").failed(2, "no step 'scael'", "'scale'")
    inputs.run("run", "--transform", "scale --load 1 -o f.swf", "--out", "x").failed(2, "writes no file")
    inputs.run("run", "--transform", "filter demo --first 2", "--out", "x").failed(2, "omit 'demo'")
    inputs.run("run", "--transform", "scale", "--out", "x").failed(2, "name what to scale")
    inputs.run("run", "--transform", "scale --load x", "--out", "x").failed(2, "'pipistrelle workload scale --help'")
    inputs.run("run", "--transform", "scale 'half", "--out", "x").failed(2, "cannot be split into words")

    inputs.swf("w.swf", ROWS[:3])
    inputs.run("run", "first/out_command.json", "--out", "x").failed(
        2, "w.swf: an input has changed", "another content"
    )
    (inputs.folder / "w.swf").unlink()
    inputs.run("run", "elsewhere/out_command.json", "--out", "x").failed(2, "w.swf", "no such file", "current folder")
    assert not (inputs.folder / "x").exists()


@pytest.mark.parametrize(("command", "more"), [("run", []), ("run", ["--in-process"]), ("study steps", [])])
def test_an_error_about_the_policy_names_the_file_and_the_key(shell, command, more):
    """Unless the wrong value comes from the command line."""
    shell.write("rd.toml", 'scheduler = "eazy"\n')

    shell.run(*command.split(), "rd.toml", *more).failed(2, "rd.toml: scheduler: there is no scheduler 'eazy'")
    other = shell.run(*command.split(), "rd.toml", *more, "--scheduler", "easi").failed(2, "no scheduler 'easi'")
    assert "rd.toml" not in other.err
