"""A job as the scheduler knows it, without its run time."""

from collections.abc import Mapping
from math import inf, isnan, nan
from typing import Any, NamedTuple

from msgspec import Struct, convert, structs, to_builtins

from pipistrelle.platforms.requests.requests import NodeRequest
from pipistrelle.protocol.events import JobDescription
from pipistrelle.protocol.units.nodesets import NodeSet


class SchedulerJob(Struct, eq=False):
    """A waiting or running job; times are seconds of simulated time.

    Attributes:
        number: position in the order of submission, from 0; it breaks all ties.
        occupies: longest time that the job holds its units: walltime, prologue and epilogue. Plans use this.
        expected_end: start + occupies; inf without a walltime, NaN while the job waits.
        description: the job as submitted, with user, group, account, queue and QOS; None for jobs made in code.
        request: the job's constraints on nodes; None if it has none.
    """

    id: str
    number: int
    size: int
    walltime: float
    submit: float
    start: float = nan
    expected_end: float = nan
    alloc: NodeSet = NodeSet.EMPTY
    description: JobDescription | None = None
    occupies: float = nan
    request: NodeRequest | None = None

    def __post_init__(self) -> None:
        if isnan(self.occupies):
            self.occupies = self.walltime

    @property
    def by_nodes(self) -> bool:
        """Return whether the job asks for a number of units per node.

        If so, counting free units does not show whether the job fits.
        """
        return self.request is not None and self.request.units_per_node is not None

    @property
    def processors(self) -> int:
        """The job's number of cores, rounded up, if it has a request; its size if not."""
        request = None if self.description is None else self.description.request
        return self.size if request is None else request.cores

    @property
    def waits(self) -> bool:
        """Return whether the job has not been started yet."""
        return not self.alloc

    def state(self) -> dict[str, Any]:
        """Return the job as values that JSON can hold."""
        description = None if self.description is None else to_builtins(self.description)
        known = {**structs.asdict(self), "alloc": str(self.alloc), "description": description}
        del known["request"]  # the description contains it
        return known

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> "SchedulerJob":
        """Return the job that was saved as ``state`` by the method `state`."""
        description = state["description"]
        told = None if description is None else convert(description, JobDescription)
        request = None if told is None else NodeRequest.of(told)
        return cls(**{**state, "alloc": NodeSet.parse(state["alloc"]), "description": told, "request": request})

    @classmethod
    def submitted(cls, description: JobDescription, number: int, now: float, beside: float = 0.0) -> "SchedulerJob":
        """Return the job that a submission describes.

        Args:
            number: position in the order of submission, from 0.
            now: time of the submission, s; used if the description has no submit time.
            beside: the job's prologue plus epilogue, s.
        """
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


class EndedJob(NamedTuple):
    """A job that ended at ``end`` (s) in a state such as ``COMPLETED_SUCCESSFULLY``.

    It held its units for ``end - job.start`` seconds.
    """

    job: SchedulerJob
    end: float
    state: str
