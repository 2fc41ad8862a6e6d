"""Limits and priorities that the Maui policy keeps between instants, against their definition."""

from math import inf
from random import Random

import numpy as np
import pytest

from pipistrelle.schedulers.backfill.fills import Candidates, greedy
from pipistrelle.schedulers.maui.config.read import parse_maui_config
from pipistrelle.schedulers.maui.config.settings import Names
from pipistrelle.schedulers.maui.limits.idle import _first
from pipistrelle.schedulers.maui.limits.limits import Limits
from pipistrelle.schedulers.maui.priority.credentials import Credentials
from pipistrelle.schedulers.maui.priority.waiting import MauiQueue
from pipistrelle.schedulers.plan.access import AccessPlan
from pipistrelle.schedulers.plan.pickers import by_number
from pipistrelle.schedulers.policy.jobs import SchedulerJob

LIMITS = """
USERCFG[DEFAULT]  MAXPROC=10,20 MAXJOB=3 MAXIJOB=2,4
USERCFG[b]        MAXNODE=4 MAXPS=900,1800 MAXIJOB=1
CLASSCFG[fast]    MAXNODE=12 MAXJOBPERUSER=2 MAXPROC[USER]=5,9
ACCOUNTCFG[x]     MAXPS=5000 MAXWC=700
SYSCFG            MAXPROC=30 MAXJOB=9
"""


def naive_idle(limits: Limits, queue: MauiQueue, eligible, ranks, hard: bool, most: dict[str, tuple[int, int]]):
    """Return the rows that MAXIJOB of users allows to be checked, one by one in the order of rank."""
    kept = np.zeros(queue.rows, dtype=bool)
    taken: dict[str, int] = {}
    for row in sorted(np.flatnonzero(eligible).tolist(), key=lambda row: (-ranks[row], row)):
        user = queue.job(row).id[0]
        taken[user] = taken.get(user, 0) + 1
        kept[row] = taken[user] <= most.get(user, most["DEFAULT"])[hard]
    return kept


@pytest.mark.parametrize("seed", range(8))
def test_rows_that_may_start_are_those_that_no_limit_blocks(seed: int) -> None:
    """After any sequence of arrivals, starts and ends, at both levels, for all rows and for some."""
    chance = Random(seed)  # noqa: S311 - a test's dice
    settings, warnings = parse_maui_config(LIMITS)
    assert not warnings
    credentials, queue = Credentials(), MauiQueue()
    limits = Limits(settings, credentials)
    running: list[tuple[SchedulerJob, int]] = []
    now, checks = 0.0, 0
    for number in range(400):
        now += chance.choice([0.0, 1.0, 7.0])
        names = Names(
            chance.choice("abcd"), None, chance.choice(["x", "y", None]), chance.choice(["fast", "long"]), "DEFAULT"
        )
        code = credentials.code(names)
        job = SchedulerJob(f"{names.user}{number}", number, chance.choice([1, 2, 3, 5, 8]), 60.0, now)
        queue.add(job, walltime=float(chance.choice([10, 60, 200])), code=code, access=0, since=now)
        for hard in (False, True):
            ranks = np.array([float(chance.randrange(3)) for _ in range(queue.rows)])
            allowed = limits.allowed(queue, now, hard=hard)
            assert allowed is not None
            rows = np.flatnonzero(queue.live)
            expected = [
                limits.blocked(int(queue.code[row]), int(queue.size[row]), float(queue.walltime[row]), now, hard=hard)
                is None
                for row in rows
            ]
            assert allowed[rows].tolist() == expected
            some = limits.allowed(queue, now, hard=hard, rows=rows[::2])
            assert some is not None
            assert some.tolist() == expected[::2]
            eligible = queue.live & allowed
            found = limits.considered(queue, eligible, ranks, hard=hard, use="test")
            naive = naive_idle(limits, queue, eligible, ranks, hard, {"DEFAULT": (2, 4), "b": (1, 1)})
            assert found.tolist() == naive.tolist()
            checks += len(rows)
        startable = np.flatnonzero(queue.live & allowed).tolist()
        for row in startable[: chance.choice([0, 1, 1, 2])]:
            job, code = queue.job(row), int(queue.code[row])
            if limits.blocked(code, job.size, float(queue.walltime[row]), now, hard=True) is None:
                limits.started(job.number, job.size, code, now + float(queue.walltime[row]))
                running.append((job.number, job.size, code))
                queue.remove(job)
        if running and chance.random() < 0.6:
            limits.ended(*running.pop(chance.randrange(len(running))))
        if number % 100 == 99:  # the rows are renumbered
            for job in list(queue):
                queue.remove(job)
    assert checks > 5000


@pytest.mark.parametrize("part", [1, 7, 2048])
@pytest.mark.parametrize("seed", range(4))
def test_maxijob_of_two_kinds_counts_a_job_only_if_both_take_it(
    seed: int, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One by one in the order of rank; a job beyond one limit does not count for the other; however many at a time."""
    monkeypatch.setattr("pipistrelle.schedulers.maui.limits.idle._PART", part)
    chance = Random(seed)  # noqa: S311 - a test's dice
    credentials, queue = Credentials(), MauiQueue()
    limits = Limits(parse_maui_config("USERCFG[DEFAULT] MAXIJOB=2\nCLASSCFG[DEFAULT] MAXIJOB=5")[0], credentials)
    for number in range(80):
        user, queue_name = chance.choice("abcdef"), chance.choice("uv")
        code = credentials.code(Names(user, None, None, queue_name, "DEFAULT"))
        queue.add(SchedulerJob(user + queue_name, number, 1, 1.0, 0.0), walltime=1.0, code=code, access=0, since=0.0)
    ranks = np.array([float(chance.randrange(5)) for _ in range(80)])
    found = limits.considered(queue, queue.live, ranks, hard=True)
    taken: dict[str, int] = {}
    for row in sorted(range(80), key=lambda row: (-ranks[row], row)):
        user, queue_name = queue.job(row).id
        fits = taken.get(user, 0) < 2 and taken.get(queue_name, 0) < 5
        if fits:
            taken[user], taken[queue_name] = taken.get(user, 0) + 1, taken.get(queue_name, 0) + 1
        assert found[row] == fits


@pytest.mark.parametrize("users", [1, 40])
@pytest.mark.parametrize("seed", range(3))
def test_many_rows_of_a_counter_at_once(seed: int, users: int) -> None:
    """MAXIJOB of dozens, of one user or of many: first by rank, ties by submission, at first and after changes."""
    chance = Random(seed)  # noqa: S311 - a test's dice
    credentials, queue = Credentials(), MauiQueue()
    limits = Limits(parse_maui_config("USERCFG[DEFAULT] MAXIJOB=30")[0], credentials)
    for number in range(80 * users):
        user = str(number % users)
        code = credentials.code(Names(user, None, None, None, "DEFAULT"))
        queue.add(SchedulerJob(user, number, 1, 1.0, 0.0), walltime=1.0, code=code, access=0, since=0.0)
    for _ in range(3):
        ranks = np.array([float(chance.randrange(4)) for _ in range(queue.rows)])
        found = limits.considered(queue, queue.live, ranks, hard=True, use="test")
        expected = np.zeros(queue.rows, dtype=bool)
        for user in range(users):
            rows = range(user, queue.rows, users)
            expected[sorted(rows, key=lambda row: (-ranks[row], row))[:30]] = True
        assert found.tolist() == expected.tolist()


def test_jobs_beyond_a_full_counter_are_not_visited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 300 rows of three users, two each, six are checked, one at a time."""
    monkeypatch.setattr("pipistrelle.schedulers.maui.limits.idle._PART", 1)
    looked: list[int] = []

    def first(rows, ranks, part):
        looked.append(len(rows))
        return _first(rows, ranks, part)

    monkeypatch.setattr("pipistrelle.schedulers.maui.limits.idle._first", first)
    credentials, queue = Credentials(), MauiQueue()
    limits = Limits(parse_maui_config("USERCFG[DEFAULT] MAXIJOB=2\nCLASSCFG[DEFAULT] MAXIJOB=250")[0], credentials)
    for number in range(300):
        code = credentials.code(Names("abc"[number // 100], None, None, "u", "DEFAULT"))
        queue.add(SchedulerJob(str(number), number, 1, 1.0, 0.0), walltime=1.0, code=code, access=0, since=0.0)
    found = limits.considered(queue, queue.live, np.zeros(300), hard=True)

    assert np.flatnonzero(found).tolist() == [0, 1, 100, 101, 200, 201]
    assert looked == [300, 299, 200, 199, 100, 99]


@pytest.mark.parametrize(("questions", "starts"), [(10000, [0]), (10051, [0, 10050])])
def test_a_very_deep_window_is_filled_by_the_first_questions(
    monkeypatch: pytest.MonkeyPatch, questions: int, starts: list[int]
) -> None:
    """GREEDY with as many jobs as questions: those that fit one after the other, of the first by rank alone."""
    monkeypatch.setattr("pipistrelle.schedulers.backfill.fills._MOST_QUESTIONS", questions)
    queue, plan = MauiQueue(), AccessPlan(8, 0.0, by_number, 24)
    for number in range(10050):
        size = 5 if number < 3 else 4
        queue.add(SchedulerJob(str(number), number, size, 10.0, 0.0), walltime=10.0, code=0, access=0, since=0.0)
    queue.add(SchedulerJob("last", 10050, 3, 10.0, 0.0), walltime=10.0, code=0, access=0, since=0.0)
    plan.begin([], 1)
    started: list[int] = []

    def start(row: int) -> bool:
        started.append(row)
        return True

    candidates = Candidates(queue, plan, 1, start, queue.live.copy(), np.ones(queue.rows), 0.0)
    candidates.select(candidates.next_window(0.0), 0)

    assert candidates.next_window(inf) == -inf
    greedy(candidates, "PROCS")
    assert started == starts
