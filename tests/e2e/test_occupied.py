"""Results of a finished run are replaced only by the same command or with --overwrite."""

import json
import shutil
from pathlib import Path

import pytest

from pipistrelle.runs.execution.run import RunOptions, run_in_process

RUN = ("run", "-p", "tiny", "-w", "small.swf", "--in-process", "--quiet", "--out", "out")
OTHER = "out: the folder has the results of another run: found another scheduler."
BATSIM = Path(__file__).parents[2] / "docs" / "examples" / "batsim"
STUDY = '[run]\nworkload = "small.swf"\nplatform = "tiny"\n[axes]\nscheduler = ["fcfs", "{}"]\n'


@pytest.fixture
def finished(shell):
    """Return a shell with the finished run of EASY in `out`."""
    shell.small()
    shell.run(*RUN).ok()
    return shell


def all_files(shell):
    """Return the names and bytes of all files in `out`."""
    return {path.name: path.read_bytes() for path in (shell.folder / "out").iterdir()}


def test_the_same_command_may_run_again(finished):
    """Also over a socket, from its description, and after its input has changed."""
    before = all_files(finished)
    for words in (RUN, [word for word in RUN if word != "--in-process"]):
        finished.run(*words).ok()
        assert all_files(finished) == before
    finished.write("again.json", before["out_command.json"])
    finished.run("run", "again.json", "--quiet", "--out", "out").ok()
    assert all_files(finished) == before
    finished.swf("small.swf", [(1, 0, 5, 1, 9)])
    finished.run(*RUN).ok()
    assert len(finished.ended_jobs()) == 1


def test_another_run_is_refused_unless_it_may_overwrite(finished):
    """A refused run changes nothing and starts no scheduler; --overwrite replaces the results."""
    before = all_files(finished)
    for words in ((*RUN, "--scheduler", "fcfs"), (*RUN[:5], "--out", "out", "--scheduler", "fcfs")):
        finished.run(*words).failed(2, OTHER, "--overwrite")
        assert all_files(finished) == before
    finished.run(*RUN, "--scheduler", "fcfs", "--overwrite").ok()
    assert json.loads(all_files(finished)["out_command.json"])["scheduler"] == "fcfs"


def test_serve_refuses_too(finished):
    """`serve` refuses before it listens."""
    words = ("serve", "-p", "tiny", "-w", "small.swf", "--out", "out")
    finished.run(*words, "--hello-timeout", "600").failed(2, OTHER, "--overwrite")
    finished.run(*words, "--hello-timeout", "0.1", "--overwrite").failed(4, "no scheduler connected")


def test_an_unfinished_run_may_be_replaced(finished):
    """A killed run has no summary."""
    (finished.folder / "out" / "out_summary.json").unlink()
    finished.run(*RUN, "--scheduler", "fcfs").ok()


def test_a_run_without_a_description_is_another(finished):
    """Such as a run from Python, whose workload may be an object."""
    run_in_process(policy="fcfs", options=RunOptions(out=finished.folder / "made"))
    finished.run(*RUN[:-1], "made").failed(
        2, "made: the folder has the results of a run, but no out_command.json that describes it"
    )


def test_resume_refuses_too(finished):
    """`resume` writes into another run's folder only with --overwrite."""
    finished.run(*RUN[:-1], "kept", "--snapshot-every", "sim:1", "--leave-snapshots").ok()
    words = ("resume", "kept", "--quiet", "--scheduler", "fcfs", "--out", "out")
    before = all_files(finished)
    finished.run(*words).failed(2, "out: the folder has the results of another run", "--overwrite")
    assert all_files(finished) == before
    finished.run(*words, "--overwrite").ok()
    finished.run(*words).ok()


def test_overwrite_needs_a_folder(finished):
    """--overwrite without --out is an error, not ignored."""
    finished.run(*RUN[:-2], "--overwrite").failed(2, "--overwrite needs --out")
    finished.run("resume", "out", "--overwrite").failed(2, "--overwrite needs --out")


@pytest.mark.slow
def test_a_study_replaces_another_only_if_it_may(finished):
    """The other study stays unchanged, or is replaced together with its journal."""
    for name in ("easy", "conservative"):
        finished.write(f"{name}.toml", STUDY.format(name))
    words = ("--out", "study", "--jobs", "1")
    finished.run("study", "run", "easy.toml", *words).ok()
    finished.run("study", "run", "easy.toml", *words, "--overwrite").ok()
    before = (finished.folder / "study" / "study.json").read_bytes()
    other = ("study", "run", "conservative.toml", *words)
    finished.run(*other).failed(2, "the folder has the results of another study: found other axes", "--overwrite")
    assert (finished.folder / "study" / "study.json").read_bytes() == before
    finished.run(*other, "--overwrite").ok()
    assert (finished.folder / "study" / "study.json").read_bytes() != before
    (finished.folder / "study" / "study.json").unlink()
    finished.run(*other).failed(2, "the folder has journal.jsonl, but no study.json", "--overwrite")


def test_batsims_files_do_not_replace_those_of_a_run(finished):
    """There is no --overwrite: another prefix is needed. The files of an earlier `pipistrelle-batsim` are replaced."""
    shutil.copytree(BATSIM, finished.folder / "b")
    before = all_files(finished)
    words = ("-p", "b/cluster.xml", "-w", "b/jobs.json", "--no-sched", "-q", "-e")
    finished.batsim(*words, "out/out").failed(2, "out: the folder has the results of a run", "--export")
    finished.batsim(*words, "out/out", "--snapshot-every", "sim:1").failed(
        2, "out: the folder has the results of a run"
    )
    assert all_files(finished) == before
    for _ in range(2):
        finished.batsim(*words, "out/mine").ok()
    assert all_files(finished).keys() > before.keys()
