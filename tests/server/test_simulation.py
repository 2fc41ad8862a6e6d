"""One whole run: first notice, copies of the inputs, results."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipistrelle.platforms.description import Platform, Pool, homogeneous
from pipistrelle.protocol.decisions import ExecuteJob, ExecuteJobData
from pipistrelle.protocol.events import JobSubmitted, PlatformInfo, PoolInfo, SimulationBeginsData
from pipistrelle.protocol.messages import HelloData, Notice, Reply, WelcomeData
from pipistrelle.server.errors import OutputFailed, SchedulerFailed
from pipistrelle.server.setup.described import begins_of, describe_run
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import simulate
from pipistrelle.server.transport.in_process import InProcessTransport
from pipistrelle.traces.workload import Workload

FILES = [
    "out_config.json",
    "out_decisions.csv",
    "out_jobs.csv",
    "out_labels.csv",
    "out_machine_states.csv",
    "out_schedule.csv",
    "out_summary.json",
]


def workload(*rows: tuple[float, int, float, float], name: str = "log") -> Workload:
    """Return a workload of (submit, size, runtime, walltime), with ids from 1."""
    submit, size, runtime, walltime = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Workload(
        name=name,
        source=f"{name}.swf",
        ids=[str(number + 1) for number in range(len(rows))],
        submit=np.array(submit, dtype=np.float64),
        size=np.array(size, dtype=np.int64),
        walltime=np.array(walltime, dtype=np.float64),
        runtime=np.array(runtime, dtype=np.float64),
    )


class Greedy:
    """Starts every job at once on the whole machine; a job that does not fit fails it."""

    def __init__(self, *, fails_at: int = 0) -> None:
        self.notices: list[Notice] = []
        self._fails_at = fails_at

    def hello(self) -> HelloData:
        """Return a name."""
        return HelloData("greedy", "7", features=("dynamic_jobs",))

    def welcome(self, data: WelcomeData) -> None:
        """Keep it."""
        self.agreed = data

    def answer(self, notice: Notice) -> Reply:
        """Start submitted jobs on units 0 to size - 1."""
        self.notices.append(notice)
        if notice.seq == self._fails_at:
            raise SchedulerFailed("it died")
        decisions = [
            ExecuteJob(notice.now, ExecuteJobData(event.data.job_id, f"0-{event.data.job.res - 1}"))
            for event in notice.events
            if isinstance(event, JobSubmitted)
        ]
        return Reply(notice.seq, notice.now, decisions)


ROWS = ((0.0, 2, 10.0, 20.0), (15.0, 4, 10.0, 5.0), (40.0, 2, 1.0, 1.0))


def test_a_setup_drops_what_cannot_run_and_counts_it() -> None:
    """Jobs without run time, request or size, or larger than the machine, never reach the engine."""
    trace = workload((0, 2, 10, 20), (1, 9, 10, 20), (2, 1, 0, 20), (3, 1, 5, -1), (4, 0, 5, 5))
    setup = Setup.of(homogeneous(4, "m"), trace, strict=True)

    assert setup.workloads["w0"].ids == ["1"]
    assert setup.dropped == {
        "run time zero or missing": 1,
        "requested time zero or missing": 1,
        "no size": 1,
        "larger than the machine": 1,
    }
    assert setup.strict


def test_machine_is_sent_by_groups() -> None:
    """Pools are numbered through, nodes and units apart; ranges have both ends."""
    pools = (
        Pool(name="thin", nodes=3),
        Pool(name="gpu", nodes=2, units_per_node=4, unit="gpu", properties={"memory": 96}),
        Pool(name="fat", nodes=2, units_per_node=2, unit="core"),
    )
    setup = Setup.of(Platform(name="mixed", pools=pools), workload(*ROWS, name="trace"))

    assert begins_of(setup) == SimulationBeginsData(
        nb_resources=15,
        platform=PlatformInfo(
            "mixed",
            (
                PoolInfo("thin", "0-2", "0-2"),
                PoolInfo("gpu", "3-4", "3-10", 4, "gpu", {"memory": 96}),
                PoolInfo("fat", "5-6", "11-14", 2, "core"),
            ),
        ),
        workloads={"w0": "trace"},
        config={"strict": False, "epoch": None, "timezone": None},
    )


def test_ranges_of_one_are_written_as_everywhere_in_the_protocol() -> None:
    """A pool of one node has the canonical text of its set: '0', not '0-0'."""
    pools = (Pool(name="login", nodes=1), Pool(name="rest", nodes=2))
    begins = begins_of(Setup.of(Platform(name="m", pools=pools), workload(*ROWS)))

    assert begins.platform is not None
    assert [(pool.nodes, pool.units) for pool in begins.platform.pools] == [("0", "0"), ("1-2", "1-2")]


def test_the_run_id_names_the_inputs() -> None:
    """Equal inputs have equal ids; each input that can change a result changes it."""

    def run_id(setup: Setup) -> str:
        clerk = Greedy()
        simulate(setup, InProcessTransport(clerk), clock=lambda: 0.0)
        return clerk.agreed.run_id

    machine, trace = homogeneous(4, "m"), workload(*ROWS)
    same = run_id(Setup.of(machine, trace))
    others = [
        Setup.of(homogeneous(5, "m"), trace),
        Setup.of(machine, trace, strict=True),
        *(Setup.of(machine, workload(*ROWS[:1], changed, *ROWS[2:])) for changed in changed_rows()),
    ]

    assert run_id(Setup.of(homogeneous(4, "m"), workload(*ROWS))) == same
    assert len({same, *map(run_id, others)}) == len(others) + 1


def changed_rows() -> list[tuple[float, int, float, float]]:
    """Return the second row with one value changed at a time."""
    return [(15.5, 4, 10.0, 5.0), (15.0, 3, 10.0, 5.0), (15.0, 4, 9.0, 5.0), (15.0, 4, 10.0, 6.0)]


def test_a_whole_run_and_its_files(tmp_path: Path) -> None:
    """The result has figures, times and the scheduler's name; the folder has six files without measured times."""
    clerk = Greedy()
    result = simulate(
        Setup.of(homogeneous(4, "m"), workload(*ROWS)),
        InProcessTransport(clerk),
        clock=lambda: 0.25 * len(clerk.notices),
        out=tmp_path,
    )

    assert result.failure is None
    assert (result.scheduler.name, result.summary.reason, result.summary.jobs) == ("greedy", "completed", 3)
    assert (result.summary.completed, result.summary.killed_at_walltime) == (2, 1)
    assert (result.times.round_trips, result.times.scheduler, result.times.total) == (7, 7 * 0.25, 7 * 0.25)
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES
    config = json.loads((tmp_path / "out_config.json").read_text())
    assert list(config) == [
        "run_id",
        "platform",
        "workloads",
        "dropped",
        "strict",
        "hosts_sha256",
        "reliability",
        "batsim",
        "scheduler",
        "versions",
    ]
    assert config["run_id"] == clerk.agreed.run_id
    assert config["scheduler"] == {"name": "greedy", "version": "7", "features": ["dynamic_jobs"]}
    assert config["workloads"].keys() == {"w0"}
    assert config["workloads"]["w0"] | {"sha256": ""} == {
        "name": "log",
        "source": "log.swf",
        "jobs": 3,
        "epoch": None,
        "timezone": None,
        "sha256": "",
    }
    assert config["dropped"] == {}
    summary = json.loads((tmp_path / "out_summary.json").read_text())
    assert (summary["makespan"], summary["mean_wait"]) == (41.0, 0.0)


def test_without_a_folder_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs are made only where they are asked for."""
    monkeypatch.chdir(tmp_path)
    simulate(Setup.of(homogeneous(4, "m"), workload(*ROWS)), InProcessTransport(Greedy()), clock=lambda: 0.0)

    assert list(tmp_path.iterdir()) == []


def test_last_notice_has_the_reason_of_the_end() -> None:
    """The scheduler's last word from the server is SIMULATION_ENDS."""
    clerk = Greedy()
    simulate(Setup.of(homogeneous(4, "m"), workload(*ROWS)), InProcessTransport(clerk), clock=lambda: 0.0)
    last: Any = clerk.notices[-1].events[-1]

    assert (last.timestamp, last.data.reason) == (41.0, "completed")


def test_a_run_that_fails_keeps_its_outputs_so_far(tmp_path: Path) -> None:
    """The failure is in the result and in the summary; every file is complete up to that moment."""
    result = simulate(
        Setup.of(homogeneous(4, "m"), workload(*ROWS)),
        InProcessTransport(Greedy(fails_at=5)),
        clock=lambda: 0.0,
        out=tmp_path,
    )

    assert isinstance(result.failure, SchedulerFailed)
    assert (result.summary.reason, result.summary.message) == ("protocol_error", "it died.")
    assert (result.summary.completed, result.summary.killed_at_walltime, result.summary.unfinished) == (1, 1, 0)
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES
    assert [line.split(",")[0] for line in (tmp_path / "out_jobs.csv").read_text().splitlines()] == ["job_id", "1", "2"]


def test_a_strict_failure_is_in_the_files_too(tmp_path: Path) -> None:
    """The decision that ended the run is the last line of the decisions file."""
    result = simulate(
        Setup.of(homogeneous(4, "m"), workload((0, 2, 10, 20), (5, 2, 10, 20)), strict=True),
        InProcessTransport(Greedy()),
        clock=lambda: 0.0,
        out=tmp_path,
    )

    assert result.failure is not None
    assert result.failure.exit_code == 3
    last = (tmp_path / "out_decisions.csv").read_text().splitlines()[-1]
    assert last.startswith("5.0,EXECUTE_JOB,w0!2,0-1,busy_unit,")
    assert (tmp_path / "out_machine_states.csv").read_text().splitlines()[-1] == "0.000000,0,0,0,2,2"


@pytest.mark.parametrize("name", FILES)
def test_an_output_that_cannot_be_written_is_the_runs_failure(tmp_path: Path, name: str) -> None:
    """For any of the files: exit code 6, the file named, the others written up to that point."""
    (tmp_path / name).mkdir()
    clerk = Greedy()
    result = simulate(
        Setup.of(homogeneous(4, "m"), workload(*ROWS)), InProcessTransport(clerk), clock=lambda: 0.0, out=tmp_path
    )

    assert isinstance(result.failure, OutputFailed)
    assert result.failure.where == str(tmp_path / name)
    assert result.summary.reason == ("completed" if name in {"out_schedule.csv", "out_summary.json"} else "error")


def test_scheduler_gets_the_end_even_if_the_run_could_not_begin(tmp_path: Path) -> None:
    """When the first file of a run cannot be written, the connected scheduler learns it."""
    (tmp_path / "out_config.json").mkdir()
    clerk = Greedy()
    simulate(Setup.of(homogeneous(4, "m"), workload(*ROWS)), InProcessTransport(clerk), clock=lambda: 0.0, out=tmp_path)

    told: Any = [event for notice in clerk.notices for event in notice.events]
    assert [event.data.reason for event in told] == ["error"]


def test_the_digest_of_a_workload_tells_whose_jobs_they_are():
    """Users, queues and dependencies affect a scheduler's decisions, and so do a job's own settings."""
    one = workload((0.0, 1, 5.0, 10.0), (1.0, 1, 5.0, 10.0))
    others = [
        dataclasses.replace(one, labels={"user": ["ann", "bob"]}),
        dataclasses.replace(one, labels={"user": ["bob", "ann"]}),
        dataclasses.replace(one, labels={"queue": ["ann", "bob"]}),
        dataclasses.replace(one, columns={"preceding": np.array([-1, 1])}),
        dataclasses.replace(one, job_json=[b'{"id": 1}', b'{"id": 2, "resilience": {}}']),
    ]
    platform = homogeneous(4, "tiny")
    digests = {describe_run(Setup.of(platform, each))["workloads"]["w0"]["sha256"] for each in (one, *others)}
    assert len(digests) == 6
