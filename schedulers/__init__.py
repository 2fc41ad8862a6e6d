"""Pipistrelle's schedulers: a policy is order x backfill x placement, or anything with name, order and decide."""

from typing import TYPE_CHECKING

from pipistrelle.protocol.base.first_use import import_on_first_use

if TYPE_CHECKING:
    from pipistrelle.schedulers.catalogue.registry import make_policy
    from pipistrelle.schedulers.policy.compose import ComposedPolicy, compose
    from pipistrelle.schedulers.policy.interfaces import Policy
    from pipistrelle.schedulers.policy.jobs import SchedulerJob
    from pipistrelle.schedulers.policy.runtime import Runtime
    from pipistrelle.schedulers.policy.view import View

__all__ = ["ComposedPolicy", "Policy", "Runtime", "SchedulerJob", "View", "compose", "make_policy"]

import_on_first_use(
    __name__,
    {
        "policy.jobs": "SchedulerJob",
        "policy.compose": "ComposedPolicy compose",
        "policy.interfaces": "Policy",
        "catalogue.registry": "make_policy",
        "policy.runtime": "Runtime",
        "policy.view": "View",
    },
)
