"""The probability that a job finishes before one of its nodes fails."""

from math import inf, log

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.schedulers.placement.lines import Line
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.policy.jobs import SchedulerJob


class Chances:
    """Failure rates of the nodes, for placements with a reliability target.

    Nodes fail independently at rates 1 / MTTF. So a job with walltime T finishes with probability exp(-T R), where R is
    the sum of its nodes' rates. The probability is at least P if R <= -ln(P) / T.

    Args:
        target: P, the least probability, between 0 and 1.

    Raises:
        PolicyError: the MTTF of a node is unknown.
    """

    def __init__(self, machine: Machine, target: float) -> None:
        unknown = np.flatnonzero(np.isnan(machine.nodes.mttf))
        if len(unknown):
            raise PolicyError(
                "the MTTF of some nodes is unknown",
                where="--reliability-target",
                expected="the MTTF of each node, in the platform's file",
                found=f"{len(unknown)} without, the first is node {machine.nodes.names[unknown[0]]}",
            )
        #: failures per second of each node
        self._rates = 1.0 / machine.nodes.mttf
        self._log_target = -log(target)

    def most(self, job: SchedulerJob) -> float:
        """Return the highest sum of failure rates (1/s) that a job's nodes may have.

        It is inf for a walltime of 0, and 0 without a walltime.
        """
        return self._log_target / job.walltime if job.walltime > 0 else inf

    def rates(self, line: Line) -> NDArray[np.float64]:
        """Return the failure rate (1/s) of the node at each position of a `Line`.

        The result has shape (units,).
        """
        found: NDArray[np.float64] = self._rates[line.nodes]
        return found

    def of_nodes(self, nodes: NDArray[np.intp]) -> float:
        """Return the sum of the failure rates (1/s) of some nodes, each node counted once."""
        return float(self._rates[np.unique(nodes)].sum())
