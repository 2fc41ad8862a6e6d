"""An attempt that writes one more dump before it gives its allocation up, as it is preempted."""

from collections.abc import Sequence
from math import inf
from typing import Protocol

from pipistrelle.protocol.base.state import message_of, plain, register
from pipistrelle.server.attempts.progress import Account


class _Course(Protocol):
    """How an attempt goes on."""

    def account(self, now: float) -> Account:
        """Return what became of the time until ``now`` (s)."""


class LastDump:
    """Goes on from an attempt's course at a time with a dump and nothing else.

    The dump is complete at its very end. Should a node fail before, the allocation is given up, with what the dump was
    to save, whatever nodes the job could do without: it is on its way out.

    Parameters
    ----------
    course
        the attempt's until then; it goes on no more.
    begin, end
        of the dump, in seconds of simulated time; if a dump was being written by then, the rest of that.
    team
        how many nodes write.
    """

    __slots__ = ("_begin", "_course", "_fallen", "_struck", "_team", "end")
    #: the work is never done
    finish = inf

    def __init__(
        self, course: _Course, begin: float, end: float, team: int, struck: float = inf, fallen: int = 0
    ) -> None:
        self._course = course
        self._begin = begin
        #: when the dump is complete, in seconds of simulated time
        self.end = end
        self._team = team
        #: when nodes have failed, or it was given up (s), and how many; inf: it goes on
        self._struck, self._fallen = struck, fallen

    @property
    def saves(self) -> bool:
        """Whether there is any work for it to save."""
        return self._course.account(self._begin).node_unsaved > 0

    def strike(self, now: float, nodes: Sequence[int]) -> bool:
        """Let nodes fail at ``now`` (s); return whether the dump is complete by then."""
        if now >= self.end:
            return True
        self._struck, self._fallen = now, len(nodes)
        return False

    def give_up(self, now: float) -> None:
        """Let the allocation be given up at ``now`` (s): what the dump was to save is lost unless it is complete."""
        self.strike(now, ())

    def left_of_dump(self, now: float, dump: float) -> tuple[float, int]:
        """Return how long (s) the dump takes from ``now`` (s) on, and how many nodes write it."""
        return max(self.end - now, 0.0), self._team

    def account(self, now: float) -> Account:
        """Return what became of the time until ``now`` (s), not before the dump's begin."""
        before = self._course.account(self._begin)
        passed = min(now, self.end) - self._begin
        down = before.nodes_lost
        idle = before.nodes - self._team - down
        spent = before._replace(
            dumping=before.dumping + passed,
            node_dumping=before.node_dumping + passed * self._team,
            node_spare=before.node_spare + passed * idle,
            node_down=before.node_down + passed * down,
        )
        if now >= self.end:
            return spent._replace(
                saved=before.saved + before.unsaved,
                unsaved=0.0,
                dumps=before.dumps + (before.node_unsaved > 0),
                node_useful=before.node_useful + before.node_unsaved,
                node_unsaved=0.0,
            )
        if self._struck < inf:
            lost = before.node_lost + before.node_unsaved
            return spent._replace(unsaved=0.0, node_unsaved=0.0, node_lost=lost, nodes_lost=down + self._fallen)
        return spent


register(
    LastDump,
    lambda dump: [plain(dump._course), dump._begin, dump.end, dump._team, dump._struck, dump._fallen],
    lambda state: LastDump(*map(message_of, state)),
)
