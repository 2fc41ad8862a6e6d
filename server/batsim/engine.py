"""The engine of a run in the batsim dialect, and the content of its first message."""

from collections.abc import Callable, Sequence
from math import isnan
from typing import Any, Final

import msgspec

from pipistrelle.platforms.requests.requests import RequestBook
from pipistrelle.platforms.simgrid.platform_file import Host
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.batsim.messages import BatsimBeginsData
from pipistrelle.server.batsim.external_events import ExternalEvents
from pipistrelle.server.batsim.jobs import ForwardedJob, forwarded_jobs
from pipistrelle.server.batsim.registry import Registry
from pipistrelle.server.batsim.verdicts import BatsimVerdicts
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
from pipistrelle.server.setup.setup import BatsimOptions, Setup
from pipistrelle.traces.batsim.text import profile_texts
from pipistrelle.traces.requests import asks

BATSIM: Final = DialectRules(
    news_apart=True,
    waits_for_calls=True,
    waits_for_word=True,
    tells_profiles=True,
    strict_hint="Batsim's protocol cannot report it to the scheduler, so the run ends.",
)


def batsim_engine(
    setup: Setup,
    options: BatsimOptions,
    observers: Sequence[Observer],
    metered: Callable[[Hosts], Observer | None] | None,
) -> Engine:
    """Return the engine of a run in the batsim dialect; see `make_engine`."""
    hosts = None if setup.machine is None else Hosts(setup.machine, energy=options.energy)
    begins = batsim_begins(setup, options)
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
    # Strict, because this dialect has no message for a rejected decision.
    happens = [*parts, switchboard, events, *failures]
    return Engine(begins, clockwork, lives, arrivals, verdicts, happens, strict=True, until=setup.until)


def batsim_begins(setup: Setup, options: BatsimOptions) -> BatsimBeginsData:
    """Return the content of Batsim's SIMULATION_BEGINS.

    It describes the machine, the workloads and the configuration. Each unit becomes a host named by its number, unless
    the platform has hosts. If the platform has a topology or node properties, or if jobs request nodes, each host's
    properties describe its node. ``platform`` in the configuration then describes the machine as in the native dialect,
    without queues.
    """
    units = setup.platform.units
    info = setup.platform.info
    told: dict[str, Any] = {}
    if setup.machine is None and (info.topology or info.groups or any(map(asks, setup.workloads.values()))):
        compute = _of_nodes(Machine(units, info), [pool.unit for pool in info.pools])
        storage: list[dict[str, Any]] = []
        told["platform"] = msgspec.to_builtins(msgspec.structs.replace(info, classes=()))
    elif setup.machine is None:
        compute = [_resource(unit, str(unit), {"role": ""}, {}) for unit in range(units)]
        storage = []
    else:
        compute = [_of_host(host) for host in setup.machine.hosts]
        storage = [_of_host(host) for host in setup.machine.storages]
    return BatsimBeginsData(
        nb_resources=units,
        workloads={prefix: workload.source for prefix, workload in setup.workloads.items()},
        config={
            "redis-enabled": False,
            "profiles-forwarded-on-submission": options.forward_profiles,
            "dynamic-jobs-enabled": options.dynamic_jobs,
            "dynamic-jobs-acknowledged": options.acknowledge_dynamic_jobs,
            "profile-reuse-enabled": options.profile_reuse,
            "sched-config": options.sched_config,
            "forward-unknown-events": options.forward_unknown_events,
            **told,
        },
        nb_compute_resources=units,
        nb_storage_resources=len(storage),
        allow_compute_sharing=options.compute_sharing,
        allow_storage_sharing=True,
        compute_resources=compute,
        storage_resources=storage,
        profiles={
            prefix: {name: msgspec.Raw(text) for name, text in profile_texts(workload).items()}
            for prefix, workload in setup.workloads.items()
        },
    )


def _of_nodes(machine: Machine, kinds: list[str]) -> list[dict[str, Any]]:
    """Return one host for each unit.

    The host's properties describe the unit's node, as texts.
    """
    nodes, topology = machine.nodes, machine.topology
    zone = {"topology": topology.kind, "shape": "x".join(map(str, topology.shape))} if topology.info.shape else {}
    places = [" ".join(map(str, place)) for place in topology.place.tolist()] if topology.info.shape else []
    known: list[dict[str, str]] = [{"role": ""} for _ in range(len(nodes))]
    for key in nodes.properties:
        for value, some in nodes.with_property(key).items():
            for node in some:
                known[node][key] = str(value).lower() if isinstance(value, bool) else str(value)
    found: list[dict[str, Any]] = []
    for (first_node, count, _, each), pool, kind in zip(machine.numbering.pools, nodes.pools, kinds, strict=True):
        for node in range(first_node, first_node + count):
            facts = known[node] | {"pool": pool, "unit": kind, "node": nodes.names[node]}
            facts |= {"place": places[node]} if places else {}
            facts |= {"class": name} if (name := nodes.classes[nodes.node_class[node]]) else {}
            times = (("mttf", float(nodes.mttf[node])), ("age", float(nodes.age[node])))
            facts |= {key: repr(time) for key, time in times if not isnan(time)}
            for _ in range(each):
                unit = len(found)
                found.append(_resource(unit, nodes.names[node] if each == 1 else str(unit), facts, zone))
    return found


def _of_host(host: Host) -> dict[str, Any]:
    return _resource(host.id, host.name, host.properties, host.zone_properties)


def _resource(number: int, name: str, properties: dict[str, str], zone_properties: dict[str, str]) -> dict[str, Any]:
    return {
        "id": number,
        "name": name,
        "state": "idle",
        "properties": properties,
        "zone_properties": zone_properties,
    }
