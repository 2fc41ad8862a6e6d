"""Ids of jobs that have ended: a set that takes little room."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.protocol.base.state import from_json, to_json
from pipistrelle.server.engine.jobs import JobIds

NAMES = st.one_of(
    st.integers(0, 2000).map(str),
    st.integers(0, 10**15).map(str),
    st.sampled_from(["", "007", "7#1", "7 ", "-7", "٧", "²", "a", "1e3", "+1", "1_0"]),
)
IDS = st.builds("{}!{}".format, st.sampled_from(["w0", "w1", "dyn", ""]), NAMES) | st.sampled_from(["", "!", "w0", "5"])


@given(st.lists(IDS), st.lists(IDS), st.data())
def test_it_is_a_set(some, others, data):
    """It contains the added ids and nothing else, also after a round trip through plain values."""
    ids, known = JobIds(), set()
    for job_id in some:
        ids.add(job_id)
        known.add(job_id)
    if data.draw(st.booleans()):
        again = JobIds(["w9!9"])
        again.restore(from_json(to_json(ids.state())))
        ids = again
    assert ids == known
    assert sorted(ids) == sorted(known)
    for job_id in (*others, *some):
        assert (job_id in ids) == (job_id in known)
    assert ids.isdisjoint(others) == known.isdisjoint(others)
    for job_id in others:
        ids.add(job_id)
    assert ids == known | set(others)


@pytest.mark.parametrize("names", [range(1, 200_001), [10**11 - n for n in range(1000)]], ids=["a log", "large"])
def test_it_takes_little_room(names):
    """A bit for each job of a log; a few large numbers do not take a bit for all below them."""
    tracemalloc.start()
    try:
        ids = JobIds()
        for name in names:
            ids.add(f"w0!{name}")
        assert tracemalloc.get_traced_memory()[0] < 300_000
    finally:
        tracemalloc.stop()
    assert f"w0!{names[-1]}" in ids


def test_many_at_once_and_one_by_one_are_the_same():
    """Ids are sorted in many at once, or one at a time when read in between."""
    names = [*range(1, 3000), 10**14, "007", "x", *range(5000, 9000, 7)]
    together, single = JobIds(f"w0!{name}" for name in names), JobIds()
    for name in names:
        single.add(f"w0!{name}")
        assert f"w0!{name}" in single
    assert together.state() == single.state()
