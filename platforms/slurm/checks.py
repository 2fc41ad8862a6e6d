"""Find settings of a slurm.conf that Slurm accepts but that probably are mistakes."""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Final, cast

from pipistrelle.platforms.naming.hostlists import compressed
from pipistrelle.platforms.slurm.conf import ConfEntry, ConfSetting, KeyFinding, SlurmConf
from pipistrelle.platforms.slurm.gres import GresLine
from pipistrelle.platforms.slurm.keys import KeySupport
from pipistrelle.platforms.slurm.lines import WORD
from pipistrelle.platforms.slurm.nodes import SlurmNode, node_sets
from pipistrelle.protocol.base.errors import legible

#: {list of allowed names: list of denied names that Slurm ignores beside it}
_LISTS: Final = {"AllowAccounts": "DenyAccounts", "AllowQos": "DenyQos"}


def doubtful_settings(
    conf: SlurmConf, nodes: Sequence[SlurmNode], gres_lines: Sequence[GresLine] = ()
) -> list[KeyFinding]:
    """Return a warning for each setting that Slurm changes, ignores or cannot satisfy.

    Args:
        nodes: the nodes of the file.
        gres_lines: the lines of gres.conf.
    """
    found = [
        *_select(conf),
        *_memory(conf.parameters),
        *(one for entry in conf.entries.get("nodes", []) for one in _node(entry)),
        *_cpus(conf, nodes),
        *_gres(conf, nodes, gres_lines),
        *_node_sets(conf, nodes),
        *(one for entry in conf.entries.get("partitions", []) for one in _partition(entry)),
        *_defaults(conf),
    ]
    return [KeyFinding(where, key, KeySupport.WARNED, why) for where, key, why in found]


_Found = Iterator[tuple[str, str, str]]


def _select(conf: SlurmConf) -> _Found:
    if conf.value("SelectType") is None:
        yield conf.name, "SelectType", "it is not set, so jobs get whole nodes: Slurm 22.05 uses select/linear"
    elif conf.value("SelectType") != "select/linear" and not conf.value("SelectTypeParameters"):
        where = conf.where("SelectType")
        why = "they are not set, so memory is divided among jobs: Slurm 22.05 uses CR_Core_Memory"
        yield where, "SelectTypeParameters", why


def _memory(settings: Mapping[str, ConfSetting]) -> _Found:
    for node, cpu in (("DefMemPerNode", "DefMemPerCPU"), ("MaxMemPerNode", "MaxMemPerCPU")):
        ignored, other = settings.get(cpu.lower()), settings.get(node.lower())
        if ignored is not None and ignored.value and other is not None and other.value:
            yield ignored.where, cpu, f"Slurm ignores it, because {node} is set"


def _node(entry: ConfEntry) -> _Found:
    told = entry.get("CPUs", "Procs")
    if told is not None and not told.value:
        yield told.where, "CPUs", "0 is not valid: Slurm reads it as 1"
    memory, cores = entry.get("MemSpecLimit"), entry.get("CoreSpecCount")
    if memory is not None and memory.value and cast(int, memory.value) >= cast(int, entry.value("RealMemory", 1) or 0):
        yield memory.where, "MemSpecLimit", "it is not below RealMemory: Slurm reads it as 0"
    if cores is not None and cores.value:
        each = [cast(int, entry.value(key, 1) or 1) for key in ("Sockets", "CoresPerSocket")]
        most = max(each[0] * each[1], cast(int, told.value or 1) if told is not None else 1)
        if cast(int, cores.value) >= most:
            yield cores.where, "CoreSpecCount", "the node does not have more cores: Slurm reads it as 1"


def _cpus(conf: SlurmConf, nodes: Sequence[SlurmNode]) -> _Found:
    for node in {node.line: node for node in reversed(nodes)}.values():
        told = conf.entries["nodes"][node.line].get("CPUs", "Procs")
        if told is not None and told.value not in (0, node.cpus):
            why = f"it is the number neither of sockets nor of cores nor of threads: Slurm reads it as {node.cpus}"
            yield told.where, "CPUs", why


def _gres(conf: SlurmConf, nodes: Sequence[SlurmNode], lines: Sequence[GresLine]) -> _Found:
    types = {name.lower() for name in cast("tuple[str, ...]", conf.value("GresTypes", ()))}
    for entry in conf.entries.get("nodes", []):
        setting = entry.get("Gres")
        if setting is None or setting.text.lower() in ("", "none"):
            continue
        names = {part.partition(":")[0].strip() for part in cast("tuple[str, ...]", setting.value)}
        if missing := sorted(name for name in names if name and name.lower() not in types):
            why = f"GresTypes does not name {legible(', '.join(missing), WORD)}: Slurm would ignore it"
            yield setting.where, "Gres", why
    known = {node.name for node in nodes}
    for line in lines:
        if strange := sorted((line.nodes or frozenset()) - known):
            named = legible(compressed(strange), WORD)
            yield line.where, "NodeName", f"slurm.conf does not have these nodes: {named}"


def _node_sets(conf: SlurmConf, nodes: Sequence[SlurmNode]) -> _Found:
    known = {node.name for node in nodes}
    sets = node_sets(conf, nodes)
    for entry in conf.entries.get("nodesets", []):
        members = sets[entry.name]
        if strange := sorted(set(members) - known):
            yield entry.where, "NodeSet", f"slurm.conf does not have these nodes: {legible(compressed(strange), WORD)}"
        elif not members:
            yield entry.where, "NodeSet", "the set has no nodes"


def _partition(entry: ConfEntry) -> _Found:
    least, most = entry.get("MinNodes"), entry.value("MaxNodes")
    if least is not None and most is not None and cast(int, least.value or 0) > cast(int, most):
        yield least.where, "MinNodes", f"it is above MaxNodes ({most}), so no job can run in partition {entry.name}"
    default, longest = entry.get("DefaultTime"), cast(float, entry.value("MaxTime", inf))
    if default is not None and cast(float, default.value) > longest:
        yield default.where, "DefaultTime", "it is above MaxTime, so jobs that give no time limit wait forever"
    for allow, deny in _LISTS.items():
        names = [name.upper() for name in cast("tuple[str, ...]", entry.value(allow, ()))]
        denied = entry.get(deny)
        if denied is not None and names and "ALL" not in names:
            yield denied.where, deny, f"Slurm ignores it, because {allow} is set"
    yield from _memory(entry.settings)
    nodes = entry.get("Nodes")
    if nodes is None or not nodes.text:
        yield entry.where, "Nodes", f"partition {entry.name} has no nodes"


def _defaults(conf: SlurmConf) -> _Found:
    named = [entry for entry in conf.entries.get("partitions", []) if entry.value("Default") is True]
    for entry in named[:-1]:
        yield entry.where, "Default", f"partition {named[-1].name} is the default, because it comes later"
