"""The rules of the Maui policy, case by case."""

import numpy as np
import pytest

from pipistrelle.protocol.events import JobDescription, SimulationBeginsData
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.backfill.easy import Easy
from pipistrelle.schedulers.composed import ComposedPolicy
from pipistrelle.schedulers.maui.config.read import parse_maui_config, read_maui_config
from pipistrelle.schedulers.maui.policy import MauiPolicy
from pipistrelle.schedulers.orders.maui import MauiOrder
from pipistrelle.schedulers.placement.lowest import LowestIds
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.windows import Window
from pipistrelle.schedulers.runtime.runtime import view_of


def test_without_backfilling_jobs_start_in_the_order_of_priority(play, maui, random_jobs) -> None:
    """BACKFILLPOLICY NONE: nothing starts behind one that does not fit."""
    jobs = random_jobs(3)
    played = play(maui("BACKFILLPOLICY NONE\nQUEUETIMEWEIGHT 6000"), 16, jobs)

    assert [played.start[number] for number in range(len(jobs))] == sorted(played.start.values())


def test_credentials_decide_the_order(ask, play, maui) -> None:
    """The class of the highest priority starts first, then the others, each in the order of submission."""
    text = "CLASSWEIGHT 1000\nCLASSCFG[qexp] PRIORITY=150\nCLASSCFG[qfree] PRIORITY=-1024\n"
    jobs = [ask(0.0, 4, 50.0)] + [ask(1.0, 4, 10.0, queue=queue) for queue in ("qfree", "qprod", "qexp", "qexp")]
    played = play(maui(text + "ENABLENEGJOBPRIORITY TRUE\nREJECTNEGPRIOJOBS FALSE"), 4, jobs)

    assert sorted(played.start, key=lambda number: played.start[number]) == [0, 3, 4, 2, 1]


def test_fairshare_favours_lower_usage(ask, play, maui) -> None:
    """A user below the target passes one above."""
    text = "FSPOLICY DEDICATEDPS\nFSWEIGHT 1000\nFSUSERWEIGHT 1\nUSERCFG[DEFAULT] FSTARGET=50\n"
    jobs = [
        ask(0.0, 4, 100.0, user="heavy"),
        ask(1.0, 4, 10.0, user="heavy"),
        ask(2.0, 4, 10.0, user="light"),
    ]
    played = play(maui(text), 4, jobs)

    assert played.start == {0: 0.0, 2: 100.0, 1: 110.0}


def test_soft_limits_give_way_only_when_nothing_else_can_run(ask, play, maui) -> None:
    """Over its soft limit a user's job waits for others, but not for an idle machine."""
    text = "USERCFG[DEFAULT] MAXPROC=2,4\n"
    jobs = [ask(0.0, 2, 100.0, user="a"), ask(1.0, 6, 10.0, user="c"), ask(2.0, 2, 100.0, user="a")]
    jobs += [ask(3.0, 2, 10.0, user="a"), ask(3.0, 2, 10.0, user="b")]
    played = play(maui(text.replace("DEFAULT", "a")), 8, jobs)

    assert played.start[1] == 1.0
    assert played.start[2] == 11.0  # over 2, not over 4, after all others that could start
    assert played.start[4] == 11.0
    assert played.start[3] > 11.0  # over 4


def test_a_job_over_a_hard_limit_by_itself_is_refused_with_its_reason(ask, play, maui) -> None:
    """It could never run."""
    played = play(maui("CLASSCFG[qexp] MAXNODE=2"), 8, [ask(0.0, 3, 10.0, queue="qexp"), ask(0.0, 3, 10.0)])

    assert played.rejected == {0: "CLASSCFG[qexp] MAXNODE=2, in use: 0, the job needs 3"}


def test_room_below_maxps_opens_between_events(ask, play, maui) -> None:
    """The outstanding amount shrinks while a job runs: the next starts at that moment."""
    jobs = [ask(0.0, 4, 100.0, account="x"), ask(0.0, 2, 50.0, account="x")]
    played = play(maui("ACCOUNTCFG[x] MAXPS=420"), 8, jobs)

    assert played.start == {0: 0.0, 1: pytest.approx(20.0)}


def test_negative_priorities_wait_until_they_have_risen_or_are_refused(ask, play, maui) -> None:
    """With both parameters set no job of negative priority starts; one that never rises is refused."""
    text = "ENABLENEGJOBPRIORITY TRUE\nREJECTNEGPRIOJOBS TRUE\nUSERWEIGHT 1\nUSERCFG[a] PRIORITY=-10\n"
    played = play(maui(text), 4, [ask(0.0, 1, 10.0, user="a")])
    assert 530.0 < played.start[0] <= 601.0

    played = play(maui(text + "QUEUETIMEWEIGHT 0"), 4, [ask(0.0, 1, 10.0, user="a"), ask(0.0, 1, 10.0)])
    assert played.start == {1: 0.0}
    assert "never rises" in played.rejected[0]


def test_job_too_large_for_units_in_service_is_deferred(ask, play, maui) -> None:
    """It is eligible again after DEFERTIME, not before, although the units return sooner."""
    jobs = [ask(10.0, 4, 10.0), ask(10.0, 3, 10.0)]
    outages = [(5.0, NodeSet.interval(3, 3)), (50.0, NodeSet.EMPTY)]
    played = play(maui("DEFERTIME 2:00"), 4, jobs, outages)

    assert played.start == {1: 10.0, 0: 130.0}


def test_without_defertime_a_job_is_eligible_when_the_units_return(ask, play, maui) -> None:
    """DEFERTIME 0, as many centres set it: the job is held until then, blocks no other job, and requests no calls."""
    jobs = [ask(10.0, 4, 10.0), ask(10.0, 3, 100.0)]
    outages = [(5.0, NodeSet.interval(3, 3)), (150.0, NodeSet.EMPTY)]
    played = play(maui("DEFERTIME 0"), 4, jobs, outages)

    assert played.start == {1: 10.0, 0: 150.0}


def test_a_window_lets_in_whom_it_admits(ask, play, maui) -> None:
    """Windows that come and go with rules of their own hold for the Maui policy, too."""
    mine = Window("mine", 0.0, 100.0, NodeSet.interval(0, 2), lambda job: job.size == 2)
    played = play(maui(""), 4, [ask(0.0, 3, 10.0), ask(0.0, 2, 10.0), ask(0.0, 1, 10.0)], windows=[mine])

    assert played.start == {0: 100.0, 1: 0.0, 2: 0.0}
    assert played.alloc[2].first == 3


def test_a_standing_reservation_is_kept_for_those_it_lets_in(ask, play, maui) -> None:
    """Others neither use its units while it lasts nor run into it; its class does; short jobs do by TIMELIMIT."""
    text = (
        "SRCFG[lunch] HOSTLIST=0-1 STARTTIME=12:00:00 ENDTIME=13:00:00 DAYS=Mon,Tue CLASSLIST=fast TIMELIMIT=60\n"
        "NODEALLOCATIONPOLICY FIRSTAVAILABLE"
    )
    noon, day = 12 * 3600.0, 86400.0
    jobs = [
        ask(day + noon - 100, 2, 90.0),  # ends before it
        ask(day + noon - 50, 2, 100.0),  # would run into it on 0-1
        ask(day + noon, 2, 100.0, queue="fast"),
        ask(day + noon + 200, 2, 60.0, queue="long"),
        ask(day + noon + 300, 4, 61.0, queue="long"),  # only beyond its end
        ask(3 * day + noon, 4, 100.0),  # Wednesday
    ]
    played = play(maui(text), 4, jobs)

    assert str(played.alloc[0]) == "0-1"
    assert str(played.alloc[1]) == "2-3"
    assert (played.start[2], str(played.alloc[2])) == (day + noon, "0-1")
    assert (played.start[3], str(played.alloc[3])) == (day + noon + 200, "0-1")
    assert played.start[4] == day + noon + 3600
    assert played.start[5] == 3 * day + noon


def test_midnight_says_which_time_of_the_week_time_0_is(ask, play, maui) -> None:
    """A reservation of one's weekday is found wherever the simulation begins."""
    text = "SRCFG[n] DAYS=Sat STARTTIME=22:00:00 ENDTIME=2:00:00 USERLIST=root"
    job = ask(0.0, 4, 7200.0)
    saturday_21 = 6 * 86400.0 + 21 * 3600.0

    assert play(maui(text), 4, [job]).start == {0: 2 * 3600.0}
    assert play(maui(text, midnight=86400.0), 4, [job]).start == {0: 0.0}
    assert play(maui(text, midnight=saturday_21), 4, [job]).start == {0: 5 * 3600.0}


def test_lastavailable_leaves_the_units_that_last(ask, play, maui) -> None:
    """A short job takes units that are reserved later, so that a longer one finds the others."""
    jobs = [
        ask(0.0, 2, 100.0),
        ask(1.0, 3, 100.0),  # waits for 100, reserved: units 0-1 and one more
        ask(2.0, 1, 50.0),
        ask(2.0, 1, 500.0),
    ]
    played = play(maui("NODEALLOCATIONPOLICY LASTAVAILABLE"), 4, jobs)

    assert {number: played.start[number] for number in (1, 2, 3)} == {1: 100.0, 2: 2.0, 3: 2.0}
    assert str(played.alloc[2]) == "2"
    assert str(played.alloc[3]) == "3"


def test_metrics_choose_the_backfilled_job(ask, play, maui) -> None:
    """FIRSTFIT takes the first, BESTFIT the best by the metric, GREEDY the best set."""
    jobs = [ask(0.0, 4, 100.0), ask(0.0, 8, 100.0)]
    jobs += [ask(1.0, 1, 90.0), ask(1.0, 3, 20.0), ask(1.0, 2, 60.0), ask(1.0, 2, 50.0)]

    def first(text: str) -> set[int]:
        played = play(maui(text), 8, jobs)
        return {number for number in range(2, 6) if played.start[number] == 1.0}

    assert first("BACKFILLPOLICY FIRSTFIT") == {2, 3}
    assert first("BACKFILLPOLICY BESTFIT\nBACKFILLMETRIC PROCS") == {3, 2}
    assert first("BACKFILLPOLICY BESTFIT\nBACKFILLMETRIC PROCSECONDS") == {4, 5}
    assert first("BACKFILLPOLICY GREEDY\nBACKFILLMETRIC PROCSECONDS") == {4, 5}
    assert first("BACKFILLPOLICY GREEDY\nBACKFILLMETRIC SECONDS") == {2, 4}


def test_depth_bounds_the_number_of_checked_jobs(ask, play, maui) -> None:
    """With BACKFILLDEPTH 1 only the first job that fits a window is checked, in each of the two passes."""
    jobs = [ask(0.0, 6, 100.0), ask(0.0, 8, 100.0)] + [ask(1.0, 1, 500.0, user="a") for _ in range(3)]
    jobs = [*jobs, ask(2.0, 8, 5.0)]
    everything = play(maui("RESERVATIONPOLICY NEVER"), 8, jobs)
    bounded = play(maui("RESERVATIONPOLICY NEVER\nBACKFILLDEPTH 1\nUSERCFG[a] MAXJOB=2"), 8, jobs)

    assert sum(start == 1.0 for start in everything.start.values()) == 2
    assert sum(start == 1.0 for start in bounded.start.values()) == 2


def test_queue_time_does_not_count_while_a_limit_of_waiting_jobs_is_exceeded(ask, play, maui) -> None:
    """QUEUEPOLICY: a user's many jobs do not grow old behind MAXIJOB; ALWAYS: they do."""
    jobs = [ask(0.0, 4, 6000.0)] + [ask(1.0, 4, 600.0, user="stuffer") for _ in range(3)]
    jobs.append(ask(3000.0, 4, 600.0, user="other"))
    text = "USERCFG[stuffer] MAXIJOB=1\n"
    queued = play(maui(text + "JOBPRIOACCRUALPOLICY QUEUEPOLICY"), 4, jobs)
    always = play(maui(text + "JOBPRIOACCRUALPOLICY ALWAYS"), 4, jobs)

    assert [queued.start[number] for number in (1, 4, 2, 3)] == [6000.0, 6600.0, 7200.0, 7800.0]
    assert [always.start[number] for number in (1, 2, 3, 4)] == [6000.0, 6600.0, 7200.0, 7800.0]


def test_bypassed_jobs_gain_priority(maui) -> None:
    """Each job of lower priority that is backfilled counts."""
    policy = maui("QUEUETIMEWEIGHT 0\nBYPASSWEIGHT 100\nRESERVATIONPOLICY NEVER")
    view = view_of(SimulationBeginsData(4), policy.order)
    large = SchedulerJob("w", 0, 3, 10.0, 0.0)
    others = [SchedulerJob(f"{number}", number, 2, 10.0, 0.0) for number in (1, 2)]
    running = SchedulerJob("r", 3, 2, 10.0, 0.0)
    for job in (running,):
        view.waiting.add(job)
        view.arrivals.append(job)
    policy.decide(view)
    view.arrivals, view.released = [], False
    for job in (large, *others):
        view.waiting.add(job)
        view.arrivals.append(job)
    policy.decide(view)
    found = policy.breakdown(large)

    assert found is not None
    assert [(term.subcomponent, term.factor) for term in found.terms] == [("BYPASS", 1.0)]
    assert policy.breakdown(running) is None
    assert policy.held_back_by(large) is None


def test_parts_are_usable_separately(tmp_path) -> None:
    """A file gives a policy with warnings; the order alone ranks jobs for any backfilling."""
    path = tmp_path / "maui.cfg"
    path.write_text("USERWEIGHT 10\nUSERCFG[ann] PRIORITY=5\nMEMWEIGHT 3\n", encoding="utf-8")
    settings, warnings = read_maui_config(path)
    policy = MauiPolicy(settings)
    order = MauiOrder(parse_maui_config(path.read_text(encoding="utf-8"))[0])
    jobs = [
        SchedulerJob(user, number, 1, 60.0, 0.0, description=JobDescription(user, 1, 60.0, user=user))
        for number, user in enumerate(("bob", "ann"))
    ]
    table = np.array([order.attributes(job) for job in jobs], dtype=np.float64).T
    assert [warning.line for warning in warnings] == [3]
    assert policy.name == "maui"
    assert order.ranks(table, 120.0).tolist() == [-2.0, -52.0]
    order.started(jobs[0], 0.0)
    order.ended(jobs[0], 5.0)


def test_the_order_alone_goes_with_any_backfilling(run_policy) -> None:
    """Composed with easy, jobs wait by their Maui priority: here the one that asks for more passes."""
    order = MauiOrder(parse_maui_config("QUEUETIMEWEIGHT 0\nRESWEIGHT 1\nPROCWEIGHT 1")[0])
    policy = ComposedPolicy("maui+easy", order, Easy(), LowestIds())
    rows = [(0.0, 4, 100.0, 100.0), (1.0, 2, 100.0, 100.0), (2.0, 4, 100.0, 100.0), (3.0, 3, 100.0, 100.0)]

    assert run_policy(policy, 4, rows).start_of == {0: 0.0, 2: 100.0, 3: 200.0, 1: 300.0}
