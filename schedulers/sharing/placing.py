"""The placements for nodes that jobs share, for jobs on one node or on several."""

from functools import partial
from typing import Final

import numpy as np

from pipistrelle.platforms.resources.node_request import OneNodeRequest
from pipistrelle.platforms.resources.shape import Shape, Takes
from pipistrelle.platforms.resources.shared_nodes import Amounts
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.resources.amounts import MILLI
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.placement.contiguous import BestFit
from pipistrelle.schedulers.placement.lowest import LowestIds
from pipistrelle.schedulers.placement.ordered import LineOptions
from pipistrelle.schedulers.placement.scattered import Random, RandomOptions
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.policy.interfaces import Placement
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.shared_view import Bools, SharedView
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.sharing.fragmentation import TypicalRequests
from pipistrelle.schedulers.sharing.placements import SHARED, FirstFitShared, SharedPlacement, make_shared

_FIRST_FIT: Final = "first-fit"
#: `fgd` computes the typical requests again when this many times as many jobs were seen
_GROWTH: Final = 1.25


class OnSharedNodes:
    """A placement for nodes that jobs share, chosen by its name.

    Args:
        name: a key of `SHARED`.
        seed: seed of the placement ``random``.
    """

    fits_by_count = False

    def __init__(self, name: str, seed: int = 0) -> None:
        self.name = name
        self.seed = seed

    def pick(self, job: SchedulerJob, open_units: NodeSet, machine: Machine) -> NodeSet | None:
        """Raise PolicyError: this placement cannot pick units on nodes without resources."""
        raise self._unsuitable()

    def learn(self, machine: Machine) -> None:
        """Raise PolicyError if the machine's nodes have no resources."""
        if not machine.shares_nodes:
            raise self._unsuitable()

    def _unsuitable(self) -> PolicyError:
        return PolicyError(
            f"the placement '{self.name}' is for nodes that jobs share",
            expected="a platform whose pools have resources, or another placement",
            hint="'pipistrelle help sharing' explains the placements.",
        )


first_fit: Final = partial(OnSharedNodes, _FIRST_FIT)
worst_fit: Final = partial(OnSharedNodes, "worst-fit")
dot_product: Final = partial(OnSharedNodes, "dot-product")
gpu_packing: Final = partial(OnSharedNodes, "gpu-packing")
gpu_clustering: Final = partial(OnSharedNodes, "gpu-clustering")
fgd: Final = partial(OnSharedNodes, "fgd")


class NodePlacer:
    """Chooses nodes and GPUs for jobs on shared nodes, by the scores of a placement.

    The scores always come from all that is free now, even if a job may use only a part of it.
    """

    def __init__(self, name: str, shared: SharedView, seed: int = 0) -> None:
        self._name = name
        self._shared = shared
        self._rng = np.random.Generator(np.random.PCG64(seed))
        #: {what a job takes of one node: number of jobs}, for the placement ``fgd``
        self._seen: dict[OneNodeRequest, int] = {}
        self._jobs = 0
        self._typical_of = 0
        self._scores: SharedPlacement | None = None
        if name == _FIRST_FIT:
            self._scores = FirstFitShared(shared.free, shared.nodes.weights)

    def saw(self, job: SchedulerJob) -> None:
        """Count a submitted job, for the placement ``fgd``.

        That placement derives the typical requests from all jobs so far.
        """
        if self._name == "fgd":
            one = self._one(self._shared.shape(job))
            self._seen[one] = self._seen.get(one, 0) + 1
            self._jobs += 1

    def place(self, job: SchedulerJob, allowed: Bools, table: Amounts | None = None) -> Takes | None:
        """Return the tasks and GPUs per node that a job would get; None if it cannot fit.

        Args:
            allowed: the nodes that the job may use, shape (nodes,).
            table: the amounts that the job may use, in the columns of `SharedView.table`; None: all that is free.
        """
        shared = self._shared
        shape = shared.shape(job)
        if shared.free.missing_license(shape.request.licenses) is not None:
            return None
        amounts, gpus = (shared.free.amounts, shared.free.gpus) if table is None else shared.split(table)
        single = shape.single
        if single is not None and self.is_steady:
            fits = shape.fitting(single, allowed, amounts, gpus)
            node = self._preferred(shape, fits)
            return None if node < 0 else shared.propose(shape.on_one(node, gpus[node]))
        most = np.where(allowed, shape.most_tasks(amounts, gpus), 0)
        if not most.any():
            return None
        return shared.propose(shape.choose(self.order(shape), most, amounts, gpus))

    @property
    def is_steady(self) -> bool:
        """Whether choices depend only on the free resources, and not on earlier choices."""
        return self._name not in ("random", "fgd")

    def _preferred(self, shape: Shape, fits: Bools) -> int:
        """Return the preferred node of those for which ``fits`` is true; -1 if none."""
        shared = self._shared
        if self._name != _FIRST_FIT:
            if not fits.any():
                return -1
            return int(np.where(fits, self._scored().scores(self._one(shape)), -1).argmax())
        if shared.in_order:
            node = int(fits.argmax())
            return node if fits[node] else -1
        node = int(shared.by_weight[fits[shared.by_weight].argmax()])
        return node if fits[node] else -1

    def order(self, shape: Shape) -> Amounts:
        """Return the nodes in descending order of their scores.

        Nodes with equal scores are ordered by number.
        """
        if self._name == _FIRST_FIT:
            return self._shared.by_weight
        if self._name == "random":
            return self._rng.permutation(len(self._shared.nodes))
        scores = self._scored().scores(self._one(shape))
        order: Amounts = np.argsort(-scores, kind="stable")
        return order

    def _one(self, shape: Shape) -> OneNodeRequest:
        """Return what a job needs of one node, as a request by which nodes are scored."""
        tasks = shape.exact or (shape.tasks if shape.high == 1 and shape.tasks else 1)
        counts = shape.gpus_on_node(tasks, shape.low)
        if shape.request.exclusive:
            return OneNodeRequest(tuple([0] * len(self._shared.nodes.resources)), counts, MILLI)
        return shape.on_node(0, tasks, counts)

    def _scored(self) -> SharedPlacement:
        if self._name == "fgd" and (self._scores is None or self._jobs > self._typical_of * _GROWTH):
            typical = TypicalRequests(self._shared.nodes, self._seen or {self._any(): 1})
            self._scores = make_shared("fgd", self._shared.free, fragmentation=typical, rng=self._rng)
            self._typical_of = self._jobs
        elif self._scores is None:
            typical = TypicalRequests(self._shared.nodes, {self._any(): 1})
            self._scores = make_shared(self._name, self._shared.free, fragmentation=typical, rng=self._rng)
        return self._scores

    def _any(self) -> OneNodeRequest:
        return OneNodeRequest(tuple([1] * len(self._shared.nodes.resources)))


def placer_of(placement: Placement, view: View) -> NodePlacer:
    """Return the object that applies a placement to a view's shared nodes.

    Raises:
        PolicyError: the placement selects units, so it cannot share nodes.
    """
    assert view.shared is not None
    if isinstance(placement, OnSharedNodes):
        return NodePlacer(placement.name, view.shared, placement.seed)
    if type(placement) is LowestIds:
        return NodePlacer(_FIRST_FIT, view.shared)
    if type(placement) is BestFit and placement.options == LineOptions():
        return NodePlacer("best-fit", view.shared)
    if type(placement) is Random:
        options = placement.options
        if isinstance(options, RandomOptions) and options == RandomOptions(seed=options.seed):
            return NodePlacer("random", view.shared, options.seed)
    raise PolicyError(
        f"the placement {type(placement).__name__} cannot share nodes",
        expected=" or ".join(SHARED),
        hint="Name another with --placement, or use a platform without resources.",
    )
