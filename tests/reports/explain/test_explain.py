"""Why a job waited: explanations against cases worked by hand and independent counts."""

import csv
import json
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path

import pytest

from pipistrelle.platforms.classes import JobClass
from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.reports.explain.explanation import Explanation, explain, look_at
from pipistrelle.reports.explain.looks import Seen, TooMuch
from pipistrelle.reports.explain.replay import replay
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import RunOptions, run_in_process
from pipistrelle.runs.folders.files import ExplainError, find_job, read_run
from pipistrelle.runs.inputs.named import load_workload
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.maui.config.read import parse_maui_config
from pipistrelle.schedulers.maui.policy import MauiPolicy
from pipistrelle.schedulers.policy.interfaces import Policy
from pipistrelle.server.setup.setup import Setup
from pipistrelle.traces.workload import Workload

#: a job: submit time, size, runtime, walltime, and labels
Row = tuple[float, int, float, float, dict[str, str]]
Maker = Callable[[], Policy]


def job(submit: float, size: int, runtime: float, walltime: float | None = None, **labels: str) -> Row:
    """Return a job; without ``walltime`` it requests its run time."""
    return submit, size, runtime, runtime if walltime is None else walltime, labels


class Case:
    """A run in a folder, with explanations of its jobs, numbered from 1."""

    #: of objects that no description names
    spec = RunSpec(workload=(), scheduler=())

    def __init__(self, folder: Path, jobs: Sequence[Row] | Workload, make: Maker, machine: Platform) -> None:
        self.folder, self.make = folder, make
        if isinstance(jobs, Workload):
            workload = jobs
        else:
            path = folder.parent / "jobs.json"
            path.write_text(json.dumps(_described(jobs, machine.units)), encoding="utf-8")
            workload = load_workload(str(path))
        self.setup = Setup.of(machine, workload)
        run_in_process(workload, make(), platform=machine, options=RunOptions(out=folder))

    def seen(self, number: int) -> Seen:
        """Return what a replay shows for a job."""
        return replay(self.spec, self.setup, self.make(), read_run(self.folder), until=inf).of(f"w0!{number}")

    def explained(self, number: int, *, alone: bool = False) -> Explanation:
        """Return why a job waited, by the outputs ``alone`` or with a replay."""
        files = read_run(self.folder)
        seen = None if alone else self.seen(number)
        return explain(files, files.jobs[f"w0!{number}"], seen, not_replayed="alone" if alone else None)

    def rows(self) -> dict[str, dict[str, str]]:
        """Return the lines of the jobs file by job id."""
        with (self.folder / "out_jobs.csv").open(encoding="utf-8", newline="") as file:
            return {f"w0!{row['job_id']}": row for row in csv.DictReader(file)}


def _described(jobs: Sequence[Row], units: int) -> dict[str, object]:
    listed = [
        {"id": str(number), "subtime": submit, "res": size, "walltime": walltime, "profile": f"d{runtime}", **labels}
        for number, (submit, size, runtime, walltime, labels) in enumerate(jobs, 1)
    ]
    profiles = {f"d{runtime}": {"type": "delay", "delay": runtime} for _, _, runtime, _, _ in jobs}
    return {"nb_res": units, "jobs": listed, "profiles": profiles}


def nodes(count: int, *classes: JobClass) -> Platform:
    """Return a machine of alike nodes."""
    return Platform(name="m", pools=(Pool(name="all", nodes=count),), classes=classes)


@pytest.fixture
def case(tmp_path: Path) -> Callable[..., Case]:
    """Return a function that runs jobs on a machine under a policy."""

    def run(jobs: Sequence[Row] | Workload, make: str | Maker = "easy", machine: Platform | None = None) -> Case:
        folder = tmp_path / "run"
        return Case(folder, jobs, (lambda: make_policy(make)) if isinstance(make, str) else make, machine or nodes(4))

    return run


def stretches(explanation: Explanation) -> list[tuple[float, float, str]]:
    """Return the timeline as (begin, end, limit)."""
    return [(one.begin, one.end, one.limit) for one in explanation.timeline]


#: 2 waits for all nodes, which 1 gives free at 100; 3 fits before that, 4 does not
BACKFILLED = (job(0, 3, 100), job(1, 4, 50), job(2, 1, 60, 90), job(3, 1, 200))


def test_a_job_that_waits_for_nodes(case):
    """The first in the queue lacks units all the time, has one reservation, and is passed without a delay."""
    found = case(BACKFILLED).explained(2)

    assert stretches(found) == [(1.0, 100.0, "units")]
    assert found.timeline[0].free == (0, 1)
    assert [(one.time, one.start) for one in found.reservations] == [(1.0, 100.0)]
    (passing,) = found.passed_by
    assert (passing.job, passing.started, passing.ended, passing.reservation) == ("w0!3", 2.0, 62.0, 100.0)
    assert not passing.may_delay
    assert found.answer == (
        "w0!2 waited 1 min 39 s: for 1 min 39 s fewer units were free than the 4 it needs; it was passed by 1 job that "
        "came later, which did not delay it."
    )


def test_who_held_the_units_and_who_was_passed(case):
    """The unit-seconds while units were lacking, and the earlier jobs that still waited."""
    run = case(BACKFILLED)

    assert [(one.job, one.held) for one in run.explained(2).holders] == [("w0!1", 297.0), ("w0!3", 60.0)]
    # Until 62 all were held by 1 and 3, from 100 to 150 by 2; in between one was free and kept.
    held = [(one.job, one.held) for one in run.explained(4).holders]
    assert held == [("w0!2", 200.0), ("w0!1", 177.0), ("w0!3", 59.0)]
    for alone in (False, True):
        assert [(one.job, one.started) for one in run.explained(3, alone=alone).passed] == [("w0!2", 100.0)]
        assert run.explained(4, alone=alone).passed == []


def test_an_index_of_too_many_jobs(case, monkeypatch, tmp_path):
    """Above the memory limit the answer for the job is the same, and nothing is kept."""
    folder = case(BACKFILLED).folder
    files = read_run(folder)
    monkeypatch.setattr("pipistrelle.reports.explain.replay.MOST_LOOKS", 3)
    run = case(BACKFILLED)
    with pytest.raises(TooMuch):
        replay(run.spec, run.setup, run.make(), files, until=inf)
    only = replay(run.spec, run.setup, run.make(), files, until=inf, only=lambda one, _: one == "w0!4")

    assert list(only.looks) == ["w0!4"]
    monkeypatch.undo()
    whole = replay(run.spec, run.setup, run.make(), files, until=inf)
    assert only.of("w0!4") == whole.of("w0!4")


def test_a_job_for_which_units_are_free_but_kept(case):
    """The one behind it sees no unit, then one that it may not have, then none again."""
    found = case(BACKFILLED).explained(4)

    assert stretches(found) == [(3.0, 62.0, "units"), (62.0, 100.0, "order"), (100.0, 150.0, "units")]
    assert found.timeline[1].first == "w0!2"
    assert found.timeline[1].place == (2, 2)
    assert found.limits == {"units": 109.0, "order": 38.0}
    assert found.passed_by == []


def test_a_job_that_started_at_once(case):
    """The job did not wait, so there is nothing to explain."""
    found = case(BACKFILLED).explained(1)

    assert found.answer == "w0!1 did not wait: it started when it was submitted, at 0 s."
    assert found.timeline == []


@pytest.mark.parametrize("alone", [False, True])
def test_who_passes_and_holds_what_is_lacking_may_delay(case, alone):
    """Under `filler` a job of one node keeps one of four from starting at 100; a short one before does not."""
    jobs = (job(0, 2, 100), job(1, 4, 50), job(2, 1, 60), job(3, 1, 200))
    found = case(jobs, "filler").explained(2, alone=alone)

    assert found.started == 203.0
    assert {one.job: one.may_delay for one in found.passed_by} == {"w0!3": False, "w0!4": True}
    assert stretches(found) == [(1.0, 203.0, "units")]


def test_reservations_under_conservative(case):
    """Two planned starts of the third job: first behind the second, then replanned when the first ends early."""
    jobs = (job(0, 3, 80, 100), job(1, 2, 50), job(2, 3, 10))
    found = case(jobs, "conservative").explained(3)

    assert [(one.time, one.start) for one in found.reservations] == [(2.0, 150.0), (80.0, 130.0)]
    assert found.started == 130.0
    assert [one.time for one in case(jobs, "conservative").seen(2).looks] == [1.0, 2.0]


def test_who_takes_the_room_of_a_class(case):
    """A class of four nodes delays a job of three; only jobs that passed it in that class may have delayed it."""
    jobs = (
        job(0, 2, 100, queue="q", user="ann"),
        job(1, 3, 10, queue="q", user="bob"),
        job(2, 2, 300, queue="q", user="cid"),
        job(3, 1, 300, queue="z", user="bob"),
    )
    found = case(jobs, machine=nodes(8, JobClass(name="q", max_nodes=4))).explained(2)

    assert stretches(found) == [(1.0, 302.0, "class")]
    assert "max_nodes" in found.timeline[0].detail
    assert {one.job: one.may_delay for one in found.passed_by} == {"w0!3": True, "w0!4": False}


def test_who_takes_the_room_of_a_user(case):
    """The per-user limit of a class counts only that user's jobs."""
    jobs = (
        job(0, 2, 100, queue="q", user="ann"),
        job(1, 2, 10, queue="q", user="ann"),
        job(2, 2, 300, queue="q", user="cid"),
    )
    found = case(jobs, machine=nodes(8, JobClass(name="q", max_nodes_per_user=2))).explained(2)

    assert stretches(found) == [(1.0, 100.0, "class")]
    assert [one.may_delay for one in found.passed_by] == [False]


def test_a_job_that_joins_the_queue_late_may_be_delayed_by_a_reservation(case):
    """Under `conservative` its first reservation is behind a job that starts at that very moment in its stead."""
    jobs = (
        job(0, 2, 100, queue="q", user="ann"),
        job(1, 2, 10, queue="q", user="ann"),
        job(2, 8, 50, queue="z", user="bob"),
    )
    found = case(jobs, "conservative", nodes(8, JobClass(name="q", max_nodes=2))).explained(2)

    assert [(one.time, one.start) for one in found.reservations] == [(100.0, 150.0)]
    assert [(one.job, one.may_delay) for one in found.passed_by] == [("w0!3", True)]


MAUI = """
QUEUETIMEWEIGHT 1
CREDWEIGHT      1
USERWEIGHT      10
FSWEIGHT        5
FSUSERWEIGHT    2
FSPOLICY        DEDICATEDPS
FSDEPTH         4
FSINTERVAL      00:10:00
FSDECAY         0.5
USERCFG[ann]    PRIORITY=3 FSTARGET=10 MAXJOB=1
"""


def test_one_that_a_class_let_in_late_waits_behind_earlier_reservations(case):
    """Under conservative job 2 is the first from 100 s on, but 4, submitted later, was promised all nodes at 200 s."""
    jobs = (job(0, 2, 100, queue="c"), job(0, 2, 300, queue="c"), job(0, 2, 200), job(1, 4, 50))
    found = case(jobs, "conservative", nodes(4, JobClass(name="c", max_nodes=2))).explained(2)

    assert stretches(found) == [(0.0, 100.0, "class"), (100.0, 200.0, "other"), (200.0, 250.0, "units")]
    assert found.timeline[1].detail == "w0!4, behind it, has an earlier reservation"
    assert [(one.time, one.start) for one in found.reservations][-1] == (100.0, 250.0)
    assert [(one.job, one.may_delay) for one in found.passed_by] == [("w0!3", False), ("w0!4", False)]


def test_the_terms_of_a_priority_under_maui(case):
    """At 4 s ann has used 8 of 14 processor-seconds: 10 x (10 - 57.14), beside 10 x 3 and 3 s in minutes."""
    jobs = (
        job(0, 2, 100, user="ann"),
        job(1, 2, 10, user="ann"),
        job(2, 2, 300, user="bob"),
        job(3, 2, 300, user="cid"),
        job(4, 1, 300, user="bob"),
    )
    found = case(jobs, lambda: MauiPolicy(parse_maui_config(MAUI)[0]), nodes(16)).explained(2)

    assert stretches(found) == [(1.0, 100.0, "limit")]
    assert found.timeline[0].detail == "USERCFG[ann] MAXJOB=1, in use: 1"
    assert [one.time for one in found.priorities] == [1.0, 2.0, 3.0, 4.0]
    for one, share in zip(found.priorities, (2 / 2, 4 / 4, 6 / 8, 8 / 14), strict=True):
        assert one.terms["FS.FSUSER"] == pytest.approx(10 * (10 - 100 * share))
        assert one.terms["CRED.USER"] == 30.0
        assert one.terms["SERV.QUEUETIME"] == pytest.approx((one.time - 1) / 60)
    assert not any(one.may_delay for one in found.passed_by), "MAXJOB counts ann's jobs only"


def test_the_terms_of_a_priority_under_pbs(case):
    """The formula's value and its terms, at every check while units were free."""

    def make() -> Policy:
        return make_policy("pbs", order_options={"formula": "2*eligible_time + 1000*ncpus"})

    found = case(BACKFILLED, make).explained(2)

    assert found.priorities[0].time == 1.0
    for one in found.priorities:
        assert dict(one.terms) == {"priority": 2 * (one.time - 1) + 4000, "eligible_time": one.time - 1, "ncpus": 4.0}


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("USERCFG[DEFAULT] MAXJOB=1", "USERCFG[DEFAULT] MAXJOB=1 (user ann), in use: 1"),
        (
            "FSPOLICY DEDICATEDPS\nFSDEPTH 1\nFSINTERVAL 1000\nUSERCFG[DEFAULT] FSTARGET=900^",
            "USERCFG[DEFAULT] FSTARGET=900^ (user ann) leaves 100 unit x s, the job needs 895",
        ),
    ],
)
def test_the_parameter_that_holds_is_named(case, text, detail):
    """The DEFAULT limit is reported with its owner, not a limit that is missing from the file."""
    jobs = (job(0, 8, 100, user="ann"), job(1, 5, 179, user="ann"))
    found = case(jobs, lambda: MauiPolicy(parse_maui_config(text)[0]), nodes(16)).explained(2)

    assert found.timeline[0].detail == detail


def test_a_dependency(case):
    """The server keeps a job until another has ended; then it waits for nodes, as others do."""
    jobs = (job(0, 2, 50), job(1, 1, 10, dependency="afterany:1"), job(20, 4, 100))
    run = case(jobs)
    files, seen = read_run(run.folder), run.seen(2)
    found = explain(files, files.jobs["w0!2"], seen, depends_on="afterany:w0!1")

    assert seen.queued == 50.0
    assert stretches(found) == [(1.0, 50.0, "dependency"), (50.0, 150.0, "units")]
    assert found.timeline[0].detail == "afterany:w0!1"
    assert [(one.job, one.may_delay) for one in found.passed_by] == [("w0!3", True)]


def test_a_dependency_that_is_never_satisfied(case):
    """The job waited until the other failed, and was rejected then."""
    run = case((job(0, 2, 200, 50), job(1, 1, 10, dependency="afterok:1")))

    assert run.seen(2).rejected == 50.0
    assert run.rows()["w0!2"]["final_state"] == "REJECTED"


def test_a_moment(case):
    """The last look that is not later counts."""
    seen = case(BACKFILLED).seen(4)

    looks = [look_at(seen, time) for time in (2.0, 3.0, 61.0, 62.0, 99.0)]
    assert looks[0] is None
    assert [None if look is None else (look.limit, look.free) for look in looks[1:]] == [
        ("units", 0),
        ("units", 0),
        ("order", 1),
        ("order", 1),
    ]


@pytest.mark.parametrize(
    "policy",
    ["easy", *(pytest.param(name, marks=pytest.mark.slow) for name in ("conservative", "pbs", "maui", "filler"))],
)
def test_every_account_agrees_with_the_outputs(case, small_workload, policy):
    """The stretches cover the whole wait; units were lacking where stated; passing jobs were submitted later."""
    run = case(small_workload(), policy, nodes(32))
    rows = run.rows()
    times = {
        name: (float(row["submission_time"]), float(row["starting_time"]), float(row["finish_time"]))
        for name, row in rows.items()
    }
    size = {name: int(row["requested_number_of_resources"]) for name, row in rows.items()}
    order = {f"w0!{number}": place for place, number in enumerate(run.setup.workloads["w0"].ids)}
    waited = sorted((name for name in rows if times[name][1] > times[name][0]), key=lambda name: order[name])
    assert len(waited) > 20

    for name in waited[:: len(waited) // 3]:
        submit, start, _ = times[name]
        found = run.explained(int(name.removeprefix("w0!")))
        assert [one.begin for one in found.timeline] == [submit, *(one.end for one in found.timeline[:-1])]
        assert found.timeline[-1].end == start
        assert sum(found.limits.values()) == pytest.approx(start - submit)
        for one in found.timeline:
            free = 32 - sum(size[other] for other in rows if times[other][1] <= one.begin < times[other][2])
            assert (free < size[name]) == (one.limit == "units")
        assert {one.job for one in found.passed_by} == {
            other
            for other in rows
            if (times[other][0], order[other]) > (submit, order[name]) and submit <= times[other][1] < start
        }


def test_a_scheduler_that_decides_otherwise_is_found_out(case):
    """Explaining a run by a replay that is another run would be wrong: the first start that differs is named."""
    run = case(BACKFILLED)
    files = read_run(run.folder)

    with pytest.raises(ExplainError, match=r"decides differently now.*w0!2 at 100 s, in the run w0!3 at 2 s"):
        replay(run.spec, run.setup, make_policy("fcfs"), files, until=inf)
    with pytest.raises(ExplainError, match="no start of w0!2, in the run at 100 s"):
        replay(run.spec, run.setup, make_policy("easy"), files, until=50.0)


def test_which_job_is_meant():
    """An id without its prefix will do where it is clear."""
    assert find_job("2", ["w0!1", "w0!2"], "run") == "w0!2"
    assert find_job("w0!2#1", ["w0!2", "w0!2#1"], "run") == "w0!2#1"
    with pytest.raises(ExplainError, match=r"several jobs are called '2'.*w0!2 or w1!2"):
        find_job("2", ["w0!2", "w1!2"], "run")
    with pytest.raises(ExplainError, match=r"no job '3'.*larger"):
        find_job("3", ["w0!1", "w0!2"], "run", "1 larger than the machine.")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("out_config.json", None, "the folder has no out_config.json"),
        ("out_config.json", b"{", "the file is not JSON"),
        ("out_config.json", b"[]", "the file is not a JSON object"),
        ("out_config.json", b"{}", "not a run's configuration"),
        ("out_jobs.csv", None, "the folder has no out_jobs.csv"),
        ("out_jobs.csv", b"", "the column job_id is missing"),
        ("out_jobs.csv", b"\xff\xfe", "not UTF-8"),
        ("out_decisions.csv", b"a,b\n", "the column time is missing"),
        ("out_machine_states.csv", b"time,nb_idle\nnan,1\n", "a value in the outputs is not a number.*'nan'"),
        ("out_machine_states.csv", b"time,nb_idle\n1,x\n", "a value in the outputs is not a number.*'x'"),
    ],
)
def test_a_folder_that_is_no_run(case, name, content, message):
    """One message says which file is wrong and why."""
    folder = case(BACKFILLED).folder
    (folder / "out_summary.json").unlink()  # this file lists the digests of the others, so it would be reported first
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)

    with pytest.raises(ExplainError, match=message):
        read_run(folder)


def test_a_run_that_was_killed_is_read_as_far_as_it_came(case):
    """A truncated last line is left out, and the run counts as incomplete."""
    run = case(BACKFILLED)
    for name in ("out_jobs.csv", "out_decisions.csv", "out_machine_states.csv"):
        path = run.folder / name
        path.write_bytes(path.read_bytes()[:-3])
    (run.folder / "out_summary.json").unlink()
    files = read_run(run.folder)

    assert len(files.jobs) == 3
    assert list(files.starts) == ["w0!1", "w0!3", "w0!2"]
    assert files.summary is None
    assert "incomplete" in run.explained(2).remarks[-1]
