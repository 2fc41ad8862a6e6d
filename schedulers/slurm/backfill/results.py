"""The results of backfill passes."""

from msgspec import Struct

from pipistrelle.schedulers.slurm.cluster.jobs import SlurmJob

#: kinds of outcomes
STARTED = "start"
RESERVES = "reserve"
#: the start lies beyond bf_window
BEYOND = "window"


class TestOutcome(Struct):
    """The result of backfill's test of one job.

    Attributes:
        kind: "start": the job starts now; "reserve": nodes are reserved for a later start; "window": the start lies
            beyond ``bf_window``; "": none of these.
        start, end: of the reservation, s; the end is rounded to ``bf_resolution``.
        nodes: set of the nodes on which the job starts now or later.
    """

    job: SlurmJob
    kind: str = ""
    start: int = 0
    end: int = 0
    nodes: int = 0


class BackfillResult(Struct):
    """The result of a backfill pass.

    Attributes:
        changed: whether the pass changed the table of jobs; if so, the next pass runs even without other changes.
        planned: set of idle nodes that were reserved (Slurm's state PLANNED).
    """

    outcomes: list[TestOutcome]
    started: list[SlurmJob]
    preempted: list[tuple[SlurmJob, SlurmJob]]
    note: str = ""
    changed: bool = False
    planned: int = 0
