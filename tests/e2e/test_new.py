"""`pipistrelle new scheduler`: each skeleton decides as `fcfs`, if its language is installed."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

ROWS = ((1, 0, 100, 3, 100), (2, 1, 50, 4, 50), (3, 2, 60, 1, 90), (4, 3, 100, 1, 200), (5, 4, 30, 2, 60))
TOOLS = {"python": None, "js": "node", "go": "go", "rust": "rustc", "cpp": "g++"}
DEBIANS_RUST = "/usr/bin/rustc"
LANGUAGES = [pytest.param(one, marks=pytest.mark.slow if one in {"cpp", "rust"} else []) for one in TOOLS]
#: nodes of several kinds, which a job fills by weight and number
SHARED = """
name = "shared"
[[pools]]
name = "std"
nodes = 5
weight = 3
resources = { cores = 16, memory = "64 GiB", nvme = 4 }
[[pools]]
name = "thin"
nodes = 3
resources = { cores = 6, memory = "16 GiB" }
[[pools]]
name = "gpu"
nodes = 2
weight = 5
resources = { cores = 16, memory = "128 GiB", gpu = { count = 4, model = "a100" } }
[[pools]]
name = "old"
nodes = 2
weight = 0
resources = { cores = 8, memory = "128 GiB", gpu = { count = 2, model = "v100" } }
[licenses]
matlab = 3
"""


def request(random):
    """Return what some job requests: of one node or several, with cores, memory, GPUs, licences, or whole nodes."""
    some = random.randint
    return random.choice(
        [
            {"tasks": some(1, 8), "memory_per_core": some(500, 6000)},
            {"tasks": 1, "gpus": 1, "gpu_share": random.choice([250, 500, 1000])},
            {"nodes": 2, "most_nodes": 2, "tasks": some(2, 14), "memory_per_node": 9000},
            {"nodes": some(1, 3), "exclusive": True},
            {"tasks": 2, "licenses": {"matlab": some(1, 3)}},
            {"nodes": some(1, 4), "tasks_per_node": some(1, 5), "cores_per_task": random.choice([500, 1000, 2000])},
            {"tasks": some(1, 20), "tasks_per_node": some(2, 5), "most_nodes": 12},
            {"tasks": some(1, 6), "gpus_per_task": 1, "memory_per_gpu": some(100, 40000)},
            {"nodes": 1, "gpus_per_node": some(1, 4), "gpu_models": random.choice([["a100"], ["v100", "a100"]])},
            {"nodes": 1, "cores_per_task": 1500, "others": {"nvme": some(1, 4)}},
            {"nodes": 1, "tasks": 4, "exclusive": True, "gpus": some(1, 4)},
            {"tasks": 6, "cores_per_task": 2000, "memory_per_core": 4096, "gpus": 3},
            {"nodes": 2, "most_nodes": 4, "tasks": some(4, 20), "gpus": some(1, 6), "memory_per_gpu": 1000},
        ]
    )


def shared_jobs(count):
    """Return a workload of jobs with such requests."""
    random, submit = Random(7), 0  # noqa: S311
    rows, profiles = [], {}
    for number in range(count):
        submit += random.randint(1, 400)
        run = random.randint(60, 4000)
        profiles[str(run)] = {"type": "delay", "delay": run}
        row = {"id": number, "subtime": submit, "walltime": 2 * run, "res": 1, "profile": str(run)}
        rows.append(row | {"request": request(random)})
    return json.dumps({"nb_res": 12, "jobs": rows, "profiles": profiles})


@pytest.fixture
def built(shell):
    """Return a function that writes a skeleton and builds it by the printed commands, and returns how to run it."""

    def written(language):
        tool = TOOLS[language]
        if tool is not None and shutil.which(tool) is None:
            pytest.skip(f"no {tool} on this machine")
        first, *lines = shell.run("new", "scheduler", "mine", "--language", language).ok().out.splitlines()
        assert re.fullmatch(r"Wrote mine\.\w+\. Run it with:", first)
        text = next(shell.folder.glob("mine.*")).read_text()
        assert all(line.strip() in text for line in lines)
        assert "'pipistrelle help write-your-scheduler'" in text
        *builds, run = (shlex.split(line) for line in lines)
        for words in builds:
            subprocess.run(words, cwd=shell.folder, env=shell.environment | {"GOCACHE": str(shell.folder)}, check=True)
        assert run[:4] == ["pipistrelle", "run", "--strict", "--scheduler"]
        return [sys.executable if word == "python" else word for word in run[4:]]

    return written


def assert_equal_runs(shell, words, inputs):
    """Assert that a scheduler takes the same decisions as `fcfs`, over ipc and tcp."""
    shell.run("run", *inputs, "--out", "ours", "--overwrite", "--scheduler", "fcfs", "--in-process", "--quiet").ok()
    for out, listening in (("ipc", ()), ("tcp", ("--endpoint", "tcp://127.0.0.1:*"))):
        options = ("--out", out, "--overwrite", *listening, "--quiet", "--strict")
        shell.run("run", *inputs, *options, "--scheduler", *words).ok()
        for name in ("out_jobs.csv", "out_machine_states.csv"):
            assert (shell.folder / out / name).read_bytes() == (shell.folder / "ours" / name).read_bytes()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_skeleton_decides_as_fcfs_does(shell, built, language):
    """It gives the same jobs the same units or shares of nodes, at the same times."""
    words = built(language)
    shell.swf("w.swf", ROWS)
    assert_equal_runs(shell, words, ("-p", "tiny", "-w", "w.swf"))
    shell.write("shared.toml", SHARED)
    shell.write("jobs.json", shared_jobs(200))
    assert_equal_runs(shell, words, ("-p", "shared.toml", "-w", "jobs.json"))
    shell.write("cores.toml", 'name = "c"\n[[pools]]\nname = "c"\nnodes = 2\nresources = { cores = 4 }\n')
    shell.write("few.json", json.dumps(memory_on_cores()))
    assert_equal_runs(shell, words, ("-p", "cores.toml", "-w", "few.json"))


def memory_on_cores():
    """Return jobs that request memory; a machine that does not count memory has enough."""
    asked = {"tasks": 2, "nodes": 1, "memory_per_core": 4096}
    rows = [{"id": one, "subtime": one, "res": 1, "walltime": 90, "profile": "p", "request": asked} for one in range(9)]
    rows[4]["request"] = {"nodes": 1, "exclusive": True, "memory_per_node": 10}
    return {"nb_res": 2, "jobs": rows, "profiles": {"p": {"type": "delay", "delay": 60}}}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_skeleton_passes_the_conformance_scripts(shell, built, language):
    """All that apply, with and without shared nodes."""
    words = built(language)
    told = json.loads(shell.run("check", "scheduler", "--json", "--", *words).ok().out)
    not_passed = {one["name"]: one["verdict"] for one in told["scripts"] if one["verdict"] != "passed"}

    assert not_passed == dict.fromkeys(["larger-than-the-machine", "taken-over", "shared-taken-over"], "skipped")


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
