"""How plans ask for units: sets of units as masks, with a placement or by rules of their own."""

from collections.abc import Callable, Sequence

from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.units.masks import lowest, mask_of, units_of
from pipistrelle.schedulers.placement.lowest import LowestIds
from pipistrelle.schedulers.plan.slices import FreeStep
from pipistrelle.schedulers.policy.interfaces import Placement
from pipistrelle.schedulers.policy.jobs import SchedulerJob

#: picks units (a mask) for a job: among those of the first step, all of which last long enough; the others have fewer
#: of them that are free longer; those in the last mask were best given away first; 0: refused
Picker = Callable[[SchedulerJob, Sequence[FreeStep], int], int]


def learn(part: object, machine: Machine) -> None:
    """Tell a placement or policy, if it wants to know, of the machine; PipistrelleError if that does not suit it."""
    tell = getattr(part, "learn", None)
    if tell is not None:
        tell(machine)


def pick(placement: Placement, units: int, job: SchedulerJob, machine: Machine) -> int:
    """Return the units that a placement picks for a job among ``units``, 0 if it refuses; both are masks."""
    if type(placement) is LowestIds:  # the same without the detour; a derived one may pick others
        return lowest(units, job.size)
    picked = placement.pick(job, units_of(units), machine)
    return 0 if picked is None else mask_of(picked)


def placed_by(placement: Placement, machine: Machine) -> Picker:
    """Return what picks the units that a placement picks among those that last."""
    return lambda job, steps, first: pick(placement, steps[0].units, job, machine)


def last_available(job: SchedulerJob, steps: Sequence[FreeStep], first: int) -> int:
    """Pick the units that are free the shortest beyond the job's end; of equals ``first``, then the lowest."""
    picked, missing = 0, job.size
    for at, step in enumerate(steps):
        longer = steps[at + 1].units if at + 1 < len(steps) else 0
        for group in (step.units & ~longer & first, step.units & ~longer & ~first):
            if missing and group:
                more = lowest(group, min(missing, group.bit_count()))
                picked |= more
                missing -= more.bit_count()
    return picked
