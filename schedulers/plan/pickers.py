"""Pick units for planned jobs among the units that stay free long enough.

Sets of units are bit masks.
"""

from collections.abc import Callable, Sequence

from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.units.masks import lowest
from pipistrelle.schedulers.placement.lowest import LowestIds
from pipistrelle.schedulers.placement.pickers import pick
from pipistrelle.schedulers.plan.slices import FreeStep
from pipistrelle.schedulers.policy.interfaces import Placement
from pipistrelle.schedulers.policy.jobs import SchedulerJob

#: picks units (a mask; 0: refused) for a job among the units of the first step, which are all free long enough. Later
#: steps are subsets that are free longer. The last argument is a mask of units to use last.
Picker = Callable[[SchedulerJob, Sequence[FreeStep], int], int]


def by_number(job: SchedulerJob, steps: Sequence[FreeStep], last: int) -> int:
    """Return the lowest units that are free until the job's end, as a bit mask.

    There are as many as the job needs. ``steps[0]`` has the units that are free until then; ``last`` is unused.
    """
    return lowest(steps[0].units, job.size)


def placed_by(placement: Placement, machine: Machine) -> Picker:
    """Return a function that picks units with a placement."""
    return lambda job, steps, last: pick(placement, steps[0].units, job, machine)


def with_nodes(picker: Picker, machine: Machine) -> Picker:
    """Return a picker that gives the lowest nodes to jobs that request units per node.

    Other jobs get what ``picker`` picks.
    """
    lowest_ids = LowestIds()

    def picks(job: SchedulerJob, steps: Sequence[FreeStep], last: int) -> int:
        return pick(lowest_ids, steps[0].units, job, machine) if job.by_nodes else picker(job, steps, last)

    return picks


def last_available(job: SchedulerJob, steps: Sequence[FreeStep], last: int) -> int:
    """Pick the units that stay free for the shortest time after the job's end.

    ``steps`` says until when units stay free. Of units with equal times, those in ``last`` (a bit mask) are used last.
    """
    picked, missing = 0, job.size
    for at, step in enumerate(steps):
        group, width = step.units, step.width
        if at + 1 < len(steps):  # without the units that stay free longer
            group, width = group ^ steps[at + 1].units, width - steps[at + 1].width
        others = group & last
        count = others.bit_count() if others else 0
        for some, number in ((group ^ others, width - count), (others, count)):
            if number == missing:
                return picked | some
            if number > missing:
                return picked | lowest(some, missing)
            picked |= some
            missing -= number
    return picked
