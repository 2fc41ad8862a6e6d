"""Parameters of a maui.cfg, one by one: the effect of each on starts or on order."""

import pytest


@pytest.mark.parametrize("kind", ["user", "group", "account", "queue", "qos"])
def test_fairshare_counts_for_each_kind_of_credential(ask, play, maui, kind: str) -> None:
    """FSUSERWEIGHT, FSGROUPWEIGHT, FSACCOUNTWEIGHT, FSCLASSWEIGHT, FSQOSWEIGHT: lower usage comes first."""
    name = {"queue": "CLASS"}.get(kind, kind.upper())
    text = f"FSPOLICY DEDICATEDPS\nFSWEIGHT 1000\nFS{name}WEIGHT 1\n{name}CFG[heavy] FSTARGET=50\n"
    text += f"{name}CFG[light] FSTARGET=50"
    jobs = [ask(0.0, 4, 100.0, **{kind: "heavy"}), ask(1.0, 4, 10.0, **{kind: "heavy"})]
    jobs.append(ask(2.0, 4, 10.0, **{kind: "light"}))

    assert play(maui(text), 4, jobs).start == {0: 0.0, 2: 100.0, 1: 110.0}
    assert play(maui(text.replace(f"FS{name}WEIGHT 1", f"FS{name}WEIGHT 0")), 4, jobs).start[1] == 100.0


@pytest.mark.parametrize(
    ("heavy", "light", "passes"),
    [("10+", "90+", True), ("10-", "90-", True), ("90+", "90+", True), ("10+", "0", False), ("10-", "0", True)],
)
def test_marks_of_targets_in_decisions(ask, play, maui, heavy: str, light: str, passes: bool) -> None:
    """A floor counts only below it, a ceiling only above it; the heavy user has all of the usage."""
    text = "ENABLENEGJOBPRIORITY TRUE\nREJECTNEGPRIOJOBS FALSE\nFSPOLICY DEDICATEDPS\nFSWEIGHT 1000\nFSUSERWEIGHT 1\n"
    text += f"USERCFG[heavy] FSTARGET={heavy}\nUSERCFG[light] FSTARGET={light}"
    jobs = [ask(0.0, 4, 100.0, user="heavy"), ask(1.0, 4, 10.0, user="heavy"), ask(2.0, 4, 10.0, user="light")]

    assert (play(maui(text), 4, jobs).start[2] == 100.0) is passes


def test_targetweight_is_another_name_for_targweight(ask, play, maui) -> None:
    """A job nearer to its QOS's queue time target comes first."""
    text = "QUEUETIMEWEIGHT 0\nTARGETWEIGHT 100000\nTARGETQUEUETIMEWEIGHT 1\nQOSCFG[soon] QTTARGET=2:00"
    jobs = [ask(0.0, 4, 118.0), ask(1.0, 4, 10.0), ask(2.0, 4, 10.0, qos="soon")]

    assert play(maui(text), 4, jobs).start == {0: 0.0, 2: 118.0, 1: 128.0}


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("RESERVATIONDEPTH 1", {3: 2.0, 1: 100.0, 2: 350.0}),
        ("RESERVATIONDEPTH 2", {1: 100.0, 2: 200.0, 3: 300.0}),
        ("RESERVATIONPOLICY NEVER", {3: 2.0, 1: 350.0, 2: 450.0}),
    ],
)
def test_how_many_reservations_there_are(ask, play, maui, text: str, starts: dict[int, float]) -> None:
    """With one the first cannot be put off, with two neither can the second; with none anybody can."""
    jobs = [ask(0.0, 2, 100.0), ask(1.0, 3 if "NEVER" not in text else 4, 100.0), ask(1.0, 4, 100.0)]
    jobs.append(ask(2.0, 1 if "NEVER" not in text else 2, 348.0 if "2" not in text else 298.5))
    played = play(maui(text), 4, jobs)

    assert {number: played.start[number] for number in starts} == starts


def test_resdepth_bounds_the_reservations_of_a_unit(ask, play, maui) -> None:
    """With 2, a unit with a running job has room for one reservation, so that the second job has none."""
    jobs = [ask(0.0, 4, 100.0), ask(1.0, 4, 100.0), ask(1.0, 4, 100.0), ask(1.0, 4, 100.0)]

    def reserved(depth: int) -> int:
        played = play(maui(f"RESERVATIONDEPTH 3\nRESDEPTH {depth}\nRESERVATIONPOLICY HIGHEST"), 4, jobs)
        return max(len(reservations) for _, reservations in played.reservations)

    assert [reserved(depth) for depth in (2, 3, 24)] == [1, 2, 3]


def test_a_default_qos_comes_from_the_credentials(ask, play, maui) -> None:
    """QDEF: a job without QOS has its user's, and its PRIORITY."""
    text = "QOSWEIGHT 100\nUSERCFG[ann] QDEF=high\nQOSCFG[high] PRIORITY=7"
    jobs = [ask(0.0, 4, 50.0), ask(1.0, 4, 10.0, user="bob"), ask(2.0, 4, 10.0, user="ann")]

    assert play(maui(text), 4, jobs).start == {0: 0.0, 2: 50.0, 1: 60.0}


def test_the_walltime_of_jobs_without_one(ask, play, maui) -> None:
    """SYSTEMDEFAULTJOBWALLTIME is the planned length: short enough jobs are backfilled."""
    jobs = [ask(0.0, 2, 100.0), ask(1.0, 4, 100.0), ask(2.0, 2, float("inf"), 20.0)]

    assert play(maui("SYSTEMDEFAULTJOBWALLTIME 1:00"), 4, jobs).start[2] == 2.0
    assert play(maui("SYSTEMDEFAULTJOBWALLTIME 1:00:00"), 4, jobs).start[2] == 200.0


def test_fullpolicy_stops_the_clock_of_a_job_over_a_limit_of_running_jobs(ask, play, maui) -> None:
    """Under FULLPOLICY such a job's queue time does not count; under QUEUEPOLICY it does."""
    text = "USERCFG[a] MAXJOB=1\nJOBPRIOACCRUALPOLICY "
    jobs = [ask(0.0, 2, 6000.0, user="a"), ask(0.0, 2, 6000.0, user="c")]
    jobs += [ask(1.0, 4, 600.0, user="a"), ask(3000.0, 4, 600.0, user="b")]

    assert play(maui(text + "QUEUEPOLICY"), 4, jobs).start[2] == 6000.0
    assert play(maui(text + "FULLPOLICY"), 4, jobs).start[3] == 6000.0


def test_tasks_of_a_standing_reservation_take_the_highest_units(ask, play, maui) -> None:
    """TASKCOUNT times RESOURCES units are kept; PERIOD=INFINITY always."""
    text = "SRCFG[s] TASKCOUNT=2 RESOURCES=PROCS:3 PERIOD=INFINITY ACCOUNTLIST=vip"
    jobs = [ask(0.0, 2, 50.0), ask(0.0, 1, 10.0), ask(0.0, 6, 10.0, account="vip")]
    played = play(maui(text), 8, jobs)

    assert played.start == {0: 0.0, 1: 50.0, 2: 0.0}
    assert str(played.alloc[2]) == "2-7"


def test_a_weekly_reservation_and_how_far_ahead_it_is_there(ask, play, maui) -> None:
    """PERIOD=WEEK counts from Sunday; with DEPTH=1 a long job ignores next week's reservation."""
    text = "SRCFG[w] HOSTLIST=0-3 PERIOD=WEEK STARTTIME=1:00:00:00 ENDTIME=1:01:00:00 GROUPLIST=staff DEPTH="
    day, week = 86400.0, 7 * 86400.0
    monday = [ask(day - 10.0, 4, 60.0), ask(day, 4, 60.0, group="staff")]
    assert play(maui(text + "1"), 4, monday).start == {0: day + 3600.0, 1: day}

    long = [ask(2 * day, 4, 6.5 * day)]
    assert play(maui(text + "1"), 4, long).start == {0: 2 * day}
    assert play(maui(text + "2"), 4, long).start == {0: week + day + 3600.0}


@pytest.mark.parametrize("metric", ["PROCS", "NODES", "PE", "SECONDS", "PROCSECONDS", "PESECONDS"])
def test_bestfit_takes_the_largest_by_every_metric(ask, play, maui, metric: str) -> None:
    """Units or seconds or their product; here each has another winner."""
    jobs = [ask(0.0, 4, 100.0), ask(0.0, 8, 100.0), ask(1.0, 4, 10.0), ask(1.0, 1, 95.0), ask(1.0, 3, 60.0)]
    winner = {"SECONDS": 3, "PROCSECONDS": 4, "PESECONDS": 4}.get(metric, 2)
    played = play(maui(f"BACKFILLPOLICY BESTFIT\nBACKFILLMETRIC {metric}"), 8, jobs)

    assert played.start[winner] == 1.0
