"""Intervals between dumps, and expected times, by the formulas of Young and Daly."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.platforms.failures.checkpointing import (
    WorkPhase,
    daly_interval,
    daly_time,
    done_at,
    dump_interval,
    dumps_until_done,
    failure_rate,
    mtbf_of,
    phase_at,
    young_interval,
)


def shortest(dump: float, read: float, mtbf: float) -> float:
    """Return the interval with the shortest expected time by Daly, found by trying many."""
    intervals = np.geomspace(math.sqrt(dump * mtbf) / 4, 4 * mtbf, 40_001).tolist()
    return min(intervals, key=lambda interval: daly_time(1.0, interval, dump, read, mtbf))


def test_rates_of_nodes_add_up() -> None:
    """The failure rate of an allocation is the sum of its nodes' rates; without failures it never fails."""
    assert mtbf_of(failure_rate([1e-6] * 4)) == 250_000.0
    assert mtbf_of(failure_rate([1e-6, 3e-6])) == 250_000.0
    assert mtbf_of(failure_rate([0.0, 0.0])) == mtbf_of(failure_rate([])) == math.inf


def test_youngs_interval() -> None:
    """sqrt(2 C M): two minutes and the 7.8 hours of 22,500 nodes give three quarters of an hour."""
    assert young_interval(120.0, 28_051.2) == pytest.approx(2594.665, abs=1e-3)
    assert young_interval(0.0, 1000.0) == 0.0
    assert young_interval(120.0, math.inf) == math.inf


def test_dalys_interval_is_the_mtbf_when_dumps_are_longer_than_twice_that() -> None:
    """From C = 2 M on; there is no jump, because the estimate reaches the same value."""
    assert daly_interval(2000.0, 1000.0) == daly_interval(9000.0, 1000.0) == 1000.0
    assert daly_interval(1999.999, 1000.0) == pytest.approx(1000.0 * (2 * (1 + 1 / 3 + 1 / 9) - 2), rel=1e-3)
    assert daly_interval(120.0, math.inf) == math.inf


@pytest.mark.parametrize("ratio", [1, 2, 5, 10, 30, 100, 1000, 10_000])
@pytest.mark.parametrize("read", [0.0, 60.0, 600.0])
def test_dalys_interval_gives_the_shortest_time(ratio: float, read: float) -> None:
    """Within 2 % of the best interval, down to an MTBF of one dump, however long reads take."""
    dump = 60.0

    assert daly_interval(dump, ratio * dump) == pytest.approx(shortest(dump, read, ratio * dump), rel=0.02)


def test_expected_time_tends_to_the_work_and_its_dumps() -> None:
    """If failures are rare, every interval takes itself and its dump."""
    assert daly_time(1000.0, 100.0, 10.0, 10.0, 1e12) == pytest.approx(1100.0)
    assert daly_time(1000.0, 100.0, 10.0, 10.0, 500.0) > 1100.0


def test_the_rate_of_nodes_that_are_all_alike_is_a_product() -> None:
    """For other nodes it is the sum of such products, in the order of the nodes; without failures there is no MTBF."""
    for rate in np.random.default_rng(5).exponential(1e-7, 50).tolist():
        assert failure_rate([rate] * 999) == rate * 999
    assert failure_rate([0.1] * 3 + [0.7] * 3 + [0.1]) == 3 * 0.1 + 3 * 0.7 + 0.1
    assert failure_rate([]) == failure_rate([0.0, 0.0]) == 0.0
    assert mtbf_of(0.25) == 4.0
    assert mtbf_of(0.0) == math.inf


def test_an_optimum_is_at_least_a_second() -> None:
    """For either formula; without failures there are no dumps."""
    assert dump_interval("young", 120.0, 28_051.2) == young_interval(120.0, 28_051.2)
    assert dump_interval("daly", 120.0, 28_051.2) == daly_interval(120.0, 28_051.2)
    assert dump_interval("young", 0.0, 1000.0) == dump_interval("daly", 0.0, 1000.0) == 1.0
    assert dump_interval("daly", 60.0, math.inf) == math.inf


def step_by_step(now: int, start: int, read: int, work: int, interval: int, dump: int) -> WorkPhase:
    """Return a job's progress, simulated one second after the other."""
    reading = working = dumping = dumps = since = saved = 0
    left_of_dump = 0
    for _ in range(start, now):
        if reading < read:
            reading += 1
        elif left_of_dump:
            left_of_dump -= 1
            dumping += 1
            if not left_of_dump:
                saved, dumps = working, dumps + 1
        elif working < work:
            working += 1
            since += 1
            if since == interval and working < work:
                since, left_of_dump = 0, dump
    return WorkPhase(reading, working, dumping, work if working == work else saved, dumps)


@given(st.integers(0, 5), st.integers(0, 4), st.integers(1, 30), st.integers(1, 8), st.integers(1, 4), st.data())
def test_progress_agrees_with_single_steps(
    start: int, read: int, work: int, interval: int, dump: int, data: st.DataObject
) -> None:
    """At any second: time spent on reading, work and dumps, the saved part, and the end."""
    dumps = dumps_until_done(work, interval)
    finish = done_at(start, read, work, dumps, dump)
    now = data.draw(st.integers(start, int(finish)))

    assert phase_at(now, start, read, work, interval, dumps, dump, finish) == step_by_step(
        now, start, read, work, interval, dump
    )
    assert step_by_step(int(finish), start, read, work, interval, dump).working == work
    assert finish == start or step_by_step(int(finish) - 1, start, read, work, interval, dump).working < work


def test_without_an_interval_there_are_no_dumps() -> None:
    """And infinite work never ends."""
    assert dumps_until_done(1e9, math.inf) == 0
    assert done_at(0.0, 10.0, math.inf, 0, 5.0) == math.inf
