"""Plan partitions of nodes by reliability.

A plan has the nodes that each job class needs and gets, and the effect of the partitions on each class.
"""

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pipistrelle.models.reliability.jobs import (
    BETA,
    PROBABILITIES,
    CheckpointChange,
    ReliabilityError,
    change,
    interval,
    job_change,
    job_reliability,
    required_mttf,
    required_mttf_in_series,
    series_reliability,
)
from pipistrelle.models.reliability.loss import (
    check_blocking,
    erlang_b,
    kaufman_roberts,
    linear_blocking,
    printed_queueing,
    queueing,
)
from pipistrelle.models.reliability.resources import ClassDemand, ResourceClass, needs
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.platforms.topology.partitions import (
    HOUR,
    Partition,
    first_partition,
    partition,
    partition_sizes,
    ranks,
)

_MINUTE: Final = 60.0
#: most steps of the recursion for a shared machine (units x classes) that take no noticeable time
_STEPS: Final = 20_000_000


class PlanOptions(Struct, frozen=True):
    """Assumptions of a plan of partitions.

    Args:
        blocking: blocking probabilities, from 0 to 1; the first one is used for reliability and checkpoints.
        probabilities: survival probabilities of jobs for which node MTTFs are computed.
        beta: Weibull shape of node lifetimes.
        dump: time to write a checkpoint (s).
    """

    blocking: tuple[float, ...] = (0.0, 0.1, 0.2)
    probabilities: tuple[float, ...] = PROBABILITIES
    beta: float = BETA
    dump: float = 600.0


def make_plan(demand: ClassDemand, machine: Machine, options: PlanOptions | None = None) -> dict[str, Any]:
    """Make a plan of partitions as JSON values; times in hours, None if unknown."""
    options = options or PlanOptions()
    for blocking in options.blocking:
        check_blocking(blocking)
    if not options.blocking:
        raise ReliabilityError("no blocking probability is given", where="blocking")
    if machine.units != demand.units:
        raise ReliabilityError(
            "the classes belong to another machine", expected=f"{machine.units:,} units", found=f"{demand.units:,}"
        )
    mttf = machine.nodes.mttf / HOUR
    parted = {blocking: _parted(demand, machine, mttf, blocking) for blocking in options.blocking}
    load = demand.load
    return {
        "name": demand.name,
        "units": demand.units,
        "nodes": len(mttf),
        "mttf": _known(float(mttf.mean())),
        "load": load,
        "stable": load < 1,
        "beta": options.beta,
        "classes": _classes(demand),
        "required": _required(demand, options),
        "capacity": [_capacity(demand, blocking) for blocking in options.blocking],
        "blocking": _blocking(demand, options.blocking),
        "queueing": [line for blocking in options.blocking for line in _queueing(demand, blocking)],
        "partitions": [_partitions(demand, blocking, *parted[blocking]) for blocking in options.blocking],
        "served": _served(demand, options, parted[options.blocking[0]][0], mttf),
    }


def _parted(
    demand: ClassDemand, machine: Machine, mttf: NDArray[np.float64], blocking: float
) -> tuple[list[Partition], int]:
    sized, _ = partition_sizes([one.sizes for one in demand.classes], demand.units, blocking)
    found, extra = partition(sized, mttf, machine)
    return found, len(extra)


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _classes(demand: ClassDemand) -> list[dict[str, Any]]:
    """Return size, rate, cost and rank of each class.

    The results are as in Umamaheshwaran's tables 4.2 and 4.4.
    """
    order = ranks([one.sizes for one in demand.classes])
    return [
        {
            "class": one.name,
            "size": one.size,
            "rate": one.sizes.rate,
            "service": one.sizes.service,
            "service_95": one.sizes.service_95,
            "fill": one.sizes.fill,
            "jobs": one.jobs,
            "erlang": one.sizes.rate * one.sizes.service,
            "load": one.sizes.load,
            "cost": one.sizes.cost,
            "rank": order.index(at) + 1,
        }
        for at, one in enumerate(demand.classes)
    ]


def _required(demand: ClassDemand, options: PlanOptions) -> dict[str, Any]:
    """Return the node MTTF that each class needs (Umamaheshwaran's table 4.3).

    Also return the node MTTF that the class needs if a job fails as soon as one of its nodes does.
    """
    rows = []
    for one in demand.classes:
        given = [(chance, one.size, one.sizes.service_95, options.beta) for chance in options.probabilities]
        timed = one.sizes.service_95 > 0
        rows.append(
            {
                "class": one.name,
                "mttf": [required_mttf(*each) if timed else 0.0 for each in given],
                "in_series": [required_mttf_in_series(*each) if timed else 0.0 for each in given],
            }
        )
    return {"probabilities": list(options.probabilities), "classes": rows}


def _capacity(demand: ClassDemand, blocking: float) -> dict[str, Any]:
    """Return the nodes that classes need at a blocking probability.

    The results are as in Umamaheshwaran's table 4.5.
    """
    found = needs([one.sizes.load for one in demand.classes], blocking)
    names = [one.name for one in demand.classes]
    return {
        "blocking": blocking,
        "classes": names,
        "types_1_4": found.plain,
        "types_2_3_by_size": found.by_size,
        "types_2_3_equation_3_14": found.chained,
        "total": sum(found.plain),
    }


def _blocking(demand: ClassDemand, levels: Sequence[float]) -> list[dict[str, Any]]:
    """Return the blocking of each class: linear, exact, and on the shared machine.

    With own nodes, a class has floor(C / n) servers for its C units and job size n. Its load is a = lambda t. On the
    shared machine, the greatest common divisor of all sizes counts as one unit.
    """
    loads = [one.sizes.rate * one.sizes.service for one in demand.classes]
    unit = reduce(math.gcd, (one.size for one in demand.classes), demand.units)
    asked = [at for at, load in enumerate(loads) if load > 0]
    shared: dict[int, float] = {}
    if asked and demand.units // unit * len(asked) <= _STEPS:
        sizes = [demand.classes[at].size // unit for at in asked]
        found = kaufman_roberts(demand.units // unit, sizes, [loads[at] for at in asked])
        shared = dict(zip(asked, found.blocking.tolist(), strict=True))
    rows = []
    for at, one in enumerate(demand.classes):
        levelled = []
        for blocking in levels:
            capacity = _given(one, blocking)
            servers = int(capacity // one.size)
            levelled.append(
                {
                    "blocking": blocking,
                    "capacity": capacity,
                    "servers": servers,
                    "linear": linear_blocking(capacity, one.sizes.load) if loads[at] > 0 else 0.0,
                    "exact": erlang_b(servers, loads[at]) if loads[at] > 0 else 0.0,
                }
            )
        rows.append({"class": one.name, "erlang": loads[at], "levels": levelled, "shared": shared.get(at)})
    return rows


def _given(one: ResourceClass, blocking: float) -> float:
    """Return the units that a class of jobs gets at a blocking probability.

    They are enough for at least one job.
    """
    return max((1.0 - blocking) * one.sizes.load, float(one.size))


def _queueing(demand: ClassDemand, blocking: float) -> list[dict[str, Any]]:
    """Return each class's queue.

    It is computed by Erlang's C and by Umamaheshwaran's equations 3.17 to 3.19.
    """
    rows = []
    for one in demand.classes:
        load, capacity = one.sizes.rate * one.sizes.service, _given(one, blocking)
        servers = int(capacity // one.size)
        exact = queueing(servers, load, one.sizes.service) if load > 0 else None
        thesis = printed_queueing(capacity, load, blocking, one.sizes.service) if load > 0 else None
        rows.append(
            {
                "blocking": blocking,
                "class": one.name,
                "servers": servers,
                "erlang": load,
                "stable": load == 0 or exact is not None,
                "exact": None if exact is None else exact._asdict(),
                "printed": None if thesis is None else thesis._asdict(),
            }
        )
    return rows


def _partitions(demand: ClassDemand, blocking: float, parts: list[Partition], extra: int) -> dict[str, Any]:
    """Return partitions and the classes that they serve.

    The results are as in Umamaheshwaran's tables 4.6 and 4.7.
    """
    begins = [(one.name, first_partition(parts, at, one.size)) for at, one in enumerate(demand.classes)]
    return {
        "blocking": blocking,
        "extra": extra,
        "partitions": [
            {
                "partition": number,
                "class": demand.classes[part.owner].name,
                "size": len(part.units),
                "nodes": len(part.nodes),
                "mttf": _known(part.mttf),
                "serves": [
                    one.name
                    for at, one in enumerate(demand.classes)
                    if first_partition(parts, at, one.size) == number - 1
                ],
            }
            for number, part in enumerate(parts, 1)
        ],
        "whole": [name for name, place in begins if place is None],
    }


def _served(
    demand: ClassDemand, options: PlanOptions, parts: list[Partition], mttf: NDArray[np.float64]
) -> dict[str, Any]:
    """Return the effect of partitions on each class.

    The results are as in Umamaheshwaran's tables 4.8 to 4.10.
    """
    machine = float(mttf.mean())
    rows, node_cost, job_cost = [], 0.0, 0.0
    dump = options.dump / _MINUTE
    for at, one in enumerate(demand.classes):
        place = first_partition(parts, at, one.size)
        given = machine if place is None else parts[place].mttf
        row: dict[str, Any] = {
            "class": one.name,
            "partition": None if place is None else place + 1,
            "mttf_before": _known(machine),
            "mttf_after": _known(given),
        }
        if math.isfinite(machine) and math.isfinite(given):
            hours = max(one.sizes.service_95, 1e-12)
            row["ratio"] = given / machine
            row["reliability_before"] = job_reliability(machine, one.size, hours, options.beta)
            row["reliability_after"] = job_reliability(given, one.size, hours, options.beta)
            row["series_before"] = series_reliability(machine, one.size, hours, options.beta)
            row["series_after"] = series_reliability(given, one.size, hours, options.beta)
            before, after = machine * _MINUTE, given * _MINUTE
            changes = change(one.size, dump, before, after), job_change(one.size, dump, before, after)
            row["node"] = _checkpoints(dump, before, after, changes[0])
            row["job"] = _checkpoints(dump, before / one.size, after / one.size, changes[1])
            node_cost += changes[0].cost
            job_cost += changes[1].cost
        rows.append(row)
    known = math.isfinite(machine)
    return {
        "blocking": options.blocking[0],
        "dump_minutes": dump,
        "classes": rows,
        "net_cost_by_node": node_cost if known else None,
        "net_cost_by_job": job_cost if known else None,
    }


def _checkpoints(dump: float, before: float, after: float, changed: CheckpointChange) -> dict[str, float]:
    """Return a class's checkpoint intervals and the changes of interval and cost.

    ``before`` and ``after`` are the mean times to failure without and with partitions. All times are in minutes, the
    cost is in node-minutes per hour.
    """
    return {
        "interval_before": interval(dump, before),
        "interval_after": interval(dump, after),
        "change": changed.interval,
        "cost_change": changed.cost,
    }
