"""The description of a machine: pools of equal nodes, numbered consecutively.

Nodes are numbered 0, 1, ... over all pools, in the order of the pools. Jobs are allocated schedulable units: nodes,
cores or GPUs. Units are numbered node by node, so the units of a node, and those of a pool, are consecutive.
"""

import math
import re
from collections.abc import Iterable
from functools import cached_property
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from pipistrelle.platforms.classes import JobClass, check_classes, check_overheads
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.naming.node_names import NodeNames, names_in_order, numbers_called
from pipistrelle.platforms.naming.rule import TopologyRule, check_topology, place_names
from pipistrelle.platforms.resources.described import check_licenses, read_resources
from pipistrelle.protocol.base.errors import PipistrelleError, did_you_mean, shown
from pipistrelle.protocol.base.lengths import parse_seconds
from pipistrelle.protocol.events import ClassInfo, NodeGroupInfo, PlatformInfo, PoolInfo
from pipistrelle.protocol.fields import LONGEST
from pipistrelle.protocol.units.nodesets import NodeSet

#: the most schedulable units of a machine, about ten times the cores of today's largest machine
MOST_UNITS: Final = 10_000_000

#: the largest weight of a node, as in Slurm
_MOST_WEIGHT: Final = 2**32 - 2

#: the kinds of schedulable units
Unit = Literal["node", "core", "gpu"]

#: the type of a node property's value
Property = str | int | float | bool

_LONGEST_TITLE: Final = 300  # a machine made from a log is named after the file
_LONGEST_NAME: Final = 64
_NAME: Final = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_.-]{{0,{_LONGEST_NAME - 1}}}")


class Pool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A group of equal nodes. The `Platform` checks its pools.

    Args:
        name: unique in a platform; at most 64 characters: ASCII letters, digits, '.', '_' and '-'.
        nodes: the number of nodes, at least 1.
        units_per_node: schedulable units per node, at least 1; jobs get single units.
        unit: the kind of schedulable unit; "node" if jobs do not share nodes.
        prologue, epilogue: how long units are occupied before their job begins and after it has ended (s).
        properties: other properties of the nodes; each key has the form of a pool's name.
        names: the pattern of the nodes' names, such as "n[001-096]"; a single node may have a name without a number.
        node_class: the class of the nodes, for example their model; it has the form of a pool's name.
        mttf: the mean time to failure of a node, in seconds or as "10250h", above 0.
        age: the nodes' time in service at time 0, in seconds or as "3y".
        resources: what each node has for the jobs that share it, such as ``{"cores": 64, "memory": "256 GiB", "gpu":
            {"count": 4, "model": "a100"}}``; units are then nodes, and several jobs may run on one.
        weight: placements that use weights prefer nodes with a lower weight; at least 0.
    """

    name: str
    nodes: int
    units_per_node: int = 1
    unit: Unit = "node"
    prologue: float = 0.0
    epilogue: float = 0.0
    properties: dict[str, Property] = {}
    names: str | UnsetType = UNSET
    node_class: str | UnsetType = UNSET
    mttf: float | str | UnsetType = UNSET
    age: float | str | UnsetType = UNSET
    resources: dict[str, Any] | UnsetType = UNSET
    weight: int | UnsetType = UNSET

    @property
    def units(self) -> int:
        """The number of schedulable units of all nodes of the pool."""
        return self.nodes * self.units_per_node


class NodeGroup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Values of some nodes.

    They override the values of the nodes' pool and of earlier groups. Each value, and each property, is overridden
    separately. All fields but `nodes` are like a pool's. The `Platform` checks its groups.

    Args:
        nodes: node numbers, such as "0-3 8", or a pattern of names, such as "n[001-003],n008".
    """

    nodes: str
    node_class: str | UnsetType = UNSET
    mttf: float | str | UnsetType = UNSET
    age: float | str | UnsetType = UNSET
    properties: dict[str, Property] = {}


class Failing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A failure model of a platform, as text; see docs/how-to/outages.md.

    Args:
        model: a value of ``--failures``: "weibull,mtbf=10250h,shape=0.7", "exponential,mtbf=1y,pool=gpu", "lanl-20".
        repair: a value of ``--repair``: "5d", "exponential,mttr=1h"; None: the repair time of the library's model.
    """

    model: str
    repair: str | None = None


class Platform(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A machine: its pools of nodes, topology, job classes and failures.

    Args:
        name: printable text of at most 300 characters.
        description: one line.
        source: where the numbers come from.
        pools: at least one; nodes and units are numbered in the order of the pools.
        failures: how nodes fail by default; the failures of several models add up.
        classes: the limits of its queues.
        topology: the network and the place of each node; without it, all nodes are on one switch.
        groups: nodes that differ from others of their pools; later groups override earlier ones.
        licenses: {licence: number that all running jobs together may hold}; only for nodes with resources.

    Raises:
        PlatformError: if a value is out of range, a name is invalid or used twice, or there are more than `MOST_UNITS`
            units. Its `where` is the path of the value, such as ``pools[1].nodes``; indices start at 0.
    """

    name: str
    description: str = ""
    source: str = ""
    pools: tuple[Pool, ...]
    failures: tuple[Failing, ...] = ()
    classes: tuple[JobClass, ...] = ()
    topology: TopologyRule | UnsetType = UNSET
    groups: tuple[NodeGroup, ...] | UnsetType = UNSET
    licenses: dict[str, int] | UnsetType = UNSET

    def __post_init__(self) -> None:
        if not self.name.strip() or len(self.name) > _LONGEST_TITLE or not self.name.isprintable():
            raise PlatformError(
                "a platform's name is not valid",
                where="name",
                expected=f"1 to {_LONGEST_TITLE} printable characters, not all blank",
                found=shown(self.name),
            )
        if not self.pools:
            raise PlatformError(
                "a platform has no pool", where="pools", expected="one [[pools]] table or more", found="none"
            )
        seen: dict[str, int] = {}
        for index, pool in enumerate(self.pools):
            _check_pool(pool, f"pools[{index}]")
            first = seen.setdefault(pool.name, index)
            if first != index:
                raise PlatformError(
                    f"the pool name '{pool.name}' is used twice",
                    where=f"pools[{index}].name",
                    expected="a name of its own for each pool",
                    found=f"'{pool.name}' in pools[{first}] too",
                )
        _check_shared(self.pools, self.licenses or {})
        _check_names(self.pools)
        check_classes(self.classes, [pool.name for pool in self.pools])
        if self.units > MOST_UNITS:
            raise PlatformError(
                "a platform is too large",
                where="pools",
                expected=f"at most {MOST_UNITS} schedulable units in all",
                found=f"{shown(self.units)} in {len(self.pools)} pool(s)",
                hint="Schedule whole nodes (leave out units_per_node) if jobs do not share nodes.",
            )
        if self.topology is not UNSET:
            check_topology(self.topology.told, self.nodes)
        for index, group in enumerate(self.groups or ()):
            check_node_facts(group, f"groups[{index}]")
        if self.groups is not UNSET:
            _ = self._told_groups

    def scaled(self, factor: float) -> "Platform":
        """Return a machine with ``factor`` (above 0) times the nodes in each pool.

        Numbers of nodes are rounded, to at least one. The result has no node names, topology or groups. It keeps the
        other values of pools, the classes and the failures.

        Raises:
            PlatformError: if the machine would have more than `MOST_UNITS` units.
        """
        pools = tuple(
            msgspec.structs.replace(pool, nodes=max(1, math.floor(pool.nodes * factor + 0.5)), names=UNSET)
            for pool in self.pools
        )
        name = f"{self.name} x {factor:g}"
        return msgspec.structs.replace(self, name=name, pools=pools, topology=UNSET, groups=UNSET)

    @cached_property
    def nodes(self) -> int:
        """The number of nodes of the machine."""
        return sum(pool.nodes for pool in self.pools)

    @cached_property
    def units(self) -> int:
        """The number of schedulable units of the machine."""
        return sum(pool.units for pool in self.pools)

    @cached_property
    def info(self) -> PlatformInfo:
        """The machine as sent to schedulers; nodes and units are ranges of numbers."""
        classes = tuple(self._class(one) for one in self.classes)
        topology = None if self.topology is UNSET else self.topology.told
        return PlatformInfo(
            self.name, self._told_pools, classes, topology, self._told_groups, dict(self.licenses or {})
        )

    @property
    def shares_nodes(self) -> bool:
        """Whether nodes have resources, so that several jobs share a node."""
        return self.pools[0].resources is not UNSET

    @cached_property
    def _told_pools(self) -> tuple[PoolInfo, ...]:
        told: list[PoolInfo] = []
        node = unit = 0
        for pool in self.pools:
            known = {key: value for key, value in msgspec.structs.asdict(pool).items() if value is not UNSET}
            known["nodes"] = str(NodeSet.interval(node, node + pool.nodes - 1))
            known["units"] = str(NodeSet.interval(unit, unit + pool.units - 1))
            known |= {key: _seconds(known[key]) for key in ("mttf", "age") if key in known}
            if pool.resources is not UNSET:
                known["resources"] = read_resources(pool.resources, f"pools[{len(told)}].resources")
            told.append(PoolInfo(**known))
            node += pool.nodes
            unit += pool.units
        return tuple(told)

    @cached_property
    def _told_groups(self) -> tuple[NodeGroupInfo, ...]:
        told = []
        for index, group in enumerate(self.groups or ()):
            known = {key: value for key, value in msgspec.structs.asdict(group).items() if value is not UNSET}
            known["nodes"] = str(self._named_nodes(group.nodes, f"groups[{index}].nodes"))
            known |= {key: _seconds(known[key]) for key in ("mttf", "age") if key in known}
            told.append(NodeGroupInfo(**known))
        return tuple(told)

    def _named_nodes(self, text: str, where: str) -> NodeSet:
        if any(character.isalpha() for character in text):
            return numbers_called(text, self._node_numbers, where)
        try:
            nodes = NodeSet.parse(" ".join(text.split()))
        except PipistrelleError as error:
            raise error.at(where, PlatformError) from None
        if not nodes or nodes.last >= self.nodes:
            raise PlatformError(
                "a group has nodes that do not exist",
                where=where,
                expected=f"nodes from 0 to {self.nodes - 1}",
                found=shown(text),
            )
        return nodes

    @cached_property
    def _node_numbers(self) -> dict[str, int]:
        places = () if self.topology is UNSET else place_names(self.topology.told)
        pools = [(pool.name, pool.names or "", pool.nodes) for pool in self.pools]
        return {name: number for number, name in enumerate(names_in_order(pools, places))}

    def _class(self, one: JobClass) -> ClassInfo:
        units = NodeSet.EMPTY
        for pool in one.pools or [pool.name for pool in self.pools]:
            units |= self.pool_units(pool)
        limits = {key: getattr(one, key) for key in one.__struct_fields__ if key not in ("name", "pools")}
        return ClassInfo(name=one.name, units=str(units), **limits)

    def pool_units(self, name: str) -> NodeSet:
        """Return the units of the pool called `name`; PlatformError if it does not exist."""
        return NodeSet.parse(self._pool_info(name).units)

    def pool_nodes(self, name: str) -> NodeSet:
        """Return the nodes of the pool called `name`; PlatformError if it does not exist."""
        return NodeSet.parse(self._pool_info(name).nodes)

    @cached_property
    def _pools_by_name(self) -> dict[str, PoolInfo]:
        return {pool.name: pool for pool in self._told_pools}

    def _pool_info(self, name: str) -> PoolInfo:
        if (found := self._pools_by_name.get(name)) is not None:
            return found
        known = [pool.name for pool in self.pools]
        raise PlatformError(f"platform '{self.name}' has no pool {shown(name)}", hint=did_you_mean(name, known))


def homogeneous(units: int, name: str) -> Platform:
    """Return a machine of `units` equal nodes in one pool called ``all``.

    Raises:
        PlatformError: if `units` is not from 1 to `MOST_UNITS`, or `name` is invalid.
    """
    return Platform(name=name, pools=(Pool(name="all", nodes=units),))


def _check_pool(pool: Pool, where: str) -> None:
    _check_name(pool.name, "a pool's name", f"{where}.name")
    for field, count in (("nodes", pool.nodes), ("units_per_node", pool.units_per_node)):
        if count < 1:
            raise PlatformError(
                "a count is too small",
                where=f"{where}.{field}",
                expected="a whole number of at least 1",
                found=shown(count),
            )
    check_overheads(pool.prologue, pool.epilogue, where)
    if pool.unit == "node" and pool.units_per_node > 1:
        raise PlatformError(
            "a node is not several nodes",
            where=f"{where}.unit",
            expected=f"'core' or 'gpu' with units_per_node = {shown(pool.units_per_node)}",
            found="'node'",
            hint="Name the unit, or leave units_per_node out to hand out whole nodes.",
        )
    check_node_facts(pool, where)


def _check_shared(pools: tuple[Pool, ...], licenses: dict[str, int]) -> None:
    """Raise PlatformError if resources or licences are invalid.

    It is also an error if only some pools have resources.
    """
    shared = [index for index, pool in enumerate(pools) if pool.resources is not UNSET]
    for index in shared:
        pool, where = pools[index], f"pools[{index}]"
        read_resources(pool.resources or {}, f"{where}.resources")
        if pool.unit != "node" or pool.units_per_node != 1:
            raise PlatformError(
                "a pool with resources counts other units than nodes",
                where=f"{where}.unit",
                expected="no unit and no units_per_node: jobs ask for cores, memory and GPUs",
                found=f"unit = {pool.unit!r}, units_per_node = {shown(pool.units_per_node)}",
            )
    for index, pool in enumerate(pools):
        if shared and index not in shared:
            raise PlatformError(
                "some pools have resources and others have none",
                where=f"pools[{index}]",
                expected=f"resources = {{ cores = ... }}, as in pools[{shared[0]}]",
                found=f"pool '{pool.name}' without resources",
            )
        if pool.weight is not UNSET and not 0 <= pool.weight <= _MOST_WEIGHT:
            raise PlatformError(
                "a weight is out of range",
                where=f"pools[{index}].weight",
                expected=f"0 to {_MOST_WEIGHT}",
                found=shown(pool.weight),
            )
    if licenses and not shared:
        raise PlatformError(
            "licences need nodes with resources", where="licenses", expected="resources = { cores = ... } in each pool"
        )
    check_licenses(licenses, "licenses")


def check_node_facts(facts: Pool | NodeGroup, where: str) -> None:
    """Raise PlatformError if a class, MTTF, age or property of nodes is invalid."""
    if facts.node_class is not UNSET:
        _check_name(facts.node_class, "a class's name", f"{where}.node_class")
    for field, time, least in (("mttf", facts.mttf, "above 0"), ("age", facts.age, "0 or more")):
        if time is not UNSET:
            _check_time(time, least, f"{where}.{field}")
    for key, value in facts.properties.items():
        _check_name(key, "a property's name", f"{where}.properties")
        if isinstance(value, float) and not math.isfinite(value):
            what, rule = "a property is not finite", "text, a finite number, true or false"
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            what, rule = "a property is too large a number", "a whole number of 64 bits"
        else:
            continue
        raise PlatformError(what, where=f"{where}.properties.{key}", expected=rule, found=shown(value))


def _seconds(time: float | str) -> float:
    return parse_seconds(time) if isinstance(time, str) else time


def _check_time(time: float | str, least: str, where: str) -> None:
    try:
        seconds = _seconds(time)
    except PipistrelleError as error:
        raise PlatformError(error.what, where=where, expected=error.expected, found=error.found) from None
    if not 0.0 <= seconds <= LONGEST or (seconds == 0.0 and least == "above 0"):
        raise PlatformError(
            "a time is out of range", where=where, expected=f"seconds, {least}, or as 3y", found=shown(time)
        )


def _check_names(pools: tuple[Pool, ...]) -> None:
    """Check that no two nodes have the same name; a node's number is its default name."""
    if all(pool.names is UNSET for pool in pools):
        return
    seen: dict[str, int] = {}
    first = 0
    for index, pool in enumerate(pools):
        where = f"pools[{index}].names"
        names: Iterable[str] = map(str, range(first, first + pool.nodes))
        first += pool.nodes
        if pool.names is not UNSET:
            found = NodeNames.parse(pool.names, pool.nodes, where)
            names = found if len(pools) > 1 or found.may_repeat else ()
        for name in names:
            if name in seen:
                other = f"pools[{seen[name]}]"
                raise PlatformError(f"two nodes are called '{name}'", where=where, found=f"'{name}' in {other} too")
            seen[name] = index


def is_name(text: str) -> bool:
    """Return whether the text is a valid name of a pool, node class or property."""
    return _NAME.fullmatch(text) is not None


def _check_name(name: str, what: str, where: str) -> None:
    if not is_name(name):
        raise PlatformError(
            f"{what} is not valid",
            where=where,
            expected=f"1 to {_LONGEST_NAME} ASCII letters, digits, '.', '_' or '-', a letter or digit first",
            found=shown(name),
        )
