"""How much longer a job takes on nodes that are far apart."""

from math import isfinite
from typing import Final

import numpy as np

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.units.indices import numbers
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.errors import SetupError

#: the option's name, in messages
_WHERE: Final = "--dispersion"


class Dispersion:
    """The rule that a job takes its runtime times 1 + share * h / H.

    h is the mean of hops over all pairs of the job's nodes, H that of all nodes of the machine: a job that is spread
    like the machine takes ``share`` longer, one on the nodes of a single router no longer.

    Parameters
    ----------
    platform
        the machine.
    share
        above 0.

    Raises
    ------
    SetupError
        if the share is out of range, or no two nodes of the machine are apart.
    """

    def __init__(self, platform: Platform, share: float) -> None:
        if not (isfinite(share) and share > 0):
            raise SetupError("a share of the runtime is not valid", where=_WHERE, expected="above 0", found=f"{share}")
        self.share = share
        machine = Machine(platform.units, platform.info)
        self._topology, self._numbering = machine.topology, machine.numbering
        most = self._topology.mean_hops(np.arange(len(machine.nodes), dtype=np.intp))
        if not most:
            raise SetupError(
                "nodes are no hops apart, so that no job takes longer where it is",
                where=_WHERE,
                expected="a platform with a [topology]",
                found=f"{platform.name}, of kind '{self._topology.kind}'",
            )
        self._each_hop = share / most

    def factor(self, units: NodeSet) -> float:
        """Return by what the runtime of a job on these units is multiplied, 1 at least."""
        return 1.0 + self._each_hop * self._topology.mean_hops(numbers(self._numbering.nodes_of(units)))
