"""Conditions under which an event can change what a backfilling rule decides."""

from functools import lru_cache
from typing import Final

from pipistrelle.protocol.messages import WakeAtEnd, WakeAtSubmission, WakeWhen
from pipistrelle.schedulers.policy.view import View

#: a submission wakes the scheduler once enough units for the job are free, now or later
ONCE_IT_FITS: Final = (WakeAtSubmission(spare=0),)
#: nothing waits, so the end of a job starts no other
NOTHING_WAITS: Final = WakeWhen(ONCE_IT_FITS, ())
#: the same for a rule that reserves units for each new job
NOTHING_TO_PLAN: Final = WakeWhen(None, ())


@lru_cache(512)
def once_free(units: int) -> WakeWhen:
    """Return when to call a rule: once ``units`` units are free, or a new job fits."""
    return WakeWhen(ONCE_IT_FITS, (WakeAtEnd(units),))


@lru_cache(512)
def until_reserved(units: int, beyond: int, shadow: float) -> WakeWhen:
    """Return when to call a rule with a reservation: once it might start a job.

    This is once ``units`` units are free, or once a job is submitted that fits and does not delay the reservation at
    ``shadow`` (s). A submitted job that would run past that time must leave at least ``beyond`` free units.
    """
    fits = (WakeAtSubmission(spare=0, ends_by=shadow), WakeAtSubmission(spare=beyond))
    return WakeWhen(fits, (WakeAtEnd(units),))


def once_one_fits(view: View) -> WakeWhen | None:
    """Return when to call a rule whose decisions depend on the present state alone.

    Such a rule does nothing while each waiting job needs more units than are free. If one needs no
    more than the free units, return None: the rule is called at every event.
    """
    least = view.waiting.smallest
    if not view.waiting:
        return NOTHING_WAITS
    return once_free(least) if least > view.free.count else None
