"""PBS's order and its backfilling around several reservations."""

from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipistrelle.platforms.classes import JobClass
from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.failures.outage import Outages
from pipistrelle.platforms.maintenance.plan import MaintenancePlan
from pipistrelle.platforms.maintenance.text import parse_maintenance
from pipistrelle.protocol.events import JobDescription
from pipistrelle.runs.execution.run import RunOptions, run_in_process
from pipistrelle.schedulers.catalogue.parts import compose
from pipistrelle.schedulers.composed import ComposedPolicy
from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.schedulers.orders.pbs import VARIABLES, PbsOptions, PbsOrder
from pipistrelle.schedulers.pbs.backfill import Depth, DepthOptions
from pipistrelle.schedulers.placement.lowest import LowestIds
from pipistrelle.schedulers.policy.errors import FormulaError
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.waiting.moving import queue_of
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.traces.generator import generate

RunPolicy = Callable[..., Any]
Rows = list[tuple[float, int, float, float]]


def rows(seed: int, jobs: int = 150, *, exact: bool = False) -> Rows:
    """Return a random workload for 16 units, with bursts and ties; ``exact``: jobs last as long as they may."""
    chance = np.random.default_rng(seed)
    size = chance.choice([1, 1, 2, 3, 4, 8, 12, 16], jobs)
    runtime = chance.choice([10.0, 10.0, 20.0, 30.0, 60.0, 90.0], jobs)
    walltime = runtime if exact else runtime * chance.choice([1.0, 1.0, 2.0, 0.5], jobs)
    submit = np.cumsum(chance.choice([0.0, 0.0, 5.0, 10.0, 20.0], jobs))
    return list(zip(submit.tolist(), size.tolist(), runtime.tolist(), walltime.tolist(), strict=True))


def job(number: int, *, size: int = 1, submit: float = 0.0, walltime: float = 60.0, **names: str) -> SchedulerJob:
    """Return a waiting job with names of user, account, queue..."""
    description = JobDescription(f"w0!{number}", size, walltime, **names)
    return SchedulerJob(description.id, number, size, walltime, submit, description=description)


def order_of(order: PbsOrder, jobs: list[SchedulerJob], now: float) -> list[int]:
    """Return the numbers of the jobs in the order's queue."""
    queue = queue_of(order)
    for one in jobs:
        queue.add(one)
    queue.rerank(now)
    return [one.number for one in queue]


def values(order: PbsOrder, jobs: list[SchedulerJob], now: float) -> list[float]:
    """Return the formula's value of each job."""
    table = np.array([order.attributes(one) for one in jobs]).T
    return order.values(table, now).tolist()


def test_paper_002_equation_1() -> None:
    """p = 1000 q + f/1000 + w/864000, with f of equation 2: to the last digit."""
    order = PbsOrder(
        PbsOptions(
            "1000*queue_priority + fairshare/1000 + eligible_time/864000",
            queue_priorities={"qprod": 0, "qexp": 150},
            fairshare_entity="account",
        )
    )
    jobs = [
        job(0, submit=0.0, account="ada", queue="qprod"),
        job(1, submit=400.0, account="bob", queue="qexp"),
        job(2, submit=300.0, account="eve", queue="qfree"),
    ]
    order.started(jobs[0], 0.0)
    order.ended(jobs[0], 300.0)
    order.started(jobs[1], 300.0)
    order.ended(jobs[1], 400.0)

    assert values(order, jobs, 86800.0) == [
        1000 * 0 + 1e6 * (1 - 0.75) / 1000 + 86800.0 / 864000,
        1000 * 150 + 1e6 * (1 - 0.25) / 1000 + 86400.0 / 864000,
        1000 * 0 + 1e6 * (1 - 0.0) / 1000 + 86500.0 / 864000,
    ]
    assert order_of(order, jobs, 86800.0) == [1, 0, 2]  # a new queue: nothing has run


def test_every_variable() -> None:
    """Each has the value that docs/reference/pbs.md states."""
    for name in VARIABLES:
        order = PbsOrder(
            PbsOptions(name, queue_priorities={"q": 7.0}, fairshare_shares={"ada": 30.0}, unknown_shares=10.0)
        )
        one = job(0, size=4, submit=10.0, walltime=600.0, user="ada", queue="q")
        order.started(one, 0.0)
        expected = {
            "accrue_type": 2.0,
            "eligible_time": 90.0,
            "fairshare": 0.0,
            "fairshare_factor": 2 ** (-1 / 0.75),
            "fairshare_perc": 0.75,
            "fair_share_perc": 0.75,
            "fairshare_tree_usage": 1.0,
            "ncpus": 4.0,
            "queue_priority": 7.0,
            "walltime": 600.0,
        }[name]
        assert values(order, [one], 100.0) == pytest.approx([expected], rel=1e-15)


def test_jobs_pass_each_other_while_they_wait() -> None:
    """A short one gains on a long one as expansion grows."""
    order = PbsOrder(PbsOptions("(eligible_time + walltime) / walltime"))
    jobs = [job(0, submit=0.0, walltime=6000.0), job(1, submit=50.0, walltime=60.0)]

    assert order_of(order, jobs, 50.0) == [0, 1]
    assert order_of(order, jobs, 60.0) == [1, 0]


def test_a_formula_that_fails_for_a_job_is_0_for_it() -> None:
    """As PBS has it."""
    order = PbsOrder(PbsOptions("-1 / eligible_time"))
    assert values(order, [job(0, submit=0.0), job(1, submit=5.0)], 5.0) == [-0.2, 0.0]


def test_unsupported_pbs_name_is_reported() -> None:
    """A variable of PBS without a value here is no typing error."""
    with pytest.raises(FormulaError, match=r"'mem'\. PBS has it, but schedulers here do not receive it"):
        PbsOrder(PbsOptions("ncpus + mem"))


@pytest.mark.parametrize("seed", range(4))
def test_pbs_by_waiting_time_is_fcfs(run_policy: RunPolicy, seed: int) -> None:
    """Without a formula the order is that of submission, and with a depth of 1 the rule is EASY."""
    pbs = run_policy(compose(order="pbs", backfill="depth"), 16, rows(seed))
    easy = run_policy(compose(order="fcfs", backfill="easy"), 16, rows(seed))

    assert pbs.starts == easy.starts


@pytest.mark.parametrize("filtered", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_depth_and_strict_ordering(run_policy: RunPolicy, seed: int, filtered: bool) -> None:
    """Depth 1 is EASY, depth 0 no backfilling, and without strict ordering it is first fit."""
    for options, rule in (({}, "easy"), ({"depth": 0}, "none"), ({"strict-ordering": False}, "firstfit")):
        depth = run_policy(compose(backfill="depth", backfill_options=options), 16, rows(seed), filtered=filtered)
        other = run_policy(compose(backfill=rule), 16, rows(seed), filtered=filtered)
        assert depth.starts == other.starts


class Promises(Depth):
    """Writes down the reservations that the first jobs in the queue could have by numbers of units alone."""

    def __init__(self, depth: int) -> None:
        super().__init__(DepthOptions(depth))
        self.depth = depth
        self.promised: dict[int, float] = {}

    def schedule(self, view: View, placement: Any) -> None:
        """Decide, then reserve for the first jobs, second by second, as one would on paper."""
        super().schedule(view, placement)
        free: dict[int, int] = {}

        def free_at(time: int) -> int:
            if time not in free:
                held = sum(job.size for job in view.running if max(job.expected_end, view.now + 1) > time)
                free[time] = view.units - held
            return free[time]

        for job in view.waiting.leading(self.depth):
            time = int(view.now)
            while any(free_at(t) < job.size for t in range(time, time + int(job.walltime))):
                time += 1
            for t in range(time, time + int(job.walltime)):
                free[t] -= job.size
            self.promised.setdefault(job.number, float(time))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_no_reserved_job_is_delayed(run_policy: RunPolicy, seed: int, depth: int) -> None:
    """Each of the first jobs starts by the reservation that it got when it became one of them.

    Those behind the very first may be delayed by jobs that end early: the first then starts sooner, beside others.
    """
    rule = Promises(depth)
    run = run_policy(ComposedPolicy("p", Fcfs(), rule, LowestIds()), 16, rows(seed, 80, exact=depth > 1))
    assert len(rule.promised) > 10
    assert {n: (run.start_of[n], by) for n, by in rule.promised.items() if run.start_of[n] > by} == {}


def test_a_deeper_reservation_keeps_a_job_from_passing(run_policy: RunPolicy) -> None:
    """Job 3 would delay job 2, which has a reservation only under depth 2."""
    jobs = [(0.0, 12, 100.0, 100.0), (1.0, 16, 10.0, 10.0), (2.0, 8, 10.0, 10.0), (3.0, 2, 200.0, 200.0)]
    jobs += [(4.0, 9, 10.0, 10.0)]
    one, two = (
        run_policy(compose(backfill="depth", backfill_options={"depth": depth}), 16, jobs).start_of for depth in (1, 2)
    )
    assert one[1] == two[1] == 100.0
    assert one[2] == two[2] == 110.0


def test_jobs_without_walltime_wait_without_a_promise(run_policy: RunPolicy) -> None:
    """A first job that cannot get a reservation blocks no other job."""
    jobs = [(0.0, 10, 100.0, inf), (1.0, 12, 10.0, 10.0), (2.0, 6, 500.0, 500.0), (3.0, 1, 5.0, 5.0)]
    run = run_policy(compose(backfill="depth", backfill_options={"depth": 2}), 16, jobs)

    assert run.start_of == {0: 0.0, 2: 2.0, 1: 502.0, 3: 100.0}


@pytest.mark.parametrize("never", [0, "0", "0h", "0:00:00"])
def test_a_decay_time_of_0_means_that_usage_never_fades(never: float | str) -> None:
    """However the 0 is written; the other formulas of these tests see it fade."""
    order = PbsOrder(PbsOptions(formula="fairshare", fairshare_shares={"a": 1.0, "b": 1.0}, decay_time=never))
    first, second = (
        SchedulerJob(
            f"w0!{number}", number, 1, 10.0, 0.0, description=JobDescription(id=f"w0!{number}", res=1, user=user)
        )
        for number, user in enumerate("ab")
    )
    order.started(first, 0.0)
    order.ended(first, 100.0)
    order.started(second, 1e6)

    assert order.terms(first, 1e6 + 300.0)["priority"] == pytest.approx(1e6 * (1 - 100 / 400))


class Each(Depth):
    """The same rule, which tries to start every waiting job."""

    def _schedule_by_units(self, view: View, placement: Any) -> None:
        self._grouped = All(view)  # type: ignore[assignment]
        super()._schedule_by_units(view, placement)


class All:
    """A queue of which every job is tried."""

    def __init__(self, view: View) -> None:
        self.view = view

    def follow(self) -> None:
        """Do nothing."""

    def drop(self, job: SchedulerJob) -> None:
        """Do nothing."""

    def start_fitting(self, plan: Any) -> None:
        """Try each job."""
        for one in list(self.view.waiting):
            plan.start_if_fits(one)


@pytest.mark.parametrize("kind", ["classes", "constraints", "both, maintenance"])
@pytest.mark.parametrize("depth", [1, 3])
def test_jobs_left_out_by_their_open_units_could_not_start(kind: str, depth: int, tmp_path: Path) -> None:
    """With pools of classes, constraints and maintenance, outputs are those of a rule that tries every job."""
    drawn = generate(jobs=400, units=24, seed=depth, load=1.4)
    chance = np.random.default_rng(depth)
    names = chance.choice(["left", "right", "any"], 400).tolist()
    names = ["any" if size > 8 else name for name, size in zip(names, drawn.size.tolist(), strict=True)]
    wanted = {"left": "pool=a", "right": "pool=b", "any": ""}
    labels = {"queue": names} if kind != "constraints" else {}
    if kind != "classes":
        labels["constraint"] = [wanted[name] for name in names]
    queues = (JobClass(name="left", pools=("a",)), JobClass(name="right", pools=("b",)))
    machine = Platform(name="m", pools=(Pool(name="a", nodes=14), Pool(name="b", nodes=10)), classes=queues)
    planned = None
    if kind.endswith("maintenance"):
        line = f"@{float(drawn.submit[-1]) / 3:.0f} +7200s 0-9"
        rule = parse_maintenance(line, machine, where="test", epoch=None, timezone=None)
        planned = Reliability(outages=Outages.of(()), maintenance=MaintenancePlan((rule,)))
    for rule in (Depth, Each):
        policy = ComposedPolicy("pbs", Fcfs(), rule(DepthOptions(depth=depth)), LowestIds())
        run_in_process(
            replace(drawn, labels=labels),
            policy,
            platform=machine,
            reliability=planned,
            options=RunOptions(out=tmp_path / rule.__name__),
        )
    for name in ("out_jobs.csv", "out_decisions.csv"):
        assert (tmp_path / "Depth" / name).read_bytes() == (tmp_path / "Each" / name).read_bytes()
