"""A policy on partitions by reliability.

The partitions are updated after failures and job ends.
"""

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
    """A policy that runs another policy on partitions by reliability.

    Args:
        policy: makes the decisions; its placement picks units within a partition from now on.
        follows: whether observed failures change the estimates of the nodes' mean time to failure.
    """

    _kept = ("_failures", "_seen", "_at")

    def __init__(self, policy: ComposedPolicy, options: PartitionOptions, *, follows: bool = True) -> None:
        self._policy = policy
        self._placement = policy.placement = ByPartition(policy.placement)
        self._options = options
        self._follows = follows
        self.features: tuple[str, ...] = tuple(sorted({*policy.features, "labels"}))
        self._view: View | None = None
        #: number of failures of each node, shape (nodes,)
        self._failures: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.classes: tuple[RankedClass, ...] = () if options.classes == "auto" else options.classes
        self._seen = JobsSeen()
        #: starts and ends under the previous scheduler, until the run begins here
        self._past: Sequence[PastStep] = ()
        #: time (s) of the last division
        self._at = 0.0

    @property
    def name(self) -> str:
        """The name of the inner policy with the suffix ``+reliability``."""
        return f"{self._policy.name}+reliability"

    @property
    def order(self) -> Order:
        """The queue order of the inner policy."""
        return self._policy.order

    def reservation(self, job: SchedulerJob) -> float | None:
        """Return the latest expected start (s) of a queued job.

        Return None if the job has no reservation.
        """
        return self._policy.reservation(job)

    def learn(self, machine: Machine) -> None:
        """Pass the machine to the policy, and check that classes and placement suit it.

        Raises:
            PipistrelleError: the classes or the placement do not suit the machine.
        """
        partition_sizes(self.classes, machine.units, self._options.blocking)
        self._policy.learn(machine)

    def learn_past(self, view: View, steps: Sequence[PastStep]) -> None:
        """Record the past starts and ends of jobs, and pass them to the inner policy."""
        self._past = steps
        self._policy.learn_past(view, steps)

    def decide(self, view: View) -> None:
        """Update the partitions, then let the policy decide.

        Partitions change after failures and with new statistics. With the admission ``block``, reject the jobs that
        cannot start at once.
        """
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
        """Reject the jobs that arrived now and did not start, one by one.

        After each rejection the policy decides again, so a rejected job blocks no other arrival.
        """
        while left := [job for job in view.waiting.in_order(view.arrivals) if job.waits]:
            view.reject(left[0], f"there is no room for {left[0].size} units (type I)")
            view.arrivals = [job for job in view.arrivals if job.waits]  # the policy already knows the started jobs
            if view.arrivals:
                self._policy.decide(view)
        view.wake = None  # every arrival must be decided at once

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
        """Return the failures and jobs recorded so far, and the inner policy's state."""
        classes = [structs.asdict(one) for one in self.classes]
        begun = self._view is not None
        return {**super().state(), "begun": begun, "classes": classes, "policy": self._policy.state()}

    def restore(self, state: dict[str, Any], view: View) -> None:
        """Restore a saved state; `view` must already be restored to that state's time."""
        if state["begun"]:
            self._begin(view)
            super().restore(state)
            self.classes = tuple(RankedClass(**one) for one in state["classes"])
            self._divide(view)
        self._policy.restore(state["policy"], view)
