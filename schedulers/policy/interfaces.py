"""The interfaces of placements, backfilling rules and policies, and what their states are; orders have a module."""

from typing import Any, ClassVar, NamedTuple, Protocol

from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.order import Order
from pipistrelle.schedulers.policy.view import View


class Placement(Protocol):
    """Picks units for a job, or refuses.

    It is asked about times to come as well, to make reservations: its answer depends on nothing but what it is given.
    Where it finds units for a job, it also finds some, perhaps others, when more are open.
    """

    @property
    def fits_by_count(self) -> bool:
        """Whether it never refuses a job that needs no more units than are open: then rules need not ask, but count."""

    def pick(self, job: SchedulerJob, open_units: NodeSet, machine: Machine) -> NodeSet | None:
        """Return as many of ``open_units`` as the job needs, None if it refuses to."""


class Backfill(Protocol):
    """Starts jobs; it may keep what it knows from one instant for the next."""

    def schedule(self, view: View, placement: Placement) -> None:
        """Start every job that may start now."""


class Policy(Protocol):
    """Decides; write one of your own by deriving from nothing and having these.

    A policy that keeps units from jobs may have `reservations`, which returns for each of its reservations a text:
    when a run stalls, its message names them. One that keeps account of what ran may have ``learn_past(view, steps)``:
    it is called when the policy takes a run over, with each start and end so far (`PastStep`).
    """

    @property
    def name(self) -> str:
        """What the server and the outputs call it."""

    @property
    def order(self) -> Order:
        """The order in which jobs wait in the view."""

    def decide(self, view: View) -> None:
        """Look at the view and act on it; called once for each notice, except the first and the last."""


class PastStep(NamedTuple):
    """A start or an end, at ``time`` (s), of a job that another scheduler started before this one took the run over."""

    time: float
    job: SchedulerJob
    starts: bool


class Stateless:
    """A part of a policy that keeps nothing from one decision for the next; a part of one's own may derive from it."""

    def state(self) -> None:
        """Return nothing."""

    def restore(self, state: None, *made: object) -> None:
        """Go on as one that has just been made."""


class KeepsBegins(Kept):
    """A backfilling rule that makes its reservations anew at each decision, and knows when they begin."""

    _kept: ClassVar[tuple[str, ...]] = ("_begins",)

    def __init__(self) -> None:
        #: {job's number: when it is to start (s)}, of the reservations made last
        self._begins: dict[int, float] = {}

    def reservation(self, job: SchedulerJob) -> float | None:
        """Return by when (s) a waiting job will start, inf if no one can tell; None if it has no reservation."""
        return self._begins.get(job.number)


def state_of(part: object, kind: str) -> Any:
    """Return the state of a policy, an order or a backfilling rule; ``kind`` says which.

    Raises
    ------
    PolicyError
        when its class does not tell it.
    """
    take = getattr(part, "state", None)
    if take is None or not hasattr(part, "restore"):
        name = f"{type(part).__module__}.{type(part).__qualname__}"
        raise PolicyError(
            f"the state of the {kind} {name} cannot be had",
            expected="the methods state and restore",
            hint="'pipistrelle help write-your-scheduler' tells them; what keeps no state derives from Stateless.",
        )
    return take()


def learn(part: object, machine: Machine) -> None:
    """Tell a placement or policy about the machine if it wants to know; PipistrelleError if it does not fit."""
    tell = getattr(part, "learn", None)
    if tell is not None:
        tell(machine)
