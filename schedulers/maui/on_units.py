"""Units that hold at most one job each, as the Maui policy plans them."""

from collections.abc import Sequence
from typing import Any

from pipistrelle.protocol.units.masks import mask_of, units_of
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.backfill.fills import Candidates, fill_windows
from pipistrelle.schedulers.maui.config.settings import MauiSettings
from pipistrelle.schedulers.maui.machine import Backfilled, Filling
from pipistrelle.schedulers.placement.pickers import picked
from pipistrelle.schedulers.plan.access import AccessPlan, Restriction
from pipistrelle.schedulers.plan.pickers import Picker, by_number, last_available, placed_by, with_nodes
from pipistrelle.schedulers.plan.slices import Place
from pipistrelle.schedulers.policy.interfaces import Placement
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View


class PlannedUnits:
    """The units of a machine, as bit masks; see `PlannedMachine`.

    Args:
        placement: picks the units of a job; None: by NODEALLOCATIONPOLICY.
    """

    def __init__(self, view: View, settings: MauiSettings, placement: Placement | None) -> None:
        self._view = view
        self._placement = placement
        # On equal nodes all policies but one take units by number.
        picker: Picker = last_available if settings.text("NODEALLOCATIONPOLICY") == "LASTAVAILABLE" else by_number
        picker = with_nodes(picker, view.machine)
        if placement is not None:
            picker = placed_by(placement, view.machine)
        self._plan = AccessPlan(view.units, view.now, picker, settings.number("RESDEPTH"), repeats=placement is None)
        platform = view.begins.platform
        found = {pool.units_per_node for pool in platform.pools} if platform is not None else {1}
        #: 1 if the pools differ or are unknown
        self.processors_per_node = found.pop() if len(found) == 1 else 1
        self.processors: Sequence[int] | None = None
        self.state = self._plan.state
        self.restore = self._plan.restore
        self.follow = self._plan.follow
        self.ended = self._plan.ended
        self.end = self._plan.end
        self.is_end = self._plan.is_end
        self.find = self._plan.find
        self.reserve = self._plan.reserve
        self.keep = self._plan.keep
        self.is_free = self._plan.is_free

    @property
    def in_service(self) -> int:
        """Return the number of units in service."""
        return self._view.units - len(self._view.gone)

    @property
    def free(self) -> int:
        """Return the number of free units."""
        return self._view.free.count

    def size(self, job: SchedulerJob) -> int:
        """Return the number of units that a job asks for."""
        return job.size

    def never(self, job: SchedulerJob) -> str | None:
        """Return why the placement refuses a job on the empty machine; None if it can run."""
        machine, placement = self._view.machine, self._placement
        if placement is None:
            return None
        if picked(placement, job, machine.all_units - self._view.closed_pools(job), machine) is not None:
            return None
        return f"the placement finds no {job.size} units for it on the whole machine"

    def plain(self, taken: int) -> str:
        """Return the units of a bit mask as text, such as 0-3."""
        return str(units_of(taken))

    def parse(self, told: Any) -> int:
        """Return the bit mask of the units that a text from `plain` describes."""
        return mask_of(NodeSet.parse(told))

    def begin(self, restrictions: Sequence[Restriction], reservations: int) -> None:
        """Begin a decision.

        ``restrictions`` say which units are closed to which jobs, and when. At most ``reservations`` reservations may
        be made before the next call.
        """
        self._plan.begin(restrictions, reservations)

    def started(self, job: SchedulerJob, taken: int, end: float) -> None:
        """Add a job that starts now; ``end`` (s) is its latest end."""
        self._plan.started(job, taken, end)

    def held_by(self, job: SchedulerJob) -> int:
        """Return the bit mask of the units that a running job holds."""
        return mask_of(job.alloc)

    def fit_now(self, access: int, job: SchedulerJob, walltime: float) -> int | None:
        """Return the bit mask of the units on which a job could start now.

        ``access`` is the number of the set of reservations that admit the job. Return None if the job does not fit.
        """
        return self._plan.units_now(access, job, walltime) or None

    def fit_without(self, access: int, job: SchedulerJob, walltime: float, gone: Sequence[int]) -> int | None:
        """Return where a job could start now if some running jobs had ended.

        The result is a bit mask of units; None if the job does not fit even then. ``gone`` has the numbers of these
        running jobs.
        """
        return self._plan.units_without(access, job, walltime, gone) or None

    def place(self, job: SchedulerJob, taken: int, begin: float, end: float) -> Place:
        """Return a reservation, from ``begin`` to ``end`` (s), of the bit mask ``taken``."""
        return Place(begin, end, taken)

    def taken(self, place: Place) -> int:
        """Return the bit mask of the units of a reservation."""
        return place.units

    def is_lost(self, taken: int) -> bool:
        """Return whether any unit of a bit mask is out of service."""
        return not units_of(taken).isdisjoint(self._view.unavailable)

    def is_free_now(self, job: SchedulerJob, taken: int) -> bool:
        """Return whether no job holds any unit of the bit mask ``taken``."""
        return not self._view.free.missing(units_of(taken))

    def start(self, job: SchedulerJob, taken: int, why: str | None) -> None:
        """Start a job now on the units of a bit mask."""
        alloc = units_of(taken)
        self._view.free.remove(alloc)
        self._view.start(job, alloc, why)

    def backfill(self, jobs: Backfilled, accesses: int, window: Filling) -> None:
        """Start jobs in Maui's backfill windows; delay no reservation.

        A window is a number of units that stay free until some time. The shortest window is filled first.
        """
        now = self._view.now
        candidates = Candidates(
            jobs.queue,
            self._plan,
            accesses,
            jobs.start,
            jobs.eligible,
            jobs.ranks,
            now,
            allowed=jobs.allowed,
            changed=jobs.changed,
        )
        fill_windows(candidates, now, window.policy, window.metric, window.depth)
