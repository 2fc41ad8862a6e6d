"""Runs on shared nodes are saved, resumed and taken over like runs on units."""

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from pipistrelle.protocol.events import JobStarted
from pipistrelle.protocol.messages import Notice
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.description.spec_file import with_digests
from pipistrelle.runs.execution.pause import Pause
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.sessions.resume import read_run, resume, run_kept, take_over
from pipistrelle.runs.sessions.snapshot import Every, Keeping, snapshots_in
from pipistrelle.server.transport.in_process import InProcessTransport

MACHINE = """
name = "shared"
[[pools]]
name = "std"
nodes = 5
resources = { cores = 8, memory = "32 GiB" }
[[pools]]
name = "gpu"
nodes = 2
resources = { cores = 8, memory = "64 GiB", gpu = { count = 2, model = "a100" } }
[licenses]
matlab = 2
"""
REQUESTS = (
    {"tasks": 3, "memory_per_core": 3000},
    {"tasks": 1, "gpus": 1, "gpu_share": 500},
    {"nodes": 2, "most_nodes": 3, "tasks": 5, "memory_per_node": 9000},
    {"nodes": 1, "exclusive": True},
    {"tasks": 2, "licenses": {"matlab": 1}},
    {"tasks": 2, "gpus_per_task": 1, "memory_per_gpu": 4096},
)


@pytest.fixture
def spec(tmp_path: Path) -> RunSpec:
    """Return a run on shared nodes that fail and have maintenance."""
    rows = [
        {
            "id": number,
            "subtime": 150 * number,
            "walltime": 9000,
            "res": 1,
            "profile": str(700 + 97 * number % 4000),
            "request": REQUESTS[number % len(REQUESTS)],
        }
        for number in range(150)
    ]
    profiles = {row["profile"]: {"type": "delay", "delay": int(str(row["profile"]))} for row in rows}
    (tmp_path / "shared.toml").write_text(MACHINE)
    (tmp_path / "jobs.json").write_bytes(msgspec.json.encode({"nb_res": 7, "jobs": rows, "profiles": profiles}))
    found = RunSpec(
        platform=str(tmp_path / "shared.toml"),
        workload=(str(tmp_path / "jobs.json"),),
        failures=("exponential,mtbf=10h",),
        repair="30m",
        max_attempts=30,
        maintenance=("@4h +1h 0-1 announced 2h",),
    )
    return with_digests(found)


def outputs(folder: Path) -> dict[str, bytes]:
    """Return the outputs of a run, apart from how it was called."""
    names = sorted(path.name for path in folder.glob("out_*") if "snapshot" not in path.name)
    return {name: (folder / name).read_bytes() for name in names if name != "out_command.json"}


def test_invariants_hold_at_every_step_and_state_restores(spec: RunSpec, tmp_path: Path) -> None:
    """No node is overcommitted; the policy's view agrees with the server's ledger."""
    steps = []

    def between(pause: Pause) -> None:
        pause.check_invariants()
        steps.append(pause.now)

    result = run(spec, RunOptions(out=tmp_path / "out", between=between))
    assert result.failure is None
    assert result.summary.reliability is not None
    assert result.summary.reliability.interrupted_attempts > 0
    assert len(steps) > 200


def test_a_run_resumes_to_the_same_bytes(spec: RunSpec, tmp_path: Path) -> None:
    """From each snapshot, with the tables of resources and the figures in the summary."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert run(spec, RunOptions(out=whole)).failure is None
    cut.mkdir()
    every = Keeping(every=Every(simulated=7200.0), most=9, leave=True)
    assert run_kept(spec, RunOptions(out=cut), every).failure is None
    assert outputs(cut) == outputs(whole)
    paths = snapshots_in(cut)
    assert len(paths) >= 3
    for path in (paths[0], paths[-2]):
        for later in [other for other in snapshots_in(cut) if other.name > path.name]:
            later.unlink()
        assert resume(read_run(cut), RunOptions(), Keeping(leave=True)).failure is None
        assert outputs(cut) == outputs(whole)


def test_another_policy_takes_over(spec: RunSpec, tmp_path: Path) -> None:
    """The new scheduler learns what running jobs take of their nodes, and goes on from there."""
    folder = tmp_path / "run"
    folder.mkdir()
    run_kept(spec, RunOptions(out=folder), Keeping(every=Every(simulated=7200.0), most=9, leave=True))
    path = snapshots_in(folder)[1]
    before = read_run(path, elsewhere=True)
    other = replace(before.spec.without_policy(), scheduler="fcfs")
    told: list[Notice] = []
    send = InProcessTransport.send

    def heard(self: InProcessTransport, notice: Notice) -> None:
        told.append(notice)
        send(self, notice)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(InProcessTransport, "send", heard)
        take_over(other, before, RunOptions(out=tmp_path / "fcfs"), Keeping(leave=True))
    started = [event.data for event in told[1].events if isinstance(event, JobStarted)]
    assert any(data.takes for data in started)
    assert b'"reason":"completed"' in (tmp_path / "fcfs" / "out_summary.json").read_bytes().replace(b" ", b"")
