"""What Batsim's clients are told first: every host, every profile, every setting."""

from math import isnan
from typing import Any

import msgspec

from pipistrelle.platforms.simgrid.platform_file import Host
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.batsim.messages import BatsimBeginsData
from pipistrelle.server.batsim.setup import BatsimOptions
from pipistrelle.server.setup import Setup
from pipistrelle.traces.batsim.text import profile_texts
from pipistrelle.traces.requests import asks


def batsim_begins(setup: Setup, options: BatsimOptions) -> BatsimBeginsData:
    """Return the machine, the workloads and the configuration in Batsim's terms.

    A machine that is not known as single hosts has hosts named by their numbers. Where it has a topology, tells of
    single nodes, or jobs ask for nodes, a host's properties say what is known of its node, and ``platform`` in the
    configuration says it all by rule, as in the native dialect, without the queues.
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
    """Return a host for each unit, whose properties are texts, as Batsim's are: what is known of its node.

    ``kinds`` are what a unit is, one a pool.
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
