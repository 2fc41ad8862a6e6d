"""Jobs in bins by size, each with an age boost and a walltime limit, as on Titan."""

from bisect import bisect_right
from math import inf
from typing import Annotated, Literal

from msgspec import Meta, Struct

from pipistrelle.protocol.base.lengths import seconds_of
from pipistrelle.schedulers.policy.interfaces import Stateless
from pipistrelle.schedulers.policy.jobs import SchedulerJob


class Bin(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The jobs of at least ``smallest`` units, but fewer than the next bin's ``smallest``.

    The two durations are seconds, or texts that `seconds_of` reads, such as ``168h``.

    Attributes:
        boost: time added to the time waited.
        longest_walltime: longest walltime that a job may request.
    """

    name: str
    smallest: Annotated[int, Meta(ge=1)]
    boost: float | str = 0.0
    longest_walltime: float | str = inf

    def __post_init__(self) -> None:
        """Raise ValueError for a number out of range."""
        if not -inf < seconds_of(self.boost, "boost") < inf:
            raise ValueError(f"expected a finite boost, found {self.boost!r}")
        if not seconds_of(self.longest_walltime, "longest-walltime") > 0.0:
            raise ValueError(f"expected a longest-walltime above 0, found {self.longest_walltime!r}")


class BinsOptions(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Options of the order ``bins``.

    ``over_limit`` says what happens to jobs beyond their bin's walltime limit.
    """

    bins: tuple[Bin, ...] = ()
    over_limit: Literal["reject", "run"] = "reject"

    def __post_init__(self) -> None:
        """Raise ValueError if two bins begin at the same size."""
        seen: set[int] = set()
        for one in self.bins:
            if one.smallest in seen:
                raise ValueError(f"expected bins with different smallest sizes, found two with {one.smallest}")
            seen.add(one.smallest)


class Bins(Stateless):
    """The queue order ``bins``: by time waited plus the bin's boost, longest first.

    All jobs age equally, so the order of two waiting jobs never changes: it is that of submit time minus boost. A job
    smaller than every bin has no boost and no limit.
    """

    arrivals_last = False

    def __init__(self, options: BinsOptions | None = None) -> None:
        options = options or BinsOptions()
        self._bins = sorted(options.bins, key=lambda one: one.smallest)
        self._begins = [one.smallest for one in self._bins]
        self._boosts = [seconds_of(one.boost) for one in self._bins]
        self._refuses = options.over_limit == "reject"

    def bin_of(self, job: SchedulerJob) -> Bin | None:
        """Return the job's bin; None if it is smaller than every bin."""
        at = bisect_right(self._begins, job.processors)
        return self._bins[at - 1] if at else None

    def rank(self, job: SchedulerJob) -> float:
        """Return the submit time minus the boost of the job's bin (s).

        The job with the lowest value is first.
        """
        at = bisect_right(self._begins, job.processors)
        return job.submit - self._boosts[at - 1] if at else job.submit

    def terms(self, job: SchedulerJob, now: float) -> dict[str, float]:
        """Return a job's ``priority`` at ``now`` and its parts: time waited and boost (s)."""
        waited, boost = now - job.submit, job.submit - self.rank(job)
        return {"priority": waited + boost, "waited": waited, "boost": boost}

    def refusal(self, job: SchedulerJob) -> str | None:
        """Return why the job is rejected; None if it is accepted."""
        found = self.bin_of(job)
        if not self._refuses or found is None:
            return None
        limit = seconds_of(found.longest_walltime)
        asks = "no walltime limit" if job.walltime == inf else f"{job.walltime:g} s"
        return None if job.walltime <= limit else f"asks for {asks}, bin {found.name} allows {limit:g} s"
