"""Fixtures of the tests of the executor: hosts, an agenda and an executor, driven as the engine does it."""

from collections.abc import Callable, Sequence
from math import inf

import pytest

from pipistrelle.platforms.simgrid.platform_file import SimGridPlatform, parse_simgrid
from pipistrelle.protocol.fields import LATEST
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.agenda import END, PHASE, READY
from pipistrelle.server.engine.clockwork import Clockwork, DialectRules
from pipistrelle.server.engine.cluster import Cluster
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.hosts.executor import Executor
from pipistrelle.server.hosts.hosts import Hosts
from pipistrelle.traces.profiles import Profile


def machine(speeds: Sequence[str], cores: Sequence[int] = ()) -> SimGridPlatform:
    """Return a machine of hosts with these speeds, of one core each by default; each pstate has watts."""
    elements = "".join(
        f'<host id="h{number:03}" speed="{speed}" core="{cores[number] if cores else 1}">'
        f'<prop id="wattage_per_state" value="{", ".join(["10:20:30"] * len(speed.split(",")))}"/></host>'
        for number, speed in enumerate(speeds)
    )
    return parse_simgrid(f'<platform version="4.1"><zone id="z" routing="None">{elements}</zone></platform>', "m.xml")


class MeteredHosts(Hosts):
    """Hosts that add up their computed flops from the changes of their load."""

    def __init__(self, platform: SimGridPlatform) -> None:
        super().__init__(platform, energy=True)
        self.flops = [0.0] * len(self)
        self.raw = [0.0] * len(self)
        self._changed = [0.0] * len(self)

    def _count(self, now: float, host: int) -> None:
        self.flops[host] += self.raw[host] * self.speed(host) * (now - self._changed[host])
        self._changed[host] = now

    def set_load(self, now: float, host: int, load: float) -> None:
        """Count the work so far; no host can be busier than its cores allow."""
        assert -1e-12 <= load <= self.cores(host) * (1 + 1e-9), f"host {host} has a load of {load}"
        self._count(now, host)
        self.raw[host] = load
        super().set_load(now, host, load)

    def set_pstate(self, now: float, host: int, pstate: int) -> None:
        """Count the work at the old speed."""
        self._count(now, host)
        super().set_pstate(now, host, pstate)


def _unnamed(prefix: str, name: str) -> Profile:
    raise AssertionError("jobs of tests bring their work along")


class World:
    """Hosts, an agenda and an executor, driven as the engine does it."""

    def __init__(
        self, hosts: Hosts, *, sharing: bool = False, bandwidth: float | None = None, check: bool = False
    ) -> None:
        self.hosts = hosts
        self.clockwork = Clockwork(Cluster(len(hosts)), DialectRules(tells_profiles=True))
        self.agenda = self.clockwork.agenda
        self.executor = Executor(hosts, self.clockwork, _unnamed, sharing=sharing, bandwidth=bandwidth)
        #: {job: when it ended}; those that reached their walltime have a minus sign
        self.ends: dict[str, float] = {}
        self.jobs: dict[str, Job] = {}

    @property
    def now(self) -> float:
        """The time."""
        return self.clockwork.now

    def job(
        self, name: str, work: Profile, alloc: str, *, walltime: float = inf, mapping: tuple[int, ...] | None = None
    ) -> Callable[[], None]:
        """Return what starts a job."""

        def start() -> None:
            units = NodeSet.parse(alloc)
            job = self.jobs[name] = Job(name, 0.0, len(units), walltime, 0.0, "p")
            job.work, job.alloc, job.mapping = work, units, mapping
            self.clockwork.cluster.running[name] = job
            self.executor.begins(job)

        return start

    def kill(self, name: str) -> Callable[[], None]:
        """Return what ends a job early."""

        def stop() -> None:
            self.executor.over(self.jobs[name])

        return stop

    def pstate(self, host: int, pstate: int) -> Callable[[], None]:
        """Return what changes a host's speed."""

        def change() -> None:
            self.hosts.set_pstate(self.now, host, pstate)
            self.executor.speed_changed(self.now, [host])

        return change

    def play(self, *acts: tuple[float, Callable[[], None]]) -> dict[str, float]:
        """Let these happen at their times, and all that follows; return when each job ended."""
        for time, act in acts:
            self.agenda.put(float(time), READY, act)
        while (entry := self.agenda.pop()) is not None:
            time, kind, _, subject = entry
            assert self.now <= time <= LATEST
            self.clockwork.now = time
            if kind == PHASE:
                job = self.executor.phase_over(subject)
                if job is None:
                    continue
                self.ends[job.id] = time
                if job.ending is not None:
                    self.agenda.cancel(job.ending)
                self.executor.over(job)
            elif kind == END:
                self.ends[subject] = -time
                self.executor.over(self.jobs[subject])
            else:
                subject()
        return self.ends


def world(
    *speeds: str,
    cores: Sequence[int] = (),
    sharing: bool = False,
    metered: bool = False,
    bandwidth: float | None = None,
) -> World:
    """Return a world of hosts with these speeds."""
    platform = machine(speeds, cores)
    return World(MeteredHosts(platform) if metered else Hosts(platform), sharing=sharing, bandwidth=bandwidth)


@pytest.fixture(scope="session", name="world")
def world_fixture() -> Callable[..., World]:
    """Return the function that makes worlds: world("1f", "2f,1f", cores=[2, 1], sharing=True, metered=True)."""
    return world
