"""Comparing the scheduler slurm with a recording: figures, first differences, and damaged files."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.runs.recordings.tiny_recording import FILES, LOG, write_log, write_recording

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.runs.recordings.check import check_recording
from pipistrelle.runs.recordings.decisions import LogStep
from pipistrelle.runs.recordings.passes import Player
from pipistrelle.runs.recordings.recording import Recording
from pipistrelle.runs.recordings.whole_runs import recorded_timing


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Return the folder of a recording of three jobs."""
    return write_recording(tmp_path / "tiny")


def test_everything_is_equal(tiny: Path) -> None:
    """The tiny recording is what our scheduler does."""
    found = check_recording(tiny)
    assert {one.what: (one.equal, one.compared) for one in found.agreements} == {
        "main passes": (2, 2),
        "backfill passes": (1, 1),
        "backfill outcomes": (2, 2),
        "priorities": (3, 3),
        "starts of a pass": (3, 3),
        "starts of a run, delays recorded": (3, 3),
        "starts of a run, delays modelled": (3, 3),
    }
    assert found.waits == {
        ("partition", "batch"): pytest.approx(131 / 3),
        ("account", "physics"): pytest.approx(131 / 3),
    }
    assert [one.difference for one in found.runs] == ["", ""]


def test_late_answer_of_a_node_is_the_cause(tiny: Path) -> None:
    """The modelled run differs where a node answered late, and says so."""
    (tiny / "events.csv").write_text("time,event,id,detail\n228.0,complete,1,\n229.5,request,1,complete\n")
    write_log(tiny, LOG.replace("229.0 ", "230.0 ").replace("289.0", "290.0"))
    (tiny / "starts.csv").write_text(FILES["starts.csv"].replace("229.0", "230.0"))
    recorded, modelled = check_recording(tiny).runs
    assert (recorded.same, modelled.same) == (3, 2)
    assert modelled.difference == "job 2 starts at 230 s, in the simulation at 229 s"
    assert modelled.cause == (
        "the nodes of job 1, which ended at 228 s, answered after 1.50 s; the model assumes 0.02 s"
    )


def test_order_of_overdue_backfill_and_main_loop_is_read(tiny: Path) -> None:
    """A backfill pass shows it if only a pass of the main loop came shortly before it."""
    for second, after in ((400, True), (401, False)):
        main = "400.0 debug:  sched: Running job scheduler for full queue.\n"
        write_log(tiny, f"{LOG}{main}{second}.0 bf: beginning\n bf: completed testing 0(0) jobs, usec=0\n")
        assert recorded_timing(Recording(tiny)).looks_last == after


def test_pass_that_differs_is_named_with_its_line(tiny: Path) -> None:
    """A start on another node is a difference of the pass, and the cause of the runs' first difference."""
    write_log(tiny, LOG.replace("NodeList=n1 ", "NodeList=n2 ").replace("batch on n2", "batch on n1"))
    starts = FILES["starts.csv"].replace("main,n1,", "main,n2,").replace("backfill,n2", "backfill,n1")
    (tiny / "starts.csv").write_text(starts)
    found = check_recording(tiny)
    first = found.differences[0]
    assert first.time == 128
    assert first.where.endswith("decisions.log.xz:2")
    assert "('1', ('n2',))" in first.text
    assert all(run.difference == "job 1 starts at 128 s on n2, in the simulation on n1" for run in found.runs)
    assert all("decides a step at 128.00 s differently" in run.cause for run in found.runs)


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("jobs.csv", "1,127,", "1,soon,", "jobs.csv:2: wrong value of 'submit'"),
        ("jobs.csv", "batch,,1,,,,,,,10,100,", "batch,,1,", "jobs.csv:2: the line is damaged"),
        ("jobs.csv", "physics,batch,,2", "physics,gpu,,2", "jobs.csv:3: wrong value of 'partition'"),
        ("jobs.csv", "run_s", "run", "jobs.csv:1: a column is missing: expected the column 'run_s'"),
        ("starts.csv", "n2", "n9", "starts.csv:3: wrong value of 'nodes'"),
        ("starts.csv", "3,158", "7,158", "starts.csv:3: wrong value of 'id'"),
        ("starts.csv", FILES["starts.csv"], "", "starts.csv: the file is empty"),
        ("events.csv", "228.02", "later", "events.csv:3: wrong value of 'time'"),
        ("slurm.conf", "CPUs=4", "CPUs=four", "slurm.conf:7"),
        ("decisions.log.xz", "128.0 ", "x128.0 ", "decisions.log.xz:2: the line is damaged"),
        ("decisions.log.xz", "JobId=2 done", "JobId=8 done", "decisions.log.xz:16: the job is not in jobs.csv"),
        ("decisions.log.xz", "batch on n2", "batch on n7", "decisions.log.xz:10: the node is not in slurm.conf"),
        ("decisions.log.xz", "at 00:12:08", "at noon", "decisions.log.xz:8: the date is damaged"),
        ("decisions.log.xz", "JobId=3 done", "JobId=2 done", "decisions.log.xz:12: the job cannot be in this line"),
        ("decisions.log.xz", " bf: test for JobId=2 ", " bf: look at JobId=2 ", "that it has not tested"),
    ],
)
def test_damaged_line_is_named(tiny: Path, name: str, old: str, new: str, words: str) -> None:
    """One error names the file and the line."""
    if name == "decisions.log.xz":
        assert old in LOG
        write_log(tiny, LOG.replace(old, new, 1))
    else:
        text = (tiny / name).read_text()
        assert old in text
        (tiny / name).write_text(text.replace(old, new, 1))
    with pytest.raises(PipistrelleError) as caught:
        check_recording(tiny)
    assert words in str(caught.value)
    assert caught.value.exit_code == 2


def test_truncated_log_is_an_error(tiny: Path) -> None:
    """A log that was cut while it was copied is not read halfway."""
    path = tiny / "decisions.log.xz"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(PipistrelleError, match="truncated"):
        check_recording(tiny)


def test_a_job_that_never_fits_is_only_left_out_of_the_simulation(tiny: Path) -> None:
    """slurmctld may have let it wait until the end."""
    job = "-t 5 -n 4 -c 4 -N 1"
    with (tiny / "jobs.events").open("a") as file:
        file.write(f"-dt 140 -e submit_batch_job | -J jobid_4 -sim-walltime 9 --uid=ada {job} -A physics -p batch j\n")
    with (tiny / "jobs.csv").open("a") as file:
        file.write("4,140,ada,physics,batch,,1,4,4,,,,,5,9,,,,,j\n")
    assert [run.same for run in check_recording(tiny).runs] == [3, 3]


@pytest.mark.parametrize("more", [True, False])
def test_submissions_of_other_jobs_are_an_error(tiny: Path, more: bool) -> None:
    """A line too many or too few in jobs.events gives one message that names the job."""
    events = tiny / "jobs.events"
    kept = events.read_text().splitlines(keepends=True)
    events.write_text("".join([*kept, kept[0]] if more else kept[:-1]))
    with pytest.raises(PipistrelleError, match=r"job [34] is in only one of the files jobs\.events and jobs\.csv"):
        check_recording(tiny)


def test_a_late_answer_of_an_earlier_attempt_frees_no_node_of_the_next(tiny: Path) -> None:
    """A preempted job may be requeued before its last node has answered."""
    recording = Recording(tiny)
    player = Player(recording)
    sub = replace(recording.jobs["1"].job, number=9, nodes=2, tasks=2)
    job, _ = player.controller.submit(["9"], sub, 0)
    for answers in (("n1", "requeue", "n2"), ("n1",)):
        player.controller.start(job, {0: (1, 0, {}), 1: (1, 0, {})}, 10)
        player.controller.release(job, "PREEMPTED", 20, completing=True)
        for one in answers:
            kind, node = ("requeue", None) if one == "requeue" else ("epilog", one)
            getattr(player, f"on_{kind}")(LogStep(20.0, kind, "log:1", "9", node))
    assert player.controller.machine.names_of(player.controller.machine.completing) == ["n2"]
