"""Hosts at work: their speeds, their power in each state and at each load, and their energy."""

from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.simgrid.platform_file import SimGridPlatform, parse_simgrid
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.hosts.hosts import Hosts

SPEEDS = "100f,50f,1e-3f,0.2f,0.1f"
WATTS = "90:100:200, 80:95:150, 9:9:9, 50:52:60, 70:71:80"


def host(name: str, *, speeds: str = SPEEDS, watts: str = WATTS, sleep: str = "2:3:4", attributes: str = "") -> str:
    """Return a host's element; empty texts leave their attribute out."""
    props = {"wattage_per_state": watts, "sleep_pstates": sleep}
    inside = "".join(f'<prop id="{key}" value="{value}"/>' for key, value in props.items() if value)
    return f'<host id="{name}" speed="{speeds}" {attributes}>{inside}</host>'


def machine(*elements: str, **options: Any) -> SimGridPlatform:
    """Return the machine of these hosts."""
    text = f'<platform version="4.1"><zone id="z" routing="None">{"".join(elements)}</zone></platform>'
    return parse_simgrid(text, "m.xml", **options)


def test_speed_follows_the_power_state() -> None:
    """A host's speed is that of its power state, and it begins in the platform's."""
    hosts = Hosts(machine(host("a"), host("b", attributes='pstate="1"')))

    assert len(hosts) == 2
    assert [hosts.speed(0), hosts.speed(1)] == [100.0, 50.0]
    hosts.set_pstate(5.0, 0, 2)
    assert (hosts.pstate(0), hosts.speed(0)) == (2, 1e-3)
    assert list(hosts.pstates()) == [2, 1]
    assert hosts.name(1) == "b"


def test_power_states_have_kinds() -> None:
    """Sleep and transition states are distinguished from computing ones, and from none."""
    hosts = Hosts(machine(host("a")))

    assert [hosts.kind(0, pstate) for pstate in range(-1, 6)] == [
        None,
        "compute",
        "compute",
        "sleep",
        "switch",
        "switch",
        None,
    ]
    sleep = hosts.sleep(0, 2)
    assert (hosts.switch_time(0, sleep.switching_off), hosts.switch_time(0, sleep.switching_on)) == (5.0, 10.0)
    with pytest.raises(KeyError):
        hosts.sleep(0, 1)


@pytest.mark.parametrize(
    ("pstate", "load", "watts"),
    [
        (0, 0.0, 90.0),
        (0, 1e-15, 100.0),
        (0, 0.5, 150.0),
        (0, 1.0, 200.0),
        (0, 1.25, 200.0),
        (1, 0.0, 80.0),
        (1, 0.5, 122.5),
        (2, 0.0, 9.0),
        (3, 1.0, 60.0),
    ],
)
def test_power_is_that_of_simgrid(pstate: int, load: float, watts: float) -> None:
    """Without load idle; with load on the line from epsilon to full; never beyond full."""
    hosts = Hosts(machine(host("a")), energy=True)
    hosts.set_pstate(0.0, 0, pstate)
    hosts.set_load(0.0, 0, load)

    assert hosts.power() == pytest.approx(watts, rel=1e-12)
    assert hosts.power(NodeSet.interval(0, 0)) == pytest.approx(watts, rel=1e-12)
    assert hosts.energy(10.0) == pytest.approx(10 * watts, rel=1e-12)


def test_load_counts_cores() -> None:
    """One of four busy cores is a load of a quarter; more than all is all."""
    hosts = Hosts(machine(host("a", attributes='core="4"')), energy=True)
    assert hosts.cores(0) == 4
    hosts.set_load(0.0, 0, 1.0)
    assert (hosts.load(0), hosts.power()) == (0.25, 125.0)
    hosts.set_load(0.0, 0, 9.0)
    assert (hosts.load(0), hosts.power()) == (1.0, 200.0)


def test_a_state_of_speed_0_is_busy() -> None:
    """As in SimGrid, a host in a state that cannot compute draws its full-load power."""
    asleep = host("a", speeds="1f,0f,1f,1f", watts="90:100:200,5:6:7,1:1:1,1:1:1", sleep="1:2:3")
    hosts = Hosts(machine(asleep), energy=True)
    hosts.set_pstate(0.0, 0, 1)
    assert hosts.power() == 7.0
    begins = Hosts(machine(asleep.replace("speed=", 'pstate="1" speed=')), energy=True)
    assert begins.power() == 7.0


def test_storages_are_part_of_the_whole() -> None:
    """What all hosts draw includes idle storages, as Batsim's figures do; the master is no part of it."""
    storage = host("s", watts="7:8:9", speeds="1f", sleep="").replace(
        "</host>", '<prop id="role" value="storage"/></host>'
    )
    hosts = Hosts(machine(host("a"), host("b"), storage, host("master_host", watts="")), energy=True)

    assert len(hosts) == 2
    assert hosts.power() == 187.0
    assert hosts.lowest_power() == 208.0
    assert hosts.energy(2.0) == 374.0
    assert hosts.energy(2.0, NodeSet.interval(0, 1)) == 360.0
    hosts.set_pstate(2.0, 0, 1)
    assert hosts.lowest_power() == 203.0


def test_nothing_is_metered_unless_wanted() -> None:
    """Without a meter no watts are needed; loads and states are kept all the same."""
    hosts = Hosts(machine(host("a", watts="")))
    hosts.set_load(1.0, 0, 0.5)
    hosts.set_pstate(1.0, 0, 1)
    assert not hosts.metered
    assert (hosts.load(0), hosts.pstate(0)) == (0.5, 1)


@pytest.mark.parametrize(
    ("elements", "energy", "says"),
    [
        ([host("a"), host("b", watts="")], True, "does not give the power of host 'b'"),
        (
            [host("a"), host("s", watts="").replace("</host>", '<prop id="role" value="storage"/></host>')],
            True,
            "does not give the power of host 's'",
        ),
        ([host("a", attributes='pstate="3"')], True, "host 'a' begins in a switch state"),
        ([host("a", speeds="1f,1f,1e-320f,1f", watts="1:1,1:1,1:1,1:1", sleep="1:2:3")], True, "would switch for ever"),
        ([host("a", speeds="1f", watts="1:1e16", sleep="")], True, "draws too much in pstate 0"),
        ([host("a", speeds="1f,0f,1f,1f", watts="", sleep="1:2:3", attributes='pstate="1"')], False, "cannot compute"),
    ],
)
def test_machines_that_cannot_work(elements: list[str], energy: bool, says: str) -> None:
    """What would divide by zero, never end or be unknown later is refused at once, naming the host."""
    with pytest.raises(PlatformError, match=says):
        Hosts(machine(*elements), energy=energy)


changes = st.lists(
    st.tuples(
        st.floats(0, 1e6),
        st.integers(0, 3),
        st.one_of(st.tuples(st.just("load"), st.floats(0, 3)), st.tuples(st.just("pstate"), st.integers(0, 4))),
    ),
    max_size=30,
)


@settings(max_examples=150)
@given(changes, st.floats(0, 1e6))
def test_energy_is_power_over_time(steps: list[tuple[float, int, tuple[str, Any]]], more: float) -> None:
    """Each host's joules are the exact sum of watts times seconds, and all hosts' joules are the sum of them."""
    cores = [1, 2, 1, 4]
    hosts = Hosts(
        machine(*(host(f"h{number}", attributes=f'core="{count}"') for number, count in enumerate(cores))), energy=True
    )
    watts = [(90, 100, 200), (80, 95, 150), (9, 9, 9), (50, 52, 60), (70, 71, 80)]
    state = [[0, 0.0] for _ in cores]
    joules = [Fraction(0)] * 4
    steps = sorted(steps, key=lambda step: step[0])
    times = [0.0, *(time for time, _, _ in steps)]
    times.append(times[-1] + more)
    for number, (before, after) in enumerate(pairwise(times)):
        for unit, (pstate, load) in enumerate(state):
            idle, epsilon, full = watts[int(pstate)]
            share = Fraction(load)
            power = idle if not load else epsilon + share * (full - epsilon)
            joules[unit] += power * (Fraction(after) - Fraction(before))
        if number < len(steps):
            now, unit, (what, value) = steps[number]
            if what == "load":
                hosts.set_load(now, unit, value)
                state[unit][1] = min(value / cores[unit], 1.0)
            else:
                hosts.set_pstate(now, unit, value)
                state[unit][0] = value
    end = times[-1]

    for unit, exact in enumerate(joules):
        assert hosts.energy(end, NodeSet.interval(unit, unit)) == pytest.approx(float(exact), rel=1e-12, abs=1e-9)
    assert hosts.energy(end) == pytest.approx(float(sum(joules)), rel=1e-12, abs=1e-9)
    assert hosts.energy(end, NodeSet.interval(0, 3)) == pytest.approx(float(sum(joules)), rel=1e-12, abs=1e-9)


def test_the_whole_does_not_drift() -> None:
    """After a hundred thousand changes of awkward watts, the whole machine draws what its idle hosts draw, exactly."""
    hosts = Hosts(
        machine(*(host(f"h{number}", watts=WATTS.replace("200", "190.738")) for number in range(3))), energy=True
    )
    for number in range(100_002):
        hosts.set_load(number * 0.1, number % 3, 0.0 if number // 3 % 2 else (number % 97) / 97)
    for unit in range(3):
        hosts.set_load(1e5, unit, 0.0)

    assert hosts.power() == 270.0
