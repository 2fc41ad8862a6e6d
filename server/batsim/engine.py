"""Builds the engine of a run in Batsim's way."""

from collections.abc import Callable, Sequence
from typing import Final

from pipistrelle.platforms.requests.requests import RequestBook
from pipistrelle.server.batsim.external_events import ExternalEvents
from pipistrelle.server.batsim.jobs import ForwardedJob, forwarded_jobs
from pipistrelle.server.batsim.registry import Registry
from pipistrelle.server.batsim.setup import BatsimOptions
from pipistrelle.server.batsim.verdicts import BatsimVerdicts
from pipistrelle.server.begin import begins_of
from pipistrelle.server.engine.agenda import Part
from pipistrelle.server.engine.clockwork import Clockwork, DialectRules
from pipistrelle.server.engine.cluster import Cluster
from pipistrelle.server.engine.dependencies import Dependencies
from pipistrelle.server.engine.engine import Engine
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.hosts.executor import Executor
from pipistrelle.server.hosts.hosts import Hosts, JobMeter
from pipistrelle.server.hosts.shared_ledger import SharedLedger
from pipistrelle.server.hosts.switching import Switchboard
from pipistrelle.server.outages.failures import lives_of
from pipistrelle.server.setup import Setup

BATSIM: Final = DialectRules(
    news_apart=True,
    waits_for_calls=True,
    waits_for_word=True,
    tells_profiles=True,
    strict_hint="Batsim's protocol cannot say so to the scheduler: the run ends.",
)


def batsim_engine(
    setup: Setup,
    options: BatsimOptions,
    observers: Sequence[Observer],
    metered: Callable[[Hosts], Observer | None] | None,
) -> Engine:
    """Return the engine of a run with these options; the rest is as for `pipistrelle.server.assembly.make_engine`."""
    hosts = None if setup.machine is None else Hosts(setup.machine, energy=options.energy)
    begins = begins_of(setup)
    ledger = SharedLedger(begins.nb_resources) if options.compute_sharing else None
    book = RequestBook(setup.platform.info.pools, setup.platform.info.groups)
    cluster = Cluster(begins.nb_resources, ledger=ledger, job_type=ForwardedJob, requests=book)
    clockwork = Clockwork(cluster, BATSIM, ("dynamic_jobs",) if options.dynamic_jobs else ())
    registry = Registry(
        clockwork,
        setup.workloads,
        forward=options.forward_profiles,
        reuse=options.profile_reuse,
        has_hosts=hosts is not None,
        can_send=options.bandwidth is not None,
    )
    if options.dynamic_jobs and not options.profile_reuse:
        cluster.watch([registry])
    parts: list[Part] = [registry]
    if hosts is not None and options.energy:
        teller = None if metered is None else metered(hosts)
        meter = JobMeter(hosts)
        cluster.watch([meter] if teller is None else [meter, teller])
        parts += [hosts, meter]
    dependencies = Dependencies(clockwork, setup.conditions)
    cluster.watch([dependencies, *observers])
    executor = None
    switchboard = Switchboard(clockwork)
    if hosts is not None:
        executor = Executor(
            hosts, clockwork, registry.profile, sharing=options.compute_sharing, bandwidth=options.bandwidth
        )
        switchboard = Switchboard(clockwork, hosts, executor.speed_changed)
    jobs = forwarded_jobs(setup.workloads, forward=options.forward_profiles, has_hosts=hosts is not None)
    events = ExternalEvents(clockwork, switchboard, options.events, forward_unknown=options.forward_unknown_events)
    lives, arrivals, failures = lives_of(
        clockwork,
        setup.platform,
        executor,
        setup.reliability,
        jobs,
        dependencies,
        tells="changes",
        holds=True,
        dilation=None if setup.dispersion is None else setup.dispersion.factor,
    )
    verdicts = BatsimVerdicts(clockwork, lives, begins.workloads, registry, options, switchboard, hosts)
    # This dialect has no word for a decision that is rejected.
    happens = [*parts, switchboard, events, *failures]
    return Engine(begins, clockwork, lives, arrivals, verdicts, happens, strict=True, until=setup.until)
