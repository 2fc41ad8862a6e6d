"""Figures 1 and 2 of Horace et al., "Exploring the Trade-off Between Repair Time and Reliability": seven jobs."""

from collections.abc import Callable

import pytest

from pipistrelle.runs.execution.run import RunOptions, run_in_process
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer

HOUR = 3600.0
Schedule = dict[int, tuple[float, str]]


@pytest.fixture(scope="module")
def schedule() -> Callable[[str], Schedule]:
    """Return a function from a scheduler to {job: (start in hours, units)} of the bundled workload."""

    def run(scheduler: str) -> Schedule:
        starts: Schedule = {}

        class Watch(Observer):
            def started(self, now: float, job: Job) -> None:
                starts[int(job.id.partition("!")[2])] = (now / HOUR, str(job.alloc))

        run_in_process("seven-jobs", scheduler, options=RunOptions(observers=[Watch()]))
        return starts

    return run


def test_the_older_easy_keeps_job_7_back(schedule: Callable[[str], Schedule]) -> None:
    """Figure 1: unit 0 is free beside job 5, but it is one of those kept for job 6."""
    assert schedule("easy-slices") == {
        1: (0, "0-1"),
        2: (0, "2-3"),
        3: (1, "0"),
        4: (1, "1-3"),
        5: (2, "1-3"),
        6: (5, "0-2"),
        7: (5, "3"),
    }


def test_the_newer_easy_backfills_job_7(schedule: Callable[[str], Schedule]) -> None:
    """Figure 2: job 7 starts beside job 5, and job 6 starts when it would have without it; all else is the same."""
    old, new = schedule("easy-slices"), schedule("easy")

    assert new[7] == (3, "0")
    assert new[6] == (5, "1-3")
    assert new[6][0] == old[6][0]
    assert {number: new[number] for number in range(1, 6)} == {number: old[number] for number in range(1, 6)}
