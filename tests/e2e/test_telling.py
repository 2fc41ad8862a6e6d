"""What a run prints: figures as JSON or nothing, progress lines, rows on disk, folder names."""

import json
from types import SimpleNamespace

import pytest

from pipistrelle.cli.terminal import heartbeat
from pipistrelle.cli.terminal.heartbeat import Heartbeat
from pipistrelle.runs.execution import run as runs
from pipistrelle.runs.execution.run import RunOptions, run_in_process
from pipistrelle.server.errors import OutputFailed

RUN = ("run", "easy", "-w", "seven-jobs")


def test_figures_as_json(shell):
    """One object with folder, scheduler, summary and wall-clock figures; nothing else is printed."""
    told = json.loads(shell.run(*RUN, "-o", "out", "--json").ok().out)
    summary = json.loads((shell.folder / "out" / "out_summary.json").read_text())
    digests = [summary.pop(key) for key in ("inputs_sha256", "results_sha256", "sha256")]

    assert all(digests)
    assert {key: told[key] for key in summary} == summary
    assert (told["out"], told["scheduler"]) == ("out", "easy")
    assert told["timings"].keys() == {"round_trips", "wall_time", "waiting_for_scheduler"}


def test_a_server_says_where_it_listens_beside_its_json(shell):
    """The address is on standard error, so standard output is only JSON; -q omits the address."""
    for options, out, err in ((["--json"], "{", "listening at"), (["-q"], "", "")):
        server = shell.start("serve", "-w", "seven-jobs", "-o", "out", *options)
        shell.run("schedule", "easy", "--connect", "out", "-q").ok()
        done = server.finish()

        assert done.code == 0
        assert done.out[:1] == out
        assert done.err[: len("listening at")] == err


def test_quiet_is_quiet(shell):
    """-q prints nothing but errors, and conflicts with --json."""
    assert shell.run(*RUN, "-q").ok().out == ""
    shell.write("file", "x")
    shell.run(*RUN, "-q", "-o", "file/below").failed(6, "file/below")
    shell.run(*RUN, "-q", "--json").failed(2, "--json and --quiet exclude each other")


@pytest.mark.parametrize("words", [["--progress"], ["--progress", "--json"], []])
def test_no_control_codes_where_no_terminal_is(shell, words):
    """Neither in results nor in messages."""
    done = shell.run(*RUN, "--in-process", *words)

    assert done.code == 0
    assert "\x1b" not in done.out + done.err
    assert done.err == "" or done.err.startswith("day 0 07:00: 7/7 jobs, 0 running, queue 0, ")
    assert bool(done.err) == ("--progress" in words)


def test_a_sign_of_life_now_and_then(monkeypatch, capsys):
    """Progress lines appear at intervals; the last one only with --progress."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(heartbeat.time, "monotonic", lambda: clock.now)
    cluster = SimpleNamespace(waiting=dict.fromkeys(range(1200)), running=dict.fromkeys(range(30)))
    engine = SimpleNamespace(now=90_000.0, cluster=cluster)
    simulation = SimpleNamespace(engine=engine, metrics=SimpleNamespace(submitted_jobs=5230))
    setup = SimpleNamespace(jobs=28_489, epoch=None)
    dated = SimpleNamespace(jobs=28_489, epoch=843_488_000.0)
    for asked, epoch in ((False, setup), (True, dated)):
        clock.now = 0.0
        beat = Heartbeat(epoch, asked=asked)
        for now in (0.0, 9.0, 59.0, 61.0, 62.0):
            clock.now = now
            beat(simulation)
        beat.ends()

    text = ": 4,000/28,489 jobs, 30 running, queue 1,200,"
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"day 1 01:00{text} 61 s so far"] + [f"1996-09-24 15:13{text} {at} s so far" for at in (59, 62)]


def test_rows_reach_the_disk_while_the_run_goes_on(tmp_path, monkeypatch):
    """The clock affects only when rows are written; a full disk then ends the run."""
    calm, hasty = tmp_path / "calm", tmp_path / "hasty"
    sizes = {calm: set(), hasty: set()}
    beats = []

    def look(folder):
        return lambda pause: sizes[folder].add((folder / "out_decisions.csv").stat().st_size)

    run_in_process("seven-jobs", options=RunOptions(out=calm, between=look(calm)))
    monkeypatch.setattr(runs, "FLUSH_S", 0.0)
    run_in_process("seven-jobs", options=RunOptions(out=hasty, between=look(hasty)))

    assert len(sizes[calm]) == 1
    assert len(sizes[hasty]) > 3
    assert {p.name: p.read_bytes() for p in calm.iterdir()} == {p.name: p.read_bytes() for p in hasty.iterdir()}
    runs.run(runs.RunSpec(workload=("seven-jobs",)), runs.RunOptions(out=tmp_path / "c", beat=beats.append))
    assert len(beats) > 3
    full = tmp_path / "full"
    full.mkdir()
    (full / "out_jobs.csv").symlink_to("/dev/full")
    with pytest.raises(OutputFailed, match=r"out_jobs\.csv"):
        run_in_process("seven-jobs", options=RunOptions(out=full))


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ((), "seven-jobs-easy-1"),
        (("--order", "sjf"), "seven-jobs-easy-sjf-1"),
        (("--backfill", "none", "--placement", "contiguous,fit=best"), "seven-jobs-easy-none-contiguous,fit=best-1"),
        (("--failures", "lanl-20", "--seed", "7"), "seven-jobs-easy-lanl-20-seed7-1"),
        (("--failures", "exponential,mtbf=9d", "--repair", "1h"), "seven-jobs-easy-exponential-seed1-1"),
        (("--outages", "dir/lost ones.csv"), "seven-jobs-easy-lost-ones-1"),
    ],
)
def test_a_folders_name_tells_the_variant(shell, options, name):
    """It has workload, scheduler, replaced parts, failures and their seed."""
    (shell.folder / "dir").mkdir()
    shell.write("dir/lost ones.csv", "node,down,up,cause\n1,5,10,fan\n")
    out = shell.run(*RUN, "--in-process", *options).out

    assert f"outputs in pipistrelle-out/{name}\n" in out
    assert (shell.folder / "pipistrelle-out" / name / "out_summary.json").exists()


def test_a_scheduler_that_comes_first_says_that_it_waits(shell):
    """It says so at once, and connects when the server starts."""
    scheduler = shell.start("schedule", "easy", "--connect", "out").until("waiting for a server at out\n")
    shell.run("serve", "-w", "seven-jobs", "-o", "out").ok()

    assert "the simulation ended: completed" in scheduler.finish().ok().out
