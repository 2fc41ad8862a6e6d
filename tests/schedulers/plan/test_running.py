"""The running jobs and the reservation, against brute force."""

from collections.abc import Callable
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.schedulers.policy.ends_and_shadow import Reservation
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.running import RunningJobs

MakeJob = Callable[..., SchedulerJob]


def running(jobs: list[SchedulerJob]) -> RunningJobs:
    """Return the jobs as running ones."""
    made = RunningJobs()
    for job in jobs:
        made.add(job)
    return made


def brute_force(jobs: list[SchedulerJob], size: int, free: int) -> Reservation:
    """Try every expected end: the earliest with enough free units, and the units left over then."""

    def free_at(time: float) -> int:
        return free + sum(job.size for job in jobs if job.expected_end <= time)

    shadow = min((job.expected_end for job in jobs if free_at(job.expected_end) >= size), default=inf)
    return Reservation(shadow, max(free_at(shadow) - size, 0))


def test_reservations_are_added_and_removed(waiting_job: MakeJob) -> None:
    """They are known by id, counted, and iterated in the order of their start."""
    jobs = [waiting_job(number, expected_end=float(end)) for number, end in ((3, 9), (1, 4), (2, 4))]
    made = running(jobs)

    assert (len(made), "w0!1" in made, "w0!7" in made) == (3, True, False)
    assert list(made) == jobs
    assert made.remove("w0!1") is jobs[1]
    assert list(made) == [jobs[0], jobs[2]]
    with pytest.raises(KeyError, match="w0!1"):
        made.remove("w0!1")


def test_all_jobs_that_end_at_the_shadow_time_count(waiting_job: MakeJob) -> None:
    """Three jobs end at 5; one of them would do, but all three leave units over."""
    made = running([waiting_job(number, size=2, expected_end=5.0) for number in range(3)])

    assert made.reserve(3, 1) == Reservation(5.0, 4)


def test_jobs_that_end_later_do_not_count(waiting_job: MakeJob) -> None:
    """What is left over is what will be free at the shadow time, not after it."""
    made = running([waiting_job(0, size=2, expected_end=5.0), waiting_job(1, size=4, expected_end=5.0 + 2**-50)])

    assert made.reserve(3, 1) == Reservation(5.0, 0)


def test_jobs_without_a_walltime_are_expected_to_run_for_ever(waiting_job: MakeJob) -> None:
    """If they hold too much, there is no shadow time."""
    made = running([waiting_job(0, size=2, expected_end=5.0), waiting_job(1, size=4, expected_end=inf)])

    assert made.reserve(4, 1).shadow == inf
    assert made.reserve(3, 1) == Reservation(5.0, 0)


def test_without_running_jobs_there_is_no_shadow_time() -> None:
    """No running job will free anything."""
    assert RunningJobs().reserve(3, 1) == Reservation(inf, 0)


@settings(max_examples=300)
@given(
    jobs=st.lists(st.tuples(st.integers(1, 5), st.sampled_from([1.0, 2.0, 2.5, 3.0, 7.0, inf])), max_size=12),
    gone=st.sets(st.integers(0, 11), max_size=6),
    free=st.integers(0, 4),
    more=st.integers(1, 30),
)
def test_the_reservation_is_brute_forces(jobs: list[tuple[int, float]], gone: set[int], free: int, more: int) -> None:
    """For any running jobs, many ending together, also after some of them have left."""
    made = [
        SchedulerJob(f"w0!{number}", number, size, inf, 0.0, expected_end=end)
        for number, (size, end) in enumerate(jobs)
    ]
    table = running(made)
    for number in sorted(gone):
        if number < len(made):
            table.remove(f"w0!{number}")
    left = [job for job in made if job.number not in gone]

    assert list(table) == left
    assert table.reserve(free + more, free) == brute_force(left, free + more, free)
