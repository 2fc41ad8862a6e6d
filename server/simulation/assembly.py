"""Assembly of a run's engine from the parts that it needs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.requests.requests import RequestBook
from pipistrelle.platforms.resources.shared_nodes import shared_nodes_of
from pipistrelle.protocol.events import SimulationBeginsData
from pipistrelle.protocol.fields import Feature
from pipistrelle.server.engine.clockwork import NATIVE, Clockwork
from pipistrelle.server.engine.cluster import Cluster
from pipistrelle.server.engine.dependencies import Condition, Dependencies
from pipistrelle.server.engine.engine import Engine
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.lives import LimitChecks
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.engine.verdicts import Verdicts
from pipistrelle.server.hosts.node_ledger import NodeLedger
from pipistrelle.server.outages.failures import lives_of
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.setup.described import begins_of
from pipistrelle.server.setup.recorded import records_of
from pipistrelle.server.setup.setup import Dispersion, Setup
from pipistrelle.server.setup.workload_jobs import WorkloadJobs
from pipistrelle.traces.profiles import Profile

if TYPE_CHECKING:
    from pipistrelle.platforms.simgrid.platform_file import SimGridPlatform
    from pipistrelle.server.hosts.hosts import Hosts


def make_engine(
    setup: Setup,
    features: Sequence[Feature],
    observers: Sequence[Observer],
    metered: "Callable[[Hosts], Observer | None] | None" = None,
) -> Engine:
    """Return the engine of a run, in the dialect of its setup.

    ``metered`` creates the observer of the hosts' energy. The engine does not delay its calls to this observer.
    """
    if setup.batsim is not None:
        from pipistrelle.server.batsim.engine import batsim_engine  # most runs do not need it

        return batsim_engine(setup, setup.batsim, observers, metered)
    jobs = WorkloadJobs(
        setup.workloads["w0"],
        "w0",
        has_hosts=setup.machine is not None,
        labelled="labels" in features or bool(setup.platform.classes),
        resiliences=setup.resiliences,
        recorded=records_of(setup.workloads["w0"], setup.platform) if "recorded" in features else None,
        shared=setup.platform.shares_nodes,
        with_options="options" in features,
    )
    return native_engine(
        begins_of(setup),
        setup.platform,
        jobs,
        features=features,
        strict=setup.strict,
        until=setup.until,
        observers=observers,
        machine=setup.machine if setup.has_work else None,
        profiles=setup.workloads["w0"].table,
        reliability=setup.reliability,
        # A scheduler that takes the options of submissions decides on dependencies and begin times.
        conditions={} if "options" in features else setup.conditions,
        dispersion=setup.dispersion,
        checks=setup.checks,
    )


def native_engine(
    begins: SimulationBeginsData,
    platform: Platform,
    jobs: Iterable[Job],
    *,
    features: Sequence[Feature] = (),
    strict: bool = False,
    until: float = inf,
    observers: Sequence[Observer] = (),
    machine: "SimGridPlatform | None" = None,
    profiles: Mapping[str, Profile] | None = None,
    reliability: Reliability | None = None,
    conditions: Mapping[str, tuple[Condition, ...]] | None = None,
    dispersion: Dispersion | None = None,
    checks: LimitChecks | None = None,
) -> Engine:
    """Return the engine of a run in the native dialect; see `Setup` and `Engine`.

    Args:
        jobs: jobs by ascending submit time; the engine takes one at a time.
        machine: the hosts, if they decide how long jobs take; else None.
    """
    nodes = shared_nodes_of(platform.info)
    cluster = Cluster(
        begins.nb_resources,
        ledger=None if nodes is None else NodeLedger(nodes),
        requests=RequestBook(platform.info.pools, platform.info.groups),
    )
    clockwork = Clockwork(cluster, NATIVE, features)
    dependencies = Dependencies(clockwork, conditions or {})
    cluster.watch([dependencies, *observers])
    work = None
    if machine is not None and profiles is not None:
        from pipistrelle.server.hosts.executor import Executor
        from pipistrelle.server.hosts.hosts import Hosts

        work = Executor(Hosts(machine), clockwork, lambda _, name: profiles[name])
    aware = "failures" in clockwork.features
    lives, arrivals, failures = lives_of(
        clockwork,
        platform,
        work,
        reliability,
        jobs,
        dependencies,
        tells="reasons" if aware else "nothing",
        holds=not aware,
        dilation=None if dispersion is None else dispersion.factor,
        preempts="preemption" in clockwork.features,
        checks=checks,
    )
    verdicts = Verdicts(clockwork, lives, begins.workloads)
    return Engine(begins, clockwork, lives, arrivals, verdicts, failures, strict=strict, until=until)
