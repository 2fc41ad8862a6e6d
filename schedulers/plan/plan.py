"""The plan of when units will be free, for rules that reserve single units."""

from collections.abc import Sequence
from math import inf
from typing import Any

from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.units.masks import mask_of, units_of
from pipistrelle.schedulers.placement.pickers import pick
from pipistrelle.schedulers.plan.slices import Fit, Place, TimeSlices
from pipistrelle.schedulers.policy.ends_and_shadow import end_of, held_until
from pipistrelle.schedulers.policy.interfaces import Placement
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.policy.windows import Closure


class Plan(Kept):
    """The units that running jobs and reservations leave free over time.

    A running job holds its units until its expected end (start + walltime), or until maintenance kills it. It is
    removed when it ends. The plan does not contain windows, because a window may admit some jobs.
    """

    _kept = ("_gone", "_running", "_killed", "_changes", "_next_end")

    def __init__(self, view: View, placement: Placement) -> None:
        self._view = view
        self._placement = placement
        self._gone = view.gone
        self._running: dict[str, Place] = {}
        #: {id of a job that maintenance will kill: when (s)}
        self._killed: dict[str, float] = {}
        self._changes = view.windows.changes
        self._next_end = inf
        in_service = self._in_service()
        masks = view.running.masks
        for job in view.running:
            end = held_until(self._ends_at(job), view.now)
            self._running[job.id] = Place(view.now, end, masks[job.number] & in_service)
        self.slices = self._sliced(view.now)
        #: whether windows were added, removed or ended since the last decision
        self.windows_changed = True

    def _in_service(self) -> int:
        return ((1 << self._view.units) - 1) & ~mask_of(self._gone)

    def _sliced(self, now: float) -> TimeSlices:
        """Return the free units from ``now`` (s) on, if only the running jobs hold units."""
        busy = 0
        for place in self._running.values():
            busy |= place.units
        return TimeSlices(
            now, self._in_service() & ~busy, ((place.end, place.units) for place in self._running.values())
        )

    def state(self) -> dict[str, Any]:
        """Return the plan as plain values, without the waiting jobs' reservations.

        The backfilling rule saves and restores those reservations.
        """
        return {**super().state(), "now": self.slices.now}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the plan that the method `state` returned."""
        super().restore(state)
        self.slices = self._sliced(state["now"])

    def holds_for(self, view: View) -> bool:
        """Return whether an earlier plan is still valid in this view.

        It is invalid in another simulation, after units failed or returned unannounced, and if a job runs past its
        expected end or survives maintenance.
        """
        return (
            view is self._view
            and view.gone == self._gone
            and view.running.next_end > view.now
            and (not self._killed or all(id_ not in view.running or t > view.now for id_, t in self._killed.items()))
        )

    @property
    def cuts_short(self) -> bool:
        """Return whether maintenance will kill a running job."""
        return bool(self._killed)

    def follow(self) -> None:
        """Advance to the view's time and remove the jobs that ended."""
        view = self._view
        self.slices.advance(view.now)
        if view.released:
            for job_id in [job_id for job_id in self._running if job_id not in view.running]:
                self.clear(self._running.pop(job_id))
                self._killed.pop(job_id, None)
        self.windows_changed = view.now >= self._next_end
        if view.windows.changes != self._changes:
            self.windows_changed = True
            self._changes = view.windows.changes
            self._cut_short()

    def look_ahead(self) -> None:
        """Record when the next maintenance window ends.

        Call this after all decisions about a notice (message from the server).
        """
        windows = self._view.windows
        self._next_end = windows.next_end(self._view.now) if windows else inf

    def _ends_at(self, job: SchedulerJob) -> float:
        """Return the latest end (s) of a running job.

        Also record whether maintenance kills the job.
        """
        end = self._view.windows.ends_at(job, self._view.now)
        if end < job.expected_end:
            self._killed[job.id] = end
        return end

    def _cut_short(self) -> None:
        for job in self._view.running:
            place = self._running[job.id]
            end = self._ends_at(job)
            if end < place.end:
                self.slices.give_back(place.units, end, place.end)
                self._running[job.id] = place._replace(end=end)

    def closures(self, job: SchedulerJob) -> Sequence[Closure]:
        """Return the periods during which windows exclude a job from some units."""
        windows = self._view.windows
        return [window.closure for window in windows.against(job, self._view.now)] if windows else ()

    def fit(self, job: SchedulerJob, old: Place | None = None) -> Fit | None:
        """Return the earliest time at which a job fits, and its units then.

        Return None if the job fits nowhere. ``old`` is the job's current reservation; later times are not searched.
        """

        def choose(begin: float, units: int, width: int) -> int:
            return pick(self._placement, units, job, self._view.machine)

        closures = self.closures(job)
        if old is None:
            return self.slices.earliest(job.size, job.occupies, choose, closures=closures)
        return self.slices.earliest(
            job.size, job.occupies, choose, own=old.units, own_begin=old.begin, closures=closures
        )

    def start_if_fits(self, job: SchedulerJob) -> None:
        """Start a job if enough units are free from now on for its full walltime."""
        view = self._view
        if job.size > view.free.count:
            return
        units = self.slices.now_for(job.size, job.occupies, self.closures(job))
        if units and (units := pick(self._placement, units, job, view.machine)):
            self.start(job, units)

    def take(self, job: SchedulerJob, begin: float, units: int) -> Place:
        """Reserve ``units`` for a job from ``begin`` (s) on.

        The units must be free long enough.
        """
        place = Place(begin, end_of(begin, job.occupies), units)
        self.slices.take(units, place.begin, place.end)
        return place

    def clear(self, place: Place) -> None:
        """Remove a reservation."""
        self.slices.give_back(place.units, place.begin, place.end)

    def start(self, job: SchedulerJob, units: int) -> None:
        """Start a job now on ``units``, which must be free long enough."""
        view = self._view
        first = view.waiting.first
        alloc = units_of(units)
        view.free.remove(alloc)
        self._running[job.id] = self.take(job, view.now, units)
        view.start(job, alloc, None if first is None or first is job else f"backfilled before {first.id}")
