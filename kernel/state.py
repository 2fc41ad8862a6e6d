"""All that the kernel knows of a run, as arrays and records: what goes in, how far it is, what comes out."""

from math import inf
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from pipistrelle.kernel.sets import WORD, Floats, Ints, Rows, record_of, rows_of, words_of
from pipistrelle.kernel.waiting import Queue, make_queue

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
    rest, extended
        whether a new attempt's walltime is what is left of the old; whether walltimes are extended by dumps and reads.
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
    rest: bool
    extended: bool
    until: float


class Jobs(NamedTuple):
    """The workload by columns, shape (jobs,): times in seconds; ``boost`` is what the order needs beside them."""

    submit: Floats
    size: Ints
    walltime: Floats
    runtime: Floats
    boost: Floats


class Outs(NamedTuple):
    """Outages by the time they go down (s); all that go down before ``known`` (s) are there."""

    node: Ints
    down: Floats
    up: Floats
    known: float


#: nothing ever fails
NEVER: Final = Outs(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0), inf)


class KernelNode:
    """The record of a node.

    ``first`` is its first position, ``units`` how many it has. ``reasons`` counts the outages and maintenances that
    keep it down, ``broken`` the outages among them; ``planned`` tells whether it was maintenance that took it down,
    ``failed`` how often it has failed, ``since`` since when it is down (s).
    """

    first: int
    units: int
    reasons: int
    broken: int
    planned: int
    failed: int
    since: float


class Nodes(NamedTuple):
    """The machine: positions are its units in the order in which they are given away.

    Parameters
    ----------
    rows
        the nodes: `KernelNode`.
    node
        of each position its node.
    interval
        by number of nodes, the time of work between two dumps (s).
    free
        the positions that are free and in service, in words.
    busy
        of each position, how long jobs held it that have ended (s).
    down
        how long each node was before (s), shape (2, nodes): by failures, for maintenance.
    together
        of each size, the least number of nodes that have so many units.
    """

    rows: Rows
    node: Ints
    interval: Floats
    free: Ints
    busy: Floats
    down: Floats
    together: Ints


class PlannedRow:
    """The record of one maintenance: when it is announced, begins and ends (s), and the set of its nodes."""

    announced: float
    begin: float
    end: float
    which: int


class LevelRow:
    """The record of a level: the units that are open to jobs which end before the ``begin`` (s) of the next window.

    ``open`` and ``beside`` count the free units among them, and those that are not reserved; -1: not counted yet.
    """

    begin: float
    open: int
    beside: int


class PlanCounts:
    """A record: the next plan, whether there are plans after those that are known, and how long the lists are.

    ``reserved`` counts the units that are reserved; -1: not known yet.
    """

    next: int
    more: int
    steps: int
    windows: int
    levels: int
    reserved: int


class Plans(NamedTuple):
    """Maintenance: what is planned, what is known of it, and room for those who start around it; times in seconds.

    Parameters
    ----------
    coming
        the plans by announcement: `PlannedRow`.
    sets
        the positions of set k in words from k * words on.
    position
        of each unit its position.
    step_time, step_set, step_kind
        begins and ends of what is known, by time; those of one time in the order in which they came to be known.
    windows
        what is known and not over, by begin: `PlannedRow`.
    levels, level_closed
        `LevelRow`, and of each level the positions that are closed to it, in words.
    open, reserved, taken
        positions, in words: open to a job, reserved for the first, and taken for the one that starts.
    end_time, end_slot
        the running jobs by when they end at the latest.
    counts
        `PlanCounts`.
    """

    coming: Rows
    sets: Ints
    position: Ints
    step_time: Floats
    step_set: Ints
    step_kind: Ints
    windows: Rows
    levels: Rows
    level_closed: Ints
    open: Ints
    reserved: Ints
    taken: Ints
    end_time: Floats
    end_slot: Ints
    counts: PlanCounts


class SlotRow:
    """The record of a running job.

    Its positions are between the words ``low`` and ``high``. It began at ``start``, ends at ``ends``, and its work is
    done at ``finish`` if its walltime allows (s); ``in_time`` tells whether that is so. It has so many ``nodes``, makes
    ``dumped`` dumps if nothing fails, and ``serial`` jobs were started before.
    """

    low: int
    high: int
    start: float
    ends: float
    finish: float
    in_time: int
    nodes: int
    dumped: int
    serial: int


class KernelSlots(NamedTuple):
    """The running jobs, each in a slot; and, at the end, the repairs to come.

    Parameters
    ----------
    job, until
        of each slot the job's row, and when its walltime is over (s).
    rows
        of each slot: `SlotRow`.
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
    until: Floats
    rows: Rows
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
    """The attempts that have ended, where nodes can fail; times in seconds, from ``useful`` on unit-seconds.

    ``words`` has the positions of each attempt, shape (rows, words); where nothing fails, of each job.
    """

    job: Ints
    number: Ints
    state: Ints
    retried: Ints
    dumps: Ints
    came: Floats
    start: Floats
    end: Floats
    asked: Floats
    saved_before: Floats
    saved: Floats
    useful: Floats
    unsaved: Floats
    lost: Floats
    dumping: Floats
    reading: Floats
    words: Ints


class KernelClock:
    """The record of where a run stands.

    ``next_job`` and ``next_outage`` are rows of the workload and of the outages. ``running`` counts the jobs that run,
    ``repairs`` those to come, ``free`` the free units, ``started`` and ``submitted`` the jobs, ``rows`` those of the
    log, ``struck`` and ``hopes`` what is in those lists. ``idle_outages``, ``idle_notices`` and ``moved`` tell a run
    that has stalled. The reservation is for the job ``first`` (-1: none) at ``shadow`` (s), and leaves ``extra`` units.
    """

    now: float
    next_job: int
    next_outage: int
    running: int
    repairs: int
    free: int
    started: int
    submitted: int
    rows: int
    hopes: int
    idle_outages: int
    idle_notices: int
    moved: int
    struck: int
    first: int
    extra: int
    shadow: float


class KernelLists(NamedTuple):
    """Room for lists: jobs that join, jobs that start, slots that are struck, jobs to check.

    Of those to check, ``needed`` is how long each must work until it has saved something (s).
    """

    fresh: Ints
    chosen: Ints
    struck: Ints
    hopes: Ints
    needed: Floats


class State(NamedTuple):
    """A run that has not begun, or stands between two instants."""

    rules: Rules
    jobs: Jobs
    outages: Outs
    plans: Plans
    nodes: Nodes
    queue: Queue
    slots: KernelSlots
    lives: KernelLives
    log: Log
    clock: KernelClock
    lists: KernelLists


def make_state(rules: Rules, jobs: Jobs, node_of: Ints, interval: Floats) -> State:
    """Return a run at time 0 in which nothing fails, with room in the log for one attempt per job and some more.

    Parameters
    ----------
    node_of
        the node of each position; the positions of a node stand together.
    interval
        by number of nodes, the time of work between two dumps (s).
    """
    count, units = jobs.submit.size, node_of.size
    words, rows = words_of(units), count + max(count // 8, 64) + units
    owners, first, each = np.unique(node_of, return_index=True, return_counts=True)
    assert owners.size == interval.size - 1, "each node has units, and each number of nodes an interval"
    nodes = Nodes(
        rows_of(KernelNode, owners.size),
        node_of,
        interval,
        words_with(np.ones(units, dtype=np.bool_)),
        np.zeros(words * WORD),
        np.zeros((2, owners.size)),
        -(-np.arange(units + 1, dtype=np.int64) // int(each.max())),
    )
    nodes.rows.first, nodes.rows.units, nodes.rows.since = first, each, np.nan
    slots = _blank(KernelSlots, units + 1)._replace(
        rows=rows_of(SlotRow, units + 1),
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
    # Two large blocks: small arrays are given back and asked for anew with each run, which takes long.
    ended = rows if rules.failing else 0
    ints, floats = np.zeros((5, ended), dtype=np.int64), np.zeros((11, ended))
    log = Log._make((*ints, *floats, np.zeros((rows if rules.keeping else 0, words), dtype=np.int64)))
    clock = record_of(KernelClock)
    clock.free, clock.first = units, -1
    lists = KernelLists(
        np.zeros(count + 1, dtype=np.int64),
        np.zeros(count + 1, dtype=np.int64),
        np.zeros(units + 1, dtype=np.int64),
        np.zeros(units, dtype=np.int64),
        np.zeros(units),
    )
    plans = make_plans(0, words)
    return State(rules, jobs, NEVER, plans, nodes, make_queue(count, units), slots, lives, log, clock, lists)


def words_with(chosen: NDArray[np.bool_]) -> Ints:
    """Return words that have the positions where ``chosen``, shape (units,), is true."""
    words = words_of(chosen.size)
    bits = np.zeros(words * WORD, dtype=np.int64)
    bits[: chosen.size] = chosen
    made: Ints = (bits.reshape(words, WORD) << np.arange(WORD)).sum(axis=1)
    return made


def make_plans(units: int, words: int) -> Plans:
    """Return plans that there are none of, for a machine of so many units; 0 if there will be none."""
    return _blank(Plans, 0)._replace(
        coming=rows_of(PlannedRow, 0),
        windows=rows_of(PlannedRow, 0),
        levels=rows_of(LevelRow, 0),
        open=np.zeros(words, dtype=np.int64),
        reserved=np.zeros(words, dtype=np.int64),
        taken=np.zeros(words, dtype=np.int64),
        end_time=np.zeros(units + 1),
        end_slot=np.zeros(units + 1, dtype=np.int64),
        counts=record_of(PlanCounts),
    )


def _blank(kind: type[_Columns], count: int) -> _Columns:
    """Return columns of zeros, ``count`` each."""
    return kind._make(
        np.zeros(count, dtype=np.float64 if hint == Floats else np.int64) for hint in kind.__annotations__.values()
    )
