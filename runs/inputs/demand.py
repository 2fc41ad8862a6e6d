"""Load the job classes and the machine for planning reliability partitions."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from pipistrelle.models.reliability.jobs import ReliabilityError
from pipistrelle.models.reliability.resources import ClassDemand, described, logged
from pipistrelle.models.workloads.classes import load_classes, names
from pipistrelle.platforms.description import Platform, homogeneous
from pipistrelle.platforms.errors import check_range
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.base.errors import said_of
from pipistrelle.protocol.base.lengths import parse_seconds
from pipistrelle.runs.inputs.named import load_platform, load_workload, platform_for


def load_demand(
    source: str,
    platform: str | None = None,
    *,
    mttf: str | None = None,
    bins: Sequence[int] = (),
    **reading: Any,
) -> tuple[ClassDemand, Machine]:
    """Return the job classes and the machine for a plan of reliability partitions.

    Args:
        source: classes (bundled, or a TOML file) or a workload (bundled, or a file).
        platform: the machine, bundled or a file; None: the machine of the classes or the workload.
        mttf: mean time to failure, as text, for nodes that have none; None: unknown.
        bins: the largest job size of each class made from a workload; empty: powers of two.
        reading: options of `load_workload`.

    Raises:
        PipistrelleError: an input is missing or wrong, a class exceeds the machine, or options do not suit the source.
    """
    own = None if platform is None else load_platform(platform)
    if source in names() or source.endswith(".toml"):
        if bins:
            raise ReliabilityError(
                "the option applies to a workload, not to described classes", where="--bins", found=source
            )
        classes = load_classes(source)
        own = own or homogeneous(classes.machine_size, classes.name)
        return described(classes, own.units), _machine(own, mttf)
    workload = load_workload(source, **reading)
    own = own or platform_for(workload, os.fspath(source))
    return logged(workload, own.units, bins), _machine(own, mttf)


def _machine(platform: Platform, mttf: str | None) -> Machine:
    machine = Machine(platform.units, platform.info)
    if mttf is not None:
        with said_of("--mttf"):
            seconds = parse_seconds(mttf, "mean time to failure")
            check_range("a mean time to failure", seconds, 0, 1e14, ReliabilityError, above=True)
        known = machine.nodes.mttf
        machine.nodes.mttf = np.where(np.isnan(known), seconds, known)
    return machine
