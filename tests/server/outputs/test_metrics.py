"""The figures of a run, against numpy and against sums done by hand."""

from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.outputs.metrics import TAU, Metrics, Summary
from pipistrelle.server.outputs.once import schedule_csv

FIGURES = (
    "utilisation",
    "mean_wait",
    "median_wait",
    "p95_wait",
    "max_wait",
    "mean_turnaround",
    "max_turnaround",
    "mean_slowdown",
    "max_slowdown",
    "mean_bounded_slowdown",
    "max_bounded_slowdown",
)


def summary_of(play: Any, rows: list[Any], *replies: Any, units: int = 4, end: str = "completed") -> Summary:
    """Return the figures of a game in which each reply is made by a function of the game."""
    metrics = Metrics()
    game = play(units, rows, observers=[metrics])
    game.begin()
    for reply in replies:
        game.say(*reply(game))
    game.engine.end(end)
    game.engine.close()
    summary = metrics.summary()
    assert isinstance(summary, Summary)
    return summary


def test_a_run_without_jobs_has_no_means(play: Any) -> None:
    """Counts are 0, the makespan is 0, and undefined values are None."""
    summary = summary_of(play, [], lambda g: [])

    assert (summary.reason, summary.jobs, summary.makespan, summary.unfinished) == ("completed", 0, 0.0, 0)
    assert [getattr(summary, name) for name in FIGURES] == [None] * len(FIGURES)


def test_a_run_of_rejected_jobs_has_no_means_either(play: Any) -> None:
    """A rejected job counts as rejected and as nothing else."""
    summary = summary_of(play, [("1", 5, 1, 5, 5)], lambda g: [g.reject("1")])

    assert (summary.jobs, summary.rejected, summary.makespan) == (1, 1, 0.0)
    assert [getattr(summary, name) for name in FIGURES] == [None] * len(FIGURES)


def test_every_fate_has_its_count(play: Any) -> None:
    """Completed, killed at the walltime, killed, rejected, unfinished: they add up to the submitted jobs."""
    rows = [(str(number), 0, 1, 10, 8 if number == 2 else 20) for number in range(1, 7)]
    summary = summary_of(
        play,
        rows,
        lambda g: [*(g.execute(name, str(unit)) for unit, name in enumerate("123")), g.reject("4")],
        lambda g: [g.kill("3"), g.execute("5", "3")],
        lambda g: [],
        lambda g: [g.stop("enough")],
        end="completed",
    )

    assert (summary.reason, summary.message.partition(" (")[0]) == ("stopped", "enough")
    assert (summary.jobs, summary.completed, summary.killed_at_walltime, summary.killed) == (6, 1, 1, 1)
    assert (summary.rejected, summary.unfinished) == (1, 2)
    assert summary.makespan == 10.0


def test_the_figures_of_two_jobs_by_hand(play: Any) -> None:
    """Waits 0 and 9, executions 10 and 2: each figure from its definition."""
    summary = summary_of(
        play,
        [("1", 1, 4, 10, 10), ("2", 2, 2, 2, 2)],
        lambda g: [g.execute("1", "0-3")],
        lambda g: [],
        lambda g: [g.execute("2", "0-1")],
        lambda g: [],
    )

    assert summary.makespan == 13.0
    assert summary.utilisation == pytest.approx((4 * 10 + 2 * 2) / (4 * 12))
    assert (summary.mean_wait, summary.median_wait, summary.max_wait) == (4.5, 4.5, 9.0)
    assert summary.p95_wait == pytest.approx(0.95 * 9)
    assert (summary.mean_turnaround, summary.max_turnaround) == ((10 + 11) / 2, 11.0)
    assert (summary.mean_slowdown, summary.max_slowdown) == ((1 + 5.5) / 2, 5.5)
    assert (summary.units, summary.computing) == (4, 44.0)
    assert summary.mean_bounded_slowdown == (1 + 1.1) / 2, "11 s of turnaround over tau = 10 s"
    assert summary.max_bounded_slowdown == 1.1


times = st.floats(0, 1e6, allow_subnormal=False)
ends = st.lists(st.tuples(times, times, st.floats(0, 1e5, allow_subnormal=False), st.integers(1, 64)), min_size=1)


@settings(max_examples=150)
@given(ends)
def test_the_figures_are_numpys(rows: list[tuple[float, float, float, int]]) -> None:
    """Means, quantiles and maxima of any run agree with numpy's; the order in which jobs end does not matter."""

    def figures(rows: list[tuple[float, float, float, int]]) -> Summary:
        metrics = Metrics({"no size": 3})
        metrics.begins(0.0, 64)
        jobs = []
        for number, (submit, wait, run, size) in enumerate(rows):
            job = Job(f"w0!{number}", submit, size, inf, run, "p", state="COMPLETED_SUCCESSFULLY")
            job.alloc = NodeSet.interval(0, size - 1)
            job.start = submit + wait
            job.end = job.start + run
            jobs.append(job)
        for job in sorted(jobs, key=lambda job: job.submit):
            metrics.submitted(job.submit, job)
        for job in sorted(jobs, key=lambda job: job.end):
            metrics.ended(job.end, job)
        return metrics.summary()

    summary, again = figures(rows), figures(rows[::-1])
    submit, wait, run, size = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    start = submit + wait
    end = start + run
    waits, runs = start - submit, end - start
    turnarounds = waits + runs
    slowdowns = np.divide(turnarounds, runs, out=np.ones_like(runs), where=runs > 0)
    bounded = np.maximum(1.0, turnarounds / np.maximum(runs, TAU))
    span = end.max() - submit.min()

    assert summary == again
    assert summary.dropped == {"no size": 3}
    assert summary.completed == len(rows)
    assert summary.makespan == end.max()
    assert summary.mean_wait == pytest.approx(waits.mean())
    assert summary.median_wait == pytest.approx(np.median(waits))
    assert summary.p95_wait == pytest.approx(np.percentile(waits, 95))
    assert summary.max_wait == waits.max()
    assert summary.mean_turnaround == pytest.approx(turnarounds.mean())
    assert summary.max_turnaround == pytest.approx(turnarounds.max())
    assert summary.mean_slowdown == pytest.approx(slowdowns.mean())
    assert summary.max_slowdown == pytest.approx(slowdowns.max())
    assert summary.mean_bounded_slowdown == pytest.approx(bounded.mean())
    assert summary.max_bounded_slowdown == pytest.approx(bounded.max())
    assert summary.computing == pytest.approx((runs * size).sum())
    if span > 0:
        assert summary.utilisation == pytest.approx((runs * size).sum() / (64 * span))
    else:
        assert summary.utilisation is None


def test_sums_are_exact_before_they_are_rounded(play: Any) -> None:
    """A thousand waits of 0.1 s beside one huge one: plain addition would lose them."""
    metrics = Metrics()
    metrics.begins(0.0, 1)
    waits = [2.0**53] + [0.5] * 1000 + [2.0**53]
    for number, wait in enumerate(waits):
        job = Job(f"w0!{number}", 0.0, 1, inf, 1.0, "p", state="COMPLETED_SUCCESSFULLY")
        job.start, job.end = wait, wait
        metrics.submitted(0.0, job)
        metrics.ended(wait, job)

    assert metrics.summary().mean_wait == (2.0**54 + 500) / 1002


#: the first line of every schedule file of Batsim 4
BATSIM_SCHEDULE = (
    "batsim_version,consumed_joules,makespan,max_slowdown,max_turnaround_time,max_waiting_time,mean_slowdown,"
    "mean_turnaround_time,mean_waiting_time,nb_computing_machines,nb_grouped_switches,nb_jobs,nb_jobs_finished,"
    "nb_jobs_killed,nb_jobs_rejected,nb_jobs_success,nb_machine_switches,scheduling_time,simulation_time,success_rate,"
    "time_computing,time_idle,time_sleeping,time_switching_off,time_switching_on,time_unavailable"
)


def test_the_schedule_file_of_batsims_example(play: Any) -> None:
    """The values that Batsim 4 recorded for its small run, with three exceptions.

    The wall clock's columns are empty; idle time is all of it (Batsim: 1160); the means are over the jobs that ended,
    as in the summary (Batsim divides by the rejected job too: 1.15, 67.5 and 15.833333).
    """
    rows = [
        ("1", 10, 2, 100, 200),
        ("2", 15, 4, 50, 300),
        ("3", 20, 1, 60, 90),
        ("4", 20, 1, 60, 40),
        ("5", 30, 8, 60, 100),
        ("6", 500, 3, 60, 100),
    ]
    metrics = Metrics()
    game = play(4, rows, observers=[metrics])
    game.begin()
    starts = {10: [("1", "0-1")], 20: [("3", "2"), ("4", "3")], 110: [("2", "0-3")], 500: [("6", "0-2")]}
    while game.notice is not None:
        decisions = [game.execute(*start) for start in starts.pop(game.now, [])]
        game.say(*decisions, *([game.reject("5")] if game.now == 30 else []))
    game.end()

    assert schedule_csv(metrics.summary(), "1.2.3") == (
        f"{BATSIM_SCHEDULE}\n"
        "pipistrelle 1.2.3,0.000000,560.000000,2.900000,145.000000,95.000000,1.380000,81.000000,19.000000,4,0,6,5,1,1,"
        "4,0,,,0.666667,680.000000,1560.000000,0.000000,0.000000,0.000000,0.000000\n"
    )


def test_the_schedule_file_of_nothing() -> None:
    """A run without jobs has zeros, not a division by zero."""
    header, line = schedule_csv(Metrics().summary(), "1").splitlines()

    assert header == BATSIM_SCHEDULE
    values = dict(zip(header.split(","), line.split(","), strict=True))
    assert {value for name, value in values.items() if name not in {"batsim_version", "nb_computing_machines"}} == {
        "0",
        "0.000000",
        "",
    }


def test_idle_and_computing_time_are_the_machine_times_the_makespan(play: Any) -> None:
    """Unit-seconds add up, also when the run continues after the last job's end."""
    metrics = Metrics()
    game = play(4, [("1", 0, 2, 10, 20), ("2", 3, 3, 5, 4), ("3", 90, 1, 5, 5)], observers=[metrics])
    game.begin()
    game.say(game.execute("1", "0-1"))
    game.say()
    game.say(game.execute("2", "0-2"))
    game.say()
    game.say(game.reject("3"))
    game.end()
    summary = metrics.summary()
    header, line = schedule_csv(summary, "1").splitlines()
    values = dict(zip(header.split(","), line.split(","), strict=True))

    assert (summary.computing, summary.makespan) == (2 * 10 + 3 * 4, 14.0)
    assert (summary.max_turnaround, summary.max_slowdown) == (11.0, 11 / 4)
    assert (values["time_computing"], values["time_idle"]) == ("32.000000", f"{4 * 14 - 32}.000000")
