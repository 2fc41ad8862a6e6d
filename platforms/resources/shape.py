"""Match requests with shared nodes.

A `Shape` tells which nodes fit a request, divides tasks and GPUs among nodes, and says why a request never fits.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.resources.node_request import OneNodeRequest
from pipistrelle.platforms.resources.selection import places_for
from pipistrelle.platforms.resources.shared_nodes import Amounts, SharedNodes
from pipistrelle.protocol.base.errors import did_you_mean, quoted
from pipistrelle.protocol.resources.amounts import CORES, MEMORY, MILLI, MOST, amount_text
from pipistrelle.protocol.resources.request import Request

Bools = NDArray[np.bool_]
#: more tasks than any job has
_ANY: Final = MOST
#: number of requests that `Shapes` recognises by identity
_MOST_SEEN: Final = 4096


class Take(NamedTuple):
    """What a job takes on one node.

    This is the number of its tasks there, and the numbers of its GPUs there.
    """

    node: int
    tasks: int
    gpus: tuple[int, ...] = ()


Takes = tuple[Take, ...]


class Shape:
    """A request, expressed in the resource columns of one machine.

    Attributes:
        request: the request.
        low, high: the least and the greatest number of nodes.
        tasks: the number of tasks; None: ``exact`` tasks on each node.
        exact: the number of tasks on each node if ``tasks`` is None.

    Raises:
        PlatformError: no node has a resource or a GPU model of the request.
    """

    def __init__(self, request: Request, nodes: SharedNodes) -> None:
        self.request = request
        self._nodes = nodes
        self.low = request.least_nodes
        self.tasks = request.tasks
        self.exact = 0 if request.tasks is not None else request.tasks_per_node or 1
        most = request.most_nodes if request.most_nodes is not None else request.nodes
        if request.tasks is not None:
            most = min(most or request.tasks, request.tasks)
        self.high = max(self.low, most or 1)
        self._cap = request.tasks_per_node or (_ANY if request.tasks is None else request.tasks)
        width = len(nodes.resources)
        #: shape (resources,): what each task, each GPU and each node of the job takes
        self._per_task: Amounts = np.zeros(width, dtype=np.int64)
        self._per_gpu: Amounts = np.zeros(width, dtype=np.int64)
        self._per_node: Amounts = np.zeros(width, dtype=np.int64)
        self._add(self._per_task, CORES, request.cores_per_task)
        if request.memory_per_core is not None:
            each = -(-request.memory_per_core * max(request.cores_per_task, 1) // MILLI)
            self._add(self._per_task, MEMORY, each)
        if request.memory_per_node is not None:
            self._add(self._per_node, MEMORY, request.memory_per_node)
        if request.memory_per_gpu is not None:
            self._add(self._per_gpu, MEMORY, request.memory_per_gpu)
        for name, amount in request.others.items():
            self._add(self._per_node, name, amount)
        if request.gpus_per_task:
            self._per_task += request.gpus_per_task * self._per_gpu
        self._per_node += request.gpus_per_node * self._per_gpu
        self._models = self._accepted()

    def _add(self, to: Amounts, resource: str, amount: int) -> None:
        column = self._nodes.column(resource)
        if column is not None:
            to[column] += amount
        elif amount and resource != MEMORY:  # a machine that does not count memory has enough
            raise PlatformError(
                f"no node has {quoted(resource)}",
                expected=f"one of {', '.join(self._nodes.resources)}",
                found=str(self.request),
                hint=did_you_mean(resource, list(self._nodes.resources)),
            )

    def _accepted(self) -> tuple[int, ...] | None:
        wanted, known = self.request.gpu_models, self._nodes.models
        if not wanted:
            return None
        found = tuple(index for index, model in enumerate(known) if model in wanted)
        if not found:
            raise PlatformError(
                f"no node has GPUs of the model {' or '.join(wanted)}",
                expected=f"one of {', '.join(known)}" if known else "no GPU model",
                found=str(self.request),
            )
        return found

    @property
    def wants_gpus(self) -> bool:
        """Whether the job takes GPUs."""
        request = self.request
        return bool(request.gpus or request.gpus_per_node or request.gpus_per_task)

    @property
    def share(self) -> int:
        """The share of each of its GPUs that the job takes, in thousandths."""
        return MILLI if self.request.exclusive else self.request.gpu_share

    @cached_property
    def fewest(self) -> int:
        """The least number of tasks that any node of the job can get."""
        if self.tasks is None:
            return max(1, self.exact)
        return max(1, self.tasks - self._cap * (self.high - 1))

    @cached_property
    def least(self) -> Amounts:
        """The least amounts that the job takes on one node, shape (resources,).

        They are 0 if the job is exclusive, because it then takes whole nodes, whatever these have.
        """
        if self.request.exclusive:
            return np.zeros(len(self._nodes.resources), dtype=np.int64)
        return self._per_node + self.fewest * self._per_task + self._gpus_at_least * self._per_gpu

    @property
    def parts(self) -> tuple[Amounts, Amounts, int]:
        """What the job takes on a node, as three values.

        They are the amounts per node, the additional amounts per task, and the largest number of tasks per node. The
        amounts have the shape (resources,).
        """
        return self._per_node + self._gpus_at_least * self._per_gpu, self._per_task, self._cap

    @cached_property
    def total(self) -> Amounts:
        """The least amounts that the job takes on all its nodes together.

        They have shape (resources + 1,). GPUs come last, in thousandths. For an exclusive job all are 0, as in `least`.
        """
        request, found = self.request, np.zeros(len(self._nodes.resources) + 1, dtype=np.int64)
        if request.exclusive:
            return found
        tasks = self.low * self.exact if self.tasks is None else self.tasks
        found[:-1] = self.low * self._per_node + tasks * self._per_task + request.gpus * self._per_gpu
        gpus = request.gpus or request.gpus_per_node * self.low + request.gpus_per_task * tasks
        found[-1] = gpus * self.share
        return found

    @cached_property
    def single(self) -> OneNodeRequest | None:
        """What the job takes on its node, if it has only one.

        None if it may have more nodes, or is exclusive.
        """
        if self.high > 1 or self.request.exclusive:
            return None
        tasks = self.exact if self.tasks is None else self.tasks
        return self.on_node(0, tasks, self.gpus_on_node(tasks, 1)) if tasks <= self._cap else None

    @cached_property
    def least_gpus(self) -> int:
        """The least number of GPUs that the job takes on one node.

        It is 0 if the job is exclusive, as in `least`.
        """
        request = self.request
        if request.exclusive:
            return 0
        return max(request.gpus_per_node, request.gpus_per_task * self.fewest, self._gpus_at_least)

    @cached_property
    def able(self) -> Bools:
        """Whether each node has GPUs of an accepted model, shape (nodes,)."""
        if self._models is None:
            return np.ones(len(self._nodes), dtype=np.bool_)
        return np.isin(self._nodes.model_of, self._models)

    def on_node(self, node: int, tasks: int, gpus: int) -> OneNodeRequest:
        """Return the resources that the job takes on a node.

        The job has ``tasks`` tasks and ``gpus`` GPUs on this node.
        """
        if self.request.exclusive:
            has = self._nodes.gpus[node]
            return OneNodeRequest(tuple(self._nodes.amounts[node].tolist()), int((has > 0).sum()), MILLI, None)
        amounts = self._per_node + tasks * self._per_task
        if self.request.gpus:
            amounts = amounts + gpus * self._per_gpu
        return OneNodeRequest(tuple(amounts.tolist()), gpus, self.share, self._models)

    def amounts_on(self, nodes: Amounts, takes: Sequence[Take]) -> Amounts:
        """Return the amount of each resource that a job holds on each of its nodes.

        The result has shape (nodes, resources).

        Args:
            nodes: the node numbers.
            takes: the tasks and GPUs that the job has on each of these nodes, in the same order.
        """
        if self.request.exclusive:
            return self._nodes.amounts[nodes]
        if len(takes) == 1:
            amounts: Amounts = (self._per_node + takes[0].tasks * self._per_task)[None]
        else:
            tasks = np.array([take.tasks for take in takes], dtype=np.int64)
            amounts = self._per_node + tasks[:, None] * self._per_task
        if self.request.gpus and self._per_gpu.any():
            held = np.array([len(take.gpus) for take in takes], dtype=np.int64)
            amounts = amounts + held[:, None] * self._per_gpu
        return amounts

    def rows(self, takes: Sequence[Take]) -> tuple[Amounts, Amounts, Amounts]:
        """Return what a job holds on each of its nodes, as arrays.

        Args:
            takes: the tasks and GPUs that the job has on each node.

        Returns:
            The node numbers, shape (takes,); the amounts of resources, shape (takes, resources); and the thousandths of
            each GPU, shape (takes, GPUs).
        """
        nodes = np.array([take.node for take in takes], dtype=np.int64)
        gpus = np.zeros((len(takes), self._nodes.gpus.shape[1]), dtype=np.int64)
        if self.wants_gpus or self.request.exclusive:
            for row, take in enumerate(takes):
                gpus[row, list(take.gpus)] = self.share
        return nodes, self.amounts_on(nodes, takes), gpus

    def fitting(self, request: OneNodeRequest, allowed: Bools, amounts: Amounts, gpus: Amounts) -> Bools:
        """Return which ``allowed`` nodes have enough free resources for a request.

        The result has shape (nodes,).

        Args:
            request: the result of `single`.
            amounts, gpus: what is free, as in `FreeResources`.
        """
        found = allowed
        for column, asked in enumerate(request.amounts):
            if asked:
                found = found & (amounts[:, column] >= asked)
        if request.gpus:
            enough = gpus >= request.share
            found = found & (enough.any(axis=1) if request.gpus == 1 else enough.sum(axis=1) >= request.gpus)
            if self._models is not None:
                found &= self.able
        return found

    def on_one(self, node: int, gpus: Amounts) -> tuple[Take, ...]:
        """Return what a job that has only one node (see `single`) takes on this node.

        ``gpus`` are the free thousandths of each GPU of the node, shape (GPUs,).
        """
        assert self.single is not None
        tasks = self.exact if self.tasks is None else self.tasks
        return (Take(node, tasks, self.numbers(gpus, self.single.gpus)),)

    def most_tasks(self, amounts: Amounts, gpus: Amounts, among: Amounts | None = None) -> Amounts:
        """Return how many of the job's tasks fit on each node, shape (nodes,).

        Args:
            amounts, gpus: what is free, as in `FreeResources`.
            among: the numbers of the nodes, if ``amounts`` and ``gpus`` have rows for only some nodes; None: all nodes.
        """
        request = self.request
        every = slice(None) if among is None else among
        base = amounts - self._per_node if self._per_node.any() else amounts
        if request.gpus and self._per_gpu.any():
            base = base - self._gpus_at_least * self._per_gpu
        most = np.full(len(amounts), self._cap, dtype=np.int64)
        for column in np.flatnonzero(self._per_task).tolist():
            np.minimum(most, base[:, column] // self._per_task[column], out=most)
        if base is not amounts:
            most[(base < 0).any(axis=1)] = 0
        if self.wants_gpus:
            free = (gpus >= self.share).sum(axis=1)
            if request.gpus_per_task:
                np.minimum(most, free // request.gpus_per_task, out=most)
            else:
                most[free < (request.gpus_per_node or self._gpus_at_least)] = 0
            if self._models is not None:
                most[~self.able[every]] = 0
        if request.exclusive:
            has, gpus_there = self._nodes.amounts[every], self._nodes.gpus[every]
            most[~((amounts == has).all(axis=1) & (gpus == gpus_there).all(axis=1))] = 0
        np.maximum(most, 0, out=most)
        if self.exact:
            most[most < self.exact] = 0
        return most

    @cached_property
    def _gpus_at_least(self) -> int:
        """The least number of GPUs that each node of the job gets.

        It is 0 unless the request gives a total of GPUs.
        """
        return max(1, self.request.gpus // self.high) if self.request.gpus else 0

    def choose(self, order: Sequence[int] | Amounts, most: Amounts, amounts: Amounts, gpus: Amounts) -> Takes | None:
        """Choose nodes in an order of preference.

        Tasks and GPUs are divided among them. Return None if too few fit. A request with a fixed number of nodes
        prefers nodes that can take an equal part of the tasks. If there are too few of these, the nodes that can take
        most tasks are chosen. If the chosen nodes have too few GPUs for the job, other nodes with enough GPUs are
        chosen. The chosen nodes are filled with tasks and GPUs in the order of their numbers, but each gets at least
        the minimum per node. On each node the job gets the GPUs with the least free capacity that suffices.

        Args:
            order: nodes, the preferred first; others are not used.
            most: tasks that fit on each node, from `most_tasks`.
            amounts, gpus: what is free, as in `FreeResources`.
        """
        chosen = self._chosen(order, most, amounts, gpus)
        if chosen is None:
            return None
        chosen = np.sort(chosen)
        tasks = self._divided(most[chosen].tolist())
        if not self.wants_gpus and not self.request.exclusive:
            return tuple(map(Take, chosen.tolist(), tasks))
        counts = self._gpu_counts(chosen, tasks, self._gpu_room(chosen, amounts, gpus))
        return tuple(
            Take(node, count, self.numbers(gpus[node], held))
            for node, count, held in zip(chosen.tolist(), tasks, counts, strict=True)
        )

    def can_choose(self, order: Amounts, most: Amounts, amounts: Amounts, gpus: Amounts) -> bool:
        """Return whether `choose` finds nodes."""
        return self._chosen(order, most, amounts, gpus) is not None

    def _chosen(self, order: Sequence[int] | Amounts, most: Amounts, amounts: Amounts, gpus: Amounts) -> Amounts | None:
        ranked = np.asarray(order, dtype=np.int64)
        ranked = ranked[most[ranked] > 0]
        able, asked = most[ranked], self.request.gpus
        there = self._gpu_room(ranked, amounts, gpus) if asked else able
        places = places_for(able, self.low, self.high, self.tasks, there, asked)
        return None if places is None else ranked[places]

    def _gpu_room(self, nodes: Amounts, amounts: Amounts, gpus: Amounts) -> Amounts:
        """Return how many GPUs the job can take on each of these nodes, shape (nodes,)."""
        free: Amounts = (gpus[nodes] >= self.share).sum(axis=1)
        if self.request.gpus:
            for column in np.flatnonzero(self._per_gpu).tolist():
                left = amounts[nodes, column] - self._per_node[column]
                free = np.minimum(free, left // self._per_gpu[column])
        return free

    def _divided(self, most: list[int]) -> list[int]:
        if self.tasks is None:
            return [self.exact] * len(most)
        if self.tasks == len(most):
            return [1] * len(most)
        left, parts = self.tasks, []
        for place, able in enumerate(most):
            behind = len(most) - place - 1
            parts.append(min(able, left - behind))
            left -= parts[-1]
        return parts

    def _gpu_counts(self, chosen: Amounts, tasks: list[int], room: Amounts) -> list[int]:
        """Return how many GPUs the job gets on each chosen node.

        ``room`` is how many it can get there at most.
        """
        request = self.request
        if request.exclusive:
            return [int((self._nodes.gpus[node] > 0).sum()) for node in chosen.tolist()]
        if not request.gpus:
            return [request.gpus_per_node + request.gpus_per_task * count for count in tasks]
        least = min(self._gpus_at_least, request.gpus // len(chosen))
        left, counts = request.gpus, []
        for place, able in enumerate(room.tolist()):
            behind = (len(chosen) - place - 1) * least
            counts.append(min(able, left - behind))
            left -= counts[-1]
        return counts

    def gpus_on_node(self, tasks: int, nodes: int) -> int:
        """Return how many GPUs the job gets on each node.

        The job has ``nodes`` nodes with ``tasks`` tasks each.
        """
        request = self.request
        return request.gpus // nodes if request.gpus else request.gpus_per_node + request.gpus_per_task * tasks

    def numbers(self, free: Amounts, count: int) -> tuple[int, ...]:
        """Return the numbers of up to ``count`` GPUs, ascending.

        They have enough free capacity for the job. GPUs with the least free capacity are preferred.

        Args:
            free: free thousandths of each GPU of the node, shape (GPUs,).
        """
        if not count:
            return ()
        order = np.argsort(free, kind="stable")
        enough = order[free[order] >= (MILLI if self.request.exclusive else self.share)]
        return tuple(sorted(enough[:count].tolist()))

    def fault(self, takes: Sequence[Take]) -> str | None:
        """Return how an allocation differs from what the job requested; None if it fits the request.

        The numbers of tasks, nodes and GPUs are checked, but not whether the resources are free.

        Args:
            takes: the tasks and GPUs that the job would have on each node.
        """
        request = self.request
        if not self.low <= len(takes) <= self.high:
            wanted = str(self.low) if self.low == self.high else f"{self.low} to {self.high}"
            return f"{len(takes)} nodes; it asks for {wanted}"
        if self.tasks is not None and sum(take.tasks for take in takes) != self.tasks:
            return f"{sum(take.tasks for take in takes)} tasks in all; it asks for {self.tasks}"
        held = sum(len(take.gpus) for take in takes) if request.gpus else 0
        if held < request.gpus or (held > request.gpus and not request.exclusive):
            return f"{held} GPUs in all; it asks for {request.gpus}"
        if self._all_right(takes):
            return None
        for take in takes:
            where = f"on node {self._nodes.name(take.node)}"
            if self.exact and take.tasks != self.exact:
                return f"{take.tasks} tasks {where}; it asks for {self.exact} on each node"
            if not 1 <= take.tasks <= self._cap:
                return f"{take.tasks} tasks {where}; it asks for 1 to {self._cap}"
            each = request.gpus_per_node + request.gpus_per_task * take.tasks
            if not request.gpus and not request.exclusive and len(take.gpus) != each:
                return f"{len(take.gpus)} GPUs {where}; it asks for {each}"
            if self._models is not None and not self.able[take.node]:
                return f"GPUs of another model {where}; it asks for {' or '.join(request.gpu_models)}"
        return None

    def _all_right(self, takes: Sequence[Take]) -> bool:
        """Return True if a quick test shows that each node has enough tasks.

        This is the number of tasks that the job requests. The result is False for a job that takes GPUs or whole nodes;
        `fault` then checks everything.
        """
        if self.wants_gpus or self.request.exclusive or self._models is not None:
            return False
        counts = {(tasks, gpus) for _, tasks, gpus in takes}
        return all(1 <= tasks <= self._cap and tasks == (self.exact or tasks) and not gpus for tasks, gpus in counts)

    def refusal(self, allowed: Bools) -> str | None:
        """Return why the job does not fit on the allowed nodes even if all are empty.

        Return None if it fits.

        Args:
            allowed: which nodes the job may use, shape (nodes,).
        """
        nodes = self._nodes
        short = next(
            (name for name, count in self.request.licenses.items() if count > nodes.licenses.get(name, 0)), None
        )
        if short is not None:
            there = nodes.licenses.get(short, 0)
            return f"it asks for {self.request.licenses[short]} licences {quoted(short)}, the machine has {there}"
        most = np.where(allowed, self.most_tasks(nodes.amounts, nodes.gpus), 0)
        if self.can_choose(np.arange(len(nodes)), most, nodes.amounts, nodes.gpus):
            return None
        fitting = int((most > 0).sum())
        if not allowed.any():
            return "it may use no node"
        if fitting >= self.low:
            return self._shortage_in_all(allowed)
        if fitting:
            short = self._shortage(allowed & (most == 0))
            return f"{self.low} nodes are asked for, and only {fitting} can hold one of the tasks: elsewhere, {short}"
        return self._shortage(allowed)

    def _shortage_in_all(self, allowed: Bools) -> str:
        """Return a text that names the resource that is short on all nodes together.

        The allowed nodes together have too little of it for the job.
        """
        nodes, where = self._nodes, np.flatnonzero(allowed)
        for column, name in enumerate(nodes.resources):
            asked, has = int(self.total[column]), int(nodes.amounts[where, column].sum())
            if asked > has:
                return f"it asks for {_of(name, asked)} in all, the usable nodes have {amount_text(name, has)}"
        gpus = int(self._gpu_room(where[self.able[where]], nodes.amounts, nodes.gpus).sum())
        if self.request.gpus > gpus:
            return f"it asks for {self.request.gpus} GPUs in all, the usable nodes give it at most {gpus}"
        return self._shortage_of_tasks(where)

    def _shortage_of_tasks(self, where: NDArray[np.intp]) -> str:
        """Return a text that says how many of the job's tasks the best nodes hold.

        It also says which resource is short there. ``where`` are the numbers of the allowed nodes, of which at least
        one holds a task.
        """
        nodes, wanted = self._nodes, self.exact * self.low if self.tasks is None else self.tasks
        most = self.most_tasks(nodes.amounts, nodes.gpus)[where]
        best = np.argsort(-most, kind="stable")[: self.high]
        several = f"{len(best)} nodes hold" if len(best) > 1 else "one node holds"
        text = f"it asks for {wanted} tasks on at most {self.high} {'node' if self.high == 1 else 'nodes'}; {several}"
        text += f" at most {int(most[best].sum())} of them"
        node, takes = int(where[best[0]]), self._per_task > 0
        room = (nodes.amounts[node, takes] - self._per_node[takes]) // self._per_task[takes]
        if takes.any() and int(room.min()) == int(most[best[0]]):
            name = np.array(nodes.resources)[takes][int(room.argmin())]
            return f"{text} ({name}: {amount_text(name, int(nodes.amounts[node, nodes.column(name)]))} on a node)"
        return f"{text} (GPUs: {int((nodes.gpus[node] > 0).sum())} on a node)" if self.wants_gpus else text

    def _shortage(self, allowed: Bools) -> str:
        """Return a text that names the resource that is short on every allowed node.

        Each of these nodes has too little of it for one task of the job.
        """
        nodes, tasks = self._nodes, max(1, self.exact)
        need = self._per_node + tasks * self._per_task
        for column, name in enumerate(nodes.resources):
            largest = int(nodes.amounts[allowed, column].max())
            if need[column] > largest:
                asked = _of(name, int(need[column]))
                return f"it asks for {asked} on a node, the largest node has {amount_text(name, largest)}"
        if self.wants_gpus:
            wanted = max(self.request.gpus_per_node, self.request.gpus_per_task * tasks, self._gpus_at_least)
            there = int((nodes.gpus[allowed & self.able] >= self.share).sum(axis=1).max(initial=0))
            if wanted > there:
                return f"it asks for {wanted} GPUs on a node, the nodes of its model have at most {there}"
        return "no single node has all that it asks for together"


class Shapes:
    """The `Shape` of each request on one machine.

    Equal requests have the same `Shape` object.
    """

    def __init__(self, nodes: SharedNodes) -> None:
        self._nodes = nodes
        self._of: dict[Request, Shape] = {}
        #: {identity of a request: the request and its shape}; to hash a request takes longer
        self._seen: dict[int, tuple[Request, Shape]] = {}

    def of(self, request: Request) -> Shape:
        """Return the shape of a request.

        Raise PlatformError if no node has a resource or GPU model that it names.
        """
        seen = self._seen.get(id(request))
        if seen is not None and seen[0] is request:
            return seen[1]
        shape = self._of.get(request)
        if shape is None:
            shape = self._of[request] = Shape(request, self._nodes)
        if len(self._seen) == _MOST_SEEN:
            self._seen.clear()
        self._seen[id(request)] = request, shape
        return shape


def _of(resource: str, amount: int) -> str:
    """Return an amount with its resource, such as ``16 cores`` or ``2 GiB of memory``."""
    text = amount_text(resource, amount)
    return f"{text} of {resource}" if resource == MEMORY else f"{text} {resource}"
