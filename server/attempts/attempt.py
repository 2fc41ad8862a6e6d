"""Attempts of a job that can lose its nodes, and how each attempt spent its time."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isnan, nan
from typing import Final

import numpy as np
from msgspec import Struct, convert, to_builtins
from numpy.typing import NDArray

from pipistrelle.protocol.base.state import message_of, plain, register
from pipistrelle.protocol.fields import PreemptMode
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.attempts.accounting import EXPECTED_ATTEMPTS, split_work, worked_until
from pipistrelle.server.attempts.last_dump import LastDump
from pipistrelle.server.attempts.progress import Account, AttemptProgress, RigidProgress
from pipistrelle.server.engine.jobs import Job
from pipistrelle.traces.resilience import NONE, Requeue, Resilience, RestartWalltime, Walltime


class Spending(Struct, frozen=True):
    """Unit-seconds of an attempt by use; they add up to its units times its duration.

    ``useful`` work belongs to a completed job or was saved in a checkpoint. ``unsaved`` work was in no checkpoint when
    the walltime or the scheduler ended the attempt. ``lost`` work was rolled back or lost with the allocation.
    ``spare`` units were up and idle. ``down`` units were held while their node was down. ``waiting`` is the time before
    the attempt's work began, while nodes were down. ``overhead`` is prologue and epilogue.
    """

    useful: float = 0.0
    unsaved: float = 0.0
    lost: float = 0.0
    dumping: float = 0.0
    reading: float = 0.0
    spare: float = 0.0
    down: float = 0.0
    waiting: float = 0.0
    overhead: float = 0.0


class Attempt(Struct, eq=False):
    """One attempt to run a job; times are in simulated seconds.

    ``number`` counts from 0. ``root``, ``origin`` and ``asked`` are the id, submit time and walltime of the first
    attempt. ``saved`` is the work that earlier attempts saved, in seconds on the whole allocation.
    """

    number: int
    root: str
    origin: float
    asked: float
    resilience: Resilience
    saved: float = 0.0
    #: factor on the runtime for the attempt's nodes; ``saved`` does not include it
    dilation: float = 1.0
    #: number of attempts in succession before this one that saved nothing
    fruitless: int = 0
    #: submit time that decides its queue position; None: the present time
    queued: float | None = None
    #: serial number of this start in the run
    serial: int = -1
    #: when its work began; NaN before that
    began: float = nan
    #: when its work or walltime ends if nothing else happens
    work_ends: float = inf
    #: its units as array indices, set at its start
    parts: Sequence[slice | NDArray[np.intp]] = ()
    progress: AttemptProgress | RigidProgress | LastDump | None = None
    #: when it stopped working, known at its end; NaN before that
    stopped: float = nan
    _account: Account | None = None
    #: how its units' time was spent; computed on request after its end
    spending: Spending | None = None
    #: nodes lost during the attempt; down nodes that must come up before it begins
    lost: NodeSet = NodeSet.EMPTY
    awaited: NodeSet = NodeSet.EMPTY
    #: all nodes that it ever waited for
    waited: NodeSet = NodeSet.EMPTY
    #: why it lost its allocation; empty if it did not
    cause: str = ""
    retried: bool = False
    #: how it is being preempted, and whether preemption has ended it
    preempting: PreemptMode | None = None
    preempted: bool = False
    dumped_last: bool = False

    @property
    def account(self) -> Account | None:
        """How the attempt's time was spent; known only after its end.

        None for a job without checkpoints.
        """
        # Computed on request, which rarely happens while the scheduler waits.
        if self._account is None and self.progress is not None and self.stopped == self.stopped:
            self._account = self.account_at(self.stopped)
            self.progress = None
        return self._account

    def account_at(self, time: float) -> Account | None:
        """Return how the attempt's time until ``time`` (s) was spent.

        The result is None for a job without checkpoints.
        """
        if self.progress is None:
            return None
        account = self.progress.account(time)
        if self.dilation == 1.0:
            return account
        before = account.saved == self.saved * self.dilation
        saved = self.saved if before else account.saved / self.dilation
        return account._replace(saved=saved, unsaved=account.unsaved / self.dilation)

    @property
    def has_begun(self) -> bool:
        """Whether the attempt's work has begun."""
        return self.began == self.began

    def remaining(self, work: float) -> float:
        """Return the share (0 to 1) of a job's work that earlier attempts left to do.

        ``work`` is the job's whole work (s).
        """
        return max(0.0, 1.0 - self.saved / work) if work > 0 else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRules:
    """The options for jobs that lose their units.

    Attributes:
        resilience: default for jobs whose workload sets none.
        requeue: queue position after a loss of nodes.
        max_attempts: maximum number of starts of a job; None: no limit.
        restart_walltime: walltime of a new attempt.
        walltime: whether writing and reading checkpoints counts towards the walltime or extends it. An extension is
            computed at submission, for nodes of average failure rate.
        expected_attempts: the run stalls if a job that loses its work is expected to need more attempts than this;
            0: no limit.
    """

    resilience: Resilience = NONE
    requeue: Requeue = "original"
    max_attempts: int | None = None
    restart_walltime: RestartWalltime = "full"
    walltime: Walltime = "asked"
    expected_attempts: int = EXPECTED_ATTEMPTS


def attempt_of(job: Job) -> Attempt:
    """Return the current attempt of a submitted job."""
    assert isinstance(job.attempt, Attempt), f"{job.id} has no attempt"
    return job.attempt


_KEPT: Final = (
    *("number", "root", "origin", "asked", "resilience", "saved", "fruitless", "queued", "serial", "began"),
    *("dilation", "work_ends", "progress", "lost", "awaited", "waited", "cause", "retried", "preempting"),
)
register(Resilience, lambda resilience: [to_builtins(resilience)], lambda state: convert(state[0], Resilience))
# Only for attempts that have not ended; the job still has their units.
register(
    Attempt,
    lambda attempt: [plain(getattr(attempt, name)) for name in _KEPT],
    lambda state: Attempt(**dict(zip(_KEPT, map(message_of, state), strict=True))),
)


def spending_of(job: Job) -> Spending:
    """Return how the units of an ended attempt spent their time."""
    attempt = attempt_of(job)
    if attempt.spending is None:
        attempt.spending = _spending_of(job, attempt)
    return attempt.spending


def has_worked(job: Job, attempt: Attempt) -> bool:
    """Return whether a job finished its work.

    The result is also True if the job then reported a failure by its exit status.
    """
    if job.state == "COMPLETED_SUCCESSFULLY":
        return True
    if job.state == "COMPLETED_FAILED":
        return not attempt.cause
    return job.in_time and job.end >= attempt.work_ends


def _spending_of(job: Job, attempt: Attempt) -> Spending:
    units = len(job.alloc)
    whole = units * (job.end - job.start)
    began, account = attempt.began, attempt.account
    if isnan(began):
        return Spending(waiting=whole)
    waiting = units * (began - job.start - job.prologue) if attempt.waited else 0.0
    has_overhead = bool(job.prologue or job.epilogue)
    if account is None:  # without dumps, either all work is done or none
        work = units * (worked_until(job.end, began, attempt.work_ends) - began)
        overhead = whole - waiting - work if has_overhead else 0.0
        parts = split_work(work, has_worked(job, attempt), bool(attempt.cause))
        return Spending(*parts, waiting=waiting, overhead=overhead)
    each = units / account.nodes
    inside = each * account.node_seconds
    return Spending(
        useful=each * account.node_useful,
        unsaved=each * account.node_unsaved,
        lost=each * account.node_lost,
        dumping=each * account.node_dumping,
        reading=each * account.node_reading,
        spare=each * account.node_spare,
        down=each * account.node_down,
        waiting=waiting,
        overhead=whole - waiting - inside if has_overhead else 0.0,
    )
