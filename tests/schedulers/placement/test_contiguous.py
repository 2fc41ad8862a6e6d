"""A placement that may refuse, under every order and backfilling rule."""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.schedulers.pairs import PAIRS

from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.catalogue.parts import compose, make_backfill, make_order, make_placement
from pipistrelle.schedulers.composed import ComposedPolicy
from pipistrelle.schedulers.maui.config.read import parse_maui_config
from pipistrelle.schedulers.maui.policy import MauiPolicy
from pipistrelle.schedulers.placement.contiguous import Contiguous, ContiguousOptions
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.server.outages.reliability import Reliability

RunPolicy = Callable[..., Any]
Unsteady = Callable[..., Reliability]
MakeJob = Callable[..., SchedulerJob]
#: (submit, size, runtime, walltime)
Row = tuple[float, int, float, float]
#: announced, begin, length (s), units
Down = tuple[float, float, float, frozenset[int]]
UNITS = 8

times = st.sampled_from([1.0, 2.0, 3.0, 4.0, 6.0, 9.0])
rows: st.SearchStrategy[list[Row]] = st.lists(
    st.tuples(st.integers(0, 15).map(float), st.integers(1, UNITS), times, times), min_size=1, max_size=20
).map(sorted)


def downs(announced: st.SearchStrategy[float]) -> st.SearchStrategy[list[Down]]:
    """Return maintenance that is announced so."""
    units = st.sets(st.integers(0, UNITS - 1), min_size=1).map(frozenset)
    length = st.sampled_from([1.0, 2.5, 6.0])
    return st.lists(st.tuples(announced, st.integers(1, 25).map(float), length, units), max_size=3)


#: {node: when it fails (s)}, for 2.5 s
failures = st.dictionaries(st.integers(0, UNITS - 1), st.integers(0, 25).map(float), max_size=4)
ORDER_OPTIONS = {
    "bins": {"bins": [{"name": "large", "smallest": 5, "boost": 4.0}]},
    "pbs": {"formula": "queue_priority + ncpus + eligible_time/4"},
}


def of(order: str, backfill: str, placement: str = "contiguous") -> ComposedPolicy:
    """Return a policy of these parts."""
    return compose(order=order, backfill=backfill, placement=placement, order_options=ORDER_OPTIONS.get(order))


@pytest.mark.parametrize(("order", "backfill"), PAIRS)
def test_every_job_runs_on_consecutive_units(
    unsteady: Unsteady, run_policy: RunPolicy, order: str, backfill: str
) -> None:
    """Nodes fail and are maintained: every start is on one run of units, no decision is illegal, all jobs end."""

    @settings(max_examples=25)
    @given(jobs=rows, planned=downs(st.integers(0, 20).map(float)), broken=failures)
    # Two pieces are free, each too small for the second job; the third fits.
    @example(
        jobs=[(0.0, 3, 9.0, 9.0), (0.0, 2, 2.0, 2.0), (0.0, 3, 9.0, 9.0), (3.0, 3, 1.0, 1.0)], planned=[], broken={}
    )
    def check(jobs: list[Row], planned: list[Down], broken: dict[int, float]) -> None:
        for fit in ("first", "best"):
            policy = of(order, backfill, f"contiguous,fit={fit}")
            run = run_policy(policy, UNITS, jobs, reliability=unsteady(planned, broken))
            assert all(" " not in units for _, _, units in run.starts)
            summary = run.result.summary
            assert (summary.completed + summary.killed_at_walltime, summary.unfinished) == (len(jobs), 0)

    check()


@pytest.mark.parametrize("fill", ["FIRSTFIT", "BESTFIT", "GREEDY", "NONE"])
@pytest.mark.parametrize("keep", ["CURRENTHIGHEST", "HIGHEST", "NEVER"])
def test_maui_takes_a_placement_that_refuses(unsteady: Unsteady, run_policy: RunPolicy, fill: str, keep: str) -> None:
    """Whatever it fills with and keeps: every start is on one run of units, and all jobs end."""
    text = f"BACKFILLPOLICY {fill}\nRESERVATIONPOLICY {keep}\nRESERVATIONDEPTH 2\n"

    @settings(max_examples=25)
    @given(jobs=rows, planned=downs(st.integers(0, 20).map(float)), broken=failures)
    def check(jobs: list[Row], planned: list[Down], broken: dict[int, float]) -> None:
        policy = MauiPolicy(parse_maui_config(text)[0], placement=Contiguous())
        run = run_policy(policy, UNITS, jobs, reliability=unsteady(planned, broken))
        assert all(" " not in units for _, _, units in run.starts)
        summary = run.result.summary
        assert (summary.completed + summary.killed_at_walltime, summary.unfinished) == (len(jobs), 0)

    check()


def test_maui_rejects_jobs_that_no_placement_can_place(run_policy: RunPolicy) -> None:
    """A job for which there are units but no place on the whole machine is rejected as it arrives."""

    class Even:
        """Places no job of an odd size."""

        fits_by_count = False

        def pick(self, job: SchedulerJob, open_units: NodeSet, machine: Machine) -> NodeSet | None:
            """Return the first units."""
            units = list(open_units)
            return NodeSet.of(units[: job.size]) if job.size % 2 == 0 and job.size <= len(units) else None

    run = run_policy(
        MauiPolicy(placement=Even()), UNITS, [(0.0, 2, 5.0, 5.0), (0.0, 3, 5.0, 5.0), (1.0, UNITS, 5.0, 5.0)]
    )

    assert run.start_of == {0: 0.0, 2: 5.0}
    assert run.result.summary.rejected == 1


def latest(view: View, first: SchedulerJob, planned: Sequence[Down]) -> float:
    """Return by when a job can start on consecutive units: every instant and run of units is tried."""
    ends = {job.expected_end for job in view.running} | {begin + length for _, begin, length, _ in planned}
    for time in sorted(end for end in ends if end >= view.now):
        busy = {unit for job in view.running if job.expected_end > time for unit in job.alloc}
        for _, begin, length, units in planned:
            if begin < time + first.walltime and begin + length > time:
                busy |= units
        if any(busy.isdisjoint(range(low, low + first.size)) for low in range(UNITS - first.size + 1)):
            return time
    return inf


class FirstOnes(ComposedPolicy):
    """A policy that writes down, when a job becomes the first in the queue, by when it can start at the latest."""

    def __init__(self, order: str, backfill: str, planned: Sequence[Down]) -> None:
        super().__init__("first-ones", make_order(order), make_backfill(backfill), Contiguous())
        self._planned = planned
        self.promised: dict[int, float] = {}

    def decide(self, view: View) -> None:
        """Decide, then record what the running jobs' walltimes promise, and what the rule states."""
        super().decide(view)
        first = view.waiting.first
        if first is not None and view.free.count:
            by = latest(view, first, self._planned)
            assert self.reservation(first) == by
            self.promised.setdefault(first.number, by)


@pytest.mark.parametrize("backfill", ["easy", "easy-sjbf"])
def test_the_first_starts_by_its_reservation(unsteady: Unsteady, run_policy: RunPolicy, backfill: str) -> None:
    """A job that passes the first takes no units that it needs, and the rule states its latest start."""

    @settings(max_examples=50)
    @given(jobs=rows, planned=downs(st.just(0.0)))
    def check(jobs: list[Row], planned: list[Down]) -> None:
        policy = FirstOnes("fcfs", backfill, planned)
        run = run_policy(policy, UNITS, jobs, reliability=unsteady(planned, {}))
        late = {n: (run.start_of[n], by) for n, by in policy.promised.items() if run.start_of[n] > by}
        assert late == {}

    check()


def test_a_job_passes_the_first_where_its_units_are_not_needed(run_policy: RunPolicy) -> None:
    """With 2 + 2 units free the first, of 4, waits for units 4-7; a long job gets 2-3 at first, and then no other."""
    jobs = [(0.0, 2, 4.0, 4.0), (0.0, 2, 50.0, 50.0), (0.0, 2, 9.0, 9.0), (5.0, 4, 9.0, 9.0), (5.0, 2, 50.0, 50.0)]
    run = run_policy(of("fcfs", "easy"), UNITS, jobs)

    assert run.starts == [(0, 0.0, "0-1"), (1, 0.0, "2-3"), (2, 0.0, "4-5"), (4, 5.0, "0-1"), (3, 9.0, "4-7")]


def test_which_run_of_units(waiting_job: MakeJob) -> None:
    """The lowest that is long enough, or the shortest."""
    first, best = Contiguous(), Contiguous(ContiguousOptions(fit="best"))
    units, machine = NodeSet.parse("0-4 6 8-10 12-14"), Machine(16)

    assert [str(first.pick(waiting_job(0, size=size), units, machine)) for size in (1, 3, 5)] == ["0", "0-2", "0-4"]
    assert [str(best.pick(waiting_job(0, size=size), units, machine)) for size in (1, 3, 4)] == ["6", "8-10", "0-3"]
    assert first.pick(waiting_job(0, size=6), units, machine) is None
    assert best.pick(waiting_job(0, size=6), units, machine) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("contiguos", "Did you mean 'contiguous'?"),
        ("contiguous,fit", "invalid option of the placement"),
        ("contiguous,fit=", "invalid option of the placement"),
        ("contiguous,", "invalid option of the placement"),
        ("contiguous,fit=first,fit=best", "invalid option of the placement"),
        ("contiguous,fit=worst", "expected 'first' or 'best'"),
        ("contiguous,fot=best", "unknown key 'fot'. Did you mean 'fit'?"),
        ("lowest,fit=best", "placement-options: unknown key 'fit'. Known: node-order"),
    ],
)
def test_a_placement_that_cannot_be_made(text: str, says: str) -> None:
    """The message names what is wrong and what there is."""
    with pytest.raises(PolicyError) as caught:
        make_placement(text)

    assert says in str(caught.value)


def test_a_job_that_never_finds_units_is_refused(run_policy: RunPolicy) -> None:
    """If a placement refuses a job on the empty machine, the job is rejected and no job waits behind it."""

    class Small(Contiguous):
        def pick(self, job: SchedulerJob, open_units: NodeSet, machine: Machine) -> NodeSet | None:
            return super().pick(job, open_units, machine) if job.size < 4 else None

    policy = ComposedPolicy("small", make_order("fcfs"), make_backfill("easy"), Small())
    run = run_policy(policy, UNITS, [(0.0, 4, 1.0, 1.0), (0.0, 3, 1.0, 1.0)])

    assert (run.starts, run.result.summary.rejected) == ([(1, 0.0, "0-2")], 1)
