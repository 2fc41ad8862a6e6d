"""All that the kernel knows of a run, as plain arrays: what goes in, how far it is, what comes out."""

from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from pipistrelle.kernel.sets import WORD, words_of
from pipistrelle.kernel.waiting import Queue, make_queue

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_Columns = TypeVar("_Columns", "KernelSlots", "KernelLives", "Plans")

#: how jobs are ranked: by submit time less a boost, by walltime, or by a number given for each
BY_SUBMIT: Final = 0
BY_WALLTIME: Final = 1
BY_NUMBER: Final = 2
#: who may pass the first in the queue: nobody, whoever does not delay it, or all
NO_BACKFILL: Final = 0
EASY: Final = 1
FIRST_FIT: Final = 2

#: what a job is at the end of a run
COMING: Final = 0
WAITING: Final = 1
RUNNING: Final = 2
COMPLETED: Final = 3
AT_WALLTIME: Final = 4
GIVEN_UP: Final = 5

#: places in `KernelClock.ints`: the next row of the workload and of the outages, how many jobs run, repairs are to
#: come, units are free, jobs were started, jobs were submitted, rows are in the log, checks of hope are due; what tells
#: a run that has stalled; and of which jobs the reservation is, and what it leaves over
NEXT_JOB: Final = 0
NEXT_OUTAGE: Final = 1
RUN: Final = 2
REPAIRS: Final = 3
FREE: Final = 4
STARTED: Final = 5
SUBMITTED: Final = 6
ROWS: Final = 7
HOPES: Final = 8
IDLE_OUTAGES: Final = 9
IDLE_NOTICES: Final = 10
FIRST: Final = 11
EXTRA: Final = 12
MOVED: Final = 13
STRUCK: Final = 14
#: places in `KernelClock.floats`
NOW: Final = 0
SHADOW: Final = 1

#: places in `Plans.counts`: the next plan, how many steps are to come, windows are known, and levels there are, and how
#: many units are reserved, -1 if that is not known yet
NEXT_PLAN: Final = 0
STEPS: Final = 1
WINDOWS: Final = 2
LEVELS: Final = 3
RESERVED: Final = 4

#: so many attempts without any work saved, one after the other, and the caller looks whether there is hope
LOOKED_AT: Final = 10

#: columns of `Log.ints`
JOB: Final = 0
NUMBER: Final = 1
STATE: Final = 2
RETRIED: Final = 3
DUMPS: Final = 4
#: columns of `Log.floats`: times in seconds; from `USEFUL` on unit-seconds
CAME: Final = 0
START: Final = 1
END: Final = 2
ASKED: Final = 3
SAVED_BEFORE: Final = 4
SAVED: Final = 5
USEFUL: Final = 6
UNSAVED: Final = 7
LOST: Final = 8
DUMPING: Final = 9
READING: Final = 10


class Rules(NamedTuple):
    """What decides a run beside its jobs and outages.

    Parameters
    ----------
    order, backfill
        one of the constants above.
    failing, planned, placing, keeping
        whether nodes can go; whether for maintenance, too; whether it is followed which nodes a job gets; and whether
        that is written down.
    dumps
        whether jobs dump their state.
    dump, read
        how long a dump and the reading of one take (s).
    retries, original
        whether a job that lost its nodes comes back; and whether to its old place in the queue.
    most_attempts
        how often a job is started at most.
    limited
        whether `most_attempts` is a limit that was asked for.
    rest, extended
        whether a new attempt's walltime is what is left of the old; whether walltimes are extended by dumps and reads.
    hope
        whether the caller wants to look at jobs that lose all their work time and again.
    until
        the horizon (s).
    """

    order: int
    backfill: int
    failing: bool
    planned: bool
    placing: bool
    keeping: bool
    dumps: bool
    dump: float
    read: float
    retries: bool
    original: bool
    most_attempts: int
    limited: bool
    rest: bool
    extended: bool
    hope: bool
    until: float


class Jobs(NamedTuple):
    """The workload by columns, shape (jobs,): times in seconds; ``boost`` is what the order needs beside them."""

    submit: Floats
    size: Ints
    walltime: Floats
    runtime: Floats
    boost: Floats


class Outs(NamedTuple):
    """Outages by the time they go down; all that go down before ``known`` (s), which is `floats[0]`, are there."""

    node: Ints
    down: Floats
    up: Floats
    known: Floats


class Nodes(NamedTuple):
    """The machine: positions are its units in the order in which they are given away.

    Parameters
    ----------
    first, units
        of each node its first position, and how many it has.
    node
        of each position its node.
    interval
        by number of nodes, the time of work between two dumps (s).
    free
        the positions that are free and in service, in words.
    busy
        of each position, how long jobs held it that have ended (s).
    reasons, broken, planned, failed, since
        of each node: how many outages and maintenances keep it down, how many of them are outages, whether it was
        maintenance that took it down, how often it has failed, since when it is down (s).
    down
        how long each node was before (s), shape (2, nodes): by failures, for maintenance.
    together
        of each size, the least number of nodes that have so many units.
    """

    first: Ints
    units: Ints
    node: Ints
    interval: Floats
    free: Ints
    busy: Floats
    reasons: Ints
    broken: Ints
    planned: Ints
    failed: Ints
    since: Floats
    down: Floats
    together: Ints


class Plans(NamedTuple):
    """Maintenance: what is planned, what is known of it, and room for those who start around it; times in seconds.

    Parameters
    ----------
    announced, begin, end, which
        of each plan from when on it is known, from when until when it lasts, and the set of its nodes; by announcement.
    more
        whether there are plans after these: `more[0]`.
    sets
        the positions of set k in words from k * words on.
    position
        of each unit its position.
    step_time, step_set, step_kind
        begins and ends of what is known, by time; those of one time in the order in which they came to be known.
    window_begin, window_end, window_set
        what is known and not over, by begin.
    level_begin, level_closed, level_open, level_beside
        of each level the begin of the window that it ends before, the positions closed to it, in words, and how many
        free units are open, and not reserved; -1: not counted yet.
    open, reserved, taken
        positions, in words: open to a job, reserved for the first, and taken for the one that starts.
    end_time, end_slot
        the running jobs by when they end at the latest.
    counts
        see `NEXT_PLAN` and others.
    """

    announced: Floats
    begin: Floats
    end: Floats
    which: Ints
    more: Ints
    sets: Ints
    position: Ints
    step_time: Floats
    step_set: Ints
    step_kind: Ints
    window_begin: Floats
    window_end: Floats
    window_set: Ints
    level_begin: Floats
    level_closed: Ints
    level_open: Ints
    level_beside: Ints
    open: Ints
    reserved: Ints
    taken: Ints
    end_time: Floats
    end_slot: Ints
    counts: Ints


class KernelSlots(NamedTuple):
    """The running jobs, each in a slot; and, at the end, the repairs to come.

    Parameters
    ----------
    job, serial, nodes, dumps, in_time, low, high
        of each slot: the row, how many were started before, its nodes, its dumps if nothing fails, whether it will be
        done within its walltime, and between which words its positions are.
    start, until, ends, finish
        when it began, when its walltime is over, when it ends, when its work is done if its walltime allows (s).
    held
        the positions of slot s in words from s * words on.
    spare
        slots that are not in use.
    end_time, end_slot
        a heap of the ends to come.
    planned_time, planned_units, planned_slot
        the same jobs by the end of their walltimes.
    repair_time, repair_node
        a heap of the repairs to come.
    """

    job: Ints
    serial: Ints
    nodes: Ints
    dumps: Ints
    in_time: Ints
    low: Ints
    high: Ints
    start: Floats
    until: Floats
    ends: Floats
    finish: Floats
    held: Ints
    spare: Ints
    end_time: Floats
    end_slot: Ints
    planned_time: Floats
    planned_units: Ints
    planned_slot: Ints
    repair_time: Floats
    repair_node: Ints


class KernelLives(NamedTuple):
    """What became of each job, shape (jobs,); times in seconds.

    ``attempt`` counts those before the present one; ``saved``, ``fruitless``, ``walltime`` and ``came`` are of the
    present or last one, as are ``start`` and ``end``; ``waited`` and ``ran`` are sums over the attempts.
    """

    state: Ints
    attempt: Ints
    fruitless: Ints
    saved: Floats
    walltime: Floats
    came: Floats
    start: Floats
    end: Floats
    waited: Floats
    ran: Floats


class Log(NamedTuple):
    """Columns with a row for each attempt that has ended, where nodes can fail; and of each its positions, in words."""

    ints: Ints
    floats: Floats
    words: Ints


class KernelClock(NamedTuple):
    """Where a run stands, and room for lists: jobs that join or start, slots that are struck, checks of hope."""

    ints: Ints
    floats: Floats
    fresh: Ints
    chosen: Ints
    struck: Ints
    hopes: Floats


class State(NamedTuple):
    """A run that has not begun, or stands between two instants."""

    rules: Rules
    jobs: Jobs
    plans: Plans
    nodes: Nodes
    queue: Queue
    slots: KernelSlots
    lives: KernelLives
    clock: KernelClock


def make_log(rows: int, words: int, rules: Rules) -> Log:
    """Return an empty log with room for so many attempts."""
    kept = rows if rules.failing else 0
    return Log(
        np.empty((DUMPS + 1, kept), dtype=np.int64),
        np.empty((READING + 1, kept)),
        np.zeros((rows if rules.keeping else 0, words), dtype=np.int64),
    )


def make_state(rules: Rules, jobs: Jobs, node_of: Ints, interval: Floats) -> State:
    """Return a run at time 0.

    Parameters
    ----------
    node_of
        the node of each position; the positions of a node stand together.
    interval
        by number of nodes, the time of work between two dumps (s).
    """
    count, units = jobs.submit.size, node_of.size
    words = words_of(units)
    owners, first, each = np.unique(node_of, return_index=True, return_counts=True)
    assert owners.size == interval.size - 1, "each node has units, and each number of nodes an interval"
    most = int(each.max())
    nodes = Nodes(
        first.astype(np.int64),
        each.astype(np.int64),
        node_of,
        interval,
        words_with(np.ones(units, dtype=np.bool_)),
        np.zeros(words * WORD),
        np.zeros(owners.size, dtype=np.int64),
        np.zeros(owners.size, dtype=np.int64),
        np.zeros(owners.size, dtype=np.int64),
        np.zeros(owners.size, dtype=np.int64),
        np.full(owners.size, np.nan),
        np.zeros((2, owners.size)),
        -(-np.arange(units + 1, dtype=np.int64) // most),
    )
    slots = _blank(KernelSlots, units + 1)._replace(
        held=np.zeros((units + 1) * words if rules.placing else 0, dtype=np.int64),
        spare=np.arange(units, -1, -1, dtype=np.int64),
        repair_time=np.zeros(0),
        repair_node=np.zeros(0, dtype=np.int64),
    )
    lives = _blank(KernelLives, count)._replace(
        walltime=jobs.walltime.copy(),
        came=jobs.submit.copy(),
        start=np.full(count, np.nan),
        end=np.full(count, np.nan),
    )
    clock = KernelClock(
        np.zeros(STRUCK + 1, dtype=np.int64),
        np.zeros(SHADOW + 1),
        np.zeros(count + 1, dtype=np.int64),
        np.zeros(count + 1, dtype=np.int64),
        np.zeros(units + 1, dtype=np.int64),
        np.zeros((units, 2)),
    )
    clock.ints[FREE] = units
    clock.ints[FIRST] = -1
    return State(rules, jobs, make_plans(0, words), nodes, make_queue(count, units), slots, lives, clock)


def words_with(chosen: NDArray[np.bool_]) -> Ints:
    """Return words that have the positions where ``chosen``, shape (units,), is true."""
    words = words_of(chosen.size)
    bits = np.zeros(words * WORD, dtype=np.int64)
    bits[: chosen.size] = chosen
    made: Ints = (bits.reshape(words, WORD) << np.arange(WORD)).sum(axis=1)
    return made


def make_plans(units: int, words: int) -> Plans:
    """Return plans that there are none of, for a machine of so many units; 0 if there will be none."""
    blank = _blank(Plans, 0)
    return blank._replace(
        more=np.zeros(1, dtype=np.int64),
        open=np.zeros(words, dtype=np.int64),
        reserved=np.zeros(words, dtype=np.int64),
        taken=np.zeros(words, dtype=np.int64),
        end_time=np.zeros(units + 1),
        end_slot=np.zeros(units + 1, dtype=np.int64),
        counts=np.zeros(RESERVED + 1, dtype=np.int64),
    )


def _blank(kind: type[_Columns], count: int) -> _Columns:
    """Return columns of zeros, ``count`` each."""
    return kind._make(
        np.zeros(count, dtype=np.float64 if hint == Floats else np.int64) for hint in kind.__annotations__.values()
    )
