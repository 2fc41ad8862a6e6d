"""Switching of hosts between power states, and units that are made unavailable."""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from pipistrelle.protocol.base.errors import printable
from pipistrelle.protocol.batsim.messages import ResourceStateChanged, ResourceStateChangedData
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.protocol.units.text import NodeSetError
from pipistrelle.server.engine.agenda import SWITCH, Handlers, Part
from pipistrelle.server.engine.clockwork import Clockwork
from pipistrelle.server.engine.observers import SWITCHING_OFF, SWITCHING_ON
from pipistrelle.server.errors import Illegal
from pipistrelle.server.hosts.hosts import Hosts


class SwitchRequest(Struct, eq=False):
    """A request to bring units into a power state.

    ``left`` is the number of units that have not reached it.
    """

    units: NodeSet
    pstate: int
    left: int


class Leg(Struct, eq=False):
    """Some of the units that a request switches: those that reach the new power state together.

    An agenda entry refers to the leg by number.
    """

    request: SwitchRequest
    units: NodeSet


class Switchboard(Part):
    """The engine part that changes power states of units.

    It keeps jobs off units that cannot compute. A unit that sleeps, switches or is unavailable is blocked in the
    ledger. Switching off or on takes the time of one flop at the speed of the switch state, as in Batsim.

    Args:
        clockwork: its agenda gets the ends of switches (class `SWITCH`); each switching unit counts as pending.
        hosts: the units' hosts; power states cannot change if this is None or not metered.
        speed_changed: called with the time (s) and the units whose speed changes while jobs may run.
    """

    _kept = ("_legs_so_far", "_on_the_way", "_asleep", "_unavailable")

    def __init__(
        self,
        clockwork: Clockwork,
        hosts: Hosts | None = None,
        speed_changed: Callable[[float, Iterable[int]], None] | None = None,
    ) -> None:
        self._clockwork = clockwork
        self._cluster = clockwork.cluster
        self._hosts = hosts if hosts is not None and hosts.metered else None
        self._speed_changed = speed_changed
        self._legs: dict[int, Leg] = {}
        self._legs_so_far = 0
        self._on_the_way = NodeSet.EMPTY
        self._asleep = NodeSet.EMPTY
        self._unavailable = NodeSet.EMPTY
        if self._hosts is not None:
            pstates = self._hosts.pstates()
            self._asleep = NodeSet.of(
                unit for unit, pstate in enumerate(pstates) if self._hosts.kind(unit, pstate) == "sleep"
            )
            self._cluster.ledger.block(self._asleep)

    def handlers(self) -> Handlers:
        """Return {event class: function that handles its events}."""
        return {SWITCH: self.over}

    def state(self) -> dict[str, Any]:
        """Return pending switches and unavailable units as plain values, for a snapshot."""
        requests = list({id(leg.request): leg.request for leg in self._legs.values()}.values())
        return {
            **super().state(),
            "requests": [[str(one.units), one.pstate, one.left] for one in requests],
            "legs": [[number, requests.index(leg.request), str(leg.units)] for number, leg in self._legs.items()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a saved state; the ledger restores the blocked units itself."""
        super().restore(state)
        requests = [SwitchRequest(NodeSet.parse(units), pstate, left) for units, pstate, left in state["requests"]]
        self._legs = {number: Leg(requests[at], NodeSet.parse(units)) for number, at, units in state["legs"]}

    def request(self, now: float, resources: str, state: str) -> None:
        """Bring units into a power state; raise `Illegal` if that is impossible.

        ``resources`` names the units, and ``state`` the power state, both as in SET_RESOURCE_STATE.
        """
        hosts = self._hosts
        if hosts is None:
            raise Illegal("feature_off", "SET_RESOURCE_STATE needs --energy and a platform whose hosts have pstates")
        units = self._units(resources)
        pstate, kind = self._target(hosts, units, state)
        there = NodeSet.of(unit for unit in units if hosts.kind(unit, hosts.pstate(unit)) == "compute")
        if kind == "sleep":
            self._check_sleep(units, there, pstate)
        hooks = self._cluster.hooks
        departing = units if kind == "sleep" else units - there
        if departing:
            for departed in hooks.departed:
                departed(now, departing, kind != "sleep")
        for switched in hooks.switched:
            switched(now, units, SWITCHING_OFF if kind == "sleep" else SWITCHING_ON)
        request = SwitchRequest(units, pstate, len(units))
        if kind == "sleep":
            self._depart(now, hosts, request, {unit: hosts.sleep(unit, pstate).switching_off for unit in units})
        else:
            ways = {unit: hosts.sleep(unit, hosts.pstate(unit)).switching_on for unit in departing}
            self._depart(now, hosts, request, ways)
            for unit in there:
                hosts.set_pstate(now, unit, pstate)
            if there and self._speed_changed is not None:
                self._speed_changed(now, there)
            self._arrived(now, request, len(there))

    def over(self, number: int) -> None:
        """Complete the switch whose agenda entry is due."""
        leg, now = self._legs.pop(number), self._clockwork.now
        hosts, request, units = self._hosts, leg.request, leg.units
        assert hosts is not None
        for unit in units:
            hosts.set_pstate(now, unit, request.pstate)
            hosts.set_load(now, unit, 0.0)
        self._clockwork.pending -= len(units)
        self._on_the_way = self._on_the_way - units
        if hosts.kind(units.first, request.pstate) == "sleep":
            self._asleep |= units
        else:
            self._cluster.ledger.unblock(units - self._unavailable)
        for hook in self._cluster.hooks.arrived:
            hook(now, units, request.left == len(units))
        self._arrived(now, request, len(units))

    def _units(self, resources: str) -> NodeSet:
        try:
            units = NodeSet.parse(resources)
        except NodeSetError as error:
            raise Illegal("malformed", f"'resources' is no set of units: {error}") from None
        if not units:
            raise Illegal("malformed", "'resources' names no unit")
        if units.last >= self._cluster.ledger.units:
            raise Illegal(
                "unknown_unit",
                f"'resources' names unit {units.last}; the machine has 0-{self._cluster.ledger.units - 1}",
            )
        for others, what in ((self._on_the_way, "being switched"), (self._unavailable, "unavailable")):
            if not others.isdisjoint(units):
                raise Illegal("wrong_state", f"'resources' names units that are {what}: {others & units}")
        return units

    @staticmethod
    def _target(hosts: Hosts, units: NodeSet, state: str) -> tuple[int, str]:
        """Return the number and purpose of the requested power state, or raise `Illegal`."""
        if not (state.isascii() and state.isdigit() and len(state) < 10):
            raise Illegal("malformed", f"'state' is no number of a pstate: '{printable(state[:40])}'")
        pstate = int(state)
        kinds = {hosts.kind(unit, pstate): unit for unit in units}
        if None in kinds:
            raise Illegal("malformed", f"unit {kinds[None]} ('{hosts.name(kinds[None])}') has no pstate {pstate}")
        if "switch" in kinds:
            raise Illegal("malformed", f"pstate {pstate} stands for a way to sleep or back; no unit can be put there")
        if len(kinds) > 1:
            raise Illegal(
                "malformed", f"in pstate {pstate} some of the units sleep and others compute: one decision for each"
            )
        (kind,) = kinds
        assert kind is not None
        return pstate, kind

    def _check_sleep(self, units: NodeSet, there: NodeSet, pstate: int) -> None:
        """Raise `Illegal` if any of ``units`` sleep already or have jobs.

        ``there`` is the subset of ``units`` that do not sleep.
        """
        if there != units:
            raise Illegal("wrong_state", f"units sleep already, and cannot go to pstate {pstate} so: {units - there}")
        if self._cluster.ledger.is_used(units):
            raise Illegal("wrong_state", f"units of '{units}' have jobs; only idle ones can go to sleep")

    def _depart(self, now: float, hosts: Hosts, request: SwitchRequest, ways: dict[int, int]) -> None:
        """Begin to switch units on or off.

        ``ways`` is {unit: power state while switching}.
        """
        legs: dict[float, list[int]] = {}
        for unit, way in ways.items():
            hosts.set_pstate(now, unit, way)
            hosts.set_load(now, unit, 1.0)
            legs.setdefault(now + hosts.switch_time(unit, way), []).append(unit)
        for time, together in legs.items():
            self._legs_so_far += 1
            self._legs[self._legs_so_far] = Leg(request, NodeSet.of(together))
            self._clockwork.agenda.put(time, SWITCH, self._legs_so_far)
        units = NodeSet.of(ways)
        self._clockwork.pending += len(units)
        self._on_the_way |= units
        self._asleep = self._asleep - units
        self._cluster.ledger.block(units)

    def _arrived(self, now: float, request: SwitchRequest, units: int) -> None:
        """Count ``units`` more units as switched.

        When all have switched, complete the request.
        """
        request.left -= units
        if units and not request.left:
            for hook in self._cluster.hooks.switched:
                hook(now, request.units, request.pstate)
            self._clockwork.tell(
                ResourceStateChanged(now, ResourceStateChangedData(str(request.units), str(request.pstate)))
            )

    def withdraw(self, now: float, units: NodeSet) -> NodeSet:
        """Make units unavailable; return the units that were available before.

        Running jobs continue.
        """
        news = units & NodeSet.interval(0, self._cluster.ledger.units - 1)
        news = news - self._unavailable
        if news:
            self._unavailable |= news
            self._cluster.ledger.block(news)
            for hook in self._cluster.hooks.availability:
                hook(now, news, False)
        return news

    def give_back(self, now: float, units: NodeSet) -> NodeSet:
        """Make units available unless they sleep.

        Return the units that were unavailable before.
        """
        news = units & self._unavailable
        if news:
            self._unavailable = self._unavailable - news
            self._cluster.ledger.unblock(news - self._asleep - self._on_the_way)
            for hook in self._cluster.hooks.availability:
                hook(now, news, True)
        return news
