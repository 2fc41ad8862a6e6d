"""Replicas in several processes: order, equal results, and processes that end too early."""

import os

import pytest

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.runs.forecast.workers import in_order


@pytest.mark.parametrize("jobs", [1, 2, 3, 9])
def test_results_come_in_order(jobs):
    """The number of processes does not change the results."""
    scale = 10
    assert list(in_order(lambda number: number * scale, 7, jobs)) == [0, 10, 20, 30, 40, 50, 60]


def test_several_processes_share_the_work():
    """With two processes, neither is this one."""
    found = list(in_order(lambda _: os.getpid(), 4, 2))
    assert len(set(found)) == 2
    assert os.getpid() not in found


def test_process_that_ends_too_early_is_reported():
    """One message instead of waiting forever."""

    def compute(number):
        if number == 3:
            os._exit(1)
        return number

    with pytest.raises(PipistrelleError, match="ended too early"):
        list(in_order(compute, 6, 2))
