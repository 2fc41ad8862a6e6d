"""The interfaces of placements, backfilling rules and policies; orders have theirs in a module of their own."""

from typing import Protocol

from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.units.nodesets import NodeSet
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
