"""The mutable set of units, against Python's set."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pipistrelle.protocol.units import free as intervals
from pipistrelle.protocol.units.free import FreeUnits
from pipistrelle.protocol.units.nodesets import NodeSet

MACHINE = 48
SOME = st.frozensets(st.integers(0, MACHINE - 1), max_size=12)


class AgainstSet(RuleBasedStateMachine):
    """Every operation does to the intervals what it does to a set of integers."""

    @initialize(units=st.frozensets(st.integers(0, MACHINE - 1)))
    def start(self, units):
        """Begin with any set."""
        self.model = set(units)
        self.free = FreeUnits(NodeSet.of(units))

    @rule(k=st.integers(-1, MACHINE + 1))
    def take_lowest(self, k):
        """The k lowest units are removed; more than the set has are rejected."""
        if 0 <= k <= len(self.model):
            lowest = sorted(self.model)[:k]
            assert self.free.take_lowest(k) == NodeSet.of(lowest)
            self.model -= set(lowest)
        else:
            with pytest.raises(ValueError, match=f"cannot take {k} units from {len(self.model)}"):
                self.free.take_lowest(k)

    @rule(units=SOME, inside=st.booleans())
    def remove(self, units, inside):
        """Units of the set are removed; a request with others changes nothing and names them."""
        units = units & self.model if inside else units
        if units <= self.model:
            self.free.remove(NodeSet.of(units))
            self.model -= units
        else:
            with pytest.raises(ValueError, match=f"units not in the set: {NodeSet.of(units - self.model)}$"):
                self.free.remove(NodeSet.of(units))

    @rule(units=SOME, outside=st.booleans())
    def add(self, units, outside):
        """Units outside the set are added; a request with others changes nothing and names them."""
        units = units - self.model if outside else units
        if units.isdisjoint(self.model):
            self.free.add(NodeSet.of(units))
            self.model |= units
        else:
            with pytest.raises(ValueError, match=f"units in the set already: {NodeSet.of(units & self.model)}$"):
                self.free.add(NodeSet.of(units))

    @rule(units=SOME)
    def ask(self, units):
        """Queries agree with the set and change nothing."""
        assert (not self.free.missing(NodeSet.of(units))) == (units <= self.model)
        assert self.free.missing(NodeSet.of(units)) == NodeSet.of(units - self.model)
        assert {unit for unit in units if self.free.has(unit)} == units & self.model

    @invariant()
    def same(self):
        """The intervals are canonical and hold the model's units."""
        if hasattr(self, "model"):
            self.free.check_invariants()
            assert self.free.count == len(self.model)
            assert self.free.snapshot() == NodeSet.of(self.model)


@pytest.mark.parametrize("long", [0, 2000])
def test_every_operation_agrees_with_a_set(monkeypatch, long):
    """Both ways to change many intervals, one by one and by rebuilding a stretch, do what a Python set does."""
    monkeypatch.setattr(intervals, "_LONG", long)
    machine = type("Machine", (AgainstSet,), {})
    machine.TestCase.settings = settings(max_examples=25, database=None)
    machine.TestCase("runTest").runTest()


def test_a_fragmented_machine():
    """Fifty thousand intervals are taken, put back and merged without loss."""
    evens, odds = NodeSet.of(range(0, 100_000, 2)), NodeSet.of(range(1, 100_000, 2))
    free = FreeUnits(evens)
    taken = free.take_lowest(20_000)
    assert taken == NodeSet.of(range(0, 40_000, 2))
    free.add(taken)
    free.add(odds)
    assert str(free.snapshot()) == "0-99999"
    free.remove(odds)
    free.check_invariants()

    assert free.snapshot() == evens


def test_taking_over_a_boundary_splits_an_interval():
    """Whole intervals are taken first and the next is split."""
    free = FreeUnits(NodeSet.parse("0-3 8-19 30"))

    assert str(free.take_lowest(6)) == "0-3 8-9"
    assert repr(free) == "FreeUnits(NodeSet.parse('10-19 30'))"


@pytest.mark.parametrize(
    ("starts", "ends", "count", "complaint"),
    [
        ([0], [], 0, "1 starts but 0 ends"),
        ([0, 2], [1, 3], 4, "interval 2-3 after one that ends at 1"),
        ([3], [2], 0, "interval 3-2 after one that ends at -2"),
        ([0], [3], 3, "count is 3 but the intervals hold 4"),
    ],
)
def test_broken_invariants_are_detected(starts, ends, count, complaint):
    """The check finds lists of unequal length, adjacent or backward intervals and a wrong count."""
    free = FreeUnits()
    free._starts, free._ends, free.count = starts, ends, count
    with pytest.raises(AssertionError, match=complaint):
        free.check_invariants()
