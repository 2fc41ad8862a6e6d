"""Jobs that take longer on nodes that are far apart: the rule, the walltime, attempts, other ways of running."""

import csv
import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.naming.rule import TopologyRule
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.base.state import from_json, to_json
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.connection import WithChild
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.server.setup.setup import Dispersion

LINE = 'name = "line"\npools = [{ name = "all", nodes = 4 }]\ntopology = { kind = "mesh", shape = [4] }\n'
KINDS = {
    "torus": TopologyRule(kind="torus", shape=(3, 4), nodes_per_router=2),
    "mesh": TopologyRule(kind="mesh", shape=(3, 4), nodes_per_router=2),
    "groups": TopologyRule(kind="groups", shape=(3, 8)),
}
#: starts one job on the units that its id lists
FIXED = """
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.orders.fixed import Fcfs

class Fixed:
    name, order = "fixed", Fcfs()
    def decide(self, view):
        for job in list(view.waiting):
            wanted = NodeSet.parse({1: "2", 2: "1 3" if "#" in job.id else "0-1", 4: "0-3"}[job.size])
            if wanted <= view.free.snapshot():
                view.free.remove(wanted)
                view.start(job, wanted)
    def state(self):
        return None
    def restore(self, state, view):
        pass
"""
RunLine = Callable[..., list[dict[str, str]]]


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunLine:
    """Return a function that runs jobs of (size, walltime) on four nodes in a row, whose mean hops are 5/3."""
    monkeypatch.chdir(tmp_path)
    Path("line.toml").write_text(LINE)
    Path("fixed.py").write_text(FIXED)

    def make(*jobs: tuple[int, float], out: str = "out", file: str = "jobs", **more: Any) -> list[dict[str, str]]:
        told = [
            {"id": str(at), "subtime": 0, "res": size, "walltime": walltime, "profile": "a"}
            for at, (size, walltime) in enumerate(jobs, 1)
        ]
        delays = {"a": {"type": "delay", "delay": 100}}
        Path("w.json").write_text(json.dumps({"nb_res": 4, "jobs": told, "profiles": delays}))
        spec = RunSpec(**{"workload": ("w.json",), "platform": "line.toml", "scheduler": "fixed.py:Fixed", **more})
        run(spec, RunOptions(out=Path(out)))
        return list(csv.DictReader(Path(out, f"out_{file}.csv").read_text().splitlines()))

    return make


@given(kind=st.sampled_from(sorted(KINDS)), nodes=st.sets(st.integers(0, 23), min_size=1), share=st.floats(0.01, 9))
def test_the_factor(kind: str, nodes: set[int], share: float) -> None:
    """It is that of the mean over all pairs, computed pair by pair; units of a node have the same position."""
    platform = Platform(
        name="m", pools=(Pool(name="a", nodes=24, units_per_node=2, unit="core"),), topology=KINDS[kind]
    )
    topology = Machine(platform.units, platform.info).topology

    def mean(some: Any) -> float:
        pairs = np.array(list(combinations(sorted(some), 2)) or [(0, 0)])
        return float(topology.distance(pairs[:, 0], pairs[:, 1]).mean())

    found = Dispersion(platform, share).factor(NodeSet.of(2 * node + (node % 2) for node in nodes))

    assert found == pytest.approx(1 + share * mean(nodes) / mean(range(24)))


def test_jobs_take_longer(line: RunLine) -> None:
    """On two neighbours by 3/5, on one node not at all, and not longer than the walltime."""
    rows = line((2, 160.0 + 1e-6), (4, 199.0), (1, 100.1), dispersion=1.0)
    found = {row["job_id"]: (float(row["execution_time"]), row["final_state"]) for row in rows}
    done = "COMPLETED_SUCCESSFULLY"
    assert found == {"1": (160.0, done), "2": (199.0, "COMPLETED_WALLTIME_REACHED"), "3": (100.0, done)}
    assert {float(row["execution_time"]) for row in line((2, 999.0), (1, 999.0))} == {100.0}


def test_attempts_have_factors_of_their_own(line: RunLine) -> None:
    """Saved progress is work; the rest takes as long as the next nodes' distance implies."""
    Path("down.csv").write_text("node,down,up\n0,120,1000\n")
    more = {
        "file": "attempts",
        "dispersion": 1.0,
        "outages": "down.csv",
        "checkpoint": "50",
        "restart_walltime": "full",
    }
    first, second = line((2, 999.0), **more)
    # Nodes 0 and 1: 160 s with 100 saved, so 62.5 s of work; on nodes 1 and 3 the rest takes 2.2 times as long.
    assert float(first["finish_time"]) == 120.0
    assert float(first["saved"]) == float(second["saved_before"]) == 62.5
    assert float(second["finish_time"]) - float(second["starting_time"]) == pytest.approx(82.5)
    assert float(second["saved"]) == pytest.approx(100.0)
    assert float(second["unit_seconds_useful"]) == pytest.approx(2 * 82.5)
    assert (float(first["unit_seconds_useful"]), float(first["unit_seconds_lost"])) == (200.0, 40.0)


def test_without_dumps_all_is_lost(line: RunLine) -> None:
    """A second attempt begins without saved work; one that saved nothing again has the same walltime."""
    Path("down.csv").write_text("node,down,up\n0,120,1000\n")
    more = {"file": "attempts", "dispersion": 1.0, "outages": "down.csv"}
    first, second = line((2, 999.0), **more)
    assert (float(first["unit_seconds_lost"]), float(second["saved_before"])) == (240.0, 0.0)
    assert float(second["finish_time"]) - float(second["starting_time"]) == pytest.approx(220.0)


FAILING = RunSpec(
    workload=("demo",),
    platform="near.toml",
    dispersion=0.5,
    placement="compact",
    failures=("exponential,smtbf=4h",),
    repair="2h",
    checkpoint="30min",
    dump="2min",
    read="1min",
    spares="10%",
    until="1d",
)
NEAR = (
    'name = "near"\n[[pools]]\nname = "all"\nnodes = 256\n'
    '[topology]\nkind = "torus"\nshape = [8, 4, 4]\nnodes_per_router = 2\n'
)


def test_resumed_run_is_the_same_over_a_wire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With failures, from a state in its midst; and with a scheduler in a process of its own."""
    monkeypatch.chdir(tmp_path)
    Path("near.toml").write_text(NEAR)
    taken: list[Any] = []

    def take(pause: Any) -> None:
        if pause.notices == 100:
            taken.append(from_json(to_json(pause.state())))

    run(FAILING, RunOptions(out=tmp_path / "whole"))
    run(FAILING, RunOptions(out=tmp_path / "parts", between=take))
    run(FAILING, RunOptions(out=tmp_path / "parts", resume=taken[0]))
    run(FAILING, RunOptions(out=tmp_path / "wire", connection=WithChild()))
    whole, *others = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir() if "schedule" not in path.name}
        for name in ("whole", "parts", "wire")
    )
    assert others == [whole, whole]
    assert b"COMPLETED_WALLTIME_REACHED" in whole["out_jobs.csv"]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (RunSpec(dispersion=0.1), "zero hops apart.*a platform with a .topology., found demo, of kind 'flat'"),
        (RunSpec(dispersion=float("inf"), platform="titan"), "dispersion: a number is not finite"),
        (RunSpec(dispersion=-1.0, platform="titan"), "dispersion: .*> 0"),
    ],
)
def test_what_is_refused(spec: RunSpec, says: str) -> None:
    """By the option's name."""
    with pytest.raises(PipistrelleError, match=says):
        run(spec)


def test_a_share_is_a_number_above_zero() -> None:
    """An invalid rule in Python is rejected."""
    platform = Platform(name="m", pools=(Pool(name="a", nodes=24),), topology=KINDS["torus"])
    for share in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(PipistrelleError, match="a share of the runtime is not valid"):
            Dispersion(platform, share)


def test_hosts_that_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs that compute take as long as their hosts need."""
    monkeypatch.chdir(tmp_path)
    Path("h.xml").write_text(
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
        '<zone id="z" routing="Full"><host id="a" speed="1e9f"/><host id="b" speed="1e9f"/></zone></platform>'
    )
    jobs = [{"id": "1", "subtime": 0, "res": 2, "walltime": 99, "profile": "a"}]
    work = {"a": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0}}
    Path("w.json").write_text(json.dumps({"nb_res": 2, "jobs": jobs, "profiles": work}))
    with pytest.raises(PipistrelleError, match="--dispersion does not support"):
        run(RunSpec(workload=("w.json",), platform="h.xml", dispersion=0.1))
