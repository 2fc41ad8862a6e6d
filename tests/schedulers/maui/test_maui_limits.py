"""Limits of credentials: soft and hard, of running and of waiting jobs."""

from collections.abc import Callable
from math import inf

import numpy as np
import pytest

from pipistrelle.schedulers.maui.config.read import parse_maui_config
from pipistrelle.schedulers.maui.config.settings import Names
from pipistrelle.schedulers.maui.limits.limits import Limits
from pipistrelle.schedulers.maui.priority.credentials import Credentials
from pipistrelle.schedulers.maui.priority.waiting import MauiQueue
from pipistrelle.schedulers.policy.jobs import SchedulerJob

Make = Callable[..., tuple[Limits, Credentials, MauiQueue]]


def job(number: int, size: int) -> SchedulerJob:
    """Return a job."""
    return SchedulerJob(f"w0!{number}", number, size, 100.0, 0.0)


def names(user: str | None = None, class_: str | None = None, account: str | None = None) -> Names:
    """Return a job's names."""
    return Names(user, None, account, class_, "DEFAULT")


@pytest.fixture
def make() -> Make:
    """Return a function that makes limits, credentials and a queue of (names, size, walltime)."""

    def build(text: str, waiting: tuple[tuple[Names, int, float], ...] = (), units_per_node: int = 1):
        credentials = Credentials()
        limits = Limits(parse_maui_config(text)[0], credentials, units_per_node)
        queue = MauiQueue()
        for number, (who, size, walltime) in enumerate(waiting):
            queue.add(job(number, size), walltime=walltime, code=credentials.code(who), access=0, since=0.0)
        return limits, credentials, queue

    return build


def test_table_1_of_the_paper_limits_a_class_and_each_user_in_it(make) -> None:
    """Class qexp: 32 nodes in all, 8 for each user."""
    limits, credentials, queue = make(
        "CLASSCFG[qexp] PRIORITY=150 MAXNODE=32 MAXNODEPERUSER=8",
        ((names("ann", "qexp"), 3, 60.0), (names("bob", "qexp"), 9, 60.0), (names("ann", "qprod"), 99, 60.0)),
    )
    ann, bob = credentials.code(names("ann", "qexp")), credentials.code(names("bob", "qexp"))
    limits.started(100, 6, ann, 60.0)

    assert limits.allowed(queue, 0.0, hard=True).tolist() == [False, False, True]
    assert str(limits.blocked(ann, 3, 60.0, 0.0, hard=True)) == "CLASSCFG[qexp] MAXNODE[USER]=8 (user ann), in use: 6"
    assert limits.blocked(ann, 2, 60.0, 0.0, hard=True) is None
    for number in range(3):
        limits.started(number, 8, credentials.code(names(f"u{number}", "qexp")), 60.0)
    assert limits.blocked(bob, 2, 60.0, 0.0, hard=True) is None
    assert "MAXNODE=32, in use: 30" in str(limits.blocked(bob, 3, 60.0, 0.0, hard=True))
    limits.ended(100, 6, ann)
    assert limits.blocked(bob, 8, 60.0, 0.0, hard=True) is None
    assert limits.never(bob, 9, 60.0) is not None


def test_soft_limits_are_lower(make) -> None:
    """At the soft level the first number counts, at the hard level the second."""
    limits, credentials, queue = make("USERCFG[DEFAULT] MAXPROC=4,8 MAXJOB=5", ((names("ann"), 2, 60.0),))
    ann = credentials.code(names("ann"))
    limits.started(7, 3, ann, 60.0)

    assert limits.two_levels
    assert limits.allowed(queue, 0.0, hard=False).tolist() == [False]
    assert limits.allowed(queue, 0.0, hard=True).tolist() == [True]


def test_ones_own_limit_replaces_that_of_default(make) -> None:
    """Metric by metric, also by no limit at all."""
    limits, credentials, _ = make(
        "USERCFG[DEFAULT] MAXPROC=4 MAXJOB=1\nUSERCFG[ann] MAXPROC=10\nUSERCFG[bob] MAXPROC=INFINITY"
    )
    ann, bob, eve = (credentials.code(names(who)) for who in ("ann", "bob", "eve"))

    assert [limits.blocked(code, 9, 1.0, 0.0, hard=True) is None for code in (ann, bob, eve)] == [True, True, False]
    limits.started(1, 1, bob, 1.0)
    assert limits.blocked(bob, 1, 1.0, 0.0, hard=True) is not None
    assert limits.blocked(ann, 1, 1.0, 0.0, hard=True) is None


def test_outstanding_work_shrinks_while_jobs_run(make) -> None:
    """MAXPS counts units x time left, MAXWC time left; the time when a job fits is known beforehand."""
    limits, credentials, queue = make(
        "ACCOUNTCFG[a] MAXPS=1000\nUSERCFG[ann] MAXWC=3:00", ((names(None, None, "a"), 4, 100.0),)
    )
    shared, ann = credentials.code(names(None, None, "a")), credentials.code(names("ann"))
    limits.started(1, 8, shared, 100.0)
    limits.started(2, 1, ann, 100.0)

    assert limits.allowed(queue, 0.0, hard=True).tolist() == [False]
    assert limits.next_room(queue, np.array([0]), 0.0) == 25.0
    assert limits.allowed(queue, 25.0, hard=True).tolist() == [True]
    assert limits.blocked(ann, 1, 100.0, 0.0, hard=True) is not None
    assert limits.blocked(ann, 1, 100.0, 20.0, hard=True) is None
    assert limits.next_room(queue, np.array([0]), 25.0) == inf


def test_nodes_are_counted_from_units(make) -> None:
    """A job of 5 units has 2 nodes of 4 units."""
    limits, credentials, _ = make("SYSCFG MAXNODE=3", units_per_node=4)
    code = credentials.code(names())
    limits.started(1, 5, code, 1.0)

    assert limits.blocked(code, 4, 1.0, 0.0, hard=True) is None
    assert str(limits.blocked(code, 5, 1.0, 0.0, hard=True)) == "SYSCFG MAXNODE=3, in use: 2"


def test_maxijob_looks_at_the_first_of_each_credential(make) -> None:
    """Jobs beyond a limit of waiting jobs are not checked, in the order of rank; others move up."""
    ann, bob = names("ann", "c"), names("bob", "c")
    limits, _, queue = make(
        "USERCFG[DEFAULT] MAXIJOB=2\nCLASSCFG[c] MAXIJOB=3",
        ((ann, 1, 1.0), (ann, 1, 1.0), (ann, 1, 1.0), (bob, 1, 1.0), (bob, 1, 1.0), (names("eve"), 1, 1.0)),
    )
    ranks = np.array([1.0, 5.0, 5.0, 4.0, 3.0, 0.0])
    everything = np.ones(6, dtype=bool)

    assert limits.idle
    assert limits.considered(queue, everything, ranks, hard=True).tolist() == [False, True, True, True, False, True]
    everything[1] = False
    assert limits.considered(queue, everything, ranks, hard=True).tolist() == [False, False, True, True, True, True]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("CLASSCFG[c] MAXNODEPERJOB=3", "CLASSCFG[c] MAXNODEPERJOB=3, the job has 4"),
        ("CLASSCFG[DEFAULT] MAX.WCLIMIT=30", "CLASSCFG[DEFAULT] MAX.WCLIMIT=30 (class c), the job has 60"),
        ("USERCFG[DEFAULT] MAXPROC=2,3", "USERCFG[DEFAULT] MAXPROC=3 (user ann), in use: 0, the job needs 4"),
        ("CLASSCFG[DEFAULT] MAXPROCPERUSER=3", "CLASSCFG[DEFAULT] MAXPROC[USER]=3 (class c, user ann), in use: 0"),
        ("SYSCFG MAXPROC=3", "SYSCFG MAXPROC=3, in use: 0"),
        ("CLASSCFG[c] MAXPROC=3", "CLASSCFG[c] MAXPROC=3"),
        ("SYSTEMMAXPROCPERJOB 3", "SYSTEMMAXPROCPERJOB=3"),
        ("SYSTEMMAXJOBWALLTIME 59", "SYSTEMMAXJOBWALLTIME=59"),
        ("SYSTEMMAXPROCSECONDPERJOB 239", "SYSTEMMAXPROCSECONDPERJOB=239"),
        ("USERCFG[eve] MAXPROC=1", ""),
    ],
)
def test_a_job_that_can_never_run_is_known(make, text: str, part: str) -> None:
    """Because it alone exceeds a hard limit; the reason names it."""
    limits, credentials, _ = make(text)
    who = names("ann", "c")
    reason = limits.never(credentials.code(who), 4, 60.0)

    assert (reason is None) == (part == "")
    assert part in (reason or "")
