"""Fair shares of hosts: closed forms, a reference of many digits, and what must hold of any shares."""

from collections.abc import Mapping, Sequence
from decimal import Decimal, localcontext
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.server.hosts.sharing import Demand, fair_rates

Task = dict[int, Demand]


def task(**flops: float) -> Task:
    """Return the demands of a task of one rank on each host: task(h0=3, h2=1)."""
    return {int(name[1:]): Demand(amount, 1, amount) for name, amount in flops.items()}


def precise(
    tasks: Sequence[Mapping[int, Demand]], bounds: Sequence[float], capacity: Mapping[int, float]
) -> list[float]:
    """Return the shares, computed with forty digits and as plainly as can be."""
    with localcontext(prec=40):
        bound = [Decimal(number) for number in bounds]
        left = {host: Decimal(amount) for host, amount in capacity.items()}
        rates = [Decimal(0)] * len(tasks)
        active = set(range(len(tasks)))
        while active:
            users = {host: sum(tasks[t][host].ranks for t in active if host in tasks[t]) for host in left}
            steps = {
                t: min(
                    bound[t] - rates[t],
                    *(left[host] / users[host] / Decimal(demand.heaviest) for host, demand in tasks[t].items()),
                )
                for t in active
            }
            for t, step in steps.items():
                rates[t] += step
                for host, demand in tasks[t].items():
                    left[host] -= step * Decimal(demand.flops)
            active = {
                t
                for t in active
                if bound[t] - rates[t] > Decimal("1e-25") and all(left[host] > Decimal("1e-25") for host in tasks[t])
            }
        return [float(rate) for rate in rates]


@st.composite
def meetings(draw: st.DrawFn, *, alike: bool = False) -> tuple[list[Task], list[float], dict[int, float]]:
    """Return tasks on a few hosts, their bounds, and the hosts' capacity; optionally a task's ranks are alike."""
    hosts = draw(st.integers(1, 5))
    speed = [draw(st.sampled_from([1.0, 2.0, 5.0, 7.5])) for _ in range(hosts)]
    cores = [draw(st.integers(1, 4)) for _ in range(hosts)]
    tasks: list[Task] = []
    bounds: list[float] = []
    for _ in range(draw(st.integers(1, 6))):
        demands: Task = {}
        each = draw(st.sampled_from([0.5, 1.0, 3.0, 10.0]))
        for host in draw(st.sets(st.integers(0, hosts - 1), min_size=1)):
            ranks = (
                [each]
                if alike
                else [draw(st.sampled_from([0.5, 1.0, 3.0, 10.0])) for _ in range(draw(st.integers(1, 3)))]
            )
            demands[host] = Demand(sum(ranks), len(ranks), max(ranks))
        tasks.append(demands)
        bounds.append(
            min(
                min(speed[host] / demand.heaviest, speed[host] * cores[host] / demand.flops)
                for host, demand in demands.items()
            )
        )
    return tasks, bounds, {host: speed[host] * cores[host] for host in range(hosts)}


@pytest.mark.parametrize("number", [1, 2, 3, 7, 100])
def test_equal_tasks_on_one_host_get_equal_shares(number: int) -> None:
    """Each gets its part of the host's speed."""
    rates = fair_rates([task(h0=10)] * number, [0.2] * number, {0: 2.0})
    assert rates == pytest.approx([0.2 / number] * number, rel=1e-14)


def test_each_rank_gets_the_same_flops_whatever_there_is_to_do() -> None:
    """Shares are of flop/s: a task with more to do is slower."""
    assert fair_rates([task(h0=1), task(h0=3)], [4.0, 4 / 3], {0: 4.0}) == pytest.approx([2.0, 2 / 3])


def test_a_task_is_slowed_by_its_scarcest_host_and_leaves_the_rest_to_others() -> None:
    """Two tasks share host 0; the one that also has host 1 leaves there what it cannot use."""
    tasks = [task(h0=1), task(h0=1, h1=1), task(h1=1)]
    assert fair_rates(tasks, [1.0, 1.0, 4.0], {0: 1.0, 1: 4.0}) == pytest.approx([0.5, 0.5, 3.5])


def test_a_bound_is_met_exactly_and_what_it_leaves_is_shared() -> None:
    """Of four cores, one task uses one, and another, that has two ranks, two."""
    rates = fair_rates([task(h0=3), {0: Demand(6.0, 2, 3.0)}], [0.1, 0.1], {0: 4.0})
    assert rates == [0.1, 0.1]


def test_ranks_count_where_a_host_is_shared_out() -> None:
    """A task with two ranks on a host gets two parts of three there."""
    rates = fair_rates([{0: Demand(2.0, 2, 1.0)}, task(h0=1)], [1.5, 3.0], {0: 3.0})
    assert rates == pytest.approx([1.0, 1.0])


def test_shares_that_shrink_for_ever_come_to_an_end() -> None:
    """Two tasks that are each other's scarcity: both hosts are used up in the limit, at 2/3 and 1/3 a second."""
    tasks = [task(h0=1, h1=1), task(h0=1, h1=4)]
    assert fair_rates(tasks, [1.0, 0.5], {0: 1.0, 1: 2.0}) == pytest.approx([2 / 3, 1 / 3], rel=1e-12)


def test_very_much_and_very_little_work_can_meet() -> None:
    """Flops from 1e-30 to 1e30 leave every rate finite and above 0."""
    tasks = [task(h0=1e30), task(h0=1e-30), task(h0=1.0)]
    assert fair_rates(tasks, [1e-30, 1e30, 1.0], {0: 1.0}) == pytest.approx([1e-30 / 3, 1e30 / 3, 1 / 3])


@given(meetings())
def test_no_host_is_used_above_its_capacity_and_no_task_is_slower_than_need_be(
    meeting: tuple[list[Task], list[float], dict[int, float]],
) -> None:
    """Each task is at its bound, or has a host with nothing left; none is above its bound."""
    tasks, bounds, capacity = meeting
    rates = fair_rates(tasks, bounds, capacity)
    used = dict.fromkeys(capacity, 0.0)
    for rate, demands in zip(rates, tasks, strict=True):
        for host, demand in demands.items():
            used[host] += rate * demand.flops
    assert all(used[host] <= capacity[host] * (1 + 1e-12) for host in capacity)
    for rate, bound, demands in zip(rates, bounds, tasks, strict=True):
        assert 0 < rate <= bound
        assert rate == bound or any(isclose(used[host], capacity[host], rel_tol=1e-12) for host in demands)


@given(meetings(alike=True))
def test_rates_are_those_of_many_digits(meeting: tuple[list[Task], list[float], dict[int, float]]) -> None:
    """Where ranks are alike each round uses up a host, and rounding costs no digit that six decimals show."""
    tasks, bounds, capacity = meeting
    assert fair_rates(tasks, bounds, capacity) == pytest.approx(precise(tasks, bounds, capacity), rel=1e-11)


@given(st.lists(st.tuples(st.sampled_from([0.5, 1.0, 2.0, 8.0]), st.floats(0.01, 5.0)), min_size=1, max_size=8))
def test_on_one_host_shares_are_max_min_fair(wants: list[tuple[float, float]]) -> None:
    """Tasks below their bound get the same flop/s, and no less than any other."""
    tasks = [task(h0=flops) for flops, _ in wants]
    bounds = [speed / flops for flops, speed in wants]
    flops = [rate * demands[0].flops for rate, demands in zip(fair_rates(tasks, bounds, {0: 4.0}), tasks, strict=True)]
    level = max(flops)
    for got, (_, speed) in zip(flops, wants, strict=True):
        assert isclose(got, min(level, speed), rel_tol=1e-12)
    assert isclose(sum(flops), min(4.0, sum(speed for _, speed in wants)), rel_tol=1e-12)


@given(meetings(alike=True), st.randoms(use_true_random=False))
def test_the_order_of_tasks_does_not_matter(meeting: tuple[list[Task], list[float], dict[int, float]], rng) -> None:  # type: ignore[no-untyped-def]
    """In another order, each task gets the same."""
    tasks, bounds, capacity = meeting
    order = list(range(len(tasks)))
    rng.shuffle(order)
    rates = fair_rates(tasks, bounds, capacity)
    other = fair_rates([tasks[place] for place in order], [bounds[place] for place in order], capacity)
    assert other == pytest.approx([rates[place] for place in order], rel=1e-11)
