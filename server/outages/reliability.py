"""The failures and maintenance of a run, and the rules for interrupted jobs."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipistrelle.server.attempts.accounting import EXPECTED_ATTEMPTS
from pipistrelle.server.attempts.attempt import AttemptRules

if TYPE_CHECKING:  # most runs need none of these modules
    from pipistrelle.platforms.description import Platform
    from pipistrelle.platforms.failures.models import Stream
    from pipistrelle.platforms.failures.outage import Outages
    from pipistrelle.platforms.failures.plan import FailurePlan
    from pipistrelle.platforms.maintenance.plan import Maintenance, MaintenancePlan


@dataclass(frozen=True, slots=True)
class Reliability(AttemptRules):
    """Failures and maintenance of a run, and its rules for jobs (`AttemptRules`).

    Attributes:
        failures: failure models, drawn with ``seed``; None: no failure models.
        outages: outages of a log or a saved stream, in addition to ``failures``.
        maintenance: planned maintenance; None: no maintenance.
        described: description of all these for the run's configuration (JSON values).
    """

    failures: "FailurePlan | None" = None
    seed: int = 1
    outages: "Outages | None" = None
    maintenance: "MaintenancePlan | None" = None
    described: dict[str, Any] = field(default_factory=dict)

    def streams(self) -> "list[Stream]":
        """Return the streams of unannounced outages, from time 0 on."""
        made: list[Stream] = []
        if self.failures is not None:
            made.append(self.failures.stream(self.seed))
        if self.outages is not None:
            made.append(_Recorded(self.outages))
        return made

    def planned(self) -> "Iterator[Maintenance]":
        """Yield planned maintenance in the order of announcement."""
        return iter(()) if self.maintenance is None else self.maintenance.occurrences()

    def rates(self, platform: "Platform") -> NDArray[np.float64]:
        """Return each node's mean failure rate (1/s), shape (nodes,).

        Failures of a log count equally for all nodes, because the log does not show which node fails next.
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
        """Describe all that affects a run's result, as JSON values."""
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
    """A stream of outages that come from a log or a saved stream."""

    def __init__(self, outages: "Outages") -> None:
        self._outages = outages
        self._done = 0

    def extend(self, horizon: float) -> "Outages":
        """Return the outages that begin between the previous horizon and ``horizon`` (s)."""
        from pipistrelle.platforms.failures.models import LONGEST_HORIZON

        end = int(np.searchsorted(self._outages.down, horizon if horizon < LONGEST_HORIZON else np.inf, side="left"))
        begin, self._done = self._done, max(self._done, end)
        return self._outages.rows(begin, end)
