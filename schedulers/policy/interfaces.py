"""The interfaces of placements, backfilling rules and policies."""

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

    Rules also call it to plan reservations, so the result must depend only on the arguments. If it finds units for a
    job, it must also find some (maybe others) when more are open.
    """

    @property
    def fits_by_count(self) -> bool:
        """Whether it accepts every job that needs no more units than are open."""

    def pick(self, job: SchedulerJob, open_units: NodeSet, machine: Machine) -> NodeSet | None:
        """Return as many of ``open_units`` as the job needs; None to refuse."""


class Backfill(Protocol):
    """Starts jobs; it may keep data between decisions."""

    def schedule(self, view: View, placement: Placement) -> None:
        """Start every job that may start now."""


class Policy(Protocol):
    """Takes the scheduling decisions; your own needs these members and no base class.

    Two methods are optional. ``reservations()`` returns one text per reservation; the error names them when a run
    stalls. ``learn_past(view, steps)`` is called when the policy takes over a run, with each start and end so far
    (`PastStep`).
    """

    @property
    def name(self) -> str:
        """The policy's name for the server and the outputs."""

    @property
    def order(self) -> Order:
        """The order in which jobs wait in the view."""

    def decide(self, view: View) -> None:
        """Read the view and act on it; called for all notices but the first and last."""


class PastStep(NamedTuple):
    """A start or end, at ``time`` (s), of a job started by a previous scheduler."""

    time: float
    job: SchedulerJob
    starts: bool


class Stateless:
    """Base class of parts that keep nothing between decisions."""

    def state(self) -> None:
        """Return nothing."""

    def restore(self, state: None, *made: object) -> None:
        """Do nothing."""


class KeepsBegins(Kept):
    """A backfilling rule that plans all reservations again at each decision."""

    _kept: ClassVar[tuple[str, ...]] = ("_begins",)

    def __init__(self) -> None:
        #: {job's number: planned start (s)} of the latest reservations
        self._begins: dict[int, float] = {}

    def reservation(self, job: SchedulerJob) -> float | None:
        """Return the latest expected start (s), inf if unknown; None if unreserved."""
        return self._begins.get(job.number)


def state_of(part: object, kind: str) -> Any:
    """Return a part's state; PolicyError, which names its ``kind``, if it has none."""
    take = getattr(part, "state", None)
    if take is None or not hasattr(part, "restore"):
        name = f"{type(part).__module__}.{type(part).__qualname__}"
        raise PolicyError(
            f"the {kind} {name} cannot save its state",
            expected="the methods state and restore",
            hint="See 'pipistrelle help write-your-scheduler'; derive from Stateless if there is no state.",
        )
    return take()


def learn(part: object, machine: Machine) -> None:
    """Pass the machine to a part that asks for it; PipistrelleError if unsuitable."""
    tell = getattr(part, "learn", None)
    if tell is not None:
        tell(machine)
