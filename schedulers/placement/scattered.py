"""The placement that draws a job's units."""

from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.schedulers.placement.lines import Line
from pipistrelle.schedulers.placement.ordered import InLine, LineOptions, Positions
from pipistrelle.schedulers.policy.jobs import SchedulerJob


class RandomOptions(LineOptions, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """What there is to set of the placement ``random``: where its draws begin."""

    seed: Annotated[int, Meta(ge=0, le=2**53)] = 1


class Random(InLine):
    """Any open units, each as likely as any other, in the first kind of the line before those of the other.

    A job has a lottery of its own, by the seed and its number: each unit draws a ticket, and the lowest open ones win.
    So the answer is the same whenever it is asked, and more open units change no more of it than they must.
    """

    def __init__(self, options: RandomOptions | None = None) -> None:
        options = options or RandomOptions()
        super().__init__(options)
        self._seed = options.seed
        #: of the job that was asked about last, which is often asked about again: its number, and shape (units,)
        self._drawn: tuple[int, NDArray[np.float64]] = (-1, np.empty(0))

    def _choose(self, job: SchedulerJob, open_at: NDArray[np.bool_], line: Line, machine: Machine) -> Positions | None:
        at = np.flatnonzero(open_at)
        tickets = self._tickets(job.number, len(line.units))[line.units[at]] + (at >= line.first_kind)
        return at[np.argpartition(tickets, job.size - 1)[: job.size]]

    def _tickets(self, number: int, units: int) -> NDArray[np.float64]:
        if self._drawn[0] != number or len(self._drawn[1]) != units:
            uniform = np.random.Generator(np.random.PCG64([self._seed, number])).random(units)
            self._drawn = number, uniform
        return self._drawn[1]
