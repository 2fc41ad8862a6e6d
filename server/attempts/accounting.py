"""Rules of attempts for both engines: pure functions, compiled for the kernel too."""

from math import inf, log
from typing import Final, NamedTuple

from pipistrelle.platforms.failures.checkpointing import WorkPhase, done_at, dumps_until_done
from pipistrelle.server.errors import Stalled

#: attempts allowed without a limit
NO_LIMIT: Final = 1 << 62
#: shortest walltime (s) of a new attempt, even if all its work is saved
SHORTEST_WALLTIME: Final = 1.0
#: a job that loses this many attempts in succession without saving anything will never be done
MOST_FRUITLESS: Final = 10_000
#: after this many such attempts, the expected number of attempts is computed
CHECKED_AT: Final = 10
#: with more expected attempts than this, a job is done before MOST_FRUITLESS losses with a chance below 10 %
EXPECTED_ATTEMPTS: Final = 100_000
#: larger powers of ten are written in scientific notation
_MANY_DECADES: Final = 1e6


def read_first(saved: float, read: float) -> float:
    """Return how long (s) an attempt first reads its checkpoint; 0 if no work is saved."""
    return read if saved > 0 else 0.0


def work_left(work: float, saved: float) -> float:
    """Return how much of a job's work (s) is left for an attempt."""
    return max(work - saved, 0.0)


def extended_walltime(walltime: float, saved: float, slower: float, read: float, interval: float, dump: float) -> float:
    """Return how long (s) work for a walltime (s) takes with reads and dumps.

    Args:
        slower: factor on all times, because fewer nodes work.
        read: time of a read on the whole allocation (s).
        interval: work between two dumps (s).
        dump: time of a dump on the whole allocation (s).
    """
    if walltime == inf:
        return inf
    work = work_left(walltime + saved, saved) * slower
    return done_at(0.0, read_first(saved, read * slower), work, dumps_until_done(work, interval), dump * slower)


def next_walltime(asked: float, saved: float, rest: bool) -> float:
    """Return the walltime (s) of a new attempt; ``rest``: only for the unsaved work."""
    return max(asked - saved, SHORTEST_WALLTIME) if rest else asked


def may_try_again(number: int, most: int) -> bool:
    """Return whether attempt ``number`` (from 0), of at most ``most``, may be followed by another."""
    return number + 1 < most


def fruitless_after(fruitless: int, before: float, saved: float) -> int:
    """Return how many attempts in succession saved nothing, after this one."""
    return fruitless + 1 if saved == before else 0


def worked_until(now: float, began: float, ends: float) -> float:
    """Return the time (s) up to which an attempt worked, without overheads."""
    return min(max(now, began), ends)


class NodeTime(NamedTuple):
    """Node-seconds of an attempt: work saved or done, work since then, dumps, and reads."""

    saved: float
    unsaved: float
    dumping: float
    reading: float


def node_time(phase: WorkPhase, nodes: int) -> NodeTime:
    """Return the node-seconds of a phase on ``nodes`` nodes."""
    return NodeTime(
        phase.saved * nodes, (phase.working - phase.saved) * nodes, phase.dumping * nodes, phase.reading * nodes
    )


def work_kept(work: float, saved: float, more: float, done: bool) -> float:
    """Return how much work (s) is kept after an attempt that dumped ``more``."""
    return work if done else saved + more


class WorkSplit(NamedTuple):
    """Work that is done, not dumped at an attempt's end, or lost with nodes."""

    useful: float
    unsaved: float
    lost: float


def split_work(work: float, done: bool, lost: bool) -> WorkSplit:
    """Classify the undumped work of an attempt that ends; ``lost``: whether it lost its nodes."""
    if lost:
        return WorkSplit(0.0, 0.0, work)
    if done:
        return WorkSplit(work, 0.0, 0.0)
    return WorkSplit(0.0, work, 0.0)


def time_to_save(rest: float, walltime: float, saved: float, read: float, interval: float, dump: float) -> float:
    """Return the shortest time (s) until an attempt is done or has saved something."""
    return min(read_first(saved, read) + min(rest, interval + dump), walltime)


def give_up_fruitless(name: str, fruitless: int, now: float) -> None:
    """Raise Stalled if a job has lost too many attempts without saving work."""
    if fruitless >= MOST_FRUITLESS:
        raise _never_done(name, fruitless, now, "", "It works longer than its nodes stay up together: {}.")


def give_up_hopeless(name: str, fruitless: int, now: float, time: float, hazard: float, most: int) -> None:
    """Raise Stalled if a job is expected to need more than ``most`` attempts.

    An attempt needs ``time`` s to save something. If its chance is at most e^-hazard on any nodes, at least e^hazard
    attempts are expected (`FailurePlan.hazard`).
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
