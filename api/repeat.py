"""Repeat a run that has Python objects as inputs, so that it can be explained."""

from collections.abc import Callable
from dataclasses import dataclass

from pipistrelle.runs.description.setup import Inputs, load_setup
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.schedulers.policy.interfaces import Policy
from pipistrelle.server.setup.setup import Setup


@dataclass(frozen=True)
class Again:
    """The inputs of a run with Python objects, so that it can be repeated.

    Attributes:
        spec: the run's description.
        given: the workload and platform objects.
        policy: returns a new policy in the state before the run; None if the description names the policy.
    """

    spec: RunSpec
    given: Inputs
    policy: Callable[[], Policy] | None

    def parts(self) -> tuple[RunSpec, Setup, Policy]:
        """Return the run's description, a new setup and a new policy."""
        policy = self.spec.make_policy(warn=False, polls=False) if self.policy is None else self.policy()
        return self.spec, load_setup(self.spec, self.given), policy
