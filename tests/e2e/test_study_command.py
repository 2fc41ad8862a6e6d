"""``pipistrelle study run``: killed, interrupted, out of disk space, and continued."""

import re
import signal
import sys
from importlib.util import find_spec

import pytest

from pipistrelle.studies import run

STUDY = """
engine = "reference"

[run]
platform = "demo"
failures = "exponential,mtbf=300d"
checkpoint = "daly"
dump = "1min"

[[run.transform]]
step = "filter"
first = 60

[axes]
scheduler = ["fcfs", "easy"]
reliability-factor = [1, 4]
repair = ["1h", "5h"]

[replicas]
count = 2
"""
#: what lets a command write no file longer than its first argument says
LIMITED = (
    "import os, resource, sys; most = int(sys.argv[1]); resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)); "
    "os.execv(sys.executable, [sys.executable, '-m', 'pipistrelle.cli', *sys.argv[2:]])"
)


@pytest.fixture(autouse=True)
def _from_nothing(shell):
    """Let all processes start as a user's do, with their signals."""
    shell.forks = None


@pytest.fixture
def study(shell):
    """Return the words of the command, and a function that counts the journal's lines."""
    shell.write("study.toml", STUDY)
    journal = shell.folder / "out" / "journal.jsonl"

    def lines():
        return journal.read_bytes().count(b"\n") if journal.exists() else 0

    return ("study", "run", "study.toml", "--out", "out", "--jobs", "2"), lines


@pytest.fixture(scope="module")
def peaceful(tmp_path_factory):
    """Return the folder of an undisturbed study with one worker."""
    folder = tmp_path_factory.mktemp("peace")
    file = folder / "study.toml"
    file.write_text(STUDY)
    run(file, folder, jobs=1)
    return folder


@pytest.fixture(scope="module")
def undisturbed(peaceful):
    """Return the bytes of the results of an undisturbed study."""
    return (peaceful / "trials.parquet").read_bytes()


@pytest.mark.slow
def test_killing_the_coordinator_loses_nothing(shell, wait_until, study, peaceful):
    """Killed at several moments, its workers end, too; the results equal an undisturbed study's.

    Only the lines of the journal are in the order in which trials ended.
    """
    words, lines = study
    for count in (1, 4, 9):
        process = shell.start(*words)
        wait_until(lambda count=count: lines() >= count)
        process.signal(signal.SIGKILL)
        process.finish()
        wait_until(lambda: not shell.survivors())

    assert 9 <= lines() < 16
    outcome = shell.run(*words).ok()
    assert "16 trials in out/trials.parquet" in outcome.out
    for name in ("trials.parquet", "study.json"):
        assert (shell.folder / "out" / name).read_bytes() == (peaceful / name).read_bytes()
    mine, others = (
        sorted((one / "journal.jsonl").read_bytes().splitlines()) for one in (shell.folder / "out", peaceful)
    )
    assert mine == others


def test_ctrl_c_ends_the_workers_too(shell, wait_until, study, undisturbed):
    """Exit code 130; finished trials are in the table, and the same command continues."""
    words, lines = study
    process = shell.start(*words)
    wait_until(lambda: lines() >= 2)
    process.signal(signal.SIGINT)
    process.finish().failed(130, "interrupted")
    assert shell.survivors() == []
    assert (shell.folder / "out" / "trials.parquet").exists()

    shell.run(*words).ok()
    assert (shell.folder / "out" / "trials.parquet").read_bytes() == undisturbed


def test_a_full_disk_is_one_message(shell, study, undisturbed):
    """Wherever it occurs; the same command continues when there is space."""
    words, lines = study
    for most, file in ((6000, "journal.jsonl"), (len(undisturbed) - 1, "trials.parquet")):
        outcome = shell.spawn(sys.executable, "-c", LIMITED, str(most), *words).finish()
        outcome.failed(6, f"out/{file}: cannot be written (File too large)", "repeat the command to continue")
        assert shell.survivors() == []
    assert lines() == 16

    shell.run(*words).ok()
    assert (shell.folder / "out" / "trials.parquet").read_bytes() == undisturbed


#: what stands for Slurm: it runs a copy of the script at once, in a session of its own
SBATCH = """#!/bin/sh
script="$PWD/job.$$"
cp "$1" "$script"
setsid sh "$script" >/dev/null 2>&1 &
echo "Submitted batch job $!"
"""
SCANCEL = """#!/bin/sh
for job; do kill -- "-$job" 2>/dev/null; done
exit 0
"""


@pytest.mark.slow
def test_jobs_of_slurm_are_workers(shell, wait_until, study, undisturbed):
    """Slurm jobs are requested as the options say, run the study, and end with it."""
    if find_spec("dask_jobqueue") is None:  # not imported here: it would end this process at SIGINT
        pytest.skip("dask-jobqueue is absent")
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        shell.write(name, text).chmod(0o755)
    shell.environment["PATH"] = f"{shell.folder}:{shell.environment['PATH']}"
    words, _ = study
    asked = ("--slurm", "1", "--slurm-option", "queue=batch", "--slurm-option", "interface=lo")
    shell.run(*words[:-2], *asked).ok()
    assert (shell.folder / "out" / "trials.parquet").read_bytes() == undisturbed

    wait_until(lambda: not shell.survivors())
    shell.run(*words[:-2], "--slurm", "1", "--slurm-option", "quene=batch", "--out", "other").failed(
        2, "an option of Slurm's jobs is malformed", "Did you mean 'queue'?"
    )
    shell.tidy()


#: as it was asked for
PRINTED = """
[run]
workload = "demo"
platform = "demo"
failures = "exponential,mtbf=60d"
checkpoint = "daly"
dump = "1min"
[axes]
scheduler = ["fcfs", "easy"]
reliability-factor = [1, 4, 16]
repair = ["1h", "1d"]
[replicas]
count = 5            # or: precision = "2%", at-most = 1000
"""


@pytest.mark.slow
def test_a_study_of_the_demo_is_read_by_other_programs(shell):
    """The study runs unchanged; pandas, polars and DuckDB read its table."""
    duckdb, pandas, polars = (pytest.importorskip(name) for name in ("duckdb", "pandas", "polars"))
    shell.write("study.toml", PRINTED)
    outcome = shell.run("study", "run", "study.toml", "--out", "study")
    assert (outcome.code, outcome.out) == (0, "60 trials in study/trials.parquet\n")
    assert "20 trials stalled and have no metrics" in outcome.err
    path = shell.folder / "study" / "trials.parquet"

    frame = pandas.read_parquet(path)
    columns = ["policy", "reliability_factor", "repair", "replica", "seed", "engine", "mean_wait", "utilisation"]
    assert set(columns) <= set(frame.columns)
    assert len(frame) == 60
    assert list(frame["replica"]) == [0, 1, 2, 3, 4] * 12
    assert frame.groupby("replica")["seed"].nunique().tolist() == [1] * 5
    assert set(frame["engine"]) == {"kernel"}
    rows = frame[frame["reason"] == "completed"]
    assert len(rows) == 40
    assert rows[columns].notna().all().all()
    easy = polars.read_parquet(path).filter(policy="easy", reliability_factor=1, repair="1h")["mean_wait"]
    fcfs = duckdb.read_parquet(str(path)).filter("policy = 'fcfs' AND reliability_factor = 1 AND repair = '1h'")
    fcfs = [wait for (wait,) in fcfs.project("mean_wait").fetchall()]
    assert len(easy) == len(fcfs) == 5
    assert all(one < other / 10 for one, other in zip(sorted(easy), sorted(fcfs), strict=True))


def test_a_study_says_how_far_it_is(shell, study):
    """Progress lines without a terminal; a dry run prints the number of trials and their duration."""
    words, _ = study
    outcome = shell.run(*words, "--dry-run").ok()
    assert "trials   16, 2 of each point\n" in outcome.out
    assert " on 2 workers\n" in outcome.out
    assert re.search(r"^start    [0-9].* in each worker$", outcome.out, re.MULTILINE)
    assert not (shell.folder / "out").exists()


def test_what_is_wrong_is_one_message(shell, study):
    """Also if the folder has the results of another study."""
    words, _ = study
    shell.write("wrong.toml", STUDY.replace("scheduler =", "shceduler ="))
    outcome = shell.run("study", "run", "wrong.toml", "--out", "out")
    outcome.failed(2, "wrong.toml: axes.shceduler: a run has no option 'shceduler'. Did you mean 'scheduler'?")
    assert not (shell.folder / "out").exists()

    shell.run(*words, "--dask", "tcp://127.0.0.1:1").failed(2, "one of --jobs, --dask and --slurm")
