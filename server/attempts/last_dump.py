"""The last checkpoint that a preempted attempt writes before it ends."""

from collections.abc import Sequence
from math import inf
from typing import Protocol

from pipistrelle.protocol.base.state import message_of, plain, register
from pipistrelle.server.attempts.progress import Account


class _Course(Protocol):
    """The progress of a preempted attempt before its last checkpoint."""

    def account(self, now: float) -> Account:
        """Return how the attempt's time until ``now`` (s) was spent."""


class LastDump:
    """The end of a preempted attempt, which writes one last checkpoint.

    The checkpoint is complete exactly at ``end``. If a node fails before that, the allocation and the unsaved work are
    lost, even if the job tolerates failures.

    Args:
        begin: time (s) at which writing starts, or from which a checkpoint in progress continues.
        team: number of nodes that write the checkpoint.
        struck: time (s) of a failure or early end; inf: none.
        fallen: number of nodes that failed at ``struck``.
    """

    __slots__ = ("_begin", "_course", "_fallen", "_struck", "_team", "end")
    #: an attempt that ends with a last dump never completes its work
    finish = inf

    def __init__(
        self, course: _Course, begin: float, end: float, team: int, struck: float = inf, fallen: int = 0
    ) -> None:
        self._course = course
        self._begin = begin
        self.end = end
        self._team = team
        self._struck, self._fallen = struck, fallen

    @property
    def saves(self) -> bool:
        """Whether there is unsaved work for the checkpoint to save."""
        return self._course.account(self._begin).node_unsaved > 0

    def strike(self, now: float, nodes: Sequence[int]) -> bool:
        """Record that nodes of the job fail at ``now`` (s).

        Return whether the checkpoint was already complete.
        """
        if now >= self.end:
            return True
        self._struck, self._fallen = now, len(nodes)
        return False

    def give_up(self, now: float) -> None:
        """End the allocation at ``now`` (s); an incomplete checkpoint saves nothing."""
        self.strike(now, ())

    def left_of_dump(self, now: float, dump: float) -> tuple[float, int]:
        """Return how long (s) the checkpoint still takes, and how many nodes write it."""
        return max(self.end - now, 0.0), self._team

    def account(self, now: float) -> Account:
        """Return how the time until ``now`` (s) was spent.

        ``now`` is not before ``begin``.
        """
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
