"""The benchmark against Batsim, with two stand-ins: `pipistrelle-batsim`, and a scheduler with batsched's options."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).resolve().parent.parent.parent / "benchmarks" / "compare_batsim.py"
#: batsched's ``easy_bf_fast``, written without the package: ``-v VARIANT -s ENDPOINT``
BATSCHED = """
import argparse, json, sys
from math import inf
import zmq

parser = argparse.ArgumentParser()
parser.add_argument("-v", choices=["easy_bf_fast"])
parser.add_argument("-s")
parser.add_argument("--exit", type=int)
given = parser.parse_args()
if given.exit:
    sys.exit("batsched: no such variant")
socket = zmq.Context.instance().socket(zmq.REP)
socket.bind(given.s)
free, jobs, ends, waiting, first, shadow = set(), {}, {}, [], None, inf

def fits(job):
    return job["res"] <= len(free)

def start(job):
    units = sorted(free)[: job["res"]]
    free.difference_update(units)
    jobs[job["id"]], ends[job["id"]] = units, now + job["walltime"]
    data = {"job_id": job["id"], "alloc": " ".join(map(str, units))}
    decisions.append({"timestamp": now, "type": "EXECUTE_JOB", "data": data})

def reserve(job):
    left = len(free)
    for end, name in sorted((end, name) for name, end in ends.items()):
        left += len(jobs[name])
        if left >= job["res"]:
            return job, end

while True:
    notice = json.loads(socket.recv())
    now, decisions, fresh, over = notice["now"], [], [], False
    for event in notice["events"]:
        data = event["data"]
        if event["type"] == "SIMULATION_BEGINS":
            free = set(range(data["nb_compute_resources"]))
        elif event["type"] == "JOB_SUBMITTED":
            fresh.append(data["job"])
        elif event["type"] == "JOB_COMPLETED":
            free.update(jobs.pop(data["job_id"]))
            del ends[data["job_id"]]
        over = over or event["type"] == "SIMULATION_ENDS"
    if first is not None and fits(first):
        start(first)
        first = None
    kept = []
    for job in waiting + fresh:
        if first is None and not fits(job):
            first, shadow = reserve(job)
        elif fits(job) and (first is None or now + job["walltime"] <= shadow):
            start(job)
        else:
            kept.append(job)
    waiting = kept
    socket.send_json({"now": now, "events": decisions})
    if over:
        break
socket.close()
"""


@pytest.fixture
def peers(tmp_path: Path) -> tuple[str, str]:
    """Return the commands of the stand-ins."""
    (tmp_path / "batsched.py").write_text(BATSCHED)
    program = shlex.quote("from pipistrelle.cli.__main__ import batsim; batsim()")
    simulator = f"{sys.executable} -c {program} --hello-timeout 600 --decision-timeout 600"
    return simulator, f"{sys.executable} {tmp_path / 'batsched.py'}"


def compare(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the benchmark."""
    return subprocess.run([sys.executable, str(BENCHMARK), *words], check=False, capture_output=True, text=True)


def test_pairs_are_played_in_turn_and_starts_compared(peers: tuple[str, str]) -> None:
    """Times of each run, both ratios with their spread, and the load; the stand-in's starts are ours."""
    done = compare(*peers, "--jobs", "300", "--units", "64", "--load", "0.95", "--pairs", "2")

    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    seconds = r"[\d.]+ s"
    both = rf"Batsim {seconds} \(processor {seconds}\), Pipistrelle {seconds} \(processor {seconds}\)"
    for number, line in enumerate(lines[:2], 1):
        assert re.fullmatch(rf"  pair {number}: {both}, load of the machine [\d.]+", line)
    assert lines[2] == "2 pairs in turn, cores as each program takes them"
    ratio = rf"[\d.]+ \(from [\d.]+ to [\d.]+; medians {seconds} and {seconds}\)"
    assert re.fullmatch(rf"wall time: Batsim / Pipistrelle {ratio}", lines[3])
    assert re.fullmatch(rf"processor time: Batsim / Pipistrelle {ratio}", lines[4])
    assert lines[5:] == ["starts: 300 of 300 equal, 0 jobs started by one of both alone"]


def test_a_failed_program_ends_the_benchmark(peers: tuple[str, str]) -> None:
    """The other program is ended, too, and the message quotes the failed one."""
    simulator, scheduler = peers

    done = compare(simulator, f"{scheduler} --exit 1", "--jobs", "30", "--units", "8", "--pairs", "1")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == (
        f"compare_batsim.py: {Path(sys.executable).name} ended with exit code 1: batsched: no such variant"
    )


def test_a_program_that_is_not_there(peers: tuple[str, str]) -> None:
    """One line names it."""
    done = compare("/no/batsim", peers[1], "--jobs", "30", "--units", "8", "--pairs", "1")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == "compare_batsim.py: cannot start /no/batsim: No such file or directory"
