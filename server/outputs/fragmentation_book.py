"""GPU fragmentation: GPUs that are idle on nodes where no queued job fits."""

from collections import Counter
from math import fsum
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.requests.node_counts import Ints
from pipistrelle.platforms.requests.requests import ANYTHING, NodeRequest, RequestBook
from pipistrelle.protocol.base.state import Kept, register
from pipistrelle.protocol.fields import EndReason
from pipistrelle.protocol.units.indices import numbers
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer, Reasons

_GPU: Final = "gpu"


class Fragmentation(Struct, frozen=True, kw_only=True):
    """Idle and stranded GPUs while jobs wait.

    An idle GPU is stranded if no waiting job fits on its node. ``gpus`` is the machine's number of GPUs, and
    ``waiting_time`` (s) the time during which any job waits. ``idle`` and ``stranded`` are GPU-seconds, and ``pools``
    has ``stranded`` by pool. ``share`` is ``stranded`` / ``idle``, None if no GPU was idle. ``mean`` and ``most`` are
    the mean and largest number of stranded GPUs while jobs wait; None and 0 if no job ever waits.
    """

    gpus: int
    waiting_time: float
    idle: float
    stranded: float
    share: float | None
    mean: float | None
    most: int
    pools: dict[str, float]


class _Shape(Struct, frozen=True, order=True):
    """What a job needs of each of its nodes.

    It needs ``each`` units per node, or all units of the node if ``alone``. The node must satisfy ``constraint`` and be
    in a pool of the job class ``queue``.
    """

    each: int
    alone: bool
    constraint: str
    queue: str


register(_Shape, lambda one: [one.each, one.alone, one.constraint, one.queue], lambda state: _Shape(*state))


class FragmentationBook(Kept, Observer):
    """The observer that sums idle and stranded GPU time while jobs wait.

    A job fits on a node if as many units are free there as it needs per node. That is one unit unless the job says
    otherwise, and all units if it wants whole nodes. The node must also satisfy the job's constraint
    and be in a pool of its class. Down nodes do not count.
    """

    _kept = ("_free", "_down", "_shapes", "_time", "_waiting_time", "_idle", "_stranded", "_most")

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._requests = RequestBook(platform.info.pools, platform.info.groups)
        counts = self._requests.counts
        pools = platform.pools
        #: {class: its pools}, for classes that may use only some pools
        self._granted = {one.name: one.pools for one in platform.classes if one.pools}
        #: pool of each node, and whether the node's units are GPUs, shape (nodes,)
        self._pool: Ints = np.repeat(np.arange(len(pools), dtype=np.intp), [pool.nodes for pool in pools])
        self._has_gpus: NDArray[np.bool_] = np.array([pool.unit == _GPU for pool in pools], dtype=np.bool_)[self._pool]
        #: units of each node that no job holds
        self._free: Ints = counts.each.copy()
        self._down: NDArray[np.bool_] = np.zeros(len(counts.each), dtype=np.bool_)
        #: {what jobs need of a node: number of waiting jobs}
        self._shapes: Counter[_Shape] = Counter()
        self._nodes_for: dict[tuple[str, str], NDArray[np.bool_]] = {}
        self._time = 0.0
        self._waiting_time = self._idle = 0.0
        self._stranded = [0.0] * len(pools)
        self._most = 0

    @staticmethod
    def suits(platform: Platform) -> bool:
        """Return whether some of the machine's units are GPUs."""
        return any(pool.unit == _GPU for pool in platform.pools)

    def submitted(self, now: float, job: Job) -> None:
        """Count a job as waiting."""
        self._go_on(now)
        self._shapes[self._shape(job)] += 1

    def started(self, now: float, job: Job) -> None:
        """Stop counting a started job as waiting, and mark its units as held."""
        self._go_on(now)
        self._leaves(job)
        self._free -= self._requests.counts.of(job.alloc)

    def ended(self, now: float, job: Job) -> None:
        """Free the units of an ended job, or stop counting a rejected job as waiting."""
        self._go_on(now)
        if job.alloc:
            self._free += self._requests.counts.of(job.alloc)
        else:
            self._leaves(job)

    def went_down(self, now: float, nodes: NodeSet, units: NodeSet, planned: bool, why: Reasons) -> None:
        """Mark nodes as down."""
        self._go_on(now)
        self._down[list(nodes)] = True

    def came_up(self, now: float, nodes: NodeSet, units: NodeSet) -> None:
        """Mark nodes as up."""
        self._go_on(now)
        self._down[list(nodes)] = False

    def ends(self, now: float, reason: EndReason, message: str) -> None:
        """Count the time up to the end of the run."""
        self._go_on(now)

    def summary(self) -> Fragmentation:
        """Return the GPU fragmentation so far."""
        stranded = fsum(self._stranded)
        gpus = [pool for pool in self._platform.pools if pool.unit == _GPU]
        by_pool = zip(self._platform.pools, self._stranded, strict=True)
        return Fragmentation(
            gpus=sum(pool.units for pool in gpus),
            waiting_time=self._waiting_time,
            idle=self._idle,
            stranded=stranded,
            share=stranded / self._idle if self._idle else None,
            mean=stranded / self._waiting_time if self._waiting_time else None,
            most=self._most,
            pools={pool.name: seconds for pool, seconds in by_pool if pool.unit == _GPU},
        )

    def _leaves(self, job: Job) -> None:
        shape = self._shape(job)
        self._shapes[shape] -= 1
        if not self._shapes[shape]:
            del self._shapes[shape]

    def _go_on(self, now: float) -> None:
        span = now - self._time
        if span > 0:
            if self._shapes:
                idle, stranded = self._look()
                self._waiting_time += span
                self._idle += idle * span
                for pool, gpus in enumerate(stranded):
                    self._stranded[pool] += gpus * span
                self._most = max(self._most, sum(stranded))
            self._time = now

    def _look(self) -> tuple[int, list[int]]:
        """Return the number of idle GPUs, and the number of stranded GPUs in each pool."""
        idle = np.where(self._has_gpus & ~self._down, self._free, 0)
        fits: NDArray[np.bool_] = np.zeros(len(idle), dtype=np.bool_)
        for shape in self._shapes:
            enough = idle == self._requests.counts.each if shape.alone else idle >= shape.each
            fits |= enough & self._nodes(shape)
        left = np.where(fits, 0, idle)
        stranded = np.bincount(self._pool, weights=left, minlength=len(self._stranded))
        return int(idle.sum()), [int(gpus) for gpus in stranded.tolist()]

    def _shape(self, job: Job) -> _Shape:
        request = job.request or ANYTHING
        each = min(request.units_per_node or 1, job.size)
        queue = job.queue or ""
        return _Shape(each, request.whole_nodes, request.constraint or "", queue if queue in self._granted else "")

    def _nodes(self, shape: _Shape) -> NDArray[np.bool_]:
        """Return which nodes satisfy a job's constraint and class, shape (nodes,)."""
        key = (shape.constraint, shape.queue)
        found = self._nodes_for.get(key)
        if found is None:
            found = self._nodes_for[key] = np.zeros(len(self._pool), dtype=np.bool_)
            for kind in self._requests.pools(NodeRequest(shape.constraint or None)):
                if kind.name in self._granted.get(shape.queue, (kind.name,)):
                    found[numbers(NodeSet.parse(kind.nodes))] = True
        return found
