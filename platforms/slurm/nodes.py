"""The nodes of a slurm.conf, its node sets, and the nodes of its partitions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

from msgspec import Struct
from msgspec.structs import replace

from pipistrelle.platforms.naming.hostlists import MOST_NAMES, NameLists, expanded
from pipistrelle.platforms.slurm.conf import ConfEntry, SlurmConf, SlurmConfigError
from pipistrelle.platforms.slurm.gres import GresLine, read_gres, with_types
from pipistrelle.platforms.slurm.lines import WORD
from pipistrelle.protocol.base.errors import did_you_mean, legible, shown

_ALL: Final = "ALL"
#: states of nodes that do not exist yet
FUTURE: Final = "FUTURE"
#: states of nodes that get no jobs
UNUSABLE: Final = ("DOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING")
_STATES: Final = (*UNUSABLE, FUTURE, "UNKNOWN", "IDLE", "ALLOCATED", "MIXED", "CLOUD")
_LARGEST: Final = 2**32


class SlurmNode(Struct, frozen=True):
    """A node as slurm.conf describes it.

    Attributes:
        line: number of its ``NodeName`` line, from 0.
        cpus, cores: CPUs (threads that jobs can get) and cores of the node.
        real_memory, mem_spec_limit: memory of the node, and the part that jobs cannot get (MiB).
        gres: {``name`` or ``name:type``: number}.
        state: the state, such as UNKNOWN or DOWN, without its flags.
    """

    name: str
    line: int
    where: str
    cpus: int
    boards: int
    sockets: int
    cores: int
    threads: int
    real_memory: int
    mem_spec_limit: int
    core_spec_count: int
    gres: Mapping[str, int]
    features: tuple[str, ...]
    weight: int
    state: str

    @property
    def usable_cpus(self) -> int:
        """CPUs that jobs can get."""
        return max(1, self.cpus - self.core_spec_count * (self.cpus // max(self.cores, 1) or 1))

    @property
    def usable_memory(self) -> int:
        """Memory that jobs can get (MiB)."""
        return max(0, self.real_memory - self.mem_spec_limit)


def nodes_of(conf: SlurmConf, gres_lines: Sequence[GresLine] = ()) -> list[SlurmNode]:
    """Return the nodes in the order of the file, without nodes in the state FUTURE.

    Raises:
        SlurmConfigError: a node is named twice, a value is out of range, or there is no node.
    """
    found: dict[str, SlurmNode] = {}
    for number, entry in enumerate(conf.entries.get("nodes", [])):
        made = _node(entry, number)
        for name in expanded(entry.name, entry.where):
            if name.upper() in (_ALL, "DEFAULT"):
                raise SlurmConfigError(f"{name} is a reserved word", where=entry.where, expected="names of nodes")
            if name in found:
                raise SlurmConfigError(
                    f"the node {shown(name)} is named twice", where=entry.where, found=found[name].where
                )
            gres = with_types(made.gres, name, gres_lines) if made.gres and gres_lines else made.gres
            found[name] = replace(made, name=name, gres=gres)
            if len(found) > MOST_NAMES:
                raise SlurmConfigError(
                    "there are too many nodes", where=entry.where, expected=f"at most {MOST_NAMES:,}"
                )
    lists = NameLists()
    for entry in conf.entries.get("downnodes", []):
        for name in lists.expanded(entry.name, entry.where):
            if name not in found:
                raise _unknown(name, found, entry.where)
            found[name] = replace(found[name], state=_state(entry, "DOWN"))
    nodes = [node for node in found.values() if node.state != FUTURE]
    if not nodes:
        raise SlurmConfigError("the file describes no node", where=conf.name, expected="one NodeName line or more")
    return nodes


def node_sets(conf: SlurmConf, nodes: Iterable[SlurmNode]) -> dict[str, list[str]]:
    """Return {name of a node set: names of its nodes}."""
    each, lists = list(nodes), NameLists()
    found: dict[str, list[str]] = {}
    for entry in conf.entries.get("nodesets", []):
        feature = entry.value("Feature")
        named = entry.get("Nodes")
        names = lists.expanded(named.text, named.where) if named is not None and named.text else []
        lists.count(len(each) if feature is not None else 0, entry.where)
        names += [node.name for node in each if feature is not None and feature in node.features]
        found.setdefault(entry.name, []).extend(names)
    return found


def nodes_named(
    text: str, where: str, nodes: Mapping[str, int], sets: Mapping[str, Sequence[str]], lists: NameLists
) -> list[str]:
    """Return the nodes of a list such as ``n[01-04],ALL``, in the order of slurm.conf.

    Args:
        text: names of nodes and of node sets, and the word ``ALL``, separated by commas.
        nodes: {name of a node: its number}.
        sets: {name of a node set: names of its nodes}.
        lists: counts the names of all lists of the file.

    Raises:
        PlatformError: if a name is unknown, or the lists of the file are too long.
    """
    if text.upper() == _ALL:
        lists.count(len(nodes), where)
        return list(nodes)
    found: set[str] = set()
    for name in lists.expanded(text, where) if text else []:
        if name in sets:
            lists.count(len(sets[name]), where)
            found.update(sets[name])
        elif name.upper() == _ALL:
            lists.count(len(nodes), where)
            found.update(nodes)
        elif name in nodes:
            found.add(name)
        else:
            raise _unknown(name, nodes, where)
    return sorted((name for name in found if name in nodes), key=nodes.__getitem__)


def _unknown(name: str, known: Iterable[str], where: str) -> SlurmConfigError:
    names = list(known)
    hint = did_you_mean(name, names) if len(names) <= 2000 else ""
    return SlurmConfigError(
        f"there is no node {shown(name)}", where=where, hint=hint if hint.startswith("Did") else None
    )


def _state(entry: ConfEntry, default: str) -> str:
    found = entry.get("State")
    state = default if found is None else found.text.upper()
    if found is not None and state not in _STATES:
        expected = "UNKNOWN, DOWN, DRAIN, FAIL, FUTURE or CLOUD"
        raise SlurmConfigError(
            "the value of State is wrong", where=found.where, expected=expected, found=f"'{legible(found.text, WORD)}'"
        )
    return state


def _number(entry: ConfEntry, key: str, default: int) -> int:
    found = entry.get(key)
    if found is None or found.value is None:
        return default
    value = cast(int, found.value)
    if not 0 <= value < _LARGEST:
        raise SlurmConfigError(f"the value of {key} is out of range", where=found.where, found=found.text)
    return value


def _node(entry: ConfEntry, number: int) -> SlurmNode:
    cores, threads = max(1, _number(entry, "CoresPerSocket", 1)), max(1, _number(entry, "ThreadsPerCore", 1))
    boards = max(1, _number(entry, "Boards", 1))
    told = _number(entry, "CPUs", 0) or _number(entry, "Procs", 0)
    sockets = _number(entry, "Sockets", 0)
    if _number(entry, "SocketsPerBoard", 0):
        sockets = boards * _number(entry, "SocketsPerBoard", 0)
    if not sockets:  # as Slurm infers it
        whole = told and not told % (cores * threads)
        sockets = told // (cores * threads) if whole else boards
    cpus = told or sockets * cores * threads
    if cpus not in (sockets, sockets * cores, sockets * cores * threads):
        cpus = sockets * cores * threads
    all_cores = min(cpus, sockets * cores)
    memory = max(1, _number(entry, "RealMemory", 1))
    spec_memory, spec_cores = _number(entry, "MemSpecLimit", 0), _number(entry, "CoreSpecCount", 0)
    gres, features = entry.get("Gres"), entry.get("Feature", "Features")
    return SlurmNode(
        name=entry.name,
        line=number,
        where=entry.where,
        cpus=cpus,
        boards=boards,
        sockets=sockets,
        cores=all_cores,
        threads=max(1, cpus // all_cores),
        real_memory=memory,
        mem_spec_limit=spec_memory if spec_memory < memory else 0,
        core_spec_count=spec_cores if spec_cores < sockets * cores else 1,
        gres={} if gres is None or gres.text.lower() in ("none", "") else read_gres(gres.text, gres.where),
        features=() if features is None else cast("tuple[str, ...]", features.value),
        weight=_number(entry, "Weight", 1),
        state=_state(entry, "UNKNOWN"),
    )
