"""Select the version of a backfilling rule for nodes that jobs share."""

from typing import Protocol, runtime_checkable

from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.policy.interfaces import Backfill


@runtime_checkable
class SharesNodes(Protocol):
    """A backfilling rule that has a version for nodes that jobs share."""

    def on_nodes(self) -> Backfill:
        """Return this rule's version for machines on which jobs share nodes."""


def on_nodes(rule: Backfill) -> Backfill:
    """Return the version of a backfilling rule for nodes that jobs share.

    Raises:
        PolicyError: the rule has no such version.
    """
    if isinstance(rule, SharesNodes):
        return rule.on_nodes()
    raise PolicyError(
        f"the backfilling rule {type(rule).__name__} cannot share nodes",
        expected="one of the package's rules, or a platform without resources",
    )
