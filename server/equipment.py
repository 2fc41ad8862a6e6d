"""Builds the engine of a run, with the parts that this run needs and no others."""

from collections.abc import Callable, Sequence

from pipistrelle.server.executor import Executor

from pipistrelle.platforms.simgrid import SimGridPlatform
from pipistrelle.protocol.fields import Feature
from pipistrelle.server.agenda import OUTSIDE, PHASE, SWITCH
from pipistrelle.server.batsim_jobs import forwarded_jobs
from pipistrelle.server.batsim_registry import Registry
from pipistrelle.server.batsim_setup import BatsimOptions
from pipistrelle.server.batsim_verdicts import BatsimVerdicts
from pipistrelle.server.begin import begins_of
from pipistrelle.server.cluster import Cluster
from pipistrelle.server.engine import Engine
from pipistrelle.server.hosts import Hosts
from pipistrelle.server.jobs import jobs_of
from pipistrelle.server.metering import JobMeter
from pipistrelle.server.observers import Observer
from pipistrelle.server.outside import Outside
from pipistrelle.server.setup import Setup
from pipistrelle.server.shared_ledger import SharedLedger
from pipistrelle.server.switching import Switchboard


def make_engine(
    setup: Setup,
    features: Sequence[Feature],
    observer: Observer,
    metered: Callable[[Hosts], Observer | None] | None = None,
) -> Engine:
    """Return the engine of a run.

    Parameters
    ----------
    setup
        what runs where.
    features
        the optional parts of the native protocol that were agreed on.
    observer
        told of all that happens, perhaps late.
    metered
        makes what is told of energy, at once, if it is metered.

    Raises
    ------
    PipistrelleError
        when the hosts cannot do what is wanted of them.
    """
    if setup.batsim is None:
        engine = Engine(
            begins_of(setup),
            jobs_of(setup.workloads["w0"], "w0"),
            features=features,
            strict=setup.strict,
            observers=[observer],
        )
        if setup.needs_hosts and setup.machine is not None:
            _let_work(engine, setup.machine, Hosts(setup.machine), BatsimOptions())
        return engine
    return _batsim_engine(setup, setup.batsim, observer, metered)


def _batsim_engine(
    setup: Setup, options: BatsimOptions, observer: Observer, metered: Callable[[Hosts], Observer | None] | None
) -> Engine:
    machine = setup.machine
    hosts = None if machine is None else Hosts(machine, energy=options.energy)
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
    observers.append(observer)
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
    if hosts is not None and machine is not None:
        _let_work(engine, machine, hosts, options)
    executor = engine.executor
    switchboard = Switchboard(engine, hosts, None if executor is None else executor.speed_changed)
    engine.handlers[SWITCH] = lambda leg: switchboard.over(engine.now, leg)
    outside = Outside(engine, switchboard, options.events, forward_unknown=options.forward_unknown_events)
    engine.handlers[OUTSIDE] = outside.happen
    engine.verdicts.add(BatsimVerdicts(engine, registry, options, switchboard, hosts).table())
    return engine


def _let_work(engine: Engine, machine: SimGridPlatform, hosts: Hosts, options: BatsimOptions) -> None:
    engine.executor = Executor(hosts, engine.agenda, sharing=options.compute_sharing, bandwidth=options.bandwidth)
    engine.handlers[PHASE] = engine.phase_over
