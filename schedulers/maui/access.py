"""Who is let in where: standing reservations and windows, as closures for groups of jobs that are treated alike."""

from typing import Any

from pipistrelle.protocol.units.masks import mask_of
from pipistrelle.schedulers.maui.config.settings import MauiSettings, Names
from pipistrelle.schedulers.maui.standing import StandingReservations
from pipistrelle.schedulers.plan.access import Restriction
from pipistrelle.schedulers.plan.slices import Closure
from pipistrelle.schedulers.plan.windows import Window
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View


class Accesses:
    """Numbers for the sets of standing reservations and windows that let a job in.

    Parameters
    ----------
    view
        the machine, with its windows.
    settings
        the configuration.
    midnight
        seconds from a Sunday's midnight, local time, to time 0.
    """

    def __init__(self, view: View, settings: MauiSettings, midnight: float) -> None:
        self._view = view
        self._settings = settings
        self._standing = StandingReservations(settings, view.units, midnight)
        #: {which standing reservations and windows let a job in: number}
        self._numbers: dict[tuple[bool, ...], int] = {}
        self._admitting: list[Window] = []
        self._changes = 0

    def __len__(self) -> int:
        return len(self._numbers)

    def state(self) -> dict[str, Any]:
        """Return what lets in whom, in the order of the numbers, and how many changes of windows are known."""
        return {"numbers": [list(let_in) for let_in in self._numbers], "changes": self._changes}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state; the view's windows are as they were, or have changed since they were looked at."""
        self.renew()
        self._changes = state["changes"]
        self._numbers = {tuple(let_in): number for number, let_in in enumerate(state["numbers"])}

    def renew(self) -> bool:
        """Take note of new windows; return whether there are any: then no number holds any more."""
        windows = self._view.windows
        if self._changes == windows.changes:
            return False
        self._changes = windows.changes
        self._admitting = [window for window in windows if window.admits is not None]
        self._numbers = {}
        return True

    def number(self, job: SchedulerJob, names: Names) -> int:
        """Return the number of what lets a job in."""
        let_in = self._standing.lets_in(job, names, self._settings.walltime(job))
        let_in += tuple(not window.closed_to(job) for window in self._admitting)
        return self._numbers.setdefault(let_in, len(self._numbers))

    def restrictions(self, now: float) -> list[Restriction]:
        """Return what is closed to whom, at ``now`` (s) and ahead."""
        found = []
        for number, closure in self._standing.closed(now) if len(self._standing) else ():
            found.append(Restriction(closure, self._let_in_by(number)))
        admitting = 0
        for window in self._view.windows:
            let_in: frozenset[int] = frozenset()
            if window.admits is not None:
                let_in = self._let_in_by(len(self._standing) + admitting)
                admitting += 1
            if window.end > now:
                found.append(Restriction(Closure(window.begin, window.end, mask_of(window.units)), let_in))
        return found

    def _let_in_by(self, at: int) -> frozenset[int]:
        """Return the numbers that a standing reservation or window lets in, by its place among them."""
        return frozenset(number for let_in, number in self._numbers.items() if let_in[at])
