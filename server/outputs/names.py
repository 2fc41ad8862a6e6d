"""Names of jobs and of their nodes, as further columns of the table of jobs."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.naming.hostlists import compressed
from pipistrelle.platforms.naming.numbering import NodeUnits
from pipistrelle.platforms.topology.nodes import numbers_by_name
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.jobs import NEVER_RAN, Job
from pipistrelle.server.outputs.csv_file import csv_text
from pipistrelle.traces.workload import Workload

#: further columns of ``jobs.csv``
NAME_COLUMNS: Final = "job_name,allocated_nodes"
_KEPT: Final = 10_000


class JobNames:
    """Gives the name of each job, and its nodes in Slurm's form, such as ``n[01-02,05]``."""

    def __init__(self, platform: Platform, workloads: Mapping[str, Workload]) -> None:
        self._units = NodeUnits.told(platform.info.pools)
        self._nodes = {number: name for name, number in numbers_by_name(platform).items()}
        self._names = {
            f"{prefix}!{job}": name
            for prefix, workload in workloads.items()
            for job, name in zip(workload.ids, workload.labels.get("name") or (), strict=False)
            if name
        }
        self._text = lru_cache(_KEPT)(self._list_of)

    def columns(self, job: Job) -> str:
        """Return the job's cells of `NAME_COLUMNS`; no nodes if it never ran."""
        root = job.id if job.attempt is None else job.attempt.root
        nodes = "" if job.state in NEVER_RAN else self._text(str(job.alloc))
        return f"{csv_text(self._names.get(root, ''))},{csv_text(nodes)}"

    def _list_of(self, units: str) -> str:
        nodes = self._units.nodes_of(NodeSet.parse(units))
        return compressed(
            self._nodes.get(node, str(node)) for low, high in nodes.intervals for node in range(low, high + 1)
        )
