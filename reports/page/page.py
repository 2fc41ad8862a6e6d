"""Make the HTML page of one or more runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.base.errors import PipistrelleError, printable
from pipistrelle.protocol.fields import package_version
from pipistrelle.reports.page.breakdowns import breakdowns
from pipistrelle.reports.page.document import document
from pipistrelle.reports.page.estimates import estimates
from pipistrelle.reports.page.packing import ColumnPack
from pipistrelle.reports.page.rows import JOB_COLUMNS, AttemptRows, labels_of, read_decided, read_rows
from pipistrelle.reports.page.shares import fairshare_targets
from pipistrelle.reports.page.takes import takes
from pipistrelle.reports.page.worst import worst_served
from pipistrelle.reports.report.comparison import SHAPES, Together, compare
from pipistrelle.reports.report.comparison import labels_of as labels_in
from pipistrelle.reports.report.differences import first_decision
from pipistrelle.runs.folders.cells import TextColumn
from pipistrelle.runs.folders.files import output_json, read_command, read_config
from pipistrelle.runs.folders.run_jobs import ReportError, RunJobs
from pipistrelle.runs.folders.tables import OutputTables, numbers
from pipistrelle.server.outputs.folder import OUTPUT_PREFIX, SUMMARY_FILE
from pipistrelle.server.outputs.lock import is_written

#: keys of the configuration that the page shows
_TOLD: Final = ("run_id", "workloads", "dropped", "strict", "reliability", "batsim", "scheduler", "versions")

#: labels of jobs by which the page groups the differences between two runs
_BY: Final = ("queue", "user", "group", "account", "qos")


def page_of(folders: Sequence[Path], *, repeat: bool = False, trust: bool = False, estimates_at: int = 0) -> str:
    """Return one or more runs as a self-contained HTML page.

    Args:
        folders: output folders of the runs; the other runs are compared with the first.
        repeat: whether to repeat a run to explain its longest waits, if `pipistrelle explain` has not saved an index.
        trust: allow Python code that a folder names as its scheduler to run.
        estimates_at: number of times for which start estimates are made by repeating each run; 0 for none.

    Raises:
        PipistrelleError: outputs are missing or cannot be read, or a run cannot be repeated.
    """
    pack = ColumnPack()
    runs: list[dict[str, Any]] = []
    compared = []
    for folder in folders:
        run, rows, labels = _run(folder, pack, repeat=repeat, trust=trust, estimates_at=estimates_at)
        runs.append(run)
        if len(folders) > 1:
            compared.append((rows.run_jobs(folder, run["config"], run["summary"], labels), rows.ended_jobs))
    for run, name in zip(runs, _names(runs, folders), strict=True):
        run["name"] = name
    facts: dict[str, Any] = {"version": package_version(), "runs": runs}
    if len(runs) > 1:
        facts["paired"] = _paired([jobs for jobs, _ in compared], [places for _, places in compared], pack)
    title = " · ".join(dict.fromkeys(run["name"] for run in runs))
    return document(title, facts, pack.done())


def _run(
    folder: Path, pack: ColumnPack, *, repeat: bool, trust: bool, estimates_at: int
) -> tuple[dict[str, Any], AttemptRows, dict[str, TextColumn]]:
    """Return the page's data about a run.

    Also return the run's attempts, and labels of the attempts.
    """
    config = read_config(folder)
    summary = output_json(folder / SUMMARY_FILE)
    tables = OutputTables(folder)
    decided = read_decided(tables)
    states = numbers(tables.columns("machine_states", "time")["time"])
    ends = numbers(tables.columns("jobs", *JOB_COLUMNS)["finish_time"], empty=0.0)
    until = max(decided.until, float(states[-1]) if len(states) else 0.0, float(ends.max(initial=0.0)))
    until = max(until, (summary or {}).get("horizon", until))
    rows = read_rows(tables, decided, until)
    labels = labels_of(tables, rows)
    first: Mapping[str, Any] = next(iter(config["workloads"].values()), {})
    told = {
        "folder": printable(str(folder)),
        "scheduler": printable(str(config["scheduler"].get("name", ""))),
        "summary": summary,
        "goes_on": summary is None and is_written(str(folder / OUTPUT_PREFIX).removesuffix("_")),
        "config": {key: config.get(key) for key in _TOLD},
        "command": read_command(folder),
        "machine": _machine(config, folder),
        "places": _places(config, pack),
        "epoch": first.get("epoch"),
        "timezone": first.get("timezone"),
        "until": until,
        "columns": rows.packed(pack, labels),
        "takes": takes(config, tables, pack, rows.names),
        "breakdowns": breakdowns(tables, pack, rows.names, until),
        "worst": worst_served(folder, config, summary, rows, decided, tables, repeat=repeat, trust=trust),
        "estimates": estimates(folder, rows, pack, estimates_at, trust=trust) if estimates_at else None,
        "fairshare": fairshare_targets(read_command(folder)),
    }
    return told, rows, labels


def _machine(config: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the machine's pools, each with its number of nodes and units per node."""
    platform = config.get("platform")
    pools = platform.get("pools") if isinstance(platform, dict) else None
    if not isinstance(platform, dict) or not isinstance(pools, list) or not pools:
        raise ReportError(
            "out_config.json describes no machine", where=str(folder), hint="Was it written by another version?"
        )
    told: list[dict[str, Any]] = [
        {
            "name": printable(str(pool.get("name"))),
            "nodes": int(pool["nodes"]),
            "units": int(pool.get("units_per_node", 1)),
            "unit": printable(str(pool.get("unit", "unit"))),
        }
        for pool in pools
    ]
    return {
        "name": printable(str(platform.get("name"))),
        "description": printable(str(platform.get("description", ""))),
        "pools": told,
        "units": sum(pool["nodes"] * pool["units"] for pool in told),
    }


def _names(runs: Sequence[Mapping[str, Any]], folders: Sequence[Path]) -> list[str]:
    """Return a name per run.

    These are the names of the schedulers if all differ, otherwise the names of the folders.
    """
    names = [run["scheduler"] for run in runs]
    if len(set(names)) == len(names) > 1:
        return names
    names = [printable(folder.resolve().name) for folder in folders]
    return names if len(set(names)) == len(names) else [f"{number} {name}" for number, name in enumerate(names, 1)]


def _places(config: Mapping[str, Any], pack: ColumnPack) -> dict[str, Any] | None:
    """Return kind and shape of the network, and the packed coordinates of the nodes.

    Return None if the network has no shape, or if the platform was written by another version and cannot be read.
    """
    platform = config.get("platform")
    if not isinstance(platform, dict) or not platform.get("topology"):
        return None
    try:
        described = msgspec.convert(platform, Platform)
        topology = Machine(described.units, described.info).topology
    except (PipistrelleError, msgspec.ValidationError):
        return None
    if not topology.info.shape:
        return None
    return {
        "kind": topology.kind,
        "shape": list(topology.shape),
        "per_router": topology.nodes_per_router,
        "place": [pack.numbers(column) for column in topology.place.T],
    }


def _paired(runs: Sequence[RunJobs], places: Sequence[NDArray[np.intp]], pack: ColumnPack) -> dict[str, Any]:
    """Compare the runs by the jobs that all of them have.

    ``jobs`` in the result is the number of these jobs.

    Args:
        runs: at least two runs; all others are compared with the first.
        places: for each run, the index of each of its jobs in the page's columns.
    """
    same = len({tuple(run.workloads) for run in runs}) == 1
    apart = [first_decision(runs[0].folder, run.folder) for run in runs[1:]] if same else None
    try:
        found = compare(runs, [*SHAPES, *(label for label in _BY if label in labels_in(runs))])
        both = Together.of(runs)
    except ReportError:
        return {"jobs": 0, "same_workload": same, "first_decisions": apart}
    found["first_decisions"] = apart
    found["places"] = [pack.numbers(mine[at], deltas=True) for mine, at in zip(places, both.places, strict=True)]
    return found
