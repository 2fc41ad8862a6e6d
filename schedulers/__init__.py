"""Pipistrelle's schedulers: a policy is order x backfill x placement, or anything with name, order and decide."""

from typing import TYPE_CHECKING

from pipistrelle.protocol.first_use import import_on_first_use

if TYPE_CHECKING:
    from pipistrelle.schedulers.jobs import SchedulerJob
    from pipistrelle.schedulers.policy import ComposedPolicy, Policy, compose
    from pipistrelle.schedulers.registry import make_policy
    from pipistrelle.schedulers.runtime import Runtime
    from pipistrelle.schedulers.view import View

__all__ = ["ComposedPolicy", "Policy", "Runtime", "SchedulerJob", "View", "compose", "make_policy"]

import_on_first_use(
    __name__,
    {
        "jobs": "SchedulerJob",
        "policy": "ComposedPolicy Policy compose",
        "registry": "make_policy",
        "runtime": "Runtime",
        "view": "View",
    },
)
