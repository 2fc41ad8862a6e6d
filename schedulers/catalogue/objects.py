"""Schedulers that are Python objects.

A scheduler may be a policy, its class, or a function that makes it.
"""

import copy
from collections.abc import Callable, Iterable
from typing import Any, Final

from pipistrelle.schedulers.catalogue.registry import called_policy, checked_policy
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.policy.interfaces import Policy

#: makes a new policy
Make = Callable[[], Policy]
#: scheduler options that an object may also have
_FOR_ALL: Final = ("scheduler", "poll")


def policy_maker(scheduler: Any) -> Make:
    """Return a function that makes a new policy at each call.

    Args:
        scheduler: a policy, which is copied in its current state; or a class or function that makes a policy.

    Raises:
        PolicyError: ``scheduler`` is none of these.
    """
    if is_factory(scheduler):
        return lambda: called_policy(scheduler, getattr(scheduler, "__qualname__", str(scheduler)))
    checked_policy(scheduler, "scheduler")
    before = copy.deepcopy(scheduler)
    return lambda: copy.deepcopy(before)


def is_factory(scheduler: Any) -> bool:
    """Return whether a scheduler is a class or function that makes a policy."""
    return isinstance(scheduler, type) or (callable(scheduler) and not hasattr(scheduler, "decide"))


def refuse_parts(options: Iterable[str], where: str) -> None:
    """Raise PolicyError if options would replace parts of a Python object.

    Only presets have parts that can be replaced.

    Args:
        options: names of the run's scheduler options.
    """
    if given := [name for name in options if name not in _FOR_ALL]:
        raise PolicyError(
            "a scheduler that is a Python object has no parts or options to replace",
            where=where,
            found=", ".join(given),
            hint="Give the scheduler by name, or set these in the object.",
        )
