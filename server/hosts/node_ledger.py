"""A ledger of nodes that jobs share: which job holds how much of which resource."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.resources.free_resources import FreeResources
from pipistrelle.platforms.resources.shape import Shape, Shapes, Take
from pipistrelle.platforms.resources.shared_nodes import SharedNodes
from pipistrelle.platforms.resources.takes import Taken, parsed_takes, plain_takes, takes_told, told_takes
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.events import JobDescription
from pipistrelle.protocol.resources.amounts import CORES, MEMORY
from pipistrelle.protocol.resources.nodes import NodeTake
from pipistrelle.protocol.resources.request import Request
from pipistrelle.protocol.units.indices import numbers
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.protocol.units.text import NodeSetError
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.errors import Illegal
from pipistrelle.server.hosts.shared_ledger import SharedLedger


class NodeLedger(SharedLedger):
    """The record of what jobs hold on nodes with cores, memory and GPUs.

    Each job takes what its request says. A unit is a node. ``idle`` counts unblocked nodes without jobs.
    """

    __slots__ = ("_nodes", "_shapes", "_takes", "free")

    shares_nodes = True

    def __init__(self, nodes: SharedNodes) -> None:
        super().__init__(len(nodes))
        self._nodes = nodes
        self.free = FreeResources(nodes)
        self._shapes = Shapes(nodes)
        #: {id of a running job: what it takes of each of its nodes}
        self._takes: dict[str, tuple[Take, ...]] = {}

    def take(self, job: Job, text: str, takes: Sequence[NodeTake] = ()) -> NodeSet:
        """Give a job its resources on the nodes written in ``text``.

        Return these nodes.

        Args:
            takes: the job's tasks and GPUs on each node; empty: the same number of tasks on each node, and the GPUs
                with the least free capacity that suffices.

        Raises:
            Illegal: the text is not a set of nodes, a node does not exist or is blocked, the takes do not satisfy the
                request, or too little is free. The ledger is then unchanged.
        """
        try:
            alloc = NodeSet.parse(text)
        except NodeSetError as error:
            raise Illegal("bad_allocation", f"'alloc' of {job.id} is no set of nodes: {error}") from None
        if not alloc:
            raise Illegal("wrong_size", f"{job.id} needs nodes, 'alloc' has none")
        if alloc.last >= self.units:
            raise Illegal(
                "unknown_unit", f"'alloc' of {job.id} names node {alloc.last}; the machine has 0-{self.units - 1}"
            )
        if blocked := alloc & self.blocked:
            raise Illegal("busy_unit", f"'alloc' of {job.id} names nodes that are down or unavailable: {blocked}")
        if len(alloc) < job.size and not takes:
            raise Illegal("wrong_size", f"{job.id} needs {job.size} nodes, 'alloc' has {len(alloc)}: '{text}'")
        shape = self._shape(job)
        chosen = self._told(job, alloc, takes, shape) if takes else self._divided(job, alloc, shape)
        fault = shape.fault(chosen)
        if fault is not None:
            raise Illegal("wrong_resources", f"{job.id} would take {fault}")
        self._take_all(job, shape, chosen)
        self._takes[job.id] = chosen
        job.taken = self._taken(shape, chosen)
        self._occupy(alloc)
        self.changed = True
        return alloc

    def give_back(self, job: Job) -> None:
        """Free the resources that an ended job held."""
        takes = self._takes.pop(job.id)
        shape = self._shape(job)
        self.free.give_back_rows(*shape.rows(takes))
        self.free.return_licenses(shape.request.licenses)
        self.changed = True
        super().give_back(job)

    def told_takes(self, job: Job) -> tuple[NodeTake, ...]:
        """Return a running job's tasks and GPUs per node, in the form of EXECUTE_JOB."""
        return told_takes(self._takes[job.id])

    def resources_of(self, job: JobDescription, allowed: NodeSet | None) -> Request:
        """Return the request of a registered job.

        A job without a request takes ``res`` whole nodes.

        Raises:
            Illegal: the request is invalid, needs more than ``res`` nodes, or never fits.
        """
        request = job.request or Request(nodes=job.res, most_nodes=job.res, exclusive=True)
        if request.least_nodes > job.res:
            raise Illegal(
                "wrong_size", f"'res' of {job.id} is {job.res}, but its request needs {request.least_nodes} nodes"
            )
        able = np.full(self.units, allowed is None)
        if allowed is not None:
            able[numbers(allowed)] = True
        try:
            request.check()
            refusal = Shape(request, self._nodes).refusal(able)
        except PipistrelleError as error:
            raise Illegal("wrong_resources", f"{job.id}: {error}") from None
        if refusal is not None:
            raise Illegal("too_large", f"{job.id} fits on no nodes: {refusal}")
        return request

    def _taken(self, shape: Shape, takes: tuple[Take, ...]) -> Taken:
        """Return the cores, memory and GPUs that a job takes on all its nodes together."""
        _, amounts, gpus = shape.rows(takes)
        sums = amounts.sum(axis=0).tolist()
        cores, memory = (
            0 if column is None else sums[column] for column in (self._nodes.column(CORES), self._nodes.column(MEMORY))
        )
        return Taken(cores, memory, int(gpus.sum()), takes)

    def state(self) -> dict[str, Any]:
        """Return the state of the ledger as plain values, for a snapshot."""
        takes = {job: plain_takes(some) for job, some in self._takes.items()}
        return {**super().state(), "takes": takes, "free": self.free.state(), "changed": self.changed}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the ledger from a saved state."""
        super().restore(state)
        self.free.restore(state["free"])
        self.changed = state["changed"]
        self._takes = {job: parsed_takes(some) for job, some in state["takes"].items()}

    def check_invariants(self, running: Iterable[Job]) -> None:
        """Assert that what running jobs hold plus what is free equals what the nodes have."""
        self.free.check()
        jobs = list(running)
        assert {job.id for job in jobs} == self._takes.keys()
        whole = FreeResources(self._nodes)
        for job in jobs:
            shape = self._shape(job)
            assert NodeSet.of([take.node for take in self._takes[job.id]]) == job.alloc
            for take in self._takes[job.id]:
                whole.take(take.node, shape.on_node(take.node, take.tasks, len(take.gpus)), take.gpus)
            whole.take_licenses(shape.request.licenses)
        assert (whole.amounts == self.free.amounts).all()
        assert (whole.gpus == self.free.gpus).all()
        assert whole.licenses == self.free.licenses
        free = sum(1 for node in range(self.units) if not self._jobs[node] and node not in self.blocked)
        assert free == self.idle, f"{free} nodes are idle, {self.idle} are counted"

    def _shape(self, job: Job) -> Shape:
        assert job.resources is not None, f"{job.id} has no request, but this machine's nodes have resources"
        return self._shapes.of(job.resources)

    def _told(self, job: Job, alloc: NodeSet, takes: Sequence[NodeTake], shape: Shape) -> tuple[Take, ...]:
        try:
            found = takes_told(takes)
        except NodeSetError as error:
            raise Illegal("bad_allocation", f"'takes' of {job.id} cannot be read: {error}") from None
        if [take.node for take in found] != list(alloc):
            raise Illegal("wrong_resources", f"'takes' of {job.id} has other nodes than 'alloc', {alloc}")
        if shape.request.exclusive:
            return tuple(take._replace(gpus=self._all_gpus(take.node)) for take in found)
        return found

    def _divided(self, job: Job, alloc: NodeSet, shape: Shape) -> tuple[Take, ...]:
        """Divide a job's tasks and GPUs among the nodes ``alloc``.

        This is for a scheduler that named only the nodes.
        """
        nodes = list(alloc)
        if shape.request.exclusive:
            return self._whole_nodes(job, nodes, shape)
        tasks, rest = (shape.exact, 0) if shape.tasks is None else divmod(shape.tasks, len(nodes))
        if rest or shape.request.gpus % len(nodes):
            raise Illegal(
                "wrong_resources",
                f"{job.id} cannot have equal parts of its tasks and GPUs on {len(nodes)} nodes: tell them in 'takes'",
            )
        count = shape.gpus_on_node(tasks, len(nodes))
        found = []
        for node in nodes:
            gpus = shape.numbers(self.free.gpus[node], count)
            if len(gpus) < count:
                name = self._nodes.name(node)
                raise Illegal(
                    "wrong_resources",
                    f"node {name} has too few free GPUs for {job.id}: it asks for {count}, {len(gpus)} are free",
                )
            found.append(Take(node, tasks, gpus))
        return tuple(found)

    def _whole_nodes(self, job: Job, nodes: list[int], shape: Shape) -> tuple[Take, ...]:
        """Divide an exclusive job's tasks among whole nodes.

        One node after the other is filled.
        """
        left = len(nodes) * shape.exact if shape.tasks is None else shape.tasks
        most = shape.most_tasks(self._nodes.amounts[:], self._nodes.gpus)
        found = []
        for place, node in enumerate(nodes):
            able = shape.exact or int(most[node])
            count = min(able, left - (len(nodes) - place - 1))
            left -= count
            found.append(Take(node, count, self._all_gpus(node)))
        if left:
            raise Illegal("wrong_resources", f"{left} tasks of {job.id} do not fit on its nodes, {NodeSet.of(nodes)}")
        return tuple(found)

    def _all_gpus(self, node: int) -> tuple[int, ...]:
        return tuple(range(int((self._nodes.gpus[node] > 0).sum())))

    def _take_at_once(self, shape: Shape, takes: Sequence[Take]) -> bool:
        """Take a job's resources on all its nodes with one array operation.

        This is faster than node by node. Return False, and take nothing, if a GPU does not exist, too little is free,
        or the job is exclusive and a node has other jobs.
        """
        if any(gpus and gpus[-1] >= self._nodes.gpus.shape[1] for _, _, gpus in takes):
            return False
        nodes, amounts, gpus = shape.rows(takes)
        if shape.request.exclusive and self._jobs[nodes].any():
            return False
        return self.free.take_rows(nodes, amounts, gpus)

    def _take_all(self, job: Job, shape: Shape, takes: Sequence[Take]) -> None:
        """Take a job's licences, and its resources on all its nodes.

        Raise `Illegal`, and take nothing, if any of them is not free.
        """
        done: list[Take] = []
        try:
            self.free.take_licenses(shape.request.licenses)
        except PlatformError as error:
            raise Illegal("wrong_resources", f"{job.id}: {error}") from None
        if self._take_at_once(shape, takes):
            return
        try:
            for take in takes:
                if shape.request.exclusive and self._jobs[take.node]:
                    name = self._nodes.name(take.node)
                    raise PlatformError(
                        f"node {name} is not idle", expected="a node without jobs, for an exclusive job"
                    )
                self.free.take(take.node, shape.on_node(take.node, take.tasks, len(take.gpus)), take.gpus)
                done.append(take)
        except PlatformError as error:
            for take in done:
                self.free.give_back(take.node, shape.on_node(take.node, take.tasks, len(take.gpus)), take.gpus)
            self.free.return_licenses(shape.request.licenses)
            raise Illegal("wrong_resources", f"{job.id}: {error}") from None
