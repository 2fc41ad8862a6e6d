"""Record of how long each node was busy, idle or down."""

from collections.abc import Mapping
from math import inf
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.naming.numbering import NodeUnits
from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.fields import EndReason
from pipistrelle.protocol.units.indices import pieces
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.attempts.attempt import Attempt
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer, Reasons
from pipistrelle.server.outputs.csv_file import csv_text

OUTAGE_COLUMNS = "node,down,up,cause,planned,ended"
NODE_COLUMNS = "node,pool,failures,maintenances,time_up,time_down,time_in_maintenance,time_busy,time_idle,availability"


def seconds_by_state(total: float, down: NDArray[np.float64], busy: float) -> dict[str, float]:
    """Return {state: node-seconds}.

    The states are all, down (by failures), maintenance, busy and idle.

    Args:
        total: node-seconds of the whole run.
        down: node-seconds out of service by failures and by maintenance, shape (2,).
        busy: node-seconds in which nodes had jobs.
    """
    failed, maintained = (float(time) for time in down)
    idle = total - failed - maintained - busy
    return {"all": total, "down": failed, "maintenance": maintained, "busy": busy, "idle": idle}


class NodeBook(Kept, Observer):
    """The record of how long each unit and node was busy, idle or down during a run.

    A node is down from its first failure or maintenance until no failure or maintenance is left. A unit of a down node
    counts as down even if a job holds it.
    """

    _kept: ClassVar[tuple[str, ...]] = (
        "_busy",
        "_went_down",
        "_planned",
        "_downtime",
        "_counts",
        "_held_down",
        "_down_times",
    )

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._node_units = NodeUnits.told(platform.info.pools)
        units, nodes = platform.units, platform.nodes
        #: time that jobs held each unit while its node was up (s)
        self._busy = np.zeros(units)
        #: {id: job} of the jobs that hold units now
        self._running: dict[str, Job] = {}
        self._went_down = np.full(nodes, np.nan)
        self._planned = np.zeros(nodes, dtype=np.bool_)
        #: unit-seconds that jobs held units of down nodes
        self._held_down = 0.0
        #: {node: its outages, each as [went down (s), came up (s), cause, expected up (s), planned]}
        self._down_times: dict[int, list[list[Any]]] = {}
        #: time that each node was down by failures and for maintenance (s), shape (2, nodes)
        self._downtime = np.zeros((2, nodes))
        self._counts = np.zeros((2, nodes), dtype=np.int64)
        self._end = 0.0

    def state(self) -> dict[str, Any]:
        """Return the records of all nodes as plain values, for a snapshot."""
        return {**super().state(), "running": list(self._running)}

    def restore(self, state: dict[str, Any], running: Mapping[str, Job]) -> None:
        """Restore a saved state; ``running`` is {id: job} of the running jobs."""
        super().restore(state)
        self._running = {job_id: running[job_id] for job_id in state["running"]}

    def started(self, now: float, job: Job) -> None:
        """Record a job that got its units."""
        self._running[job.id] = job

    def ended(self, now: float, job: Job) -> None:
        """Add an ended job's time to the busy time of its units."""
        if self._running.pop(job.id, None) is not None:
            self._add(job, now)

    def _add(self, job: Job, end: float) -> None:
        attempt = job.attempt if isinstance(job.attempt, Attempt) else None
        for part in pieces(job.alloc) if attempt is None else attempt.parts:
            self._busy[part] += end - job.start
        if attempt is None or not (attempt.lost or attempt.waited):
            return
        for node in attempt.lost | attempt.waited:
            for down, up, *_ in reversed(self._down_times.get(node, ())):
                if up <= job.start:
                    break
                overlap = min(up, end) - max(down, job.start)
                if overlap > 0:
                    for low, high in (job.alloc & self._node_units.units_of(NodeSet.interval(node, node))).intervals:
                        self._busy[low : high + 1] -= overlap
                        self._held_down += overlap * (high + 1 - low)

    def went_down(self, now: float, nodes: NodeSet, units: NodeSet, planned: bool, why: Reasons) -> None:
        """Record that nodes went down."""
        for low, high in nodes.intervals:
            part = slice(low, high + 1)
            self._went_down[part] = now
            self._planned[part] = planned
            self._counts[int(planned), part] += 1
        for node in nodes:
            self._down_times.setdefault(node, []).append([now, inf, *why[node], planned])

    def came_up(self, now: float, nodes: NodeSet, units: NodeSet) -> None:
        """Record that nodes came up."""
        for low, high in nodes.intervals:
            part = slice(low, high + 1)
            down = now - self._went_down[part]
            planned = self._planned[part]
            self._downtime[0, part] += np.where(planned, 0.0, down)
            self._downtime[1, part] += np.where(planned, down, 0.0)
            self._went_down[part] = np.nan
        for node in nodes:
            self._down_times[node][-1][1] = now

    def ends(self, now: float, reason: EndReason, message: str) -> None:
        """Add the times of running jobs and unfinished outages up to the end of the run."""
        self._end = now
        for job in self._running.values():
            self._add(job, now)
        self._running = {}
        down = np.flatnonzero(~np.isnan(self._went_down))
        self._downtime[self._planned[down].astype(np.int64), down] += now - self._went_down[down]
        self._went_down[down] = now

    @property
    def node_seconds(self) -> dict[str, float]:
        """Node-seconds of the run by state.

        The states are all, down (by failures), maintenance, busy and idle.
        """
        return seconds_by_state(
            self._end * self._platform.nodes, self._downtime.sum(axis=1), float(self._busy_nodes().sum())
        )

    @property
    def unavailable(self) -> float:
        """Unit-seconds of down nodes that no job held."""
        down = self._downtime.sum(axis=0)
        units = sum(float(down[first : first + count].sum()) * each for first, count, _, each in self._node_units.pools)
        return units - self._held_down

    @property
    def failures(self) -> int:
        """Number of failures that hit nodes that were up."""
        return int(self._counts[0].sum())

    def _busy_nodes(self) -> NDArray[np.float64]:
        """Return each node's busy time (s), averaged over its units, shape (nodes,)."""
        parts = [
            self._busy[unit : unit + count * each].reshape(count, each).mean(axis=1)
            for _, count, unit, each in self._node_units.pools
        ]
        return np.concatenate(parts)

    def outage_lines(self) -> list[str]:
        """Return the lines of ``outages.csv`` by time and node, without newlines."""
        rows = sorted((row[0], node, row) for node, rows in self._down_times.items() for row in rows)
        return [
            f"{node},{down!r},{_time(min(up, max(due, self._end)))},{csv_text(cause)},{planned:d},{up < inf:d}"
            for _, node, (down, up, cause, due, planned) in rows
        ]

    def lines(self) -> list[str]:
        """Return the lines of ``nodes.csv``, without newlines."""
        busy = self._busy_nodes()
        lines = []
        for pool, (first, count, _, _) in zip(self._platform.pools, self._node_units.pools, strict=True):
            for node in range(first, first + count):
                down, planned = self._downtime[:, node].tolist()
                up = self._end - down - planned
                failures, maintenances = self._counts[:, node].tolist()
                share = up / self._end if self._end > 0 else 1.0
                lines.append(
                    f"{node},{pool.name},{failures},{maintenances},{up:.6f},{down:.6f},{planned:.6f},"
                    f"{busy[node]:.6f},{up - busy[node]:.6f},{share:.9f}"
                )
        return lines


class SharedNodeBook(NodeBook):
    """The record of how long each shared node was busy, idle or down.

    A node is busy while any job has a part of it.
    """

    _kept: ClassVar[tuple[str, ...]] = (*NodeBook._kept, "_jobs", "_since")

    def __init__(self, platform: Platform) -> None:
        super().__init__(platform)
        #: number of jobs on each node, and since when it has been both busy and up, or both busy and down (s)
        self._jobs = np.zeros(platform.nodes, dtype=np.int64)
        self._since = np.zeros(platform.nodes)

    def started(self, now: float, job: Job) -> None:
        """Add a job to the count of jobs on each of its nodes."""
        super().started(now, job)
        for part in pieces(job.alloc):
            self._since[part] = np.where(self._jobs[part] == 0, now, self._since[part])
            self._jobs[part] += 1

    def _add(self, job: Job, end: float) -> None:
        for part in pieces(job.alloc):
            self._jobs[part] -= 1
            self._count(np.arange(len(self._jobs))[part], self._jobs[part] == 0, end)

    def _count(self, nodes: NDArray[np.intp], which: NDArray[np.bool_], now: float) -> None:
        """Add the time since each node's last change to the busy time of this node.

        If the node is down, add the time instead to the total time in which jobs held down nodes. ``which`` has one
        boolean per node of ``nodes``; nodes with False are left out.
        """
        nodes = nodes[which]
        span = now - self._since[nodes]
        down = ~np.isnan(self._went_down[nodes])
        self._busy[nodes[~down]] += span[~down]
        self._held_down += float(span[down].sum())
        self._since[nodes] = now

    def _count_busy(self, nodes: NodeSet, now: float) -> None:
        for part in pieces(nodes):
            self._count(np.arange(len(self._jobs))[part], self._jobs[part] > 0, now)

    def went_down(self, now: float, nodes: NodeSet, units: NodeSet, planned: bool, why: Reasons) -> None:
        """Record that nodes went down."""
        self._count_busy(nodes, now)
        super().went_down(now, nodes, units, planned, why)

    def came_up(self, now: float, nodes: NodeSet, units: NodeSet) -> None:
        """Record that nodes came up."""
        self._count_busy(nodes, now)
        super().came_up(now, nodes, units)


def _time(seconds: float) -> str:
    return "" if seconds == inf else repr(seconds)
