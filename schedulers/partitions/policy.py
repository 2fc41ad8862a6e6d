"""A policy whose jobs keep to partitions by reliability, which follow the outages, and the jobs, that it sees."""

from bisect import insort
from collections.abc import Iterable, Sequence
from math import fsum
from typing import Any, Final

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.base.state import Kept
from pipistrelle.schedulers.partitions.nodes import declared, observed, partition
from pipistrelle.schedulers.partitions.placement import ByPartition, PartitionOptions
from pipistrelle.schedulers.partitions.sizes import HOUR, RankedClass, partition_sizes, ranks
from pipistrelle.schedulers.policy.compose import ComposedPolicy
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.order import Order
from pipistrelle.schedulers.policy.takeover import PastStep
from pipistrelle.schedulers.policy.view import View

#: so many jobs have ended before classes are made of them; they are made anew whenever twice as many have
FIRST_CLASSES: Final = 32
_MOST: Final = 0.95


class JobsSeen(Kept):
    """The jobs that a scheduler has seen, by powers of two of their size: how many came, how long they took."""

    _kept = ("_begin", "_came", "_took", "_asked", "_running", "_due")

    def __init__(self) -> None:
        #: when the first job came, s
        self._begin = 0.0
        #: {exponent of the size: jobs that came}
        self._came: dict[int, int] = {}
        #: {exponent: how long those took that have ended, s, ascending}
        self._took: dict[int, list[float]] = {}
        #: {exponent: unit-seconds of those that have ended}
        self._asked: dict[int, float] = {}
        #: {id: (size, start)} of those that run
        self._running: dict[str, tuple[int, float]] = {}
        self._due = FIRST_CLASSES

    def learn(self, steps: Iterable[PastStep]) -> None:
        """Take note of who ran under another scheduler, and of who runs."""
        for time, job, starts in steps:
            if starts:
                self._begin = min(self._begin, job.submit) if self._came else job.submit
                power = _power(job.size)
                self._came[power] = self._came.get(power, 0) + 1
                self._running[job.id] = job.size, job.start
            else:
                self._ended(*self._running.pop(job.id), time)

    def look(self, view: View) -> bool:
        """Take note of who has come and ended since; return whether classes are to be made anew."""
        for job in view.arrivals:
            if not self._came:
                self._begin = job.submit
            power = _power(job.size)
            self._came[power] = self._came.get(power, 0) + 1
        if view.released:
            for job_id, (size, start) in list(self._running.items()):
                if job_id not in view.running:
                    self._ended(size, start, view.now)
                    del self._running[job_id]
        if (ended := sum(map(len, self._took.values()))) < self._due:
            return False
        while self._due <= ended:
            self._due *= 2
        return True

    def started(self, view: View) -> None:
        """Take note of who runs by now."""
        for job in view.running:
            self._running.setdefault(job.id, (job.size, job.start))

    def _ended(self, size: int, start: float, end: float) -> None:
        power, took = _power(size), end - start
        insort(self._took.setdefault(power, []), took)
        self._asked[power] = self._asked.get(power, 0.0) + size * took

    def classes(self, now: float, units: int) -> tuple[RankedClass, ...]:
        """Return the classes of those that have ended, none if time has not gone on."""
        hours = (now - self._begin) / HOUR
        found = []
        for power, took in sorted(self._took.items()):
            total, size = fsum(took), min(1 << power, units)
            if hours > 0 and total > 0:
                most = took[min(int(_MOST * len(took)), len(took) - 1)]
                fill = min(self._asked[power] / (size * total), 1.0)
                rate, mean = self._came[power] / hours, total / len(took) / HOUR
                found.append(RankedClass(size=size, rate=rate, service=mean, service_95=most / HOUR, fill=fill))
        return tuple(found)


def _power(size: int) -> int:
    return (size - 1).bit_length()


class PartitionedPolicy(Kept):
    """Lets a policy decide whose placement keeps jobs in partitions, and divides the machine as outages come.

    Parameters
    ----------
    policy
        decides; its placement picks among the units of a partition from now on.
    options
        of the partitions.
    follows
        whether outages that it sees change what it knows of the nodes.
    """

    _kept = ("_failures", "_seen", "_at")

    def __init__(self, policy: ComposedPolicy, options: PartitionOptions, *, follows: bool = True) -> None:
        self._policy = policy
        self._placement = policy.placement = ByPartition(policy.placement)
        self._options = options
        self._follows = follows
        self.features: tuple[str, ...] = tuple(sorted({*policy.features, "labels"}))
        self._view: View | None = None
        #: how often each node has failed, shape (nodes,)
        self._failures: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        #: of jobs
        self.classes: tuple[RankedClass, ...] = () if options.classes == "auto" else options.classes
        self._seen = JobsSeen()
        #: what happened under the scheduler before, until the run begins here
        self._past: Sequence[PastStep] = ()
        #: when (s) the machine was divided last
        self._at = 0.0

    @property
    def name(self) -> str:
        """What the policy is called, and that it keeps to partitions."""
        return f"{self._policy.name}+reliability"

    @property
    def order(self) -> Order:
        """The policy's."""
        return self._policy.order

    def reservation(self, job: SchedulerJob) -> float | None:
        """Return what the policy does."""
        return self._policy.reservation(job)

    def learn(self, machine: Machine) -> None:
        """Take note of the machine before a run begins; PipistrelleError if it does not suit classes or placement."""
        partition_sizes(self.classes, machine.units, self._options.blocking)
        self._policy.learn(machine)

    def learn_past(self, view: View, steps: Sequence[PastStep]) -> None:
        """Take note of what ran under the scheduler before, and let the policy know it."""
        self._past = steps
        self._policy.learn_past(view, steps)

    def decide(self, view: View) -> None:
        """Divide the machine anew if outages or jobs say so; let the policy decide; refuse who did not start."""
        fresh = view is not self._view
        if fresh:
            self._begin(view)
        counted = self._options.classes == "auto" and self._seen.look(view)
        if counted:
            self.classes = self._seen.classes(view.now, view.units)
        failed = view.failed if self._follows else []
        for units in failed:
            for low, high in view.machine.numbering.nodes_of(units).intervals:
                self._failures[low : high + 1] += 1
        if fresh or counted or failed:
            self._at = view.now
            self._divide(view)
            if not fresh:
                self._policy.begin_anew()
                view.released = True
        else:
            self._assign(view, view.arrivals)
        self._policy.decide(view)
        if self._options.admission == "block":
            self._refuse(view)
        if self._options.classes == "auto":
            self._seen.started(view)

    def _refuse(self, view: View) -> None:
        """Refuse, one by one, who has come and was not started; who is refused keeps nobody from starting."""
        while left := [job for job in view.waiting.in_order(view.arrivals) if job.waits]:
            view.reject(left[0], f"there is no room for {left[0].size} units (type I)")
            view.arrivals = [job for job in view.arrivals if job.waits]  # the policy is not told twice of who runs
            if view.arrivals:
                self._policy.decide(view)
        view.wake = None  # who comes is to be told of at once

    def _begin(self, view: View) -> None:
        self._view = view
        self._failures = np.zeros(len(view.machine.nodes), dtype=np.int64)
        self._seen = JobsSeen()
        self._seen.learn(self._past)
        self._past = ()

    def _divide(self, view: View) -> None:
        parts = declared(view.machine, ranks(self.classes))
        if parts is None:
            mttf = observed(view.machine.nodes.mttf, self._failures, self._at)
            sized, _ = partition_sizes(self.classes, view.units, self._options.blocking)
            parts, _ = partition(sized, mttf, view.machine)
        self._placement.divide(self.classes, parts)
        self._assign(view, view.waiting.each())

    def _assign(self, view: View, jobs: Iterable[SchedulerJob]) -> None:
        for job in jobs:
            self._placement.assign(job, view.machine.all_units - view.closed_pools(job), view.machine)

    def state(self) -> dict[str, Any]:
        """Return what was seen of outages and jobs, and the policy's state."""
        classes = [structs.asdict(one) for one in self.classes]
        begun = self._view is not None
        return {**super().state(), "begun": begun, "classes": classes, "policy": self._policy.state()}

    def restore(self, state: dict[str, Any], view: View) -> None:
        """Go on from a state, in a view that is as it was then."""
        if state["begun"]:
            self._begin(view)
            super().restore(state)
            self.classes = tuple(RankedClass(**one) for one in state["classes"])
            self._divide(view)
        self._policy.restore(state["policy"], view)
