"""The course of an attempt that ends with its first failure: most are such, and this one is quick."""

from collections.abc import Sequence

from pipistrelle.server.attempts.account import NOTHING, Account
from pipistrelle.server.attempts.segment import Segment


class RigidCourse:
    """A job that dumps its state, or not, and loses its allocation with any of its nodes.

    Parameters
    ----------
    start
        when it begins, in seconds of simulated time.
    work, saved
        how long the job takes, and how much of that earlier attempts have kept, in seconds.
    nodes
        the number of nodes of the allocation.
    interval, dump, read
        the time of work between two dumps, and how long dumps and reads take, in seconds.
    """

    __slots__ = ("_given_up", "_nodes", "_saved", "_segment", "_start", "_work", "finish")

    def __init__(
        self, *, start: float, work: float, saved: float, nodes: int, interval: float, dump: float, read: float
    ) -> None:
        self._start = start
        self._work = work
        self._saved = saved
        self._nodes = nodes
        self._given_up = 0
        self._segment = Segment(start, read if saved > 0 else 0.0, max(work - saved, 0.0), interval, dump)
        #: when the work will be done if nothing fails, in seconds of simulated time
        self.finish = self._segment.finish

    def strike(self, now: float, nodes: Sequence[int]) -> bool:
        """Let nodes of the allocation fail at ``now`` (s).

        Returns False: it must be given up now, with all that was not saved; True only if the work is done by then.
        """
        if now >= self.finish:
            return True
        self._given_up = len(nodes)
        return False

    def account(self, now: float) -> Account:
        """Return what became of the time until ``now`` (s), which is that of the failure once one has struck."""
        nodes = self._nodes
        phase = self._segment.at(now) if now >= self._start else NOTHING
        rest = (phase.working - phase.saved) * nodes
        lost = bool(self._given_up)
        return Account(
            self._work if now >= self.finish else self._saved + phase.saved,
            0.0 if lost else phase.working - phase.saved,
            phase.dumps,
            int(self._saved > 0 and now > self._start),
            0,
            self._given_up,
            phase.saved * nodes,
            0.0 if lost else rest,
            rest if lost else 0.0,
            phase.dumping * nodes,
            phase.reading * nodes,
            0.0,
            0.0,
            phase.dumping,
            phase.reading,
            nodes,
        )
