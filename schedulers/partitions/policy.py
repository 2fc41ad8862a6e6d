"""A policy whose jobs keep to partitions by reliability, which follow the outages, and the jobs, that it sees."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.platforms.topology.partitions import (
    RankedClass,
    declared,
    observed,
    partition,
    partition_sizes,
    ranks,
)
from pipistrelle.protocol.base.state import Kept
from pipistrelle.schedulers.composed import ComposedPolicy
from pipistrelle.schedulers.partitions.jobs_seen import JobsSeen
from pipistrelle.schedulers.partitions.placement import ByPartition, PartitionOptions
from pipistrelle.schedulers.policy.interfaces import PastStep
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.order import Order
from pipistrelle.schedulers.policy.view import View


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
