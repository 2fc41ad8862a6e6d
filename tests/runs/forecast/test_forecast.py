"""Forecasts of a live Slurm cluster: pinned jobs, agreement with ordinary runs and recordings, quantiles, what-if."""

import json
from math import inf
from pathlib import Path

import pytest
from tests.runs.forecast.live_recording import ZERO, last_moment, runtimes, show_jobs, starts_after

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.runs.forecast.files import forecast_files
from pipistrelle.runs.forecast.forecast import Forecaster
from pipistrelle.runs.slurm.cluster import load_cluster
from pipistrelle.schedulers.slurm.config.submission import Submission
from pipistrelle.schedulers.slurm.daemon import Daemon
from pipistrelle.schedulers.slurm.passes.controller import Controller
from pipistrelle.traces.slurm.state.read import read_state

LIVE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "live"
FILES = [str(LIVE / name) for name in ("squeue.txt", "nodes.txt", "reservations.txt", "sshare.txt")]
#: 2026-01-05T08:00:00
NOW = 1_767_600_000
CONF = (
    "ClusterName=small\nSelectType=select/linear\nPriorityType=priority/basic\n"
    "NodeName=n[1-4] CPUs=4 RealMemory=8000\n"
    "PartitionName=batch Nodes=ALL Default=YES MaxTime=600 OverSubscribe=EXCLUSIVE\n"
)
HEAD = "2026-01-05T08:00:00\nJOBID|PARTITION|STATE|NODES|TIME_LIMIT|SUBMIT_TIME|START_TIME|TIME|NODELIST|PRIORITY\n"


def live(replicas=9, **more):
    """Return the forecast of the example."""
    past = [str(LIVE / "history.txt")]
    given = {"history": past, "replicas": replicas, **more}
    return forecast_files(FILES, str(LIVE / "slurm.conf"), [str(LIVE / "accounts.txt")], **given)


def small(tmp_path, rows, conf=CONF, **more):
    """Return {id: forecast} of a small cluster with these rows of squeue."""
    (tmp_path / "slurm.conf").write_text(conf)
    (tmp_path / "squeue.txt").write_text(HEAD + rows)
    found = forecast_files([tmp_path / "squeue.txt"], str(tmp_path / "slurm.conf"), **more)
    return {job.id: job for job in found.jobs}, found


def test_running_jobs_hold_their_nodes_until_their_limits(tmp_path):
    """A job starts when the nodes of running jobs are free, at the end of what is left of their limits."""
    jobs, _ = small(
        tmp_path,
        "1|batch|R|3|1:00:00|2026-01-05T07:00:00|2026-01-05T07:30:00|30:00|n[1,3-4]|9\n"
        "2|batch|PD|2|30:00|2026-01-05T07:40:00|N/A|0:00||8\n"
        "3|batch|PD|1|20:00|2026-01-05T07:45:00|N/A|0:00||7\n",
    )
    assert NOW + 1800 <= jobs["2"].start <= NOW + 1830
    assert jobs["3"].nodes == "n2"
    assert jobs["3"].start <= NOW + 60


def test_nodes_out_of_service_and_reservations_are_kept_free(tmp_path):
    """No job starts on a node that is drained, or on reserved nodes if its limit reaches into the reservation."""
    (tmp_path / "nodes.txt").write_text(
        "NodeName=n1 State=DOWN*\n   Reason=x\n\nNodeName=n2 State=IDLE\n\n"
        f"ReservationName=r StartTime={NOW + 3600} EndTime={NOW + 7200}\n   Nodes=n[2-4] Flags=MAINT Users=root\n"
    )
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "squeue.txt").write_text(
        HEAD + "2|batch|PD|4|10:00|2026-01-05T07:40:00|N/A|0:00||8\n"
        "3|batch|PD|3|30:00|2026-01-05T07:45:00|N/A|0:00||7\n4|batch|PD|3|45:00|2026-01-05T07:46:00|N/A|0:00||6\n"
    )
    found = forecast_files([tmp_path / "squeue.txt", tmp_path / "nodes.txt"], str(tmp_path / "slurm.conf"))
    jobs = {job.id: job for job in found.jobs}
    assert found.out == 1
    assert jobs["2"].start is None
    assert jobs["3"].start < NOW + 60
    assert jobs["3"].nodes == "n[2-4]"
    assert jobs["4"].start >= NOW + 7200


def test_a_forecast_is_the_run_from_the_same_state():
    """The starts are those of a controller that plays the same jobs from an empty cluster."""
    config = load_cluster(str(LIVE / "slurm.conf"), [str(LIVE / "accounts.txt")]).config
    state = read_state(FILES[:1])
    for job in state.jobs:
        job.dependency = ""
        job.tasks_of_array = None
        job.priority = None if job.priority else 0
    state.jobs = [job for job in state.jobs if job.waits and job.priority is None]
    made = Forecaster(config, state, at=NOW)
    zero = made.situation.zero
    ours = made.starts(lambda _, job: job.limit / 2)

    from msgspec.structs import replace

    controller = Controller(replace(config, start=float(made.situation.now), epoch=zero))
    daemon = Daemon(controller)
    now = made.situation.now
    records = {}
    for entry in made.situation.waiting:
        sub: Submission = entry.sub
        job, refused = controller.submit(entry.ids, sub, int(sub.submit))
        assert not refused
        records[entry.shown] = job
    controller.set_priorities(now)
    daemon.request(now)
    daemon.touch(now)
    theirs, ends = {}, []
    while len(theirs) < len(records):
        due = daemon.next_time()
        if ends and min(ends)[0] < due:
            ends.sort()
            end, _, job = ends.pop(0)
            daemon.catch_up(end)
            daemon.ended(job, "COMPLETED", end, end + 0.035)
            continue
        for job in daemon.advance(due).started:
            theirs[job.ids[0]] = (zero + int(due), controller.machine.names_of(job.nodes))
            ends.append((job.start + job.limit / 2, job.serial, job))
    assert ours == theirs


def test_quantiles_are_ordered_and_follow_the_seed():
    """10, 50 and 90 % are in order, equal for equal seeds, and not later than by whole limits for most jobs."""
    found, again, other = live(), live(), live(seed=1)
    assert found == again
    assert found.replicas == 9
    assert found.history == 120
    assert [job.median for job in found.jobs] != [job.median for job in other.jobs]
    for job in found.jobs:
        known = [time for time in (job.early, job.median, job.late) if time is not None]
        assert known == sorted(known)
        assert all(time >= found.now for time in known)
    held = next(job for job in found.jobs if job.id == "109")
    assert (held.start, held.median, held.reason, held.started) == (None, None, "JobHeldUser", 0.0)
    assert (
        next(job for job in found.jobs if job.id == "106").start
        >= next(job for job in found.jobs if job.id == "105").start + 3600
    )


def test_without_history_there_is_one_run_by_limits():
    """Without past jobs there are no quantiles, and the forecast says so."""
    found = live(history=[])
    assert found.replicas == 0
    assert all(job.median is None for job in found.jobs)


def test_a_tried_job_is_marked_and_only_delays_jobs_behind_it():
    """The starts of jobs with a higher priority do not change; the table has the tried job and the delays."""
    plain = {job.id: job for job in live(history=[]).jobs}
    call = "sbatch -N 2 -n 8 -t 4:00:00 -A biology --uid=eve"
    found = live(history=[], what_if=[call])
    (tried,) = [job for job in found.jobs if job.tried]
    assert (tried.id, tried.account, tried.node_count, tried.qos) == ("what-if", "biology", 2, "normal")
    changed = {job.id for job in found.jobs if not job.tried and job.start != plain[job.id].start}
    assert all(plain[name].priority < tried.priority or plain[name].reason == "Dependency" for name in changed)
    assert {job.id for job in found.jobs if job.shift} == changed
    array = live(history=[], what_if=["sbatch --array=1-3 -n1 -t 5 -p gpu --uid=ada", call])
    assert {job.id: job.tasks for job in array.jobs if job.tried} == {"what-if-1": 3, "what-if-2": 1}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("sbatch -N x", "--nodes"),
        ("sbatch -N 2 -p none --uid=ada", "invalid partition"),
        ("sbatch -N 2", "invalid account"),
        ("sbatch 'x", "split"),
    ],
)
def test_a_tried_job_that_slurm_would_refuse_is_an_error(call, words):
    """The message names the option and the cause."""
    with pytest.raises(PipistrelleError, match=words):
        live(history=[], what_if=[call])


def test_jobs_and_nodes_that_do_not_fit_are_counted(tmp_path):
    """Unknown nodes, partitions and associations are warnings with a count; the others are forecast."""
    (tmp_path / "sshare.txt").write_text("Account|User|RawUsage\nx|ada|5\n")
    (tmp_path / "squeue.txt").write_text(
        HEAD + "1|batch|R|1|1:00:00|2026-01-05T07:00:00|2026-01-05T07:30:00|30:00|n9|9\n"
        "2|other|PD|1|30:00|2026-01-05T07:40:00|N/A|0:00||8\n3|batch|PD|1|N/A|N/A|N/A|0:00||7\n"
        "4|batch|S|1|1:00:00|2026-01-05T07:00:00|2026-01-05T07:30:00|30:00||6\n5+1|batch|PD|1|5|N/A|N/A|0:00||5\n"
    )
    (tmp_path / "slurm.conf").write_text(CONF)
    found = forecast_files([tmp_path / "squeue.txt", tmp_path / "sshare.txt"], str(tmp_path / "slurm.conf"))
    said = "\n".join(found.remarks)
    for words in (
        "associations of sshare that the accounting does not have: 1",
        "invalid partition other): 1",
        "without a time limit",
        "without a time of submission",
        "suspended jobs, taken as running: 1",
        "heterogeneous jobs, skipped: 1",
        "without a list of nodes, for which nodes were chosen: 1",
        "nodes of running jobs that slurm.conf does not have: 1",
    ):
        assert words in said, said
    assert [job.id for job in found.jobs] == ["3"]


def test_the_moment_must_be_known(tmp_path):
    """Without a running job, a date or --at, the error says what to give."""
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "squeue.txt").write_text("JOBID|PARTITION|STATE|NODES\n1|batch|PD|1\n")
    with pytest.raises(PipistrelleError, match="--at"):
        forecast_files([tmp_path / "squeue.txt"], str(tmp_path / "slurm.conf"))
    found = forecast_files([tmp_path / "squeue.txt"], str(tmp_path / "slurm.conf"), at="2026-01-05T08:00:00")
    assert found.jobs[0].start == NOW + 3


def test_without_a_date_the_forecast_begins_at_the_last_test_of_a_job(tmp_path):
    """squeue --json of Slurm 22.05 has no other time; a warning says so."""
    job = {"job_id": 7, "partition": "batch", "job_state": "PENDING", "last_sched_evaluation": NOW}
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "squeue.json").write_text(json.dumps({"jobs": [job, job | {"job_id": 8}]}))
    for more, warns in (({}, True), ({"at": str(NOW)}, False)):
        found = forecast_files([tmp_path / "squeue.json"], str(tmp_path / "slurm.conf"), **more)
        assert found.now == NOW
        assert ("begins when Slurm last tested a job; jobs: 2" in " ".join(found.remarks)) == warns


@pytest.mark.parametrize(("name", "same", "error"), [("a", 0.7, 2.0), ("b", 0.9, 1.0), ("c", 0.9, 1.0)])
def test_starts_of_recordings_are_forecast(slurm22_dir, tmp_path, name, same, error):
    """From the state at a moment of a recording, with true run times, the starts are those of the real slurmctld.

    Requests for passes come at modelled times, so some starts differ by a second or a pass. The priorities of b at that
    moment are not recorded, so they are computed.
    """
    folder = slurm22_dir / name
    at = last_moment(folder)
    (tmp_path / "jobs.txt").write_text(show_jobs(folder, at, priorities=name != "b"))
    state = read_state([tmp_path / "jobs.txt"])
    assert state.now == ZERO + at
    config = load_cluster(str(folder / "slurm.conf"), strict=False).config
    times = runtimes(folder)
    found = Forecaster(config, state).starts(
        lambda job, record: times[job] if times[job] < record.limit else inf, ZERO + at + 1e6
    )
    real = starts_after(folder, at)
    errors = [abs(found[job][0] - ZERO - time) for job, (time, _) in real.items()]
    assert sum(one == 0 for one in errors) >= same * len(real)
    assert sum(errors) / len(errors) <= error
