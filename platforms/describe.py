"""What there is to say of a machine, for people."""

import numpy as np

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.simgrid.platform_file import SimGridPlatform
from pipistrelle.platforms.topology.nodes import NodeTable
from pipistrelle.protocol.units.nodesets import NodeSet


def describe(platform: Platform) -> list[tuple[str, str]]:
    """Return facts about `platform` in reading order, each a heading and its text; one a pool ends the list."""
    facts = [("platform", platform.name)]
    facts += [(key, text) for key, text in (("description", platform.description), ("source", platform.source)) if text]
    kinds = {
        pool.unit: sum(other.units for other in platform.pools if other.unit == pool.unit) for pool in platform.pools
    }
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
        text += f", names {group.names}" if group.names else ""
        text += f", class {group.node_class}" if group.node_class else ""
        text += f", MTTF {group.mttf / 3600:g} h" if group.mttf is not None else ""
        text += f", age {group.age / 3600:g} h" if group.age is not None else ""
        text += "".join(f", {key} = {_plain(value)}" for key, value in pool.properties.items())
        facts.append((f"pool {pool.name}", text))
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
    """Return what groups make of the table: how many nodes each class has, and the extremes of MTTF and age."""
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
    """Return the same of the hosts of a SimGrid platform, and what of its file is of no use here."""
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
