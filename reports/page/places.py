"""Where the nodes of a machine are in its network, as far as the run's configuration tells."""

from collections.abc import Mapping
from typing import Any

import msgspec

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.reports.page.packing import ColumnPack


def places(config: Mapping[str, Any], pack: ColumnPack) -> dict[str, Any] | None:
    """Return the network's kind and shape, and where each node's coordinates are packed, one column a dimension.

    None where the machine has no network with a shape, or another version's description cannot be read.
    """
    platform = config.get("platform")
    if not isinstance(platform, dict) or not platform.get("topology"):
        return None
    try:
        described = msgspec.convert(platform, Platform)
        topology = Machine(described.units, described.info).topology
    except (PipistrelleError, msgspec.ValidationError):
        return None
    if not topology.info.shape:
        return None
    return {
        "kind": topology.kind,
        "shape": list(topology.shape),
        "per_router": topology.nodes_per_router,
        "place": [pack.numbers(column) for column in topology.place.T],
    }
