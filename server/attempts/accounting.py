"""The rules of attempts, which both engines follow: pure functions of scalars, compiled unchanged for the kernel."""

from math import inf, log
from typing import Final, NamedTuple

from pipistrelle.platforms.failures.checkpointing import WorkPhase, done_at, dumps_until_done
from pipistrelle.server.errors import Stalled

#: how often a job may start if no limit was given
NO_LIMIT: Final = 1 << 62
#: a new attempt's walltime (s) is never less, even if all its work is saved
SHORTEST_WALLTIME: Final = 1.0
#: a job that loses so many attempts in succession, and all that they did, will never be done
MOST_FRUITLESS: Final = 10_000
#: after so many, the expected number of attempts is worked out
CHECKED_AT: Final = 10
#: a job that can be expected to need more is done with a chance below 10 % before it has lost 10,000, which end a run
EXPECTED_ATTEMPTS: Final = 100_000
#: powers of ten from here on are written in powers of ten
_MANY_DECADES: Final = 1e6


def read_first(saved: float, read: float) -> float:
    """Return how long (s) an attempt reads before it works; ``saved`` is the work (s) that earlier attempts kept."""
    return read if saved > 0 else 0.0


def work_left(work: float, saved: float) -> float:
    """Return how much of a job's work (s) an attempt has to do."""
    return max(work - saved, 0.0)


def extended_walltime(walltime: float, saved: float, slower: float, read: float, interval: float, dump: float) -> float:
    """Return how long (s) work for a walltime (s) takes with its dumps, and a read if some is saved.

    ``read`` and ``dump`` (s) are those of the whole allocation; all takes ``slower`` times as long on the nodes that
    work, with a dump after each ``interval`` (s).
    """
    if walltime == inf:
        return inf
    work = work_left(walltime + saved, saved) * slower
    return done_at(0.0, read_first(saved, read * slower), work, dumps_until_done(work, interval), dump * slower)


def next_walltime(asked: float, saved: float, rest: bool) -> float:
    """Return the walltime (s) of a new attempt; ``rest``: only for the work that is not saved."""
    return max(asked - saved, SHORTEST_WALLTIME) if rest else asked


def may_try_again(number: int, most: int) -> bool:
    """Return whether attempt ``number``, counted from 0, may be followed by another; ``most`` attempts are allowed."""
    return number + 1 < most


def fruitless_after(fruitless: int, before: float, saved: float) -> int:
    """Return how many attempts in succession kept nothing, after one that turned ``before`` s saved into ``saved``."""
    return fruitless + 1 if saved == before else 0


def worked_until(now: float, began: float, ends: float) -> float:
    """Return the time (s) up to which an attempt has worked: neither in its prologue nor in its epilogue."""
    return min(max(now, began), ends)


class NodeTime(NamedTuple):
    """Node-seconds of a stretch of work: what is saved or done, what came after it, dumps and reads."""

    saved: float
    unsaved: float
    dumping: float
    reading: float


def node_time(phase: WorkPhase, nodes: int) -> NodeTime:
    """Return what so many nodes spent their time on."""
    return NodeTime(
        phase.saved * nodes, (phase.working - phase.saved) * nodes, phase.dumping * nodes, phase.reading * nodes
    )


def work_kept(work: float, saved: float, more: float, done: bool) -> float:
    """Return how much of a job's work (s) is kept after an attempt that dumped ``more``: all of it once it is done."""
    return work if done else saved + more


class WorkSplit(NamedTuple):
    """Work that is done, work that an attempt's end left undumped, and work that was lost with the nodes."""

    useful: float
    unsaved: float
    lost: float


def split_work(work: float, done: bool, lost: bool) -> WorkSplit:
    """Return what becomes of work that is in no dump when an attempt ends; ``lost``: with the loss of its nodes."""
    if lost:
        return WorkSplit(0.0, 0.0, work)
    if done:
        return WorkSplit(work, 0.0, 0.0)
    return WorkSplit(0.0, work, 0.0)


def time_to_save(rest: float, walltime: float, saved: float, read: float, interval: float, dump: float) -> float:
    """Return how long (s) an attempt must work at least until it is done or has saved something.

    ``rest`` is the work that is left, ``interval`` that between two dumps; inf: there are no dumps.
    """
    return min(read_first(saved, read) + min(rest, interval + dump), walltime)


def give_up_fruitless(name: str, fruitless: int, now: float) -> None:
    """Raise Stalled if a job that lost its nodes at ``now`` (s) has lost too many attempts in succession."""
    if fruitless >= MOST_FRUITLESS:
        raise _never_done(name, fruitless, now, "", "It works longer than its nodes stay up together: {}.")


def give_up_hopeless(name: str, fruitless: int, now: float, time: float, hazard: float, most: int) -> None:
    """Raise Stalled if a job can be expected to need more attempts than ``most``.

    An attempt that is to save something must work for ``time`` s. If the chance for that is at most e^-hazard on any
    nodes of the machine, e^hazard attempts or more are to be expected (`FailurePlan.hazard`).
    """
    if hazard > log(most):
        decades = f"{hazard / log(10):.0f}" if hazard < _MANY_DECADES else f"{hazard / log(10):.1e}"
        raise _never_done(
            name,
            fruitless,
            now,
            f"; 10^{decades} attempts or more are to be expected until its nodes stay up together for the "
            f"{time:,.6g} s that it needs",
            "It will hardly ever be done: {}, or let it try on with --expected-attempts 0.",
        )


def _never_done(name: str, fruitless: int, now: float, why: str, hint: str) -> Stalled:
    return Stalled(
        f"{name} has lost its nodes {fruitless:,} times, and has saved none of its work{why}",
        where=f"simulated time {now!r}",
        hint=hint.format("give --checkpoint or --max-attempts"),
    )
