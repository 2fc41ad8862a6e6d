"""The state of a run between two notices: saving it, and rejecting it in a different run."""

import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.base.state import from_json, to_json
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.pause import Pause, StateError
from pipistrelle.runs.execution.run import RunOptions, run, run_in_process
from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.schedulers.policy.view import View
from pipistrelle.server.setup.workload_jobs import WorkloadJobs
from pipistrelle.traces.generator import generate

SPEC = RunSpec(workload=("seven-jobs",), scheduler="easy")


@pytest.fixture
def state(tmp_path: Path) -> dict[str, Any]:
    """Return a state of `SPEC` with its outputs, which are in ``so-far``."""
    taken = []

    def take(pause: Pause) -> None:
        if pause.notices == 4:
            taken.append(from_json(to_json(pause.state())))
            shutil.copytree(tmp_path / "whole", tmp_path / "so-far")

    run(SPEC, RunOptions(out=tmp_path / "whole", between=take))
    return taken[0]


def test_the_outputs_are_those_of_a_run_without_a_break(tmp_path: Path, state: dict[str, Any]) -> None:
    """All files match, including the description; lines written after the state was taken do not matter."""
    with (tmp_path / "so-far" / "out_jobs.csv").open("a") as file:
        file.write("what a process wrote before it was killed\n")
    result = run(SPEC, RunOptions(out=tmp_path / "so-far", resume=state))

    whole, again = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("whole", "so-far")
    )
    assert again == whole
    assert result.summary.jobs == 7


def test_run_may_resume_without_outputs(state: dict[str, Any]) -> None:
    """Its figures equal those of the whole run."""
    assert run(SPEC, RunOptions(resume=state)).summary == run(SPEC).summary


@pytest.mark.parametrize(
    ("spec", "change", "says"),
    [
        (SPEC, lambda state: {**state, "format": 0}, "state of another format"),
        (SPEC, lambda state: {**state, "pipistrelle": "0"}, "state of another version"),
        (SPEC, lambda state: {}, "not a run's state"),
        (SPEC, lambda state: [], "not a run's state"),
        (RunSpec(workload=("demo",), scheduler="easy"), dict, "state of another run"),
        (RunSpec(workload=("seven-jobs",), scheduler="easy", strict=True), dict, "state of another run"),
        (RunSpec(workload=("seven-jobs",), scheduler="fcfs"), dict, "state of another scheduler"),
        (RunSpec(workload=("seven-jobs",), scheduler="easy", poll="5s"), dict, "state of another scheduler"),
        (RunSpec(workload=("seven-jobs",), scheduler="easy", order="fcfs"), dict, "state of another"),
    ],
)
def test_a_state_that_is_not_this_runs_is_refused(
    tmp_path: Path, state: dict[str, Any], spec: RunSpec, change: Callable[[Any], Any], says: str
) -> None:
    """The error says what differs, and the outputs so far remain."""
    before = (tmp_path / "so-far" / "out_jobs.csv").read_bytes()
    with pytest.raises(StateError, match=says):
        run(spec, RunOptions(out=tmp_path / "so-far", resume=change(state)))

    assert (tmp_path / "so-far" / "out_jobs.csv").read_bytes() == before


def test_missing_or_damaged_outputs_are_rejected(tmp_path: Path, state: dict[str, Any]) -> None:
    """Missing values are not invented."""
    with pytest.raises(PipistrelleError, match="cannot write the output"):
        run(SPEC, RunOptions(out=tmp_path / "empty", resume=state))
    file = tmp_path / "so-far" / "out_decisions.csv"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(PipistrelleError, match="the output is shorter than when the run was saved"):
        run(SPEC, RunOptions(out=tmp_path / "so-far", resume=state))
    bare: list[Any] = []
    run(SPEC, RunOptions(between=lambda pause: bare.append(pause.state())))
    with pytest.raises(PipistrelleError, match="no outputs so far"):
        run(SPEC, RunOptions(out=tmp_path / "so-far", resume=bare[0]))


class Own:
    """A policy of a user's own that tells no state."""

    name = "own"
    order = Fcfs()

    def decide(self, view: View) -> None:
        """Start what fits."""
        for job in list(view.waiting):
            if job.size <= view.free.count:
                view.start(job)


def test_what_cannot_be_told_is_said() -> None:
    """A policy without the methods, and a scheduler that was elsewhere."""
    with pytest.raises(PipistrelleError, match=r"the policy .*Own cannot save its state"):
        run_in_process("seven-jobs", Own(), options=RunOptions(between=lambda pause: pause.state()))
    seen: list[Pause] = []
    run(SPEC, RunOptions(between=seen.append))
    state = Pause(SPEC, seen[0].simulation, object()).state()  # type: ignore[arg-type]
    with pytest.raises(StateError, match="the scheduler's state is not in the snapshot"):
        run(SPEC, RunOptions(resume=state))


def test_invariants_detect_inconsistencies() -> None:
    """A view that received other events than the server sent is detected."""
    pauses: list[Pause] = []

    class Forgetful(Own):
        """It forgets a job that waits."""

        def decide(self, view: View) -> None:
            """Lose the first one."""
            for job in list(view.waiting):
                view.waiting.remove(job)

    def check(pause: Pause) -> None:
        if pause.simulation.engine.cluster.waiting:
            pauses.append(pause)
            with pytest.raises(AssertionError, match="queued on one side"):
                pause.check_invariants()

    with pytest.raises(PipistrelleError):
        run_in_process("seven-jobs", Forgetful(), options=RunOptions(between=check))
    assert pauses


@pytest.mark.parametrize("row", [0, 1, 4095, 4096, 4097, 8999, 9000])
def test_the_jobs_of_a_workload_can_be_sought(row: int) -> None:
    """From any row on they are those that come when all are taken one by one."""
    workload = generate(jobs=9000, units=8, seed=1, load=0.5)
    sought = WorkloadJobs(workload, "w0", labelled=True).from_row(row)

    expected = list(islice(WorkloadJobs(workload, "w0", labelled=True), row, None))
    assert [job.as_plain() for job in sought] == [job.as_plain() for job in expected]
