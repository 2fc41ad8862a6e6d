"""Failures of a run and their cost, by outage, attempt and node."""

from typing import Any, Final

import numpy as np

from pipistrelle.reports.page.packing import ColumnPack
from pipistrelle.runs.folders.cells import TextColumn
from pipistrelle.runs.folders.tables import Columns, OutputTables, numbers

#: ways in which an attempt's units spend time, in the order shown
SPENT: Final = ("useful", "unsaved", "lost", "dumping", "reading", "spare", "down", "waiting", "overhead")
_SPENT_COLUMNS: Final = tuple(f"unit_seconds_{one}" for one in SPENT)
_COUNTS: Final = ("nodes_lost", "failures_survived", "dumps", "reads", "retried")
_NODE: Final = ("failures", "maintenances", "time_up", "time_down", "time_in_maintenance", "time_busy", "time_idle")


def breakdowns(tables: OutputTables, pack: ColumnPack, names: TextColumn, until: float) -> dict[str, Any] | None:
    """Pack the data about failures and their cost for the page.

    Return None if no node could fail.

    Args:
        names: the run's attempts. Metrics of attempts are packed in this order, 0 for an attempt without values.
        until: the end of the outputs (s). Outages that have not ended by then end at this time.

    Raises:
        ExplainError: a file cannot be read.
    """
    attempts = tables.perhaps("attempts", "job_id", "workload_name", *_COUNTS, *_SPENT_COLUMNS)
    outages = tables.perhaps("outages", "node", "down", "up", "planned")
    if attempts is None and outages is None:
        return None
    nodes = tables.perhaps("nodes", "node", "pool", *_NODE)
    return {
        "attempts": None if not attempts else _attempts(attempts, pack, names),
        "outages": None if not outages else _outages(outages, pack, until),
        "nodes": None if not nodes else _nodes(nodes, pack),
    }


def _attempts(table: Columns, pack: ColumnPack, names: TextColumn) -> dict[str, Any]:
    lines = names.places_in(table["workload_name"].joined(table["job_id"], "!"))
    there = lines >= 0
    found: dict[str, Any] = {}
    for column in (*_COUNTS, *_SPENT_COLUMNS):
        values = np.zeros(len(names))
        values[there] = numbers(table[column])[lines[there]]
        found[column.removeprefix("unit_seconds_")] = pack.numbers(values)
    return found


def _outages(table: Columns, pack: ColumnPack, until: float) -> dict[str, Any]:
    down, up = numbers(table["down"]), numbers(table["up"], empty=until)
    up = np.minimum(up, max(until, float(down.max(initial=0.0))))
    return {
        "node": pack.numbers(numbers(table["node"]), deltas=True),
        "down": pack.numbers(down, deltas=True),
        "up": pack.numbers(np.maximum(up, down), deltas=True),
        "planned": pack.numbers(numbers(table["planned"])),
    }


def _nodes(table: Columns, pack: ColumnPack) -> dict[str, Any]:
    columns = {column: pack.numbers(numbers(table[column])) for column in _NODE}
    return {"node": pack.numbers(numbers(table["node"]), deltas=True), "pool": pack.names(table["pool"]), **columns}
