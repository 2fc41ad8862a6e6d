"""The duration of work on hosts, in closed form; changes during it; that nothing is lost or overloaded."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.protocol.batsim.messages import TaskProgress
from pipistrelle.protocol.events import Progress
from pipistrelle.server.errors import Stalled
from pipistrelle.traces.profiles import (
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
    """Return a profile of this many flops on each host."""
    return ParallelHomogeneous(name="f", cpu=float(each), com=0.0)


def composed(repeat: int, *seq: Profile) -> Composed:
    """Return a composed profile."""
    return Composed(name="x", repeat=repeat, seq=seq, names=tuple(part.name for part in seq))


def trace(*ranks: Iterable[tuple[float, float]]) -> UsageTrace:
    """Return a usage trace."""
    return UsageTrace(name="u", phases=tuple(tuple(rank) for rank in ranks))


D5 = Delay(name="d5", delay=5.0)

# -- a job alone ------------------------------------------------------------------------------------------------------

ALONE: tuple[tuple[Profile, str, Sequence[str], Sequence[int], float], ...] = (
    (Delay(name="d", delay=7.25), "0-1", ("1f", "1f"), (), 7.25),
    (flops(12), "0-1", ("4f", "3f"), (), 4.0),
    (flops(12), "0", ("4f",), (8,), 3.0),
    (ParallelHomogeneousTotal(name="t", cpu=12.0, com=0.0), "0-2", ("4f", "4f", "2f"), (), 2.0),
    (Parallel(name="v", cpu=(12.0, 2.0), com=()), "0-1", ("4f", "1f"), (), 3.0),
    (Parallel(name="v", cpu=(1.0, 20.0), com=()), "0-1", ("4f", "1f"), (), 20.0),
    (Parallel(name="v", cpu=(0.0, 20.0), com=()), "0-1", ("0.001f", "1f"), (), 20.0),
    (composed(3, flops(4), D5), "0", ("2f",), (), 21.0),
    (composed(2, composed(2, flops(4), D5), flops(2)), "0", ("2f",), (), 30.0),
    (trace([(1.0, 3.0), (0.1, 4.0)], [(1.0, 1.0)]), "0-1", ("1f", "1f"), (), 7.0),
    (trace([(0.5, 3.0), (1.0, 4.0)]), "0", ("1f",), (4,), 7.0),
    (flops(0), "0-1", ("1f", "1f"), (), 0.0),
    (composed(100, flops(0)), "0", ("1f",), (), 0.0),
    (composed(3, flops(0), D5, trace([(1.0, 0.0)])), "0", ("1f",), (), 15.0),
    (Parallel(name="v", cpu=(0.0, 0.0), com=()), "0-1", ("1f", "1f"), (), 0.0),
    (flops(1e30), "0", ("1e20f",), (), 1e10),
    (flops(1e-30), "0", ("1Gf",), (), 1e-39),
)


@pytest.mark.parametrize("way", ["plain", "sharing", "metered"])
@pytest.mark.parametrize(("work", "alloc", "speeds", "cores", "seconds"), ALONE)
def test_a_job_alone_takes_the_time_of_its_slowest_rank(
    world: Worlds, work: Profile, alloc: str, speeds: Sequence[str], cores: Sequence[int], seconds: float, way: str
) -> None:
    """A rank uses one core; parts and phases follow each other; to the last bit, however the run is set up."""
    here = world(*speeds, cores=cores, sharing=way == "sharing", metered=way == "metered")
    assert here.play((1.0, here.job("a", work, alloc))) == {"a": 1.0 + seconds}
    assert here.agenda.pop() is None


@pytest.mark.parametrize(
    ("work", "mapping", "cores", "seconds"),
    [
        (flops(12), (0, 0, 1), (1, 1), 24.0),
        (flops(12), (0, 0, 1), (2, 1), 12.0),
        (flops(12), (0, 0, 0), (2, 1), 18.0),
        (Parallel(name="v", cpu=(3.0, 9.0), com=()), (0, 0), (1, 1), 12.0),
        (Parallel(name="v", cpu=(3.0, 9.0), com=()), (0, 0), (2, 1), 9.0),
        (Parallel(name="v", cpu=(3.0, 9.0), com=()), (1, 0), (1, 1), 9.0),
        (ParallelHomogeneousTotal(name="t", cpu=12.0, com=0.0), (0, 0, 1), (1, 1), 8.0),
        # Both ranks go at half the speed; the first ends at 6, and the second has the host to itself for the rest.
        (trace([(1.0, 3.0)], [(1.0, 9.0)]), (0, 0), (1, 1), 12.0),
        (trace([(1.0, 3.0)], [(1.0, 9.0)]), (0, 0), (2, 1), 12.0),
        (trace([(0.5, 3.0)], [(0.5, 9.0)]), (0, 0), (2, 1), 9.0),
    ],
)
@pytest.mark.parametrize("sharing", [False, True])
def test_ranks_mapped_to_one_host_share_its_cores(
    world: Worlds, work: Profile, mapping: tuple[int, ...], cores: Sequence[int], seconds: float, sharing: bool
) -> None:
    """A host computes no more than its cores can, whether jobs may share hosts or not."""
    here = world("1f", "1f", cores=cores, sharing=sharing, metered=True)
    ends = here.play((0.0, here.job("a", work, "0-1", mapping=mapping)))
    assert ends == {"a": pytest.approx(seconds, rel=1e-12)}


def test_sending_takes_its_time_beside_computing(world: Worlds) -> None:
    """The longer of both counts; hosts that wait for messages are less busy."""
    here = world("1f", "1f", bandwidth=2.0, metered=True)
    here.play((0.0, here.job("a", ParallelHomogeneous(name="p", cpu=3.0, com=12.0), "0-1")), (3.0, lambda: None))
    assert here.ends == {"a": 6.0}
    assert here.hosts.energy(6.0) == pytest.approx(2 * 6 * 25.0)


# -- walltimes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sharing", [False, True])
def test_what_is_done_at_the_very_walltime_is_done_unless_it_is_a_delay(world: Worlds, sharing: bool) -> None:
    """Batsim's rule: a delay that takes exactly the remaining walltime has reached it."""
    here = world("1f", "1f", "1f", sharing=sharing)
    ends = here.play(
        (0.0, here.job("computes", flops(10), "0", walltime=10.0)),
        (0.0, here.job("waits", composed(2, D5), "1", walltime=10.0)),
        (0.0, here.job("both", composed(1, D5, flops(5)), "2", walltime=10.0)),
    )
    assert ends == {"computes": 10.0, "waits": -10.0, "both": 10.0}


@pytest.mark.parametrize("work", [flops(1e30), trace([(1.0, 1e30)]), composed(9, D5, flops(1e30))])
@pytest.mark.parametrize("sharing", [False, True])
def test_endless_work_ends_at_its_walltime(world: Worlds, work: Profile, sharing: bool) -> None:
    """However much there is to do, nothing beyond time's end is planned."""
    here = world("1e-3f", sharing=sharing)
    assert here.play((0.0, here.job("a", work, "0", walltime=100.0))) == {"a": -100.0}


@pytest.mark.parametrize("work", [flops(1e30), trace([(1.0, 1e30)]), composed(9, D5, flops(1e30))])
@pytest.mark.parametrize("sharing", [False, True])
def test_endless_work_without_a_walltime_is_an_error(world: Worlds, work: Profile, sharing: bool) -> None:
    """One message that names the job and the profile."""
    here = world("1f", sharing=sharing)
    with pytest.raises(Stalled, match="a would never end") as caught:
        here.play((0.0, here.job("a", work, "0")))
    assert "profile" in str(caught.value)


def test_a_change_of_speed_can_make_work_endless(world: Worlds) -> None:
    """That is the same error; with a walltime it is none."""
    limited = world("1f,1e-30f", sharing=True, metered=True)
    limited.play((0.0, limited.job("a", flops(10), "0", walltime=20.0)), (1.0, limited.pstate(0, 1)))
    assert limited.ends == {"a": -20.0}
    endless = world("1f,1e-30f", sharing=True, metered=True)
    with pytest.raises(Stalled, match="a would never end"):
        endless.play((0.0, endless.job("a", flops(10), "0")), (1.0, endless.pstate(0, 1)))


def test_jobs_that_end_at_their_walltimes_do_not_hide_one_that_ends_before(world: Worlds) -> None:
    """Of those that share a host, the first end is planned, whatever the others do."""
    here = world("1f", sharing=True, metered=True)
    ends = here.play(
        (0.0, here.job("endless", flops(1e30), "0", walltime=50.0)),
        (0.0, here.job("a", flops(10), "0")),
        (0.0, here.job("huge", flops(1e25), "0", walltime=60.0)),
    )
    assert ends == {"a": pytest.approx(30.0), "endless": -50.0, "huge": -60.0}


# -- changes during execution ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sharing", [False, True])
def test_work_continues_at_the_new_speed(world: Worlds, sharing: bool) -> None:
    """To a slower speed and back: 2 s at 10, 5 s at 4, the rest at 10."""
    here = world("10f,4f", "20f,1f", sharing=sharing, metered=True)
    ends = here.play(
        (0.0, here.job("a", composed(1, flops(60), D5), "0-1")),
        (2.0, here.pstate(0, 1)),
        (7.0, here.pstate(0, 0)),
    )
    assert ends == {"a": 14.0}
    slowed = world("10f,4f", "20f,1f", sharing=sharing, metered=True)
    # The host that did not count at first counts now: 40 are left, at 1 a second.
    assert slowed.play((0.0, slowed.job("a", flops(60), "0-1")), (2.0, slowed.pstate(1, 1))) == {
        "a": pytest.approx(42.0, rel=1e-14)
    }


def test_a_change_of_speed_does_not_move_a_delay(world: Worlds) -> None:
    """Nor does it move a task that another host or its messages hold up."""
    here = world("10f,5f", "4f,4f", sharing=True, metered=True, bandwidth=1.0)
    ends = here.play(
        (0.0, here.job("delay", D5, "0")),
        (0.0, here.job("slow", flops(20), "0-1")),
        (1.0, here.pstate(0, 1)),
    )
    assert ends == {"delay": 5.0, "slow": 5.0}


def test_a_stopped_job_leaves_its_hosts_to_the_others(world: Worlds) -> None:
    """Two share a host until one is killed at 4: the other has 8 of 10 left, and the host."""
    here = world("1f", sharing=True, metered=True)
    ends = here.play((0.0, here.job("a", flops(10), "0")), (0.0, here.job("b", flops(10), "0")), (4.0, here.kill("b")))
    assert ends == {"a": 12.0}
    assert here.hosts.load(0) == 0.0
    assert here.agenda.pop() is None


def test_progress_is_the_share_of_the_work_that_is_done(world: Worlds) -> None:
    """Of a parallel task, of a delay, of a usage trace by its flops, and nested."""
    seen: list[Progress] = []
    here = world("1f", "1f", "1f", "1f,2f", metered=True)

    def look() -> None:
        seen.extend(here.executor.progress(here.jobs[name]) for name in "abcd")

    here.play(
        (0.0, here.job("a", flops(10), "0")),
        (0.0, here.job("b", composed(4, flops(2), D5), "1")),
        (0.0, here.job("c", composed(1, trace([(1.0, 2.0), (1.0, 6.0)], [(1.0, 8.0)])), "2-3")),
        (0.0, here.job("d", D5, "0")),
        (2.0, here.pstate(3, 1)),
        (4.0, look),
    )
    inner = TaskProgress((4.0 + 6.0) / 16, "u", current_task_index=-1)
    assert seen == [
        Progress(0.4, "f"),
        TaskProgress((1 + 0.4) / 8, "x", current_task_index=1, current_task=Progress(0.4, "d5")),
        TaskProgress((4.0 + 6.0) / 16, "x", current_task_index=0, current_task=inner),
        Progress(0.8, "d5"),
    ]


# -- jobs that share hosts ---------------------------------------------------------------------------------------------


def test_what_takes_no_time_is_no_load(world: Worlds) -> None:
    """Two ranks on one core with almost no flops never make the host busier than its core."""
    here = world("1f", cores=[1], sharing=True, metered=True)
    work = UsageTrace(name="u", phases=(((0.0, 1.0),), ((0.0, 2.2250738585072014e-308),)), ret=0)
    assert here.play((0.0, here.job("a", work, "0", mapping=(0, 0)))).keys() == {"a"}
    assert here.hosts.raw == [0.0]


def test_jobs_on_one_host_share_it_while_they_overlap(world: Worlds) -> None:
    """From 0 one, from 2 two, from 6 three; what ends leaves its share."""
    here = world("1f", sharing=True, metered=True)
    ends = here.play(
        (0.0, here.job("a", flops(10), "0")),  # 2, +2 up to 6, then thirds
        (2.0, here.job("b", flops(4), "0")),  # 2 up to 6, 2 left
        (6.0, here.job("c", flops(5), "0")),
    )
    # From 6 at thirds: b ends at 12 (2 left), a has 4, c 3; halves: c ends at 18, a has 1 and the host.
    assert ends == {"b": pytest.approx(12.0), "c": pytest.approx(18.0), "a": pytest.approx(19.0)}


def test_jobs_connected_through_a_third_adapt(world: Worlds) -> None:
    """a and c share no host, but b shares with both; a and c get what b cannot use."""
    here = world("1f", "3f", sharing=True, metered=True)
    ends = here.play(
        (0.0, here.job("a", flops(10), "0")),
        (0.0, here.job("b", flops(5), "0-1")),
        (0.0, here.job("c", flops(29), "1")),
    )
    # Until 10: a and b at 0.5, c at 2.5, so c has 4 left; then a has 5 left, and c ends at 3.
    assert ends == {"b": 10.0, "a": 15.0, "c": pytest.approx(10 + 4 / 3)}


def test_jobs_share_cores_only_when_there_are_too_few(world: Worlds) -> None:
    """On three cores, two ranks and one have one each; a fourth slows all."""
    here = world("1f", cores=[3], sharing=True, metered=True)
    ends = here.play(
        (0.0, here.job("a", trace([(0.7, 6.0)]), "0")),
        (0.0, here.job("b", flops(6), "0")),
        (3.0, here.job("c", flops(3), "0")),
    )
    # From 3, each of four ranks has 3 left, at 3/4.
    assert ends == {name: pytest.approx(7.0, abs=1e-9) for name in "abc"}


def test_jobs_that_end_together_end_at_one_instant(world: Worlds) -> None:
    """Rounding does not tear apart what ends at the same time."""
    here = world("7f", "3f", sharing=True)
    starts = [(0.1 * number, here.job(f"j{number}", flops(10), "0-1")) for number in range(7)]
    alike = [(1.0, here.job(f"k{number}", flops(100), "0")) for number in range(5)]
    ends = here.play(*starts, *alike)
    assert len({ends[f"k{number}"] for number in range(5)}) == 1


# -- load and energy --------------------------------------------------------------------------------------------------


def test_hosts_are_told_their_load_as_tasks_come_and_go(world: Worlds) -> None:
    """All of a core, part of it, several of them; nothing once they are over; delays are no load."""
    here = world("2f", "1f", cores=[4, 1], sharing=True, metered=True)
    seen: dict[float, tuple[float, float]] = {}

    def look() -> None:
        seen[here.now] = (here.hosts.load(0), here.hosts.load(1))

    here.play(
        (0.0, here.job("a", composed(1, D5, flops(10), D5), "0-1")),  # computes from 5 to 15, slowed by host 1
        (6.0, here.job("b", trace([(0.5, 8.0)]), "0")),  # two cores up to 10
        *[(time, look) for time in (1.0, 5.5, 6.5, 11.0, 16.0)],
    )
    assert seen == {1.0: (0.0, 0.0), 5.5: (0.125, 1.0), 6.5: (0.625, 1.0), 11.0: (0.125, 1.0), 16.0: (0.0, 0.0)}


def test_busy_host_power_follows_its_load(world: Worlds) -> None:
    """10 W idle, 20 W and up to 30 W busy: 5 s alone, 10 s shared, the load being full all the time."""
    here = world("1f", sharing=True, metered=True)
    here.play((5.0, here.job("a", flops(10), "0")), (10.0, here.job("b", flops(5), "0")))
    assert here.now == 20.0
    assert here.hosts.energy(30.0) == pytest.approx(5 * 10 + 15 * 30 + 10 * 10)


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
    """Return jobs on up to four hosts: (start, profile, first host, last host, ranks per host)."""
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
def test_computed_flops_equal_the_profiles(
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
    """Step by step, each host is shared among its present jobs: the times are the same."""
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
