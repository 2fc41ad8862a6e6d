"""Only one process writes to a folder; a killed one leaves no lock; files of different runs are not mixed."""

import json
import os
import shutil

import pytest

from pipistrelle.runs.execution.run import RunOptions, run_in_process
from pipistrelle.server.outputs.folder import check_outputs

JOBS = {
    "nb_res": 1,
    "jobs": [{"id": 1, "subtime": 0, "res": 1, "profile": "d"}],
    "profiles": {"d": {"type": "delay", "delay": 5}},
}


def listing(folder):
    """Return the names and bytes of what is in a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def serving(shell):
    """Return a server that waits for its scheduler, with the folder `out`."""
    server = shell.start("serve", "-p", "tiny", "-w", shell.small(), "--out", "out", "--hello-timeout", "600")
    return server.until("waiting for a scheduler")


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["run", "-p", "tiny", "--in-process", "--out", "out"], "--out"),
        (["run", "-p", "tiny", "-o", "./out/"], "--out"),
        (["serve", "-p", "tiny", "--out", "out"], "--out"),
        (["-p", "hosts.xml", "-e", "out/out", "--no-sched"], "--export"),
    ],
)
def test_a_second_writer_is_refused_by_name(shell, serving, words, option):
    """The message says who writes there and what to do; the first run is not disturbed."""
    shell.write(
        "hosts.xml",
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
        '<zone id="z" routing="Full"><host id="master_host" speed="1Gf"/><host id="a" speed="1Gf"/></zone></platform>',
    )
    shell.write("jobs.json", json.dumps(JOBS))
    before = listing(shell.folder / "out")
    batsim = option == "--export"

    (shell.batsim if batsim else shell.run)(*words, "-w", "jobs.json" if batsim else shell.small()).failed(
        6, "out: another run is writing outputs here", f"process {serving.pid} on ", "serve -p tiny", f"with {option}"
    )

    assert listing(shell.folder / "out") == before
    shell.run("schedule", "easy", "--connect", "out").ok()
    serving.finish().ok()
    assert len(shell.ended_jobs()) == 4
    assert not (shell.folder / "out" / ".out.lock").exists()


def test_other_prefixes_and_folders_are_free(shell, serving):
    """A lock covers one folder or prefix only."""
    shell.run("run", "-p", "tiny", "-w", shell.small(), "--in-process", "--out", "other").ok()
    serving.signal(2)
    assert serving.finish().code == 130
    assert listing(shell.folder / "out") == {}


def test_a_killed_run_leaves_no_lock(shell, serving):
    """The next run starts at once."""
    serving.kill()
    shell.tidy()
    assert (shell.folder / "out" / ".out.lock").exists()

    shell.run("run", "-p", "tiny", "-w", shell.small(), "--in-process", "--out", "out").ok()
    assert not (shell.folder / "out" / ".out.lock").exists()


def test_a_half_finished_folder_has_nothing_of_an_earlier_run(tmp_path):
    """Until the run ends, the folder has the new configuration and rows, but no summary."""
    folder = tmp_path / "out"
    run_in_process("seven-jobs", "fcfs", options=RunOptions(out=folder))
    (folder / "out_attempts.csv").write_text("of a run with failures\n")
    seen = []

    def look(pause):
        seen.append({path.name for path in folder.iterdir()})
        with pytest.raises(Exception, match="another run is writing outputs here"):
            run_in_process("seven-jobs", "fcfs", options=RunOptions(out=folder))

    run_in_process("seven-jobs", "easy", options=RunOptions(out=folder, between=look))

    rows = {"out_jobs.csv", "out_machine_states.csv", "out_decisions.csv", "out_labels.csv"}
    assert all(names == {".out.lock", "out_config.json", *rows} for names in seen)
    assert listing(folder).keys() == {"out_config.json", "out_schedule.csv", "out_summary.json", *rows}
    assert len(seen) > 2
    check_outputs(folder)


@pytest.mark.parametrize("name", ["out_jobs.csv", "out_config.json", "out_decisions.csv", "out_summary.json"])
def test_parts_of_two_runs_are_refused(shell, name):
    """`explain` names the file of another run, which may be the summary."""
    for scheduler, jobs in (("fcfs", 301), ("easy-sjbf", 300)):
        words = ("run", "-w", "demo", "--transform", f"filter --first {jobs}", "--in-process")
        shell.run(*words, "--scheduler", scheduler, "--out", scheduler).ok()
    shutil.copy(shell.folder / "fcfs" / name, shell.folder / "easy-sjbf" / name)

    told = shell.run("explain", "job", "easy-sjbf", "w0!200").failed(
        2, "easy-sjbf: the outputs in this folder are not all of one run", "changed after out_summary.json was written"
    )
    assert (name in told.err) or name == "out_summary.json"
    shell.run("explain", "job", "fcfs", "w0!200").ok()


def test_the_digests_are_those_of_the_files(tmp_path, monkeypatch):
    """Equal runs have equal digests in any folder; a removed file is no error."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        run_in_process("seven-jobs", options=RunOptions(out=tmp_path / name))
    told = json.loads((tmp_path / "a" / "out_summary.json").read_text())["sha256"]

    assert listing(tmp_path / "a") == listing(tmp_path / "b")
    names = ("config.json", "decisions.csv", "jobs.csv", "labels.csv", "machine_states.csv")
    assert sorted(told) == [f"out_{name}" for name in names]
    os.remove(tmp_path / "a" / "out_decisions.csv")
    check_outputs(tmp_path / "a")
