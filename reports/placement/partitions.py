"""Compare job failures with and without partitions by reliability.

This follows Umamaheshwaran's thesis, chapter 5.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipistrelle.models.reliability.jobs import ReliabilityError
from pipistrelle.models.reliability.resources import described
from pipistrelle.models.samples.estimates import STUDENT_19_975, change_of_rates
from pipistrelle.models.workloads.class_jobs import generate_jobs
from pipistrelle.models.workloads.classes import WorkloadClasses
from pipistrelle.platforms.description import Platform, homogeneous
from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.platforms.topology.partitions import HOUR, Partition, first_partition, partition, partition_sizes
from pipistrelle.protocol.base.lengths import parse_seconds
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import RunOptions, run_in_process
from pipistrelle.schedulers.catalogue.parts import compose
from pipistrelle.schedulers.partitions.placement import PartitionOptions
from pipistrelle.schedulers.partitions.policy import PartitionedPolicy
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer, Reasons
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.traces.workload import Workload

Admission = Literal["queue", "block"]
#: table 5.2, {partition class: (node failures before, after, failed jobs before, after)}
PRINTED: Final = {
    "16384": (927, 783, 149, 126),
    "8192": (387, 305, 150, 119),
    "4096": (148, 161, 62, 68),
    "2048": (162, 172, 150, 160),
    "1024": (200, 403, 2103, 4237),
}
#: values in table 5.2: classes, platform, blocking, admission, hours between failures, hours of a failure
_OF_THESIS: Final = ("intrepid-classes", "intrepid", 0.0, "block", 1.0, 1.0)
_BATCHES: Final = 20


def drawn_outages(mttf: NDArray[np.float64], hours: float, seed: int, every: float, repair: float) -> Outages:
    """Draw one node failure per interval, with probability proportional to 1 / MTTF.

    Args:
        mttf: mean time to failure of each node, above 0, in any unit, shape (nodes,).
        hours: length of the simulated time.
        every, repair: time between failures, and downtime, in hours.

    Raises:
        ReliabilityError: if a mean time to failure is unknown or not above 0.
    """
    if not (mttf > 0).all():  # also true for NaN
        raise ReliabilityError(
            "the mean time to failure of a node is unknown",
            where="MTTF",
            expected="a value above zero for every node",
            hint="Name a platform whose nodes have mttf, or give --mttf.",
        )
    count = math.floor(hours / every)
    edges = np.cumsum(1.0 / mttf)
    draws = np.random.Generator(np.random.PCG64(seed)).random(count) * edges[-1]
    victims = np.minimum(np.searchsorted(edges, draws, side="right"), len(mttf) - 1)
    begins = np.arange(1, count + 1) * every * HOUR
    return Outages.of(
        [
            Outage(node, begin, begin + repair * HOUR)
            for node, begin in zip(victims.tolist(), begins.tolist(), strict=True)
        ]
    )


def closed_change(part: Partition, mttf: NDArray[np.float64]) -> float:
    """Return the expected relative change in a class's job failures.

    The class gets its own partition. It is the mean of 1 / MTTF over the partition's nodes, divided by the mean over
    all nodes, minus 1. All nodes are assumed to be equally busy.

    Args:
        part: the partition.
        mttf: mean time to failure of each node, shape (nodes,).
    """
    rates = 1.0 / mttf
    return float(rates[part.nodes].mean() / rates.mean()) - 1.0


class _Tally(NamedTuple):
    """Counts for a size class of jobs.

    They are its submitted, refused and failed jobs, and its unit-hours.
    """

    came: int = 0
    refused: int = 0
    failed: int = 0
    held: float = 0.0


class _Book(Observer):
    """An observer that counts submitted, refused and failed jobs for each size class."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = np.array(sizes)
        self.tallies = [_Tally() for _ in sizes]
        #: number of failures on nodes without job
        self.idle = 0
        #: per class: whether each job was refused, in the order of decisions
        self.fates: list[list[bool]] = [[] for _ in sizes]
        self._running: dict[str, tuple[int, NodeSet, float]] = {}

    def _of(self, job: Job) -> int:
        return int(np.searchsorted(self._sizes, job.size, side="left"))

    def _add(self, at: int, **more: float) -> None:
        tally = self.tallies[at]
        self.tallies[at] = tally._replace(**{name: getattr(tally, name) + value for name, value in more.items()})

    def submitted(self, now: float, job: Job) -> None:
        """Count a submitted job."""
        self._add(self._of(job), came=1)

    def started(self, now: float, job: Job) -> None:
        """Record the start of a job."""
        self.fates[self._of(job)].append(False)
        self._running[job.id] = self._of(job), job.alloc, now

    def ended(self, now: float, job: Job) -> None:
        """Count the unit-hours of a job that ran.

        If the job was rejected, count the rejection.
        """
        known = self._running.pop(job.id, None)
        if known is None:
            self._add(self._of(job), refused=1)
            self.fates[self._of(job)].append(True)
        else:
            at, alloc, start = known
            self._add(at, held=len(alloc) * (now - start) / HOUR)

    def went_down(self, now: float, nodes: NodeSet, units: NodeSet, planned: bool, why: Reasons) -> None:
        """Count as failed the jobs on the units that went down.

        Without such jobs, count an idle failure.
        """
        hit = [at for at, alloc, start in self._running.values() if start < now and not alloc.isdisjoint(units)]
        for at in hit:
            self._add(at, failed=1)
        self.idle += not hit


def _simulate(
    platform: Platform, jobs: Workload, policy: PartitionedPolicy, sizes: Sequence[int], outages: Outages | None = None
) -> _Book:
    """Simulate a run without requeuing failed jobs, and return the counts."""
    happens = None if outages is None else Reliability(outages=outages, requeue="never")
    book = _Book(sizes)
    spec, options = RunSpec(strict=True, failures=("none",)), RunOptions(observers=[book])
    run_in_process(jobs, policy, platform=platform, reliability=happens, spec=spec, options=options)
    return book


def compare(
    classes: WorkloadClasses,
    platform: Platform,
    *,
    seed: int = 1,
    duration: str | None = None,
    blocking: float = 0.0,
    admission: Admission = "block",
    backfill: str = "firstfit",
    every: float = 1.0,
    repair: float = 1.0,
) -> dict[str, Any]:
    """Compare job failures on random nodes with job failures in partitions.

    Both simulations have the same node failures. A job on a failed node fails and is not requeued. Partitions are made
    at time 0 from the known reliability of the nodes. Nodes inside a partition are also drawn at random.

    Args:
        platform: a machine with the mean time to failure of each node.
        seed: for jobs, outages and placement.
        duration: how long jobs are submitted and nodes fail; None: as in the classes.
        blocking: from 0 to 1; a partition has (1 - ``blocking``) times the mean number of units that its class uses.
        admission: with ``queue``, jobs wait for their partition; with ``block``, jobs that cannot start at once are
            rejected.
        backfill: the backfilling rule of both runs.
        every, repair: time between failures, and downtime, in hours.

    Raises:
        PipistrelleError: if a class is larger than the machine, an MTTF is unknown, or an argument is out of range.
    """
    demand = described(classes, platform.units)
    ranked = tuple(one.sizes for one in demand.classes)
    machine = Machine(platform.units, platform.info)
    mttf = machine.nodes.mttf / HOUR
    hours = (classes.seconds if duration is None else parse_seconds(duration, "duration")) / HOUR
    outages = drawn_outages(mttf, hours, seed, every, repair)
    jobs = generate_jobs(classes, seed, duration=duration)
    parts, extra = partition(partition_sizes(ranked, platform.units, blocking)[0], mttf, machine)
    books = []
    for known in ((), ranked):
        composed = compose(backfill=backfill, placement=f"random,seed={seed}")
        options = PartitionOptions(classes=known, blocking=blocking, admission=admission)
        policy = PartitionedPolicy(composed, options, follows=False)
        books.append(_simulate(platform, jobs, policy, [one.size for one in demand.classes], outages))
    begins = [first_partition(parts, at, one.size) for at, one in enumerate(demand.classes)]
    of_thesis = (classes.name, platform.name, blocking, admission, every, repair) == _OF_THESIS
    rows = []
    for place in [*range(len(parts)), None]:
        mine = [at for at, begin in enumerate(begins) if begin == place]
        row: dict[str, Any] = {
            "partition": None if place is None else place + 1,
            "classes": [demand.classes[at].name for at in mine],
            **_changes([_sum(book.tallies[at] for at in mine) for book in books]),
        }
        if place is not None:
            part, owner = parts[place], demand.classes[parts[place].owner].name
            row |= {"units": len(part.units), "mttf": part.mttf, "closed": closed_change(part, mttf)}
            row["printed"] = PRINTED.get(owner) if of_thesis else None
        rows.append(row)
    return {
        "name": classes.name,
        "platform": platform.name,
        "hours": hours,
        "seed": seed,
        "blocking": blocking,
        "admission": admission,
        "load": demand.load,
        "stable": demand.load < 1,
        "failures": len(outages),
        "extra": len(extra),
        "partitions": rows,
        "all": _changes([_sum(book.tallies) for book in books]),
        "idle": [book.idle for book in books],
        "utilisation": [_sum(book.tallies).held / (hours * platform.units) for book in books],
    }


def _sum(tallies: Iterable[_Tally]) -> _Tally:
    return _Tally(*map(sum, zip(_Tally(), *tallies, strict=True)))


def _changes(both: list[_Tally]) -> dict[str, Any]:
    """Return a class's counts in both simulations (random nodes, partitions).

    Also return the change in its failed jobs.
    """
    counts = {name: [getattr(one, name) for one in both] for name in _Tally._fields}
    found = change_of_rates(counts["failed"], counts["held"])
    return {**counts, "change": found.value, "low": found.low, "high": found.high}


class SimulatedLoss(NamedTuple):
    """The blocking probability of each job class, and the utilisation.

    Each probability has half the width of its 95 % confidence interval.
    """

    blocking: NDArray[np.float64]
    width: NDArray[np.float64]
    utilisation: float


def simulated_loss(classes: WorkloadClasses, seed: int, *, duration: str | None = None) -> SimulatedLoss:
    """Simulate the blocking probabilities of job classes that share a machine.

    Each confidence interval comes from twenty batches with equal numbers of jobs of a class. A batch before these is
    left out, because the machine starts empty. `kaufman_roberts` computes the exact values for comparison.
    """
    demand = described(classes)
    sizes = [one.size for one in demand.classes]
    jobs = generate_jobs(classes, seed, duration=duration)
    policy = PartitionedPolicy(compose(backfill="firstfit"), PartitionOptions(classes=(), admission="block"))
    book = _simulate(homogeneous(classes.machine_size, classes.name), jobs, policy, sizes)
    means, widths = [], []
    for fates in book.fates:
        batches = [float(np.mean(batch)) for batch in np.array_split(np.array(fates), _BATCHES + 1)[1:]]
        means.append(float(np.mean(batches)))
        widths.append(STUDENT_19_975 * float(np.std(batches, ddof=1)) / math.sqrt(_BATCHES))
    held = _sum(book.tallies).held
    span = float(jobs.submit.max()) / HOUR
    return SimulatedLoss(np.array(means), np.array(widths), held / (span * classes.machine_size))
