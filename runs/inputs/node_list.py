"""A platform made from a list of nodes in openb's columns.

The columns are sn, cpu_milli, memory_mib, gpu and model.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from msgspec import UNSET

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.naming.node_names import NodeNames
from pipistrelle.protocol.base.errors import shown
from pipistrelle.protocol.resources.amounts import CORES, GPU, MEMORY, MILLI
from pipistrelle.traces.clusters.csv_rows import CsvLines
from pipistrelle.traces.clusters.gpu_log import whole_cell
from pipistrelle.traces.files import beginning, open_trace, trace_name
from pipistrelle.traces.logs.kinds import kind_of

_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")


class NodeKind(NamedTuple):
    """The resources of a node in the list: milli-cores, MiB, GPUs and their model."""

    cores: int
    memory: int
    gpus: int
    model: str


def is_node_list(path: str) -> bool:
    """Return whether a file begins with the header of a list of nodes."""
    return kind_of(beginning(path)) == "nodes"


def read_node_list(path: str) -> tuple[list[str], list[NodeKind]]:
    """Return the names and the resources of the nodes, in the order of the list.

    Raises:
        PipistrelleError: a column is missing, a number is malformed, or there is no node. The error names file and
            line.
    """
    names: list[str] = []
    kinds: list[NodeKind] = []
    with open_trace(path, what="a list of nodes") as stream:
        for cells in CsvLines(stream, path, _COLUMNS, ",".join(_COLUMNS)):
            names.append(cells["sn"])
            gpus = whole_cell(cells, "gpu", most=MILLI)
            cores, memory = whole_cell(cells, "cpu_milli"), whole_cell(cells, "memory_mib")
            kinds.append(NodeKind(cores, memory, gpus, cells["model"] if gpus else ""))
    if not names:
        raise PlatformError("the list has no nodes", where=path, expected="one node per row")
    return names, kinds


def platform_of_list(path: str) -> Platform:
    """Return a platform with a pool per kind of node.

    Jobs share the resources of a node.

    Raises:
        PipistrelleError: as in `read_node_list`; or a name is invalid or occurs twice.
    """
    names, kinds = read_node_list(path)
    members: dict[NodeKind, list[str]] = {}
    for name, kind in zip(names, kinds, strict=True):
        members.setdefault(kind, []).append(name)
    pools = tuple(_pool(kind, some, f"kind-{number}", path) for number, (kind, some) in enumerate(members.items(), 1))
    try:
        return Platform(name=trace_name(path), pools=pools)
    except PlatformError as error:
        raise error.at(f"{path}: {error.where}", PlatformError) from None


def _pool(kind: NodeKind, names: Sequence[str], pool: str, path: str) -> Pool:
    pattern = NodeNames.of(names)
    if pattern is None:
        raise PlatformError(
            "a node's name is not valid",
            where=path,
            expected="letters, digits, '.', '_' and '-'",
            found=shown(names[0]),
        )
    gpu: dict[str, Any] = {}
    if kind.gpus:
        gpu = {GPU: {"count": kind.gpus, **({"model": kind.model} if kind.model else {})}}
    cores = kind.cores / MILLI if kind.cores % MILLI else kind.cores // MILLI
    resources = {CORES: cores, MEMORY: f"{kind.memory} MiB", **gpu}
    return Pool(name=pool, nodes=len(names), names=str(pattern), resources=resources, node_class=kind.model or UNSET)
