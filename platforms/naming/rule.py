"""The topology in a platform's TOML, and its checks."""

from math import inf, prod
from typing import Final

from msgspec.structs import replace

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.naming.node_names import NodeNames, numbers_called
from pipistrelle.protocol.base.errors import PipistrelleError, shown
from pipistrelle.protocol.events import TopologyInfo
from pipistrelle.protocol.units.nodesets import NodeSet

_MOST_PLACES: Final = 10_000_000
_MOST_DIMENSIONS: Final = 8


class TopologyRule(TopologyInfo, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """The topology in a platform's TOML.

    Positions without a node may be given by name. The `Platform` checks it.
    """

    @property
    def told(self) -> TopologyInfo:
        """The topology as sent to schedulers.

        Raise PlatformError if a position named as absent does not exist.
        """
        fields = {key: getattr(self, key) for key in TopologyInfo.__struct_fields__}
        info = TopologyInfo(**fields | {"absent": " ".join(self.absent.split())})
        if not any(character.isalpha() for character in self.absent):
            return info
        names = NodeNames.parse(self.names, prod(self.shape) * self.nodes_per_router, "topology.names")
        numbers = {name: place for place, name in enumerate(names)}
        return replace(info, absent=str(numbers_called(self.absent, numbers, "topology.absent", "place")))


def place_names(info: TopologyInfo) -> tuple[str, ...]:
    """Return the names of the topology's positions that have a node, in order.

    The result is empty if positions have no names.
    """
    if not info.names:
        return ()
    names = [*NodeNames.parse(info.names, prod(info.shape) * info.nodes_per_router, "topology.names")]
    for low, high in reversed(NodeSet.parse(info.absent).intervals):
        del names[low : high + 1]
    return tuple(names)


def check_topology(info: TopologyInfo, nodes: int, where: str = "topology") -> None:
    """Raise PlatformError if a topology is invalid.

    It must have exactly one position per node.
    """
    if info.kind == "flat":
        given = [key for key in info.__struct_fields__[1:] if getattr(info, key) != getattr(TopologyInfo("flat"), key)]
        if given:
            raise PlatformError(
                f"a flat topology has no {given[0]}", where=f"{where}.{given[0]}", hint="Leave it out, or name a kind."
            )
        return
    routers = prod(info.shape)
    if not 1 <= len(info.shape) <= _MOST_DIMENSIONS or min(info.shape) < 1:
        _refuse("a topology's shape is not valid", where, "shape", f"1 to {_MOST_DIMENSIONS} sizes of at least 1", info)
    if info.nodes_per_router < 1 or routers * info.nodes_per_router > _MOST_PLACES:
        expected = f"at least 1, and at most {_MOST_PLACES} places in all"
        _refuse("a topology's size is out of range", where, "nodes_per_router", expected, info)
    _check_numbering(info, where)
    if info.hops and (info.kind != "groups" or len(info.hops) != len(info.shape) or min(info.hops) < 1):
        _refuse("hops do not fit", where, "hops", "for kind 'groups', one of at least 1 for each size of shape", info)
    if list(info.hops) != sorted(info.hops):
        _refuse("hops do not fit", where, "hops", "ascending numbers, the innermost group first", info)
    if info.bandwidth and (
        len(info.bandwidth) != len(info.shape)
        or not all(0 < one < inf for each in info.bandwidth for one in (each if isinstance(each, tuple) else [each]))
        or () in info.bandwidth
    ):
        expected = "for each size of shape a number above 0, in bytes/s, or a list of them"
        _refuse("bandwidths do not fit", where, "bandwidth", expected, info)
    if info.names:
        NodeNames.parse(info.names, routers * info.nodes_per_router, f"{where}.names")
    _check_places(info, nodes, where)


def _check_numbering(info: TopologyInfo, where: str) -> None:
    counts = [1] * len(info.shape)
    for dimension, count in info.numbering:
        if dimension < len(counts):
            counts[dimension] *= count
    if info.numbering and (tuple(counts) != info.shape or max(info.numbering)[0] >= len(counts)):
        expected = f"[dimension, count] of each digit, with counts that make the shape {list(info.shape)}"
        _refuse("a numbering does not fit the shape", where, "numbering", expected, info)


def _check_places(info: TopologyInfo, nodes: int, where: str) -> None:
    places = prod(info.shape) * info.nodes_per_router
    try:
        absent = NodeSet.parse(info.absent)
    except PipistrelleError as error:
        raise error.at(f"{where}.absent", PlatformError) from None
    if absent and absent.last >= places:
        expected = f"places from 0 to {places - 1}"
        _refuse("an absent place does not exist", where, "absent", expected, info)
    if places - len(absent) != nodes:
        raise PlatformError(
            "a topology does not match the nodes",
            where=where,
            expected=f"places for {nodes} node(s)",
            found=f"{places} place(s), {len(absent)} of them absent",
        )


def _refuse(what: str, where: str, key: str, expected: str, info: TopologyInfo) -> None:
    found = getattr(info, key)
    text = shown(found) if isinstance(found, str | int) else str(found)
    raise PlatformError(what, where=f"{where}.{key}", expected=expected, found=text)
