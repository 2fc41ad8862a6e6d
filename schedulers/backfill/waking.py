"""Conditions under which an event can change what a backfilling rule decides."""

from typing import Final

from pipistrelle.protocol.messages import WakeAtEnd, WakeAtSubmission, WakeWhen
from pipistrelle.schedulers.policy.view import View

#: a submission wakes the scheduler once enough units for the job are free, now or later
ONCE_IT_FITS: Final = (WakeAtSubmission(spare=0),)
#: nothing waits, so the end of a job starts no other
NOTHING_WAITS: Final = WakeWhen(ONCE_IT_FITS, ())
#: the same for a rule that reserves units for each new job
NOTHING_TO_PLAN: Final = WakeWhen(None, ())


def once_one_fits(view: View) -> WakeWhen | None:
    """Return when to call a rule whose decisions depend on the present state alone.

    Such a rule does nothing while each waiting job needs more units than are free. If some job needs no more than that,
    return None: every event must call the rule.
    """
    least = view.waiting.smallest
    if not view.waiting:
        return NOTHING_WAITS
    return WakeWhen(ONCE_IT_FITS, (WakeAtEnd(least),)) if least > view.free.count else None
