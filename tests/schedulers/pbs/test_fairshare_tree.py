"""Fairshare: half-lives, and what shares make of usage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.schedulers.pbs.fairshare_tree import FairshareTree


def test_usage_halves_at_every_half_life() -> None:
    """10 units for 100 s are 1000 unit-seconds; each multiple of the half-life leaves half."""
    tree = FairshareTree(decay_time=1000.0)
    ada = tree.code("ada")
    tree.started(ada, 10, 0.0)
    tree.ended(ada, 10, 100.0)

    seen = []
    for now in (100.0, 999.0, 1000.0, 1999.0, 2000.0, 12000.0):
        tree.advance(now)
        seen.append(tree.usage("ada"))
    assert seen == [1000.0, 1000.0, 500.0, 500.0, 250.0, 1000.0 / 2**12]


def test_a_running_job_is_charged_until_now() -> None:
    """Usage before a decay fades, usage after it does not."""
    tree = FairshareTree(decay_time=100.0)
    tree.started(tree.code("ada"), 2, 40.0)
    tree.advance(130.0)

    assert tree.usage("ada") == 2 * 60.0 / 2 + 2 * 30.0


@given(
    step=st.sampled_from([7.0, 50.0, 1000.0]),
    factor=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    times=st.lists(st.tuples(st.integers(0, 400), st.integers(-3, 5)), max_size=12),
)
def test_many_decays_at_once_are_one_after_the_other(step: float, factor: float, times: list[tuple[int, int]]) -> None:
    """Looking rarely gives the usage that looking every second does."""
    rare, often = (FairshareTree(decay_time=step, decay_factor=factor) for _ in range(2))
    now, model, rate = 0, 0.0, 0
    for tree in (rare, often):
        tree.code("ada")
    for wait, change in times:
        for _ in range(wait):
            now += 1
            model += rate
            if now % step == 0:
                model *= factor
            often.advance(float(now))
        added = max(change, -rate)
        rate += added
        for tree in (rare, often):
            tree.started(0, added, float(now))
    assert rare.usage("ada") == pytest.approx(model, rel=1e-9)
    assert often.usage("ada") == pytest.approx(model, rel=1e-9)


def test_without_decay_nothing_fades() -> None:
    """An infinite interval, as decay-time = 0 gives."""
    tree = FairshareTree(decay_time=np.inf)
    tree.started(tree.code("ada"), 1, 0.0)
    tree.advance(1e9)

    assert tree.usage("ada") == 1e9
    assert tree.usage("nobody") == 0.0


def test_shares_are_parts_of_the_machine() -> None:
    """Listed entities have their own shares, the others split the group's evenly, and all sum to 1."""
    tree = FairshareTree({"ada": 60, "bob": 20}, unknown_shares=20)
    tree.code("eve"), tree.code("joe")

    assert tree.perc().tolist() == [0.6, 0.2, 0.1, 0.1]
    assert FairshareTree({"ada": 0}, unknown_shares=0).perc().tolist() == [0.0]
    assert FairshareTree().perc().tolist() == []


def test_paper_002_equation_2() -> None:
    """f = 10^6 (1 - u_p/u_t), with everything at 10^6 before anybody ran."""
    tree = FairshareTree()
    ada, bob = tree.code("ada"), tree.code("bob")
    assert tree.fairshare().tolist() == [1e6, 1e6]
    tree.started(ada, 3, 0.0)
    tree.started(bob, 1, 0.0)
    tree.advance(500.0)

    assert tree.fairshare().tolist() == [250_000.0, 750_000.0]


def test_the_factor_is_a_half_when_usage_is_what_the_shares_say() -> None:
    """2^-(usage/perc): 1 without usage, 0 without shares."""
    tree = FairshareTree({"ada": 50, "bob": 50, "eve": 0}, unknown_shares=0)
    assert tree.factor().tolist() == [1.0, 1.0, 0.0]
    tree.started(0, 1, 0.0)
    tree.started(1, 1, 0.0)
    tree.advance(100.0)

    assert tree.factor().tolist() == [0.5, 0.5, 0.0]


def test_what_the_group_of_unknown_has_used_counts_a_little_for_each() -> None:
    """p + (g - p)/n."""
    tree = FairshareTree({"ada": 1}, unknown_shares=1)
    eve, _ = tree.code("eve"), tree.code("joe")
    tree.started(0, 1, 0.0)
    tree.started(eve, 3, 0.0)
    tree.advance(10.0)

    assert tree.tree_usage().tolist() == [0.25, 0.75, 0.375]
