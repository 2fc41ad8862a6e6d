"""What units do, counted and summed up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.protocol.base.state import from_json, to_json
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.batsim.machine_book import (
    COMPUTING,
    IDLE,
    SLEEPING,
    STATES,
    SWITCHING_OFF,
    SWITCHING_ON,
    UNAVAILABLE,
    MachineBook,
)

A, B = NodeSet.parse("0-1"), NodeSet.parse("1 3")


def test_a_job_computes_and_leaves_idle_units() -> None:
    """Units are idle before and after a job; the time since the last change counts nowhere."""
    book = MachineBook(4)
    assert book.counts == (0, 0, 0, 4, 0, 0)
    book.job_begins(2.0, A)
    assert book.counts == (0, 0, 0, 2, 2, 0)
    book.job_ends(5.5, A)
    assert book.counts == (0, 0, 0, 4, 0, 0)
    assert [book.unit_seconds(state) for state in range(len(STATES))] == [0, 0, 0, 4.0, 7.0, 0]


def test_a_unit_computes_until_its_last_job_ends() -> None:
    """With jobs side by side a unit is counted once."""
    book = MachineBook(4)
    book.job_begins(0.0, A)
    book.job_begins(1.0, B)
    assert book.counts[COMPUTING] == 3
    book.job_ends(4.0, A)
    assert book.counts[COMPUTING] == 2
    book.job_ends(6.0, B)
    assert book.counts[COMPUTING] == 0
    assert book.unit_seconds(COMPUTING) == 4.0 + 6.0 + 5.0


def test_switching_off_and_on() -> None:
    """Idle units fall asleep through switching off, and return through switching on."""
    book = MachineBook(2)
    book.switch_begins(1.0, A, on=False)
    assert book.counts[SWITCHING_OFF] == 2
    book.switch_ends(7.0, A)
    assert book.counts[SLEEPING] == 2
    book.switch_begins(10.0, A, on=True)
    assert book.counts[SWITCHING_ON] == 2
    book.switch_ends(160.0, A)
    assert book.counts[IDLE] == 2
    sums = {STATES[state]: book.unit_seconds(state) for state in range(len(STATES))}
    assert sums == {
        "sleeping": 6, "switching_on": 300, "switching_off": 12, "idle": 2, "computing": 0, "unavailable": 0,
    }  # fmt: skip


def test_only_units_on_their_way_arrive() -> None:
    """A unit that became unavailable meanwhile stays so; one that is not switching keeps its state."""
    book = MachineBook(4)
    book.job_begins(0.0, NodeSet.parse("3"))
    book.switch_begins(1.0, A, on=False)
    book.leave(2.0, NodeSet.parse("0"))
    book.switch_ends(3.0, NodeSet.parse("0-3"))
    assert book.counts == (1, 0, 0, 1, 1, 1)


def test_unavailable_units_stay_so_when_their_job_ends() -> None:
    """Only their coming back makes them idle, or computing if jobs still run there."""
    book = MachineBook(4)
    book.job_begins(0.0, A)
    book.leave(1.0, NodeSet.parse("0-2"))
    assert book.counts == (0, 0, 0, 1, 0, 3)
    book.come_back(2.0, NodeSet.parse("0"))
    assert (book.counts[COMPUTING], book.counts[UNAVAILABLE]) == (1, 2)
    book.job_ends(3.0, A)
    assert (book.counts[COMPUTING], book.counts[UNAVAILABLE]) == (0, 2)
    book.come_back(4.0, NodeSet.parse("0-3"))
    assert book.counts == (0, 0, 0, 4, 0, 0)
    assert book.unit_seconds(UNAVAILABLE) == 1.0 + 3.0 + 3.0


@given(
    st.lists(
        st.tuples(st.sampled_from(["begin", "end", "off", "on", "done", "leave", "back"]), st.sets(st.integers(0, 5))),
        max_size=30,
    )
)
def test_no_unit_is_lost(steps: list[tuple[str, set[int]]]) -> None:
    """For any changes of any units: counts sum to the machine, times to the last change."""
    book = MachineBook(6)
    jobs = [0] * 6
    for now, (what, numbers) in enumerate(steps):
        units = NodeSet.of(n for n in numbers if what != "end" or jobs[n])
        match what:
            case "begin":
                book.job_begins(now, units)
            case "end":
                book.job_ends(now, units)
            case "off" | "on":
                book.switch_begins(now, units, on=what == "on")
            case "done":
                book.switch_ends(now, units)
            case "leave":
                book.leave(now, units)
            case "back":
                book.come_back(now, units)
        for unit in units:
            jobs[unit] += (what == "begin") - (what == "end")
        assert sum(book.counts) == 6
        assert min(book.counts) >= 0
        total = sum(book.unit_seconds(state) for state in range(len(STATES)))
        assert total == pytest.approx(round(total))
        assert total <= 6 * now


def test_book_resumes_from_its_state() -> None:
    """Counts and sums of a restored book equal those of the original."""
    book = MachineBook(4)
    book.job_begins(1.0, NodeSet.parse("0-2"))
    book.leave(2.5, NodeSet.parse("1"))
    other = MachineBook(4)
    other.restore(from_json(to_json(book.state())))
    for each in (book, other):
        each.job_ends(4.0, NodeSet.parse("0-2"))
        each.come_back(6.0, NodeSet.parse("1"))

    assert other.counts == book.counts
    assert [other.unit_seconds(state) for state in range(6)] == [book.unit_seconds(state) for state in range(6)]
