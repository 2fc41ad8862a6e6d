"""The interface between the Maui policy and a machine: job sizes, plan and starts."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.maui.limits.arrays import Rows
from pipistrelle.schedulers.maui.priority.waiting import Bools, MauiQueue
from pipistrelle.schedulers.plan.access import Restriction
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.order import Floats

_Taken = TypeVar("_Taken")
_Place = TypeVar("_Place")


class Filling(NamedTuple):
    """The parameters of backfilling: BACKFILLPOLICY, BACKFILLMETRIC and BACKFILLDEPTH."""

    policy: str
    metric: str
    depth: int


class Backfilled(NamedTuple):
    """The jobs that may be backfilled, one row of the queue per job.

    Attributes:
        start: starts the job of a row if it fits; returns whether the job started.
        eligible: which rows may be backfilled; rows of started jobs are removed.
        ranks: priorities of the rows; the highest comes first.
        allowed: returns for each row whether the limits let its job start; None: all may start.
        changed: whether jobs started since ``eligible`` was computed, so that limits may now exclude other jobs.
    """

    queue: MauiQueue
    start: Callable[[int], bool]
    eligible: Bools
    ranks: Floats
    allowed: Callable[[Rows], Bools | None]
    changed: bool


class PlannedMachine(Protocol[_Taken, _Place]):
    """A machine as the Maui policy uses it, with the plan of its future.

    A job takes a set of units, or parts of nodes that jobs share; the argument ``taken`` is either of these. A place is
    what a running or planned job takes, with its ``begin`` and ``end``. All times are in seconds. Jobs that the same
    reservations admit share a number, the argument ``access``.
    """

    #: processors per node, by which a job of n processors has n / processors_per_node nodes, rounded up
    processors_per_node: int
    #: processors of each node, by number; None: one each
    processors: Sequence[int] | None

    def size(self, job: SchedulerJob) -> int:
        """Return a job's number of processors.

        Limits, priorities and fairshare use this number.
        """

    @property
    def in_service(self) -> int:
        """Return the number of processors in service."""

    @property
    def free(self) -> int:
        """Return the number of free processors."""

    def never(self, job: SchedulerJob) -> str | None:
        """Return why a job fits nowhere on the empty machine; None if it fits."""

    def state(self) -> dict[str, Any]:
        """Return the running jobs with their units and latest ends, as plain values."""

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the running jobs that the method `state` returned."""

    def plain(self, taken: _Taken) -> Any:
        """Return the units, or parts of nodes, in ``taken`` as values that JSON can hold."""

    def parse(self, told: Any) -> _Taken:
        """Return the units, or parts of nodes, that ``told`` describes.

        ``told`` is a result of `plain`.
        """

    def follow(self, now: float, unavailable: NodeSet) -> None:
        """Advance the plan to ``now``; ``unavailable`` units or nodes are out of service."""

    def begin(self, restrictions: Sequence[Restriction], reservations: int) -> None:
        """Begin a decision.

        ``restrictions`` say which units are closed to which jobs, and when. At most ``reservations`` reservations may
        be made before the next call.
        """

    def started(self, job: SchedulerJob, taken: _Taken, end: float) -> None:
        """Add a job that starts now; ``end`` is its latest end."""

    def ended(self, number: int) -> None:
        """Remove a job that has ended; ``number`` is the job's number."""

    def end(self, number: int) -> float:
        """Return the latest end (s) of a running job, given its number."""

    def is_end(self, time: float) -> bool:
        """Return whether ``time`` (s) is the latest end of a running job."""

    def held_by(self, job: SchedulerJob) -> _Taken:
        """Return the units, or parts of nodes, that a running job holds."""

    def fit_now(self, access: int, job: SchedulerJob, walltime: float) -> _Taken | None:
        """Return the units, or parts of nodes, on which a job could start now.

        Return None if the job does not fit.
        """

    def fit_without(self, access: int, job: SchedulerJob, walltime: float, gone: Sequence[int]) -> _Taken | None:
        """Return where a job could start now if some running jobs had ended.

        The result is the units, or parts of nodes, that it would take; None if it does not fit even then.

        Args:
            gone: numbers of these running jobs, which must have started before this instant.
        """

    def find(self, access: int, job: SchedulerJob, walltime: float) -> _Place | None:
        """Return the earliest reservation that a job could get; None if it fits nowhere.

        The reservation has the units, or parts of nodes, that the job would hold, with start and end.
        """

    def reserve(self, access: int, job: SchedulerJob, walltime: float) -> _Place | None:
        """Make and return the earliest reservation for a job; None if it fits nowhere.

        The reservation has the units, or parts of nodes, that the job will hold, with start and end.
        """

    def keep(self, place: _Place) -> None:
        """Keep a reservation, ``place``, until `begin` is called again."""

    def is_free(self, access: int, place: _Place) -> bool:
        """Return whether all units in ``place`` are free from its start to its end."""

    def place(self, job: SchedulerJob, taken: _Taken, begin: float, end: float) -> _Place:
        """Return a reservation, from ``begin`` to ``end`` (s), of the units ``taken``.

        On shared nodes, ``taken`` has parts of nodes instead of units.
        """

    def taken(self, place: _Place) -> _Taken:
        """Return the units, or parts of nodes, of a reservation."""

    def is_lost(self, taken: _Taken) -> bool:
        """Return whether any of these units or nodes is out of service."""

    def is_free_now(self, job: SchedulerJob, taken: _Taken) -> bool:
        """Return whether the units, or parts of nodes, in ``taken`` are free now.

        They are what the waiting job would take.
        """

    def start(self, job: SchedulerJob, taken: _Taken, why: str | None) -> None:
        """Start a job now on the units, or parts of nodes, in ``taken``."""

    def backfill(self, jobs: Backfilled, accesses: int, window: Filling) -> None:
        """Start jobs that fit and do not delay any reservation.

        Args:
            accesses: number of access numbers. Jobs that the same reservations admit share an access number.
            window: the parameters of backfilling.
        """
