"""``--until``: a run up to a horizon equals the run without one up to there, and counts what was left."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.description import homogeneous
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.events import SimulationEndsData
from pipistrelle.runs.description.reliability import load_reliability
from pipistrelle.runs.description.setup import load_setup
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.connection import InProcess
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.outputs.metrics import Summary
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import simulate
from pipistrelle.server.transport.in_process import InProcessTransport
from pipistrelle.traces.generator import generate
from pipistrelle.traces.workload import Workload

MACHINE = homogeneous(16, "m")
#: what may happen to it
WAYS: tuple[dict[str, Any], ...] = (
    {},
    {"failures": ("exponential,mtbf=300h",), "repair": "1h"},
    {"maintenance": ("@2h +1h all",)},
)
#: submit time, size, walltime and run time of each: job 1 holds the machine, 2 waits for it, 3 comes later
ROWS = ((1, 10.0, 16, 200.0, 100.0), (2, 20.0, 4, 60.0, 50.0), (3, 300.0, 1, 20.0, 10.0))


class Diary(Observer):
    """Keeps what happened when."""

    def __init__(self) -> None:
        self.lines: list[tuple[Any, ...]] = []

    def submitted(self, now: float, job: Job) -> None:
        """Keep it."""
        self.lines.append((now, "submitted", job.id))

    def started(self, now: float, job: Job) -> None:
        """Keep it."""
        self.lines.append((now, "started", job.id, str(job.alloc)))

    def ended(self, now: float, job: Job) -> None:
        """Keep it."""
        self.lines.append((now, "ended", job.id, job.end))

    def went_down(self, now: float, nodes: Any, units: Any, planned: bool, why: Any) -> None:
        """Keep it."""
        self.lines.append((now, "down", str(nodes)))

    def came_up(self, now: float, nodes: Any, units: Any) -> None:
        """Keep it."""
        self.lines.append((now, "up", str(nodes)))


def swf(tmp_path: Path, head: str = "") -> str:
    """Return the name of a file with `ROWS`."""
    lines = [f"{number} {submit:g} -1 {runtime:g} {size} -1 -1 {size} {walltime:g} -1 1 1 1 1 1 1 -1 -1"
             for number, submit, size, walltime, runtime in ROWS]  # fmt: skip
    (tmp_path / "w.swf").write_text("\n".join([head or "; MaxProcs: 16", *lines, ""]))
    return str(tmp_path / "w.swf")


def ended(tmp_path: Path, until: str | None, head: str = "") -> Summary:
    """Return the figures of `ROWS` under FCFS with a horizon."""
    spec = RunSpec(workload=(swf(tmp_path, head),), scheduler="fcfs", until=until)
    return run(spec, RunOptions(connection=InProcess(), out=tmp_path / "out")).summary


@pytest.mark.parametrize(
    ("until", "jobs", "running", "waiting", "utilisation"),
    [
        ("5", 0, 0, 0, None),  # before the first submission
        ("10", 0, 0, 0, None),  # what happens at the horizon itself does not
        ("30s", 2, 1, 1, 1.0),
        ("110", 2, 1, 1, 1.0),
        ("2min", 2, 1, 0, (1600 + 4 * 10) / (16 * 110)),
        ("160", 2, 1, 0, (1600 + 4 * 50) / (16 * 150)),
        ("@200", 2, 0, 0, (1600 + 4 * 50) / (16 * 190)),
    ],
)
def test_running_and_queued_jobs_at_the_horizon_are_counted(
    tmp_path: Path, until: str, jobs: int, running: int, waiting: int, utilisation: float | None
) -> None:
    """Running and waiting apart, use and span up to the horizon; means are of the jobs that ended."""
    summary = ended(tmp_path, until)

    assert (summary.reason, summary.jobs) == ("horizon", jobs)
    assert (summary.running_at_end, summary.waiting_at_end) == (running, waiting)
    assert summary.unfinished == running + waiting
    assert summary.completed == jobs - running - waiting
    assert (summary.mean_wait is None) == (summary.completed == 0)
    assert summary.utilisation == (None if utilisation is None else pytest.approx(utilisation, rel=1e-12))


@pytest.mark.parametrize("until", ["310.5", "1y", None])
def test_a_horizon_past_the_end_changes_nothing(tmp_path: Path, until: str | None) -> None:
    """The summary has no horizon figures, and is the same except for the digest of the inputs."""
    assert ended(tmp_path, until).reason == "completed"
    after = json.loads((tmp_path / "out" / "out_summary.json").read_bytes())
    ended(tmp_path, None)
    without = json.loads((tmp_path / "out" / "out_summary.json").read_bytes())
    assert (without.pop("inputs_sha256") == after.pop("inputs_sha256")) == (until is None)
    assert without == after
    assert not {"horizon", "running_at_end", "waiting_at_end"} & after.keys()


def test_the_scheduler_is_told(tmp_path: Path) -> None:
    """SIMULATION_ENDS at the horizon, with its own reason and the pending events."""
    runtime = Runtime(make_policy("fcfs"))
    setup = replace(load_setup(RunSpec(workload=(swf(tmp_path),))), until=150.0)

    result = simulate(setup, InProcessTransport(runtime), clock=lambda: 0.0)

    assert result.failure is None
    assert isinstance(runtime.ended, SimulationEndsData)
    assert runtime.ended.reason == "horizon"
    assert runtime.ended.message.startswith("simulated time 150.0 is the run's horizon (0 waiting, 1 running")


def test_a_horizon_may_be_a_date(tmp_path: Path) -> None:
    """With or without a time of the day, when the date of time 0 is known."""
    head = "; UnixStartTime: 0\n; MaxProcs: 16"
    assert ended(tmp_path, "1970-01-01 00:02:00", head).horizon == 120.0
    assert ended(tmp_path, "1970-01-02", head).reason == "completed"


@pytest.mark.parametrize(
    ("until", "says"),
    [
        ("0", "not above zero"),
        ("-5", "not above zero"),
        ("inf", "cannot be read"),
        ("nan", "cannot be read"),
        ("1e999", "not above zero"),
        ("", "cannot be read"),
        ("30 parsecs", "unknown unit"),
        ("2017-01-29", "date of time 0 is unknown"),
        ("2017-13-29 08:00", "date of time 0 is unknown"),
    ],
)
def test_invalid_horizon_is_rejected(tmp_path: Path, until: str, says: str) -> None:
    """By name, before anything is written."""
    with pytest.raises(PipistrelleError, match=says) as caught:
        ended(tmp_path, until)
    assert caught.value.where == "--until"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("until", ["1969-12-31", "1970-01-01", "1970-01-02 00:00 sharp"])
def test_a_date_must_be_one_after_time_0(tmp_path: Path, until: str) -> None:
    """Neither time 0 itself, nor more words."""
    with pytest.raises(PipistrelleError, match="not a single date after time 0"):
        ended(tmp_path, until, "; UnixStartTime: 0\n; MaxProcs: 16")


def test_the_books_of_nodes_close_at_the_horizon(tmp_path: Path) -> None:
    """All nodes' seconds end at the horizon; busy seconds include running jobs."""
    spec = RunSpec(workload=(swf(tmp_path),), scheduler="fcfs", maintenance=("@250 +100s 0-3",), until="300")
    reliability = run(spec, RunOptions(connection=InProcess())).summary.reliability

    assert reliability is not None
    seconds = reliability.node_seconds
    assert (seconds["all"], seconds["maintenance"], seconds["busy"]) == (16 * 300.0, 4 * 50.0, 1600.0 + 200.0)


def lived(workload: Workload, until: float, **said: Any) -> tuple[Diary, Summary]:
    """Return what happened in a run."""
    spec = RunSpec(**said)
    diary = Diary()
    setup = Setup.of(MACHINE, workload, reliability=load_reliability(spec, MACHINE, workload))
    result = run(spec, RunOptions(setup=replace(setup, until=until), connection=InProcess(), observers=[diary]))
    return diary, result.summary


@settings(max_examples=60)
@given(
    st.integers(0, 99),
    st.sampled_from(["fcfs", "easy", "conservative"]),
    st.sampled_from(WAYS),
    st.sampled_from([None, "10min"]),
    st.data(),
)
def test_up_to_the_horizon_it_is_the_run_without(
    seed: int, scheduler: str, fails: dict[str, Any], poll: str | None, data: st.DataObject
) -> None:
    """Exactly the events before it, in their order; submitted jobs have ended, run or wait."""
    workload = generate(jobs=30, units=16, seed=seed, load=1.2, name="small")
    whole, _ = lived(workload, float("inf"), scheduler=scheduler, poll=poll, **fails)
    times = [line[0] for line in whole.lines]
    until = data.draw(st.sampled_from(times) | st.floats(1.0, times[-1]))
    if until <= 0:
        return
    cut, summary = lived(workload, until, scheduler=scheduler, poll=poll, **fails)

    assert cut.lines == [line for line in whole.lines if line[0] < until]
    assert summary.reason == "horizon"
    finished = summary.completed + summary.killed_at_walltime + summary.killed + summary.rejected
    assert isinstance(summary.running_at_end, int)
    assert isinstance(summary.waiting_at_end, int)
    assert summary.jobs == finished + summary.running_at_end + summary.waiting_at_end
    assert summary.utilisation is None or 0.0 <= summary.utilisation <= 1.0 + 1e-12
