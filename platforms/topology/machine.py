"""The machine as job placement needs it."""

from functools import cached_property

from msgspec import structs

from pipistrelle.platforms.description import MOST_UNITS
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.naming.numbering import NodeUnits
from pipistrelle.platforms.requests.requests import RequestBook
from pipistrelle.platforms.topology.nodes import NodeTable
from pipistrelle.platforms.topology.topology import Topology
from pipistrelle.protocol.events import PlatformInfo, PoolInfo
from pipistrelle.protocol.units.nodesets import NodeSet


class Machine:
    """A machine: its units, its nodes, and the mapping between them.

    Args:
        units: number of units, numbered from 0.
        platform: the server's description; None: each unit is a node, all in one pool.
    """

    def __init__(self, units: int, platform: PlatformInfo | None = None) -> None:
        self.units = units
        everything = str(self.all_units)
        if platform is None or not platform.pools:
            platform = PlatformInfo("", (PoolInfo("all", everything, everything),))
        self._platform = platform

    @property
    def shares_nodes(self) -> bool:
        """Whether the nodes have resources, so that jobs share them."""
        return any(pool.resources is not None for pool in self._platform.pools)

    def check(self) -> None:
        """Raise PlatformError or NodeSetError if the machine is inconsistent or too large."""
        if self.units > MOST_UNITS:
            raise PlatformError("a machine is too large", expected=f"at most {MOST_UNITS} units", found=str(self.units))
        # Check this before making the table, which has a row for each node that the description claims.
        nodes = sum(count for _, count, _, _ in self.numbering.pools)
        if self.numbering.units_of(NodeSet.interval(0, nodes - 1)) != self.all_units:
            raise PlatformError("the pools' units are not those of the machine", expected=str(self.all_units))
        assert self.topology is not None  # making it checks it

    @property
    def named(self) -> bool:
        """Whether the machine's nodes have names."""
        return self.nodes.named

    @cached_property
    def all_units(self) -> NodeSet:
        """All units of the machine."""
        return NodeSet.interval(0, self.units - 1)

    @cached_property
    def numbering(self) -> NodeUnits:
        """The mapping between nodes and units of the machine."""
        return NodeUnits.told(self._platform.pools)

    @cached_property
    def requests(self) -> RequestBook:
        """The index of nodes and units of the machine by node request.

        It says which of them satisfy jobs' node requests.
        """
        return RequestBook(self._platform.pools, self._platform.groups)

    @cached_property
    def of_nodes(self) -> "Machine":
        """The machine with each node as one unit, for choosing nodes."""
        alike = [
            structs.replace(pool, units=pool.nodes, units_per_node=1, unit="node") for pool in self._platform.pools
        ]
        return Machine(len(self.nodes), structs.replace(self._platform, pools=tuple(alike), classes=()))

    @cached_property
    def nodes(self) -> NodeTable:
        """The table of the machine's nodes."""
        return NodeTable.of(self._platform)

    @property
    def topology(self) -> Topology:
        """The network with each node's position; flat if the server describes none."""
        return self.nodes.topology
