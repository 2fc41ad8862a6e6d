"""The priority of a job: Maui's terms, paper 002's equations."""

from fractions import Fraction

import numpy as np
import pytest

from pipistrelle.papers.printed import read_paper
from pipistrelle.schedulers.maui.config.read import parse_maui_config
from pipistrelle.schedulers.maui.config.settings import Names
from pipistrelle.schedulers.maui.priority.credentials import Credentials
from pipistrelle.schedulers.maui.priority.fairshare import Fairshare
from pipistrelle.schedulers.maui.priority.priority import Priorities
from pipistrelle.schedulers.maui.priority.waiting import GONE, MauiQueue
from pipistrelle.schedulers.policy.jobs import SchedulerJob

NOBODY = Names(None, None, None, None, "DEFAULT")


class Machine:
    """A configuration with its queue, fairshare and priorities."""

    def __init__(self, text: str, units_per_node: int = 1) -> None:
        self.settings = parse_maui_config(text)[0]
        self.credentials = Credentials()
        self.fairshare = Fairshare(self.settings, self.credentials)
        self.priorities = Priorities(self.settings, self.credentials, self.fairshare, units_per_node)
        self.queue = MauiQueue()

    def submit(self, names: Names = NOBODY, *, size: int = 1, walltime: float = 3600.0, since: float = 0.0) -> int:
        """Let a job wait and return its row."""
        job = SchedulerJob(f"w0!{self.queue.rows}", self.queue.rows, size, walltime, since)
        self.queue.add(job, walltime=walltime, code=self.credentials.code(names), access=0, since=since)
        return self.queue.row_of[job.number]

    def total(self, row: int, now: float) -> float:
        """Return a job's priority before it is cut."""
        return self.priorities.breakdown(self.queue, row, now).total


#: section 2.1 of paper 002, for its equations 1 and 2, without its weight of the wait
PAPER = read_paper("002").printed["config"].replace("QUEUETIMEWEIGHT 1\n", "")


def equations(queue_priority: int, used: int, total: int, waited: int) -> tuple[Fraction, Fraction]:
    """Return p of equation 1 and f of equation 2, exactly; ``waited`` in seconds."""
    share = 10**6 * (1 - Fraction(used, total))
    return 1000 * queue_priority + share / 1000 + Fraction(waited, 864000), share


@pytest.mark.parametrize(("queue", "priority"), [("qexp", 150), ("qprod", 0), ("qfree", -1024)])
@pytest.mark.parametrize("waited", [0, 86400, 432000])
def test_equations_1_and_2_to_the_last_digit(queue: str, priority: int, waited: int) -> None:
    """Maui's priority is 864,000 times equation 1 when its queue time, in minutes, weighs 60."""
    machine = Machine(PAPER + "QUEUETIMEWEIGHT 60")
    mine = Names("ann", "g", "OPEN-1-1", queue, "DEFAULT")
    other = Names("bob", "g", "OPEN-2-2", "qprod", "DEFAULT")
    # 3 units and 5 units for the whole time: u_p / u_t is 3/8, so that f is 625,000.
    machine.fairshare.started(0.0, machine.credentials.code(mine), 3)
    machine.fairshare.started(0.0, machine.credentials.code(other), 5)
    now = 500000.0
    row = machine.submit(mine, since=now - waited)
    exact, share = equations(priority, 3, 8, waited)
    found = machine.priorities.breakdown(machine.queue, row, now)

    assert share == 625000
    assert Fraction(found.total) == 864000 * exact
    assert found.rank == found.total
    assert {term.subcomponent: term.factor for term in found.terms} == {
        "QUEUETIME": waited / 60,
        "CLASS": priority,
        "FSACCOUNT": 62.5,
    }


def test_the_papers_own_weights_count_minutes() -> None:
    """With QUEUETIMEWEIGHT 1, as the paper prints it, a wait counts a 60th of equation 1's value."""
    machine = Machine(PAPER + "QUEUETIMEWEIGHT 1")
    row = machine.submit(Names("ann", "g", "a", "qprod", "DEFAULT"), since=0.0)

    assert machine.total(row, 864000.0) == 14400.0


def test_components_weigh_the_sum_of_their_subcomponents() -> None:
    """Each factor has its weight, each component another on top."""
    machine = Machine(
        """
        CREDWEIGHT 2
        USERWEIGHT 3
        GROUPWEIGHT 5
        ACCOUNTWEIGHT 7
        QOSWEIGHT 11
        CLASSWEIGHT 13
        USERCFG[ann] PRIORITY=1
        USERCFG[DEFAULT] PRIORITY=100
        GROUPCFG[DEFAULT] PRIORITY=10
        ACCOUNTCFG[a] PRIORITY=-4
        QOSCFG[high] PRIORITY=6 QTWEIGHT=4 XFWEIGHT=8
        CLASSCFG[long] PRIORITY=9
        SERVICEWEIGHT 10
        QUEUETIMEWEIGHT 1
        XFACTORWEIGHT 20
        RESWEIGHT 3
        NODEWEIGHT 1000
        PROCWEIGHT 100
        WALLTIMEWEIGHT 2
        PSWEIGHT 1
        PEWEIGHT 1
        """,
        units_per_node=4,
    )
    high = machine.submit(Names("ann", "g", "a", "long", "high"), size=6, walltime=600.0)
    plain = machine.submit(Names("bob", None, None, None, "DEFAULT"), size=6, walltime=600.0)
    resources = 3 * (2 * 1000 + 6 * 100 + 600 * 2 + 3600 + 6)
    service = 10 * (1 * 20 + 20 * 3)

    credentials = 2 * (3 * 1 + 5 * 10 + 7 * -4 + 11 * 6 + 13 * 9)
    assert machine.total(high, 1200.0) == 10 * (5 * 20 + 28 * 3) + credentials + resources
    assert (
        machine.total(plain, 1200.0) == service + 2 * (3 * 100 + 5 * 10) + resources
    )  # DEFAULT counts for no group, too


def test_caps_bound_factors_and_components() -> None:
    """A factor's cap comes before its weight, a component's before the component's weight."""
    machine = Machine(
        "QUEUETIMECAP 10\nXFACTORWEIGHT 5\nXFACTORCAP 2\nRESWEIGHT 2\nPROCWEIGHT 1\nRESCAP 100\nSERVICEWEIGHT 3"
    )
    row = machine.submit(size=500, walltime=60.0)

    assert machine.total(row, 60.0) == 3 * (1 + 5 * 2) + 2 * 100
    assert machine.total(row, 6000.0) == 3 * (10 + 5 * 2) + 2 * 100


def test_the_least_walltime_of_the_expansion_factor() -> None:
    """XFMINWCLIMIT keeps short jobs from growing too fast."""
    machine = Machine("QUEUETIMEWEIGHT 0\nXFACTORWEIGHT 1\nXFMINWCLIMIT 2:00")
    rows = [machine.submit(walltime=walltime) for walltime in (10.0, 120.0, 240.0)]

    assert [machine.total(row, 240.0) for row in rows] == [3.0, 3.0, 2.0]


def test_target_factor_grows_near_the_target() -> None:
    """(target - reached)^-2, beyond the target as if one ten-thousandth away; no target, no term."""
    machine = Machine(
        "QUEUETIMEWEIGHT 0\nTARGWEIGHT 1\nTARGETQUEUETIMEWEIGHT 1\nTARGETXFACTORWEIGHT 1000\n"
        "QOSCFG[q] QTTARGET=100\nQOSCFG[x] XFTARGET=5"
    )
    queue_time = machine.submit(Names(None, None, None, None, "q"))
    xfactor = machine.submit(Names(None, None, None, None, "x"), walltime=10.0)
    none = machine.submit()

    assert machine.total(queue_time, 90.0) == pytest.approx(0.01)
    assert machine.total(queue_time, 100.0) == machine.total(queue_time, 500.0) == pytest.approx(1e8)
    assert machine.total(xfactor, 20.0) == pytest.approx(1000 / 4)
    assert machine.total(none, 500.0) == 0.0


def test_bypasses_count() -> None:
    """BYPASSWEIGHT times how often a job was passed."""
    machine = Machine("QUEUETIMEWEIGHT 0\nBYPASSWEIGHT 5000")
    row = machine.submit()
    machine.queue.bypass[row] += 3

    assert machine.priorities.counts_bypasses
    assert machine.total(row, 0.0) == 15000.0


def test_jobs_are_ranked_by_whole_numbers_from_1_on() -> None:
    """Fractions are cut off; below 1 only with ENABLENEGJOBPRIORITY."""
    for text, expected in (("", [1.0, 1.0, 2.0]), ("ENABLENEGJOBPRIORITY TRUE", [-4.0, 1.0, 2.0])):
        machine = Machine(f"{text}\nCREDWEIGHT 1\nUSERWEIGHT 1\nUSERCFG[eve] PRIORITY=-7")
        machine.submit(Names("eve", None, None, None, "DEFAULT"), since=0.0)
        machine.submit(since=40.0)
        machine.submit(since=0.0)
        assert machine.priorities.ranks(machine.queue, 125.0).tolist() == expected


def test_the_breakdown_adds_up_to_the_rank_of_every_job() -> None:
    """Bit by bit, also behind gaps and for credentials that were added late."""
    machine = Machine(PAPER + "QUEUETIMEWEIGHT 7\nXFACTORWEIGHT 3\nRESWEIGHT 1\nPSWEIGHT 1")
    chance = np.random.default_rng(1)
    for number in range(300):
        names = Names(f"u{number % 7}", None, f"a{number % 5}", "qexp" if number % 3 else None, "DEFAULT")
        machine.submit(names, size=int(chance.integers(1, 50)), walltime=float(chance.integers(1, 9999)), since=number)
        machine.fairshare.started(float(number), machine.credentials.code(names), 1)
    for number in range(0, 300, 2):
        machine.queue.remove(machine.queue.job(number))
    late = machine.submit(Names("late", None, "late", "qfree", "DEFAULT"), since=301.0)
    ranks = machine.priorities.ranks(machine.queue, 5000.5)
    alive = np.flatnonzero(machine.queue.size != GONE)

    assert late in alive
    for row in alive.tolist():
        found = machine.priorities.breakdown(machine.queue, row, 5000.5)
        assert found.rank == ranks[row]
        assert sum(found.components.values()) == pytest.approx(found.total)
        assert sum(term.value for term in found.terms) == pytest.approx(found.total)


def test_the_queue_closes_its_gaps() -> None:
    """Jobs that leave make room for others, rows follow."""
    queue = MauiQueue()
    jobs = [SchedulerJob(f"w0!{number}", number, 1 + number, 5.0, 0.0) for number in range(1000)]
    for job in jobs:
        queue.add(job, walltime=5.0, code=job.number % 3, access=0, since=job.number)
        if job.number % 2:
            queue.remove(job)
    assert [job.number for job in queue] == list(range(0, 1000, 2))
    assert all(
        queue.size[queue.row_of[job.number]] == job.size and queue.code[queue.row_of[job.number]] == job.number % 3
        for job in queue
    )
    assert jobs[1].number not in queue.row_of
    assert jobs[2].number in queue.row_of
    for job in list(queue):
        queue.remove(job)
    assert len(queue) == 0
    queue.add(jobs[0], walltime=5.0, code=0, access=0, since=0.0)
    assert (queue.rows, list(queue)) == (1, [jobs[0]])
