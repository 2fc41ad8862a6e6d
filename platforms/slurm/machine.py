"""Make a platform from a slurm.conf.

Groups of equal nodes become pools, and partitions become job classes.
"""

import re
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, Final, cast

from msgspec import UNSET

from pipistrelle.platforms.classes import JobClass
from pipistrelle.platforms.description import Platform, Pool, Property
from pipistrelle.platforms.naming.hostlists import NameLists, compressed
from pipistrelle.platforms.naming.node_names import NodeNames
from pipistrelle.platforms.slurm.conf import ConfEntry, SlurmConf, SlurmConfigError
from pipistrelle.platforms.slurm.gres import GresLine
from pipistrelle.platforms.slurm.lines import WORD
from pipistrelle.platforms.slurm.nodes import UNUSABLE, SlurmNode, node_sets, nodes_named, nodes_of
from pipistrelle.platforms.slurm.values import SlurmValueError, read_licenses
from pipistrelle.protocol.base.errors import legible
from pipistrelle.protocol.resources.amounts import CORES, GPU, MEMORY, NAME

_ODD: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST: Final = 48  # shorter than the limit of 64 characters for a pool's name, because a number may be appended
_MOST_GPUS: Final = 1000


def slurm_platform(conf: SlurmConf, gres_lines: Sequence[GresLine] = ()) -> Platform:
    """Return the machine that a slurm.conf describes.

    Nodes of one ``NodeName`` line with the same partitions form a pool. Partitions become classes. With
    ``select/linear``, a job gets whole nodes. Otherwise nodes have resources: CPUs as cores, memory, GPUs and other
    generic resources.

    Args:
        gres_lines: the lines of gres.conf, which give types to generic resources.

    Raises:
        PlatformError: a node or a partition cannot be used, or the machine is too large.
    """
    nodes = nodes_of(conf, gres_lines)
    numbers = {node.name: number for number, node in enumerate(nodes)}
    sets, lists = node_sets(conf, nodes), NameLists()
    partitions: dict[str, tuple[ConfEntry, list[str]]] = {}
    for entry in conf.entries.get("partitions", []):
        named = entry.get("Nodes")
        members = [] if named is None else nodes_named(named.text, named.where, numbers, sets, lists)
        partitions[entry.name] = (entry, members)
    shared = not is_linear(conf)
    memory = shared and counts_memory(conf)
    pools, pool_of = _pools(nodes, partitions, shared=shared, memory=memory)
    classes = tuple(
        _class(name, entry, dict.fromkeys(pool_of[node] for node in members), len(pools))
        for name, (entry, members) in partitions.items()
        if members
    )
    name = conf.text("ClusterName") or "slurm"
    return Platform(
        name=name,
        source="a slurm.conf",
        pools=pools,
        classes=classes,
        licenses=(licenses_of(conf) if shared else {}) or UNSET,
    )


def is_linear(conf: SlurmConf) -> bool:
    """Return whether jobs get whole nodes, as ``SelectType`` of slurm.conf says."""
    return select_type(conf) == "select/linear"


def select_type(conf: SlurmConf) -> str:
    """Return the value of ``SelectType`` in slurm.conf, or Slurm's default."""
    return str(conf.value("SelectType", "select/linear"))


def select_parameters(conf: SlurmConf) -> tuple[str, ...]:
    """Return the names in ``SelectTypeParameters``, or the default.

    The default is none with select/linear, else CR_Core_Memory.
    """
    names = cast("tuple[str, ...]", conf.value("SelectTypeParameters", ()))
    return names or (() if is_linear(conf) else ("CR_Core_Memory",))


def counts_memory(conf: SlurmConf) -> bool:
    """Return whether jobs are allocated memory.

    ``SelectTypeParameters`` of slurm.conf says so.
    """
    return any("MEMORY" in name.upper() for name in select_parameters(conf))


def licenses_of(conf: SlurmConf) -> dict[str, int]:
    """Return {licence: number}, from the key ``Licenses`` of slurm.conf."""
    text = conf.text("Licenses")
    try:
        return read_licenses(text)
    except SlurmValueError as error:
        raise SlurmConfigError(
            "the value of Licenses is wrong",
            where=conf.where("Licenses"),
            expected=error.expected,
            found=f"'{legible(text, WORD)}'",
        ) from None


def default_partition(conf: SlurmConf) -> str:
    """Return the partition of jobs that name none.

    It is the last one with ``Default=YES``, or "" without one.
    """
    partitions = reversed(conf.entries.get("partitions", []))
    return next((entry.name for entry in partitions if entry.value("Default") is True), "")


def machine_remarks(conf: SlurmConf, gres_lines: Sequence[GresLine] = ()) -> list[str]:
    """Return a warning about unusable nodes, or an empty list if all nodes are usable."""
    down = [node.name for node in nodes_of(conf, gres_lines) if node.state in UNUSABLE]
    if not down:
        return []
    verb = "nodes are" if len(down) > 1 else "node is"
    return [
        f"{conf.name}: {len(down):,} {verb} DOWN, DRAIN or FAIL, and only the scheduler slurm leaves them free: "
        f"{compressed(down)[:200]}"
    ]


def _pools(
    nodes: Sequence[SlurmNode], partitions: Mapping[str, tuple[ConfEntry, list[str]]], *, shared: bool, memory: bool
) -> tuple[tuple[Pool, ...], dict[str, str]]:
    inside: dict[str, list[str]] = {node.name: [] for node in nodes}
    for name, (_, members) in partitions.items():
        for member in members:
            inside[member].append(name)
    kinds: dict[tuple[object, ...], list[SlurmNode]] = {}
    for node in nodes:
        key = (node.line, tuple(inside[node.name]), tuple(node.gres.items()))
        kinds.setdefault(key, []).append(node)
    pools: list[Pool] = []
    taken: set[str] = set()
    pool_of: dict[str, str] = {}
    for alike in kinds.values():
        pool = _pool(alike, taken, shared=shared, memory=memory)
        pools.append(pool)
        taken.add(pool.name)
        pool_of |= dict.fromkeys((node.name for node in alike), pool.name)
    return tuple(pools), pool_of


def _pool(alike: list[SlurmNode], taken: set[str], *, shared: bool, memory: bool) -> Pool:
    node = alike[0]
    names = [one.name for one in alike]
    rule = NodeNames.of(names)
    if rule is None:
        raise SlurmConfigError(
            "the name of a node is not valid", where=node.where, expected="ASCII letters, digits, '.', '_', '-'"
        )
    models = [key.partition(":")[2] for key in node.gres if key.startswith(f"{GPU}:")]
    told: tuple[tuple[str, Property, bool], ...] = (
        ("cpus", node.cpus, True),
        ("memory_mb", node.real_memory, node.real_memory > 1),
        ("features", " ".join(node.features), bool(node.features)),
        ("gpu_model", models[0] if models else "", bool(models)),
    )
    base = _ODD.sub("-", compressed(names).replace("[", "").replace("]", ""))[:_LONGEST].strip("-._") or "nodes"
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    more: dict[str, Any] = {"resources": _resources(node, memory=memory), "weight": node.weight} if shared else {}
    properties = {key: value for key, value, is_told in told if is_told}
    return Pool(name=name, nodes=len(alike), names=str(rule), properties=properties, **more)


def _resources(node: SlurmNode, *, memory: bool) -> dict[str, Any]:
    found: dict[str, Any] = {CORES: node.usable_cpus}
    if memory:
        found[MEMORY] = f"{node.usable_memory} MiB"
    gpus = {key: count for key, count in node.gres.items() if key.partition(":")[0] == GPU}
    if count := sum(gpus.values()):
        if count > _MOST_GPUS:
            raise SlurmConfigError("a node has too many GPUs", where=node.where, expected=f"at most {_MOST_GPUS}")
        model = next(iter(gpus)).partition(":")[2] if len(gpus) == 1 else ""  # several models are one kind of GPU
        found[GPU] = {"count": count, "model": model} if model else count
    for key, count in node.gres.items():
        resource = key.partition(":")[0]
        if resource != GPU and NAME.fullmatch(resource):
            found[resource] = found.get(resource, 0) + count
    return found


def _class(name: str, entry: ConfEntry, pools: Mapping[str, None], count: int) -> JobClass:
    longest, most = entry.value("MaxTime", inf), entry.value("MaxNodes")
    tier = entry.get("PriorityTier", "Priority")
    limits: dict[str, Any] = {}
    if isinstance(longest, float) and 0 < longest < inf:
        limits["max_walltime"] = longest
    if isinstance(most, int) and most > 0:
        limits["max_nodes_per_job"] = most
    if tier is not None and isinstance(tier.value, int):
        limits["priority"] = float(tier.value)
    return JobClass(name=name, pools=() if len(pools) == count else tuple(pools), **limits)
