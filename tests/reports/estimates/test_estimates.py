"""Estimates of a waiting job's start: right where nothing surprises the scheduler, else wrong by what did."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.reports.estimates.moments import glimpses
from pipistrelle.reports.estimates.queue_estimates import QueueThen, error_figures, queue_then, repeatable
from pipistrelle.reports.explain.making import setup_again
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.folders.files import ExplainError
from pipistrelle.schedulers.policy.errors import PolicyError

#: submit time, units, runtime, walltime (s); None: without one
Row = tuple[float, int, float, float | None]
Case = Callable[..., Path]
OWN = """
from pipistrelle.schedulers.orders.fixed import Fcfs


class Own:
    name, order = "own", Fcfs()

    def decide(self, view):
        for job in list(view.waiting):
            if job.size > view.free.count:
                return
            view.start(job, why="it is its turn")
"""
PREEMPTING = """
from pipistrelle.schedulers.orders.fixed import Fcfs


class Preempting:
    name, order, features = "preempting", Fcfs(), ("preemption",)

    def decide(self, view):
        for job in list(view.waiting):
            if job.size <= view.free.count:
                view.start(job)
                continue
            for other in list(view.running):
                if other.size > job.size and other.start < view.now and other.id not in view.going:
                    view.preempt(other, grace=5.0)
            return
"""
MAUI = "BACKFILLPOLICY FIRSTFIT\nQUEUETIMEWEIGHT 1\nRESWEIGHT 3\nRESERVATIONDEPTH 2\nFSPOLICY DEDICATEDPS\nFSWEIGHT 5\n"
MACHINE = """
name = "m"
[[pools]]
name = "all"
nodes = 8
"""


def jobs(rows: Sequence[Row], **more: str) -> dict[str, Any]:
    """Return a workload's file."""
    profiles = {f"d{runtime}": {"type": "delay", "delay": runtime} for _, _, runtime, _ in rows}
    listed = [
        {"id": str(number), "subtime": submit, "res": size, "profile": f"d{runtime}", "user": f"u{number % 3}"}
        | ({} if walltime is None else {"walltime": walltime})
        | ({"dependency": more[f"w{number}"]} if f"w{number}" in more else {})
        for number, (submit, size, runtime, walltime) in enumerate(rows, 1)
    ]
    return {"nb_res": 8, "jobs": listed, "profiles": profiles}


@pytest.fixture
def case(tmp_path: Path) -> Case:
    """Return a function that runs jobs under a policy, and returns the folder of the outputs."""

    def ran(rows: Sequence[Row], more: dict[str, str] | None = None, machine: str = MACHINE, **spec: Any) -> Path:
        (tmp_path / "jobs.json").write_text(json.dumps(jobs(rows, **(more or {}))), encoding="utf-8")
        (tmp_path / "machine.toml").write_text(machine, encoding="utf-8")
        for name, text in (("maui.cfg", MAUI), ("own.py", OWN), ("preempting.py", PREEMPTING)):
            (tmp_path / name).write_text(text, encoding="utf-8")
        described = {
            name: value.replace("TMP", str(tmp_path)) if isinstance(value, str) else value
            for name, value in spec.items()
        }
        workload, platform = (str(tmp_path / "jobs.json"),), str(tmp_path / "machine.toml")
        run(RunSpec(workload=workload, platform=platform, **described), RunOptions(out=tmp_path / "out"))
        return tmp_path / "out"

    return ran


def _placed(value: Any, folder: Path) -> Any:
    return value.replace("TMP", str(folder)) if isinstance(value, str) else value


def drawn(count: int, *, exact: bool) -> list[Row]:
    """Return jobs that arrive within 100 s; with ``exact`` they run for their walltime, else for less."""
    draw = np.random.default_rng(4)
    found: list[Row] = []
    for number in range(count):
        walltime = float(draw.integers(50, 500))
        runtime = walltime if exact else float(draw.integers(1, int(walltime)))
        found.append((float(number * 100 // count), int(draw.integers(1, 7)), runtime, walltime))
    return found


def told(found: QueueThen) -> dict[str, float | None]:
    """Return when each job was expected."""
    return {one.job: one.expected for one in found.jobs}


@pytest.mark.parametrize(
    "spec",
    [
        {"scheduler": "easy"},
        {"scheduler": "easy-sjbf"},
        {"scheduler": "conservative"},
        {"scheduler": "fcfs", "poll": "30s"},
        {"scheduler": "filler"},
        {"scheduler": "titan-bins"},
        {"scheduler": "pbs", "fairshare_shares": {"u1": 1.0, "u2": 3.0}},
        {"scheduler": "easy", "order": "bins"},
        {"scheduler": "easy", "reliability": "auto"},
        {"scheduler": "maui", "config": "TMP/maui.cfg"},
    ],
    ids=lambda spec: "-".join(map(str, spec.values())).replace("TMP/", ""),
)
def test_without_surprises_estimates_come_true(case: Case, spec: dict[str, Any]) -> None:
    """Jobs that use their full walltimes start when expected if no job arrives later, under every policy."""
    folder = case(drawn(40, exact=True), **spec)

    for at in (99.0, 640.5):
        found = queue_then(folder, at, {})
        assert len(found.jobs) > 5
        assert {one.outcome for one in found.jobs} == {"started"}
        assert told(found) == {one.job: one.happened for one in found.jobs}
        assert {one.error for one in found.jobs} == {0.0}
        assert all(one.limit is not None for one in found.jobs)


def test_an_error_is_what_jobs_took_less_than_they_asked_for(case: Case) -> None:
    """A job that waits for all units is expected at the walltime's end, and starts when the job before really ends."""
    folder = case([(0, 8, 60, 100), (1, 8, 50, 50), (2, 1, 10, 10)], scheduler="easy")

    found = queue_then(folder, 5.0, {})

    assert [(one.job, one.expected, one.happened, one.error) for one in found.jobs] == [
        ("w0!2", 100.0, 60.0, -40.0),
        ("w0!3", 150.0, 110.0, -40.0),
    ]
    assert [(one.place, one.limit, one.waited) for one in found.jobs] == [(1, "units", 4.0), (2, "units", 3.0)]
    assert (found.errors.jobs, found.errors.mean, found.errors.median, found.errors.earlier) == (2, -40.0, -40.0, 0)


def test_who_comes_later_makes_estimates_wrong(case: Case) -> None:
    """Without reservations a small job that comes later passes, and the other starts later than expected."""
    folder = case([(0, 5, 100, 100), (1, 8, 50, 50), (10, 3, 200, 200)], scheduler="filler")

    (one,) = queue_then(folder, 5.0, {}).jobs

    assert (one.expected, one.happened, one.error) == (100.0, 210.0, 110.0)


def test_jobs_without_a_walltime_end_never(case: Case) -> None:
    """A job that waits for such a job has no expected start and no error; the figures leave it out."""
    folder = case([(0, 8, 60, None), (1, 8, 50, 50)], scheduler="easy")

    found = queue_then(folder, 5.0, {})

    assert [(one.expected, one.happened, one.error) for one in found.jobs] == [(None, 60.0, None)]
    assert found.errors == error_figures([])


def test_who_depends_on_others_is_told_without_an_expected_start(case: Case) -> None:
    """The scheduler does not see a held job; the report says what the job waits for."""
    folder = case([(0, 8, 60, 100), (1, 8, 50, 50), (2, 1, 10, 10)], {"w3": "afterok:1"}, scheduler="easy")

    found = queue_then(folder, 5.0, {})

    assert [(one.job, one.limit, one.expected) for one in found.jobs] == [
        ("w0!2", "units", 100.0),
        ("w0!3", "dependency", None),
    ]
    assert found.jobs[1].detail == "afterok:w0!1"


def test_announced_maintenance_is_expected_and_a_failure_is_not(case: Case, tmp_path: Path) -> None:
    """Jobs are expected after announced maintenance; no repair is expected after a failure."""
    (tmp_path / "f.csv").write_text("node,down,up,cause\n7,20,400,x\n", encoding="utf-8")
    rows: list[Row] = [(0, 4, 60, 60), (1, 7, 100, 100), (2, 8, 10, 10)]
    folder = case(rows, scheduler="easy", maintenance=("@100 +50s all",), outages="TMP/f.csv")

    found = queue_then(folder, 30.0, {})

    assert told(found) == {"w0!2": 150.0, "w0!3": None}


def test_a_class_of_ones_own_is_asked_if_it_is_trusted(case: Case) -> None:
    """One moment needs no scheduler state; several do, and the error says so."""
    folder = case(drawn(40, exact=True), scheduler="TMP/own.py:Own")

    with pytest.raises(PipistrelleError, match="--trust"):
        queue_then(folder, 99.0, {})
    found = queue_then(folder, 99.0, {}, trust=True)
    assert {one.error for one in found.jobs} == {0.0}
    assert {one.why for one in found.jobs} == {"it is its turn"}

    spec, files = repeatable(folder, trust=True)
    with pytest.raises(PolicyError, match="state"):
        glimpses(spec, setup_again(spec, files), files, [50.0, 99.0])


@pytest.mark.parametrize(("requeue", "second", "third"), [("original", 115.0, 135.0), ("back", 15.0, 35.0)])
def test_preempted_jobs_go_and_come_back(case: Case, tmp_path: Path, requeue: str, second: float, third: float) -> None:
    """Expected starts include preemption: units are free after the grace; the job requeues in its place or last."""
    rows: list[Row] = [(0, 8, 100, 100), (10, 4, 20, 20), (11, 8, 40, 40)]
    (tmp_path / "f.csv").write_text("node,down,up,cause\n7,5000,5100,x\n", encoding="utf-8")
    folder = case(rows, scheduler="TMP/preempting.py:Preempting", requeue=requeue, outages="TMP/f.csv")

    for at in (12.0, 20.0):
        found = queue_then(folder, at, {}, trust=True)
        assert told(found) == {one.job: one.happened for one in found.jobs}
        assert told(found).get("w0!2", second) == second
        assert told(found).get("w0!3", third) == third


def test_several_moments_are_those_of_each_alone(case: Case) -> None:
    """Looking at a moment changes nothing: the estimates of a later one are the same."""
    folder = case(drawn(60, exact=False), scheduler="easy", order="bins")
    spec, files = repeatable(folder)

    found = glimpses(spec, setup_again(spec, files), files, [30.0, 99.0, 500.0])

    for one in found:
        alone = queue_then(folder, one.time, {})
        assert {job: expected for job, (expected, _) in one.foreseen.starts.items() if job in one.jobs} == told(alone)


def test_labels_choose(case: Case) -> None:
    """Labels restrict the list to matching jobs, with the same estimates; no match is an error."""
    folder = case(drawn(40, exact=False), scheduler="easy")

    whole, some = queue_then(folder, 99.0, {}), queue_then(folder, 99.0, {"user": "u1"})

    assert told(some) == {one.job: one.expected for one in whole.jobs if one.labels["user"] == "u1"}
    assert 0 < len(some.jobs) < len(whole.jobs)
    with pytest.raises(ExplainError, match="none of the"):
        queue_then(folder, 99.0, {"user": "nobody"})


def test_times_at_which_there_is_nothing_to_tell(case: Case) -> None:
    """A time outside the run, or one with an empty queue, is an error that states when jobs waited."""
    folder = case([(0, 8, 60, 100), (5, 8, 50, 50), (200, 8, 10, 10), (201, 8, 10, 10)], scheduler="easy")

    with pytest.raises(ExplainError, match="the only job that waited then is not of user nobody"):
        queue_then(folder, 10.0, {"user": "nobody"})
    for at, text in ((1e6, "under way"), (-1.0, "under way")):
        with pytest.raises(ExplainError, match=text):
            queue_then(folder, at, {})
    with pytest.raises(ExplainError, match="no job waited") as caught:
        queue_then(folder, 150.0, {})
    assert "until 60 s; the next waited from 201 s" in str(caught.value)


def test_a_run_that_goes_otherwise_now_is_not_told_of(case: Case) -> None:
    """Starts that differ from the run's are one error: the estimates would be those of another run."""
    folder = case(drawn(40, exact=False), scheduler="easy")
    (command := folder / "out_command.json").write_text(
        command.read_text(encoding="utf-8").replace('"scheduler": "easy"', '"scheduler": "filler"'), encoding="utf-8"
    )
    assert "filler" in command.read_text(encoding="utf-8")

    with pytest.raises(ExplainError, match="cannot be repeated"):
        queue_then(folder, 900.0, {})


def test_a_run_whose_scheduler_was_a_program_is_refused(case: Case) -> None:
    """No output holds the state of another process, and it cannot be restored; the error says so."""
    folder = case(drawn(10, exact=False), scheduler="easy")
    command = msgspec.json.decode((folder / "out_command.json").read_bytes())
    (folder / "out_command.json").write_bytes(msgspec.json.encode(command | {"scheduler": ["prog", "{endpoint}"]}))

    with pytest.raises(PipistrelleError, match="its scheduler was a program"):
        queue_then(folder, 9.0, {})


def test_figures_of_errors() -> None:
    """Means, median and counts are those of the signed errors."""
    found = error_figures([-100.0, 0.0, 30.0, 200.0])

    assert (found.jobs, found.mean, found.median, found.mean_absolute) == (4, 32.5, 15.0, 82.5)
    assert (found.least, found.most, found.later, found.earlier) == (-100.0, 200.0, 1, 1)
