"""Units out of service and windows, against sets and lists that are looked through one by one."""

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.protocol.events import SimulationBeginsData
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.catalogue.names import PARTS
from pipistrelle.schedulers.catalogue.parts import make_backfill
from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.schedulers.pbs.backfill import Depth, DepthOptions
from pipistrelle.schedulers.placement.lowest import LowestIds
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.policy.windows import Window, Windows
from pipistrelle.schedulers.runtime import runtime

#: {backfilling rule: what makes one}
RULES: dict[str, Callable[[], Any]] = {
    name: partial(make_backfill, name) for name in PARTS["backfill"] if name != "fill"
}
MakeJob = Callable[..., SchedulerJob]
UNITS = 8
REASONS = ["", "m1", "m2", "m3"]


def view_of(units: int = UNITS, now: float = 0.0) -> View:
    """Return a view of an idle machine."""
    view = runtime.view_of(SimulationBeginsData(units), Fcfs())
    view.now = now
    return view


steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["down", "up"]), st.sets(st.integers(0, UNITS - 1)), st.sampled_from(REASONS)),
        st.tuples(st.sampled_from(["start", "end"]), st.sets(st.integers(0, 9), min_size=1), st.just("")),
    ),
    max_size=40,
)


@settings(max_examples=400)
@given(steps)
def test_a_unit_is_back_when_no_reason_is_left(steps: list[tuple[str, set[int], str]]) -> None:
    """Failures and maintenance of the same units begin and end, jobs start and end: all sets equal recounted ones."""
    view = view_of()
    view.windows.add(Window("m1", 0.0, 9.0, NodeSet.EMPTY))
    down: dict[str, set[int]] = {reason: set() for reason in REASONS}
    number = 0
    for what, numbers, reason in steps:
        if what == "down":
            down[reason] |= numbers
            view.withdraw(NodeSet.of(numbers), reason)
        elif what == "up":
            down[reason] -= numbers
            view.put_back(NodeSet.of(numbers), reason)
        elif what == "start" and view.free.count:
            job = SchedulerJob(f"w0!{number}", number, min(len(numbers), view.free.count), 5.0, 0.0)
            number += 1
            view.waiting.add(job)
            view.start(job)
        elif what == "end" and len(view.running):
            running = list(view.running)
            ended = running[min(numbers) % len(running)]
            view.give_back(view.running.remove(ended.id).alloc)
        out = set().union(*down.values())
        held = {unit for job in view.running for unit in job.alloc}
        assert set(view.unavailable) == out
        assert set(view.free.snapshot()) == set(range(UNITS)) - out - held
        assert set(view.gone) == down[""] | down["m2"] | down["m3"]
        assert set(view.returning) == out - set(view.gone) - held
        assert (view.lost, view.plain) == (len(out & held), False)


def test_only_known_and_timely_maintenance_brings_units_back() -> None:
    """A unit that also failed, or whose maintenance overruns, is gone for an unknown time."""
    view = view_of()
    view.windows.add(Window("m", 1.0, 5.0, NodeSet.parse("0-3")))
    view.withdraw(NodeSet.parse("0-3"), "m")
    view.withdraw(NodeSet.parse("3-4"))
    view.now = 4.0
    assert (str(view.gone), str(view.returning)) == ("3-4", "0-2")
    view.now = 5.0
    assert (str(view.gone), str(view.returning)) == ("0-4", "")
    view.put_back(NodeSet.parse("0-3"), "m")

    assert (str(view.gone), str(view.free.snapshot())) == ("3-4", "0-2 5-7")


def test_closed_units_are_those_that_a_job_would_run_into(waiting_job: MakeJob) -> None:
    """A window counts if it overlaps the job's time, both ends excluded; without a walltime every later one does."""
    view = view_of(now=10.0)
    for name, begin, end, units in (("a", 0.0, 11.0, "0"), ("b", 20.0, 30.0, "1"), ("c", 25.0, 40.0, "2-3")):
        view.windows.add(Window(name, begin, end, NodeSet.parse(units)))

    assert str(view.closed(waiting_job(0, walltime=10.0))) == "0"
    assert str(view.closed(waiting_job(0, walltime=11.0))) == "0-1"
    assert str(view.closed(waiting_job(0))) == "0-3"
    assert str(view.closed(waiting_job(0, walltime=9.0), 11.0)) == ""
    assert str(view.closed(waiting_job(0, walltime=9.0), 29.0)) == "1-3"
    assert str(view.closed(waiting_job(0, walltime=9.0), 30.0)) == "2-3"
    assert str(view.closed(waiting_job(0), 40.0)) == ""


def test_a_window_may_admit_jobs(waiting_job: MakeJob) -> None:
    """Those that it lets in are not kept from its units."""
    view = view_of()
    view.windows.add(Window("wide", 0.0, inf, NodeSet.parse("0-3"), lambda job: job.size > 2))

    assert str(view.closed(waiting_job(0, size=3))) == ""
    assert str(view.closed(waiting_job(0, size=2))) == "0-3"


def test_windows_are_ordered_by_begin_and_known_by_name() -> None:
    """A window of the same name is replaced; an unknown one can be removed."""
    windows = Windows()
    for name, begin, end in (("b", 5.0, 9.0), ("a", 5.0, 9.0), ("c", 1.0, 2.0), ("c", 7.0, 8.0)):
        windows.add(Window(name, begin, end, NodeSet.EMPTY))
    windows.remove("x")

    assert [(window.id, window.begin) for window in windows] == [("a", 5.0), ("b", 5.0), ("c", 7.0)]
    assert (len(windows), windows.changes) == (3, 5)
    windows.remove("b")
    assert [window.id for window in windows] == ["a", "c"]
    assert (windows.get("b"), windows.get("x")) == (None, None)


@pytest.mark.parametrize(
    ("now", "change", "end"), [(0.0, 1.0, 4.0), (1.0, 3.0, 4.0), (3.0, 4.0, 4.0), (4.0, 9.0, 9.0), (9.0, inf, inf)]
)
def test_windows_tell_when_the_next_begins_or_ends(now: float, change: float, end: float) -> None:
    """Current windows are not upcoming ones."""
    windows = Windows()
    windows.add(Window("a", 1.0, 4.0, NodeSet.EMPTY))
    windows.add(Window("b", 3.0, 9.0, NodeSet.EMPTY))

    assert (windows.next_change(now), windows.next_end(now)) == (change, end)


def test_maintenance_ends_jobs_that_still_run_there(waiting_job: MakeJob) -> None:
    """At the first begin to come on the job's units; a window that admits jobs ends none."""
    windows = Windows()
    windows.add(Window("standing", 3.0, 9.0, NodeSet.parse("0-3"), lambda job: False))
    windows.add(Window("begun", 1.0, 9.0, NodeSet.parse("0")))
    windows.add(Window("next", 5.0, 9.0, NodeSet.parse("0")))
    windows.add(Window("elsewhere", 4.0, 9.0, NodeSet.parse("2")))

    def ended(alloc: str, end: float) -> float:
        return windows.ends_at(waiting_job(0, alloc=NodeSet.parse(alloc), expected_end=end), 1.0)

    assert (ended("0-1", 20.0), ended("0-2", 20.0), ended("1", 20.0)) == (5.0, 4.0, 20.0)
    assert (ended("0-1", 5.0), ended("0-1", 6.0)) == (5.0, 5.0)


@pytest.mark.parametrize("backfill", sorted({*RULES} - {"none"}))
def test_removed_window_delays_no_job(waiting_job: MakeJob, backfill: str) -> None:
    """A job that passes the first may start at the policy's next call, even if no unit was freed since."""
    view, rule = view_of(4), RULES[backfill]()
    view.windows.add(Window("own", 5.0, 9.0, NodeSet.parse("1-3"), lambda job: False))
    jobs = [waiting_job(0, walltime=50.0), waiting_job(1, size=4, walltime=9.0), waiting_job(2, size=2, walltime=10.0)]
    for job in jobs:
        view.waiting.add(job)
    view.arrivals = jobs
    rule.schedule(view, LowestIds())
    assert [(job.number, str(job.alloc)) for job in view.running] == [(0, "0")]

    view.now, view.arrivals, view.released = 1.0, [], False
    view.windows.remove("own")
    rule.schedule(view, LowestIds())
    assert [(job.number, str(job.alloc)) for job in view.running] == [(0, "0"), (2, "1-2")]


def wait_in(view: View, waiting_job: MakeJob, rows: list[tuple[int, float]]) -> list[SchedulerJob]:
    """Let jobs of (size, walltime) join the queue, and return them."""
    jobs = [waiting_job(number, size=size, walltime=walltime) for number, (size, walltime) in enumerate(rows)]
    for job in jobs:
        view.waiting.add(job)
    view.arrivals = jobs
    return jobs


@pytest.mark.parametrize("backfill", sorted({*RULES} - {"none", "firstfit"}))
def test_a_reservation_that_would_run_into_a_window_is_none(waiting_job: MakeJob, backfill: str) -> None:
    """By numbers the first could begin at 10, but would run into the window; at 15 it can, on units of its own.

    Job 3 fits beside the first reservation, and not beside the second.
    """
    view, rule = view_of(6), RULES[backfill]()
    view.windows.add(Window("pumps", 20.0, 100.0, NodeSet.parse("0-2")))
    lasts = [(3, 10.0), (2, 15.0), (3, 30.0), (1, 100.0)]
    jobs = wait_in(view, waiting_job, lasts)
    rule.schedule(view, LowestIds())

    assert [(job.number, str(job.alloc)) for job in view.running] == [(0, "0-2"), (1, "3-4")]
    assert rule.reservation(jobs[2]) == 15.0


@pytest.mark.parametrize("windows", [False, True])
def test_several_reservations(waiting_job: MakeJob, windows: bool) -> None:
    """Under `depth` 2 no job passes that would delay the second, by numbers of units or by single units."""
    for depth, begun in ((1, [0, 3]), (2, [0])):
        view, rule = view_of(6), Depth(DepthOptions(depth))
        if windows:
            view.windows.add(Window("pumps", 5000.0, 5100.0, NodeSet.parse("0")))
        jobs = wait_in(view, waiting_job, [(4, 100.0), (4, 50.0), (6, 60.0), (1, 1000.0)])
        rule.schedule(view, LowestIds())

        assert [job.number for job in view.running] == begun
        assert [rule.reservation(job) for job in jobs[1:3]] == [100.0, None if depth == 1 else 150.0]


@pytest.mark.parametrize("windows", [False, True])
def test_the_second_does_not_delay_the_first_by_a_second(waiting_job: MakeJob, windows: bool) -> None:
    """Under `depth` 2 the job behind the first may end just when that begins, and not later."""
    for walltime, begun in ((100.0, [0, 2]), (101.0, [0])):
        view, rule = view_of(4), Depth(DepthOptions(2))
        if windows:
            view.windows.add(Window("pumps", 5000.0, 5100.0, NodeSet.parse("0")))
        wait_in(view, waiting_job, [(3, 100.0), (4, 50.0), (1, walltime)])
        rule.schedule(view, LowestIds())

        assert [job.number for job in view.running] == begun
