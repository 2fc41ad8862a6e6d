"""What Batsim's clients are told first: every host, every profile, every setting."""

from typing import Any

import msgspec

from pipistrelle.platforms.simgrid.platform_file import Host
from pipistrelle.protocol.batsim.messages import BatsimBeginsData
from pipistrelle.server.batsim.setup import BatsimOptions
from pipistrelle.server.setup import Setup
from pipistrelle.traces.batsim.text import profile_texts


def batsim_begins(setup: Setup, options: BatsimOptions) -> BatsimBeginsData:
    """Return the machine, the workloads and the configuration in Batsim's terms.

    A machine that is not known as single hosts has hosts named by their numbers.
    """
    units = setup.platform.units
    if setup.machine is None:
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
