"""The ledger of units: legal allocations, rejected ones, and that a rejection changes nothing."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.ledger import Ledger
from pipistrelle.server.errors import Illegal
from pipistrelle.traces.profiles import Composed, Delay, ParallelHomogeneous, ParallelHomogeneousTotal, Profile

MakeJob = Callable[..., Job]


def held(ledger: Ledger, job: Job, text: str) -> Job:
    """Give the units to the job and return it."""
    job.alloc = ledger.take(job, text)
    return job


@pytest.mark.parametrize(
    ("text", "size", "expected"),
    [
        ("0", 1, "0"),
        ("9", 1, "9"),
        ("0-9", 10, "0-9"),
        ("0-1 4 8-9", 5, "0-1 4 8-9"),
        ("8-9 4 0-1", 5, "0-1 4 8-9"),
        ("3 4", 2, "3-4"),
    ],
)
def test_free_units_are_allocated(make_job: MakeJob, text: str, size: int, expected: str) -> None:
    """A set of free units of the right size is given, in its canonical form, whatever order it was written in."""
    ledger = Ledger(10)
    job = held(ledger, make_job(size=size), text)

    assert str(job.alloc) == expected
    assert ledger.idle == 10 - size
    ledger.check_invariants([job])


@pytest.mark.parametrize(
    ("text", "size", "code", "says"),
    [
        ("abc", 1, "bad_allocation", "'alloc' of w0!1 is no set of units"),
        ("0,1", 2, "bad_allocation", "comma"),
        ("0  1", 2, "bad_allocation", "a space too many"),
        (" 0", 1, "bad_allocation", "a space too many"),
        ("1-0", 2, "bad_allocation", "backwards"),
        ("-1", 1, "bad_allocation", "no interval"),
        ("0 0", 2, "bad_allocation", "overlaps"),
        ("0-1 1-2", 3, "bad_allocation", "overlaps"),
        ("1e0", 1, "bad_allocation", "no interval"),
        ("", 1, "wrong_size", "w0!1 needs 1 units, 'alloc' has 0: ''"),
        ("0", 2, "wrong_size", "w0!1 needs 2 units, 'alloc' has 1: '0'"),
        ("0-2", 2, "wrong_size", "w0!1 needs 2 units, 'alloc' has 3: '0-2'"),
        ("10", 1, "unknown_unit", "names unit 10; the machine has 0-9"),
        ("0 999999999999999", 2, "unknown_unit", "names unit 999999999999999"),
        ("4", 1, "busy_unit", "'alloc' of w0!1 names units that are taken: 4"),
        ("2-7", 6, "busy_unit", "taken: 4-5"),
    ],
)
def test_rejected_allocation_has_a_reason_and_changes_nothing(
    make_job: MakeJob, text: str, size: int, code: str, says: str
) -> None:
    """Each rule has its code; after a refusal the same units are free and the same ones held."""
    ledger = Ledger(10)
    holder = held(ledger, make_job("holder", size=2), "4-5")
    with pytest.raises(Illegal, match=says) as caught:
        ledger.take(make_job(size=size), text)

    assert caught.value.code == code
    assert ledger.idle == 8
    ledger.check_invariants([holder])
    assert str(ledger.take(make_job("rest", size=8), "0-3 6-9")) == "0-3 6-9"


def test_size_is_checked_before_the_units() -> None:
    """An allocation that breaks several rules has one code: text, then size, then existence, then use."""
    ledger = Ledger(4)
    job = Job("w0!1", 0.0, 2, 20.0, 10.0, "p")
    held(ledger, Job("w0!2", 0.0, 4, 20.0, 10.0, "p"), "0-3")
    codes = []
    for text in ("0-x 9", "0-9", "3-4", "0-1"):
        with pytest.raises(Illegal) as caught:
            ledger.take(job, text)
        codes.append(caught.value.code)

    assert codes == ["bad_allocation", "wrong_size", "unknown_unit", "busy_unit"]


def test_released_units_can_be_allocated_again(make_job: MakeJob) -> None:
    """A job's units are free after it, and only once."""
    ledger = Ledger(4)
    job = held(ledger, make_job(size=3), "0 2-3")
    ledger.give_back(job)

    assert ledger.idle == 4
    ledger.check_invariants([])
    assert str(ledger.take(make_job("2", size=4), "0-3")) == "0-3"


def test_wide_intervals_are_held_and_freed(make_job: MakeJob) -> None:
    """Many long intervals follow the same rules as a few units."""
    ledger = Ledger(2000)
    text = " ".join(f"{first}-{first + 149}" for first in range(0, 2000, 200))
    job = held(ledger, make_job(size=1500), text)

    assert ledger.idle == 500
    ledger.check_invariants([job])
    with pytest.raises(Illegal, match="taken: 1949"):
        ledger.take(make_job("2", size=2), "1949-1950")
    other = " ".join(f"{first}-{first + 99}" for first in range(100, 2000, 200))
    with pytest.raises(Illegal, match="taken: 100-149 300-349"):
        ledger.take(make_job("2", size=1000), other)
    ledger.give_back(job)
    ledger.check_invariants([])
    assert str(ledger.take(make_job("2", size=1000), other)) == other


def test_invariants_catch_a_leak_and_a_double_use(make_job: MakeJob) -> None:
    """Units that are neither free nor held, or that two jobs hold, are found."""
    ledger = Ledger(4)
    job = held(ledger, make_job(size=2), "0-1")
    twin = make_job("twin", size=2)
    twin.alloc = NodeSet.parse("1-2")
    small = make_job("small", size=3)
    small.alloc = job.alloc

    with pytest.raises(AssertionError, match="missing or too many"):
        ledger.check_invariants([])
    with pytest.raises(AssertionError, match="free or another's"):
        ledger.check_invariants([job, twin])
    with pytest.raises(AssertionError, match="its size is 3"):
        ledger.check_invariants([small])


def test_blocked_units_are_nobodys(make_job: MakeJob) -> None:
    """They cannot be allocated, whether free or held when they were blocked; a job that held them continues."""
    ledger = Ledger(6)
    job = held(ledger, make_job(size=2), "0-1")
    ledger.block(NodeSet.parse("1-3"))
    ledger.block(NodeSet.parse("3"))
    assert (ledger.idle, str(ledger.blocked)) == (2, "1-3")
    ledger.check_invariants([job])
    with pytest.raises(Illegal, match="switched off, switching or unavailable: 2-3") as caught:
        ledger.take(make_job("2", size=3), "2-4")
    assert caught.value.code == "busy_unit"
    ledger.give_back(job)
    ledger.check_invariants([])
    assert ledger.idle == 3
    ledger.unblock(NodeSet.parse("0-2"))
    ledger.check_invariants([])

    assert (ledger.idle, str(ledger.blocked)) == (5, "3")
    assert str(ledger.take(make_job("3", size=5), "0-2 4-5")) == "0-2 4-5"


def test_units_unblocked_under_a_job_stay_its(make_job: MakeJob) -> None:
    """Blocking and unblocking units of a running job changes nothing for it."""
    ledger = Ledger(3)
    job = held(ledger, make_job(size=2), "0-1")
    ledger.block(NodeSet.parse("0-2"))
    ledger.unblock(NodeSet.parse("0-2"))
    ledger.check_invariants([job])
    with pytest.raises(Illegal, match="names units that are taken: 1"):
        ledger.take(make_job("2", size=2), "1-2")
    assert ledger.idle == 1
    ledger.give_back(job)
    assert ledger.idle == 3


def test_use_is_known_of_blocked_units_too(make_job: MakeJob) -> None:
    """Whether jobs run on units does not depend on whether they are blocked."""
    ledger = Ledger(4)
    job = held(ledger, make_job(size=2), "0-1")
    ledger.block(NodeSet.parse("1-2"))

    used = [ledger.is_used(NodeSet.parse(text)) for text in ("0", "1", "2", "3", "2-3", "0-3")]
    assert used == [True, True, False, False, False, True]
    ledger.give_back(job)
    assert not ledger.is_used(NodeSet.parse("0-3"))


SPREAD = ParallelHomogeneousTotal(name="s", cpu=1.0, com=0.0)
EACH = ParallelHomogeneous(name="e", cpu=1.0, com=0.0)


@pytest.mark.parametrize(
    ("work", "mapping", "may"),
    [
        (None, None, False),
        (EACH, None, False),
        (Delay(name="d", delay=1.0), None, False),
        (SPREAD, None, True),
        (Composed(name="c", repeat=2, seq=(SPREAD, SPREAD), names=("s", "s")), None, True),
        (Composed(name="c", repeat=2, seq=(SPREAD, EACH), names=("s", "e")), None, False),
        (EACH, (0, 0, 1), True),
        (None, (0, 0, 1), True),
    ],
)
def test_some_jobs_may_have_another_number_of_units(
    make_job: MakeJob, work: Profile | None, mapping: tuple[int, ...] | None, may: bool
) -> None:
    """Work that is spread over what there is, and a job with a mapping; others need the size that they asked for."""
    for text in ("0-1", "0-4"):
        ledger = Ledger(6)
        job = make_job(size=3)
        job.work, job.mapping = work, mapping
        if may:
            held(ledger, job, text)
            ledger.check_invariants([job])
            assert ledger.idle == 6 - len(job.alloc)
            ledger.give_back(job)
            assert ledger.idle == 6
        else:
            with pytest.raises(Illegal, match="w0!1 needs 3 units"):
                ledger.take(job, text)
    job = make_job(size=3)
    job.work, job.mapping = work, mapping
    with pytest.raises(Illegal, match="'alloc' has 0"):
        Ledger(6).take(job, "")


@pytest.mark.parametrize(("text", "may"), [("0", False), ("0-1", True), ("0-2", True), ("0-3", False)])
def test_a_range_of_sizes_allows_each_number_of_it(make_job: MakeJob, text: str, may: bool) -> None:
    """A submission with ``-N 2-3`` gets two or three units, as its scheduler chooses."""
    ledger = Ledger(6)
    job = make_job(size=2)
    job.most = 3
    if may:
        held(ledger, job, text)
        ledger.check_invariants([job])
    else:
        with pytest.raises(Illegal, match="w0!1 needs 2 to 3 units"):
            ledger.take(job, text)


@settings(max_examples=150)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("take"), st.sets(st.integers(0, 13), max_size=6), st.integers(1, 6)),
            st.tuples(st.just("give"), st.integers(0, 20)),
        ),
        max_size=40,
    )
)
def test_the_ledger_is_a_set(steps: list[tuple[object, ...]]) -> None:
    """Against a set of integers: the same allocations are possible, and every unit is somewhere once."""
    ledger, free, running = Ledger(12), set(range(12)), list[Job]()
    for number, step in enumerate(steps):
        if step[0] == "take":
            units, size = step[1], step[2]
            assert isinstance(units, set)
            assert isinstance(size, int)
            job = Job(f"w0!{number}", 0.0, size, 20.0, 10.0, "p")
            text = " ".join(map(str, sorted(units, reverse=True)))
            if len(units) == size and units <= free:
                running.append(held(ledger, job, text))
                free -= units
            else:
                with pytest.raises(Illegal) as caught:
                    ledger.take(job, text)
                known = units <= set(range(12))
                expected = "wrong_size" if len(units) != size else "busy_unit" if known else "unknown_unit"
                assert caught.value.code == expected
        elif running:
            assert isinstance(step[1], int)
            job = running.pop(step[1] % len(running))
            ledger.give_back(job)
            free |= set(job.alloc)
        assert ledger.idle == len(free)
        ledger.check_invariants(running)
