"""Power states on request: duration, notices, blocked units, rejected requests."""

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.simgrid.platform_file import SimGridPlatform, parse_simgrid
from pipistrelle.protocol.batsim.messages import ResourceStateChanged
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.agenda import SWITCH
from pipistrelle.server.engine.clockwork import Clockwork
from pipistrelle.server.engine.cluster import Cluster
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.ledger import Ledger
from pipistrelle.server.engine.observers import SWITCHING_OFF, SWITCHING_ON, Observer
from pipistrelle.server.errors import Illegal
from pipistrelle.server.hosts.hosts import Hosts
from pipistrelle.server.hosts.shared_ledger import SharedLedger
from pipistrelle.server.hosts.switching import Switchboard

SPEEDS = "100f,50f,1e-3f,0.2f,0.1f"
WATTS = "90:90:200, 80:80:150, 9:9:9, 50:50:50, 70:70:70"


def machine(*hosts: tuple[str, str, str], first: int = 0) -> SimGridPlatform:
    """Return the machine of hosts with these speeds, watts and states to sleep in, which begin in state ``first``."""
    elements = "".join(
        f'<host id="h{number}" speed="{speeds}" pstate="{first}"><prop id="wattage_per_state" value="{watts}"/>'
        f'<prop id="sleep_pstates" value="{sleep}"/></host>'
        for number, (speeds, watts, sleep) in enumerate(hosts)
    )
    return parse_simgrid(f'<platform version="4.1"><zone id="z" routing="None">{elements}</zone></platform>', "m.xml")


def alike(count: int, first: int = 0) -> SimGridPlatform:
    """Return a machine of hosts that fall asleep (state 2) in 5 s and wake up in 10 s."""
    return machine(*[(SPEEDS, WATTS, "2:3:4")] * count, first=first)


class Diary(Observer):
    """Records its calls."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def switched(self, now: float, units: NodeSet, pstate: int) -> None:
        """Write it down."""
        self.lines.append(f"{now:g} {units}: {pstate}")

    def availability(self, now: float, units: NodeSet, available: bool) -> None:
        """Write it down."""
        self.lines.append(f"{now:g} {units} {'back' if available else 'away'}")


class World:
    """A cluster with an agenda and a switchboard, without an engine."""

    def __init__(self, platform: SimGridPlatform, *, energy: bool = True, ledger: type[Ledger] = Ledger) -> None:
        self.diary = Diary()
        self.cluster = Cluster(len(platform.hosts), [self.diary], ledger(len(platform.hosts)))
        self.clockwork = Clockwork(self.cluster)
        self.agenda = self.clockwork.agenda
        self.faster: list[str] = []
        self.hosts = Hosts(platform, energy=energy)
        self.board = Switchboard(self.clockwork, self.hosts, self._speed_changed)

    def _speed_changed(self, now: float, units: Iterable[int]) -> None:
        self.faster.append(f"{now:g} {NodeSet.of(units)}")

    @property
    def now(self) -> float:
        """The present time in seconds."""
        return self.clockwork.now

    @now.setter
    def now(self, time: float) -> None:
        self.clockwork.now = time

    @property
    def pending(self) -> int:
        """The switches that the end of the run waits for."""
        return self.clockwork.pending

    @property
    def told(self) -> list[str]:
        """The events so far, as lines."""
        lines = []
        for event in self.clockwork.outbox:
            assert isinstance(event, ResourceStateChanged)
            lines.append(f"{event.timestamp:g} {event.data.resources}={event.data.state}")
        return lines

    def ask(self, resources: str, state: object) -> None:
        """Ask for a power state now."""
        self.board.request(self.now, resources, str(state))
        self.check()

    def refuse(self, resources: str, state: object) -> str:
        """Ask for what must be refused and change nothing; return code and text."""
        before = (self.picture(), list(self.diary.lines), list(self.told), list(self.agenda.entries()))
        with pytest.raises(Illegal) as caught:
            self.board.request(self.now, resources, str(state))
        assert before == (self.picture(), self.diary.lines, self.told, list(self.agenda.entries()))
        return f"{caught.value.code}: {caught.value}"

    def run(self, until: float) -> None:
        """Let time pass."""
        while any(entry[0] <= until for entry in self.agenda.entries().values()):
            entry = self.agenda.pop()
            assert entry is not None
            self.now, kind, _, subject = entry
            assert kind == SWITCH
            self.board.over(subject)
            self.check()
        self.now = until

    def start(self, name: str, units: str) -> Job:
        """Start a job on units."""
        job = Job(f"w0!{name}", self.now, len(NodeSet.parse(units)), 10.0, 10.0, "p")
        self.cluster.submit(self.now, job)
        self.cluster.execute(self.now, job, units)
        self.check()
        return job

    def startable(self, units: str) -> bool:
        """Return whether a job could start on units; the attempt is undone."""
        job = Job("w0!try", self.now, len(NodeSet.parse(units)), 10.0, 10.0, "p")
        try:
            job.alloc = self.cluster.ledger.take(job, units)
        except Illegal:
            return False
        self.cluster.ledger.give_back(job)
        return True

    def picture(self) -> object:
        """Return the state of everything."""
        ledger = self.cluster.ledger
        return list(self.hosts.pstates()), ledger.idle, str(ledger.blocked), self.pending, list(self.faster)

    def check(self) -> None:
        """Assert that units, jobs and counts agree."""
        self.cluster.check_invariants()


def test_sleeping_and_waking_take_one_flop() -> None:
    """Off: 1 flop in the state on the way to sleep; on: 1 flop in that on the way back; both announced when done."""
    world = World(alike(4))
    world.ask("0-1", 2)
    assert (list(world.hosts.pstates()), world.pending, world.told) == ([3, 3, 0, 0], 2, [])
    world.run(4.9)
    assert world.told == []
    world.run(100.0)
    assert (list(world.hosts.pstates()), world.pending) == ([2, 2, 0, 0], 0)
    world.ask("1", 1)
    assert list(world.hosts.pstates()) == [2, 4, 0, 0]
    world.run(200.0)

    assert list(world.hosts.pstates()) == [2, 1, 0, 0]
    assert world.told == ["5 0-1=2", "110 1=1"]
    assert world.diary.lines == [
        f"0 0-1: {SWITCHING_OFF}",
        "5 0-1: 2",
        f"100 1: {SWITCHING_ON}",
        "110 1: 1",
    ]


def test_energy_of_switching() -> None:
    """On its way a host is busy in the state that it passes through; asleep it is idle."""
    world = World(alike(2))
    world.ask("0", 2)
    world.run(20.0)
    world.ask("0", 0)
    world.run(50.0)

    first = 5 * 50 + 15 * 9 + 10 * 70 + 20 * 90
    assert world.hosts.energy(50.0, NodeSet.interval(0, 0)) == pytest.approx(first)
    assert world.hosts.energy(50.0) == pytest.approx(first + 50 * 90)


def test_energy_while_switching_is_that_of_one_busy_core() -> None:
    """A host of two cores switches with one of them: half way between epsilon and full, and as long."""
    platform = parse_simgrid(
        '<platform version="4.1"><zone id="z" routing="None"><host id="h" core="2" speed="1f,1f,0.5f,0.5f">'
        '<prop id="wattage_per_state" value="1:1:1,1:1:1,10:20:40,1:1:1"/><prop id="sleep_pstates" value="1:2:3"/>'
        "</host></zone></platform>",
        "m.xml",
    )
    world = World(platform)
    world.ask("0", 1)
    world.run(10.0)

    assert world.told == ["2 0=1"]
    assert world.hosts.energy(10.0) == pytest.approx(2 * 30 + 8 * 1)


def test_computing_states_change_at_once() -> None:
    """Between states that compute there is no delay; jobs may run there, and their timing is updated."""
    world = World(alike(3))
    world.start("a", "0-1")
    world.ask("1-2", 1)

    assert world.told == ["0 1-2=1"]
    assert world.faster == ["0 1-2"]
    assert list(world.hosts.pstates()) == [0, 1, 1]
    assert world.diary.lines == [f"0 1-2: {SWITCHING_ON}", "0 1-2: 1"]
    assert world.startable("2")
    world.ask("1-2", 1)
    assert world.told == ["0 1-2=1"] * 2


def test_one_event_a_request() -> None:
    """Hosts of different kinds arrive at different times; the request is answered when the last arrives."""
    slow = ("100f,1f,0.05f,0.1f,50f", "90:90:200, 9:9:9, 50:50:50, 70:70:70, 1:1:1", "1:2:3")
    fast = ("100f,1f,0.5f,0.5f,50f", "90:90:200, 9:9:9, 50:50:50, 70:70:70, 1:1:1", "1:2:3")
    world = World(machine(slow, fast, fast))
    world.ask("0-1", 1)
    world.ask("2", 1)
    world.run(3.0)
    assert world.told == ["2 2=1"]
    assert list(world.hosts.pstates()) == [2, 1, 1]
    world.run(30.0)
    world.ask("2", 0)
    world.run(40.0)
    # Unit 2 is awake: it enters state 4 at once, the others wake up first.
    world.ask("0-2", 4)
    assert list(world.hosts.pstates()) == [3, 3, 4]
    world.run(45.0)
    assert world.startable("1-2")
    assert not world.startable("0")
    world.run(60.0)

    assert world.told == ["2 2=1", "20 0-1=1", "32 2=0", "50 0-2=4"]


def test_hosts_that_cannot_compute_get_no_jobs() -> None:
    """Units on their way or asleep are blocked, and free again once they are awake."""
    world = World(alike(2))
    world.ask("0", 2)
    seen = [world.startable("0")]
    world.run(6.0)
    seen.append(world.startable("0"))
    world.ask("0", 0)
    seen.append(world.startable("0"))
    world.run(15.9)
    seen.append(world.startable("0"))
    world.run(16.0)

    assert seen == [False] * 4
    assert world.startable("0-1")
    world.ask("1", 2)
    with pytest.raises(Illegal, match="switched off, switching or unavailable: 1") as caught:
        world.start("a", "0-1")
    assert caught.value.code == "busy_unit"


@pytest.mark.parametrize(
    ("resources", "state", "says"),
    [
        ("0-x", "1", "malformed: 'resources' is no set of units"),
        ("", "1", "malformed: 'resources' names no unit"),
        ("0-9", "1", "unknown_unit: 'resources' names unit 9; the machine has 0-4"),
        ("0", "-1", "malformed: 'state' is no number of a pstate: '-1'"),
        ("0", "sleeping", "malformed: 'state' is no number"),
        ("0", "٣", "malformed: 'state' is no number"),
        ("0", "9" * 5000, "malformed: 'state' is no number"),
        ("0", "5", "malformed: unit 0 ('h0') has no pstate 5"),
        ("0", "3", "malformed: pstate 3 stands for a way to sleep or back"),
        ("0", "4", "malformed: pstate 4 stands for a way"),
        ("0-1", "2", "wrong_state: units of '0-1' have jobs"),
        ("2", "0", "wrong_state: 'resources' names units that are being switched: 2"),
        ("3-4", "2", "wrong_state: units sleep already, and cannot go to pstate 2 so: 3"),
    ],
)
def test_illegal_requests(resources: str, state: str, says: str) -> None:
    """Each has a code and a text, and changes nothing. Unit 1 has a job, 2 wakes up, 3 sleeps."""
    world = World(alike(5))
    world.ask("2-3", 2)
    world.run(10.0)
    world.ask("2", 0)
    world.start("a", "1")

    assert world.refuse(resources, state).startswith(says)


def test_a_state_means_one_thing_in_a_request() -> None:
    """Hosts that sleep in a state and hosts that compute in it cannot be asked together."""
    sleeper = ("1f,1f,1f,1f", "1:1,1:1,1:1,1:1", "1:2:3")
    worker = ("1f,1f,1f,1f", "1:1,1:1,1:1,1:1", "0:2:3")
    world = World(machine(sleeper, worker))
    assert world.refuse("0-1", 1).startswith("malformed: in pstate 1 some of the units sleep and others compute")
    world.ask("0", 1)


def test_no_meter_no_power_states() -> None:
    """Without energy, or without hosts, each request is refused; availability works all the same."""
    world = World(alike(2), energy=False)
    assert world.refuse("0", 2).startswith("feature_off: SET_RESOURCE_STATE needs --energy")
    world.board = Switchboard(world)
    assert world.refuse("0", 2).startswith("feature_off")
    world.board.withdraw(0.0, NodeSet.interval(0, 0))
    assert not world.startable("0")


def test_hosts_may_begin_asleep() -> None:
    """They get no job before they are switched on."""
    world = World(alike(2, first=2))
    assert not world.startable("0")
    assert world.cluster.ledger.idle == 0
    world.ask("0", 0)
    world.run(10.0)
    assert world.startable("0")
    assert not world.startable("1")


def test_units_come_and_go() -> None:
    """Jobs on withdrawn units continue; new ones wait until the units are back; only changes are passed on."""
    world = World(alike(4))
    job = world.start("a", "0-1")
    assert str(world.board.withdraw(1.0, NodeSet.parse("1-2"))) == "1-2"
    assert str(world.board.withdraw(1.0, NodeSet.parse("2-3 9"))) == "3"
    world.check()
    assert world.refuse("2", 2).startswith("wrong_state: 'resources' names units that are unavailable: 2")
    world.cluster.end(2.0, job, "finish")
    world.check()
    assert [world.startable(str(unit)) for unit in range(4)] == [True, False, False, False]
    assert str(world.board.give_back(3.0, NodeSet.parse("0-2"))) == "1-2"
    world.check()

    assert world.startable("0-2")
    assert not world.startable("3")
    assert world.diary.lines == ["1 1-2 away", "1 3 away", "3 1-2 back"]


def test_absence_and_sleep_are_two_things() -> None:
    """A unit is free only when it is both awake and available, whichever came first."""
    world = World(alike(3))
    world.ask("0-1", 2)
    world.board.withdraw(1.0, NodeSet.parse("0-1"))
    world.run(10.0)
    world.board.give_back(10.0, NodeSet.parse("0"))
    world.check()
    assert not world.startable("0")
    world.ask("0", 0)
    world.board.withdraw(11.0, NodeSet.parse("0"))
    world.run(30.0)
    assert not world.startable("0")
    world.board.give_back(30.0, NodeSet.parse("0-1"))
    world.check()

    assert world.startable("0")
    assert not world.startable("1")


steps = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.sets(st.integers(0, 5), min_size=1), st.integers(0, 4)),
        st.tuples(st.just("start"), st.sets(st.integers(0, 5), min_size=1), st.just(0)),
        st.tuples(st.just("end"), st.just({0}), st.integers(0, 9)),
        st.tuples(st.just("withdraw"), st.sets(st.integers(0, 5)), st.just(0)),
        st.tuples(st.just("restore"), st.sets(st.integers(0, 5)), st.just(0)),
        st.tuples(st.just("wait"), st.just({0}), st.integers(0, 12)),
    ),
    max_size=40,
)


@pytest.mark.parametrize("ledger", [Ledger, SharedLedger])
@settings(max_examples=150)
@given(steps=steps)
def test_whatever_happens(ledger: type[Ledger], steps: list[tuple[str, set[int], int]]) -> None:
    """Against plain rules, unit by unit: rejections, possible starts, and that every switch is announced in the end."""
    world = World(alike(6), ledger=ledger)
    running: list[Job] = []
    away: set[int] = set()
    kind = world.hosts.kind
    asked = 0
    for number, (what, units, value) in enumerate(steps):
        text = str(NodeSet.of(units))
        used = {unit for job in running for unit in job.alloc}
        kinds = {kind(unit, world.hosts.pstate(unit)) for unit in units}
        if what == "ask":
            legal = not units & away and "switch" not in kinds
            legal &= value in (0, 1) or (value == 2 and kinds == {"compute"} and not units & used)
            if legal:
                world.ask(text, value)
                asked += 1
            else:
                world.refuse(text, value)
        elif what == "start":
            ready = kinds == {"compute"} and not units & away and (ledger is SharedLedger or not units & used)
            assert world.startable(text) == ready
            if ready:
                running.append(world.start(str(number), text))
        elif what == "end" and running:
            world.cluster.end(world.now, running.pop(value % len(running)), "finish")
        elif what == "withdraw":
            assert set(world.board.withdraw(world.now, NodeSet.of(units))) == units - away
            away |= units
        elif what == "restore":
            assert set(world.board.give_back(world.now, NodeSet.of(units))) == units & away
            away -= units
        elif what == "wait":
            world.run(world.now + value)
        world.check()
    world.run(world.now + 10.0)

    assert (len(world.told), world.pending) == (asked, 0)
    assert all(kind(unit, world.hosts.pstate(unit)) != "switch" for unit in range(6))
