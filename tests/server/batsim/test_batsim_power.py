"""Power states, energy and shared hosts, against numbers worked out by hand."""

from collections.abc import Callable

import pytest

#: pstates 0 and 1 compute (100 and 50 flop/s); 2 is asleep, entered through 3 (5 s) and left through 4 (10 s)
SPEEDS = "100f,50f,1e-3f,0.2f,0.1f"
#: idle, next to no load, full load, W
WATTS = "90:100:200, 80:85:150, 9:9:9, 50:50:50, 70:70:70"
WORK = {
    "w1000": {"type": "parallel_homogeneous", "cpu": 1000, "com": 0},
    "w500": {"type": "parallel_homogeneous", "cpu": 500, "com": 0},
}


@pytest.fixture
def sleepers(machine) -> Callable[[int], object]:
    """Return the function that makes a machine with this number of hosts that can sleep."""
    return lambda hosts: machine(hosts, SPEEDS, wattage_per_state=WATTS, sleep_pstates="2:3:4")


def test_hosts_are_switched_off_and_on(play, job, say, sleepers) -> None:
    """One flop at the speed of the state in between: 5 s down and 10 s up, each announced when complete."""
    run = play(
        [job("1", "d10", at=1, res=2)], {},
        {0: [say.switch("0-1", "2")], 1: [say.call(20)], 20: [say.switch("0 1", 0)], 30: [say.execute("w0!1", "0-1")]},
        hosts=sleepers(3), energy=True,
    )  # fmt: skip
    assert run.story == [
        "0: simulation_begins",
        "1: submitted w0!1",
        "1: notify no_more_static_job_to_submit",
        "5: state 0-1=2",
        "20: requested_call",
        "30: state 0-1=0",
        "40: SUCCESSFULLY w0!1 (0) on 0-1",
        "40: simulation_ends",
    ]
    assert run.events("RESOURCE_STATE_CHANGED") == [
        {"resources": "0-1", "state": "2"},
        {"resources": "0-1", "state": "0"},
    ]
    columns = ("time", "nb_sleeping", "nb_switching_on", "nb_switching_off", "nb_idle", "nb_computing")
    assert [tuple(row[name] for name in columns) for row in run.rows("machine_states")] == [
        ("0", "0", "0", "2", "1", "0"),
        ("5", "2", "0", "0", "1", "0"),
        ("20", "0", "2", "0", "1", "0"),
        ("30", "0", "0", "0", "3", "0"),
        ("30", "0", "0", "0", "1", "2"),
        ("40", "0", "0", "0", "3", "0"),
    ]
    schedule = run.rows("schedule")[0]
    assert (schedule["nb_machine_switches"], schedule["nb_grouped_switches"]) == ("4", "2")
    assert schedule["time_switching_off"] == "10.000000"
    assert schedule["time_sleeping"] == "30.000000"
    assert schedule["time_switching_on"] == "20.000000"
    assert [tuple(row.values()) for row in run.rows("pstate_changes")] == [
        ("0", "0-2", "0"), ("0", "0-1", "-2"), ("5", "0-1", "2"), ("20", "0-1", "-1"), ("30", "0-1", "0"),
    ]  # fmt: skip


def test_the_energy_of_switching_and_sleeping(play, job, say, sleepers) -> None:
    """50 W for 5 s, 9 W for 15 s, 70 W for 10 s; during a delay job the host draws its idle power."""
    run = play(
        [job("1", "d10", at=1)], {},
        {0: [say.switch("0", "2")], 1: [say.call(20)], 20: [say.switch("0", "0"), say.query(consumed_energy={})],
         30: [say.execute("w0!1", "0")], 40: [say.query(consumed_energy={})]},
        hosts=sleepers(1), energy=True,
    )  # fmt: skip
    asleep = 5 * 50 + 15 * 9
    told = [answer["consumed_energy"] for answer in run.events("ANSWER")]
    assert told == pytest.approx([asleep, asleep + 10 * 70 + 10 * 90])
    assert float(run.job("1")["consumed_energy"]) == pytest.approx(10 * 90)
    # from the first submission, at 1 s, to the last end
    assert float(run.rows("schedule")[0]["consumed_joules"]) == pytest.approx(told[1] - 50)


def test_the_energy_of_jobs_that_compute(play, job, sleepers) -> None:
    """At full load the third figure counts; a job is billed for its own hosts while it runs, and idle ones for none."""
    jobs = [job("1", "w1000", res=2), job("2", "w500", at=4)]
    run = play(jobs, {"w0!1": "0-1", "w0!2": "2"}, profiles=WORK, hosts=sleepers(4), energy=True)
    assert run.story[-3:] == [
        "9: SUCCESSFULLY w0!2 (0) on 2",
        "10: SUCCESSFULLY w0!1 (0) on 0-1",
        "10: simulation_ends",
    ]
    assert float(run.job("1")["consumed_energy"]) == pytest.approx(2 * 10 * 200)
    assert float(run.job("2")["consumed_energy"]) == pytest.approx(5 * 200)
    whole = 2 * 10 * 200 + 5 * 200 + 5 * 90 + 10 * 90
    assert float(run.rows("schedule")[0]["consumed_joules"]) == pytest.approx(whole)
    assert float(run.rows("consumed_energy")[-1]["energy"]) == pytest.approx(whole)


def test_the_energy_of_jobs_that_are_killed_or_out_of_time(play, job, say, sleepers) -> None:
    """The energy drawn until then."""
    jobs = [job("1", "w1000", walltime=4), job("2", "w1000"), job("3", "w1000", at=6, res=9)]
    run = play(
        jobs, {"w0!1": "0", "w0!2": "1"}, {6: [say.kill("w0!2"), say.reject("w0!3")]},
        profiles=WORK, hosts=sleepers(2), energy=True,
    )  # fmt: skip
    assert float(run.job("1")["consumed_energy"]) == pytest.approx(4 * 200)
    assert float(run.job("2")["consumed_energy"]) == pytest.approx(6 * 200)
    assert run.job("3")["consumed_energy"] in ("", "-1.000000")


def test_another_speed_re_times_a_job(play, job, say, sleepers) -> None:
    """Half of the work at 100 flop/s and 200 W, the rest at 50 flop/s and 150 W; answered at once, without a delay."""
    jobs = [job("1", "w1000"), job("2", "d1", at=5)]
    run = play(
        jobs, {"w0!1": "0", "w0!2": "1"}, {5: [say.switch("0", "1")]}, profiles=WORK, hosts=sleepers(2), energy=True
    )
    assert run.story[2:] == [
        "5: submitted w0!2",
        "5: notify no_more_static_job_to_submit, state 0=1",
        "6: SUCCESSFULLY w0!2 (0) on 1",
        "15: SUCCESSFULLY w0!1 (0) on 0",
        "15: simulation_ends",
    ]
    assert float(run.job("1")["consumed_energy"]) == pytest.approx(5 * 200 + 10 * 150)
    assert [row["nb_computing"] for row in run.rows("machine_states")] == ["1", "2", "2", "1", "0"]


@pytest.mark.parametrize(
    ("resources", "state", "text"),
    [
        ("0", "2", "units of '0' have jobs"),
        ("1", "3", "no unit can be put there"),
        ("1", "5", "no pstate 5"),
        ("1", "-1", "no number of a pstate"),
        ("1", "off", "no number of a pstate"),
        ("9", "0", "unit 9; the machine has 0-2"),
        ("", "0", "names no unit"),
        ("2", "2", "being switched"),
        ("1-", "0", "no set of units"),
    ],
)
def test_states_that_hosts_cannot_go_to_are_illegal(play, job, say, sleepers, resources, state, text) -> None:
    """Exit code 3 with the reason."""
    run = play(
        [job("1", "d60", at=1)], {"w0!1": "0"}, {1: [say.switch("2", "2"), say.switch(resources, state)]},
        hosts=sleepers(3), energy=True,
    )  # fmt: skip
    assert run.failure.startswith("3: decision 2 (SET_RESOURCE_STATE)")
    assert text in run.failure


def test_no_job_starts_on_a_host_that_does_not_compute(play, job, say, sleepers) -> None:
    """Neither asleep nor on its way, nor does one that sleeps fall asleep."""
    for time in (2, 6, 9):
        run = play(
            [job("1", "d60", at=time)], {"w0!1": "0"}, {0: [say.switch("0", "2")], 6: [say.switch("0", "0")]}
            if time == 9 else {0: [say.switch("0", "2")]},
            hosts=sleepers(2), energy=True, events=[{"type": "x", "timestamp": 6}] if time == 9 else [],
            forward_unknown_events=True,
        )  # fmt: skip
        assert "switched off, switching or unavailable: 0" in run.failure
    run = play(
        [job("1", "d60", at=6)], {"w0!1": "1"}, {0: [say.switch("0", "2")], 6: [say.switch("0", "2")]},
        hosts=sleepers(2), energy=True,
    )  # fmt: skip
    assert "sleep already" in run.failure


def test_a_host_that_leaves_while_it_sleeps_wakes_up_nowhere(play, job, say, sleepers) -> None:
    """Unavailable hosts cannot be switched; back, they still sleep."""
    events = [{"type": "machine_unavailable", "timestamp": 6, "resources": "0"},
              {"type": "machine_available", "timestamp": 8, "resources": "0"}]  # fmt: skip
    jobs = [job("1", "d60", at=20)]
    answers = {0: [say.switch("0", 2)], 6: [say.switch("0", 0)]}
    run = play(jobs, {}, answers, hosts=sleepers(2), energy=True, events=events)
    assert "unavailable: 0" in run.failure
    run = play(jobs, {"w0!1": "0"}, {0: [say.switch("0", 2)]}, hosts=sleepers(2), energy=True, events=events)
    assert "switched off, switching or unavailable: 0" in run.failure
    run = play(
        jobs, {"w0!1": "0"}, {0: [say.switch("0", 2)], 8: [say.switch("0", 0)]},
        hosts=sleepers(2), energy=True, events=events,
    )  # fmt: skip
    assert run.job("1")["starting_time"] == "20.000000"


def test_the_run_waits_for_hosts_on_their_way(play, job, say, sleepers) -> None:
    """A switch in progress is announced before the end."""
    run = play([job("1", "d1", at=1)], {"w0!1": "0"}, {2: [say.switch("0", "2")]}, hosts=sleepers(1), energy=True)
    assert run.story[-2:] == ["7: state 0=2", "7: simulation_ends"]


# -- hosts of different kinds in one request ------------------------------------------------------------------------


@pytest.fixture
def mixed(machine) -> object:
    """Return a machine whose second host switches off in 8 s, and on in 20 s, instead of 5 s and 10 s."""
    slow = (
        '<host id="h9" speed="100f,50f,1e-3f,0.125f,0.05f">'
        f'<prop id="wattage_per_state" value="{WATTS}"/><prop id="sleep_pstates" value="2:3:4"/></host>'
    )
    return machine(1, SPEEDS, inside=slow, wattage_per_state=WATTS, sleep_pstates="2:3:4")


def test_hosts_of_one_request_arrive_each_at_its_time(play, job, say, mixed) -> None:
    """One RESOURCE_STATE_CHANGED when the last host arrives; each host has its own times."""
    run = play(
        [job("1", "d1", at=1)], {"w0!1": "1"},
        {2: [say.switch("0-1", "2")], 10: [say.call(20)], 20: [say.switch("0-1", "0")]}, hosts=mixed, energy=True,
    )  # fmt: skip
    assert run.story[-4:] == ["10: state 0-1=2", "20: requested_call", "40: state 0-1=0", "40: simulation_ends"]
    schedule = run.rows("schedule")[0]
    assert float(schedule["time_switching_off"]) == 5 + 8
    assert float(schedule["time_sleeping"]) == 13 + 10
    assert float(schedule["time_switching_on"]) == 10 + 20


def test_a_host_that_is_there_first_need_not_wait(play, job, say, mixed) -> None:
    """It can be woken while others of its request are still switching off, and each counts in its own state."""
    run = play(
        [job("1", "d1", at=6)], {},
        {0: [say.switch("0-1", "2")], 6: [say.switch("0", "0")], 16: [say.execute("w0!1", "0")]},
        hosts=mixed, energy=True,
    )  # fmt: skip
    assert run.story[1:] == [
        "6: submitted w0!1",
        "6: notify no_more_static_job_to_submit",
        "8: state 0-1=2",
        "16: state 0=0",
        "17: SUCCESSFULLY w0!1 (0) on 0",
        "17: simulation_ends",
    ]
    columns = ("time", "nb_sleeping", "nb_switching_on", "nb_switching_off", "nb_idle", "nb_computing")
    assert [tuple(row[name] for name in columns) for row in run.rows("machine_states")] == [
        ("0", "0", "0", "2", "0", "0"),
        ("6", "0", "1", "1", "0", "0"),
        ("8", "1", "1", "0", "0", "0"),
        ("16", "1", "0", "0", "1", "0"),
        ("16", "1", "0", "0", "0", "1"),
        ("17", "1", "0", "0", "1", "0"),
    ]


def test_hosts_that_begin_asleep_can_be_switched_on(play, job, say, machine) -> None:
    """No request put them there: until they are switched on they count as idle, as in Batsim."""
    asleep = (
        '<host id="h9" speed="100f,50f,1e-3f,0.2f,0.1f" pstate="2">'
        f'<prop id="wattage_per_state" value="{WATTS}"/><prop id="sleep_pstates" value="2:3:4"/></host>'
    )
    hosts = machine(1, SPEEDS, inside=asleep, wattage_per_state=WATTS, sleep_pstates="2:3:4")
    jobs = [job("1", "w1000", res=2, at=1)]
    early = play(jobs, {"w0!1": "0-1"}, profiles=WORK, hosts=hosts, energy=True)
    assert "switched off, switching or unavailable: 1" in early.failure
    run = play(
        jobs, {}, {1: [say.switch("0-1", "0")], 11: [say.execute("w0!1", "0-1"), say.query(consumed_energy={})]},
        profiles=WORK, hosts=hosts, energy=True,
    )  # fmt: skip
    assert run.story[3:] == [
        "11: state 0-1=0",
        f"11: answer {{'consumed_energy': {11 * 90 + 9 + 10 * 70:.1f}}}",
        "21: SUCCESSFULLY w0!1 (0) on 0-1",
        "21: simulation_ends",
    ]
    states = [(row["time"], row["nb_switching_on"], row["nb_idle"]) for row in run.rows("machine_states")]
    assert states == [("1", "1", "1"), ("11", "0", "2"), ("11", "0", "0"), ("21", "0", "2")]
    assert run.rows("schedule")[0]["time_switching_on"] == "10.000000"


# -- compute sharing ------------------------------------------------------------------------------------------------


def test_jobs_share_hosts_if_they_may(play, job, sleepers) -> None:
    """Two jobs halve a host's speed while both compute; a delay takes nothing."""
    jobs = [job("1", "w1000"), job("2", "w500", at=2), job("3", "d3", at=2)]
    starts = {"w0!1": "0", "w0!2": "0", "w0!3": "0"}
    run = play(jobs, starts, profiles=WORK, hosts=sleepers(1), compute_sharing=True, energy=True)
    # 200 flops alone by 2 s; then each 50 flop/s: job 2 ends at 12 s, when job 1 has 300 flops left
    assert [(row["job_id"], row["finish_time"]) for row in run.rows("jobs")] == [
        ("3", "5.000000"),
        ("2", "12.000000"),
        ("1", "15.000000"),
    ]
    # the host is busy all the time: each job is billed for all that it draws meanwhile
    assert float(run.job("1")["consumed_energy"]) == pytest.approx(15 * 200)
    assert float(run.job("2")["consumed_energy"]) == pytest.approx(10 * 200)
    assert float(run.job("3")["consumed_energy"]) == pytest.approx(3 * 200)
    assert [row["nb_computing"] for row in run.rows("machine_states")] == ["1", "1", "1", "1", "1", "0"]
    assert run.rows("schedule")[0]["time_computing"] == "15.000000"


def test_without_the_option_hosts_are_not_shared(play, job, sleepers) -> None:
    """A second job on a host is illegal."""
    jobs = [job("1", "w1000"), job("2", "w500", at=2)]
    run = play(jobs, {"w0!1": "0", "w0!2": "0"}, profiles=WORK, hosts=sleepers(1))
    assert "units that are taken: 0" in run.failure


def test_a_shared_host_with_one_job_left_cannot_fall_asleep(play, job, say, machine, sleepers) -> None:
    """Only when its last job has ended."""
    jobs = [job("1", "d10"), job("2", "d20")]
    starts = {"w0!1": "0", "w0!2": "0"}
    run = play(jobs, starts, {10: [say.switch("0", 2)]}, hosts=sleepers(1), compute_sharing=True, energy=True)
    assert "have jobs" in run.failure
    run = play(jobs, starts, {20: [say.switch("0", 2)]}, hosts=sleepers(1), compute_sharing=True, energy=True)
    assert run.story[-2] == "25: state 0=2"


def test_a_shared_host_that_leaves_takes_no_more_jobs(play, job, sleepers) -> None:
    """Jobs that share it continue; it takes further ones when it is back."""
    events = [
        {"type": "machine_unavailable", "timestamp": 2, "resources": "0"},
        {"type": "machine_available", "timestamp": 6, "resources": "0"},
    ]
    jobs = [job("1", "d10"), job("2", "d20"), job("3", "d1", at=7)]
    starts = {"w0!1": "0", "w0!2": "0", "w0!3": "0"}
    run = play(jobs, starts, hosts=sleepers(1), compute_sharing=True, events=events)
    assert run.job("3")["finish_time"] == "8.000000"
    assert run.rows("schedule")[0]["time_unavailable"] == "4.000000"
    jobs[2] = job("3", "d1", at=5)
    run = play(jobs, starts, hosts=sleepers(1), compute_sharing=True, events=events)
    assert "unavailable: 0" in run.failure
