"""Decide whether the kernel can simulate a run.

If so, convert the run to the kernel's form.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from math import inf
from typing import Final, NamedTuple

import numpy as np

from pipistrelle.kernel import state
from pipistrelle.kernel.sets import Floats, Ints
from pipistrelle.kernel.state import Jobs, Rules
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.schedulers.backfill.easy import Easy, FirstFit, NoBackfill
from pipistrelle.schedulers.composed import ComposedPolicy
from pipistrelle.schedulers.orders.bins import Bins
from pipistrelle.schedulers.orders.fixed import Fcfs, Sjf
from pipistrelle.schedulers.placement.ordered import only_line
from pipistrelle.schedulers.plan.machine_code import has_compiler
from pipistrelle.schedulers.policy.interfaces import Policy
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.preemption.preempting import Preempting
from pipistrelle.server.attempts.accounting import NO_LIMIT
from pipistrelle.server.attempts.progress import interval_of
from pipistrelle.server.engine.lives import Overheads
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.setup.setup import Setup
from pipistrelle.traces.profiles import outcome
from pipistrelle.traces.requests import asks
from pipistrelle.traces.resilience import Resilience
from pipistrelle.traces.workload import Workload

_BACKFILLS: Final[Mapping[type, int]] = {NoBackfill: state.NO_BACKFILL, Easy: state.EASY, FirstFit: state.FIRST_FIT}
#: fields of a setup that the kernel uses or checks; every other field must have its default
_KNOWN: Final = frozenset(
    (
        *("platform", "workloads", "dropped", "strict", "machine", "batsim", "reliability", "conditions"),
        *("resiliences", "remarks", "until", "queue_lengths"),
    )
)


class Outside(Exception):
    """The kernel cannot simulate a run; the message says why."""


class KernelPlan(NamedTuple):
    """A run in the kernel's form.

    Units are numbered by their positions, which are the order in which the placement allocates them.
    """

    rules: Rules
    jobs: Jobs
    #: the node of the unit at each position
    node_of: Ints
    #: work between two checkpoints (s), by the number of nodes
    interval: Floats
    #: the unit at each position
    units: Ints
    #: the workload's prefix, and the jobs' ids
    prefix: str
    ids: Sequence[str]


def plan_of(setup: Setup, spec: RunSpec, policy: Policy | None, *, keeping: bool) -> KernelPlan:
    """Return the kernel's form of a run.

    Args:
        policy: the scheduler; None uses the scheduler of ``spec``.
        keeping: record which units each job had.

    Raises:
        Outside: the kernel cannot simulate the run; the message has the first reason.
    """
    if setup.platform.shares_nodes:
        raise Outside("its nodes have resources, of which jobs take parts")
    _check_setup(setup, spec)
    if policy is None:
        if spec.program is not None:
            raise Outside("its scheduler is a program of its own")
        if spec.poll is not None:
            raise Outside("its scheduler decides at some times alone (--poll)")
        policy = spec.make_policy(warn=False)
    if type(policy) is not ComposedPolicy:
        raise Outside(f"its scheduler '{policy.name}' is more than an order, a backfilling rule and a placement")
    if isinstance(policy.backfill, Preempting):
        raise Outside("its scheduler preempts jobs")
    backfill = _BACKFILLS.get(type(policy.backfill))
    if backfill is None:
        raise Outside("its backfilling rule is none of 'none', 'easy' and 'firstfit'")
    ((prefix, workload),) = setup.workloads.items()
    order, boost = _order_of(policy, workload)
    reliability = setup.reliability or Reliability()
    failing = setup.reliability is not None
    line = only_line(policy.placement, Machine(setup.platform.units, setup.platform.info))
    if line is None:
        raise Outside("its placement is not 'lowest' along one order for every job")
    way = reliability.resilience
    rules = Rules(
        order=order,
        backfill=backfill,
        failing=failing,
        planned=reliability.maintenance is not None,
        placing=failing or keeping,
        keeping=keeping,
        dumps=way.kind == "checkpoint",
        dump=float(way.dump),
        read=float(way.read),
        retries=reliability.requeue != "never",
        original=reliability.requeue == "original",
        most_attempts=NO_LIMIT if reliability.max_attempts is None else reliability.max_attempts,
        rest=reliability.restart_walltime == "rest",
        extended=failing and reliability.walltime == "extended",
        until=float(setup.until),
    )
    jobs = Jobs(
        np.array(workload.submit, dtype=np.float64),
        np.array(workload.size, dtype=np.int64),
        np.array(workload.walltime, dtype=np.float64),
        np.array(workload.runtime, dtype=np.float64),
        boost,
    )
    nodes, units = line.nodes.astype(np.int64), line.units.astype(np.int64)
    return KernelPlan(rules, jobs, nodes, _intervals(setup, reliability), units, prefix, workload.ids)


def _check_setup(setup: Setup, spec: RunSpec) -> None:
    """Raise Outside if the kernel cannot simulate a run, whatever its policy is."""
    reliability = setup.reliability
    for says, why in (
        (not has_compiler(), "numba is not installed (pip install 'pipistrelle[study]')"),
        (setup.batsim is not None or spec.batsim is not None or spec.dialect != "native", "it goes Batsim's way"),
        (setup.machine is not None, "its platform is one of single hosts"),
        (setup.cancels, "some of its jobs are cancelled while they wait"),
        (bool(setup.conditions), "some of its jobs wait for others"),
        (bool(setup.resiliences), "some of its jobs have a resilience of their own"),
        (bool(setup.platform.classes), "its platform has classes of jobs"),
        (Overheads(setup.platform).exist, "its platform has prologues or epilogues"),
        (any(map(asks, setup.workloads.values())), "some of its jobs ask for certain nodes"),
        (
            reliability is not None and reliability.resilience.kind not in ("none", "checkpoint"),
            "its jobs go on without some of their nodes",
        ),
    ):
        if says:
            raise Outside(why)
    for field in fields(setup):
        if field.name not in _KNOWN and getattr(setup, field.name) != field.default:
            raise Outside(f"it has {field.name.replace('_', ' ')}")
    (workload,) = setup.workloads.values()
    if any(outcome(profile)[1] for profile in (workload.table or {}).values()):
        raise Outside("some of its jobs return a failure")


def _order_of(policy: ComposedPolicy, workload: Workload) -> tuple[int, Floats]:
    """Return the constant for the queue order, and each job's priority boost (s).

    The constant is one of the module `state`, such as `BY_SUBMIT`.
    """
    order, none = policy.order, np.zeros(len(workload))
    if type(order) is Fcfs:
        return state.BY_SUBMIT, none
    if type(order) is Sjf:
        return state.BY_WALLTIME, none
    if type(order) is not Bins:
        raise Outside("its order is none of 'fcfs', 'sjf' and 'bins'")
    boost = {size: -order.rank(SchedulerJob("", 0, size, inf, 0.0)) for size in np.unique(workload.size).tolist()}
    columns = zip(workload.size.tolist(), workload.walltime.tolist(), strict=True)
    if any(order.refusal(SchedulerJob("", 0, size, walltime, 0.0)) is not None for size, walltime in set(columns)):
        raise Outside("its order refuses jobs")
    return state.BY_SUBMIT, np.array([boost[size] for size in workload.size.tolist()])


def _intervals(setup: Setup, reliability: Reliability) -> Floats:
    """Return the work between two checkpoints (s), by a job's number of nodes.

    The result has shape (nodes + 1,).
    """
    way, nodes = reliability.resilience, setup.platform.nodes
    if way.kind == "none" or not way.rates_matter:
        return np.full(nodes + 1, interval_of(way, way.dump, 0.0))
    rates = reliability.rates(setup.platform)
    if not (rates == rates[0]).all():
        raise Outside("its nodes fail at different rates, and the time between dumps follows from them")
    return _intervals_at(way, float(rates.mean()), nodes)


@lru_cache(maxsize=16)
def _intervals_at(way: Resilience, rate: float, nodes: int) -> Floats:
    """Return the work between two checkpoints (s), by a job's number of nodes.

    The shape is (nodes + 1,), for jobs of 0 to ``nodes`` nodes. ``rate`` is the failure rate of a node (1/s). Trials of
    a study that differ only in their seeds share the result.
    """
    return np.array([interval_of(way, way.dump, rate * count) for count in range(nodes + 1)])
