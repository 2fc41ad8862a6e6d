"""Read the machine's nodes and pools from the hosts that Batsim sends."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any, NamedTuple

from pipistrelle.platforms.naming.node_names import NodeNames
from pipistrelle.protocol.batsim.messages import BatsimBeginsData
from pipistrelle.protocol.events import PlatformInfo, PoolInfo, SimulationBeginsData
from pipistrelle.protocol.units.nodesets import NodeSet


class _Node(NamedTuple):
    """A node: its name, first unit, number of units, and sorted properties."""

    name: str
    first: int
    each: int
    told: tuple[tuple[str, str], ...]


def platform_of(data: SimulationBeginsData) -> PlatformInfo | None:
    """Return the machine that hosts describe; None if they have no useful properties.

    Adjacent hosts with the same property ``node`` form one node; any other host is a node of its own. Adjacent nodes
    with the same properties (their own or their zone's) form a pool. Pipistrelle's servers name the pool, its class and
    its unit in the properties ``pool``, ``class`` and ``unit``.
    """
    hosts = sorted(data.compute_resources, key=lambda host: host["id"]) if isinstance(data, BatsimBeginsData) else []
    if len(hosts) != data.nb_resources:
        return None
    nodes = _nodes(hosts)
    names = [node.name for node in nodes]
    named = len(set(names)) == len(names) and NodeNames.of(names) is not None
    if not (named or any(node.told for node in nodes)):
        return None
    groups = [list(alike) for _, alike in groupby(nodes, key=lambda node: (node.each, node.told))]
    pools: list[PoolInfo] = []
    at = 0
    for number, group in enumerate(groups):
        known: dict[str, Any] = dict(group[0].told)
        ours = "pool" in known
        name, kind = known.pop("pool", "hosts" if len(groups) == 1 else f"hosts-{number}"), known.pop("class", "")
        unit = known.pop("unit", "node")
        last = group[-1]
        pools.append(
            PoolInfo(
                name,
                str(NodeSet.interval(at, at + len(group) - 1)),
                str(NodeSet.interval(group[0].first, last.first + last.each - 1)),
                last.each,
                unit,
                {key: _value(value) for key, value in known.items()} if ours else known,
                names=str(NodeNames.of([node.name for node in group])) if named else "",
                node_class=kind,
            )
        )
        at += len(group)
    return PlatformInfo("hosts", tuple(pools))


def _nodes(hosts: list[dict[str, Any]]) -> list[_Node]:
    found: list[_Node] = []
    for unit, host in enumerate(hosts):
        told = {**_texts(host.get("zone_properties")), **_texts(host.get("properties"))}
        told.pop("role", None)
        node = told.pop("node", None)
        properties = tuple(sorted(told.items()))
        same = found and node is not None and (found[-1].name, found[-1].told) == (node, properties)
        if same:
            found[-1] = found[-1]._replace(each=found[-1].each + 1)
        else:
            found.append(_Node(str(host.get("name", "")) if node is None else node, unit, 1, properties))
    return found


def _texts(told: Any) -> dict[str, str]:
    return {str(key): str(value) for key, value in told.items()} if isinstance(told, Mapping) else {}


def _value(text: str) -> str | int | float | bool:
    """Convert a host property's text to a bool, int or float if possible.

    Other text is returned unchanged.
    """
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
