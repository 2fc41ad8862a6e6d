"""The Maui policy: decisions follow a centre's own maui.cfg."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.schedulers.maui.config.settings import MauiSettings
from pipistrelle.schedulers.maui.priority.priority import Breakdown
from pipistrelle.schedulers.maui.scheduler import MauiScheduler
from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.schedulers.policy.interfaces import PastStep, Placement, learn
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.order import Order
from pipistrelle.schedulers.policy.view import View


class MauiPolicy:
    """The scheduler ``maui``, which follows a maui.cfg.

    docs/reference/maui.md has the rules.

    Args:
        settings: the configuration; None: Maui's defaults.
        midnight: seconds from 0:00 on a Sunday (local time) to time 0, for standing reservations; None: computed
            from the workload's date, or 0 if it has none.
        placement: picks the units of a job, or refuses the job; None: by NODEALLOCATIONPOLICY.
    """

    name = "maui"

    def __init__(
        self,
        settings: MauiSettings | None = None,
        *,
        midnight: float | None = None,
        placement: Placement | None = None,
    ) -> None:
        self._placement = placement
        #: the view's order; the policy keeps its own
        self.order: Order = Fcfs()
        self._settings = settings or MauiSettings()
        self._midnight = midnight
        self.features = ("labels", "preemption") if self._settings.preempts else ("labels",)
        self._scheduler: MauiScheduler | None = None

    def learn(self, machine: Machine) -> None:
        """Pass the machine to the placement.

        Raise PipistrelleError if the machine does not suit the placement.
        """
        learn(self._placement, machine)

    def decide(self, view: View) -> None:
        """Start all jobs that may start now."""
        if self._scheduler is None or self._scheduler.view is not view:
            self._scheduler = self._begin(view)
        self._scheduler.decide()

    def _begin(self, view: View) -> MauiScheduler:
        midnight = since_sunday(view.begins.config) if self._midnight is None else self._midnight
        return MauiScheduler(view, self._settings, midnight, self._placement)

    def state(self) -> Any:
        """Return the policy's state; None before the first decision."""
        return None if self._scheduler is None else self._scheduler.state()

    def restore(self, state: Any, view: View) -> None:
        """Restore a saved state; `view` must already be restored to that state's time."""
        if state is not None:
            self._scheduler = self._begin(view)
            self._scheduler.restore(state)

    def learn_past(self, view: View, steps: Sequence[PastStep]) -> None:
        """Count the jobs that another scheduler started, for fairshare and limits."""
        self._scheduler = self._begin(view)
        self._scheduler.learn_past(steps)

    def breakdown(self, job: SchedulerJob) -> Breakdown | None:
        """Return the terms of a queued job's current priority.

        Return None if the job is not queued.
        """
        scheduler = self._scheduler
        return scheduler.breakdown(job) if scheduler is not None and job.number in scheduler.queue.row_of else None

    def ahead(self, job: SchedulerJob) -> tuple[int, SchedulerJob] | None:
        """Return (number of queued jobs that rank before a job, first job of the queue).

        Return None if the job is not queued.
        """
        scheduler = self._scheduler
        if scheduler is None or job.number not in scheduler.queue.row_of:
            return None
        queue = scheduler.queue
        ranks = np.where(queue.live, scheduler.priorities.ranks(queue, scheduler.view.now), -np.inf)
        row = queue.row_of[job.number]
        before = int((ranks > ranks[row]).sum() + (ranks[:row] == ranks[row]).sum())
        return before, queue.job(int(np.argmax(ranks)))

    def reservation(self, job: SchedulerJob) -> float | None:
        """Return the planned start (s) of a waiting job; None without a reservation."""
        place = None if self._scheduler is None else self._scheduler.reserved.get(job.number)
        return None if place is None else place.begin

    def reservations(self) -> list[str]:
        """Return the standing reservations that are in force or begin next, as texts."""
        return [] if self._scheduler is None else self._scheduler.reservations()

    def held_back_by(self, job: SchedulerJob) -> str | None:
        """Return the limit that holds back a waiting job now; None if none does."""
        scheduler = self._scheduler
        return scheduler.held_back_by(job) if scheduler is not None and job.number in scheduler.queue.row_of else None


def since_sunday(config: Mapping[str, Any]) -> float:
    """Return the seconds from 0:00 on the last Sunday (local time) to time 0.

    Args:
        config: the server's configuration. Its ``epoch`` is the Unix time of time 0; if it is missing, the result is 0.
            Its ``timezone`` is a zone's name; an unknown zone counts as UTC.
    """
    epoch = config.get("epoch")
    if not isinstance(epoch, int | float):
        return 0.0
    zone: tzinfo = UTC
    with suppress(KeyError, ValueError, OSError, TypeError):
        zone = ZoneInfo(config["timezone"])
    try:
        date = datetime.fromtimestamp(epoch, zone)
    except (OverflowError, ValueError, OSError):  # a date beyond the calendar
        return 0.0
    return float((date.isoweekday() % 7) * 86400 + date.hour * 3600 + date.minute * 60 + date.second)
