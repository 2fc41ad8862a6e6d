"""The figures of a run whose jobs can lose their units, by failures or preemption, gathered while it goes on."""

from array import array
from math import fsum, isnan
from typing import Final

from msgspec import Struct
from msgspec.structs import astuple

from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.decisions import Decision, PreemptJob
from pipistrelle.protocol.events import DecisionRejectedData
from pipistrelle.server.attempts.attempt import Attempt, Spending, spending_of
from pipistrelle.server.engine.jobs import NEVER_RAN, Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.outputs.node_book import NodeBook

_KINDS: Final = tuple(Spending.__struct_fields__)


class SizeClass(Struct, frozen=True, kw_only=True):
    """Jobs of ``smallest`` to ``largest`` units: how long they ran together (s), and how often nodes interrupted them.

    ``mean_time_to_interruption`` is the one by the other in seconds, None if there was no interruption. An interruption
    is a failure or maintenance that strikes a job which works, survived or not.
    """

    smallest: int
    largest: int
    attempts: int
    running: float
    interruptions: int
    mean_time_to_interruption: float | None


class ReliabilitySummary(Struct, frozen=True, kw_only=True):
    """Figures of failures; times in seconds of simulated time.

    ``node_seconds`` are those of all nodes from time 0 to the end of the run: ``all``, ``busy``, ``idle``, ``down``
    (by failures) and ``maintenance``. ``availability`` is the share in which nodes were up. ``unit_seconds`` tells what
    attempts spent theirs on, as in the attempts' file. ``given_up`` jobs lost their nodes and were not submitted again.
    ``unavailable`` are the unit-seconds of nodes that were down, but for those that jobs held.
    """

    node_failures: int
    availability: float | None
    node_seconds: dict[str, float]
    attempts: int
    interrupted_attempts: int
    survived_failures: int
    given_up: int
    unavailable: float
    unit_seconds: dict[str, float]
    by_size: tuple[SizeClass, ...]


class ReliabilityBook(Kept, Observer):
    """Gathers what `ReliabilitySummary` tells; the book of nodes must be told of everything, too."""

    _kept = ("_spent", "_held", "_sizes", "_interruptions", "_lost", "_given_up", "_survived")

    def __init__(self, nodes: NodeBook) -> None:
        self._nodes = nodes
        #: of each attempt one after the other: what it spent its time on, in the order of `Spending`
        self._spent = array("d")
        #: of each attempt: how long it held its units (s), its size, and how often nodes interrupted it
        self._held = array("d")
        self._sizes = array("q")
        self._interruptions = array("q")
        self._lost = self._given_up = self._survived = 0

    def ended(self, now: float, job: Job) -> None:
        """Count an attempt that had units."""
        attempt = job.attempt
        if not isinstance(attempt, Attempt) or not job.alloc:
            return
        self._spent.extend(astuple(spending_of(job)))
        self._held.append(job.end - job.start)
        self._sizes.append(job.size)
        survived = 0 if attempt.account is None else attempt.account.survived
        interruptions = survived
        if attempt.cause and not attempt.preempted:
            interruptions += not isnan(attempt.began)  # else it has waited, in vain
            self._lost += 1
            self._given_up += not attempt.retried
        self._survived += survived
        self._interruptions.append(interruptions)

    def _by_size(self) -> tuple[SizeClass, ...]:
        """Return the attempts by powers of two of their sizes."""
        classes: dict[int, list[int]] = {}
        for row, size in enumerate(self._sizes):
            classes.setdefault(size.bit_length() - 1, []).append(row)
        found = []
        for power in sorted(classes):
            rows = classes[power]
            running = fsum(self._held[row] for row in rows)
            interruptions = sum(self._interruptions[row] for row in rows)
            found.append(
                SizeClass(
                    smallest=1 << power,
                    largest=(2 << power) - 1,
                    attempts=len(rows),
                    running=running,
                    interruptions=interruptions,
                    mean_time_to_interruption=running / interruptions if interruptions else None,
                )
            )
        return tuple(found)

    def summary(self) -> ReliabilitySummary:
        """Return the figures so far."""
        seconds = self._nodes.node_seconds
        total = seconds["all"]
        return ReliabilitySummary(
            node_failures=self._nodes.failures,
            availability=1.0 - (seconds["down"] + seconds["maintenance"]) / total if total > 0 else None,
            node_seconds=seconds,
            attempts=len(self._sizes),
            interrupted_attempts=self._lost,
            survived_failures=self._survived,
            given_up=self._given_up,
            unavailable=self._nodes.unavailable,
            unit_seconds={kind: fsum(self._spent[at :: len(_KINDS)]) for at, kind in enumerate(_KINDS)},
            by_size=self._by_size(),
        )


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
