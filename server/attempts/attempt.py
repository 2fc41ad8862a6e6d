"""What is known of one try of a job, where it can lose its nodes; and what its units spent their time on."""

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
    """Unit-seconds of an attempt; together they are its units times the time from its start to its end.

    ``useful`` is work that is done or saved in a dump. ``unsaved`` is work at the end of an attempt that its walltime
    or its scheduler ended, ``lost`` work that was rolled back, or lost with the allocation. ``spare`` units were up and
    idle in the allocation, ``down`` ones were held although their node was down. ``waiting`` is the time before the
    attempt began because nodes of its allocation were down, ``overhead`` prologue and epilogue.
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
    """A job's nth try; times in seconds of simulated time.

    ``number`` counts from 0; ``root`` is the id of the first attempt, ``origin`` when that was submitted, ``asked`` its
    walltime. ``saved`` is how much of the job's work (s on its whole allocation) earlier attempts have kept.
    """

    number: int
    root: str
    origin: float
    asked: float
    resilience: Resilience
    saved: float = 0.0
    #: by what its runtime is multiplied on the nodes that it has; ``saved`` is work that is not multiplied
    dilation: float = 1.0
    #: how many attempts before this one, in succession, have kept nothing
    fruitless: int = 0
    #: as of when it queues; None: of now
    queued: float | None = None
    #: counts the starts of the run
    serial: int = -1
    #: when it began to work; NaN before
    began: float = nan
    #: when its work will be done, or its walltime over, if nothing happens any more
    work_ends: float = inf
    #: how its units are found in arrays, from its start on
    parts: Sequence[slice | NDArray[np.intp]] = ()
    progress: AttemptProgress | RigidProgress | LastDump | None = None
    #: up to when it has worked, known at its end; NaN before
    stopped: float = nan
    _account: Account | None = None
    #: what its units spent their time on, once somebody has asked after its end
    spending: Spending | None = None
    #: nodes of the allocation that were lost on the way, and those whose repair it awaits before it begins
    lost: NodeSet = NodeSet.EMPTY
    awaited: NodeSet = NodeSet.EMPTY
    #: all nodes that it ever awaited so
    waited: NodeSet = NodeSet.EMPTY
    #: what made it lose its allocation; empty if nothing did
    cause: str = ""
    #: whether a new attempt follows
    retried: bool = False
    #: how it is to be preempted, once somebody has asked for that; and whether that has ended it
    preempting: PreemptMode | None = None
    preempted: bool = False
    #: whether it saved something in a last dump then
    dumped_last: bool = False

    @property
    def account(self) -> Account | None:
        """What became of its time, known at its end; None of an attempt without dumps."""
        # Worked out when somebody asks, which is seldom while the scheduler waits.
        if self._account is None and self.progress is not None and self.stopped == self.stopped:
            self._account = self.account_at(self.stopped)
            self.progress = None
        return self._account

    def account_at(self, time: float) -> Account | None:
        """Return what has become of the time until then (s); None of an attempt without dumps."""
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
        """Whether it has begun to work."""
        return self.began == self.began

    def remaining(self, work: float) -> float:
        """Return the share of a job's work (s) that earlier attempts have left, 0 to 1."""
        return max(0.0, 1.0 - self.saved / work) if work > 0 else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRules:
    """How jobs live with the loss of their units.

    Parameters
    ----------
    resilience
        how jobs meet failures whose workload does not say.
    requeue
        where a job that has lost its nodes queues again.
    max_attempts
        how often a job is started at most; None: no limit.
    restart_walltime
        what walltime a new attempt has.
    walltime
        whether dumps and reads take of it or extend it, when a job is submitted, as on the machine's average nodes.
    expected_attempts
        a run has stalled when more attempts than these are to be expected of a job that has lost ten in
        succession, and all that it did in them; 0: however many they are.
    """

    resilience: Resilience = NONE
    requeue: Requeue = "original"
    max_attempts: int | None = None
    restart_walltime: RestartWalltime = "full"
    walltime: Walltime = "asked"
    expected_attempts: int = EXPECTED_ATTEMPTS


def attempt_of(job: Job) -> Attempt:
    """Return what is known of the present try of a job that was submitted."""
    assert isinstance(job.attempt, Attempt), f"{job.id} was not admitted"
    return job.attempt


_KEPT: Final = (
    *("number", "root", "origin", "asked", "resilience", "saved", "fruitless", "queued", "serial", "began"),
    *("dilation", "work_ends", "progress", "lost", "awaited", "waited", "cause", "retried", "preempting"),
)
register(Resilience, lambda resilience: [to_builtins(resilience)], lambda state: convert(state[0], Resilience))
# Of a try that has not ended; which units it has, its job knows.
register(
    Attempt,
    lambda attempt: [plain(getattr(attempt, name)) for name in _KEPT],
    lambda state: Attempt(**dict(zip(_KEPT, map(message_of, state), strict=True))),
)


def spending_of(job: Job) -> Spending:
    """Return what an attempt of a job, which has ended and had units, spent them on."""
    attempt = attempt_of(job)
    if attempt.spending is None:
        attempt.spending = _spending_of(job, attempt)
    return attempt.spending


def has_worked(job: Job, attempt: Attempt) -> bool:
    """Return whether a job that has ended had done all its work: even if it returned a failure, or in its epilogue."""
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
    if account is None:  # without dumps: all of it is done, or nothing
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
