"""The ledger of units that several jobs may have at a time."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.errors import Illegal
from pipistrelle.server.hosts.shared_ledger import SharedLedger

MakeJob = Callable[..., Job]


def test_units_are_shared(make_job: MakeJob) -> None:
    """A unit that has a job can have another; it is idle when the last of them has ended."""
    ledger = SharedLedger(4)
    first, second = make_job("1", size=3), make_job("2", size=2)
    first.alloc = ledger.take(first, "0-2")
    second.alloc = ledger.take(second, "2-3")
    assert ledger.idle == 0
    ledger.check_invariants([first, second])
    ledger.give_back(first)

    assert ledger.idle == 2
    assert [ledger.is_used(NodeSet.parse(text)) for text in ("0-1", "1-2", "3")] == [False, True, True]
    ledger.check_invariants([second])


@pytest.mark.parametrize(
    ("text", "code"),
    [("0-x", "bad_allocation"), ("0", "wrong_size"), ("3-4", "unknown_unit"), ("1-2", "busy_unit")],
)
def test_the_other_rules_hold(make_job: MakeJob, text: str, code: str) -> None:
    """Text, size, existence and blocks are checked as for the exclusive ledger, and a refusal changes nothing."""
    ledger = SharedLedger(4)
    ledger.block(NodeSet.parse("2"))
    with pytest.raises(Illegal) as caught:
        ledger.take(make_job(size=2), text)

    assert caught.value.code == code
    assert ledger.idle == 3
    ledger.check_invariants([])


def test_invariants_catch_wrong_counts(make_job: MakeJob) -> None:
    """A job that is not accounted for is found."""
    ledger = SharedLedger(4)
    job = make_job(size=2)
    job.alloc = ledger.take(job, "1-2")
    with pytest.raises(AssertionError, match="1-2"):
        ledger.check_invariants([])


@settings(max_examples=150)
@given(
    st.lists(
        st.tuples(st.sampled_from(["take", "give", "block", "unblock"]), st.sets(st.integers(0, 7)), st.integers(0, 9)),
        max_size=40,
    )
)
def test_the_shared_ledger_is_a_multiset(steps: list[tuple[str, set[int], int]]) -> None:
    """Against plain sets: only blocked units refuse a job, and idle are those without jobs and not blocked."""
    ledger, blocked, running = SharedLedger(8), set[int](), list[Job]()
    for number, (what, units, pick) in enumerate(steps):
        if what == "take" and units:
            job = Job(f"w0!{number}", 0.0, len(units), 20.0, 10.0, "p")
            if units & blocked:
                with pytest.raises(Illegal):
                    ledger.take(job, str(NodeSet.of(units)))
            else:
                job.alloc = ledger.take(job, str(NodeSet.of(units)))
                running.append(job)
        elif what == "give" and running:
            ledger.give_back(running.pop(pick % len(running)))
        elif what == "block":
            ledger.block(NodeSet.of(units))
            blocked |= units
        elif what == "unblock":
            ledger.unblock(NodeSet.of(units))
            blocked -= units
        used = {unit for job in running for unit in job.alloc}
        assert ledger.idle == len(set(range(8)) - used - blocked)
        assert set(ledger.blocked) == blocked
        ledger.check_invariants(running)
