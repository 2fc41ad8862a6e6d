"""The named policies; pyproject.toml registers them as entry points, where those of other packages join them."""

from typing import Final

from pipistrelle.schedulers.policy import ComposedPolicy, compose

#: {name: its parts}; what is not named is `compose`'s default
PARTS: Final[dict[str, dict[str, str]]] = {
    "fcfs": {"order": "fcfs", "backfill": "none"},
    "easy": {"order": "fcfs", "backfill": "easy"},
    "easy-sjbf": {"order": "fcfs", "backfill": "easy-sjbf"},
    "filler": {"order": "fcfs", "backfill": "firstfit"},
}


def fcfs() -> ComposedPolicy:
    """First come, first served, without backfilling."""
    return compose(name="fcfs", **PARTS["fcfs"])


def easy() -> ComposedPolicy:
    """EASY backfilling: one reservation, jobs pass in the order of submission."""
    return compose(name="easy", **PARTS["easy"])


def easy_sjbf() -> ComposedPolicy:
    """EASY backfilling where the shortest walltime passes first."""
    return compose(name="easy-sjbf", **PARTS["easy-sjbf"])


def filler() -> ComposedPolicy:
    """Start whatever fits, in the order of submission, without any reservation."""
    return compose(name="filler", **PARTS["filler"])
