"""The tasks of a profile, their order, and their progress."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.platforms.simgrid.platform_file import parse_simgrid
from pipistrelle.protocol.batsim.messages import TaskProgress
from pipistrelle.protocol.events import Progress
from pipistrelle.server.hosts.hosts import Hosts
from pipistrelle.server.hosts.phases import Execution, Path, Phase, begin_phase, next_task
from pipistrelle.server.hosts.sharing import Demand
from pipistrelle.traces.profiles import (
    Composed,
    Delay,
    Parallel,
    ParallelHomogeneous,
    ParallelHomogeneousTotal,
    Profile,
    UsageTrace,
)


def hosts_of(cores: Sequence[int]) -> Hosts:
    """Return hosts with this many cores."""
    elements = "".join(f'<host id="h{number}" speed="1f" core="{count}"/>' for number, count in enumerate(cores))
    return Hosts(
        parse_simgrid(f'<platform version="4.1"><zone id="z" routing="None">{elements}</zone></platform>', "m")
    )


def begun(
    leaf: Delay | ParallelHomogeneous | ParallelHomogeneousTotal | Parallel | UsageTrace,
    places: tuple[int, ...],
    *,
    cores: Sequence[int] = (1, 1, 1, 1),
    bandwidth: float | None = None,
) -> Phase:
    """Return a leaf at work on these hosts."""
    run = Execution("w0!1", places, len(set(places)) < len(places), 100.0, Path())
    return begin_phase(run, leaf, hosts_of(cores), bandwidth)


def demands(
    leaf: ParallelHomogeneous | ParallelHomogeneousTotal | Parallel, places: tuple[int, ...]
) -> dict[int, Demand]:
    """Return the demand of a leaf's only task on these hosts."""
    (task,) = begun(leaf, places).tasks
    return task.demands


def way(profile: Profile) -> list[str]:
    """Return the names of a profile's leaves, in order."""
    path = Path()
    names = [path.descend(profile).name]
    while (leaf := path.next()) is not None:
        names.append(leaf.name)
    return names


def composed(name: str, repeat: int, *seq: Profile) -> Composed:
    """Return a composed profile."""
    return Composed(name=name, repeat=repeat, seq=seq, names=tuple(part.name for part in seq))


A, B, C = (Delay(name=name, delay=1.0) for name in "abc")


def test_a_delay_asks_nothing_of_hosts() -> None:
    """It lasts for its stated time."""
    (task,) = begun(Delay(name="d", delay=7.5), (0, 1)).tasks
    assert (task.demands, task.least) == ({}, 7.5)


def test_homogeneous_ranks_have_the_same_to_do_on_each_host() -> None:
    """With a total, each has its part of it."""
    each = Demand(12.0, 1, 12.0)
    assert demands(ParallelHomogeneous(name="p", cpu=12.0, com=0.0), (1, 3)) == {1: each, 3: each}
    third = Demand(4.0, 1, 4.0)
    assert demands(ParallelHomogeneousTotal(name="p", cpu=12.0, com=0.0), (0, 1, 3)) == {0: third, 1: third, 3: third}


def test_ranks_on_one_host_add_up() -> None:
    """Their flops are added; the largest per host is kept."""
    assert demands(ParallelHomogeneous(name="p", cpu=5.0, com=0.0), (0, 2, 0)) == {
        0: Demand(10.0, 2, 5.0),
        2: Demand(5.0, 1, 5.0),
    }
    assert demands(Parallel(name="p", cpu=(1.0, 3.0, 2.0), com=()), (1, 1, 0)) == {
        1: Demand(4.0, 2, 3.0),
        0: Demand(2.0, 1, 2.0),
    }


def test_ranks_without_work_are_no_users_of_their_host() -> None:
    """A host without work is left out."""
    assert demands(Parallel(name="p", cpu=(0.0, 3.0, 0.0), com=()), (0, 0, 1)) == {0: Demand(3.0, 1, 3.0)}
    assert demands(ParallelHomogeneous(name="p", cpu=0.0, com=0.0), (0, 1)) == {}


@pytest.mark.parametrize(
    ("leaf", "places", "seconds"),
    [
        (ParallelHomogeneous(name="p", cpu=1.0, com=6.0), (0, 1, 2), 12.0),
        (ParallelHomogeneousTotal(name="p", cpu=1.0, com=6.0), (0, 1, 2), 4.0),
        (ParallelHomogeneous(name="p", cpu=1.0, com=6.0), (0, 0, 1), 12.0),
        (ParallelHomogeneous(name="p", cpu=1.0, com=6.0), (0, 0), 0.0),
        (ParallelHomogeneous(name="p", cpu=1.0, com=6.0), (0,), 0.0),
        (Parallel(name="p", cpu=(0.0, 0.0), com=(9.0, 2.0, 5.0, 9.0)), (0, 1), 5.0),
        (Parallel(name="p", cpu=(0.0,) * 3, com=(0.0, 0.0, 3.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0)), (0, 1, 2), 7.0),
        (Parallel(name="p", cpu=(0.0, 0.0), com=(9.0, 2.0, 5.0, 9.0)), (1, 1), 0.0),
    ],
)
def test_the_busiest_host_sends_or_receives_at_the_bandwidth(
    leaf: ParallelHomogeneous | ParallelHomogeneousTotal | Parallel, places: tuple[int, ...], seconds: float
) -> None:
    """What stays on a host costs nothing; a total is divided by the number of ranks."""
    assert begun(leaf, places, bandwidth=1.0).tasks[0].least == seconds
    assert begun(leaf, places, bandwidth=4.0).tasks[0].least == seconds / 4


@pytest.mark.parametrize(("share", "cores"), [(0.0, 1), (0.24, 1), (0.5, 3), (0.7, 4), (0.3, 2), (1.0, 5)])
def test_a_usage_trace_uses_its_share_of_the_cores(share: float, cores: int) -> None:
    """Of five cores: at least one, halves are rounded up; the flops are those of each core."""
    (task,) = begun(UsageTrace(name="u", phases=(((share, 8.0),),)), (0,), cores=(5,)).tasks
    assert task.demands == {0: Demand(8.0 * cores, cores, 8.0)}


def test_a_rank_of_a_usage_trace_goes_through_its_phases_and_skips_empty_ones() -> None:
    """Each rank for itself; one without any work is not there."""
    trace = UsageTrace(name="u", phases=(((1.0, 3.0), (1.0, 0.0), (1.0, 4.0)), ((1.0, 0.0),)))
    phase = begun(trace, (2, 3))
    (task,) = phase.tasks
    assert task.demands == {2: Demand(3.0, 1, 3.0)}
    following = next_task(task, hosts_of((1, 1, 1, 1)))
    assert following is not None
    assert following.demands == {2: Demand(4.0, 1, 4.0)}
    assert next_task(following, hosts_of((1, 1, 1, 1))) is None


def test_a_usage_trace_without_work_has_one_empty_task() -> None:
    """Something must tell that it is over."""
    phase = begun(UsageTrace(name="u", phases=(((1.0, 0.0),), ((0.5, 0.0),))), (0, 1))
    assert [(task.demands, task.least) for task in phase.tasks] == [({}, 0.0)]


@given(
    st.recursive(
        st.sampled_from([A, B, C]),
        lambda parts: st.builds(
            lambda repeat, seq: composed("x", repeat, *seq), st.integers(1, 3), st.lists(parts, min_size=1, max_size=3)
        ),
        max_leaves=6,
    )
)
def test_the_way_through_nested_profiles_is_that_of_loops(profile: Profile) -> None:
    """Each composed profile runs its parts in order, as often as it states."""

    def loops(part: Profile) -> list[str]:
        if isinstance(part, Composed):
            return [name for _ in range(part.repeat) for inner in part.seq for name in loops(inner)]
        return [part.name]

    assert way(profile) == loops(profile)


def test_progress_counts_parts_over_all_repetitions() -> None:
    """As in Batsim: the second round's first part of two has index 2."""
    path = Path()
    leaf = path.descend(composed("x", 2, A, composed("y", 3, B, C)))
    names = [leaf.name]
    for _ in range(10):
        following = path.next()
        assert following is not None
        leaf = following
        names.append(leaf.name)
    assert names == list("abcbcbcabcb")
    inner = TaskProgress(2.5 / 6, "y", current_task_index=2, current_task=Progress(0.5, "b"))
    assert path.progress(leaf, 0.5) == TaskProgress((3 + 2.5 / 6) / 4, "x", current_task_index=3, current_task=inner)


def test_progress_of_a_usage_trace_is_that_of_a_task_without_parts() -> None:
    """Batsim does not know the progress of one."""
    trace = UsageTrace(name="u", phases=(((1.0, 1.0),),))
    assert Path().progress(trace, 0.25) == TaskProgress(0.25, "u", current_task_index=-1)
