"""Machines whose nodes have one core and nothing else are run as machines of units, with the same starts."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.protocol.resources.request import Request
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import RunOptions, run_in_process
from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.schedulers.policy.view import View
from pipistrelle.traces.workload import Workload

NODES = 6
SHARED = "allocated_cores"


def machine(**more: object) -> Platform:
    """Return nodes of one core, and of more resources if given."""
    pool = Pool(name="all", nodes=NODES, resources={"cores": 1, **more})
    return Platform(name="cores", pools=(pool,))


def jobs(rows: list[tuple[int, int, int]], requests: list[Request | None] | None = None) -> Workload:
    """Return jobs of (submit time, size, run time)."""
    submit, size, runtime = (np.array(column) for column in zip(*sorted(rows), strict=True))
    return Workload(
        name="w",
        source="w",
        ids=[str(number) for number in range(len(rows))],
        submit=submit.astype(float),
        size=size.astype(np.int64),
        walltime=runtime.astype(float) + 1,
        runtime=runtime.astype(float),
        requests=requests,
    )


def table(
    platform: Platform, workload: Workload, out: Path, scheduler: Any = "easy", placement: str | None = None
) -> list[dict[str, str]]:
    """Run the jobs; return the rows of the table of jobs."""
    spec, options = RunSpec(placement=placement), RunOptions(out=out, overwrite=True)
    run_in_process(workload, scheduler, platform=platform, spec=spec, options=options)
    with (out / "out_jobs.csv").open() as file:
        return list(csv.DictReader(file))


def starts(rows: list[dict[str, str]]) -> dict[str, str]:
    """Return {job: start}."""
    return {row["job_id"]: row["starting_time"] for row in rows}


@pytest.mark.parametrize("scheduler", ["easy", "conservative", "maui", "pbs"])
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(st.integers(0, 30), st.integers(1, NODES), st.integers(1, 20)), min_size=1, max_size=20))
def test_starts_are_those_of_units_and_of_nodes_with_another_resource(
    tmp_path: Path, scheduler: str, rows: list[tuple[int, int, int]]
) -> None:
    """A second resource makes the nodes shared ones; there Maui and PBS reserve particular nodes, not a number."""
    work = jobs(rows)
    plain = table(Platform(name="m", pools=(Pool(name="all", nodes=NODES),)), work, tmp_path / "plain", scheduler)
    cores = table(machine(), work, tmp_path / "cores", scheduler)
    shared = table(machine(disk=1), work, tmp_path / "shared", scheduler)

    assert SHARED not in cores[0]
    assert SHARED in shared[0]
    assert starts(plain) == starts(cores)
    assert scheduler in ("maui", "pbs") or starts(cores) == starts(shared)
    assert [row["allocated_resources"] for row in cores] == [row["allocated_resources"] for row in plain]


@pytest.mark.parametrize(
    "request_",
    [
        Request(nodes=1, tasks=1, cores_per_task=500),
        Request(tasks=1, licenses={"matlab": 1}),
        Request(nodes=1, most_nodes=2),
    ],
)
def test_a_job_that_takes_less_than_nodes_or_more_than_cores_shares_them(tmp_path: Path, request_: Request) -> None:
    """Half a core, a licence, or a number of nodes that the scheduler chooses."""
    platform = Platform(name="m", pools=machine().pools, licenses={"matlab": 1})
    rows = table(platform, jobs([(0, 1, 5), (0, 1, 5)], [request_, Request(tasks=1)]), tmp_path)
    assert SHARED in rows[0]
    assert {row["success"] for row in rows} == {"1"}


def test_two_halves_of_a_core_run_at_once(tmp_path: Path) -> None:
    """Seven jobs of half a core need four nodes."""
    half = Request(nodes=1, tasks=1, cores_per_task=500)
    rows = table(machine(), jobs([(0, 1, 5)] * 2 * NODES, [half] * 2 * NODES), tmp_path)
    assert set(starts(rows).values()) == {"0.000000"}


@pytest.mark.parametrize("placement", ["first-fit", "worst-fit", "random"])
def test_a_placement_for_shared_nodes_keeps_them_shared(tmp_path: Path, placement: str) -> None:
    """Placements for shared nodes are not refused because the nodes have one core."""
    assert SHARED in table(machine(), jobs([(0, 2, 5)]), tmp_path, placement=placement)[0]


def test_a_policy_of_your_own_gets_the_nodes_as_they_are_described(tmp_path: Path) -> None:
    """It may read what is free of each resource."""
    seen: list[bool] = []

    class Mine:
        name = "mine"
        order = Fcfs()

        def decide(self, view: View) -> None:
            seen.append(view.shared is not None)
            for job in list(view.waiting):
                if view.fits(job):
                    view.start(job)

    assert SHARED in table(machine(), jobs([(0, 2, 5)]), tmp_path, Mine())[0]
    assert all(seen)
