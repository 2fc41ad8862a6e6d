"""The placement that draws a job's units at random."""

from typing import Annotated, Final

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.schedulers.placement.lines import Line
from pipistrelle.schedulers.placement.ordered import InLine, LineOptions, Positions
from pipistrelle.schedulers.policy.jobs import SchedulerJob

_BITS: Final = 2**64 - 1
#: SplitMix64's constants: the step between states, and the two multipliers
_STEPS: Final = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


class RandomOptions(LineOptions, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Options of the placement ``random``."""

    seed: Annotated[int, Meta(ge=0, le=2**53)] = 1


class Random(InLine):
    """The placement ``random``: draws open units pseudorandomly.

    Units of the line's preferred part (`Line.first_kind`) are picked before all others. Each unit gets a pseudorandom
    number from the seed and the job's number, and the open units with the lowest numbers are picked. So the result does
    not depend on when it is computed, and more open units change it as little as possible.
    """

    def __init__(self, options: RandomOptions | None = None) -> None:
        options = options or RandomOptions()
        super().__init__(options)
        self._seed = options.seed

    def _choose(self, job: SchedulerJob, open_at: NDArray[np.bool_], line: Line, machine: Machine) -> Positions | None:
        at = np.flatnonzero(open_at)
        tickets = self._tickets(job.number, line.units[at]) >> np.uint64(1)
        tickets |= (at >= line.first_kind).astype(np.uint64) << np.uint64(63)
        return at[np.argpartition(tickets, job.size - 1)[: job.size]]

    def _tickets(self, number: int, units: NDArray[np.intp]) -> NDArray[np.uint64]:
        """Return a pseudorandom number for each unit, from the seed and the job's number.

        The result has shape (units,). SplitMix64 (Steele et al., 2014) in 64-bit integers gives equal numbers on any
        machine and with any numpy.
        """
        begin = (self._seed * _STEPS[1] + number * _STEPS[2]) & _BITS
        drawn = _mixed(np.array([begin], dtype=np.uint64)) + units.astype(np.uint64) * np.uint64(_STEPS[0])
        return _mixed(drawn)


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return pseudorandom numbers, one per input number.

    Each bit of a result depends on all bits of its input number.
    """
    for shift, step in ((30, _STEPS[1]), (27, _STEPS[2])):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(step)
    return numbers ^ (numbers >> np.uint64(31))
