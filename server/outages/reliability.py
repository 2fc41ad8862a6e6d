"""What may happen to the machine in a run, and what becomes of the jobs that it strikes."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipistrelle.server.attempts.accounting import EXPECTED_ATTEMPTS
from pipistrelle.server.attempts.attempt import AttemptRules

if TYPE_CHECKING:  # most runs need none of these
    from pipistrelle.platforms.description import Platform
    from pipistrelle.platforms.failures.models import Stream
    from pipistrelle.platforms.failures.outage import Outages
    from pipistrelle.platforms.failures.plan import FailurePlan
    from pipistrelle.platforms.maintenance.plan import Maintenance, MaintenancePlan


@dataclass(frozen=True, slots=True)
class Reliability(AttemptRules):
    """Failures, maintenance and, as `AttemptRules`, the jobs' ways to live with them.

    Parameters
    ----------
    failures
        models of failures, drawn with ``seed``; None: there are none.
    outages
        outages of a log or a saved stream; both may be given.
    maintenance
        what is planned; None: nothing.
    described
        what the run's configuration says of all this, JSON values only.
    """

    failures: "FailurePlan | None" = None
    seed: int = 1
    outages: "Outages | None" = None
    maintenance: "MaintenancePlan | None" = None
    described: dict[str, Any] = field(default_factory=dict)

    def streams(self) -> "list[Stream]":
        """Return what makes the unannounced outages, from time 0 on."""
        made: list[Stream] = []
        if self.failures is not None:
            made.append(self.failures.stream(self.seed))
        if self.outages is not None:
            made.append(_Recorded(self.outages))
        return made

    def planned(self) -> "Iterator[Maintenance]":
        """Return what is planned, by the time of its announcement."""
        return iter(()) if self.maintenance is None else self.maintenance.occurrences()

    def rates(self, platform: "Platform") -> NDArray[np.float64]:
        """Return how often each node fails on average, in failures per second of its time, shape (nodes,).

        Of a log it is the mean over all nodes, from time 0 to the last outage's begin: it does not say which node will
        fail.
        """
        rates = np.zeros(platform.nodes)
        if self.failures is not None:
            rates += self.failures.rates(platform.nodes)
        if self.outages is not None and len(self.outages):
            span = float(self.outages.down.max())
            if span > 0:
                rates += len(self.outages) / (platform.nodes * span)
        return rates

    def describe(self) -> dict[str, Any]:
        """Return what decides a run's result, JSON values only."""
        return {
            **self.described,
            "resilience": msgspec.to_builtins(self.resilience),
            "requeue": self.requeue,
            "max_attempts": self.max_attempts,
            "restart_walltime": self.restart_walltime,
            "walltime": self.walltime,
            **({} if self.expected_attempts == EXPECTED_ATTEMPTS else {"expected_attempts": self.expected_attempts}),
        }


class _Recorded:
    """Outages that are known already, as a stream."""

    def __init__(self, outages: "Outages") -> None:
        self._outages = outages
        self._done = 0

    def extend(self, horizon: float) -> "Outages":
        """Return the outages that go down from the last horizon to before this one."""
        from pipistrelle.platforms.failures.models import LONGEST_HORIZON

        end = int(np.searchsorted(self._outages.down, horizon if horizon < LONGEST_HORIZON else np.inf, side="left"))
        begin, self._done = self._done, max(self._done, end)
        return self._outages.rows(begin, end)
