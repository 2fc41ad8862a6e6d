"""Read where a run's jobs ran: the machine, the nodes of each job, and failures."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.platforms.topology.orders import node_order
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.runs.folders.files import number_in, output_rows, read_command, read_config
from pipistrelle.server.outputs.folder import CONFIG_FILE

Ints = NDArray[np.intp]
Floats = NDArray[np.float64]
#: times in out_jobs.csv have six decimals, but times of outages have all digits
_ROUNDED = 1e-6


class PlacementError(PipistrelleError):
    """The placement of a run's jobs cannot be determined."""


@dataclass(frozen=True, eq=False)
class PlacedRun:
    """Machine, job placement and failures of a run; times in s after time 0.

    Each attempt of a job counts as a job here.

    Attributes:
        folder, machine: the output folder, and the machine as schedulers saw it.
        order, age_aware: node order of the placement, and whether stable nodes came first.
        epoch, timezone: Unix time of time 0 and time zone; None if unknown.
        ids: attempts of jobs that ran, in the order in which they ended.
        nodes: ascending node numbers of each attempt, one array per attempt.
        start, end: times of each attempt, shape (jobs,).
        failed, failed_at: failed nodes and times, shape (failures,), without planned outages.
    """

    folder: Path
    machine: Machine
    order: str
    age_aware: bool
    epoch: float | None
    timezone: str | None
    ids: list[str]
    nodes: list[Ints]
    start: Floats
    end: Floats
    failed: Ints
    failed_at: Floats

    @cached_property
    def sizes(self) -> Ints:
        """Return the number of nodes per job, shape (jobs,)."""
        return np.array([nodes.size for nodes in self.nodes], dtype=np.intp)

    @cached_property
    def hours(self) -> Floats:
        """Return the run time of each job in hours, shape (jobs,)."""
        return (self.end - self.start) / 3600.0

    @cached_property
    def struck(self) -> Ints:
        """Return the index of the job that each failure struck, shape (failures,).

        The index is -1 if it struck none.
        """
        return self.running_on(self.failed, self.failed_at)

    def running_on(self, nodes: Ints, times: Floats) -> Ints:
        """Return the job that ran on a node just before a time; -1 if there was none.

        Args:
            nodes, times: node numbers, and a time (s) for each of them, shape (n,).

        Returns:
            Indices of jobs, shape (n,).
        """
        wanted = np.zeros(len(self.machine.nodes), dtype=bool)
        wanted[nodes] = True
        parts = [some[wanted[some]] for some in self.nodes]
        node = np.concatenate([*parts, np.zeros(0, dtype=np.intp)])
        job = np.repeat(np.arange(len(parts), dtype=np.intp), [part.size for part in parts])
        by_time = np.lexsort((self.start[job], node))
        node, job = node[by_time], job[by_time]
        first = np.searchsorted(node, nodes, side="left")
        last = np.searchsorted(node, nodes, side="right")
        found = np.full(len(nodes), -1, dtype=np.intp)
        for index, (low, high, time) in enumerate(zip(first.tolist(), last.tolist(), times.tolist(), strict=True)):
            at = low + int(np.searchsorted(self.start[job[low:high]], time - _ROUNDED, side="left")) - 1
            if at >= low and self.end[job[at]] >= time - _ROUNDED:
                found[index] = job[at]
        return found


def read_placed_run(folder: Path) -> PlacedRun:
    """Read the machine, job placement and failures from the outputs of a run.

    Raises:
        PipistrelleError: if the outputs are missing, wrong, from several runs, or do not describe the machine.
    """
    config = read_config(folder)
    try:
        platform = msgspec.convert(config.get("platform"), Platform)
    except (PipistrelleError, msgspec.ValidationError) as error:
        raise PlacementError("the machine cannot be read", where=str(folder / CONFIG_FILE), found=str(error)) from None
    machine = Machine(platform.units, platform.info)
    command = read_command(folder) or {}
    first: dict[str, Any] = next(iter(config["workloads"].values()), {})
    ids, nodes, times = [], [], []
    for name, text, start, end in _jobs(folder):
        ids.append(name)
        nodes.append(node_numbers(machine, text))
        times.append((start, end))
    table = np.array(times, dtype=np.float64).reshape(-1, 2)
    failures = list(_failures(folder, len(machine.nodes)))
    return PlacedRun(
        folder,
        machine,
        command.get("node-order") or "id",
        bool(command.get("age-aware")),
        first.get("epoch"),
        first.get("timezone"),
        ids,
        nodes,
        table[:, 0],
        table[:, 1],
        np.array([node for node, _ in failures], dtype=np.intp),
        np.array([down for _, down in failures], dtype=np.float64),
    )


def node_numbers(machine: Machine, units: str) -> Ints:
    """Return the numbers of the nodes on which given units are, ascending.

    Args:
        units: the units as text, such as ``0-3 8``.
    """
    intervals = machine.numbering.nodes_of(NodeSet.parse(units)).intervals
    return np.concatenate(
        [np.arange(low, high + 1, dtype=np.intp) for low, high in intervals] or [np.zeros(0, np.intp)]
    )


def list_order(machine: Machine, order: str, age_aware: bool) -> Ints:
    """Return all nodes in a placement's order, optionally stable nodes first.

    Raises:
        PipistrelleError: if the machine does not support the order, or it is unknown which nodes are stable.
    """
    nodes = node_order(order, machine)
    if not age_aware:
        return nodes
    stable = machine.nodes.stable
    if stable is None:
        raise PlacementError(
            "the machine's stable nodes are unknown",
            expected="classes, MTTFs or ages of nodes",
            hint="Give --node-table, or a platform that has them.",
        )
    return nodes[np.argsort(~stable[nodes], kind="stable")]


def _jobs(folder: Path) -> Iterator[tuple[str, str, float, float]]:
    columns = ("job_id", "workload_name", "starting_time", "finish_time", "allocated_resources")
    for row in output_rows(folder, "jobs.csv", *columns):
        if row["starting_time"] and row["allocated_resources"]:
            start, end = number_in(row["starting_time"]), number_in(row["finish_time"])
            yield f"{row['workload_name']}!{row['job_id']}", row["allocated_resources"], start, end


def _failures(folder: Path, nodes: int) -> Iterator[tuple[int, float]]:
    for row in output_rows(folder, "outages.csv", "node", "down", "planned", needed=False):
        node = number_in(row["node"])
        if node >= nodes:
            raise PlacementError("an outage is of a node that does not exist", where=str(folder), found=row["node"])
        if row["planned"] == "0":
            yield int(node), number_in(row["down"])
