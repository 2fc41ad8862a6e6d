"""The state of policies and of their parts, as plain values (`pipistrelle.protocol.base.state`)."""

from typing import Any

from pipistrelle.schedulers.policy.errors import PolicyError


class Stateless:
    """A part of a policy that keeps nothing from one decision for the next; a part of one's own may derive from it."""

    def state(self) -> None:
        """Return nothing."""

    def restore(self, state: None, *made: object) -> None:
        """Go on as one that has just been made."""


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
