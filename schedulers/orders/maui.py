"""Maui's priorities as a queue order for any backfilling rule: ``order = "maui"``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from msgspec import Struct

from pipistrelle.protocol.base.state import Kept
from pipistrelle.schedulers.maui.config.read import read_maui_config
from pipistrelle.schedulers.maui.config.settings import MauiSettings
from pipistrelle.schedulers.maui.priority.credentials import Credentials
from pipistrelle.schedulers.maui.priority.fairshare import Fairshare
from pipistrelle.schedulers.maui.priority.priority import Lines, Priorities
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.order import Floats


class MauiOptions(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Options of the order ``maui``: a maui.cfg, and whether to read it strictly."""

    config: str | None = None
    strict_config: bool = True


class MauiOrder(Kept):
    """The queue order ``maui``: by Maui's priority, highest first.

    Limits, reservations and everything else except the priority are ignored. BYPASS is always 0, queue time counts from
    submission (JOBPRIOACCRUALPOLICY ALWAYS), and a node is a unit.

    Args:
        settings: the configuration; None: Maui's defaults.
    """

    _kept = ("_credentials", "_fairshare")
    dynamic: Literal[True] = True
    features = ("labels",)

    def __init__(self, settings: MauiSettings | None = None) -> None:
        self._settings = settings or MauiSettings()
        self.begin()

    def begin(self) -> None:
        """Clear all data, for a new simulation."""
        self._credentials = Credentials()
        self._fairshare = Fairshare(self._settings, self._credentials)
        self._priorities = Priorities(self._settings, self._credentials, self._fairshare)

    def learn_classes(self, priorities: Mapping[str, float]) -> None:
        """Use the machine's class priorities for classes without a CLASSCFG."""
        self._priorities.class_priorities = priorities

    def attributes(self, job: SchedulerJob) -> Sequence[float]:
        """Return a job's size, walltime (s), submit time (s) and credential number.

        These determine its priority.
        """
        return (job.processors, self._settings.walltime(job), job.submit, self._code(job))

    def ranks(self, table: Floats, now: float) -> Floats:
        """Return the negative priorities at ``now`` (s).

        They are negative so that the highest priority sorts first.
        """
        size, walltime, since, code = table
        whole = code.astype(np.int64)
        lines = Lines(size.astype(np.int64), walltime, since, whole, np.zeros(len(size)))
        return -self._priorities.ranks(lines, now)

    def terms(self, job: SchedulerJob, now: float) -> dict[str, float]:
        """Return a job's ``priority`` at ``now`` (s) and each of its terms."""
        size, walltime, since, code = np.array([self.attributes(job)], dtype=np.float64).T
        lines = Lines(size.astype(np.int64), walltime, since, code.astype(np.int64), np.zeros(1))
        return self._priorities.breakdown(lines, 0, now).values()

    def started(self, job: SchedulerJob, now: float) -> None:
        """Count a job's usage from ``now`` (s) on."""
        self._fairshare.started(now, self._code(job), job.processors)

    def ended(self, job: SchedulerJob, now: float) -> None:
        """Stop counting a job's usage at ``now`` (s)."""
        self._fairshare.ended(now, self._code(job), job.processors)

    def _code(self, job: SchedulerJob) -> int:
        return self._credentials.code(self._settings.names(job))


def configured(options: MauiOptions) -> MauiOrder:
    """Return the order that a maui.cfg describes.

    Without a file, Maui's defaults apply.
    """
    return (
        MauiOrder()
        if options.config is None
        else MauiOrder(read_maui_config(Path(options.config), strict=options.strict_config)[0])
    )
