"""Titan's bins: order and rejections."""

from collections.abc import Callable
from math import inf
from typing import Any

import pytest

from pipistrelle.schedulers.catalogue.parts import compose, make_order
from pipistrelle.schedulers.catalogue.presets import library
from pipistrelle.schedulers.orders.bins import Bin, Bins, BinsOptions
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.waiting.moving import queue_of

DAY = 86400.0
MakeJob = Callable[..., SchedulerJob]


def titan() -> Bins:
    """Return the order of the preset."""
    order = make_order("bins", library()["titan-bins"].order_options)
    assert isinstance(order, Bins)
    return order


@pytest.mark.parametrize(
    ("size", "name", "boost", "limit"),
    [
        (18688, "Bin60", 15, 24),
        (11250, "Bin60", 15, 24),
        (11249, "Bin20", 5, 24),
        (3750, "Bin20", 5, 24),
        (3749, "Bin0", 0, 6),
        (125, "Bin0", 0, 6),
        (124, "SmallMaxJobs", 0, 2),
        (1, "SmallMaxJobs", 0, 2),
    ],
)
def test_paper_004_table_1(waiting_job: MakeJob, size: int, name: str, boost: int, limit: int) -> None:
    """Each row of the table, at both ends of its sizes."""
    order = titan()
    at_limit = waiting_job(0, size=size, walltime=limit * 3600.0, submit=7.0)
    over = waiting_job(1, size=size, walltime=limit * 3600.0 + 1)
    found = order.bin_of(at_limit)

    assert found is not None
    assert found.name == name
    assert order.rank(at_limit) == 7.0 - boost * DAY
    assert order.refusal(at_limit) is None
    assert order.refusal(over) == f"asks for {limit * 3600 + 1} s, bin {name} allows {limit * 3600} s"
    assert "asks for no walltime limit" in (order.refusal(waiting_job(2, size=size, walltime=inf)) or "")


def test_a_large_job_passes_those_of_the_last_days(waiting_job: MakeJob) -> None:
    """A Bin60 job is before every small one that has waited for less than 15 days, and behind the others."""
    queue = queue_of(titan())
    for number, (size, day) in enumerate([(1, 0.0), (1, 6.0), (4000, 10.0), (12000, 16.0), (1, 16.0)]):
        queue.add(waiting_job(number, size=size, submit=day * DAY))

    assert [job.number for job in queue] == [0, 3, 2, 1, 4]


def test_jobs_beyond_every_bin(waiting_job: MakeJob) -> None:
    """Smaller than the smallest bin: no boost, no limit."""
    order = Bins(BinsOptions((Bin("large", 10, boost="1h", longest_walltime="1:00:00"),)))
    small = waiting_job(0, size=9, walltime=inf, submit=3.0)

    assert (order.bin_of(small), order.rank(small), order.refusal(small)) == (None, 3.0, None)
    assert order.rank(waiting_job(0, size=10, submit=3600.0)) == 0.0


def test_a_job_over_the_limit_is_refused_or_runs(run_policy: Callable[..., Any]) -> None:
    """`over-limit` names them; rejected jobs are not among the arrivals either."""
    options = {"bins": [{"name": "small", "smallest": 1, "longest-walltime": 60}, {"name": "big", "smallest": 8}]}
    jobs = [(0.0, 1, 10.0, 61.0), (0.0, 1, 10.0, 60.0), (0.0, 9, 100.0, 1000.0)]
    for backfill in ("none", "firstfit", "easy", "conservative", "depth"):
        refused = run_policy(compose(order="bins", backfill=backfill, order_options=options), 16, jobs)
        assert sorted(refused.start_of) == [1, 2]
        assert refused.result.summary.rejected == 1
        runs = run_policy(
            compose(order="bins", backfill=backfill, order_options=options | {"over-limit": "run"}), 16, jobs
        )
        assert sorted(runs.start_of) == [0, 1, 2]
