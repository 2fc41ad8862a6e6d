"""Free units held by their positions in a line: the same set as by numbers, for any reader in any order."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import convert

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.platforms.naming.rule import TopologyRule
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.base.state import message_of, plain
from pipistrelle.protocol.units.free import FreeUnits
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import RunOptions, run_in_process
from pipistrelle.schedulers.catalogue.parts import make_backfill, make_order, make_placement
from pipistrelle.schedulers.composed import ComposedPolicy
from pipistrelle.schedulers.placement.free_in_line import FreeInLine
from pipistrelle.schedulers.placement.lines import Line
from pipistrelle.schedulers.placement.ordered import FirstInLine, LineOptions
from pipistrelle.schedulers.placement.pickers import take
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.traces.generator import generate

TITAN_LIKE = TopologyRule(kind="torus", shape=(8, 4, 8))
OLD, NEW = Pool(name="old", nodes=160, mttf="1y"), Pool(name="new", nodes=96, mttf="9y")
PLATFORM = Platform(name="m", pools=(OLD, NEW), topology=TITAN_LIKE)
MACHINE = Machine(PLATFORM.units, PLATFORM.info)
OPTIONS: tuple[dict[str, Any], ...] = (
    {"node-order": "alps"},
    {"node-order": "snake", "dual-ended": "nodes<=5"},
    {"node-order": "hilbert", "age-aware": True, "dual-ended": "nodes<=5"},
    {"node-order": "alps", "age-aware": True, "base-order": "nodes>=20"},
)


@settings(max_examples=60, deadline=None)
@given(
    options=st.sampled_from(OPTIONS),
    steps=st.lists(st.tuples(st.sampled_from("tttgglwrsp"), st.integers(0, 60)), max_size=40),
)
def test_as_the_placement_picks(options: dict[str, Any], steps: list[tuple[str, int]]) -> None:
    """The chosen units are those that the placement picks among the free ones, after any other changes."""
    placement = make_placement("lowest", options)
    free, expected = FreeUnits(MACHINE.all_units), FreeUnits(MACHINE.all_units)
    held: list[NodeSet] = []
    for number, (step, size) in enumerate(steps):
        if step == "t" and 0 < size <= expected.count:  # a job starts
            job = SchedulerJob(f"w0!{number}", number, size, 60.0, 0.0)
            picked = placement.pick(job, expected.snapshot(), MACHINE)
            assert picked is not None
            expected.remove(picked)
            taken, free = take(placement, job, free, MACHINE)
            assert taken == picked
            held.append(taken)
        elif step == "g" and held:  # one ends; a set that is equal will do
            back = NodeSet.parse(str(held.pop(size % len(held))))
            free.add(back)
            expected.add(back)
        elif step in "lp" and size <= expected.count:
            found = [one.take_lowest(size) if step == "l" else one.take_highest(size) for one in (free, expected)]
            assert found[0] == found[1]
            held += [found[0]] if size else []
        elif step == "w":  # what is refused changes nothing
            units = NodeSet.of(range(size, min(size + 90, MACHINE.units)))
            for change in ("add", "remove"):
                some = expected.missing(units) if change == "remove" else units - expected.missing(units)
                if some:
                    with pytest.raises(ValueError, match=r"not in the set|in the set already"):
                        getattr(free, change)(some)
        elif step == "r" and expected.count:  # some fail
            gone = NodeSet.of(list(expected.snapshot())[:: size + 1])
            free.remove(gone)
            expected.remove(gone)
            held.append(gone)
        elif step == "s":
            assert free.snapshot() == expected.snapshot()
            assert str(plain(free)) == str(plain(expected))
        assert free.count == expected.count
        assert free.has(size) == expected.has(size)  # whichever way the set is held
    free.check_invariants()
    assert free.missing(MACHINE.all_units) == expected.missing(MACHINE.all_units)
    free.check_invariants()


def test_too_many() -> None:
    """More units than there are cannot be taken, from either end."""
    free = FreeInLine(Line.of(MACHINE, "alps"), NodeSet.parse("3-5 9"))
    for take_some in (free.take_first, free.take_last, free.take_lowest, free.take_highest):
        with pytest.raises(ValueError, match="cannot take 5 units from 4"):
            take_some(5)
    assert str(free.take_first(4)) == "3-5 9"
    assert free.take_last(0) == NodeSet.EMPTY
    free.add(NodeSet.parse("3-5 9"))
    with pytest.raises(ValueError, match="units in the set already: 9"):
        free.add(NodeSet.parse("9"))


def test_state() -> None:
    """The state is that of a plain set."""
    free = FreeInLine(Line.of(MACHINE, "alps"), MACHINE.all_units)
    free.take_first(30)
    found = message_of(plain(free))
    assert type(found) is FreeUnits
    assert found.snapshot() == free.snapshot()


class Derived(FirstInLine):
    """Always asked by numbers."""


@pytest.mark.parametrize(("order", "backfill"), [("fcfs", "none"), ("sjf", "firstfit"), ("fcfs", "easy")])
def test_equal_runs(order: str, backfill: str, tmp_path: Path) -> None:
    """A run with failures and one with a derived placement write the same bytes."""
    jobs = generate(jobs=150, units=MACHINE.units, load=0.9, seed=3)
    struck = Reliability(outages=Outages.of([Outage(7 * at, 3e4 * at, 3e4 * at + 2e4, "x") for at in range(30)]))
    for number, options in enumerate(OPTIONS):
        written = []
        for kind in (FirstInLine, Derived):
            placement = kind(convert(options, LineOptions))
            policy = ComposedPolicy("p", make_order(order), make_backfill(backfill), placement)
            out = tmp_path / f"{number}{kind.__name__}"
            run_in_process(
                jobs,
                policy,
                platform=PLATFORM,
                reliability=struck,
                spec=RunSpec(strict=True),
                options=RunOptions(out=out),
            )
            written.append([(out / f"out_{name}.csv").read_bytes() for name in ("jobs", "decisions", "attempts")])
        assert written[0] == written[1]
