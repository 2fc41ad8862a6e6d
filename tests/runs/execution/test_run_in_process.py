"""A run from one call, in this process."""

import json
import threading
from collections.abc import Callable
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from pipistrelle.platforms.description import homogeneous
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.runs.execution.run import RunOptions, run_in_process
from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.schedulers.policy.order import Order
from pipistrelle.schedulers.policy.view import View
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.errors import OutputFailed, Stalled
from pipistrelle.server.simulation.simulate import Simulation
from pipistrelle.traces.workload import Workload

Make = Callable[[], Workload]
FILES = [
    "out_config.json",
    "out_decisions.csv",
    "out_jobs.csv",
    "out_labels.csv",
    "out_machine_states.csv",
    "out_schedule.csv",
    "out_summary.json",
]


class Own:
    """A policy that starts what fits, in order, and does something else once, at the third notice."""

    name = "own"
    features = ("dynamic_jobs",)

    def __init__(self, act: Callable[[View], None] | None = None) -> None:
        self.order: Order = Fcfs()
        self._act = act
        self._count = 0

    def decide(self, view: View) -> None:
        """Start what fits; act at the third notice."""
        self._count += 1
        for job in view.waiting:
            if job.size <= view.free.count:
                view.start(job)
        if self._count == 3 and self._act is not None:
            self._act(view)


def test_names_are_enough(tmp_path: Path) -> None:
    """A bundled workload under a preset, on the machine of its header."""
    result = run_in_process("demo", "easy", options=RunOptions(out=tmp_path / "new" / "folder"))

    assert result.failure is None
    assert (result.summary.reason, result.summary.jobs, result.summary.unfinished) == ("completed", 5000, 0)
    assert (result.scheduler.name, result.scheduler.features) == (
        "easy",
        ("wake_filter", "wake_when", "failures", "resources", "takeover", "state"),
    )
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == FILES


def test_rows_reach_the_disk_while_a_policy_thinks(
    small_workload: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread writes the outputs; an error in writing ends the run after the policy's reply."""
    monkeypatch.setattr("pipistrelle.runs.execution.run.FLUSH_S", 0.1)
    monkeypatch.setattr("pipistrelle.runs.execution.run._SOON_S", 0.01)
    rows: list[int] = []

    def thinks(view: View) -> None:
        look = threading.Event()
        for _ in range(1000):
            rows.append((tmp_path / "out_decisions.csv").read_bytes().count(b"\n"))
            if rows[-1] > 1:
                break
            look.wait(0.01)

    run_in_process(small_workload(), Own(thinks), platform=homogeneous(32, "m"), options=RunOptions(out=tmp_path))
    assert rows[-1] > 1
    assert "pipistrelle-outputs" not in {one.name for one in threading.enumerate()}

    def fails(view: View) -> None:
        monkeypatch.setattr(Simulation, "keep", broken)
        look.wait(10.0)

    def broken(simulation: Simulation) -> None:
        look.set()
        raise OutputFailed("the disk is full")

    look = threading.Event()
    with pytest.raises(OutputFailed, match="the disk is full"):
        run_in_process(small_workload(), Own(fails), platform=homogeneous(32, "m"), options=RunOptions(out=tmp_path))


def test_objects_do_as_well(small_workload: Make) -> None:
    """Workload, platform, policy and observers may be objects; the result equals that of their names."""
    seen: list[str] = []

    class Ear(Observer):
        def started(self, now: float, job: Job) -> None:
            seen.append(job.id)

    result = run_in_process(
        small_workload(), Own(), platform=homogeneous(32, "m"), options=RunOptions(observers=[Ear()])
    )

    assert (result.summary.jobs, len(seen)) == (300, 300)
    assert result.summary == run_in_process(small_workload(), "filler", platform=homogeneous(32, "m")).summary


def test_the_platform_decides_which_jobs_can_run(small_workload: Make) -> None:
    """Jobs that are larger than it are dropped and counted; the others run."""
    summary = run_in_process(small_workload(), "fcfs", platform="tiny").summary

    assert summary.dropped == {"larger than the machine": 300 - summary.jobs}
    assert summary.jobs == summary.completed + summary.killed_at_walltime > 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"workload": "dmo"}, "there is no workload 'dmo'"),
        ({"policy": "eazy"}, "there is no scheduler 'eazy'"),
        ({"platform": "tinny"}, "there is no platform 'tinny'"),
    ],
)
def test_a_wrong_name_is_an_error_before_anything_is_written(
    tmp_path: Path, arguments: dict[str, str], says: str
) -> None:
    """Exit code 2 and no folder."""
    with pytest.raises(PipistrelleError, match=says) as caught:
        run_in_process(**arguments, options=RunOptions(out=tmp_path / "out"))  # type: ignore[arg-type]

    assert caught.value.exit_code == 2
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_an_error_before_the_run(tmp_path: Path, small_workload: Make) -> None:
    """Exit code 6."""
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputFailed, match="cannot write to the output folder"):
        run_in_process(small_workload(), options=RunOptions(out=tmp_path / "file"))


def test_a_run_that_stalls_raises_and_keeps_its_outputs(tmp_path: Path, small_workload: Make) -> None:
    """The files are complete up to the stall, and the summary says why the run ended."""

    class Lazy(Own):
        def decide(self, view: View) -> None:
            if view.now == 0.0 or len(view.running) + len(view.waiting) == 1:
                super().decide(view)

    with pytest.raises(Stalled, match="jobs wait, nothing runs"):
        run_in_process(small_workload(), Lazy(), options=RunOptions(out=tmp_path))

    summary = json.loads((tmp_path / "out_summary.json").read_text())
    assert (summary["reason"], summary["jobs"]) == ("stalled", 300)
    assert summary["completed"] + summary["killed_at_walltime"] + summary["unfinished"] == 300
    lines = (tmp_path / "out_jobs.csv").read_text().splitlines()
    assert len(lines) == 1 + 300 - summary["unfinished"]


def fail(view: View) -> None:
    """Fail."""
    raise RuntimeError("no licence")


def misplace(view: View) -> None:
    """Decide something illegal."""
    view.cancel_call("never asked for")


@pytest.mark.parametrize("act", [fail, misplace])
def test_a_policy_that_fails_keeps_the_outputs_so_far(
    tmp_path: Path, small_workload: Make, act: Callable[[View], None]
) -> None:
    """As when an external scheduler dies: the error is raised, and the seven files are complete."""
    with pytest.raises(PipistrelleError) as caught:
        run_in_process(small_workload(), Own(act), options=RunOptions(out=tmp_path))

    assert caught.value.exit_code == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES
    assert "EXECUTE_JOB" in (tmp_path / "out_decisions.csv").read_text()
    assert json.loads((tmp_path / "out_summary.json").read_text())["reason"] == "scheduler_error"


def test_a_last_mistake_beside_a_stop_does_not_spoil_the_end(tmp_path: Path, small_workload: Make) -> None:
    """An error in the stopping reply is reported with the end: the run stops, and its outputs are complete."""

    def stop(view: View) -> None:
        view.stop("seen enough")
        misplace(view)

    result = run_in_process(small_workload(), Own(stop), options=RunOptions(out=tmp_path))

    assert (result.summary.reason, result.summary.message.partition(" (")[0]) == ("stopped", "seen enough")
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES


class Bad(Fcfs):
    """An order that fails."""

    def rank(self, job: Any) -> float:
        """Fail."""
        raise RuntimeError("no rank")


@pytest.mark.parametrize("order", [Bad(), None])
def test_a_policy_with_a_broken_order_is_the_policys_mistake(small_workload: Make, order: Any) -> None:
    """An exception in a policy's order is reported like one in its decide; so is an invalid order."""
    policy = Own()
    policy.order = order
    with pytest.raises(PipistrelleError, match="own"):
        run_in_process(small_workload(), policy)


NONSENSE: dict[str, Callable[[View], None]] = {
    "a call at NaN": lambda view: view.call_me_later(nan),
    "a call at infinity": lambda view: view.call_me_later(inf),
    "a run time below 0": lambda view: view.register("dyn!1", 1, -7.0),
    "a run time of NaN": lambda view: view.register("dyn!1", 1, nan),
    "an infinite run time": lambda view: view.register("dyn!1", 1, inf),
    "a job of no size": lambda view: view.register("dyn!1", 0, 7.0),
    "a walltime of 0": lambda view: view.register("dyn!1", 1, 7.0, walltime=0.0),
    "a walltime of NaN": lambda view: view.register("dyn!1", 1, 7.0, walltime=nan),
    "a time that is text": lambda view: view.call_me_later("5"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", NONSENSE)
def test_wire_errors_are_rejected_in_process_too(small_workload: Make, case: str) -> None:
    """A run in one process never accepts a decision that the same policy could not send to a server."""
    with pytest.raises(PipistrelleError):
        run_in_process(small_workload(), Own(NONSENSE[case]))
