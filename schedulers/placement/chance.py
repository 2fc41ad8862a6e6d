"""A job's chance of finishing before one of its nodes fails."""

from math import inf, log

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.schedulers.placement.lines import Line
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.policy.jobs import SchedulerJob


class Chances:
    """How often the nodes of a line fail, and which of its positions a job can have under a target.

    Nodes fail independently at rates of 1 / MTTF, so that a job of walltime T on the nodes n finishes with a chance of
    exp(-T sum(1 / MTTF_n)). It is at least P where sum(1 / MTTF_n) <= -ln(P) / T.

    Parameters
    ----------
    machine
        whose nodes' MTTF is known.
    target
        the least chance, between 0 and 1.

    Raises
    ------
    PolicyError
        if the MTTF of a node is not known.
    """

    def __init__(self, machine: Machine, target: float) -> None:
        unknown = np.flatnonzero(np.isnan(machine.nodes.mttf))
        if len(unknown):
            raise PolicyError(
                "the MTTF of some nodes is not known",
                where="--reliability-target",
                expected="that of each node, in the platform's file",
                found=f"{len(unknown)} without, the first is node {machine.nodes.names[unknown[0]]}",
            )
        #: failures a second, of each node
        self._rates = 1.0 / machine.nodes.mttf
        self._log_target = -log(target)

    def most(self, job: SchedulerJob) -> float:
        """Return the highest sum of rates (1/s) that a job's nodes may have; 0 if it runs without limit."""
        return self._log_target / job.walltime if job.walltime > 0 else inf

    def rates(self, line: Line) -> NDArray[np.float64]:
        """Return the rate (1/s) of the node at each position, shape (units,)."""
        found: NDArray[np.float64] = self._rates[line.nodes]
        return found

    def of_nodes(self, nodes: NDArray[np.intp]) -> float:
        """Return the sum of the rates (1/s) of some nodes, each counted once however often it is named."""
        return float(self._rates[np.unique(nodes)].sum())
