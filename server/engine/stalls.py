"""Detect runs that would never end."""

from itertools import islice
from typing import Final

from pipistrelle.protocol.base.errors import legible
from pipistrelle.protocol.base.state import Kept
from pipistrelle.server.engine.cluster import Cluster
from pipistrelle.server.errors import Stalled

#: more notices than this, at one instant or on an idle machine where no job changes, are an endless loop
MAX_FRUITLESS: Final = 10_000
_NAMED: Final = 3
#: maximum characters shown of the purposes for which the scheduler keeps units
_SHOWN: Final = 1000


class StallDetector(Kept):
    """A counter of notices without effect, which detects a run that would never end.

    ``retries`` is True if jobs can lose their units.
    """

    _kept = ("_instant", "_notices", "_steps", "_fruitless")
    __slots__ = ("_fruitless", "_instant", "_notices", "_retries", "_steps")

    def __init__(self, *, retries: bool) -> None:
        self._retries = retries
        self._instant = -1.0
        self._notices = 0
        self._steps = -1
        self._fruitless = 0

    def same_instant(self, now: float, cluster: Cluster) -> None:
        """Count a notice to the scheduler.

        Raise Stalled after too many notices at the same simulated time.
        """
        if now != self._instant:
            self._instant = now
            self._notices = 0
        self._notices += 1
        if self._notices > MAX_FRUITLESS:
            raise Stalled(
                f"{MAX_FRUITLESS:,} notices were sent at simulated time {now!r} without time advancing",
                found=describe_waiting(cluster),
                hint="The scheduler keeps repeating a rejected decision, or keeps asking to be called at once.",
            )

    def idle(self, now: float, cluster: Cluster) -> None:
        """Count a notice sent while no job runs.

        Raise Stalled after too many notices without effect.
        """
        if cluster.steps != self._steps:
            self._steps = cluster.steps
            self._fruitless = 0
        self._fruitless += 1
        if self._fruitless > MAX_FRUITLESS:
            raise Stalled(
                f"{MAX_FRUITLESS:,} notices had no effect while the machine is idle",
                where=f"simulated time {now!r}",
                found=describe_waiting(cluster),
                hint="The jobs need more units than are ever up together, or more time than there is between "
                "maintenances, or the scheduler starts nothing."
                if self._retries
                else "The scheduler keeps asking to be called, but starts and rejects nothing.",
            )

    def nothing_to_come(self, now: float, cluster: Cluster, *, registering: bool = False) -> None:
        """Raise Stalled if jobs are queued or running; call this when no event is left.

        ``registering`` means that the scheduler may still register jobs. Then raise Stalled even if no job is left.
        """
        if cluster.waiting:
            raise Stalled(
                "the run stalled: jobs wait, nothing runs, and no event is left",
                where=f"simulated time {now!r}",
                expected="the scheduler to start or reject every job",
                found=describe_waiting(cluster),
                hint="The scheduler replied to the last notice without starting or rejecting them"
                + (", or the nodes that they need are never repaired" if self._retries else "")
                + ". It must start a job as soon as it fits, reject a job that never will, or ask to be called later.",
            )
        if cluster.running:
            raise Stalled(
                "the run stalled: the running jobs never end by themselves, and no event is left",
                where=f"simulated time {now!r}",
                found=", ".join(islice(cluster.running, _NAMED)),
                hint="The scheduler declared that they run. It must also declare their end.",
            )
        if registering:
            raise Stalled(
                "the run stalled: every job is done, but the scheduler may still register jobs",
                where=f"simulated time {now!r}",
                expected="NOTIFY registration_finished after the last registration",
                hint="Let the scheduler send it, or do not let it register jobs.",
            )


def describe_waiting(cluster: Cluster) -> str:
    """Describe why jobs may wait.

    The text names queued and running jobs, free units, and units that the scheduler keeps free on purpose.
    """
    names = [f"{job.id} ({job.size} units)" for job in islice(cluster.waiting.values(), _NAMED)]
    more = len(cluster.waiting) - len(names)
    text = f"{len(cluster.waiting)} waiting, {len(cluster.running)} running, {cluster.ledger.idle} units free"
    if names:
        text += f"; first {', '.join(names)}{f' and {more} more' if more > 0 else ''}"
    if cluster.keeps:
        text += f"; units are kept by {legible(', '.join(cluster.keeps), _SHOWN)}"
    return text
