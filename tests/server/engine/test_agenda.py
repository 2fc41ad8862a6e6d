"""The event queue: a total order, and entries that vanish."""

from collections.abc import Callable
from heapq import heappush
from math import inf
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pipistrelle.server.engine.agenda import CALL, DECISION, END, READY, SUBMISSION, Agenda, Entry

KINDS = (END, SUBMISSION, CALL, DECISION, READY)
TIMES = st.sampled_from([0.0, 1.0, 1.0 + 2**-52, 2.5, 7.0, 1e9])


def next_time(agenda: Agenda) -> float:
    """Return the time of the first entry, after removing cancelled ones; inf without entries."""
    entry = agenda.pop()
    if entry is None:
        return inf
    heappush(agenda.heap, entry)
    return float(entry[0])


def happened(agenda: Agenda, time: float) -> list[tuple[float, int, object]]:
    """Return what happens at a time, as (time, class, subject)."""
    came: list[tuple[float, int, object]] = []

    def noting(kind: int) -> Callable[[Any], None]:
        return lambda subject: came.append((time, kind, subject))

    agenda.happen(time, {kind: noting(kind) for kind in KINDS})
    return came


def emptied(agenda: Agenda) -> list[tuple[float, int, object]]:
    """Return the entries that come up, as (time, class, subject), until none is left."""
    came = []
    while (time := next_time(agenda)) != inf:
        came += happened(agenda, time)
    return came


def test_an_empty_agenda_has_no_next_time() -> None:
    """Nothing to come is time inf, and nothing can be taken at any time."""
    agenda = Agenda()

    assert next_time(agenda) == inf
    assert happened(agenda, 0.0) == []


def test_ends_come_before_submissions_calls_decisions_and_readiness() -> None:
    """Within an instant the class decides, whatever the order of insertion."""
    agenda = Agenda()
    for kind in (READY, CALL, END, DECISION, SUBMISSION):
        agenda.put(3.0, kind, f"class {kind}")

    assert [entry[1] for entry in emptied(agenda)] == [END, SUBMISSION, CALL, DECISION, READY]


def test_equal_time_and_class_keep_the_order_of_insertion() -> None:
    """The sequence settles what time and class leave open; subjects are never compared."""
    agenda = Agenda()
    subjects = [object() for _ in range(50)]
    for subject in subjects:
        agenda.put(1.0, CALL, subject)

    assert [entry[2] for entry in emptied(agenda)] == subjects


def test_only_the_exact_instant_is_taken() -> None:
    """Two times that differ in the last bit are two instants."""
    agenda = Agenda()
    later = 1.0 + 2**-52
    agenda.put(later, END, "later")
    agenda.put(1.0, END, "sooner")

    assert happened(agenda, 0.5) == []
    assert happened(agenda, 1.0) == [(1.0, END, "sooner")]
    assert happened(agenda, 1.0) == []
    assert next_time(agenda) == later


def test_a_cancelled_entry_takes_its_time_with_it() -> None:
    """The next time is that of the first entry that was not cancelled."""
    agenda = Agenda()
    first = agenda.put(1.0, END, "first")
    agenda.put(2.0, END, "second")
    agenda.cancel(first)

    assert next_time(agenda) == 2.0
    assert happened(agenda, 1.0) == []
    assert emptied(agenda) == [(2.0, END, "second")]


def test_cancelled_among_equals_leaves_the_others_in_order() -> None:
    """A cancelled entry in the middle of an instant is passed over."""
    agenda = Agenda()
    entries = [agenda.put(1.0, CALL, name) for name in "abc"]
    agenda.cancel(entries[1])

    assert emptied(agenda) == [(1.0, CALL, "a"), (1.0, CALL, "c")]


def test_what_is_put_at_the_present_instant_still_comes_up_in_it() -> None:
    """An entry added while its instant is taken is taken too, at its class."""
    agenda = Agenda()
    came = []

    def end(subject: str) -> None:
        came.append(subject)
        agenda.put(1.0, CALL, "call")

    agenda.put(1.0, END, "end")
    agenda.put(1.0, READY, "ready")
    agenda.happen(1.0, {END: end, CALL: came.append, READY: came.append})

    assert came == ["end", "call", "ready"]
    assert next_time(agenda) == inf


class AgainstSortedList(RuleBasedStateMachine):
    """Whatever is put, cancelled and taken, the agenda is a list sorted by (time, class, sequence)."""

    def __init__(self) -> None:
        super().__init__()
        self.agenda = Agenda()
        self.model: list[tuple[float, int, int]] = []
        self.entries: dict[int, Entry] = {}
        self.count = 0

    @rule(time=TIMES, kind=st.sampled_from(KINDS))
    def put(self, time: float, kind: int) -> None:
        """A subject joins."""
        self.entries[self.count] = self.agenda.put(time, kind, self.count + 1)
        self.model.append((time, kind, self.count))
        self.model.sort()
        self.count += 1

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        """Any entry that stands is taken back."""
        chosen = data.draw(st.sampled_from(self.model))
        self.agenda.cancel(self.entries[chosen[2]])
        self.model.remove(chosen)

    @precondition(lambda self: self.model)
    @rule()
    def pop_first(self) -> None:
        """The first entry is taken."""
        time, kind, number = self.model.pop(0)
        entry = self.agenda.pop()
        assert entry is not None
        assert (entry[0], entry[1], entry[3]) == (time, kind, number + 1)

    @precondition(lambda self: self.model)
    @rule()
    def first_instant(self) -> None:
        """All entries of the first instant happen, in order."""
        first = self.model[0][0]
        expected = [(time, kind, number + 1) for time, kind, number in self.model if time == first]
        self.model = [entry for entry in self.model if entry[0] != first]
        assert happened(self.agenda, first) == expected

    @rule(time=TIMES)
    def pop_elsewhere(self, time: float) -> None:
        """Nothing happens at another time than the first entry's."""
        if not self.model or self.model[0][0] != time:
            assert happened(self.agenda, time) == []

    @invariant()
    def next_time(self) -> None:
        """The next time is that of the model's first entry."""
        assert next_time(self.agenda) == (self.model[0][0] if self.model else inf)


TestAgainstSortedList = AgainstSortedList.TestCase
TestAgainstSortedList.settings = settings(max_examples=60, database=None)


@given(st.lists(st.tuples(st.floats(0, 1e12), st.sampled_from(KINDS))))
def test_everything_comes_up_once_in_sorted_order(keys: list[tuple[float, int]]) -> None:
    """For any finite times the agenda empties in the order of (time, class, sequence)."""
    agenda = Agenda()
    for number, (time, kind) in enumerate(keys):
        agenda.put(time, kind, number + 1)

    expected = [(time, kind, number + 1) for number, (time, kind) in enumerate(keys)]
    assert emptied(agenda) == sorted(expected)
