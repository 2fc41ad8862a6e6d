"""The simulation setup of a run, made from the inputs that its description names."""

import dataclasses
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.base.errors import InputError, printable, quoted, said_of
from pipistrelle.protocol.base.lengths import parse_seconds
from pipistrelle.protocol.base.log import logger
from pipistrelle.runs.description.policy import SLURM
from pipistrelle.runs.description.reliability import has_coming_back, load_reliability
from pipistrelle.runs.description.spec import Decides, RunSpec
from pipistrelle.runs.inputs.named import begins_as_log, load_machine, load_workload, platform_for, units_remark
from pipistrelle.schedulers.catalogue.names import RECORDED, SLURMCTLD, SUFFIX, is_ours
from pipistrelle.schedulers.catalogue.registry import placement_of, preemption_of
from pipistrelle.schedulers.policy.interfaces import learn
from pipistrelle.server.engine.lives import LimitChecks
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.setup.conditions import kind_remarks, options_remarks
from pipistrelle.server.setup.recorded import starts_of
from pipistrelle.server.setup.requests import UNMET
from pipistrelle.server.setup.resilience import refuse_attempts
from pipistrelle.server.setup.setup import Dispersion, Setup
from pipistrelle.server.setup.whole_nodes import as_units
from pipistrelle.traces.clean import faults_text
from pipistrelle.traces.logs.labels import named_column
from pipistrelle.traces.requests import with_pools, without_requests
from pipistrelle.traces.workload import Workload

if TYPE_CHECKING:
    from pipistrelle.platforms.simgrid.platform_file import SimGridPlatform
#: how many workloads with machines a cache keeps, and how many setups and checks for each of them
_INPUTS_KEPT: Final = 2
_SETUPS_KEPT: Final = 256
#: minimum percentage of --scale-platform, because 1.03% is probably a slip for 1.03 or 103%
_LEAST_SHARE: Final = 0.1
#: the kinds of fields that determine the workload and the machine
_SHARED: Final = (Decides.INPUTS, Decides.DIALECT)
#: the default seed
_SEED: Final = RunSpec().seed
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Objects that replace inputs of a run's description.

    None means that the input is read from its file.

    Attributes:
        workload: the jobs, already read and transformed.
        machine: the machine, already scaled.
        reliability: failures and maintenance of the machine.
    """

    workload: Workload | None = None
    machine: "Platform | SimGridPlatform | None" = None
    reliability: Reliability | None = None


class SetupCache:
    """A cache of the inputs that several runs share; it logs each warning once.

    The cache key of an entry contains exactly the fields of the description on which the entry depends
    (`RunSpec.part`).

    Args:
        silent: log no warnings, because the inputs are unusual on purpose.
        given: returns the objects that replace inputs of a description, or None. It must return equal objects for equal
            descriptions.
    """

    def __init__(
        self, *, silent: bool = False, given: "Callable[[RunSpec], Inputs | None]" = lambda spec: None
    ) -> None:
        self._silent = silent
        self._given = given
        self._inputs: dict[str, _Shared] = {}
        #: warnings already logged
        self._told: set[str] = set()

    def shared(self, spec: RunSpec, given: Inputs | None = None) -> "_Shared":
        """Return a run's workload and machine from the cache, or from ``given`` objects."""

        def make() -> _Shared:
            part = spec.part(*_SHARED)
            return _Shared(part, load_inputs(part, self._given(part) if given is None else given))

        return make() if given is not None else _kept(self._inputs, spec.key(*_SHARED), _INPUTS_KEPT, make)

    def tell(self, remarks: Iterable[str]) -> None:
        """Log warnings that have not been logged yet."""
        for remark in remarks:
            if remark not in self._told and not self._silent:
                self._told.add(remark)
                logger().warning("{}", remark)


class _Shared:
    """A workload and a machine that several runs share, and the setups made from them."""

    def __init__(self, spec: RunSpec, inputs: "tuple[Workload, Platform | SimGridPlatform]") -> None:
        self._spec = spec
        self.trace, self.machine = inputs
        self._setups: dict[str, Setup] = {}
        #: keys of the setups and policies that passed the checks together
        self._checked: dict[str, None] = {}

    @cached_property
    def _steady(self) -> Setup:
        return _steady_setup(self._spec, self.trace, self.machine)

    @cached_property
    def _units(self) -> tuple[Platform, dict[str, Workload]] | None:
        return as_units(self._steady.platform, self._steady.workloads)

    def setup(self, spec: RunSpec, given: Reliability | None, tell: Callable[[list[str]], None]) -> Setup:
        """Check a run and return its setup without a horizon; pass warnings to ``tell``."""
        # Options for requeued jobs also depend on whether the policy preempts.
        kinds = (Decides.EVENTS, Decides.POLICY) if has_coming_back(spec) else (Decides.EVENTS,)
        # The seed may decide when outages end. Without outages, it only affects the failure streams.
        key = spec.key(*kinds) if spec.outages is None else spec.key(*kinds, Decides.SEED)

        def make() -> Setup:
            happens = load_reliability(spec.part(*kinds, Decides.SEED), self.machine, self.trace)
            return self._steady.with_reliability(happens)

        if given is not None:
            setup = self._steady.with_reliability(given)
        else:
            setup = _kept(self._setups, key, _SETUPS_KEPT, make)
            happens = setup.reliability
            if happens is not None and happens.failures is not None:
                described = {**happens.described, "seed": spec.seed}
                happens = dataclasses.replace(happens, seed=spec.seed, described=described)
                setup = dataclasses.replace(setup, reliability=happens)
            elif spec.outages is None and spec.seed != _SEED:
                make()  # rejects a seed that has no effect

        if self._units is not None and places_units(spec):
            platform, workloads = self._units
            setup = dataclasses.replace(setup, platform=platform, workloads=workloads)

        def check() -> None:
            _check_placement(spec, setup.platform)
            _check_recorded(spec, setup)
            _check_preemption(spec, setup)
            tell(_remarks_of(spec, self.trace, setup))

        _kept(self._checked, key + spec.key(Decides.POLICY), _SETUPS_KEPT, check)
        return setup


def load_setup(spec: RunSpec, given: Inputs | None = None, cache: SetupCache | None = None) -> Setup:
    """Return the simulation setup of a run, with all inputs read and checked.

    Doubtful inputs are logged as warnings.

    Args:
        given: objects that replace inputs of the description.
        cache: keeps inputs that several runs share; None: read everything.

    Raises:
        PipistrelleError: an input is wrong, or the inputs do not fit together.
    """
    if spec.batsim is None:
        cache = cache or SetupCache()
        shared = cache.shared(spec, given)
        return _limited(spec, shared.setup(spec, None if given is None else given.reliability, cache.tell))
    if given is not None:
        raise InputError("a Batsim-compatible run reads its inputs from files", expected="names of files")
    from pipistrelle.runs.description.batsim import load_batsim_setup  # most runs start without it

    return _limited(spec, load_batsim_setup(spec, spec.batsim, [load_jobs(spec, name) for name in spec.workload]))


def _kept(kept: dict[str, T], key: str, most: int, make: Callable[[], T]) -> T:
    """Return the value that the cache ``kept`` has for ``key``.

    If there is none, store the result of ``make``. Keep only the ``most`` values used most recently.
    """
    value = kept[key] = kept.pop(key) if key in kept else make()
    if len(kept) > most:
        del kept[next(iter(kept))]
    return value


def _limited(spec: RunSpec, setup: Setup) -> Setup:
    until = setup.until if spec.until is None else _horizon(spec.until, setup)
    dispersion = None if spec.dispersion is None else _dispersion(spec.dispersion, setup)
    return dataclasses.replace(
        setup, until=until, queue_lengths=spec.queue_lengths, dispersion=dispersion, checks=_checks(spec)
    )


def _checks(spec: RunSpec) -> LimitChecks | None:
    """Return when slurm and slurmctld check running jobs against walltimes.

    Return None for other schedulers.
    """
    if spec.scheduler not in (SLURM, SLURMCTLD):
        return None
    config = spec.slurm_cluster().config
    own = {one.name: one.over_time_limit for one in config.partitions if one.over_time_limit is not None}
    return LimitChecks(config.limit_check, config.start, config.over_time_limit, own)


def _dispersion(share: float, setup: Setup) -> Dispersion:
    """Return the rule by which a job runs longer if its nodes are far apart.

    Raise InputError if the machine or workload does not allow it.
    """
    if setup.has_work:
        raise InputError(
            "--dispersion does not support jobs whose run times depend on their hosts", where="--dispersion"
        )
    return Dispersion(setup.platform, share)


def _horizon(text: str, setup: Setup) -> float:
    """Parse the end of the run, a duration or a date, into seconds after time 0."""
    from pipistrelle.platforms.maintenance.dates import Calendar  # most runs have no horizon

    words = text.removeprefix("@").split()
    with said_of("--until"):
        if not words or words[0].count("-") < 2:
            return parse_seconds(" ".join(words), "time")
        calendar = Calendar(setup.epoch, setup.timezone)
        moment, used = calendar.read(words, "time")
        if used < len(words) or moment.seconds <= 0:
            raise InputError(
                "the end of the run is not a single date after time 0", expected=f"after {calendar.zero()}", found=text
            )
    return moment.seconds


def _scaled(machine: "Platform | SimGridPlatform", text: str) -> Platform:
    """Return a machine with its number of nodes scaled by a factor.

    Log a warning if host names are lost.
    """
    from pipistrelle.models.workloads.options import parse_factor  # most runs take the machine as it is

    with said_of("--scale-platform"):
        factor = parse_factor(text)
        if text.strip().endswith("%") and factor < _LEAST_SHARE:
            times = 100 * factor
            raise InputError(
                "the percentage leaves almost none of the nodes",
                expected=f"{100 * _LEAST_SHARE:g}% or more; 100% keeps all nodes",
                found=quoted(text),
                hint=f"For {times:g} times the nodes write {times:g} or {100 * times:g}%; for so few write {factor:g}.",
            )
        if not isinstance(machine, Platform):
            raise InputError("a platform of single hosts cannot be scaled", found="a platform in SimGrid's XML")
        if any(pool.names for pool in machine.pools):
            logger().warning("the platform {}, scaled by {:g}, has no names of nodes", machine.name, factor)
        if machine.topology or machine.groups:
            text = "the nodes of {} x {:g} have no locations, and all nodes of a pool are equal"
            logger().warning(text, machine.name, factor)
        return machine.scaled(factor)


def _with_table(machine: "Platform | SimGridPlatform", text: str) -> Platform:
    from pipistrelle.platforms.node_rows import with_node_rows  # rarely needed
    from pipistrelle.runs.inputs.node_table import load_node_rows

    if not isinstance(machine, Platform):
        what, found = "a table of nodes does not apply to single hosts", "a platform in SimGrid's XML"
        raise InputError(what, where="--node-table", found=found)
    return with_node_rows(machine, load_node_rows(text))


def load_inputs(spec: RunSpec, given: Inputs | None = None) -> "tuple[Workload, Platform | SimGridPlatform]":
    """Return a run's workload and machine.

    Inputs that are not given are read from files.
    """
    if spec.resumed is not None:
        raise InputError(
            "this run continued another run's snapshot under another policy, so it cannot be started again",
            where=printable(f"{spec.resumed.folder}/{spec.resumed.snapshot}"),
            hint="Use 'pipistrelle resume' with this snapshot, the policy and --out.",
        )
    trace, machine = (None, None) if given is None else (given.workload, given.machine)
    name = ""
    if trace is None:
        if len(spec.workload) != 1:
            raise InputError(
                "a run has one workload",
                expected="one ('pipistrelle-batsim' accepts several)",
                found=str(len(spec.workload)),
            )
        (name,) = spec.workload
        trace = load_jobs(spec, name)
    if machine is not None:
        return trace, machine
    machine = platform_for(trace, name) if spec.platform is None else load_machine(spec.platform, units=spec.units)
    if spec.platform is not None and _is_slurm(spec.platform):
        from pipistrelle.runs.slurm.files import read_slurm_files  # rarely needed
        from pipistrelle.runs.slurm.jobs import fitted, joint_classes

        assert isinstance(machine, Platform)
        trace, machine = joint_classes(fitted(trace, read_slurm_files(spec.platform), machine), machine)
    return trace, changed_machine(spec, machine)


def changed_machine(spec: RunSpec, machine: "Platform | SimGridPlatform") -> "Platform | SimGridPlatform":
    """Return a machine, changed as a run's description says.

    Raise PipistrelleError if the description does not suit the machine.
    """
    if spec.scale_platform is not None:
        machine = _scaled(machine, spec.scale_platform)
    if spec.node_table is not None:
        machine = _with_table(machine, spec.node_table)
    return machine


def _steady_setup(spec: RunSpec, trace: Workload, machine: "Platform | SimGridPlatform") -> Setup:
    if spec.dialect == "batsim":
        from pipistrelle.server.setup.setup import BatsimOptions  # most runs use Pipistrelle's own protocol

        batsim: BatsimOptions | None = BatsimOptions()
    else:
        batsim = None
    if spec.partition_pools:
        trace = _bound(trace, machine if isinstance(machine, Platform) else machine.to_platform(), spec.partition_pools)
    setup = Setup.steady(machine, trace, strict=spec.strict, batsim=batsim, cancellations=spec.cancellations == "keep")
    of_slurm = spec.platform is not None and _is_slurm(spec.platform)
    return dataclasses.replace(setup, named=True) if of_slurm else setup


def _is_slurm(platform: str) -> bool:
    """Return whether a platform is a slurm.conf.

    The readers are imported only for files.
    """
    if not os.path.isfile(platform):
        return False
    from pipistrelle.runs.slurm.files import is_slurm_file

    return is_slurm_file(platform)


def _is_resource_trace(platform: str) -> bool:
    """Return whether a platform is a Maui resource trace.

    The readers are imported only for files.
    """
    if not os.path.isfile(platform):
        return False
    from pipistrelle.traces.logs.maui_nodes import is_resource_trace

    return is_resource_trace(platform)


def _check_placement(spec: RunSpec, platform: Platform) -> None:
    if spec.asks_of_nodes:
        learn(spec.make_policy(warn=False, polls=False), Machine(platform.units, platform.info))


def places_units(spec: RunSpec) -> bool:
    """Return whether one-core nodes can be simulated as plain units.

    They can if the scheduler then decides the same. This is true of Pipistrelle's own schedulers, except Slurm's, if
    they place jobs on the lowest free nodes.
    """
    if not isinstance(spec.scheduler, str) or spec.scheduler in (SLURM, SLURMCTLD) or not is_ours(spec.scheduler):
        return False
    return (spec.placement or placement_of(spec.scheduler) or "lowest") == "lowest"


def _check_recorded(spec: RunSpec, setup: Setup) -> None:
    """Raise InputError if a run needs the recorded start times and the log lacks them."""
    if spec.scheduler != RECORDED:
        return
    if spec.dialect == "batsim":
        raise InputError("the batsim dialect cannot send the recorded starts of jobs", expected="native")
    for trace in setup.workloads.values():
        if len(trace) and bool(np.isnan(starts_of(trace)).all()):
            raise InputError(
                "the log does not give start times of its jobs",
                where=trace.source,
                expected="wait times (SWF's field 3), or start dates (sacct, PBS, Maui)",
                hint="Use another scheduler.",
            )


def _check_preemption(spec: RunSpec, setup: Setup) -> None:
    if spec.program is not None or spec.code is not None or not spec.may_preempt:
        return
    if spec.dialect == "batsim":
        raise InputError("the batsim dialect does not support preemption", expected="--dialect native")
    refuse_attempts(setup.workloads)


def _remarks_of(spec: RunSpec, trace: Workload, setup: Setup) -> list[str]:
    other_units = units_remark(trace, setup.platform, spec.units)
    remarks = [*([] if other_units is None else [other_units]), *_without_kinds(spec, setup)]
    if spec.scheduler == SLURM:  # slurmctld itself uses all options
        from pipistrelle.schedulers.slurm.files.submission import USED_OPTIONS  # most runs start without it

        remarks += options_remarks(setup.workloads, USED_OPTIONS)
    elif spec.program is None and spec.code is None:
        remarks += options_remarks(setup.workloads)
    if (left := setup.dropped.get(UNMET, 0)) and not setup.platform.shares_nodes:
        jobs = "1 job does" if left == 1 else f"{left:,} jobs do"
        remarks.append(
            f"{jobs} not run, because no nodes are as requested. To let all jobs run on any nodes, add "
            "--ignore-constraints"
        )
    if spec.cancellations == "keep" and not setup.cancels:
        remarks.append(f"--cancellations keep: no job of {trace.name} is known to have been cancelled while queued")
    options = None if not isinstance(spec.scheduler, str) or spec.program is not None else preemption_of(spec.scheduler)
    kind = spec.preempt_type or (None if options is None else options.type)
    label = {"qos": "qos", "partition_prio": "queue"}.get(kind or "")
    if label is not None and named_column(trace, label) is None:
        name = "QOS" if label == "qos" else "queue"
        remarks.append(f"no job of {trace.name} has a {name}, so none is preempted")
    if spec.config is not None or str(spec.scheduler).endswith(SUFFIX):
        from pipistrelle.runs.description.maui import maui_remarks  # most runs start without it

        remarks += maui_remarks(spec, setup.platform, trace)
    if not setup.jobs:
        remarks.append(f"no job of {trace.name} can run on {setup.platform.name}")
    return remarks


def _without_kinds(spec: RunSpec, setup: Setup) -> list[str]:
    """Return the warnings of a setup that apply to the scheduler.

    slurm and slurmctld support all kinds of dependencies. So the warning about kinds that schedulers ignore is left out
    for these two.
    """
    idle = kind_remarks(setup.workloads) if spec.scheduler in (SLURM, SLURMCTLD) else []
    return [said for said in setup.remarks if said not in idle]


def load_jobs(spec: RunSpec, name: str) -> Workload:
    """Read and transform a workload, or raise PipistrelleError."""
    units = spec.units
    if spec.platform is not None and _is_resource_trace(spec.platform) and not begins_as_log(name, spec.columns):
        units = "nodes"  # the option then applies only to the machine
    trace = load_workload(
        name, sort=spec.sort, units=units, timezone=spec.timezone, columns=spec.columns, strict=spec.strict
    )
    if (said := faults_text(trace)) is not None:
        logger().warning("{}", said)
    for said in trace.remarks:
        logger().warning("{}", said)
    return changed_jobs(spec, trace)


def changed_jobs(spec: RunSpec, trace: Workload) -> Workload:
    """Return a workload, changed as a run's description says.

    Raise PipistrelleError if the description does not suit the workload.
    """
    for step in spec.transform:
        trace = step.apply(trace)
    if spec.warm and spec.from_ is None:
        raise InputError("--warm requires --from DATE")
    if spec.from_ is not None:
        from pipistrelle.models.workloads.options import trace_time, zone_of  # most runs start with their log
        from pipistrelle.traces.transforms.start import begun_at

        with said_of("--from"):
            time = trace_time(trace, spec.from_, zone_of(trace, spec.timezone))
        trace = begun_at(trace, time, warm=spec.warm)
    return without_requests(trace) if spec.ignore_constraints else trace


def _bound(trace: Workload, platform: Platform, texts: tuple[str, ...]) -> Workload:
    bound: dict[str, tuple[str, ...]] = {}
    with said_of("--partition-pools"):
        for text in texts:
            partition, sign, pools = text.partition("=")
            names = tuple(pools.split("|"))
            if not (partition and sign) or "" in names or partition in bound:
                expected = "PARTITION=POOL or PARTITION=POOL|POOL, each partition once"
                raise InputError("a binding of partitions to pools is malformed", expected=expected, found=f"'{text}'")
            for name in names:
                platform.pool_units(name)
            bound[partition] = names
        return with_pools(trace, bound)
