"""What jobs take on each node of a machine whose nodes have resources."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.resources.free_resources import amounts_of
from pipistrelle.platforms.resources.shared_nodes import shared_nodes_of
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.resources.amounts import CORES, base_of
from pipistrelle.reports.page.packing import ColumnPack, intervals
from pipistrelle.runs.folders.cells import TextColumn
from pipistrelle.runs.folders.tables import OutputTables, numbers
from pipistrelle.server.outputs.resource_book import PER_NODE, TAKES_COLUMNS

_ASKED: Final = ("job_id", "workload_name", "requested_cores")


def takes(
    config: Mapping[str, Any], tables: OutputTables, pack: ColumnPack, names: TextColumn
) -> dict[str, Any] | None:
    """Pack the resources that each attempt takes on each node.

    Return None if nodes have no resources, or the run has no table of what jobs take. ``cores`` is the number of cores
    that an attempt takes on all its nodes, or that it requested if it never ran.

    Args:
        config: the run's configuration, with the machine.
        names: the run's attempts, in the order of the page.

    Raises:
        ExplainError: the table cannot be read.
    """
    resources = resources_of(config)
    table = tables.perhaps("takes", *TAKES_COLUMNS, *(PER_NODE + name for name in resources))
    if not table or not resources:
        return None
    row = table["job_id"].places_in(names)
    jobs = tables.columns("jobs", *_ASKED)
    lines = np.flatnonzero(row >= 0)
    lines = lines[np.argsort(row[lines], kind="stable")]
    counts, first, last = intervals(table["nodes"].take(lines))
    amounts = {name: numbers(table[PER_NODE + name].take(lines)) for name in resources}
    line = np.repeat(np.arange(len(lines)), counts)
    many = np.bincount(line, weights=last - first + 1, minlength=len(lines))
    cores = np.bincount(row[lines], weights=many * amounts[CORES], minlength=len(names))
    at = names.places_in(jobs["workload_name"].joined(jobs["job_id"], "!"))
    waits = np.flatnonzero((cores == 0) & (at >= 0))
    cores[waits] = numbers(jobs["requested_cores"].take(at[waits]), empty=0.0)
    return {
        "resources": [{"name": name, "has": pack.numbers(has)} for name, has in resources.items()],
        "cores": pack.numbers(cores),
        "lines": pack.numbers(np.bincount(row[lines], minlength=len(names))),
        "intervals": pack.numbers(counts),
        "first": pack.numbers(first),
        "length": pack.numbers(last - first),
        "amounts": [pack.numbers(of) for of in amounts.values()],
    }


def resources_of(config: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return {resource: what each node has}, shape (nodes,).

    Cores and GPUs are numbers, memory is in MiB. The result is empty if nodes have no resources, or if another version
    wrote the platform and it cannot be read.

    Args:
        config: the run's configuration, with the machine.
    """
    try:
        nodes = shared_nodes_of(msgspec.convert(config.get("platform"), Platform).info)
    except (PipistrelleError, msgspec.ValidationError):
        return {}
    if nodes is None:
        return {}
    return {name: of / base_of(name) for name, of in amounts_of(nodes).items()}
