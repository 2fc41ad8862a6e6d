"""What is known of one try of a job, where it can lose its nodes."""

from collections.abc import Sequence
from math import inf, nan
from typing import Final

import numpy as np
from msgspec import Struct, convert, to_builtins
from numpy.typing import NDArray

from pipistrelle.protocol.base.state import message_of, plain, register
from pipistrelle.protocol.fields import PreemptMode
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.attempts.last_dump import LastDump
from pipistrelle.server.attempts.progress import Account, AttemptProgress, RigidProgress
from pipistrelle.traces.resilience import Resilience


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

    def remaining(self, work: float) -> float:
        """Return the share of a job's work (s) that earlier attempts have left, 0 to 1."""
        return max(0.0, 1.0 - self.saved / work) if work > 0 else 1.0


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
