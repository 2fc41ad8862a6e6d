"""Make a platform from a Maui resource trace.

The platform has nodes, pools of equal nodes, and classes.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from msgspec import UNSET, UnsetType

from pipistrelle.platforms.classes import JobClass
from pipistrelle.platforms.description import Platform, Pool, Property
from pipistrelle.platforms.naming.node_names import NodeNames
from pipistrelle.traces.logs.kinds import Units
from pipistrelle.traces.logs.maui_nodes import MauiNode

_ODD: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST: Final = 48  # shorter than the limit of 64 characters for a pool's name, because a number may be appended


def maui_platform(nodes: Sequence[MauiNode], name: str, *, units: Units = "nodes") -> Platform:
    """Return the machine that a Maui resource trace describes.

    Nodes keep their names if these are valid. Nodes with equal processors, memory, disk, system, architecture, features
    and classes form a pool. A pool is named after its features or architecture, and pools are in order of first
    occurrence. A class may use the pools whose nodes list it. Nodes that are down or drained at the start are included.

    Args:
        nodes: at least one node.
        name: name of the machine.
        units: what a schedulable unit is: a whole node, or a processor (core).

    Raises:
        PlatformError: the machine is too large, or the name of a class is invalid.
    """
    kinds: dict[tuple[object, ...], list[MauiNode]] = {}
    for node in nodes:
        kind = (node.processors, node.memory, node.disk, node.system, node.architecture, node.features, node.classes)
        kinds.setdefault(kind, []).append(node)
    pools: list[Pool] = []
    classes: dict[str, list[str]] = {}
    names = [NodeNames.of([node.name for node in alike]) for alike in kinds.values()]
    named = all(names)
    taken: set[str] = set()
    for number, alike in enumerate(kinds.values()):
        pool = _pool(alike, number, taken, units, str(names[number]) if named else UNSET)
        pools.append(pool)
        taken.add(pool.name)
        for one in dict.fromkeys(alike[0].classes):
            classes.setdefault(one, []).append(pool.name)
    return Platform(
        name=name,
        source="a Maui resource trace",
        pools=tuple(pools),
        classes=tuple(
            JobClass(name=one, pools=() if len(some) == len(pools) else tuple(some)) for one, some in classes.items()
        ),
    )


def _pool(alike: list[MauiNode], number: int, taken: set[str], units: Units, names: str | UnsetType) -> Pool:
    node = alike[0]
    told: tuple[tuple[str, Property, bool], ...] = (
        ("processors_per_node", node.processors, True),
        ("memory_mb", node.memory, node.memory > 1),  # the format's default of 1 means unknown
        ("disk_mb", node.disk, node.disk > 1),
        ("system", node.system, bool(node.system)),
        ("architecture", node.architecture, bool(node.architecture)),
        ("features", " ".join(node.features), bool(node.features)),
    )
    properties = {key: value for key, value, is_told in told if is_told}
    base = _ODD.sub("-", "-".join(node.features) or node.architecture).strip("-._")[:_LONGEST] or "nodes"
    name = base if base not in taken else f"{base}-{number + 1}"
    while name in taken:
        name += "x"
    more: dict[str, Any] = {"units_per_node": node.processors, "unit": "core"} if units == "processors" else {}
    return Pool(name=name, nodes=len(alike), names=names, properties=properties, **more)
