"""The words for what becomes of jobs that failures strike."""

from typing import Final, Literal

#: where a job that has lost its nodes queues again: at its original submit time, as submitted now, or not at all
Requeue = Literal["original", "back", "never"]
#: what a new attempt's walltime is: what was asked for, or that less the work that is saved
RestartWalltime = Literal["full", "rest"]
#: whether dumps and reads take of the walltime that a user asked for, or it is extended by what they are expected to be
Walltime = Literal["asked", "extended"]
REQUEUES: Final[tuple[Requeue, ...]] = ("original", "back", "never")
RESTART_WALLTIMES: Final[tuple[RestartWalltime, ...]] = ("full", "rest")
WALLTIMES: Final[tuple[Walltime, ...]] = ("asked", "extended")
