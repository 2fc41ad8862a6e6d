"""Hooks on the engine: recorders, metrics and progress hang here, and the loop stays readable."""

from typing import Final

from pipistrelle.protocol.decisions import Decision
from pipistrelle.protocol.events import DecisionRejectedData
from pipistrelle.protocol.fields import EndReason
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.jobs import Job

#: what stands for a power state while units are on their way to it, as in Batsim's files
SWITCHING_ON: Final = -1
SWITCHING_OFF: Final = -2


class Observer:
    """Every hook does nothing; derive and override. Times are seconds of simulated time.

    The engine calls only the hooks that an observer listens to, in the order in which things happen.
    """

    def listens(self, hook: str) -> bool:
        """Tell whether the observer wants to be told of this hook; it does if its class overrides it."""
        return getattr(type(self), hook) is not getattr(Observer, hook)

    def begins(self, now: float, units: int) -> None:
        """Take note that the run begins on a machine of ``units`` free units."""

    def submitted(self, now: float, job: Job) -> None:
        """Take note of a job that joined the queue."""

    def started(self, now: float, job: Job) -> None:
        """Take note of a job that was given its units."""

    def ended(self, now: float, job: Job) -> None:
        """Take note of a job that reached a final state: completed, killed or rejected."""

    def decided(self, now: float, decision: Decision, rejected: DecisionRejectedData | None) -> None:
        """Take note of a decision that was carried out, or of why it was not."""

    def settled(self, now: float, idle: int, down: int) -> None:
        """Take note that ``idle`` units are free after all that happens at ``now``, before time goes on.

        Of the others ``down`` are out of service without a job that holds them. An instant that leaves as many free as
        the one before may be left out.
        """

    def switched(self, now: float, units: NodeSet, pstate: int) -> None:
        """Take note that units, all that were asked together, are in a power state now.

        When they are asked, before anything has changed, this tells of `SWITCHING_ON` (to a state that computes) or
        `SWITCHING_OFF` (to one that sleeps) in place of a power state.
        """

    def departed(self, now: float, units: NodeSet, on: bool) -> None:
        """Take note that units begin to be switched on, or off; `switched` tells next of all that were asked."""

    def arrived(self, now: float, units: NodeSet, complete: bool) -> None:
        """Take note that units have been switched on or off; ``complete`` if all are there that were asked together."""

    def availability(self, now: float, units: NodeSet, available: bool) -> None:
        """Take note that no more jobs can start on units, or that they can again; jobs that run there are not hurt."""

    def went_down(self, now: float, nodes: NodeSet, units: NodeSet, planned: bool) -> None:
        """Take note that nodes, with all their units, went down together: by failure, or as planned."""

    def came_up(self, now: float, nodes: NodeSet, units: NodeSet) -> None:
        """Take note that nodes, with all their units, are up again."""

    def ends(self, now: float, reason: EndReason, message: str) -> None:
        """Take note that the run is over; called once, whatever ended it."""
