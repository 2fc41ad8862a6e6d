"""The base class of schedulers written in Python."""

import re
from abc import ABC, abstractmethod
from typing import Any

from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.schedulers.policy.order import Order
from pipistrelle.schedulers.policy.view import View


class Scheduler(ABC):
    """Base class for your own scheduler; only `decide` must be written.

    The base class is optional: any object with ``name``, ``order`` and ``decide`` is a scheduler.
    docs/tutorials/write-your-scheduler.md explains these members.

    Attributes:
        name: the scheduler's name in the outputs; default: the name of the class.
        order: the order of the queue; default: first come, first served.
    """

    name: str = ""
    order: Order = Fcfs()

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if not cls.__dict__.get("name"):
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()

    @abstractmethod
    def decide(self, view: View) -> None:
        """Read the state of the cluster from the view, and call its methods to decide.

        This method is called for each notice (message from the server) except the first and the last.
        """
