"""Statistics of each resource of shared nodes, and the file ``takes.csv``.

The statistics are use, fragmentation and stranding.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.requests.requests import NodeRequest, RequestBook
from pipistrelle.platforms.resources.free_resources import FreeResources
from pipistrelle.platforms.resources.shape import Shape, Shapes, Take
from pipistrelle.platforms.resources.shared_nodes import Amounts, SharedNodes, shared_nodes_of
from pipistrelle.platforms.resources.wanted import WantedShapes
from pipistrelle.protocol.base.state import message_of, plain
from pipistrelle.protocol.fields import EndReason
from pipistrelle.protocol.resources.amounts import CORES, GPU, MILLI, amount_text, base_of
from pipistrelle.protocol.resources.request import Request
from pipistrelle.protocol.units.indices import numbers
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer, Reasons
from pipistrelle.server.outputs.csv_file import CsvFile, Written, csv_text

#: a request, with the job's constraint, and its queue if that has nodes of its own; empty: none
_Wanted = tuple[Request, str, str]
Bools = NDArray[np.bool_]
_SUMS: Final = ("used", "unavailable", "idle", "fragmented", "stranded")
#: columns of ``takes.csv`` before those of the resources, and the first part of the names of these
TAKES_COLUMNS: Final = ("time", "job_id", "nodes")
PER_NODE: Final = "node_"


class ResourceFigures(Struct, frozen=True, kw_only=True):
    """The use of one resource of the whole machine.

    Amounts are cores, GPUs, MiB of memory or counts. ``used`` is the amount-seconds that jobs held. ``utilisation`` is
    the share of the machine's amount that jobs held, from the first submission to the end of the run. ``idle`` is the
    free amount-seconds on nodes that are up, while jobs wait. ``fragmented`` is the part of ``idle`` on nodes on which
    no waiting job fits. ``stranded`` is {other resource: free amount-seconds}, also while no job waits. It counts nodes
    that are up but have too little of the other resource left for any job of the workload. ``unavailable`` is the
    amount-seconds on nodes that are down, except what jobs hold there.
    """

    total: float
    used: float
    utilisation: float | None
    unavailable: float
    idle: float
    fragmented: float
    stranded: dict[str, float]


class ResourceBook(Observer):
    """The observer that sums how much of each resource is used and idle.

    It also sums fragmented and stranded amounts. A waiting job fits on a node if one of its tasks fits there. If the
    job fixes the number of tasks per node, that many tasks must fit. The node must also satisfy the job's constraint
    and be open to its class.

    Args:
        requests: all requests of the run's jobs; they give the least amount of each resource that a job takes.
    """

    def __init__(self, platform: Platform, requests: Iterable[Request | None]) -> None:
        nodes = shared_nodes_of(platform.info)
        assert nodes is not None
        self._nodes: SharedNodes = nodes
        self._book = RequestBook(platform.info.pools, platform.info.groups)
        self._queues = {one.name: numbers(NodeSet.parse(one.units)) for one in platform.info.classes}
        self._names = (*nodes.resources, *((GPU,) if nodes.gpus.any() else ()))
        width = len(self._names)
        #: what each node has, shape (nodes, resources)
        self._has = self._columns(nodes.amounts, nodes.gpus)
        self._free = FreeResources(nodes)
        self._down: Bools = np.zeros(len(nodes), dtype=np.bool_)
        self._shapes = Shapes(nodes)
        self._least = self._least_amounts({request for request in requests if request is not None})
        self._waiting: Counter[_Wanted] = Counter()
        self._time, self._first = 0.0, -1.0
        self._used, self._unavailable, self._idle, self._fragmented = (np.zeros(width) for _ in range(4))
        self._stranded = np.zeros((width, width))
        self._count_again()

    def _columns(self, amounts: Amounts, gpus: Amounts) -> Amounts:
        """Return the nodes' amounts with one more column, the sum of each node's ``gpus``.

        The result has shape (nodes, resources). On a machine without GPUs there is no such column.
        """
        parts = [amounts] if len(self._names) == amounts.shape[-1] else [amounts, gpus.sum(axis=-1, keepdims=True)]
        return np.concatenate(parts, axis=-1)

    def _least_amounts(self, requests: set[Request]) -> Amounts:
        """Return the least amount of each resource that any job takes of a node.

        The result has shape (resources,) and is at least one base unit.
        """
        least = np.full(len(self._names), np.iinfo(np.int64).max)
        for request in requests:
            shape = self._shape(request)
            gpus = shape.share if shape.least_gpus else 0
            taken = np.array([*shape.least.tolist(), gpus][: len(self._names)])
            least = np.where(taken > 0, np.minimum(least, taken), least)
        return np.where(least == np.iinfo(np.int64).max, 1, least)

    def _shape(self, request: Request) -> Shape:
        return self._shapes.of(request)

    def _able(self, constraint: str, queue: str) -> Bools:
        """Return which nodes satisfy a constraint and are open to a queue, shape (nodes,)."""
        able = np.ones(len(self._nodes), dtype=np.bool_)
        if constraint:
            able[:] = False
            able[numbers(self._book.allowed(NodeRequest(constraint)))] = True
        if queue:
            of_class = np.zeros_like(able)
            of_class[self._queues[queue]] = True
            able &= of_class
        return able

    def _wanted(self, job: Job) -> _Wanted:
        assert job.resources is not None
        constraint = "" if job.request is None else job.request.constraint or ""
        queue = job.queue or ""
        return job.resources, constraint, queue if queue in self._queues else ""

    # -- events --------------------------------------------------------------------------------------------------------

    def submitted(self, now: float, job: Job) -> None:
        """Count a job as waiting."""
        self._go_on(now)
        if self._first < 0:
            self._first = now
        wanted = self._wanted(job)
        self._waiting[wanted] += 1
        if self._waiting[wanted] == 1:
            self._add(wanted)

    def _add(self, wanted: _Wanted) -> None:
        request, constraint, queue = wanted
        self._shapes_wanted.add(wanted, self._shape(request), self._able(constraint, queue))

    def started(self, now: float, job: Job) -> None:
        """Stop counting a job as waiting, and mark what it takes on each node as used."""
        self._go_on(now)
        self._leaves(job)
        assert job.taken is not None
        assert job.resources is not None
        nodes, amounts, gpus = self._shape(job.resources).rows(job.taken.takes)
        taken = self._free.take_rows(nodes, amounts, gpus)
        assert taken, f"{job.id} takes more than is free"
        self._look_at(nodes)

    def ended(self, now: float, job: Job) -> None:
        """Free what an ended job took, or stop counting a rejected job as waiting."""
        self._go_on(now)
        if job.taken is None:
            self._leaves(job)
            return
        assert job.resources is not None
        nodes, amounts, gpus = self._shape(job.resources).rows(job.taken.takes)
        self._free.give_back_rows(nodes, amounts, gpus)
        self._look_at(nodes)

    def went_down(self, now: float, nodes: NodeSet, units: NodeSet, planned: bool, why: Reasons) -> None:
        """Mark nodes as down."""
        self._go_on(now)
        self._down[numbers(nodes)] = True
        self._look_at(numbers(nodes))

    def came_up(self, now: float, nodes: NodeSet, units: NodeSet) -> None:
        """Mark nodes as up."""
        self._go_on(now)
        self._down[numbers(nodes)] = False
        self._look_at(numbers(nodes))

    def ends(self, now: float, reason: EndReason, message: str) -> None:
        """Count the time up to the end of the run."""
        self._go_on(now)

    def _leaves(self, job: Job) -> None:
        wanted = self._wanted(job)
        self._waiting[wanted] -= 1
        if not self._waiting[wanted]:
            del self._waiting[wanted]
            self._shapes_wanted.remove(wanted)

    # -- sums ----------------------------------------------------------------------------------------------------------

    def _look_at(self, at: NDArray[np.intp]) -> None:
        """Update the machine's sums after free amounts have changed.

        They changed on the nodes numbered ``at``.
        """
        was_left, was_open, was_short = self._left[at], self._open[at], self._short[at]
        self._left[at] = now_left = self._columns(self._free.amounts[at], self._free.gpus[at])
        now_open: Amounts = np.where(self._down[at, None], 0, now_left)
        self._open[at] = now_open
        self._short[at] = now_short = self._short_of(at)
        self._sum_held += np.add.reduce(was_left - now_left, axis=0)
        self._sum_open += np.add.reduce(now_open - was_open, axis=0)
        self._sum_stranded += (now_open.T @ now_short - was_open.T @ was_short).astype(np.int64)
        self._shapes_wanted.changed(at)

    def _short_of(self, at: NDArray[np.intp]) -> Amounts:
        """Return which resources of nodes are short (1, else 0), shape (nodes, resources).

        A resource is short if a node has it, but less of it is free than any job takes.
        """
        left = self._left[at]
        if len(self._names) > len(self._nodes.resources):  # one GPU must have enough, not all together
            left[:, -1] = self._free.gpus[at].max(axis=1, initial=0)
        return ((self._has[at] > 0) & (left < self._least)).astype(np.int64)

    def _count_again(self) -> None:
        """Compute the used, free and stranded amounts of all nodes.

        This is done at the start and after a restore.
        """
        width, every = len(self._names), np.arange(len(self._nodes))
        #: what is free on each node, and on those that are up, shape (nodes, resources)
        self._left = self._columns(self._free.amounts, self._free.gpus)
        self._open = np.where(self._down[:, None], 0, self._left)
        self._short = self._short_of(every)
        #: sums over all nodes: what they have, what jobs hold, what is free on nodes that are up, and what is stranded
        self._sum_has = self._has.sum(axis=0)
        self._sum_held = self._sum_has.copy()
        self._sum_open = np.zeros(width, dtype=np.int64)
        self._sum_stranded = np.zeros((width, width), dtype=np.int64)
        self._sum_held -= self._left.sum(axis=0)
        self._sum_open += self._open.sum(axis=0)
        self._sum_stranded += self._open.T @ self._short
        self._shapes_wanted = WantedShapes(self._free)
        for wanted in self._waiting:
            self._add(wanted)

    def _go_on(self, now: float) -> None:
        span = now - self._time
        if span <= 0:
            return
        self._used += self._sum_held * span
        self._unavailable += (self._sum_has - self._sum_held - self._sum_open) * span
        self._stranded += self._sum_stranded * span
        if self._waiting:
            self._idle += self._sum_open * span
            self._fragmented += ((self._shapes_wanted.fitting == 0).astype(np.int64) @ self._open) * span
        self._time = now

    @property
    def cores(self) -> float:
        """The number of cores of the machine."""
        return float(self._sum_has[self._names.index(CORES)]) / MILLI

    def summary(self) -> dict[str, ResourceFigures]:
        """Return the figures of each resource so far."""
        span = self._time - max(self._first, 0.0)
        found = {}
        for column, name in enumerate(self._names):
            base = base_of(name)
            whole = float(self._sum_has[column]) / base
            used = float(self._used[column]) / base
            found[name] = ResourceFigures(
                total=whole,
                used=used,
                utilisation=used / (whole * span) if whole and span > 0 else None,
                unavailable=float(self._unavailable[column]) / base,
                idle=float(self._idle[column]) / base,
                fragmented=float(self._fragmented[column]) / base,
                stranded={
                    other: float(self._stranded[column, place]) / base
                    for place, other in enumerate(self._names)
                    if place != column
                },
            )
        return found

    # -- snapshots -----------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the state as plain values, for a snapshot.

        It has the sums, the waiting jobs, and the nodes' free amounts.
        """
        sums = {name: getattr(self, f"_{name}").tolist() for name in _SUMS}
        waiting = [[plain(request), *rest, count] for (request, *rest), count in self._waiting.items()]
        down = np.flatnonzero(self._down).tolist()
        return {**sums, "waiting": waiting, "free": self._free.state(), "down": down, "at": [self._time, self._first]}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a saved state."""
        for name in _SUMS:
            setattr(self, f"_{name}", np.array(state[name]))
        self._waiting = Counter({(message_of(one), *rest): count for one, *rest, count in state["waiting"]})
        self._free.restore(state["free"])
        self._down[:] = False
        self._down[state["down"]] = True
        self._time, self._first = state["at"]
        self._count_again()


class TakesRecorder(Written, Observer):
    """The observer that writes ``takes.csv``.

    The file has one line for each started job and group of equal nodes. Each resource of the machine has a column
    ``node_NAME`` with the amount on each of these nodes. Cores and GPUs may have three decimals, and memory is in MiB.
    """

    _kept = ("_file",)

    def __init__(self, prefix: str, nodes: SharedNodes) -> None:
        self._names = (*nodes.resources, *((GPU,) if nodes.gpus.any() else ()))
        self._shapes = Shapes(nodes)
        columns = ",".join([*TAKES_COLUMNS, *(PER_NODE + name for name in self._names)])
        self._file = CsvFile(f"{prefix}takes.csv", columns, lines_of=self._lines)

    def begins(self, now: float, units: int) -> None:
        """Open the file and write its header."""
        self.open()

    def started(self, now: float, job: Job) -> None:
        """Write the lines of a job that has started."""
        assert job.resources is not None
        assert job.taken is not None
        self._file.write((now, job.id, job.resources, job.taken.takes))

    def ends(self, now: float, reason: EndReason, message: str) -> None:
        """Write all remaining rows and close the file."""
        self.close()

    def _lines(self, rows: list[tuple[float, str, Request, tuple[Take, ...]]]) -> list[str]:
        lines = []
        for now, job_id, request, takes in rows:
            nodes, amounts, gpus = self._shapes.of(request).rows(takes)
            if len(self._names) > amounts.shape[1]:
                amounts = np.concatenate([amounts, gpus.sum(axis=1, keepdims=True)], axis=1)
            alike: dict[tuple[int, ...], list[int]] = {}
            for node, row in zip(nodes.tolist(), amounts.tolist(), strict=True):
                alike.setdefault(tuple(row), []).append(node)
            head = f"{now!r},{csv_text(job_id)}"
            for row, found in alike.items():
                told = ",".join(map(_number, self._names, row))
                lines.append(f"{head},{NodeSet.of(found)},{told}\n")
        return lines


def _number(name: str, amount: int) -> str:
    return amount_text(name, amount) if name in (CORES, GPU) else str(amount)
