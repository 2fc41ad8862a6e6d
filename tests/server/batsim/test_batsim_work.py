"""Jobs whose run time depends on their hosts: every profile type, mappings, walltimes, progress."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.server.errors import SetupError

PROFILES: dict[str, Any] = {
    "each": {"type": "parallel_homogeneous", "cpu": 1000, "com": 0},
    "total": {"type": "parallel_homogeneous_total", "cpu": 1000, "com": 0},
    "ranks": {"type": "parallel", "cpu": [1000, 250], "com": [0, 0, 0, 0]},
    "nothing": {"type": "parallel_homogeneous", "cpu": 0, "com": 0},
    "bad": {"type": "parallel_homogeneous", "cpu": 200, "com": 0, "ret": 9},
    "wait": {"type": "delay", "delay": 3},
    "both": {"type": "composed", "repeat": 2, "seq": ["each", "wait"]},
    "outer": {"type": "composed", "repeat": 1, "seq": ["wait", "both"]},
    "waits": {"type": "composed", "repeat": 4, "seq": ["wait"]},
    "fails": {"type": "composed", "repeat": 4, "seq": ["wait", "bad", "each"]},
    "totals": {"type": "composed", "repeat": 2, "seq": ["total", "total"]},
    "talk": {"type": "parallel_homogeneous", "cpu": 100, "com": 50},
}


@pytest.mark.parametrize(
    ("profile", "res", "seconds"),
    [
        ("each", 1, 10),
        ("each", 3, 10),
        ("total", 4, 2.5),
        ("ranks", 2, 10),
        ("nothing", 2, 0),
        ("both", 2, 26),
        ("outer", 2, 29),
        ("waits", 1, 12),
        ("totals", 2, 20),
    ],
)
def test_jobs_take_as_long_as_their_hosts_need(play, job, profile, res, seconds) -> None:
    """100 flop/s a host; the slowest rank counts, parts follow each other."""
    run = play([job("1", profile, res=res, at=1)], {"w0!1": f"0-{res - 1}"}, profiles=PROFILES)
    assert run.failure == ""
    assert run.job("1")["final_state"] == "COMPLETED_SUCCESSFULLY"
    assert float(run.job("1")["finish_time"]) == pytest.approx(1 + max(seconds, 1e-5), abs=2e-6)


def test_the_slowest_host_counts(play, job, machine) -> None:
    """Equal ranks on unequal hosts end when the last does; each rank's own host counts for unequal ones."""
    hosts = machine(1, "100f", inside='<host id="h9" speed="25f"/>')
    jobs = [job("1", "each", res=2), job("2", "ranks", res=2, at=50)]
    run = play(jobs, {"w0!1": "0-1", "w0!2": "0-1"}, profiles=PROFILES, hosts=hosts)
    assert [row["execution_time"] for row in run.rows("jobs")] == ["40.000000", "10.000000"]


def test_a_mapping_places_the_ranks(play, job, say, machine) -> None:
    """The heavy rank on the slow host, both ranks on one host's core, and fewer hosts than ranks."""
    hosts = machine(1, "100f", inside='<host id="h9" speed="25f"/>')
    for mapping, alloc, seconds in (
        ({"0": "1", "1": "0"}, "0-1", 40),
        ({"0": "0", "1": "1"}, "0-1", 10),
        ({"0": "0", "1": "0"}, "0", 12.5),
        ({"0": "0", "1": "0"}, "0-1", 12.5),
        ({"0": 0, "1": 0}, "1", 50),
    ):
        run = play(
            [job("1", "ranks", res=2, at=1)], {}, {1: [say.execute("w0!1", alloc, mapping=mapping)]},
            profiles=PROFILES, hosts=hosts,
        )  # fmt: skip
        assert run.failure == ""
        assert float(run.job("1")["execution_time"]) == pytest.approx(seconds)
        assert run.job("1")["allocated_resources"] == alloc


@pytest.mark.parametrize(
    ("mapping", "alloc", "text"),
    [
        ({"0": "0"}, "0-1", "executors 0-1"),
        ({"0": "0", "1": "1", "2": "0"}, "0-1", "executors 0-1"),
        ({"0": "0", "1": "2"}, "0-1", "a place in 'alloc'"),
        ({"0": "0", "2": "1"}, "0-1", "every rank from 0"),
        ({"0": "0", "1": "-1"}, "0-1", "whole numbers"),
        ({"0": "0", "1": "x"}, "0-1", "whole numbers"),
        ({}, "0-1", "every rank"),
        ({"0": "0", "1": "0"}, "0-", "cannot be read"),
        ({"0": "0", "1": "0"}, "", "executors"),
        ({"0": "0", "1": "0"}, "9", "unit 9"),
    ],
)
def test_a_mapping_that_cannot_be_is_illegal(play, job, say, mapping, alloc, text) -> None:
    """Exit code 3; every rank has a place in the allocation."""
    run = play(
        [job("1", "ranks", res=2, at=1)], {}, {1: [say.execute("w0!1", alloc, mapping=mapping)]}, profiles=PROFILES
    )
    assert run.failure.startswith("3: decision 0 (EXECUTE_JOB)")
    assert text in run.failure


def test_a_mapping_of_a_job_that_does_not_wait_is_illegal(play, job, say) -> None:
    """As without one."""
    run = play(
        [job("1", "ranks", res=2, at=1)], {}, {1: [say.execute("w0!7", "0", mapping={"0": "0"})]}, profiles=PROFILES
    )
    assert "no job w0!7" in run.failure


def test_a_total_goes_onto_any_number_of_hosts(play, job, say) -> None:
    """As in Batsim: totals, and sequences of totals; no other job may be given more or fewer hosts than it wants."""
    jobs = [job("1", "total", res=2), job("2", "totals", res=1, at=20)]
    run = play(jobs, {"w0!1": "0-3", "w0!2": "0-1"}, profiles=PROFILES)
    assert [row["execution_time"] for row in run.rows("jobs")] == ["2.500000", "20.000000"]
    assert [row["requested_number_of_resources"] for row in run.rows("jobs")] == ["2", "1"]
    run = play([job("1", "each", res=2)], {"w0!1": "0-3"}, profiles=PROFILES)
    assert "w0!1 needs 2 units" in run.failure


def test_a_walltime_ends_work(play, job) -> None:
    """Work that is done at the very walltime is done, unlike a delay."""
    jobs = [job("1", "each", walltime=10), job("2", "each", walltime=9.5), job("3", "both", walltime=13, at=0)]
    run = play(jobs, {"w0!1": "0", "w0!2": "1", "w0!3": "2"}, profiles=PROFILES)
    assert [(row["job_id"], row["final_state"], row["finish_time"]) for row in run.rows("jobs")] == [
        ("2", "COMPLETED_WALLTIME_REACHED", "9.500000"),
        ("1", "COMPLETED_SUCCESSFULLY", "10.000000"),
        ("3", "COMPLETED_WALLTIME_REACHED", "13.000000"),
    ]


def test_a_part_that_computes_and_fails_ends_the_whole(play, job) -> None:
    """3 s and 2 s of the first round, then its return code."""
    run = play([job("1", "fails")], {"w0!1": "0"}, profiles=PROFILES)
    assert run.story[-2:] == ["5: FAILED w0!1 (9) on 0", "5: simulation_ends"]


def test_the_progress_of_killed_work_is_nested_as_its_profile(play, job, say) -> None:
    """In Batsim's form: the current part and its progress; the wire has no share of the whole."""
    jobs = [job("1", "each"), job("2", "both"), job("3", "outer"), job("4", "waits"), job("5", "wait", at=9)]
    starts = {f"w0!{name}": str(name - 1) for name in range(1, 5)}
    kill = say.kill("w0!1", "w0!2", "w0!3", "w0!4")
    run = play(jobs, starts | {"w0!5": "4"}, {9: [kill]}, profiles=PROFILES, hosts=5)
    progress = run.events("JOB_KILLED")[0]["job_progress"]
    assert progress == {
        "w0!1": {"profile_name": "each", "progress": 0.9},
        "w0!2": {
            "profile_name": "both",
            "current_task_index": 0,
            "current_task": {"profile_name": "each", "progress": 0.9},
        },
        "w0!3": {
            "profile_name": "outer",
            "current_task_index": 1,
            "current_task": {
                "profile_name": "both",
                "current_task_index": 0,
                "current_task": {"profile_name": "each", "progress": 0.6},
            },
        },
        "w0!4": progress["w0!4"],
    }
    waits = progress["w0!4"]
    assert (waits["profile_name"], waits["current_task_index"]) in (("waits", 2), ("waits", 3))
    assert run.job("1")["execution_time"] == "9.000000"


def test_bytes_need_a_bandwidth(play, job) -> None:
    """Without one, jobs that send are refused before the run; with one they take as long as they must at least."""
    with pytest.raises(SetupError, match="profile 'talk' communicate"):
        play([job("1", "talk", res=2)], {"w0!1": "0-1"}, profiles=PROFILES)
    run = play([job("1", "talk", res=3)], {"w0!1": "0-2"}, profiles=PROFILES, bandwidth=10.0)
    assert run.job("1")["execution_time"] == "10.000000"  # each to two others


def test_work_needs_hosts_with_a_speed(play, job) -> None:
    """On a platform of nodes jobs that compute are refused before the run."""
    platform = Platform(name="nodes", description="", pools=(Pool(name="a", nodes=4),))
    with pytest.raises(SetupError, match="gives no speed"):
        play([job("1", "each")], {}, profiles=PROFILES, hosts=platform)


def test_a_usage_trace_computes_phase_by_phase(play, job, tmp_path: Path) -> None:
    """Its trace is beside the workload; the slowest rank ends the job."""
    (tmp_path / "both.txt").write_text("one.txt\ntwo.txt\n")
    (tmp_path / "one.txt").write_text("0 m_usage 1.0 500\n0 m_usage 0.5 250\n")
    (tmp_path / "two.txt").write_text("1 m_usage 1.0 900\n")
    profiles = {"trace": {"type": "usage_trace", "trace": "both.txt"}}
    run = play([job("1", "trace", res=2)], {"w0!1": "0-1"}, profiles=profiles)
    assert run.job("1")["execution_time"] == "9.000000"


def test_registered_work_is_done_like_that_of_the_files(play, job, say) -> None:
    """Profiles that compute, and composed ones, can be registered."""
    run = play(
        [job("1", "wait", at=1)], {"w0!1": "3"},
        {1: [say.register_profile("dyn", "each", **PROFILES["each"]),
             say.register_profile("dyn", "wait", **PROFILES["wait"]),
             say.register_profile("dyn", "both", **PROFILES["both"]),
             say.register("dyn!1", "both", res=2), say.execute("dyn!1", "0-1"),
             say.register("dyn!2", "each"), say.execute("dyn!2", "2"), say.notify("registration_finished")],
         4: [say.call(5)], 5: [say.kill("dyn!2")]},
        profiles=PROFILES, dynamic_jobs=True,
    )  # fmt: skip
    assert run.story[-4:] == [
        "5: requested_call",
        "5: KILLED dyn!2 (-1) on 2, killed dyn!2=0.4",
        "27: SUCCESSFULLY dyn!1 (0) on 0-1",
        "27: simulation_ends",
    ]


def test_declaring_the_end_of_work_frees_its_hosts(play, job, say) -> None:
    """No later event refers to it."""
    run = play(
        [job("1", "both"), job("2", "each", at=4)], {"w0!1": "0"},
        {4: [say.change("w0!1", "COMPLETED_FAILED"), say.execute("w0!2", "0")]}, profiles=PROFILES,
    )  # fmt: skip
    assert run.story[-2:] == ["14: SUCCESSFULLY w0!2 (0) on 0", "14: simulation_ends"]


def test_work_that_is_declared_to_run_elsewhere_is_done_nowhere(play, job, say) -> None:
    """A job that computes can be declared to run, to have ended, or be killed while it runs elsewhere."""
    run = play(
        [job("1", "each", at=1), job("2", "both", at=1), job("3", "wait", at=1)], {"w0!3": "0"},
        {1: [say.change("w0!1", "RUNNING"), say.change("w0!2", "RUNNING")],
         4: [say.change("w0!1", "COMPLETED_SUCCESSFULLY"), say.kill("w0!2")]},
        profiles=PROFILES,
    )  # fmt: skip
    assert run.failure == ""
    assert run.events("JOB_KILLED")[0]["job_progress"] == {"w0!2": {"profile_name": "both", "progress": 0.0}}
    assert (run.job("1")["final_state"], run.job("2")["final_state"]) == ("COMPLETED_SUCCESSFULLY", "COMPLETED_KILLED")


def test_equal_runs_send_equal_bytes(play, job, say) -> None:
    """Twice the same, frame by frame."""
    jobs = [job("0", "each"), job("1", "both", res=2, at=1), job("2", "total", at=2)]
    starts = {"w0!0": "0", "w0!1": "1-2", "w0!2": "3"}
    once, again = (json.dumps(play(jobs, starts, profiles=PROFILES).notices) for _ in range(2))
    assert once == again
