"""Builds the engine of a run in Batsim's way."""

from collections.abc import Callable

from pipistrelle.server.batsim.external_events import Outside
from pipistrelle.server.batsim.jobs import forwarded_jobs
from pipistrelle.server.batsim.registry import Registry
from pipistrelle.server.batsim.setup import BatsimOptions
from pipistrelle.server.batsim.verdicts import BatsimVerdicts
from pipistrelle.server.begin import begins_of
from pipistrelle.server.engine.agenda import OUTSIDE, SWITCH
from pipistrelle.server.engine.cluster import Cluster
from pipistrelle.server.engine.dependencies import Dependencies
from pipistrelle.server.engine.engine import Engine
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.engine.overheads import Overheads
from pipistrelle.server.hosts.executor import Executor
from pipistrelle.server.hosts.hosts import Hosts
from pipistrelle.server.hosts.metering import JobMeter
from pipistrelle.server.hosts.shared_ledger import SharedLedger
from pipistrelle.server.hosts.switching import Switchboard
from pipistrelle.server.hosts.working import Working
from pipistrelle.server.outages.failures import let_fail
from pipistrelle.server.setup import Setup


def batsim_engine(
    setup: Setup,
    options: BatsimOptions,
    observer: Observer,
    metered: Callable[[Hosts], Observer | None] | None,
    dependencies: Dependencies | None = None,
) -> Engine:
    """Return the engine of a run with these options; the rest is as for `pipistrelle.server.assembly.make_engine`."""
    hosts = None if setup.machine is None else Hosts(setup.machine, energy=options.energy)
    registry = Registry(
        setup.workloads,
        forward=options.forward_profiles,
        reuse=options.profile_reuse,
        has_hosts=hosts is not None,
        can_send=options.bandwidth is not None,
    )
    observers: list[Observer] = [registry] if options.dynamic_jobs and not options.profile_reuse else []
    if hosts is not None and options.energy:
        observers.append(JobMeter(hosts))
        teller = None if metered is None else metered(hosts)
        observers += [] if teller is None else [teller]
    observers += [observer] if dependencies is None else [dependencies, observer]
    begins = begins_of(setup)
    ledger = SharedLedger(begins.nb_resources) if options.compute_sharing else None
    engine = Engine(
        begins,
        forwarded_jobs(setup.workloads, forward=options.forward_profiles, has_hosts=hosts is not None),
        features=("dynamic_jobs",) if options.dynamic_jobs else (),
        strict=True,  # this dialect has no word for a decision that is rejected
        cluster=Cluster(begins.nb_resources, observers, ledger),
        news_apart=True,
    )
    executor: Executor | None = None
    if hosts is not None:
        executor = Executor(hosts, engine.agenda, sharing=options.compute_sharing, bandwidth=options.bandwidth)
        Working(engine, executor, detailed=True)
    switchboard = Switchboard(engine, hosts, None if executor is None else executor.speed_changed)
    engine.handlers[SWITCH] = lambda leg: switchboard.over(engine.now, leg)
    outside = Outside(engine, switchboard, options.events, forward_unknown=options.forward_unknown_events)
    engine.handlers[OUTSIDE] = outside.happen
    engine.verdicts.add(BatsimVerdicts(engine, registry, options, switchboard, hosts).table())
    engine.overheads = Overheads.where_there_are(setup.platform)
    if setup.reliability is not None:
        let_fail(engine, setup.platform, setup.reliability, tells="changes", holds=True)
    if dependencies is not None:
        dependencies.attach(engine)
    return engine
