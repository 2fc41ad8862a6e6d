"""A policy is order x backfill x placement; anything with the same two methods is one too."""

from collections.abc import Collection, Mapping
from typing import Final, Protocol

from pipistrelle.protocol.errors import PipistrelleError, did_you_mean, printable
from pipistrelle.schedulers.backfill import BACKFILLS, Backfill
from pipistrelle.schedulers.orders import ORDERS, Order
from pipistrelle.schedulers.placement import PLACEMENTS, Placement
from pipistrelle.schedulers.view import View


class PolicyError(PipistrelleError):
    """A scheduler, or a part of one, that cannot be had."""


class Policy(Protocol):
    """Decides; write one of your own by deriving from nothing and having these."""

    @property
    def name(self) -> str:
        """What the server and the outputs call it."""

    @property
    def order(self) -> Order:
        """The order in which jobs wait in the view."""

    def decide(self, view: View) -> None:
        """Look at the view and act on it; called once for each notice, except the first and the last."""


class ComposedPolicy:
    """An order, a backfilling rule and a placement put together."""

    def __init__(self, name: str, order: Order, backfill: Backfill, placement: Placement) -> None:
        self.name = name
        self.order = order
        self._backfill = backfill
        self._placement = placement

    def decide(self, view: View) -> None:
        """Let the backfilling rule start what may start."""
        self._backfill.schedule(view, self._placement)


#: {axis: the parts that there are}
_AXES: Final[Mapping[str, Collection[str]]] = {"order": ORDERS, "backfill": BACKFILLS, "placement": PLACEMENTS}


def check_part(axis: str, part: str, where: str | None = None) -> None:
    """Raise PolicyError, naming the closest, unless there is such a part on the axis.

    ``where`` is what names the part, such as a file.
    """
    known = _AXES[axis]
    if part not in known:
        raise PolicyError(
            f"there is no {axis} '{printable(part)}'", where=where, hint=did_you_mean(part, sorted(known))
        )


def compose(
    *, order: str = "fcfs", backfill: str = "none", placement: str = "lowest", name: str | None = None
) -> ComposedPolicy:
    """Return the policy with these parts.

    Raises
    ------
    PolicyError
        when a part is unknown; the text names the closest.
    """
    for axis, part in (("order", order), ("backfill", backfill), ("placement", placement)):
        check_part(axis, part)
    full_name = name or f"{order}+{backfill}+{placement}"
    return ComposedPolicy(full_name, ORDERS[order](), BACKFILLS[backfill](), PLACEMENTS[placement]())
