"""The Maui policy: a centre's own maui.cfg decides."""

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
    """Priorities, fairshare, limits, reservations, backfilling of a maui.cfg; see docs/reference/maui.md.

    Parameters
    ----------
    settings
        the configuration; Maui's own defaults without.
    midnight
        seconds from a Sunday's midnight, local time, to time 0 of the simulation, for standing reservations; None: as
        the server says, where the workload knows its date, else 0.
    placement
        picks the units of a job, and may refuse; None: as NODEALLOCATIONPOLICY says.
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
        #: the order in which the view keeps the waiting jobs; the policy has its own
        self.order: Order = Fcfs()
        self._settings = settings or MauiSettings()
        self._midnight = midnight
        #: what it wants of the protocol: whose a job is, and to preempt where the configuration has it so
        self.features = ("labels", "preemption") if self._settings.preempts else ("labels",)
        self._scheduler: MauiScheduler | None = None

    def learn(self, machine: Machine) -> None:
        """Take note of the machine before a run begins; PipistrelleError if it has not what the placement asks for."""
        learn(self._placement, machine)

    def decide(self, view: View) -> None:
        """Start what may start now."""
        if self._scheduler is None or self._scheduler.view is not view:
            self._scheduler = self._begin(view)
        self._scheduler.decide()

    def _begin(self, view: View) -> MauiScheduler:
        midnight = since_sunday(view.begins.config) if self._midnight is None else self._midnight
        return MauiScheduler(view, self._settings, midnight, self._placement)

    def state(self) -> Any:
        """Return the state of the simulation, None before the first decision."""
        return None if self._scheduler is None else self._scheduler.state()

    def restore(self, state: Any, view: View) -> None:
        """Go on from a state, in a view that is as it was then."""
        if state is not None:
            self._scheduler = self._begin(view)
            self._scheduler.restore(state)

    def learn_past(self, view: View, steps: Sequence[PastStep]) -> None:
        """Count for fairshare and limits what ran under the scheduler before, and what runs now."""
        self._scheduler = self._begin(view)
        self._scheduler.learn_past(steps)

    def breakdown(self, job: SchedulerJob) -> Breakdown | None:
        """Return why a job has its priority now, None unless it waits."""
        scheduler = self._scheduler
        return scheduler.breakdown(job) if scheduler is not None and job.number in scheduler.queue.row_of else None

    def ahead(self, job: SchedulerJob) -> tuple[int, SchedulerJob] | None:
        """Return how many waiting jobs have a higher priority now, and who is first; None unless the job waits."""
        scheduler = self._scheduler
        if scheduler is None or job.number not in scheduler.queue.row_of:
            return None
        queue = scheduler.queue
        ranks = np.where(queue.live, scheduler.priorities.ranks(queue, scheduler.view.now), -np.inf)
        row = queue.row_of[job.number]
        before = int((ranks > ranks[row]).sum() + (ranks[:row] == ranks[row]).sum())
        return before, queue.job(int(np.argmax(ranks)))

    def reservation(self, job: SchedulerJob) -> float | None:
        """Return when (s) a waiting job is planned to start, None if it has no reservation."""
        place = None if self._scheduler is None else self._scheduler.reserved.get(job.number)
        return None if place is None else place.begin

    def reservations(self) -> list[str]:
        """Return the standing reservations that keep units now or soon, in words."""
        return [] if self._scheduler is None else self._scheduler.reservations()

    def held_back_by(self, job: SchedulerJob) -> str | None:
        """Return the limit that keeps a waiting job back now, None if none does."""
        scheduler = self._scheduler
        return scheduler.held_back_by(job) if scheduler is not None and job.number in scheduler.queue.row_of else None


def since_sunday(config: Mapping[str, Any]) -> float:
    """Return how many seconds after a Sunday's midnight, local time, time 0 is, by the server's ``config``.

    Its ``epoch`` is the Unix time of time 0, its ``timezone`` the name of a zone, UTC if it has none that is known
    here; without an epoch it is 0.
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
