"""A job as a scheduler knows it."""

from collections.abc import Mapping
from math import inf, isnan, nan
from typing import Any

from msgspec import Struct, convert, structs, to_builtins

from pipistrelle.platforms.requests.requests import NodeRequest
from pipistrelle.protocol.events import JobDescription
from pipistrelle.protocol.units.nodesets import NodeSet


class SchedulerJob(Struct, eq=False):
    """A job that waits or runs; times in seconds of simulated time.

    ``number`` counts the jobs in the order in which they were submitted, from 0: it settles every tie.
    ``occupies`` is how long it holds its units at most, what plans reckon with: its walltime and, where the machine has
    such times, its prologue and epilogue. ``expected_end`` is start + occupies, inf without a walltime, NaN while the
    job waits.
    """

    id: str
    number: int
    size: int
    walltime: float
    submit: float
    start: float = nan
    expected_end: float = nan
    alloc: NodeSet = NodeSet.EMPTY
    #: what was submitted, with the names of user, group, account, queue and QOS; None for a job of one's own making
    description: JobDescription | None = None
    #: walltime, prologue and epilogue
    occupies: float = nan
    #: what it asks of its nodes; None: nothing
    request: NodeRequest | None = None

    def __post_init__(self) -> None:
        """Without prologue and epilogue a job holds its units as long as its walltime allows."""
        if isnan(self.occupies):
            self.occupies = self.walltime

    @property
    def by_nodes(self) -> bool:
        """Whether it asks for a number of units on each of its nodes: then not any units will do that are enough."""
        return self.request is not None and self.request.units_per_node is not None

    @property
    def waits(self) -> bool:
        """Whether the job has not been started yet."""
        return not self.alloc

    def state(self) -> dict[str, Any]:
        """Return all of the job as plain values."""
        description = None if self.description is None else to_builtins(self.description)
        known = {**structs.asdict(self), "alloc": str(self.alloc), "description": description}
        del known["request"]  # the description says it
        return known

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> "SchedulerJob":
        """Return the job of a state."""
        description = state["description"]
        told = None if description is None else convert(description, JobDescription)
        request = None if told is None else NodeRequest.of(told)
        return cls(**{**state, "alloc": NodeSet.parse(state["alloc"]), "description": told, "request": request})

    @classmethod
    def submitted(cls, description: JobDescription, number: int, now: float, beside: float = 0.0) -> "SchedulerJob":
        """Return the job of a JOB_SUBMITTED event; ``beside`` (s) is what it holds its units beside its walltime."""
        walltime = inf if description.walltime is None else description.walltime
        submit = now if description.subtime is None else description.subtime
        asks = description.constraint is not None or description.units_per_node is not None
        return cls(
            description.id,
            number,
            description.res,
            walltime,
            submit,
            nan,
            nan,
            NodeSet.EMPTY,
            description,
            walltime + beside,
            NodeRequest.of(description) if asks else None,
        )
