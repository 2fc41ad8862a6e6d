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
    """A placement: picks units for a job, or refuses the job.

    Backfilling rules also use placements to plan reservations, so the result must depend only on the arguments. If a
    job can be placed on some units, it must also be placed when more units are open.
    """

    @property
    def fits_by_count(self) -> bool:
        """Return whether every large enough set of free units suits a job."""

    def pick(self, job: SchedulerJob, open_units: NodeSet, machine: Machine) -> NodeSet | None:
        """Return as many of ``open_units`` as the job needs; None to refuse the job."""


class Backfill(Protocol):
    """A backfilling rule, which starts queued jobs.

    It may keep data between decisions.
    """

    def schedule(self, view: View, placement: Placement) -> None:
        """Start every queued job that may start now."""


class Policy(Protocol):
    """A scheduling policy, which makes all decisions.

    A policy needs no base class.

    Four methods are optional. ``wake_when(view)`` is called after each decision. It returns the conditions under which
    a submission or the end of a job can change a later decision, or None if each of them can. Other events come with
    the next notice. ``reservations()`` returns one text per reservation, which the error quotes if a run stalls.
    ``learn_past(view, steps)`` is called when the policy takes over a run. It gets each start and end so far as a
    `PastStep`. ``no_more_jobs()`` is called once no further job will be submitted.
    """

    @property
    def name(self) -> str:
        """The policy's name, which is sent to the server and written to the outputs."""

    @property
    def order(self) -> Order:
        """The order of queued jobs in the view."""

    def decide(self, view: View) -> None:
        """Read the view and make decisions.

        This is called for each notice (message from the server) except the first and last.
        """


class PastStep(NamedTuple):
    """The start or end, at ``time`` (s), of a job that an earlier scheduler started."""

    time: float
    job: SchedulerJob
    starts: bool


class Stateless:
    """Base class for parts of a policy that keep no data between decisions."""

    def state(self) -> None:
        """Return None: the part has no state."""

    def restore(self, state: None, *made: object) -> None:
        """Do nothing: the part has no state."""


class KeepsBegins(Kept):
    """Base class of backfilling rules that keep no reservations between decisions.

    They plan all reservations again at each decision.
    """

    _kept: ClassVar[tuple[str, ...]] = ("_begins",)

    def __init__(self) -> None:
        #: {job's number: planned start (s)} from the last decision
        self._begins: dict[int, float] = {}

    def reservation(self, job: SchedulerJob) -> float | None:
        """Return the planned start (s) of a job; inf if the start is unknown.

        Return None if the job has no reservation.
        """
        return self._begins.get(job.number)


def state_of(part: object, kind: str) -> Any:
    """Return the state of a policy's part.

    Raise PolicyError if the part cannot save its state. ``kind`` is what the message calls the part.
    """
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
    """Call a part's method ``learn(machine)`` if the part has one.

    The method raises an error if the machine does not suit the part.
    """
    tell = getattr(part, "learn", None)
    if tell is not None:
        tell(machine)
