"""What a run consists of, before a scheduler is there."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import TYPE_CHECKING

import numpy as np

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.units.indices import numbers
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.dependencies import Condition
from pipistrelle.server.errors import SetupError
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.setup.conditions import conditions_of, dependency_remarks, first_of
from pipistrelle.server.setup.requests import UNMET, settle_requests
from pipistrelle.server.setup.resilience import check_resilience, resiliences_of
from pipistrelle.traces.batsim.events import ExternalEvent
from pipistrelle.traces.clean import NO_REQUEST, REQUEST_HINT, clean, lacks_requests, with_cancellations
from pipistrelle.traces.logs.haizea import RESERVED
from pipistrelle.traces.logs.labels import named_column
from pipistrelle.traces.profiles import Composed, communicates
from pipistrelle.traces.resilience import NONE, Resilience
from pipistrelle.traces.workload import CANCELLED_AFTER, Workload

if TYPE_CHECKING:
    from pipistrelle.platforms.simgrid.platform_file import SimGridPlatform


@dataclass(frozen=True, slots=True)
class BatsimOptions:
    """Batsim's options that change what is simulated or what a scheduler is told; all are off by default.

    Parameters
    ----------
    dynamic_jobs
        whether a scheduler may register jobs and profiles; the run then ends only after it has said
        ``registration_finished``.
    acknowledge_dynamic_jobs
        whether a registered job comes back as JOB_SUBMITTED.
    profile_reuse
        whether profiles of a workload may be used by registered jobs after their own jobs are gone.
    forward_profiles
        whether JOB_SUBMITTED carries the job's profile.
    forward_unknown_events
        whether events of unknown types, from the events files, are told to the scheduler.
    compute_sharing
        whether several jobs may run on one host at a time.
    energy
        whether the energy of the hosts is metered.
    sched_config
        free text for the scheduler.
    events
        what happens from outside, by time.
    bandwidth
        bytes per second that a host can send or receive; None: profiles that communicate are refused.
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
    """The rule that a job takes its runtime times 1 + share * h / H.

    h is the mean of hops over all pairs of the job's nodes, H that of all nodes of the machine: a job that is spread
    like the machine takes ``share`` longer, one on the nodes of a single router no longer.

    Parameters
    ----------
    platform
        the machine.
    share
        above 0.

    Raises
    ------
    SetupError
        if the share is out of range, or no two nodes of the machine are apart.
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
                "nodes are no hops apart, so that no job takes longer where it is",
                where="--dispersion",
                expected="a platform with a [topology]",
                found=f"{platform.name}, of kind '{self._topology.kind}'",
            )
        self._each_hop = share / most

    def factor(self, units: NodeSet) -> float:
        """Return by what the runtime of a job on these units is multiplied, 1 at least."""
        return 1.0 + self._each_hop * self._topology.mean_hops(numbers(self._numbering.nodes_of(units)))


@dataclass(frozen=True, slots=True)
class Setup:
    """What a run needs to know before a scheduler is there.

    Parameters
    ----------
    platform
        the machine as groups of units.
    workloads
        the jobs that can run on it: prefix of their ids and the trace they come from.
    dropped
        the counts of the jobs that cannot, by reason.
    strict
        whether an illegal decision ends the run.
    machine
        the machine as single hosts, where it is known as that; jobs whose hosts decide how long they take need it.
    batsim
        options of Batsim's way of running; None for the native dialect.
    reliability
        what fails, and how jobs live with it; None: nothing does.
    conditions
        what jobs wait for, by their ids with prefix.
    resiliences
        how single jobs meet failures, by their ids with prefix, where the workload says it.
    remarks
        what a user should be told of before the run.
    until
        the horizon in seconds: nothing happens then or later.
    queue_lengths
        whether the queue's length over time is among the outputs.
    dispersion
        how much longer jobs take on nodes that are far apart; None: no longer.
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

    @classmethod
    def of(
        cls,
        machine: "Platform | SimGridPlatform",
        *workloads: Workload,
        strict: bool = False,
        batsim: BatsimOptions | None = None,
        reliability: Reliability | None = None,
    ) -> "Setup":
        """Return the setup of traces as they were read, with what happens to the machine.

        Raises
        ------
        SetupError
            as of `steady` and `with_reliability`.
        """
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
        """Return the setup of traces on a machine that never fails: jobs that cannot run are dropped and counted.

        With ``cancellations`` jobs stay that were cancelled while they waited: they leave the queue then.

        Batsim submits jobs that are larger than the machine, too, and lets its scheduler reject them; so do we in its
        dialect.

        Raises
        ------
        SetupError
            when jobs need to know what the machine does not say.
        """
        hosts = None if isinstance(machine, Platform) else machine
        platform = machine if isinstance(machine, Platform) else machine.to_platform()
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
            # A workload of Batsim's follows Batsim's rules, under either dialect.
            own = workload.job_json is not None
            cleaned, left_out = clean(
                with_cancellations(workload) if cancellations else workload, size, ids_as_text=own
            )
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
        """Return this steady setup with what happens to the machine.

        Raises
        ------
        SetupError
            when jobs cannot meet failures as they are said to.
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
        """The number of jobs in all workloads."""
        return sum(map(len, self.workloads.values()))

    @property
    def cancels(self) -> bool:
        """Whether jobs of it are cancelled while they wait."""
        return any(CANCELLED_AFTER in workload.measures for workload in self.workloads.values())

    @property
    def name(self) -> str:
        """What the workloads are called."""
        return "+".join(workload.name for workload in self.workloads.values()) or "no jobs"

    @property
    def epoch(self) -> float | None:
        """The Unix time (s) of time 0, as the first workload says; None if it does not."""
        return next((workload.epoch for workload in self.workloads.values()), None)

    @property
    def timezone(self) -> str | None:
        """The name of the machine's time zone, as the first workload says; None if it does not."""
        return next((workload.timezone for workload in self.workloads.values()), None)

    @property
    def has_work(self) -> bool:
        """Whether some job has work for hosts to do: a profile that computes, or one composed of parts."""
        return self.machine is not None and any(
            bool(np.isnan(workload.runtime).any()) or any(isinstance(profile, Composed) for profile in table.values())
            for workload in self.workloads.values()
            if (table := workload.table) is not None
        )

    def _check_work(self) -> None:
        """Raise SetupError if some job cannot do its work here."""
        can_send = self.batsim is not None and self.batsim.bandwidth is not None
        for workload in self.workloads.values():
            used = set(workload.profiles or ()) if workload.table is not None and not can_send else set()
            for name, profile in (workload.table or {}).items():
                if name in used and communicates(profile):
                    raise SetupError(
                        f"jobs of profile '{name}' send bytes to each other, but how fast they can is not given",
                        where=workload.source,
                        expected="a bandwidth, or profiles that only compute",
                        hint="Run it with 'pipistrelle batsim --bandwidth BYTES'; links and routes are not followed.",
                    )
            rows = np.flatnonzero(np.isnan(workload.runtime))
            if rows.size and self.machine is None:
                raise SetupError(
                    f"job {workload.ids[int(rows[0])]} computes, but the platform does not say how fast its nodes are",
                    where=workload.source,
                    expected="hosts with a speed",
                    found=f"platform '{self.platform.name}'",
                    hint="Name a platform in SimGrid's XML with --platform.",
                )

    def _check_reliability(self, reliability: Reliability) -> None:
        """Raise SetupError if jobs cannot meet failures here as they are said to."""
        if self.batsim is not None and self.batsim.compute_sharing:
            raise SetupError("nodes that several jobs share cannot fail", hint="Leave out --enable-compute-sharing.")
        if self.has_work and {reliability.resilience, *self.resiliences.values()} != {NONE}:
            raise SetupError(
                "jobs whose hosts decide how long they take have no dumps and no spares",
                hint="They lose all their work with their nodes: leave out --checkpoint, --spares and --resilience.",
            )


def _class_remarks(platform: Platform, workloads: Mapping[str, Workload]) -> list[str]:
    """Return what is to be said of jobs that a machine's classes grant nothing and limit nothing."""
    classes = [one.name for one in platform.classes]
    counts: Counter[str] = Counter()
    for workload in workloads.values():
        counts.update(named_column(workload, "queue") or [""] * len(workload))
    if not classes or not counts:
        return []
    others = sorted(counts.keys() - {"", *classes})
    if counts.keys().isdisjoint(classes):
        queues = f"their queues are {first_of(others)}" if others else "they name no queue"
        return [f"no job is of a class of {platform.name} ({first_of(classes)}), so its limits hold for none: {queues}"]
    if not others:
        return []
    count = sum(counts[name] for name in others)
    return [
        f"{count:,} job{'s are' if count > 1 else ' is'} of queues that are no class of {platform.name}, so without "
        f"its limits: {first_of(others)}"
    ]


def _as_batsim(workload: Workload) -> Workload:
    """Return the workload with Batsim's rule for delays: one that takes exactly the walltime has reached it."""
    exact = workload.runtime == workload.walltime
    return replace(workload, runtime=np.where(exact, np.nextafter(workload.runtime, np.inf), workload.runtime))


def _refuse_exact_starts(workload: Workload) -> None:
    """Raise SetupError if a job must start at an exact time: a scheduler would start it when it suits."""
    for row in np.flatnonzero(workload.measures.get("exact_wait", np.empty(0)) >= 0).tolist():
        start = float(workload.submit[row] + workload.measures["exact_wait"][row])
        raise SetupError(
            f"job {workload.ids[row]} must start at {start:,.6g} s exactly, and no scheduler is told of that",
            where=workload.source,
            expected="jobs that may start at any time",
            hint=f"--transform 'filter --queue {RESERVED} --invert', or 'workload filter' before, leaves them out.",
        )
