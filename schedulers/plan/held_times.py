"""How long jobs hold their units beside their walltimes: prologue and epilogue."""

from pipistrelle.protocol.events import SimulationBeginsData
from pipistrelle.protocol.units.nodesets import NodeSet


class HeldTimes:
    """Knows the most that a job can take for prologue and epilogue, by its class.

    It is those of its class, and in addition the longest of the pools that it may get units of: which these will be
    nobody knows as long as it waits.
    """

    def __init__(self, begins: SimulationBeginsData) -> None:
        platform = begins.platform
        pools = () if platform is None else platform.pools
        #: of jobs without a class, s
        self._usual = self._longest([(pool.prologue, pool.epilogue) for pool in pools])
        self._classes: dict[str, float] = {}
        for one in () if platform is None else platform.classes:
            units = NodeSet.parse(one.units)
            times = [(p.prologue, p.epilogue) for p in pools if not units.isdisjoint(NodeSet.parse(p.units))]
            self._classes[one.name] = self._longest(times, one.prologue, one.epilogue)

    @staticmethod
    def _longest(times: list[tuple[float, float]], before: float = 0.0, after: float = 0.0) -> float:
        # In the order in which the server adds up, so that an end is expected at just the double where it will be.
        longest = [max((time[at] for time in times), default=0.0) for at in (0, 1)]
        return (before + longest[0]) + (after + longest[1])

    def of(self, queue: str | None) -> float:
        """Return the seconds that a job of this queue takes at most beside its walltime."""
        return self._usual if queue is None else self._classes.get(queue, self._usual)
