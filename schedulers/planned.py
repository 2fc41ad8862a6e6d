"""What backfilling rules that reserve single units have in common: the running jobs in time slices."""

from typing import NamedTuple

from pipistrelle.protocol.intervals import FreeUnits
from pipistrelle.schedulers.jobs import SchedulerJob
from pipistrelle.schedulers.placement import LowestIds, Placement
from pipistrelle.schedulers.slices import TimeSlices, end_of
from pipistrelle.schedulers.unit_masks import lowest, mask_of, units_of
from pipistrelle.schedulers.view import View


class Place(NamedTuple):
    """Where a job runs, or is planned to: from ``begin`` until ``end`` (seconds) on ``units`` (a mask)."""

    begin: float
    end: float
    units: int


class Plan:
    """Which units are free when, as far as the running jobs and the places taken for waiting ones tell.

    A running job holds its units until its expected end, start + walltime, and is taken out as soon as it ends.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._unavailable = view.unavailable
        self._running: dict[str, Place] = {}
        in_service = ((1 << view.units) - 1) & ~mask_of(view.unavailable)
        self.slices = TimeSlices(view.now, in_service)
        for job in view.running:
            # One that should have ended already may do so any moment, but its units are not free yet.
            end = max(job.expected_end, end_of(view.now, 0.0))
            place = Place(view.now, end, mask_of(job.alloc) & in_service)
            self.slices.take(place.units, place.begin, place.end)
            self._running[job.id] = place

    def holds_for(self, view: View) -> bool:
        """Tell whether the plan, made earlier, can be followed up in this view.

        It cannot in another simulation, nor when units have left or come back into service, nor when a job runs on at
        its expected end.
        """
        return view is self._view and view.unavailable == self._unavailable and view.running.next_end > view.now

    def follow(self) -> None:
        """Go on to the view's time, without the jobs that have ended since."""
        self.slices.advance(self._view.now)
        if self._view.released:
            for job_id in [job_id for job_id in self._running if job_id not in self._view.running]:
                self.clear(self._running.pop(job_id))

    def take(self, job: SchedulerJob, begin: float, units: int) -> Place:
        """Plan a job there, from ``begin`` (s) on, on ``units`` that are free as long as it lasts."""
        place = Place(begin, end_of(begin, job.walltime), units)
        self.slices.take(units, place.begin, place.end)
        return place

    def clear(self, place: Place) -> None:
        """Give a place back."""
        self.slices.give_back(place.units, place.begin, place.end)

    def start(self, job: SchedulerJob, units: int) -> None:
        """Start a job now on ``units`` that are free as long as it lasts."""
        view = self._view
        first = view.waiting.first
        alloc = units_of(units)
        view.free.remove(alloc)
        self._running[job.id] = self.take(job, view.now, units)
        view.start(job, alloc, None if first is None or first is job else f"backfilled before {first.id}")


def pick(placement: Placement, units: int, size: int) -> int:
    """Return the ``size`` units that a placement picks among ``units``; both are masks."""
    if type(placement) is LowestIds:  # the same without the detour; a derived one may pick others
        return lowest(units, size)
    return mask_of(placement.take(FreeUnits(units_of(units)), size))
