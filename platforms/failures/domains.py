"""Failure domains: nodes that fail together with a cabinet, power feed or switch."""

from dataclasses import dataclass

import numpy as np

from pipistrelle.platforms.errors import OutageError
from pipistrelle.platforms.failures.outage import Outages
from pipistrelle.protocol.units.nodesets import NodeSet


@dataclass(frozen=True, slots=True)
class Domain:
    """A named group of nodes that fail together.

    The causes of their outages begin with the name of the group.
    """

    name: str
    nodes: NodeSet


def blocks(nodes: range, size: int, name: str = "domain") -> tuple[Domain, ...]:
    """Divide nodes into failure domains of `size` consecutive nodes each.

    The last domain may be smaller. The domains are called "name 0", "name 1" and so on.

    Raises:
        OutageError: if the size is not from 1 to the number of nodes.
    """
    if not 1 <= size <= len(nodes):
        raise OutageError(
            "the size of a failure domain is out of range", expected=f"1 to {len(nodes)} nodes", found=str(size)
        )
    return tuple(
        Domain(f"{name} {number}", NodeSet.interval(part[0], part[-1]))
        for number, part in enumerate(nodes[at : at + size] for at in range(0, len(nodes), size))
    )


def expand(outages: Outages, domains: tuple[Domain, ...]) -> Outages:
    """Turn outages of failure domains into outages of all their nodes.

    The node numbers in `outages` are indices of `domains`. The cause of each outage then begins with the domain's name,
    as in "cabinet 3: failure".
    """
    if not len(outages):
        return outages
    members = [np.array(list(domain.nodes), dtype=np.int64) for domain in domains]
    counts = np.array([len(domain.nodes) for domain in domains], dtype=np.int64)[outages.node]
    return Outages(
        np.concatenate([members[index] for index in outages.node.tolist()]),
        np.repeat(outages.down, counts),
        np.repeat(outages.up, counts),
        [
            f"{domains[row.node].name}: {row.cause}"
            for row, count in zip(outages, counts.tolist(), strict=True)
            for _ in range(count)
        ],
        np.repeat(outages.announced, counts),
    )
