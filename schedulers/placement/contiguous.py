"""Placements that use runs of adjacent free units."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.schedulers.placement.chance import Chances
from pipistrelle.schedulers.placement.lines import Line
from pipistrelle.schedulers.placement.ordered import InLine, LineOptions, Positions
from pipistrelle.schedulers.policy.jobs import SchedulerJob


class ContiguousOptions(LineOptions, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Options of the placement ``contiguous``.

    ``fit`` selects the run of free units: the first that is long enough, or the shortest of these (``best``).
    """

    fit: Literal["first", "best"] = "first"


class Contiguous(InLine):
    """The placement ``contiguous``: the first units of a run of adjacent free units.

    If no run is long enough, the job waits.
    """

    _by_count = False

    def __init__(self, options: ContiguousOptions | None = None) -> None:
        options = options or ContiguousOptions()
        super().__init__(options)
        self._shortest = options.fit == "best"

    def _choose(self, job: SchedulerJob, open_at: NDArray[np.bool_], line: Line, machine: Machine) -> Positions | None:
        begins, lengths = _runs(open_at)
        (enough,) = np.nonzero(lengths >= job.size)
        if not len(enough):
            return None
        which = enough[lengths[enough].argmin()] if self._shortest else enough[0]
        return np.arange(begins[which], begins[which] + job.size)

    def _choose_reliable(
        self, job: SchedulerJob, open_at: NDArray[np.bool_], line: Line, machine: Machine, chances: Chances
    ) -> Positions | None:
        size = job.size
        begins, lengths = _runs(open_at)
        if not len(begins) or lengths.max() < size:
            return None
        rates = chances.rates(line)
        # A node counts at its first position, and at the first position of a window.
        again = np.concatenate(([False], line.nodes[1:] == line.nodes[:-1]))
        sums = np.concatenate(([0.0], np.cumsum(np.where(again, 0.0, rates))))
        windows = sums[size:] - sums[:-size] + np.where(again, rates, 0.0)[: len(rates) - size + 1]
        run_of = np.repeat(np.arange(len(begins)), np.maximum(lengths - size + 1, 0))
        first_of = np.cumsum(np.maximum(lengths - size + 1, 0)) - np.maximum(lengths - size + 1, 0)
        starts = begins[run_of] + np.arange(len(run_of)) - first_of[run_of]
        (good,) = np.nonzero(windows[starts] <= chances.most(job))
        if not len(good):
            return None
        which = good[lengths[run_of[good]].argmin()] if self._shortest else good[0]
        return np.arange(starts[which], starts[which] + size)


class BestFit(InLine):
    """The placement ``best-fit``: the shortest sufficient run of free units.

    If several runs are needed, whole runs are used, longest first. The remaining units come from the shortest run that
    has enough.
    """

    def _choose(self, job: SchedulerJob, open_at: NDArray[np.bool_], line: Line, machine: Machine) -> Positions | None:
        begins, lengths = _runs(open_at)
        missing, found = job.size, []
        longest = np.argsort(-lengths, kind="stable")
        sizes = lengths[longest]
        whole = 0
        while sizes[whole] < missing:
            found.append(longest[whole])
            missing -= int(sizes[whole])
            whole += 1
        # The last sufficient run is the shortest; equal ones are in the order of the line.
        shortest = sizes[np.searchsorted(-sizes, -missing, side="right") - 1]
        last = longest[max(whole, int(np.searchsorted(-sizes, -shortest)))]
        parts = [np.arange(begins[run], begins[run] + lengths[run]) for run in found]
        return np.concatenate([*parts, np.arange(begins[last], begins[last] + missing)])


def _runs(open_at: NDArray[np.bool_]) -> tuple[Positions, Positions]:
    """Return the starts and lengths of the runs of adjacent positions that are true.

    Returns:
        Two arrays of shape (runs,).
    """
    edges = np.zeros(len(open_at) + 2, dtype=np.bool_)
    edges[1:-1] = open_at
    bounds = np.flatnonzero(edges[1:] != edges[:-1])
    return bounds[::2], bounds[1::2] - bounds[::2]
