"""Formulas for the attempts of jobs that lose nodes.

The reference engine and the kernel both use them.
"""

from math import inf, log
from typing import Final, NamedTuple

from pipistrelle.platforms.failures.checkpointing import WorkPhase, done_at, dumps_until_done
from pipistrelle.server.errors import Stalled

#: attempts allowed without a limit
NO_LIMIT: Final = 1 << 62
#: shortest walltime (s) of a new attempt, even if all its work is saved
SHORTEST_WALLTIME: Final = 1.0
#: a job that loses this many attempts in succession without saving work never completes
MOST_FRUITLESS: Final = 10_000
#: after this many attempts without saved work, compute the expected number of attempts
CHECKED_AT: Final = 10
#: if more attempts are expected, the job completes within MOST_FRUITLESS losses with a chance below 10 %
EXPECTED_ATTEMPTS: Final = 100_000
#: larger powers of ten are written in scientific notation
_MANY_DECADES: Final = 1e6


def read_first(saved: float, read: float) -> float:
    """Return how long (s) an attempt reads its checkpoint when it starts.

    The time is 0 if no work was saved.
    """
    return read if saved > 0 else 0.0


def work_left(work: float, saved: float) -> float:
    """Return how much of the job's work (s) an attempt still has to do."""
    return max(work - saved, 0.0)


def extended_walltime(walltime: float, saved: float, slower: float, read: float, interval: float, dump: float) -> float:
    """Return a walltime (s) extended by the time for reading and writing checkpoints.

    Args:
        walltime: time (s) for the work alone; inf: no limit.
        saved: work (s) that earlier attempts saved; 0: there is no checkpoint to read.
        slower: factor by which everything takes longer because fewer nodes work.
        read: time (s) to read a checkpoint on the whole allocation.
        interval: work (s) between two checkpoints.
        dump: time (s) to write a checkpoint on the whole allocation.
    """
    if walltime == inf:
        return inf
    work = work_left(walltime + saved, saved) * slower
    return done_at(0.0, read_first(saved, read * slower), work, dumps_until_done(work, interval), dump * slower)


def next_walltime(asked: float, saved: float, rest: bool) -> float:
    """Return the walltime (s) of a new attempt.

    ``asked`` is the walltime (s) of the first attempt, and ``saved`` the work (s) saved since then. With ``rest``,
    the new walltime covers only the unsaved work.
    """
    return max(asked - saved, SHORTEST_WALLTIME) if rest else asked


def may_try_again(number: int, most: int) -> bool:
    """Return whether a job may have another attempt after attempt ``number`` (from 0).

    ``most`` is the maximum number of attempts.
    """
    return number + 1 < most


def fruitless_after(fruitless: int, before: float, saved: float) -> int:
    """Return how many consecutive attempts of a job, up to this one, saved no work.

    Args:
        fruitless: the number of consecutive attempts before this one that saved no work.
        before, saved: saved work (s) before and after this attempt.
    """
    return fruitless + 1 if saved == before else 0


def worked_until(now: float, began: float, ends: float) -> float:
    """Return the time (s) at which an attempt stopped working, before any epilogue.

    The attempt ends at ``now`` (s). Its work began at ``began`` (s) and would be complete at ``ends`` (s).
    """
    return min(max(now, began), ends)


class NodeTime(NamedTuple):
    """Node-seconds of an attempt by use.

    The uses are saved work, unsaved work, writing checkpoints and reading checkpoints.
    """

    saved: float
    unsaved: float
    dumping: float
    reading: float


def node_time(phase: WorkPhase, nodes: int) -> NodeTime:
    """Return the node-seconds by use of an attempt on ``nodes`` nodes.

    ``phase`` has the time (s) that the attempt has spent on each use.
    """
    return NodeTime(
        phase.saved * nodes, (phase.working - phase.saved) * nodes, phase.dumping * nodes, phase.reading * nodes
    )


def work_kept(work: float, saved: float, more: float, done: bool) -> float:
    """Return how much of a job's work (s) is saved after an attempt.

    ``more`` (s) is the work that the attempt saved in checkpoints. If the job is ``done``, all its ``work`` counts.
    """
    return work if done else saved + more


class WorkSplit(NamedTuple):
    """Work of an ended attempt that no checkpoint saved.

    It is useful (the job completed), unsaved (the job was ended), or lost with the nodes.
    """

    useful: float
    unsaved: float
    lost: float


def split_work(work: float, done: bool, lost: bool) -> WorkSplit:
    """Classify the work of an ended attempt that no checkpoint saved.

    ``done`` means that the job completed, ``lost`` that the attempt lost its nodes.
    """
    if lost:
        return WorkSplit(0.0, 0.0, work)
    if done:
        return WorkSplit(work, 0.0, 0.0)
    return WorkSplit(0.0, work, 0.0)


def time_to_save(rest: float, walltime: float, saved: float, read: float, interval: float, dump: float) -> float:
    """Return the least time (s) in which an attempt saves work or completes the job.

    The result is at most the walltime, at which the attempt is killed.

    Args:
        rest: work (s) that is not saved yet.
        walltime: time limit (s); inf: no limit.
        saved: work (s) that earlier attempts saved; 0: there is no checkpoint to read.
        read, dump: time (s) to read and to write a checkpoint.
        interval: work (s) between two checkpoints.
    """
    return min(read_first(saved, read) + min(rest, interval + dump), walltime)


def give_up_fruitless(name: str, fruitless: int, now: float) -> None:
    """Raise Stalled if a job has had too many consecutive attempts that saved no work."""
    if fruitless >= MOST_FRUITLESS:
        raise _never_done(name, fruitless, now, "", "It works longer than its nodes stay up together: {}.")


def give_up_hopeless(name: str, fruitless: int, now: float, time: float, hazard: float, most: int) -> None:
    """Raise Stalled if a job is expected to need more than ``most`` attempts.

    An attempt needs ``time`` seconds to save work. It succeeds with a probability of at most e^-hazard, so at least
    e^hazard attempts are expected (see `FailurePlan.hazard`).
    """
    if hazard > log(most):
        decades = f"{hazard / log(10):.0f}" if hazard < _MANY_DECADES else f"{hazard / log(10):.1e}"
        raise _never_done(
            name,
            fruitless,
            now,
            f"; at least 10^{decades} attempts are expected until its nodes stay up together for the {time:,.6g} s "
            "that it needs",
            "It is very unlikely ever to finish: {}, or let it continue with --expected-attempts 0.",
        )


def _never_done(name: str, fruitless: int, now: float, why: str, hint: str) -> Stalled:
    return Stalled(
        f"{name} has lost its nodes {fruitless:,} times, and has saved none of its work{why}",
        where=f"simulated time {now!r}",
        hint=hint.format("give --checkpoint or --max-attempts"),
    )
