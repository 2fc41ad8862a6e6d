"""Erlang's B and C, the linear form, complete sharing: exact values, limits and rejected inputs."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.models.reliability.jobs import ReliabilityError
from pipistrelle.models.reliability.loss import (
    check_blocking,
    erlang_b,
    erlang_c,
    kaufman_roberts,
    linear_blocking,
    printed_queueing,
    queueing,
)


def test_ten_servers_of_five_erlang():
    """The textbook values."""
    assert erlang_b(10, 5.0) == pytest.approx(0.0183846, abs=5e-8)
    assert erlang_c(10, 5.0) == pytest.approx(0.0361054, abs=5e-8)


@pytest.mark.parametrize(("servers", "exact"), [(1, 0.5), (10, 0.2146), (100, 0.0757), (1000, 0.0248)])
def test_where_the_load_is_the_capacity(servers, exact):
    """The linear form predicts no blocking; the exact form predicts much."""
    assert linear_blocking(servers, servers) == 0.0
    assert erlang_b(servers, float(servers)) == pytest.approx(exact, abs=5e-5)


def test_one_server_for_the_class_of_8192(classes, printed):
    """With 11,305 nodes one of its jobs fits: 58 % are blocked, where the linear form predicts none."""
    one = classes[7]

    assert erlang_b(printed.most[7] // one.size, one.rate * one.service) == pytest.approx(0.580, abs=5e-4)
    assert linear_blocking(printed.most[7], printed.most[7]) == 0.0


def test_complete_sharing(classes):
    """All classes on 640 units of 64 nodes: the small pass, the large are lost."""
    found = kaufman_roberts(640, [one.size // 64 for one in classes], [one.rate * one.service for one in classes])
    by_size = dict(zip((one.size for one in classes), found.blocking.tolist(), strict=True))

    expected = {512: 0.0210, 4096: 0.1700, 8192: 0.3434, 16384: 0.6671}
    assert {size: by_size[size] for size in expected} == pytest.approx(expected, abs=5e-5)
    assert found.utilisation == pytest.approx(0.6858, abs=5e-5)


@settings(max_examples=60, deadline=None)
@given(servers=st.integers(0, 60), load=st.floats(0.01, 80))
def test_erlang_b_is_the_sum(servers, load):
    """The recursion gives a^n / n! over the sum of such terms; a class alone on a machine has that value."""
    terms = [math.exp(k * math.log(load) - math.lgamma(k + 1) - load) for k in range(servers + 1)]

    assert erlang_b(servers, load) == pytest.approx(terms[-1] / sum(terms), rel=1e-9)
    if servers:
        assert kaufman_roberts(servers, [1], [load]).blocking[0] == pytest.approx(erlang_b(servers, load), rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(
    units=st.integers(1, 25),
    classes=st.lists(st.tuples(st.integers(1, 8), st.floats(0.05, 5)), min_size=1, max_size=3),
)
def test_kaufman_roberts_is_the_product_form(units, classes):
    """It is what adding up all states gives, each with the product of its classes' Poisson terms."""
    states = [()]
    for size, _ in classes:
        states = [(*state, count) for state in states for count in range(units // size + 1)]
    weights = np.zeros(units + 1)
    for state in states:
        used = sum(count * size for count, (size, _) in zip(state, classes, strict=True))
        if used <= units:
            terms = zip(state, classes, strict=True)
            weights[used] += math.prod(load**count / math.factorial(count) for count, (_, load) in terms)
    weights /= weights.sum()
    found = kaufman_roberts(units, [size for size, _ in classes], [load for _, load in classes])

    for (size, _), blocked in zip(classes, found.blocking, strict=True):
        assert blocked == pytest.approx(weights[max(units - size + 1, 0) :].sum(), rel=1e-9)
    assert found.utilisation == pytest.approx((weights * np.arange(units + 1)).sum() / units, rel=1e-9)


def test_large_machines_neither_overflow_nor_underflow():
    """A hundred thousand units under a load of as much, and of thrice that."""
    assert 0.002 < kaufman_roberts(100_000, [1], [100_000.0]).blocking[0] < 0.003
    assert kaufman_roberts(100_000, [1], [300_000.0]).blocking[0] == pytest.approx(2 / 3, abs=1e-4)
    assert erlang_b(100_000, 300_000.0) == pytest.approx(2 / 3, abs=1e-4)


@pytest.mark.parametrize("load", [10.0, 12.5])
def test_a_queue_without_end_has_no_figures(load):
    """From the load on that all servers can do there is no chance, length or wait, least of all a negative one."""
    assert erlang_c(10, load) is None
    assert queueing(10, load, 2.0) is None


def test_a_queue():
    """Little's law holds between length and wait."""
    found = queueing(10, 5.0, 2.0)

    assert found.chance == pytest.approx(0.0361054, abs=5e-8)
    assert found.length == pytest.approx(found.wait * 5.0 / 2.0)


def test_printed_queueing_divides_by_zero_with_the_load_in_nodes(classes):
    """Equations 3.17 to 3.19: with n lambda t nothing; with lambda t, beside C in nodes, waits of seconds."""
    one = classes[7]
    capacity = one.load  # equation 3.11, (1 - B) n lambda t
    found = printed_queueing(0.9 * one.load, one.rate * one.service, 0.1, one.service)

    assert printed_queueing(capacity, one.load, 0.0, one.service) is None
    assert found is not None
    assert found.wait * 3600 < 1.0
    assert printed_queueing(capacity, one.rate * one.service, 0.0, one.service).wait == 0.0


@pytest.mark.parametrize("blocking", [-0.1, 1.1, math.nan])
def test_a_chance_of_blocking_is_one(blocking):
    """What is not from 0 to 1 is refused by name."""
    with pytest.raises(ReliabilityError, match="blocking: a chance of blocking is out of range"):
        check_blocking(blocking)


@pytest.mark.parametrize("load", [0.0, -1.0, math.nan, math.inf])
def test_a_load_is_above_zero(load):
    """What is not is refused by name."""
    with pytest.raises(ReliabilityError, match="a load is out of range"):
        erlang_b(3, load)
