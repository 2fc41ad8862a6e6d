"""Everything that a run needs except its scheduler."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import TYPE_CHECKING

import numpy as np

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.fields import Feature
from pipistrelle.protocol.units.indices import numbers
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.dependencies import Condition
from pipistrelle.server.engine.lives import LimitChecks
from pipistrelle.server.errors import SetupError
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.setup.conditions import conditions_of, dependency_remarks, first_of
from pipistrelle.server.setup.requests import UNMET, settle_requests
from pipistrelle.server.setup.resilience import check_resilience, resiliences_of
from pipistrelle.server.setup.shared_requests import ignored_requests, sized_for_nodes
from pipistrelle.server.setup.whole_nodes import needed_features
from pipistrelle.traces.batsim.events import ExternalEvent
from pipistrelle.traces.clean import NO_REQUEST, REQUEST_HINT, clean, lacks_requests, with_cancellations
from pipistrelle.traces.logs.labels import named_column
from pipistrelle.traces.profiles import Composed, communicates
from pipistrelle.traces.resilience import NONE, Resilience
from pipistrelle.traces.workload import CANCELLED_AFTER, Workload

if TYPE_CHECKING:
    from pipistrelle.platforms.simgrid.platform_file import SimGridPlatform


@dataclass(frozen=True, slots=True)
class BatsimOptions:
    """Batsim's options that change the simulation or the messages; all off by default.

    Attributes:
        dynamic_jobs: whether a scheduler may register jobs and profiles, until its ``registration_finished``.
        acknowledge_dynamic_jobs: whether registered jobs are announced with JOB_SUBMITTED.
        profile_reuse: whether registered jobs may use a workload's profile after all other jobs with it have ended.
        forward_profiles: whether JOB_SUBMITTED has the job's profile.
        forward_unknown_events: whether events of unknown types are sent to the scheduler.
        compute_sharing: whether several jobs may run on one host.
        bandwidth: what a host can send or receive (byte/s); None: profiles that communicate are rejected.
    """

    dynamic_jobs: bool = False
    acknowledge_dynamic_jobs: bool = False
    profile_reuse: bool = False
    forward_profiles: bool = False
    forward_unknown_events: bool = False
    compute_sharing: bool = False
    energy: bool = False
    sched_config: str = ""
    events: tuple[ExternalEvent, ...] = ()
    bandwidth: float | None = None


class Dispersion:
    """Slowdown of jobs on distant nodes: the runtime factor is 1 + share * h / H.

    h is the mean number of hops between two nodes of the job, and H the mean for the whole machine. A job spread over
    the whole machine takes longer by ``share``. A job on one router's nodes takes no longer.

    Raises SetupError if the share is not above 0, or if all nodes are zero hops apart.
    """

    def __init__(self, platform: Platform, share: float) -> None:
        if not (isfinite(share) and share > 0):
            raise SetupError(
                "a share of the runtime is not valid", where="--dispersion", expected="above 0", found=f"{share}"
            )
        self.share = share
        machine = Machine(platform.units, platform.info)
        self._topology, self._numbering = machine.topology, machine.numbering
        most = self._topology.mean_hops(np.arange(len(machine.nodes), dtype=np.intp))
        if not most:
            raise SetupError(
                "all nodes are zero hops apart, so that dispersion has no effect",
                where="--dispersion",
                expected="a platform with a [topology]",
                found=f"{platform.name}, of kind '{self._topology.kind}'",
            )
        self._each_hop = share / most

    def factor(self, units: NodeSet) -> float:
        """Return the factor on the runtime of a job that holds these units, at least 1."""
        return 1.0 + self._each_hop * self._topology.mean_hops(numbers(self._numbering.nodes_of(units)))


@dataclass(frozen=True, slots=True)
class Setup:
    """Everything that a run needs except its scheduler.

    Attributes:
        workloads: {prefix of the job ids: the jobs that can run}.
        dropped: {reason: number of jobs that cannot run}.
        machine: the machine's hosts, if known; needed if hosts decide how long jobs take.
        batsim: Batsim's options; None: the native dialect.
        reliability: failures, and the options for jobs that lose nodes; None: no failures.
        conditions: {job id: its dependencies}.
        resiliences: {job id: its own resilience options}.
        remarks: warnings for the user.
        until: horizon (s): nothing happens at or after it.
        dispersion: slowdown of jobs on distant nodes; None: none.
        checks: when walltimes are checked; None: a job is killed at its walltime.
        named: whether the table of jobs has the names of jobs and of their nodes.
    """

    platform: Platform
    workloads: dict[str, Workload]
    dropped: dict[str, int]
    strict: bool = False
    machine: "SimGridPlatform | None" = None
    batsim: BatsimOptions | None = None
    reliability: Reliability | None = None
    conditions: dict[str, tuple[Condition, ...]] = field(default_factory=dict)
    resiliences: dict[str, Resilience] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    until: float = inf
    queue_lengths: bool = False
    dispersion: Dispersion | None = None
    checks: LimitChecks | None = None
    named: bool = False

    @classmethod
    def of(
        cls,
        machine: "Platform | SimGridPlatform",
        *workloads: Workload,
        strict: bool = False,
        batsim: BatsimOptions | None = None,
        reliability: Reliability | None = None,
    ) -> "Setup":
        """Return the setup of a run; see `steady` and `with_reliability`."""
        return cls.steady(machine, *workloads, strict=strict, batsim=batsim).with_reliability(reliability)

    @classmethod
    def steady(
        cls,
        machine: "Platform | SimGridPlatform",
        *workloads: Workload,
        strict: bool = False,
        batsim: BatsimOptions | None = None,
        cancellations: bool = False,
    ) -> "Setup":
        """Return the setup of a run on a machine that never fails.

        Jobs that cannot run are dropped. In Batsim's dialect, jobs larger than the machine are submitted nevertheless,
        as in Batsim. With ``cancellations``, jobs that were cancelled while queued are submitted, and leave the queue
        at the recorded time. Raise SetupError if the platform, the workloads and the options do not fit together.
        """
        hosts = None if isinstance(machine, Platform) else machine
        platform = machine if isinstance(machine, Platform) else machine.to_platform()
        if batsim is not None and platform.shares_nodes:
            raise SetupError(
                "Batsim's protocol cannot say what jobs take of nodes with cores, memory and GPUs",
                where=f"platform {platform.name}",
                expected="a platform without 'resources'",
                hint="Use the native dialect.",
            )
        kept: dict[str, Workload] = {}
        dropped: dict[str, int] = {}
        remarks: list[str] = []
        for number, workload in enumerate(workloads):
            if lacks_requests(workload):
                raise SetupError(
                    f"{NO_REQUEST}, and schedulers need them",
                    where=workload.source,
                    expected="field 9 (SWF), walltime (JSON)",
                    hint=f"{REQUEST_HINT}.",
                )
            _refuse_exact_starts(workload)
            size = None if batsim is not None else platform.units
            # A Batsim workload follows Batsim's rules in either dialect.
            own = workload.job_json is not None
            cleaned, left_out = clean(
                sized_for_nodes(with_cancellations(workload) if cancellations else workload, platform),
                size,
                ids_as_text=own,
            )
            remarks += ignored_requests(cleaned, platform)
            cleaned, unmet, said = settle_requests(cleaned, platform)
            if unmet:
                left_out[UNMET] = unmet
            remarks += said
            kept[f"w{number}"] = _as_batsim(cleaned) if own else cleaned
            for reason, count in left_out.items():
                dropped[reason] = dropped.get(reason, 0) + count
        remarks += [*([] if batsim is not None else _class_remarks(platform, kept)), *dependency_remarks(kept)]
        setup = cls(
            platform,
            kept,
            dropped,
            strict,
            hosts,
            batsim,
            None,
            conditions_of(kept),
            resiliences_of(kept),
            tuple(remarks),
        )
        setup._check_work()
        return setup

    def with_reliability(self, reliability: Reliability | None) -> "Setup":
        """Return this setup with failures.

        Raise SetupError if its jobs do not support them.
        """
        if reliability is None:
            if not self.resiliences:
                return self
            reliability = Reliability()
        said = check_resilience(reliability, self.resiliences, self.platform, self.workloads)
        setup = replace(self, reliability=reliability, remarks=(*self.remarks, *said))
        setup._check_reliability(reliability)
        return setup

    @property
    def jobs(self) -> int:
        """Number of jobs in all workloads together."""
        return sum(map(len, self.workloads.values()))

    @property
    def needed(self) -> dict[Feature, str]:
        """{feature: why it is needed}, for each feature that these jobs need."""
        return needed_features(self.platform, self.workloads)

    @property
    def cancels(self) -> bool:
        """Whether some jobs are cancelled while queued."""
        return any(CANCELLED_AFTER in workload.measures for workload in self.workloads.values())

    @property
    def name(self) -> str:
        """Names of the workloads, joined by "+"."""
        return "+".join(workload.name for workload in self.workloads.values()) or "no jobs"

    @property
    def epoch(self) -> float | None:
        """Unix time (s) of time 0 according to the first workload; None if unknown."""
        return next((workload.epoch for workload in self.workloads.values()), None)

    @property
    def timezone(self) -> str | None:
        """Name of the time zone according to the first workload; None if unknown."""
        return next((workload.timezone for workload in self.workloads.values()), None)

    @property
    def has_work(self) -> bool:
        """Whether simulated hosts decide how long any of the jobs takes.

        This depends on the job's profile.
        """
        return self.machine is not None and any(
            bool(np.isnan(workload.runtime).any()) or any(isinstance(profile, Composed) for profile in table.values())
            for workload in self.workloads.values()
            if (table := workload.table) is not None
        )

    def _check_work(self) -> None:
        can_send = self.batsim is not None and self.batsim.bandwidth is not None
        for workload in self.workloads.values():
            used = set(workload.profiles or ()) if workload.table is not None and not can_send else set()
            for name, profile in (workload.table or {}).items():
                if name in used and communicates(profile):
                    raise SetupError(
                        f"jobs of profile '{name}' communicate, but there is no bandwidth",
                        where=workload.source,
                        expected="a bandwidth, or profiles that only compute",
                        hint="Run it with 'pipistrelle-batsim --bandwidth BYTES'; links and routes are not simulated.",
                    )
            rows = np.flatnonzero(np.isnan(workload.runtime))
            if rows.size and self.machine is None:
                raise SetupError(
                    f"job {workload.ids[int(rows[0])]} computes, but the platform gives no speed of its nodes",
                    where=workload.source,
                    expected="hosts with a speed",
                    found=f"platform '{self.platform.name}'",
                    hint="Use a platform in SimGrid's XML with --platform.",
                )

    def _check_reliability(self, reliability: Reliability) -> None:
        if self.batsim is not None and self.batsim.compute_sharing:
            raise SetupError("nodes shared by several jobs cannot fail", hint="Leave out --enable-compute-sharing.")
        if self.has_work and {reliability.resilience, *self.resiliences.values()} != {NONE}:
            raise SetupError(
                "jobs with work for hosts can have no dumps and no spares",
                hint="With their nodes they lose all work: leave out --checkpoint, --spares and --resilience.",
            )


def _class_remarks(platform: Platform, workloads: Mapping[str, Workload]) -> list[str]:
    classes = [one.name for one in platform.classes]
    counts: Counter[str] = Counter()
    for workload in workloads.values():
        counts.update(named_column(workload, "queue") or [""] * len(workload))
    if not classes or not counts:
        return []
    others = sorted(counts.keys() - {"", *classes})
    if counts.keys().isdisjoint(classes):
        queues = f"their queues are {first_of(others)}" if others else "they name no queue"
        return [f"no job is in a class of {platform.name} ({first_of(classes)}), so no limits apply: {queues}"]
    if not others:
        return []
    count = sum(counts[name] for name in others)
    return [
        f"{count:,} job{'s are' if count > 1 else ' is'} in queues that are no class of {platform.name}, without "
        f"limits: {first_of(others)}"
    ]


def _as_batsim(workload: Workload) -> Workload:
    """Let jobs whose runtime equals their walltime be killed, as in Batsim.

    They are killed at the walltime.
    """
    exact = workload.runtime == workload.walltime
    return replace(workload, runtime=np.where(exact, np.nextafter(workload.runtime, np.inf), workload.runtime))


def _refuse_exact_starts(workload: Workload) -> None:
    if "exact_wait" not in workload.measures:
        return
    from pipistrelle.traces.logs.haizea import RESERVED  # the only log with such jobs

    for row in np.flatnonzero(workload.measures["exact_wait"] >= 0).tolist():
        start = float(workload.submit[row] + workload.measures["exact_wait"][row])
        raise SetupError(
            f"job {workload.ids[row]} must start at {start:,.6g} s exactly, which no scheduler can know",
            where=workload.source,
            expected="jobs that may start at any time",
            hint=f"Remove such jobs with --transform 'filter --queue {RESERVED} --invert' or 'workload filter'.",
        )
