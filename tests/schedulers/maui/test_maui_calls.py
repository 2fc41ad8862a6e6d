"""Elapsed time alone allows a job to start: the Maui policy is called without any event."""

from random import Random

import pytest

from pipistrelle.schedulers.runtime.polling import Polling


def test_a_job_starts_when_its_priority_has_passed_that_of_the_one_with_the_reservation(ask, play, maui) -> None:
    """The short job's expansion factor overtakes while half of the machine is idle; no job comes or ends then."""
    text = "QUEUETIMEWEIGHT 0\nXFACTORWEIGHT 1000\nCREDWEIGHT 1\nUSERWEIGHT 1\nUSERCFG[first] PRIORITY=20000"
    jobs = [ask(0.0, 2, 90000.0), ask(1.0, 4, 900000.0, user="first"), ask(2.0, 2, 100000.0)]
    played = play(maui(text), 4, jobs)

    # 1000 (1 + t / 100000) > 20000 + 1000 (1 + t / 900000) never happens before the first job's end.
    assert played.start[2] > 90000.0

    played = play(maui(text.replace("20000", "500")), 4, jobs)
    # From here on: 1000 t / 100000 > 500 + 1000 t / 900000, t = 56250.
    assert played.start[2] == pytest.approx(56252.0, abs=200.0)


def test_a_new_fairshare_window_lets_the_next_in_line_start(ask, play, maui) -> None:
    """At the window's end usage is forgotten: the order changes, and what fits starts then, not at the next event."""
    text = (
        "QUEUETIMEWEIGHT 0\nFSPOLICY DEDICATEDPS\nFSINTERVAL 1:00:00\nFSDEPTH 1\nFSWEIGHT 10\nFSUSERWEIGHT 100\n"
        "USERCFG[heavy] FSTARGET=10\nUSERWEIGHT 1\nUSERCFG[wide] PRIORITY=10"
    )
    jobs = [
        ask(0.0, 2, 600.0, user="heavy"),  # 100 % of the usage
        ask(0.0, 2, 90000.0, user="other"),
        ask(1000.0, 4, 90000.0, user="wide"),  # reserved at 90000
        ask(1000.0, 2, 100000.0, user="heavy"),  # would delay it; below its target once its usage is forgotten
    ]
    played = play(maui(text), 4, jobs)

    assert played.start[3] == pytest.approx(3600.0, abs=10.0)  # as soon as anything was used in the new window


def test_a_cap_in_percent_opens_while_others_run(ask, play, maui) -> None:
    """What all have used grows, and with it the part that one may have used."""
    text = "FSPOLICY DEDICATEDPS\nFSINTERVAL 99:00:00:00\nUSERCFG[a] FSTARGET=50%"
    jobs = [ask(0.0, 3, 50000.0, user="b"), ask(1.0, 1, 1000.0, user="a")]
    played = play(maui(text), 4, jobs)

    assert played.start[1] == pytest.approx(1000.0 / 1.5, abs=2.0)


def test_cap_is_named_as_the_reason_of_a_wait(ask, play, maui) -> None:
    """It waits for the end of the window, and one can see why."""
    text = "FSPOLICY DEDICATEDPS\nFSINTERVAL 1:00:00\nFSDEPTH 1\nUSERCFG[a] FSTARGET=5000^"
    policy = maui(text)
    seen = []
    decide = policy.decide

    def watch(view) -> None:
        decide(view)
        seen.extend(policy.held_back_by(job) for job in view.waiting)

    policy.decide = watch
    jobs = [ask(0.0, 4, 1000.0, user="a"), ask(0.0, 4, 1100.0, user="b"), ask(0.0, 1, 3000.0, user="a")]
    played = play(policy, 4, jobs)

    assert played.start[0] >= 0.0
    assert played.start[2] == 3600.0
    assert "USERCFG[a] FSTARGET=5000^ leaves 1000 unit x s, the job needs 3000" in seen


@pytest.mark.parametrize("step", [7.0, 60.0])
def test_calls_arrive_at_the_next_multiple_under_polling(ask, play, maui, step: float) -> None:
    """A deferred job, one behind a standing reservation and one below zero all start at multiples of the step."""
    text = (
        "SRCFG[s] HOSTLIST=0-1 STARTTIME=0 ENDTIME=1:01:01 USERLIST=root\n"
        "ENABLENEGJOBPRIORITY TRUE\nUSERWEIGHT 1\nUSERCFG[a] PRIORITY=-10"
    )
    jobs = [ask(0.0, 4, 10.0), ask(0.0, 1, 10.0, user="a")]
    played = play(Polling(maui(text), step), 4, jobs)

    assert 3661.0 <= played.start[0] < 3661.0 + step
    assert 540.0 < played.start[1] <= 600.0 + step
    assert all(start % step == 0.0 for start in played.start.values())


@pytest.mark.parametrize("seed", range(4))
def test_no_job_waits_for_an_event_that_never_happens(ask, play, maui, check_machine, seed: int) -> None:
    """Whatever keeps jobs back for a time (caps, MAXPS, negative priorities, reservations), all run in the end."""
    text = (
        "FSPOLICY DEDICATEDPS\nFSINTERVAL 500\nFSDEPTH 3\nFSWEIGHT 1\nFSUSERWEIGHT 1\nUSERCFG[a] FSTARGET=20%\n"
        "USERCFG[b] FSTARGET=9000^\nUSERCFG[c] MAXPS=3000\nUSERCFG[d] FSTARGET=10-\nACCOUNTCFG[x] MAXWC=400\n"
        "ENABLENEGJOBPRIORITY TRUE\nUSERWEIGHT 1\nUSERCFG[d] PRIORITY=-20\nXFACTORWEIGHT 3\n"
        "SRCFG[s] HOSTLIST=0-3 STARTTIME=0:05:00 ENDTIME=0:10:00 USERLIST=a\nDEFERTIME 100"
    )
    chance = Random(seed)  # noqa: S311 - a test's dice
    jobs = []
    for number in range(60):
        walltime = float(chance.choice([10, 50, 100, 200]))
        size = chance.choice([1, 2, 4, 8])
        user = chance.choice("abcd")
        size = min(size, 3000 // int(walltime)) if user == "c" else size
        jobs.append(ask(number * 3.0, size, walltime, walltime / 2, user=user, account=chance.choice("xy")))
    played = play(maui(text), 8, jobs)

    check_machine(played, jobs, 8)
    assert not played.rejected


@pytest.mark.parametrize(
    "text",
    [
        "SRCFG[s] HOSTLIST=0-3 STARTTIME=8:00:00 ENDTIME=9:00:00 USERLIST=root",  # no gap is long enough
        "FSPOLICY DEDICATEDPS\nUSERCFG[a] FSTARGET=1000^",  # the job alone is beyond the cap
    ],
)
def test_a_job_that_nothing_ever_lets_start_does_not_keep_the_simulation_going(ask, play, maui, text: str) -> None:
    """After many calls without effect it requests no more, so that the run ends as stalled."""
    played = play(maui(text), 4, [ask(0.0, 2, 10.0, user="b"), ask(0.0, 4, 86000.0, user="a")])

    assert played.start == {0: 0.0}
    assert 500 < played.asked < 600
