"""Time slices and masks of units, against sets that are looked through one by one."""

from itertools import accumulate
from math import inf, nextafter
from operator import and_

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.protocol.units.masks import lowest, mask_of, units_of
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.plan.slices import Fit, TimeSlices
from pipistrelle.schedulers.policy.ends_and_shadow import end_of
from pipistrelle.schedulers.policy.windows import Closure

UNITS = 5


@given(st.sets(st.integers(0, 200)))
def test_a_mask_is_a_set_of_units(units: set[int]) -> None:
    """Masks have one bit a unit, and become the same set again."""
    nodes = NodeSet.of(units)

    assert mask_of(nodes) == sum(1 << unit for unit in units)
    assert units_of(mask_of(nodes)) == nodes


@given(st.sets(st.integers(0, 200), min_size=1), st.integers(1, 200))
def test_the_lowest_units(units: set[int], count: int) -> None:
    """As many as requested, from the lowest, skipping gaps."""
    count = min(count, len(units))

    assert list(units_of(lowest(mask_of(NodeSet.of(units)), count))) == sorted(units)[:count]


@given(st.lists(st.integers(1, 90), min_size=1, max_size=60))
def test_a_mask_of_many_intervals_is_their_set(bounds: list[int]) -> None:
    """Above some number of intervals, all are found at once."""
    edges = [0, *accumulate(bounds)]
    nodes = NodeSet(zip(edges[::2], (edge - 1 for edge in edges[1::2]), strict=False))

    assert units_of(mask_of(nodes)) == nodes


def test_a_job_always_lasts() -> None:
    """A walltime that is tiny compared with the time of day still ends later than it begins."""
    assert end_of(0.0, 5.0) == 5.0
    assert end_of(1e9, 1e-9) == nextafter(1e9, inf)
    assert end_of(3.0, inf) == inf


class Held:
    """The reference: the holders of units over time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.places: list[tuple[int, float, float]] = []

    def free(self, begin: float, end: float, without: tuple[int, float, float] | None = None) -> int:
        """Return the units that are free all the time from begin to end."""
        mask = (1 << UNITS) - 1
        for place in self.places:
            units, first, last = place
            if place is not without and first < end and last > begin:
                mask &= ~units
        return mask

    def earliest(self, size: int, walltime: float, without: tuple[int, float, float] | None = None) -> Fit | None:
        """Try now and every end in turn."""
        for begin in sorted({self.now, *(end for _, _, end in self.places if self.now < end < inf)}):
            free = self.free(begin, begin + walltime, without)
            if free.bit_count() >= size:
                return Fit(begin, free)
        return None


times = st.sampled_from([1.0, 2.0, 3.0, 5.0, 8.0, inf])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("place"), st.integers(1, UNITS), times),
        st.tuples(st.just("again"), st.integers(0, 9), times),
        st.tuples(st.just("clear"), st.integers(0, 9), times),
        st.tuples(st.just("advance"), st.integers(0, 3), times),
    ),
    max_size=25,
)


@settings(max_examples=150)
@given(steps)
def test_slices_equal_the_free_units(steps: list[tuple[str, int, float]]) -> None:
    """Reservations are added and removed as time advances: the first fit equals that of trying all times."""
    slices, held = TimeSlices(0.0, (1 << UNITS) - 1), Held()
    for what, number, walltime in steps:
        if what == "advance":
            held.now += number
            held.places = [place for place in held.places if place[2] > held.now]
            slices.advance(held.now)
        elif what == "place":
            fit = slices.earliest(number, walltime)
            assert fit == held.earliest(number, walltime)
            free_now = held.free(held.now, held.now + walltime)
            assert slices.now_for(number, walltime) == (free_now if free_now.bit_count() >= number else 0)
            if fit is not None:
                place = (lowest(fit.units, number), fit.begin, end_of(fit.begin, walltime))
                held.places.append(place)
                slices.take(*place)
        elif held.places:
            place = held.places[number % len(held.places)]
            units, begin, end = place
            if what == "clear":
                held.places.remove(place)
                slices.give_back(*place)
            elif begin >= held.now and end > begin:
                fit = slices.earliest(units.bit_count(), end - begin, own=units, own_begin=begin)
                assert fit == held.earliest(units.bit_count(), end - begin, without=place)
        assert slices.free_now == held.free(held.now, nextafter(held.now, inf))
    for place in held.places:
        slices.give_back(*place)
    assert slices.earliest(UNITS, inf) == Fit(held.now, (1 << UNITS) - 1)


closures = st.lists(
    st.builds(
        lambda begin, length, units: Closure(begin, begin + length, units),
        st.integers(0, 12).map(float),
        st.sampled_from([1.0, 2.5, 6.0, inf]),
        st.integers(1, (1 << UNITS) - 1),
    ),
    max_size=4,
)


@settings(max_examples=150)
@given(st.lists(st.tuples(st.integers(1, UNITS), times, closures, st.integers(0, 2)), max_size=12))
def test_closures_keep_a_job_out(jobs: list[tuple[int, float, list[Closure], int]]) -> None:
    """Each job is kept from units of its own closures, and only from these; a fit may begin where one ends."""
    slices, held = TimeSlices(0.0, (1 << UNITS) - 1), Held()
    for size, walltime, closed, wait in jobs:
        held.now += wait
        held.places = [place for place in held.places if place[2] > held.now]
        slices.advance(held.now)
        others = [(units, begin, end) for begin, end, units in closed]
        known = held.places
        held.places = known + others
        fit = held.earliest(size, walltime)
        assert slices.earliest(size, walltime, closures=closed) == fit
        free_now = held.free(held.now, held.now + walltime)
        assert slices.now_for(size, walltime, closed) == (free_now if free_now.bit_count() >= size else 0)
        held.places = known
        if fit is not None:
            place = (lowest(fit.units, size), fit.begin, end_of(fit.begin, walltime))
            held.places.append(place)
            slices.take(*place)
            if fit.begin >= held.now:
                again = slices.earliest(size, walltime, own=place[0], own_begin=fit.begin, closures=closed)
                assert again == fit


#: times at which something may begin or end
GRID = [float(time) for time in range(13)]
changes = st.lists(
    st.tuples(
        st.sampled_from(["take", "give back", "advance"]),
        st.integers(1, (1 << UNITS) - 1),
        st.sampled_from(GRID),
        st.sampled_from([*GRID, inf]),
        st.booleans(),
    ),
    max_size=20,
)


@settings(max_examples=300)
@given(st.integers(0, (1 << UNITS) - 1), changes)
def test_units_are_taken_and_freed_one_by_one(free: int, changes: list[tuple[str, int, float, float, bool]]) -> None:
    """Taking taken units and freeing free units has no effect; the caller may know the units' state and number."""
    slices, masks, now = TimeSlices(0.0, free), dict.fromkeys(GRID, free), 0.0
    for what, some, begin, end, sure in changes:
        units = some
        if what == "advance":
            now = max(now, begin)
            slices.advance(now)
        else:
            within = [time for time in GRID if max(begin, now) <= time < end]
            for time in within if sure else []:
                units &= masks[time] if what == "take" else ~masks[time]
            width = units.bit_count()
            if what == "take":
                slices.take(units, begin, end, width, sure=sure)
            else:
                slices.give_back(units, begin, end, width, sure=sure)
            for time in within:
                masks[time] = masks[time] & ~units if what == "take" else masks[time] | units
        left = [time for time in GRID if time >= now]
        steps = slices.steps(now)
        lasting = [next((step for step in steps if step.end > time), None) for time in left]
        through = accumulate((masks[time] for time in left), and_)
        assert [0 if step is None else step.units for step in lasting] == list(through)
        assert all(step.width == step.units.bit_count() for step in steps)
        for size in range(1, UNITS + 1):
            fits = next((Fit(time, masks[time]) for time in left if masks[time].bit_count() >= size), None)
            assert slices.earliest(size, 0.5) == fits


def test_slices_are_joined_again() -> None:
    """Removed reservations leave no slices behind."""
    slices = TimeSlices(0.0, 0b111)
    slices.take(0b001, 2.0, 5.0)
    slices.take(0b110, 3.0, inf)
    assert len(slices) == 4
    slices.give_back(0b001, 2.0, 5.0)
    slices.give_back(0b110, 3.0, inf)

    assert len(slices) == 1
    slices.give_back(0b111, -5.0, -1.0)
    assert slices.free_now == 0b111


@pytest.mark.parametrize(
    ("now", "slices_left", "free"), [(0.0, 4, 0b11), (1.0, 4, 0b11), (2.0, 3, 0b10), (5.0, 2, 0), (7.0, 1, 0b11)]
)
def test_the_past_is_forgotten(now: float, slices_left: int, free: int) -> None:
    """A slice that ends now is past, one that begins now is not."""
    slices = TimeSlices(0.0, 0b11)
    slices.take(0b01, 2.0, 6.0)
    slices.take(0b10, 5.0, 6.0)
    slices.advance(now)

    assert (len(slices), slices.free_now) == (slices_left, free)
