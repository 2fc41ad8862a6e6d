"""The requirements of jobs on their nodes, and whether a machine can satisfy them."""

from collections.abc import Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.naming.numbering import NodeUnits
from pipistrelle.platforms.requests.constraints import parse_constraint, why_unmet
from pipistrelle.platforms.requests.node_counts import Ints, NodeCounts
from pipistrelle.platforms.requests.slurm_constraints import plain_constraint
from pipistrelle.protocol.base.errors import quoted
from pipistrelle.protocol.base.state import register
from pipistrelle.protocol.events import JobDescription, NodeGroupInfo, PoolInfo
from pipistrelle.protocol.units.nodesets import NodeSet


class NodeRequest(Struct, frozen=True):
    """The requirements of a job on its nodes, as in the event JOB_SUBMITTED.

    Args:
        constraint: which nodes the job may have; None: any.
        units_per_node: units of the job on each of its nodes; on the last node it may have fewer. None: any number.
        whole_nodes: whether the job needs whole nodes, each of exactly ``units_per_node`` units.
    """

    constraint: str | None = None
    units_per_node: int | None = None
    whole_nodes: bool = False

    @classmethod
    def of(cls, job: JobDescription) -> "NodeRequest | None":
        """Return a job's requirements on its nodes; None if it has none."""
        if job.constraint is None and job.units_per_node is None:
            return None
        return cls(job.constraint, job.units_per_node, job.whole_nodes)

    def nodes(self, size: int) -> int | None:
        """Return how many nodes a job of ``size`` units gets; None if any number will do."""
        return None if self.units_per_node is None else -(-size // self.units_per_node)

    def __str__(self) -> str:
        parts = [] if self.constraint is None else [f"constraint {quoted(self.constraint)}"]
        if self.units_per_node is not None:
            parts.append(f"{self.units_per_node} units a node" + (", whole nodes" if self.whole_nodes else ""))
        return ", ".join(parts) or "anything"


register(
    NodeRequest, lambda one: [one.constraint, one.units_per_node, one.whole_nodes], lambda state: NodeRequest(*state)
)
ANYTHING: Final = NodeRequest()


class RequestBook:
    """An index of nodes and units by node request.

    It says which nodes and units of one machine satisfy the node requests of jobs.
    """

    def __init__(self, pools: Sequence[PoolInfo], groups: Sequence[NodeGroupInfo] = ()) -> None:
        self._pools = tuple(pools)
        self._groups = tuple(groups)
        #: {request: suitable pools or parts of pools}
        self._able: dict[NodeRequest, tuple[PoolInfo, ...]] = {}
        self._allowed: dict[NodeRequest, NodeSet] = {}
        #: {request: the units of all other nodes}
        self._barred: dict[NodeRequest, NodeSet] = {}

    @cached_property
    def counts(self) -> NodeCounts:
        """The number of units of each node, and the node of each unit, as arrays."""
        return NodeCounts(self._pools)

    @cached_property
    def _kinds(self) -> tuple[PoolInfo, ...]:
        return kinds_of(self._pools, self._groups)

    def plain(self, request: NodeRequest, size: int) -> NodeRequest:
        """Return a node request with an equivalent constraint that has none of Slurm's brackets and counts.

        Args:
            size: the number of units of the job, on which the equivalent constraint may depend.

        Raises:
            PlatformError: if the constraint cannot be parsed or has no equivalent that restricts each node by itself.
        """
        if request.constraint is None:
            return request
        nodes = request.nodes(size)
        if nodes is None and all(pool.units_per_node == 1 for pool in self._pools):
            nodes = size
        able = [kind for kind in self._kinds if kind.units_per_node >= (request.units_per_node or 1)]
        return replace(request, constraint=plain_constraint(request.constraint, nodes, able))

    def pools(self, request: NodeRequest) -> tuple[PoolInfo, ...]:
        """Return the pools (or parts of them) whose nodes meet a request.

        Raise PlatformError if the request is invalid.
        """
        found = self._able.get(request)
        if found is None:
            each = request.units_per_node or 1
            found = self._able[request] = tuple(
                pool
                for pool in self._meeting(request.constraint)
                if (pool.units_per_node == each if request.whole_nodes else pool.units_per_node >= each)
            )
        return found

    def _meeting(self, text: str | None) -> tuple[PoolInfo, ...]:
        if text is None:
            return self._pools
        constraint = parse_constraint(text)
        return tuple(kind for kind in self._kinds if constraint.met_by(kind))

    def allowed(self, request: NodeRequest) -> NodeSet:
        """Return the units of all nodes that meet a job's request.

        Raise the errors of `pools`.
        """
        found = self._allowed.get(request)
        if found is None:
            found = NodeSet.EMPTY
            for pool in self.pools(request):
                found |= NodeSet.parse(pool.units)
            self._allowed[request] = found
        return found

    def _not_allowed(self, request: NodeRequest) -> NodeSet:
        found = self._barred.get(request)
        if found is None:
            every = NodeSet.EMPTY
            for pool in self._pools:
                every |= NodeSet.parse(pool.units)
            found = self._barred[request] = every - self.allowed(request)
        return found

    def refusal(self, request: NodeRequest, size: int) -> str | None:
        """Return why a job's request cannot be satisfied even if all units are free.

        Return None if it can.
        """
        try:
            pools = self.pools(request)
        except PlatformError as error:
            return f"{error.what}: {error.found}"
        text, each = request.constraint, request.units_per_node
        if pools and each is None and size <= len(self.allowed(request)):
            return None
        if not pools and text is not None and not self._meeting(text):
            return why_unmet(parse_constraint(text), text, self._kinds)
        which = "the machine" if text is None else f"constraint {quoted(text)}"
        if not pools:
            have = sorted({pool.units_per_node for pool in self._meeting(text)})
            wants = f"whole nodes of {each} units" if request.whole_nodes else f"{each} units a node"
            return f"it asks for {wants}, the nodes of {which} have {' or '.join(map(str, have))}"
        nodes = request.nodes(size)
        if nodes is None:
            units = len(self.allowed(request))
            return f"it asks for {size} units, {which} has {units}" if size > units else None
        there = sum(len(NodeSet.parse(pool.nodes)) for pool in pools)
        return f"it asks for {nodes} nodes with {each} units, {which} has {there}" if nodes > there else None

    def fault(self, request: NodeRequest, size: int, alloc: NodeSet) -> str | None:
        """Return why the units ``alloc`` do not satisfy a job's request.

        The job has ``size`` units. Return None if they satisfy it.
        """
        if not alloc.isdisjoint(barred := self._not_allowed(request)):
            return f"units of nodes that will not do, {alloc & barred}: it asks for {request}"
        each = request.units_per_node
        if each is None:
            return None
        counts = self.counts.of(alloc)
        counts = counts[counts > 0]
        rest = size % each
        if (counts == each).sum() == size // each and len(counts) == size // each + bool(rest):
            return None
        return f"{_spread(counts)} units a node: it asks for {request}"


def _spread(counts: Ints) -> str:
    few = sorted(set(counts.tolist()))
    return " or ".join(map(str, few[:4])) + (" or more" if len(few) > 4 else "")


def kinds_of(pools: Sequence[PoolInfo], groups: Sequence[NodeGroupInfo]) -> tuple[PoolInfo, ...]:
    """Split pools into parts whose nodes all have the same class and properties.

    A part has its pool's name; its nodes need not be consecutive. MTTF and age do not matter.

    Raises:
        PlatformError: if a pool's nodes and units do not match.
    """
    telling = [group for group in groups if group.node_class or group.properties]
    if not telling:
        return tuple(pools)
    kinds = [(pool, NodeSet.parse(pool.nodes)) for pool in pools]
    for group in telling:
        members = NodeSet.parse(group.nodes)
        parts: dict[tuple[object, ...], tuple[PoolInfo, NodeSet]] = {}
        for kind, nodes in kinds:
            changed = replace(
                kind,
                node_class=group.node_class or kind.node_class,
                properties=kind.properties | group.properties,
            )
            for part, some in ((kind, nodes - members), (changed, nodes & members)):
                if some:
                    key = (
                        part.name,
                        part.node_class,
                        *sorted((name, repr(one)) for name, one in part.properties.items()),
                    )
                    known = parts.get(key)
                    parts[key] = (part, some) if known is None else (known[0], known[1] | some)
        kinds = list(parts.values())
    numbering = NodeUnits.told(pools)
    return tuple(replace(kind, nodes=str(nodes), units=str(numbering.units_of(nodes))) for kind, nodes in kinds)
