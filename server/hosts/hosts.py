"""The simulated hosts, with their speed, load, power and energy."""

from collections.abc import Iterable, Sequence
from math import fsum, isfinite
from typing import Any, Final, Literal

import numpy as np

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.simgrid.platform_file import Host, SimGridPlatform
from pipistrelle.platforms.simgrid.quantities import SleepPstate
from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.agenda import Part
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer

#: purpose of a power state; a host passes through a switch state when it falls asleep or wakes up
PstateKind = Literal["compute", "sleep", "switch"]

#: largest power of a host (W), so that sums over hosts and time stay finite
_MOST_WATTS: Final = 1e15


class Hosts(Part):
    """The computing hosts by number, each with a power state and a load.

    Power follows SimGrid's plugin ``host_energy``. A host without load draws its state's idle watts. With load it draws
    ``epsilon + load * (full - epsilon)`` watts; ``load`` is the busy share of its cores, and ``epsilon`` and
    ``full`` are its watts at almost no load and at full load. Storage hosts always draw the idle watts of their initial
    power state.

    Args:
        energy: whether power and energy are metered.

    Raises:
        PlatformError: a host begins in a state of speed 0 or a switch state, or its watts are unknown but needed.
    """

    _kept = (
        "_pstate",
        "_load",
        "_since",
        "_joules",
        "_watts",
        "_all_since",
        "_all_joules",
        "_all_watts",
        "_least_watts",
    )

    def __init__(self, machine: SimGridPlatform, *, energy: bool = False) -> None:
        self.metered = energy
        self._hosts = machine.hosts
        self._pstate = [host.pstate for host in machine.hosts]
        self._speed = [host.speeds[host.pstate] for host in machine.hosts]
        self._load = [0.0] * len(machine.hosts)
        self._kinds: list[tuple[PstateKind, ...]] = []
        known: dict[tuple[int, ...], tuple[PstateKind, ...]] = {}
        for host in machine.hosts:
            # Equal hosts share these objects, so a large machine is checked once.
            alike = (id(host.speeds), id(host.watts), id(host.sleep_pstates), host.pstate)
            if alike not in known:
                known[alike] = _kinds(host)
                _check(host, known[alike][host.pstate], machine.name, energy)
            self._kinds.append(known[alike])
        self._all_since = 0.0
        self._all_joules = _Sum()
        self._all_watts = _Sum()
        self._least_watts = _Sum()
        # Energy (J) of each host up to its last change (s), and its power (W) since then.
        self._since = np.zeros(len(machine.hosts))
        self._joules = np.zeros(len(machine.hosts))
        self._watts = np.zeros(len(machine.hosts))
        if energy:
            for host in machine.storages:
                _check_watts(host, machine.name)
            for number, host in enumerate(machine.hosts):
                self._watts[number] = _watts(host, host.pstate, 0.0)
            for host in machine.hosts + machine.storages:
                self._all_watts.add(_watts(host, host.pstate, 0.0))
                self._least_watts.add(host.watts[host.pstate].epsilon)

    def __len__(self) -> int:
        return len(self._hosts)

    def name(self, host: int) -> str:
        """Return a host's name."""
        return self._hosts[host].name

    def cores(self, host: int) -> int:
        """Return a host's number of cores."""
        return self._hosts[host].cores

    def pstate(self, host: int) -> int:
        """Return the number of a host's present power state."""
        return self._pstate[host]

    def pstates(self) -> Sequence[int]:
        """Return the number of each host's present power state."""
        return self._pstate

    def speed(self, host: int) -> float:
        """Return the present speed of one core of a host (flop/s)."""
        return self._speed[host]

    def load(self, host: int) -> float:
        """Return the busy share of a host's cores, 0 to 1."""
        return self._load[host]

    def kind(self, host: int, pstate: int) -> PstateKind | None:
        """Return the purpose of a host's power state; None if the host has no such state."""
        own = self._kinds[host]
        return own[pstate] if 0 <= pstate < len(own) else None

    def sleep(self, host: int, pstate: int) -> SleepPstate:
        """Return the sleep state ``pstate`` of a host, and how to enter and leave it.

        Raise KeyError if ``pstate`` is no sleep state.
        """
        for sleep in self._hosts[host].sleep_pstates:
            if sleep.sleeping == pstate:
                return sleep
        raise KeyError(pstate)

    def switch_time(self, host: int, pstate: int) -> float:
        """Return the time (s) that a host stays in a switch state.

        This is the time of one flop at the state's speed.
        """
        return 1.0 / self._hosts[host].speeds[pstate]

    def set_load(self, now: float, host: int, load: float) -> None:
        """Set a host's load from ``now`` (s) on.

        The load is the flop/s in use divided by `speed`.
        """
        cores = self._hosts[host].cores
        share = min(load / cores, 1.0) if cores > 1 or load > 1.0 else load
        if share != self._load[host]:
            self._load[host] = share
            if self.metered:
                self._draw(now, host)

    def set_pstate(self, now: float, host: int, pstate: int) -> None:
        """Put a host into a power state at ``now`` (s); its load does not change."""
        before = self._pstate[host]
        if pstate == before:
            return
        self._pstate[host] = pstate
        self._speed[host] = self._hosts[host].speeds[pstate]
        if self.metered:
            watts = self._hosts[host].watts
            self._least_watts.add(-watts[before].epsilon)
            self._least_watts.add(watts[pstate].epsilon)
            self._draw(now, host)

    def _draw(self, now: float, host: int) -> None:
        new = _watts(self._hosts[host], self._pstate[host], self._load[host])
        old = float(self._watts[host])
        if new == old:
            return
        self._joules[host] += old * (now - self._since[host])
        self._since[host] = now
        self._watts[host] = new
        if now > self._all_since:
            self._all_joules.add(self._all_watts.value * (now - self._all_since))
            self._all_since = now
        self._all_watts.add(-old)
        self._all_watts.add(new)

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the hosts' power states, loads and energy from a saved state."""
        super().restore(state)
        self._speed = [host.speeds[pstate] for host, pstate in zip(self._hosts, self._pstate, strict=True)]

    def power(self, units: NodeSet | None = None) -> float:
        """Return the present power (W) of these hosts, or of all hosts."""
        if units is None:
            return self._all_watts.value
        return fsum(watts for low, high in units.intervals for watts in self._watts[low : high + 1].tolist())

    def lowest_power(self) -> float:
        """Return the power (W) of all hosts in their present states at almost no load."""
        return self._least_watts.value

    def energy(self, now: float, units: NodeSet | None = None) -> float:
        """Return the energy (J) of these hosts, or of all hosts, from 0 to ``now`` (s)."""
        if units is None:
            return self._all_joules.value + self._all_watts.value * (now - self._all_since)
        return fsum(self._joules_of(now, units))

    def _joules_of(self, now: float, units: NodeSet) -> Iterable[float]:
        for low, high in units.intervals:
            part = slice(low, high + 1)
            yield from (self._joules[part] + self._watts[part] * (now - self._since[part])).tolist()


class JobMeter(Part, Observer):
    """The observer that computes the energy (J) of each job.

    The engine must call it before observers that read the energy.
    """

    _kept = ("_before",)

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        #: {job id: energy (J) of its units up to the job's start}
        self._before: dict[str, float] = {}

    def started(self, now: float, job: Job) -> None:
        """Store the energy of the job's units at its start."""
        self._before[job.id] = self._hosts.energy(now, job.alloc)

    def ended(self, now: float, job: Job) -> None:
        """Set the energy that the job's units used since its start."""
        before = self._before.pop(job.id, None)
        if before is not None:
            job.energy = self._hosts.energy(now, job.alloc) - before


class _Sum(Kept):
    """A sum that compensates rounding errors (Neumaier, 1974)."""

    _kept = ("_sum", "_error")
    __slots__ = ("_error", "_sum")

    def __init__(self) -> None:
        self._sum = 0.0
        self._error = 0.0

    def add(self, number: float) -> None:
        before = self._sum
        after = self._sum = before + number
        if abs(before) >= abs(number):
            self._error += (before - after) + number
        else:
            self._error += (number - after) + before

    @property
    def value(self) -> float:
        return self._sum + self._error


def _watts(host: Host, pstate: int, load: float) -> float:
    watts = host.watts[pstate]
    if not host.speeds[pstate]:  # as in SimGrid: a sleep state with speed 0 counts as fully loaded
        load = 1.0
    return watts.epsilon + load * (watts.full - watts.epsilon) if load > 0 else watts.idle


def _kinds(host: Host) -> tuple[PstateKind, ...]:
    kinds: list[PstateKind] = ["compute"] * len(host.speeds)
    for sleep in host.sleep_pstates:
        kinds[sleep.sleeping] = "sleep"
        kinds[sleep.switching_off] = kinds[sleep.switching_on] = "switch"
    return tuple(kinds)


def _check(host: Host, kind: PstateKind, platform: str, energy: bool) -> None:
    if energy:
        _check_watts(host, platform)
        if kind == "switch":
            raise PlatformError(
                f"host '{host.name}' begins in a switch state",
                where=platform,
                expected="a compute or sleep state",
                found=f"pstate {host.pstate}",
            )
        for sleep in host.sleep_pstates:
            for pstate in (sleep.switching_off, sleep.switching_on):
                if not isfinite(1.0 / host.speeds[pstate]):
                    raise PlatformError(
                        f"host '{host.name}' would switch for ever",
                        where=platform,
                        expected="a speed at which one flop ends",
                        found=f"{host.speeds[pstate]!r} flop/s in pstate {pstate}",
                    )
    elif not host.speeds[host.pstate]:
        raise PlatformError(
            f"host '{host.name}' cannot compute",
            where=platform,
            expected="a speed above 0 in its initial power state",
            found=f"pstate {host.pstate} of speed 0",
            hint="Let it begin in another pstate, or meter energy (--energy), so that it can be switched on.",
        )


def _check_watts(host: Host, platform: str) -> None:
    for pstate, watts in enumerate(host.watts):
        most = max(watts.idle, watts.epsilon, watts.full)
        if most > _MOST_WATTS:
            raise PlatformError(
                f"host '{host.name}' draws too much in pstate {pstate}",
                where=platform,
                expected=f"at most {_MOST_WATTS:g} W",
                found=f"{most:g} W",
            )
    if not host.watts:
        raise PlatformError(
            f"energy is metered, but the platform does not give the power of host '{host.name}'",
            where=platform,
            expected='a <prop id="wattage_per_state" value="IDLE:EPSILON:FULL, ..."/>, one part for each speed',
        )
