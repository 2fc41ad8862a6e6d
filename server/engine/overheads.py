"""The time that a job's units are taken beside its work: prologue and epilogue."""

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.topology.numbering import NodeUnits
from pipistrelle.server.engine.jobs import Job


class Overheads:
    """Knows how long jobs take before they begin to work and after they have ended.

    A job takes the longest of the pools that it has units of, and in addition that of its class.
    """

    def __init__(self, platform: Platform) -> None:
        self._pools = [
            (first, first + count * each, pool.prologue, pool.epilogue)
            for pool, (_, count, first, each) in zip(platform.pools, NodeUnits.of(platform).pools, strict=True)
        ]
        self._classes = {one.name: (one.prologue, one.epilogue) for one in platform.classes}

    @classmethod
    def where_there_are(cls, platform: Platform) -> "Overheads | None":
        """Return those of a machine, None if its jobs never take any such time."""
        times = [(pool.prologue, pool.epilogue) for pool in platform.pools]
        times += [(one.prologue, one.epilogue) for one in platform.classes]
        return cls(platform) if any(before or after for before, after in times) else None

    def of(self, job: Job) -> tuple[float, float]:
        """Return how long a job that has its units takes before and after its work, in seconds."""
        before, after = self._classes.get(job.queue or "", (0.0, 0.0))
        longest = [0.0, 0.0]
        for begin, end, prologue, epilogue in self._pools:
            if any(low < end and high >= begin for low, high in job.alloc.intervals):
                longest = [max(longest[0], prologue), max(longest[1], epilogue)]
        return before + longest[0], after + longest[1]
