"""The figures of preemption, gathered while a run goes on."""

from array import array
from math import fsum

from msgspec import Struct

from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.decisions import Decision, PreemptJob
from pipistrelle.protocol.events import DecisionRejectedData
from pipistrelle.server.attempts.attempt import Attempt, spending_of
from pipistrelle.server.engine.jobs import NEVER_RAN, Job
from pipistrelle.server.engine.observers import Observer


class PreemptionSummary(Struct, frozen=True, kw_only=True):
    """What became of the jobs that were to be preempted.

    ``asked`` is how many decisions of that kind were carried out. Of these jobs some were ``preempted``: ``requeued``
    or ``cancelled``; ``dumped`` of them wrote a last dump. Others ``ended_before``: by themselves, in their grace or
    during their last dump, or as nodes failed. ``lost`` are the unit-seconds of work that the preempted ones lost,
    ``kept`` those of the work that is in dumps of theirs.
    """

    asked: int
    preempted: int
    requeued: int
    cancelled: int
    dumped: int
    ended_before: int
    lost: float
    kept: float


class PreemptionBook(Kept, Observer):
    """Gathers what `PreemptionSummary` tells."""

    _kept = ("_asked", "_requeued", "_cancelled", "_dumped", "_before", "_lost", "_saved")

    def __init__(self) -> None:
        self._asked = self._requeued = self._cancelled = self._dumped = self._before = 0
        #: of each preempted attempt, in unit-seconds
        self._lost = array("d")
        self._saved = array("d")

    def decided(self, now: float, decision: Decision, rejected: DecisionRejectedData | None) -> None:
        """Count a decision that was carried out."""
        if type(decision) is PreemptJob and rejected is None:
            self._asked += 1

    def ended(self, now: float, job: Job) -> None:
        """Count an attempt that was to be preempted."""
        attempt = job.attempt
        if not isinstance(attempt, Attempt) or attempt.preempting is None or job.state in NEVER_RAN:
            return
        if not attempt.preempted:
            self._before += 1
            return
        spent = spending_of(job)
        self._lost.append(spent.lost)
        self._saved.append(spent.useful)
        if attempt.retried:
            self._requeued += 1
        else:
            self._cancelled += 1
        self._dumped += attempt.dumped_last

    def summary(self) -> PreemptionSummary:
        """Return the figures so far."""
        return PreemptionSummary(
            asked=self._asked,
            preempted=self._requeued + self._cancelled,
            requeued=self._requeued,
            cancelled=self._cancelled,
            dumped=self._dumped,
            ended_before=self._before,
            lost=fsum(self._lost),
            kept=fsum(self._saved),
        )
