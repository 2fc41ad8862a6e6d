"""What a run's description leads to: its inputs read, its setup made."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.base.errors import InputError, printable, said_of
from pipistrelle.protocol.base.lengths import parse_seconds
from pipistrelle.protocol.base.log import logger
from pipistrelle.runs.description.reliability import load_reliability
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.inputs.named import begins_as_log, load_machine, load_workload, platform_for, units_remark
from pipistrelle.schedulers.catalogue.names import RECORDED, SUFFIX
from pipistrelle.schedulers.catalogue.registry import preemption_of
from pipistrelle.schedulers.policy.interfaces import learn
from pipistrelle.server.setup.recorded import starts_of
from pipistrelle.server.setup.requests import UNMET
from pipistrelle.server.setup.resilience import refuse_attempts
from pipistrelle.server.setup.setup import Dispersion, Setup
from pipistrelle.traces.clean import faults_text
from pipistrelle.traces.logs.labels import named_column
from pipistrelle.traces.logs.maui_nodes import is_resource_trace
from pipistrelle.traces.requests import with_pools, without_requests
from pipistrelle.traces.workload import Workload

if TYPE_CHECKING:
    from pipistrelle.platforms.simgrid.platform_file import SimGridPlatform


def load_setup(spec: RunSpec) -> Setup:
    """Return the setup of a run; what a user should know of its inputs is logged as warnings.

    Raises
    ------
    PipistrelleError
        when an input is wrong, or they do not go together.
    """
    if spec.batsim is not None:
        from pipistrelle.runs.description.batsim import load_batsim_setup  # most runs start without it

        jobs = [load_jobs(spec, name) for name in spec.workload]
        return with_horizon(spec, load_batsim_setup(spec, spec.batsim, jobs))
    return setup_of(spec, *load_inputs(spec))


def with_horizon(spec: RunSpec, setup: Setup) -> Setup:
    """Return a setup that ends when a run does; PipistrelleError if its horizon cannot be read."""
    until = setup.until if spec.until is None else _horizon(spec.until, setup)
    dispersion = None if spec.dispersion is None else _dispersion(spec.dispersion, setup)
    return replace(setup, until=until, queue_lengths=spec.queue_lengths, dispersion=dispersion)


def _dispersion(share: float, setup: Setup) -> Dispersion:
    """Return how much longer jobs take on nodes that are far apart; PipistrelleError where that makes no sense."""
    if setup.has_work:
        raise InputError(
            "jobs whose hosts decide how long they take do not take longer by a rule", where="--dispersion"
        )
    return Dispersion(setup.platform, share)


def _horizon(text: str, setup: Setup) -> float:
    """Return the time in seconds after time 0 that a user gives: a length, or a date."""
    from pipistrelle.platforms.maintenance.dates import Calendar  # most runs have no horizon

    words = text.removeprefix("@").split()
    with said_of("--until"):
        if not words or words[0].count("-") < 2:
            return parse_seconds(" ".join(words), "time")
        calendar = Calendar(setup.epoch, setup.timezone)
        moment, used = calendar.read(words, "time")
        if used < len(words) or moment.seconds <= 0:
            raise InputError("a horizon is one time after time 0", expected=f"after {calendar.zero()}", found=text)
    return moment.seconds


def _scaled(machine: "Platform | SimGridPlatform", text: str) -> Platform:
    """Return a machine with more nodes, or fewer; some of its nodes can have no names then, which is warned of."""
    from pipistrelle.models.workloads.options import parse_factor  # most runs take the machine as it is

    with said_of("--scale-platform"):
        factor = parse_factor(text)
        if not isinstance(machine, Platform):
            raise InputError("single hosts cannot be multiplied", found="a platform in SimGrid's XML")
        if any(pool.names for pool in machine.pools):
            logger().warning("the nodes of {} x {:g} have no names", machine.name, factor)
        if machine.topology or machine.groups:
            text = "the nodes of {} x {:g} have no places, and all of a pool are alike"
            logger().warning(text, machine.name, factor)
        return machine.scaled(factor)


def _with_table(machine: "Platform | SimGridPlatform", text: str) -> Platform:
    """Return a machine with what a table says of its nodes."""
    from pipistrelle.platforms.node_rows import with_node_rows  # most runs have none
    from pipistrelle.runs.inputs.node_table import load_node_rows

    if not isinstance(machine, Platform):
        what, found = "single hosts have no table of nodes", "a platform in SimGrid's XML"
        raise InputError(what, where="--node-table", found=found)
    return with_node_rows(machine, load_node_rows(text))


def load_inputs(spec: RunSpec) -> "tuple[Workload, Platform | SimGridPlatform]":
    """Return a run's workload and machine, from their files: many runs may share them.

    Raises
    ------
    PipistrelleError
        when one cannot be had, or a change to it makes no sense.
    """
    if spec.resumed is not None:
        raise InputError(
            "this run went on from a snapshot of another, under another policy: it cannot be begun anew",
            where=printable(f"{spec.resumed.folder}/{spec.resumed.snapshot}"),
            hint="'pipistrelle resume' with this snapshot, the policy and --out does the same once more.",
        )
    if len(spec.workload) != 1:
        raise InputError(
            "a run has one workload", expected="several in Batsim's way alone", found=str(len(spec.workload))
        )
    (name,) = spec.workload
    trace = load_jobs(spec, name)
    machine = platform_for(trace, name) if spec.platform is None else load_machine(spec.platform, units=spec.units)
    if spec.scale_platform is not None:
        machine = _scaled(machine, spec.scale_platform)
    if spec.node_table is not None:
        machine = _with_table(machine, spec.node_table)
    return trace, machine


def setup_of(spec: RunSpec, trace: Workload, machine: "Platform | SimGridPlatform") -> Setup:
    """Return the setup of a run whose inputs `load_inputs` has read; PipistrelleError as of `load_setup`."""
    happens = load_reliability(spec, machine, trace)
    setup = steady_setup(spec, trace, machine).with_reliability(happens)
    check_policy(spec, setup.platform)
    _check_recorded(spec, setup)
    _check_preemption(spec, setup)
    for remark in remarks_of(spec, trace, setup):
        logger().warning("{}", remark)
    return with_horizon(spec, setup)


def steady_setup(spec: RunSpec, trace: Workload, machine: "Platform | SimGridPlatform") -> Setup:
    """Return a run's setup without what happens to the machine, and without a horizon: many runs may share it.

    Raises
    ------
    PipistrelleError
        when workload and machine do not go together.
    """
    if spec.dialect == "batsim":
        from pipistrelle.server.setup.setup import BatsimOptions  # most runs speak the other one

        batsim: BatsimOptions | None = BatsimOptions()
    else:
        batsim = None
    if spec.partition_pools:
        trace = _bound(trace, machine if isinstance(machine, Platform) else machine.to_platform(), spec.partition_pools)
    return Setup.steady(machine, trace, strict=spec.strict, batsim=batsim, cancellations=spec.cancellations == "keep")


def check_policy(spec: RunSpec, platform: Platform) -> None:
    """Raise PipistrelleError if a machine will not do for a run's placement, or its partitions."""
    if spec.asks_of_nodes:
        learn(spec.make_policy(warn=False, polls=False), Machine(platform.units, platform.info))


def _check_recorded(spec: RunSpec, setup: Setup) -> None:
    """Raise InputError if the log's own starts are wanted, and cannot be had."""
    if spec.scheduler != RECORDED:
        return
    if spec.dialect == "batsim":
        raise InputError("the batsim dialect does not tell when jobs started in reality", expected="native")
    for trace in setup.workloads.values():
        if len(trace) and bool(np.isnan(starts_of(trace)).all()):
            raise InputError(
                "the log does not tell when its jobs started",
                where=trace.source,
                expected="wait times (SWF's field 3), or dates of starts (sacct, PBS, Maui)",
                hint="Another scheduler needs none.",
            )


def _check_preemption(spec: RunSpec, setup: Setup) -> None:
    """Raise PipistrelleError if jobs are to be preempted, and that cannot be."""
    if spec.program is not None or spec.code is not None or not spec.may_preempt:
        return
    if spec.dialect == "batsim":
        raise InputError("the batsim dialect has no word for preemption", expected="--dialect native")
    refuse_attempts(setup.workloads)


def remarks_of(spec: RunSpec, trace: Workload, setup: Setup) -> list[str]:
    """Return what a user should know of a run's inputs before it."""
    other_units = units_remark(trace, setup.platform, spec.units)
    remarks = [*([] if other_units is None else [other_units]), *setup.remarks]
    if UNMET in setup.dropped:
        remarks.append("--ignore-constraints lets jobs have any nodes, whatever they ask for")
    if spec.cancellations == "keep" and not setup.cancels:
        remarks.append(
            f"--cancellations keep: no job of {trace.name} was cancelled while it waited, as far as it tells"
        )
    options = None if not isinstance(spec.scheduler, str) or spec.program is not None else preemption_of(spec.scheduler)
    kind = spec.preempt_type or (None if options is None else options.type)
    label = {"qos": "qos", "partition_prio": "queue"}.get(kind or "")
    if label is not None and named_column(trace, label) is None:
        told = "QOS" if label == "qos" else "queue"
        remarks.append(f"no job of {trace.name} tells its {told}: nobody is preempted")
    if spec.config is not None or str(spec.scheduler).endswith(SUFFIX):
        from pipistrelle.runs.description.maui import maui_remarks  # most runs start without it

        remarks += maui_remarks(spec, setup.platform, trace)
    if not setup.jobs:
        remarks.append(f"no job of {trace.name} can run on {setup.platform.name}")
    return remarks


def load_jobs(spec: RunSpec, name: str) -> Workload:
    """Return a workload as a run has it; PipistrelleError if it cannot be had, or a step makes no sense for it."""
    units = spec.units
    if spec.platform is not None and is_resource_trace(spec.platform) and not begins_as_log(name, spec.columns):
        units = "nodes"  # it is the machine alone of which the description says what is counted
    trace = load_workload(
        name, sort=spec.sort, units=units, timezone=spec.timezone, columns=spec.columns, strict=spec.strict
    )
    if (said := faults_text(trace)) is not None:
        logger().warning("{}", said)
    for step in spec.transform:
        trace = step.apply(trace)
    if spec.warm and spec.from_ is None:
        raise InputError("--warm goes with --from DATE")
    if spec.from_ is not None:
        from pipistrelle.models.workloads.options import trace_time, zone_of  # most runs begin with their log
        from pipistrelle.traces.transforms.start import begun_at

        with said_of("--from"):
            time = trace_time(trace, spec.from_, zone_of(trace, spec.timezone))
        trace = begun_at(trace, time, warm=spec.warm)
    return without_requests(trace) if spec.ignore_constraints else trace


def _bound(trace: Workload, platform: Platform, texts: tuple[str, ...]) -> Workload:
    """Return a workload whose jobs are bound to pools of a machine by their partitions."""
    bound: dict[str, tuple[str, ...]] = {}
    with said_of("--partition-pools"):
        for text in texts:
            partition, sign, pools = text.partition("=")
            names = tuple(pools.split("|"))
            if not (partition and sign) or "" in names or partition in bound:
                expected = "PARTITION=POOL or PARTITION=POOL|POOL, each partition once"
                raise InputError("partitions cannot be bound to pools so", expected=expected, found=f"'{text}'")
            for name in names:
                platform.pool_units(name)
            bound[partition] = names
        return with_pools(trace, bound)
