"""The policies' view of nodes that jobs share.

It has the free resources, and the amounts that each job holds.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.resources.free_resources import FreeResources
from pipistrelle.platforms.resources.shape import Shape, Shapes, Takes
from pipistrelle.platforms.resources.shared_nodes import Amounts, SharedNodes
from pipistrelle.platforms.resources.takes import parsed_takes, plain_takes, takes_told, told_takes
from pipistrelle.protocol.resources.nodes import NodeTake
from pipistrelle.protocol.resources.request import Request
from pipistrelle.protocol.units.indices import numbers
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.policy.jobs import SchedulerJob

Bools = NDArray[np.bool_]
#: a job without a request on such a machine takes one core
_ONE_CORE = Request(tasks=1)


class SharedView:
    """Nodes whose cores, memory and GPUs are shared by jobs.

    The view knows what is free, and the amounts that each running job holds.

    Attributes:
        nodes: what the nodes have.
        free: what no job holds on each node, even on nodes out of service.
    """

    def __init__(self, nodes: SharedNodes) -> None:
        self.nodes = nodes
        self.free = FreeResources(nodes)
        self._shapes = Shapes(nodes)
        #: {job's number: shape}
        self._of_job: dict[int, Shape] = {}
        #: {id of a running job: its takes, and their rows}
        self._held: dict[str, tuple[Takes, Amounts, Amounts]] = {}
        #: {number of a running job: its rows}
        self._rows_of: dict[int, tuple[Amounts, Amounts]] = {}
        #: the last result of `pick` or of a placement, which satisfies its job's request
        self._proposed: Takes | None = None
        #: the nodes by weight and number: the order of `pick`
        self.by_weight: Amounts = np.lexsort((np.arange(len(nodes)), nodes.weights)).astype(np.int64)
        #: each node's position in that order
        self.rank: Amounts = np.argsort(self.by_weight)
        #: whether the order by weight is the order by number
        self.in_order = bool((np.diff(self.by_weight) == 1).all())
        self._every: Bools = np.ones(len(nodes), dtype=np.bool_)
        self._every.flags.writeable = False
        #: the last closed nodes and the result of `open` for them
        self._last_open: tuple[NodeSet, Bools] = NodeSet.EMPTY, self._every

    def shape(self, job: SchedulerJob) -> Shape:
        """Return a job's request, converted to amounts per resource of this machine.

        Raises:
            PlatformError: no node has a resource or GPU model that the request names.
        """
        known = self._of_job.get(job.number)
        if known is not None:
            return known
        request = None if job.description is None else job.description.request
        request = request or (_ONE_CORE if job.size == 1 else Request(nodes=job.size, most_nodes=job.size))
        shape = self._shapes.of(request)
        self._of_job[job.number] = shape
        return shape

    def refusal(self, job: SchedulerJob, closed: NodeSet) -> str | None:
        """Return why a job can never fit on the nodes that it may use; None if it can.

        ``closed`` has the nodes that it may not use.
        """
        try:
            return self.shape(job).refusal(self.open(closed))
        except PlatformError as error:
            return f"{error.what}: {error.found}"

    def open(self, closed: NodeSet) -> Bools:
        """Return for each node whether it is not in ``closed``, shape (nodes,).

        The caller must not write to the array.
        """
        if not closed:
            return self._every
        known, found = self._last_open
        if known != closed:
            found = self._every.copy()
            found[numbers(closed)] = False
            self._last_open = closed, found
        return found

    def may_fit(self, jobs: Sequence[SchedulerJob]) -> Bools:
        """Return for each job whether it might fit now; False means that it cannot start.

        A job might fit if, for each single resource, some node has enough free for one task. There must be at least one
        job.
        """
        need = np.array([self.shape(job).least for job in jobs], dtype=np.int64)
        fits: Bools = (need <= self.free.amounts.max(axis=0)).all(axis=1)
        return fits

    def pick(self, job: SchedulerJob, allowed: Bools, order: Sequence[int] | Amounts | None = None) -> Takes | None:
        """Return the tasks and GPUs per node with which a job could start now.

        Return None if it does not fit.

        Args:
            allowed: the nodes that the job may use, shape (nodes,).
            order: the nodes, the preferred first; None: by weight and number.
        """
        shape = self.shape(job)
        if self.free.missing_license(shape.request.licenses) is not None:
            return None
        most = np.where(allowed, shape.most_tasks(self.free.amounts, self.free.gpus), 0)
        order = self.by_weight if order is None else order
        return self.propose(shape.choose(order, most, self.free.amounts, self.free.gpus))

    def propose(self, takes: Takes | None) -> Takes | None:
        """Record that ``takes`` satisfies a job's request; `take` then need not check it.

        ``takes`` has the job's tasks and GPUs per node, or is None if the job does not fit; it is returned unchanged.
        """
        self._proposed = takes
        return takes

    def take(self, job: SchedulerJob, takes: Takes) -> None:
        """Record that a job now holds the tasks and GPUs per node in ``takes``.

        Raises:
            ValueError: too little is free, or ``takes`` does not satisfy the job's request.
        """
        shape = self.shape(job)
        if takes is not self._proposed and (fault := shape.fault(takes)) is not None:
            raise ValueError(f"{job.id} would take {fault}")
        nodes, taken = self.rows(job, takes)
        if self.free.missing_license(shape.request.licenses) is not None:
            raise ValueError(f"{job.id} does not fit now: too few licences are free")
        if not self.free.take_rows(nodes, *self.split(taken)):
            raise ValueError(
                f"{job.id} does not fit now: more is taken than is free on nodes {NodeSet.of(nodes.tolist())}"
            )
        self.free.take_licenses(shape.request.licenses)
        self._held[job.id] = takes, nodes, taken
        self._rows_of[job.number] = nodes, taken

    def give_back(self, job: SchedulerJob) -> None:
        """Free the amounts that an ended job held."""
        _, nodes, taken = self._held.pop(job.id)
        self.free.give_back_rows(nodes, *self.split(taken))
        self.free.return_licenses(self.shape(job).request.licenses)
        del self._of_job[job.number], self._rows_of[job.number]

    def takes_of(self, job: SchedulerJob) -> Takes:
        """Return the tasks and GPUs that a running job has on each of its nodes."""
        return self._held[job.id][0]

    def held_by(self, job: SchedulerJob) -> tuple[Amounts, Amounts]:
        """Return a running job's nodes, and the amounts that it holds on each; see `rows`."""
        _, nodes, taken = self._held[job.id]
        return nodes, taken

    def rows_of(self, number: int) -> tuple[Amounts, Amounts]:
        """Return the result of `held_by` for a running job, given its number."""
        return self._rows_of[number]

    def rows(self, job: SchedulerJob, takes: Takes) -> tuple[Amounts, Amounts]:
        """Return the nodes of a job, and the amounts that it holds on each.

        The columns of the amounts are the resources and then the GPUs by number, as in `table`.

        Args:
            takes: one entry for each node of the job.

        Returns:
            (nodes, amounts), of the shapes (entries,) and (entries, columns).
        """
        nodes, amounts, gpus = self.shape(job).rows(takes)
        return nodes, np.concatenate([amounts, gpus], axis=1)

    def table(self) -> Amounts:
        """Return the free amounts on each node, shape (nodes, resources + GPUs)."""
        return np.hstack([self.free.amounts, self.free.gpus])

    def split(self, table: Amounts) -> tuple[Amounts, Amounts]:
        """Split a table of amounts into the columns of resources and the columns of GPUs.

        The columns are those of the method `table`.
        """
        width = len(self.nodes.resources)
        return table[:, :width], table[:, width:]

    def told(self, takes: Takes) -> tuple[NodeSet, tuple[NodeTake, ...]]:
        """Convert ``takes`` (a job's tasks and GPUs per node) to the protocol's form.

        Returns:
            (nodes, entries), with one entry for each group of nodes on which the amounts are equal.
        """
        return NodeSet.of([take.node for take in takes]), told_takes(takes)

    def adopt(self, job: SchedulerJob, told: Iterable[NodeTake]) -> None:
        """Record the amounts that a running job holds on its nodes.

        ``told`` has these amounts as another scheduler or a saved state gives them. Raise ValueError if the job cannot
        hold them.
        """
        self.take(job, takes_told(told))

    def check(self, running: Iterable[SchedulerJob]) -> None:
        """Check the free resources; raise AssertionError if they are wrong.

        What the running jobs hold plus what is free must equal what the nodes have.
        """
        self.free.check()
        whole = FreeResources(self.nodes)
        jobs = list(running)
        assert {job.id for job in jobs} == self._held.keys()
        for job in jobs:
            takes = self.takes_of(job)
            assert self.shape(job).fault(takes) is None
            assert NodeSet.of([take.node for take in takes]) == job.alloc
            nodes, taken = self.rows(job, takes)
            assert whole.take_rows(nodes, *self.split(taken))
            whole.take_licenses(self.shape(job).request.licenses)
        assert (whole.amounts == self.free.amounts).all()
        assert (whole.gpus == self.free.gpus).all()
        assert (whole.holders == self.free.holders).all()
        assert whole.licenses == self.free.licenses

    def state(self) -> dict[str, Any]:
        """Return what each running job holds, as plain values."""
        return {job: plain_takes(held[0]) for job, held in self._held.items()}

    def restore(self, state: Mapping[str, Any], jobs: Mapping[str, SchedulerJob]) -> None:
        """Restore the state that the method `state` returned.

        ``jobs`` has the running jobs by id.
        """
        for job_id, some in state.items():
            self.take(jobs[job_id], parsed_takes(some))
