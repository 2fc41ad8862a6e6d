"""The queue order of PBS Professional: by a formula (``job_sort_formula``)."""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Final, Literal

import numpy as np
from msgspec import Struct, field

from pipistrelle.protocol.base.lengths import seconds_of
from pipistrelle.protocol.base.state import Kept
from pipistrelle.schedulers.pbs.fairshare_tree import FairshareTree, Floats
from pipistrelle.schedulers.pbs.formula import Formula
from pipistrelle.schedulers.policy.jobs import SchedulerJob

#: variables of a job known before it runs
_OF_JOB: Final = ("eligible_time", "ncpus", "queue_priority", "walltime")
_OF_ENTITY: Final[dict[str, Callable[[FairshareTree], Floats]]] = {
    "fairshare": FairshareTree.fairshare,
    "fairshare_factor": FairshareTree.factor,
    "fairshare_perc": FairshareTree.perc,
    "fair_share_perc": FairshareTree.perc,
    "fairshare_tree_usage": FairshareTree.tree_usage,
}
#: every job in the queue is eligible
_ELIGIBLE: Final = 2.0
VARIABLES: Final = tuple(sorted({*_OF_JOB, *_OF_ENTITY, "accrue_type"}))
_NOT_TOLD: Final = "PBS has it, but schedulers here do not receive it."
UNKNOWN: Final = dict.fromkeys(("cput", "job_priority", "mem", "mpiprocs", "nodect", "pmem", "vmem"), _NOT_TOLD)


class PbsOptions(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Options of the order ``pbs``; docs/reference/pbs.md describes them."""

    formula: str = "eligible_time"
    queue_priorities: dict[str, float] = field(default_factory=dict)
    fairshare_entity: Literal["user", "group", "account", "queue", "qos"] = "user"
    fairshare_shares: dict[str, float] = field(default_factory=dict)
    unknown_shares: float = 10.0
    decay_time: float | str = 86400.0
    decay_factor: float = 0.5

    def __post_init__(self) -> None:
        """Raise ValueError for a number out of range."""
        for name, shares in (("unknown-shares", self.unknown_shares), *self.fairshare_shares.items()):
            if not 0.0 <= shares < inf:
                raise ValueError(f"expected shares not below 0, found {shares!r} for '{name}'")
        for name, priority in self.queue_priorities.items():
            if not -inf < priority < inf:
                raise ValueError(f"expected a finite queue priority, found {priority!r} for '{name}'")
        if not 0.0 <= seconds_of(self.decay_time, "decay-time") < inf:
            raise ValueError(f"expected a decay-time not below 0, found {self.decay_time!r}")
        if not 0.0 <= self.decay_factor <= 1.0:
            raise ValueError(f"expected a decay-factor from 0 to 1, found {self.decay_factor!r}")


class PbsOrder(Kept):
    """The queue order ``pbs``: by the value of a formula, highest first.

    Raises:
        FormulaError: the formula is invalid.
    """

    _kept = ("_tree",)
    dynamic: Literal[True] = True
    features = ("labels",)

    def __init__(self, options: PbsOptions | None = None) -> None:
        self.options = options or PbsOptions()
        self._formula = Formula(self.options.formula, VARIABLES, unknown=UNKNOWN)
        self.begin()

    def begin(self) -> None:
        """Clear all data, for a new simulation."""
        options = self.options
        self._priorities: Mapping[str, float] = options.queue_priorities
        self._tree = FairshareTree(
            options.fairshare_shares,
            unknown_shares=options.unknown_shares,
            decay_time=seconds_of(options.decay_time) or inf,
            decay_factor=options.decay_factor,
        )

    def learn_classes(self, priorities: Mapping[str, float]) -> None:
        """Use the machine's class priorities for queues that the options do not name."""
        self._priorities = {**priorities, **self.options.queue_priorities}

    def attributes(self, job: SchedulerJob) -> Sequence[float]:
        """Return the attributes of a job from which the formula's variables are computed.

        These are submit time (s), size, walltime (s), queue priority, and the number of its entity in the fairshare
        tree.
        """
        queue = job.description.queue if job.description is not None else None
        priority = self._priorities.get(queue or "", 0.0)
        return (job.submit, job.processors, job.walltime, priority, self._entity(job))

    def ranks(self, table: Floats, now: float) -> Floats:
        """Return the negative formula values at ``now`` (s).

        They are negative so that the highest value sorts first.
        """
        values = self.values(table, now)
        return np.negative(values, out=values)

    def values(self, table: Floats, now: float) -> Floats:
        """Return the value of the formula for each job at ``now`` (s).

        ``table`` has the jobs' attributes as in `ranks`.
        """
        return self._formula.values(self._columns(table, now), table.shape[1])

    def terms(self, job: SchedulerJob, now: float) -> dict[str, float]:
        """Return a job's ``priority`` at ``now`` (s) and the variables in the formula."""
        columns = self._columns(np.array([self.attributes(job)], dtype=np.float64).T, now)
        value = float(self._formula.values(columns, 1)[0])
        return {"priority": value} | {name: float(np.ravel(column)[0]) for name, column in columns.items()}

    def _columns(self, table: Floats, now: float) -> dict[str, Floats | float]:
        """Return {variable of the formula: its values} at ``now`` (s).

        The values are an array with one per job, or one number for all jobs.
        """
        self._tree.advance(now)
        submit, size, walltime, priority, entity = table
        columns: dict[str, Floats | float] = {}
        code = None
        for name in self._formula.names:
            if name == "eligible_time":
                columns[name] = now - submit
            elif name == "ncpus":
                columns[name] = size
            elif name == "walltime":
                columns[name] = walltime
            elif name == "queue_priority":
                columns[name] = priority
            elif name == "accrue_type":
                columns[name] = _ELIGIBLE
            else:
                if code is None:
                    code = entity.astype(np.intp)
                columns[name] = _OF_ENTITY[name](self._tree)[code]
        return columns

    def started(self, job: SchedulerJob, now: float) -> None:
        """Charge the usage of a job to its fairshare entity, from ``now`` (s) on."""
        self._tree.started(self._entity(job), job.processors, now)

    def ended(self, job: SchedulerJob, now: float) -> None:
        """Stop charging the usage of a job to its fairshare entity."""
        self._tree.ended(self._entity(job), job.processors, now)

    def _entity(self, job: SchedulerJob) -> int:
        name = getattr(job.description, self.options.fairshare_entity) if job.description is not None else None
        return self._tree.code(name or "")
