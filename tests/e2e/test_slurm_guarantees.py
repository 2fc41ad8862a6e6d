"""The scheduler slurm is killed, resumed, recorded, replayed and explained: bytes and reasons stay equal."""

import json
import os
import signal
from collections import defaultdict

import pytest
from tests.schedulers.slurm.random_cluster import random_jobs, write_cluster

from pipistrelle.api.runs import run as simulate
from pipistrelle.runs.slurm.cluster import load_cluster
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.slurm.policy import SlurmPolicy


def undisturbed(shell, jobs, longest=400):
    """Write a cluster with random jobs; return the options that name it, and the outputs of its run."""
    words = write_cluster(shell.folder, random_jobs(28, jobs, 10 * jobs, longest))
    shell.run("run", *words, "--quiet", "--in-process", "--out", "whole").ok()
    return words, shell.files("whole")


def snapshots(shell):
    """Return how many snapshots there are."""
    return len(list((shell.folder / "out").glob("out_snapshot-*.gz")))


@pytest.mark.parametrize(
    "moment", [1, pytest.param(5, marks=pytest.mark.slow), pytest.param(9, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    ("victim", "mode"),
    [
        ("server", ["--in-process"]),
        pytest.param("server", [], marks=pytest.mark.slow),
        pytest.param("scheduler", [], marks=pytest.mark.slow),
    ],
)
def test_a_kill_at_several_moments_resumes_to_the_same_bytes(shell, wait_until, victim, mode, moment):
    """Server or scheduler is killed after some snapshots, with arrays, dependencies, limits and preemption."""
    words, whole = undisturbed(shell, 150)
    shell.forks = None  # else nobody can tell by its command which process is the scheduler
    kept = ("--snapshot-every", "sim:100s", "--keep-snapshots", "99")
    run = shell.start("run", *words, "--quiet", *mode, "--out", "out", *kept)
    wait_until(lambda: snapshots(shell) >= moment)
    if victim == "server":
        run.signal(signal.SIGKILL)
        run.finish()
        wait_until(lambda: not shell.survivors())
    else:
        (child,) = [pid for pid, command in shell._marked() if " schedule " in command]
        os.kill(child, signal.SIGKILL)
        run.finish().failed(4, "was killed by SIGKILL")
    shell.tidy()

    shell.run("resume", "out", "--quiet").ok()
    assert {name: data for name, data in shell.files("out").items() if not name.startswith(".")} == whole


def test_a_recorded_run_over_a_socket_replays_without_a_difference(shell):
    """The run has the same tables as in one process; the session is replayed to a new scheduler and to the server."""
    words, whole = undisturbed(shell, 40)
    shell.run("run", *words, "--quiet", "--out", "out", "--record", "session.jsonl").ok()

    made = shell.files("out")
    tables = ("out_jobs.csv", "out_attempts.csv", "out_decisions.csv")
    assert {name: made[name] for name in tables} == {name: whole[name] for name in tables}
    shell.run("check", "replay", "session.jsonl").ok()
    shell.run("check", "replay", "session.jsonl", "--server").ok()


class Watched(SlurmPolicy):
    """Keeps each job's reason after each decision."""

    def __init__(self, config):
        super().__init__(config)
        self.reasons, self.tables = defaultdict(dict), {}

    def decide(self, view: View) -> None:
        """Decide, and note the reasons of the waiting jobs."""
        super().decide(view)
        for job in view.waiting.each():
            self.reasons[view.now][job.id] = self.held_back_by(job)
        self.tables[view.now] = {row["JOBID"]: row["REASON"] for row in self.queue(view.now)}


def test_every_reason_that_is_told_is_the_one_of_a_second_run(shell):
    """`explain slurm` and `explain job` tell what a policy notes that watches its own decisions."""
    undisturbed(shell, 40, longest=290)  # else the server would end jobs exactly at their limits
    conf, accounts = str(shell.folder / "slurm.conf"), str(shell.folder / "accounts")
    reservations = str(shell.folder / "reservations")
    policy = Watched(load_cluster(conf, (accounts,), (reservations,)).config)
    simulate(str(shell.folder / "jobs.events"), conf, policy, out=shell.folder / "second", progress=False)

    assert shell.files("second")["out_jobs.csv"] == shell.files("whole")["out_jobs.csv"]
    told = set()
    for at in (120, 250, 333, 500):
        table = json.loads(shell.run("explain", "slurm", "whole", "--at", str(at), "--json").ok().out)
        reasons = {row["JOBID"]: row["REASON"] for row in table["squeue"]}
        assert reasons == policy.tables[table["as_of"]]
        told |= set(reasons.values())
    assert len(told) > 3
    compared = 0
    for number in (10, 14, 23, 24):
        job = json.loads(shell.run("explain", "job", "whole", str(number), "--json").ok().out)
        for step in job["timeline"]:
            if step["limit"] == "limit" and step["begin"] in policy.reasons:
                assert step["detail"] == policy.reasons[step["begin"]][job["job"]]
                compared += 1
    assert compared > 4
