"""Figures of a run in which jobs can lose their units (failures, preemption)."""

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
    """Interruptions of jobs with ``smallest`` to ``largest`` units.

    ``running`` is the total time of their attempts (s), ``mean_time_to_interruption`` (s) is ``running`` /
    ``interruptions``, or None without interruptions. An interruption is a failure or maintenance that hits a working
    job, even if the job survives.
    """

    smallest: int
    largest: int
    attempts: int
    running: float
    interruptions: int
    mean_time_to_interruption: float | None


class ReliabilitySummary(Struct, frozen=True, kw_only=True):
    """Figures of failures; times in simulated seconds.

    ``node_seconds`` covers all nodes and the whole run: ``all``, ``busy``, ``idle``, ``down`` (by failures) and
    ``maintenance``. ``availability`` is the share of time in which nodes were up. ``unit_seconds`` is how attempts
    spent their time, as in ``attempts.csv``. ``given_up`` counts jobs that lost their nodes and were not requeued.
    ``unavailable`` is the unit-seconds of down nodes that no job held.
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
    """The observer that collects the values of a `ReliabilitySummary` during a run.

    Its `NodeBook` must observe the run, too.
    """

    _kept = ("_spent", "_held", "_sizes", "_interruptions", "_lost", "_given_up", "_survived")

    def __init__(self, nodes: NodeBook) -> None:
        self._nodes = nodes
        #: the `Spending` of each attempt, one value per field, attempt after attempt
        self._spent = array("d")
        #: per attempt: time that it held units (s), its size (units), its number of interruptions
        self._held = array("d")
        self._sizes = array("q")
        self._interruptions = array("q")
        self._lost = self._given_up = self._survived = 0

    def ended(self, now: float, job: Job) -> None:
        """Add the time and interruptions of an attempt that held units."""
        attempt = job.attempt
        if not isinstance(attempt, Attempt) or not job.alloc:
            return
        self._spent.extend(astuple(spending_of(job)))
        self._held.append(job.end - job.start)
        self._sizes.append(job.size)
        survived = 0 if attempt.account is None else attempt.account.survived
        interruptions = survived
        if attempt.cause and not attempt.preempted:
            interruptions += not isnan(attempt.began)  # else the job had not begun its work
            self._lost += 1
            self._given_up += not attempt.retried
        self._survived += survived
        self._interruptions.append(interruptions)

    def _by_size(self) -> tuple[SizeClass, ...]:
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
        """Return the figures of failures so far."""
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
    """The numbers of preemptions in a run, and how they ended.

    ``asked`` counts the preemption decisions carried out. ``preempted`` jobs were ``requeued`` or ``cancelled``, and
    ``dumped`` of them wrote a last checkpoint. The other jobs ended before their preemption took effect
    (``ended_before``), by themselves or because they lost their nodes. ``lost`` and ``kept`` are the preempted jobs'
    work that was lost or saved in checkpoints (unit-seconds).
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
    """The observer that collects the values of a `PreemptionSummary` during a run."""

    _kept = ("_asked", "_requeued", "_cancelled", "_dumped", "_before", "_lost", "_saved")

    def __init__(self) -> None:
        self._asked = self._requeued = self._cancelled = self._dumped = self._before = 0
        #: work lost and work saved, in unit-seconds, of each preempted attempt
        self._lost = array("d")
        self._saved = array("d")

    def decided(self, now: float, decision: Decision, rejected: DecisionRejectedData | None) -> None:
        """Count a preemption decision that was carried out."""
        if type(decision) is PreemptJob and rejected is None:
            self._asked += 1

    def ended(self, now: float, job: Job) -> None:
        """Count an attempt that the scheduler preempted."""
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
        """Return the outcome of preemptions so far."""
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
