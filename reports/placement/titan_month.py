"""Simulate a month of Titan under the policies of Zimmer et al., 2018.

See docs/reference/placing.md. The paper is "GPU Age-Aware Scheduling to Improve the Reliability of Leadership Jobs on
Titan". The jobs are ``titan-month``, the scheduler is ``titan-bins`` (bins of table I, two reservations), the machine
is ``titan``. Stable GPUs come from the lifetimes of Titan's GPUs, or are drawn.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.description import NodeGroup, Platform
from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.platforms.node_rows import with_node_rows
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.units.indices import numbers
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import RunOptions, run_in_process
from pipistrelle.runs.inputs.named import load_platform
from pipistrelle.runs.inputs.node_table import load_node_rows
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.traces.resilience import Resilience
from pipistrelle.traces.workload import Workload

Bools = NDArray[np.bool_]
Ints = NDArray[np.intp]
Attempt = tuple[Job, float, float, Ints]

HOUR: Final = 3600.0
WEEK: Final = 168.0
#: length of a run (s)
MONTH: Final = 30 * 86400.0
#: minimum number of nodes of a leadership job
LEADERSHIP: Final = 3750
#: {bucket of job sizes: lower and upper bound as shares of the machine}
BUCKETS: Final = {"Bin20": (0.2, 0.4), "Bin40": (0.4, 0.6), "Bin60": (0.6, 1.0)}
#: failures per node and hour on (stable, other) nodes, by table II: 1 per day on 9,500 new GPUs, 5 on 9,188 old ones
TABLE_II: Final = (1 / 24 / 9500, 5 / 24 / 9188)
#: downtime of a failed node (s)
REPAIR: Final = 2 * HOUR
#: every job writes a checkpoint each hour; writing takes no time
CHECKPOINT: Final = Resilience("checkpoint", HOUR)
#: seeds of the random failures, one per simulated month
DRAWS: Final = tuple(range(1, 13))
CPU_ONLY: Final = "accounts=climate,engineering"
#: {policy: options of its placement}
CASES: Final[dict[str, dict[str, Any]]] = {
    "DE16, base": {"dual-ended": "nodes<=16"},
    "DE16, reordered": {"dual-ended": "nodes<=16", "age-aware": True},
    "Bin20Bin60, base": {"dual-ended": "nodes<3750"},
    "Bin20Bin60, reordered": {"dual-ended": "nodes<3750", "age-aware": True},
    "DE16 + CPU-only, base": {"dual-ended": f"nodes<=16 or {CPU_ONLY}"},
    "DE16 + CPU-only, reordered": {"dual-ended": f"nodes<=16 or {CPU_ONLY}", "age-aware": True},
}

#: the policy without dual-ended placement
FIRST_FIT: Final = "first fit"
_OPTIONS: Final[dict[str, dict[str, Any]]] = {**CASES, FIRST_FIT: {}}


@dataclass
class Month:
    """The metrics of a simulated month.

    Hours are node-hours until the end of the month.
    """

    utilisation: float
    #: per leadership job that ran: nodes, stable nodes, hours, mean hops, and whether it uses GPUs
    nodes: Ints
    stable: Ints
    hours: NDArray[np.float64]
    hops: NDArray[np.float64]
    gpu: Bools
    #: node-hours of all jobs on (stable, other) nodes
    delivered: tuple[float, float]
    #: number of failures that struck a (leadership, other) job
    struck: tuple[int, int]
    #: hours during which jobs held each node, shape (nodes,)
    held: NDArray[np.float64]

    @property
    def stable_hours(self) -> float:
        """Return the stable node-hours of leadership jobs."""
        return float((self.stable * self.hours).sum())

    @property
    def gpu_stable_hours(self) -> float:
        """Return the stable node-hours of leadership jobs that use GPUs."""
        return float((self.stable * self.hours)[self.gpu].sum())

    @property
    def leadership_hours(self) -> float:
        """Return the node-hours of leadership jobs."""
        return float((self.nodes * self.hours).sum())

    @property
    def mean_hops(self) -> float:
        """Return the mean hops between two nodes of a job, averaged over leadership jobs."""
        return float(self.hops.mean())

    def stable_nodes(self, bucket: str, machine: int) -> tuple[float, int, int]:
        """Return mean, minimum and maximum of the stable nodes per job in a size bin.

        ``machine`` is the number of nodes of the machine. A bin is a range of shares of this number.
        """
        low, high = BUCKETS[bucket]
        found = self.stable[(self.nodes > low * machine) & (self.nodes <= high * machine)]
        return float(found.mean()), int(found.min()), int(found.max())


@dataclass
class Watch(Observer):
    """An observer that records when and on which nodes each job ran."""

    #: (job, start, end (s), nodes) of all attempts that ran
    attempts: list[Attempt] = field(default_factory=list)
    _running: dict[str, tuple[Job, float, Ints]] = field(default_factory=dict)

    def started(self, now: float, job: Job) -> None:
        """Record the start of a job."""
        self._running[job.id] = job, now, numbers(job.alloc)

    def ended(self, now: float, job: Job) -> None:
        """Record when and on which nodes a job ran."""
        if job.id in self._running:
            _, start, nodes = self._running.pop(job.id)
            self.attempts.append((job, start, now, nodes))

    def close(self, now: float) -> None:
        """Record the jobs that are still running at the end."""
        for job, start, nodes in self._running.values():
            self.attempts.append((job, start, now, nodes))
        self._running.clear()


def failure_share(leadership: Sequence[float], delivered: Sequence[float], rates: Sequence[float]) -> float:
    """Return the share of failures that strike leadership jobs.

    Args:
        leadership, delivered: node-hours of leadership jobs, and of all jobs, on each kind of nodes.
        rates: failures per node-hour of each kind of nodes.
    """
    own = sum(hours * rate for hours, rate in zip(leadership, rates, strict=True))
    return own / sum(hours * rate for hours, rate in zip(delivered, rates, strict=True))


def paper_share(stable_nodes: float, rates: Sequence[float], *, hours: float = 0.55, more: float = 1 / 3) -> float:
    """Return the leadership jobs' share of the failures.

    It is computed from the paper's numbers.

    Args:
        stable_nodes: the share of stable nodes in the machine.
        rates: failures per node-hour of stable nodes and of other nodes.
        hours: the leadership jobs' share of all node-hours.
        more: by what share the policy increases their hours on stable nodes, compared with random placement.
    """
    stable = (1 + more) * hours * stable_nodes
    return failure_share((stable, hours - stable), (stable_nodes, 1 - stable_nodes), rates)


def interval(share: float, count: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of an observed share of ``count`` failures."""
    width = 1.96 * math.sqrt(share * (1 - share) / count)
    return share - width, share + width


def machine_of(lives: str, date: str) -> Platform:
    """Return Titan with the GPUs that were in service on a date.

    ``lives`` is the path of the log of GPUs.
    """
    return with_node_rows(load_platform("titan"), load_node_rows(f"{lives},at={date}"))


def drawn_machine(stable: int, seed: int) -> Platform:
    """Return Titan with ``stable`` randomly drawn stable nodes."""
    titan = load_platform("titan")
    rng = np.random.Generator(np.random.PCG64(seed))
    chosen = NodeSet.of(np.sort(rng.choice(titan.units, stable, replace=False)).tolist())
    groups = (
        NodeGroup(nodes=f"0-{titan.units - 1}", node_class="old"),
        NodeGroup(nodes=str(chosen), node_class="stable"),
    )
    return msgspec.structs.replace(titan, groups=(*(titan.groups or ()), *groups))


def drawn_outages(stable: Bools, rates: tuple[float, float], seed: int, horizon: float = MONTH) -> Outages:
    """Draw failures of single nodes.

    Args:
        stable: whether each node is stable, shape (nodes,).
        rates: failures per hour of a stable node and of any other node.
        horizon: until when failures are drawn (s).
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    outages = []
    for kind, rate in zip((stable, ~stable), rates, strict=True):
        for node in np.flatnonzero(kind).tolist():
            time = rng.exponential(HOUR / rate)
            while time < horizon:
                outages.append(Outage(node, time, time + REPAIR, "GPU"))
                time += REPAIR + rng.exponential(HOUR / rate)
    return Outages.of(outages)


def month(platform: Platform, jobs: Workload, case: str, outages: Outages | None = None) -> Month:
    """Simulate the month under the policy ``case``.

    Jobs on failed nodes resume from a checkpoint.
    """
    policy = make_policy("titan-bins", placement_options={"node-order": "alps", **_OPTIONS[case]})
    watch = Watch()
    happens = None if outages is None else Reliability(outages=outages, resilience=CHECKPOINT)
    spec = RunSpec(strict=True, failures=("none",), until=f"{MONTH!r}s")
    options = RunOptions(observers=[watch])
    run_in_process(jobs, policy, platform=platform, reliability=happens, spec=spec, options=options)
    watch.close(MONTH)
    return measured(watch.attempts, Machine(platform.units, platform.info), jobs, outages)


def _number(job: Job) -> str:
    """Return the workload's id of a job.

    It is the same for all attempts of the job.
    """
    return job.id.partition("!")[2].partition("#")[0]


def measured(attempts: list[Attempt], machine: Machine, jobs: Workload, outages: Outages | None) -> Month:
    """Return the metrics of a month from the attempts that ran."""
    stable, topology = machine.nodes.stable, machine.topology
    assert stable is not None
    hours = np.array([end - start for _, start, end, _ in attempts]) / HOUR
    sizes = np.array([len(nodes) for *_, nodes in attempts])
    stable_nodes = np.array([int(stable[nodes].sum()) for *_, nodes in attempts])
    large = np.flatnonzero(sizes >= LEADERSHIP)
    hops = np.array([topology.mean_hops(attempts[at][3]) for at in large])
    accounts = dict(zip(jobs.ids, jobs.labels["account"], strict=True))
    cpu_only = CPU_ONLY.partition("=")[2].split(",")
    gpu = np.array([accounts[_number(attempts[at][0])] not in cpu_only for at in large])
    delivered = float((stable_nodes * hours).sum()), float(((sizes - stable_nodes) * hours).sum())
    held = np.zeros(len(stable))
    for (*_, nodes), length in zip(attempts, hours.tolist(), strict=True):
        held[nodes] += length
    struck = [0, 0]
    if outages is not None:
        starts = np.array([start for _, start, _, _ in attempts])
        ends = np.array([end for _, _, end, _ in attempts])
        for node, down in zip(outages.node.tolist(), outages.down.tolist(), strict=True):
            for at in np.flatnonzero((starts < down) & (down <= ends)):
                if node in attempts[at][3]:
                    struck[0 if sizes[at] >= LEADERSHIP else 1] += 1
    return Month(
        sum(delivered) / (machine.units * MONTH / HOUR),
        sizes[large],
        stable_nodes[large],
        hours[large],
        hops,
        gpu,
        delivered,
        (struck[0], struck[1]),
        held,
    )


def failures(
    platform: Platform, jobs: Workload, case: str, stable: Bools, draws: Sequence[int] = DRAWS
) -> tuple[float, int, float]:
    """Simulate the month under the policy ``case`` several times.

    Each simulation has a seed of the failures of its own.

    Args:
        stable: whether each node is stable, shape (nodes,).
        draws: the seeds.

    Returns:
        The leadership jobs' share of the failures, the number of all failures, and the share that `failure_share`
        expects.
    """
    runs = [month(platform, jobs, case, drawn_outages(stable, TABLE_II, seed)) for seed in draws]
    struck = [sum(one.struck[kind] for one in runs) for kind in (0, 1)]
    on_stable = sum(one.stable_hours for one in runs)
    own = on_stable, sum(one.leadership_hours for one in runs) - on_stable
    every = [sum(one.delivered[kind] for one in runs) for kind in (0, 1)]
    return struck[0] / sum(struck), sum(struck), failure_share(own, every, TABLE_II)
