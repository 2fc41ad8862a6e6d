"""What must hold of all work on hosts, alone or shared: nothing is lost, nothing overloaded, small steps agree."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.traces.batsim.profiles import (
    Composed,
    Delay,
    Parallel,
    ParallelHomogeneous,
    ParallelHomogeneousTotal,
    Profile,
    UsageTrace,
)

#: makes hosts with an executor: world("1f", "2f,1f", cores=[2, 1], sharing=True, metered=True)
Worlds = Callable[..., Any]


def flops(each: float) -> ParallelHomogeneous:
    """Return a profile of so many flops on each host."""
    return ParallelHomogeneous(name="f", cpu=float(each), com=0.0)


def composed(repeat: int, *seq: Profile) -> Composed:
    """Return a composed profile."""
    return Composed(name="x", repeat=repeat, seq=seq, names=tuple(part.name for part in seq))


D5 = Delay(name="d5", delay=5.0)

# -- what must hold of all --------------------------------------------------------------------------------------------

LEAVES: st.SearchStrategy[Profile] = st.one_of(
    st.sampled_from([D5, flops(0), flops(3), flops(10), ParallelHomogeneousTotal(name="t", cpu=12.0, com=0.0)]),
    st.floats(0.001, 50.0).map(flops),
)
PROFILES: st.SearchStrategy[Profile] = st.one_of(
    LEAVES,
    st.builds(lambda repeat, seq: composed(repeat, *seq), st.integers(1, 2), st.lists(LEAVES, min_size=1, max_size=2)),
)


@st.composite
def traffic(draw: st.DrawFn) -> list[tuple[float, Profile, int, int, int]]:
    """Return jobs on up to four hosts: (start, profile, first host, last host, how many ranks a host has)."""
    jobs: list[tuple[float, Profile, int, int, int]] = []
    for _ in range(draw(st.integers(1, 6))):
        low = draw(st.integers(0, 3))
        high = draw(st.integers(low, 3))
        kind = draw(st.integers(0, 4))
        ranks = draw(st.integers(1, 2)) * (high - low + 1)
        if kind == 0:
            steps = st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0.0, 9.0)), min_size=1, max_size=2)
            work: Profile = UsageTrace(name="u", phases=tuple(tuple(draw(steps)) for _ in range(ranks)))
        elif kind == 1:
            work = Parallel(name="v", cpu=tuple(draw(st.floats(0.0, 9.0)) for _ in range(ranks)), com=())
        else:
            work = draw(PROFILES)
        jobs.append((draw(st.floats(0.0, 20.0)), work, low, high, ranks))
    return jobs


def work_on(profile: Profile, places: Sequence[int], cores: Sequence[int]) -> dict[int, float]:
    """Return the flops that a profile is for each host."""
    done: dict[int, float] = {}
    if isinstance(profile, Composed):
        for part in profile.seq:
            for host, amount in work_on(part, places, cores).items():
                done[host] = done.get(host, 0.0) + profile.repeat * amount
        return done
    for rank, host in enumerate(places):
        if isinstance(profile, UsageTrace):
            amount = sum(each * max(1, int(share * cores[host] + 0.5)) for share, each in profile.phases[rank])
        elif isinstance(profile, Parallel):
            amount = profile.cpu[rank]
        elif isinstance(profile, ParallelHomogeneousTotal):
            amount = profile.cpu / len(places)
        else:
            amount = profile.cpu if isinstance(profile, ParallelHomogeneous) else 0.0
        done[host] = done.get(host, 0.0) + amount
    return done


@given(
    traffic(),
    st.lists(st.integers(1, 3), min_size=4, max_size=4),
    st.lists(st.tuples(st.floats(0.0, 30.0), st.integers(0, 3), st.integers(0, 1)), max_size=4),
)
def test_what_is_computed_is_what_profiles_ask_for(
    world: Worlds,
    jobs: list[tuple[float, Profile, int, int, int]],
    cores: list[int],
    changes: list[tuple[float, int, int]],
) -> None:
    """On each host, speed times load adds up to the flops of the jobs there, at no time above what its cores can do."""
    here = world("2f,1f", "3f,0.5f", "1f,4f", "2f,2f", cores=cores, sharing=True, metered=True)
    hosts = here.hosts
    expected = [0.0] * 4
    acts = [(time, here.pstate(host, pstate)) for time, host, pstate in changes]
    for number, (start, work, low, high, ranks) in enumerate(jobs):
        mapping = tuple(rank % (high - low + 1) for rank in range(ranks))
        acts.append((start, here.job(f"j{number}", work, f"{low}-{high}", mapping=mapping)))
        for host, amount in work_on(work, [low + place for place in mapping], cores).items():
            expected[host] += amount
    ends = here.play(*acts)
    assert len(ends) == len(jobs)
    assert hosts.flops == pytest.approx(expected, rel=1e-9, abs=1e-6)
    assert hosts.raw == [0.0] * 4
    assert hosts.power() == pytest.approx(40.0)


@given(st.lists(st.tuples(st.floats(0.0, 9.0), PROFILES), min_size=1, max_size=5), st.booleans())
def test_without_an_overlap_sharing_changes_nothing(
    world: Worlds, jobs: list[tuple[float, Profile]], metered: bool
) -> None:
    """Jobs side by side end at the same times, to the last bit, whether they might share or not."""
    ends: list[dict[str, float]] = []
    for sharing in (False, True):
        here = world(*["7f", "3f"] * len(jobs), sharing=sharing, metered=metered)
        acts = [
            (start, here.job(f"j{number}", work, f"{2 * number}-{2 * number + 1}"))
            for number, (start, work) in enumerate(jobs)
        ]
        ends.append(here.play(*acts))
    assert ends[0] == ends[1]


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(1, 8), st.sampled_from([(0, 0), (0, 1), (1, 1), (1, 2), (2, 2)])),
        min_size=1,
        max_size=4,
    )
)
def test_times_are_those_of_small_steps(world: Worlds, jobs: list[tuple[int, int, tuple[int, int]]]) -> None:
    """Step by step, each host shared out anew among those that are there: no other times come out."""
    speed = (1.0, 2.0, 0.5)
    here = world("1f", "2f", "0.5f", sharing=True)
    acts = [
        (float(start), here.job(f"j{number}", flops(amount), f"{low}-{high}"))
        for number, (start, amount, (low, high)) in enumerate(jobs)
    ]
    ends = here.play(*acts)
    step, now = 1 / 64, 0.0
    left = {number: float(amount) for number, (_, amount, _) in enumerate(jobs)}
    while left:
        present = {number: set(range(jobs[number][2][0], jobs[number][2][1] + 1)) for number in left}
        present = {number: hosts for number, hosts in present.items() if jobs[number][0] <= now}
        free = list(speed)
        paces = dict.fromkeys(present, 0.0)
        active = dict(present)
        while active:
            users = [sum(host in hosts for hosts in active.values()) for host in range(3)]
            gains = {number: min(free[host] / users[host] for host in hosts) for number, hosts in active.items()}
            for number, gain in gains.items():
                paces[number] += gain
                for host in active[number]:
                    free[host] -= gain
            active = {number: hosts for number, hosts in active.items() if all(free[host] > 1e-12 for host in hosts)}
        now += step
        for number, pace in paces.items():
            left[number] -= pace * step
            if left[number] <= 1e-9:
                del left[number]
                # Each step of another's end lets a pace change up to a step too late.
                assert abs(ends[f"j{number}"] - now) <= step * 4 * (len(jobs) + 1)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 30)), min_size=1, max_size=8))
def test_a_host_that_is_shared_out_is_never_idle_before_its_work_is_done(
    world: Worlds, jobs: list[tuple[int, int]]
) -> None:
    """On one host, the last end is that of one job after the other."""
    here = world("2f", sharing=True)
    ends = here.play(*[(start, here.job(f"j{n}", flops(amount), "0")) for n, (start, amount) in enumerate(jobs)])
    last = 0.0
    for start, amount in sorted(jobs):
        last = max(last, start) + amount / 2
    assert max(ends.values()) == pytest.approx(last, abs=1e-6)
