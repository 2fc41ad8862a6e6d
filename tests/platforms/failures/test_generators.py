"""Many streams of random bits at once equal those of numpy's generators, one by one."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.failures.durations import Exponential, Weibull
from pipistrelle.platforms.failures.generators import Generators
from pipistrelle.platforms.failures.models import FailureModel

KEYS = st.integers(0, 2**34)


@settings(deadline=None, max_examples=60)
@given(
    st.one_of(st.integers(0, 100), st.integers(0, 2**200)),
    st.lists(KEYS, min_size=1, max_size=3).map(tuple),
    st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=5, unique=True),
    st.data(),
)
@example(0, (0, 0), [0], None)
def test_streams_have_the_numbers_of_numpys(seed: int, key: tuple[int, ...], numbers: list[int], data) -> None:
    """For any seed, key and number, however many are drawn at once, and from which streams."""
    streams = Generators(seed, key, np.array(numbers, dtype=np.int64))
    theirs = [np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(*key, number))) for number in numbers]
    for _ in range(3):
        rows = [0] if data is None else sorted(data.draw(st.sets(st.integers(0, len(numbers) - 1), min_size=1)))
        count = 4 if data is None else data.draw(st.integers(1, 9))
        drawn = streams.random_raw(np.array(rows), count)
        assert drawn.tolist() == [theirs[row].random_raw(count).tolist() for row in rows]


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 1000), st.floats(0.5, 20.0), st.lists(st.floats(1.0, 100.0), min_size=1, max_size=4))
def test_outages_do_not_depend_on_how_far_ahead_they_are_drawn(seed: int, mean: float, horizons: list[float]) -> None:
    """A few at a time or all at once: a node's outages are the same."""
    model = FailureModel(Exponential(mean), Weibull(mean / 4, 0.7))
    stream = model.stream(range(3), seed)
    parts = [list(stream.extend(horizon)) for horizon in sorted(horizons)]
    assert sorted(row for part in parts for row in part) == sorted(model.stream(range(3), seed).extend(max(horizons)))
