"""Describe machines for people, as headings with a short text each."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.node_rows import NodeRow, with_node_rows
from pipistrelle.platforms.resources.described import resources_text
from pipistrelle.platforms.simgrid.platform_file import SimGridPlatform
from pipistrelle.platforms.topology.nodes import NodeTable
from pipistrelle.protocol.base.errors import shown
from pipistrelle.protocol.units.nodesets import NodeSet

#: at most this many values of a property are listed with their counts
_MOST_VALUES: Final = 6


def describe(platform: Platform) -> list[tuple[str, str]]:
    """Return a platform's facts as (heading, text) pairs for people.

    Pools and licences come last.
    """
    facts = [("platform", platform.name)]
    facts += [(key, text) for key, text in (("description", platform.description), ("source", platform.source)) if text]
    kinds: dict[str, int] = {}
    for pool in platform.pools:
        kinds[pool.unit] = kinds.get(pool.unit, 0) + pool.units
    facts += [
        ("nodes", f"{platform.nodes:,}"),
        ("schedulable units", " + ".join(_counted(count, unit) for unit, count in kinds.items())),
    ]
    facts += [*_topology(platform), *_groups(platform)]
    for pool, group in zip(platform.pools, platform.info.pools, strict=True):
        text = _counted(pool.nodes, "node")
        if pool.unit != "node":
            text += f" of {_counted(pool.units_per_node, pool.unit)}"
        text += f", {_numbers('node', group.nodes)}"
        if group.units != group.nodes or pool.unit != "node":
            text += f", {_numbers('unit', group.units)}"
        text += f", each {resources_text(group.resources)}" if group.resources is not None else ""
        text += f", weight {group.weight}" if group.weight != 1 else ""
        text += f", names {group.names}" if group.names else ""
        text += f", class {group.node_class}" if group.node_class else ""
        text += f", MTTF {group.mttf / 3600:g} h" if group.mttf is not None else ""
        text += f", age {group.age / 3600:g} h" if group.age is not None else ""
        text += "".join(f", {key} = {_plain(value)}" for key, value in pool.properties.items())
        facts.append((f"pool {pool.name}", text))
    if platform.licenses:
        facts.append(("licences", ", ".join(f"{count} {name}" for name, count in platform.licenses.items())))
    return facts


def describe_rows(rows: Sequence[NodeRow]) -> list[tuple[str, str]]:
    """Return the facts of a table of nodes as (heading, text) pairs.

    The machine of the nodes is unknown.

    Raises:
        PlatformError: naming the row, if two rows have the same node or a value is invalid for any machine.
    """
    seen: dict[str, NodeRow] = {}
    for row in rows:
        other = seen.setdefault(row.location or row.name, row)
        if other is not row:
            what = f"two rows describe the node {shown(row.location or row.name)}"
            raise PlatformError(what, where=row.where, found=other.where)
    facts = [("table of nodes", f"{len(rows):,} rows")]
    if not rows:
        return facts
    located = sum(bool(row.location) for row in rows)
    facts.append(("found by", "name" if not located else "location" if located == len(rows) else "location or name"))
    plain = [replace(row, name=row.location or row.name) for row in rows]
    platform = with_node_rows(Platform(name="table", pools=(Pool(name="all", nodes=len(rows)),)), plain)
    nodes = NodeTable.of(platform.info)
    facts += [
        (f"class {name}", _counted(int((nodes.node_class == at).sum()), "node"))
        for at, name in enumerate(nodes.classes)
        if name
    ]
    for name, times in (("MTTF", nodes.mttf), ("age", nodes.age)):
        known = times[~np.isnan(times)] / 3600.0
        if known.size:
            facts.append((name, f"{known.min():g} to {known.max():g} h, of {_counted(known.size, 'node')}"))
    for key in dict.fromkeys(key for row in rows for key in row.properties):
        values = Counter(row.properties[key] for row in rows if key in row.properties)
        texts = [f"{_plain(value)}: {_counted(count, 'node')}" for value, count in values.items()]
        more = [f"{len(texts) - _MOST_VALUES} further values"] if len(texts) > _MOST_VALUES else []
        facts.append((f"property {key}", ", ".join(texts[:_MOST_VALUES] + more)))
    return facts


def _topology(platform: Platform) -> list[tuple[str, str]]:
    info = platform.info.topology
    if info is None:
        return []
    text = f"{info.kind} of {' x '.join(map(str, info.shape))}" if info.shape else info.kind
    text += f", {info.nodes_per_router} nodes a router" if info.nodes_per_router > 1 else ""
    absent = NodeSet.parse(info.absent)
    text += f", {len(absent):,} places without a node" if absent else ""
    text += f", names {info.names}" if info.names else ""
    return [("topology", text)]


def _groups(platform: Platform) -> list[tuple[str, str]]:
    if not platform.groups:
        return []
    nodes = NodeTable.of(platform.info)
    counts = np.bincount(nodes.node_class, minlength=len(nodes.classes)).tolist()
    said = [
        f"class {name or 'not known'}: {_counted(count, 'node')}"
        for name, count in zip(nodes.classes, counts, strict=True)
        if count and len(counts) > 1
    ]
    for what, column in (("MTTF", nodes.mttf), ("age", nodes.age)):
        known = column[~np.isnan(column)] / 3600
        if known.size:
            said.append(f"{what} of {_counted(known.size, 'node')}: {known.min():g} to {known.max():g} h")
    return [("nodes by group", "; ".join(said))]


def describe_simgrid(machine: SimGridPlatform) -> list[tuple[str, str]]:
    """Describe the hosts, master, storages and unused elements of a SimGrid platform."""
    facts = describe(machine.to_platform())
    facts.append(("master host", machine.master.name if machine.master else "none"))
    if machine.storages:
        facts.append(("storages", ", ".join(host.name for host in machine.storages)))
    if machine.unused:
        facts.append(("read, not used", ", ".join(f"{count:,} {what}" for what, count in machine.unused)))
    return facts


def _counted(count: int, unit: str) -> str:
    name = "GPU" if unit == "gpu" else unit
    return f"{count:,} {name}" if count == 1 else f"{count:,} {name}s"


def _numbers(what: str, numbers: str) -> str:
    return f"{what}s {numbers}" if "-" in numbers else f"{what} {numbers}"


def _plain(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
