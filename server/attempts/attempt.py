"""What is known of one try of a job, where its nodes can fail."""

from collections.abc import Sequence
from math import inf, nan
from typing import TYPE_CHECKING

from msgspec import Struct

from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.traces.resilience import Resilience

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipistrelle.server.attempts.account import Account
    from pipistrelle.server.attempts.progress import Course
    from pipistrelle.server.attempts.rigid_progress import RigidCourse
    from pipistrelle.server.attempts.spending import Spending


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
    parts: Sequence["slice | NDArray[np.intp]"] = ()
    course: "Course | RigidCourse | None" = None
    #: up to when it has worked, known at its end; NaN before
    stopped: float = nan
    _account: "Account | None" = None
    #: what its units spent their time on, once somebody has asked after its end
    spending: "Spending | None" = None
    #: nodes of the allocation that were lost on the way, and those whose repair it awaits before it begins
    lost: NodeSet = NodeSet.EMPTY
    awaited: NodeSet = NodeSet.EMPTY
    #: all nodes that it ever awaited so
    waited: NodeSet = NodeSet.EMPTY
    #: what made it lose its allocation; empty if nothing did
    cause: str = ""
    #: whether a new attempt follows
    retried: bool = False

    @property
    def account(self) -> "Account | None":
        """What became of its time, known at its end; None without a course."""
        # Worked out when somebody asks, which is seldom while the scheduler waits.
        if self._account is None and self.course is not None and self.stopped == self.stopped:
            self._account = self.course.account(self.stopped)
            self.course = None
        return self._account

    def remaining(self, work: float) -> float:
        """Return the share of a job's work (s) that earlier attempts have left, 0 to 1."""
        return max(0.0, 1.0 - self.saved / work) if work > 0 else 1.0
