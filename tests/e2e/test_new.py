"""`pipistrelle new scheduler`: each skeleton decides as `fcfs`, if its language is installed."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.test_shared_nodes import make, rows
from tests.e2e.test_shared_nodes import run as run_shared

ROWS = ((1, 0, 100, 3, 100), (2, 1, 50, 4, 50), (3, 2, 60, 1, 90), (4, 3, 100, 1, 200), (5, 4, 30, 2, 60))
TOOLS = {"python": None, "js": "node", "go": "go", "rust": "rustc", "cpp": "g++"}
DEBIANS_RUST = "/usr/bin/rustc"


@pytest.mark.parametrize(
    "language", [pytest.param(one, marks=pytest.mark.slow if one in {"cpp", "rust"} else []) for one in TOOLS]
)
def test_a_skeleton_decides_as_fcfs_does(shell, language):
    """Built and run by the printed commands, it takes the same decisions over ipc and tcp."""
    tool = TOOLS[language]
    if tool is not None and shutil.which(tool) is None:
        pytest.skip(f"no {tool} on this machine")
    shell.swf("w.swf", ROWS)
    written, *lines = shell.run("new", "scheduler", "mine", "--language", language).ok().out.splitlines()
    assert re.fullmatch(r"Wrote mine\.\w+\. Run it with:", written)
    text = next(shell.folder.glob("mine.*")).read_text()
    assert all(line.strip() in text for line in lines)
    assert "'pipistrelle help write-your-scheduler'" in text
    *builds, run = (shlex.split(line) for line in lines)
    for words in builds:
        subprocess.run(words, cwd=shell.folder, env=shell.environment | {"GOCACHE": str(shell.folder)}, check=True)
    assert run[:2] == ["pipistrelle", "run"]
    words = [sys.executable if word == "python" else word for word in run[2:]]
    common = ("-p", "tiny", "-w", "w.swf")
    shell.run("run", *common, "--out", "ours", "--scheduler", "fcfs", "--in-process").ok()
    for out, listening in (("ipc", ()), ("tcp", ("--endpoint", "tcp://127.0.0.1:*"))):
        shell.run("run", *common, "--out", out, *listening, *words).ok()
        for name in ("out_jobs.csv", "out_machine_states.csv"):
            assert (shell.folder / out / name).read_bytes() == (shell.folder / "ours" / name).read_bytes()
    # the same program on nodes that jobs share
    make(shell, jobs=60)
    run_shared(shell, "ours-shared", "--in-process", policy="fcfs").ok()
    shared = ("-p", "shared.toml", "-w", "jobs.json", "--out", "shared", "--quiet")
    shell.run("run", *shared, *words).ok()
    starts = [[(row["job_id"], row["starting_time"]) for row in rows(shell, out)] for out in ("shared", "ours-shared")]
    assert starts[0] == starts[1]


@pytest.mark.skipif(not Path(DEBIANS_RUST).is_file(), reason=f"no {DEBIANS_RUST} on this machine")
def test_debians_rust_will_do(shell):
    """The skeleton compiles with the Rust version of Debian 12."""
    _, build, _ = shell.run("new", "scheduler", "--language", "rust").ok().out.splitlines()
    words = shlex.split(build)
    assert words[0] == "rustc"

    subprocess.run([DEBIANS_RUST, *words[1:]], cwd=shell.folder, check=True)


def test_nothing_is_written_over(shell):
    """An existing file is not replaced."""
    shell.write("scheduler.py", "mine")
    refused = shell.run("new", "scheduler")

    assert (refused.code, refused.out) == (2, "")
    assert refused.err == "pipistrelle: scheduler.py: the file exists. Choose another NAME or --out.\n"
    assert "node other.js" in shell.run("new", "scheduler", "--language", "js", "-o", "other.js").ok().out
    assert "node third.js" in shell.run("new", "scheduler", "third.js", "--language", "js").ok().out
    assert (shell.folder / "scheduler.py").read_text() == "mine"
