"""Descriptions of a run for the first notice and for the output files."""

import hashlib
from math import inf
from typing import Any

import msgspec

from pipistrelle.protocol.events import SimulationBeginsData
from pipistrelle.server.setup.setup import Setup
from pipistrelle.traces.workload import NODE_LIST, Workload


def begins_of(setup: Setup) -> SimulationBeginsData:
    """Return the content of the first notice in the native dialect."""
    return SimulationBeginsData(
        nb_resources=setup.platform.units,
        platform=setup.platform.info,
        workloads={prefix: workload.name for prefix, workload in setup.workloads.items()},
        config={"strict": setup.strict, "epoch": setup.epoch, "timezone": setup.timezone},
    )


def describe_run(setup: Setup) -> dict[str, Any]:
    """Return everything that determines a run's result, except the scheduler.

    The result consists of JSON values.
    """
    hosts = None if setup.machine is None else setup.machine.hosts
    return {
        "platform": msgspec.to_builtins(setup.platform),
        "workloads": {
            prefix: {
                "name": workload.name,
                "source": workload.source,
                "jobs": len(workload),
                "epoch": workload.epoch,
                "timezone": workload.timezone,
                "sha256": _workload_digest(workload, shared=setup.platform.shares_nodes),
            }
            for prefix, workload in setup.workloads.items()
        },
        "dropped": setup.dropped,
        **({"cancellations": "keep"} if setup.cancels else {}),
        "strict": setup.strict,
        **({} if setup.until == inf else {"until": setup.until}),
        **({} if setup.dispersion is None else {"dispersion": setup.dispersion.share}),
        "hosts_sha256": None if hosts is None else hashlib.sha256(msgspec.json.encode(hosts)).hexdigest(),
        "reliability": None if setup.reliability is None else setup.reliability.describe(),
        "batsim": None if setup.batsim is None else msgspec.to_builtins(setup.batsim),
    }


def _workload_digest(workload: Workload, *, shared: bool) -> str:
    """Return a digest of everything in a workload that affects the simulation."""
    digest = hashlib.sha256("\n".join(workload.ids).encode())
    for column in (workload.submit, workload.size, workload.walltime, workload.runtime):
        digest.update(column.astype(column.dtype.newbyteorder("<")).tobytes())
    for name, numbers in sorted(workload.columns.items()):
        digest.update(name.encode() + numbers.astype(numbers.dtype.newbyteorder("<")).tobytes())
    for name, texts in sorted(workload.labels.items()):
        if name == NODE_LIST:  # recorded nodes count only with the feature 'recorded'
            continue
        digest.update("\n".join([name, *texts]).encode())
    if shared:  # other machines ignore what jobs request of their nodes
        digest.update(msgspec.json.encode(workload.requests))
    if workload.job_json is not None:
        digest.update(b"\n".join(workload.job_json))
    if workload.profiles is not None:
        digest.update("\n".join(workload.profiles).encode())
    if workload.profile_json is not None:
        for name, text in workload.profile_json.items():
            digest.update(name.encode() + b"\n" + text + b"\n")
    return digest.hexdigest()
