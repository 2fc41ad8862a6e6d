"""The kernel's state of a run, as arrays and records."""

from math import inf
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from pipistrelle.kernel.sets import WORD, Floats, Ints, Rows, record_of, rows_of, words_of
from pipistrelle.kernel.waiting import Queue, make_queue

_Columns = TypeVar("_Columns", "KernelSlots", "KernelLives", "Plans")

#: how jobs are ranked: by submit time minus a boost, or by walltime
BY_SUBMIT: Final = 0
BY_WALLTIME: Final = 1
#: which jobs may pass the first in the queue: none, those that do not delay it, or all
NO_BACKFILL: Final = 0
EASY: Final = 1
FIRST_FIT: Final = 2

#: states of a job
COMING: Final = 0
WAITING: Final = 1
RUNNING: Final = 2
COMPLETED: Final = 3
AT_WALLTIME: Final = 4
GIVEN_UP: Final = 5


class Rules(NamedTuple):
    """The rules of a run; times in seconds.

    Attributes:
        order: how jobs are ranked, such as `BY_SUBMIT`.
        backfill: which jobs may pass the first in the queue, such as `EASY`.
        failing: whether nodes can go down.
        planned: whether nodes go down for maintenance.
        placing, keeping: whether the run tracks which units each job has, and whether it logs them.
        dumps: whether jobs write checkpoints; ``dump`` and ``read`` are how long writing and reading one takes.
        retries, original: whether interrupted jobs are requeued, and whether they keep their place in the queue.
        most_attempts: largest number of attempts of a job.
        rest: whether the walltime of a new attempt is the rest of the old walltime.
        extended: whether walltimes are extended by the time for checkpoints and reads.
        until: the time limit.
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
    """The jobs of the workload; arrays of shape (jobs,), times in seconds.

    A job's ``boost`` is subtracted from its submit time when jobs are ordered.
    """

    submit: Floats
    size: Ints
    walltime: Floats
    runtime: Floats
    boost: Floats


class Outs(NamedTuple):
    """A batch of upcoming outages, sorted by start; times in seconds.

    This batch and the earlier ones have all outages that begin before ``known``. Later outages may still be added.
    """

    node: Ints
    down: Floats
    up: Floats
    known: float


#: no outages
NEVER: Final = Outs(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0), inf)


class KernelNode:
    """The record of a node.

    Attributes:
        first, units: the position of its first unit in the order of allocation, and the number of its units.
        reasons: the number of outages and maintenances that keep it down.
        broken: the number of outages that keep it down.
        planned: whether maintenance took it down.
        failed: number of failures.
        since: time (s) from which it is down.
    """

    first: int
    units: int
    reasons: int
    broken: int
    planned: int
    failed: int
    since: float


class Nodes(NamedTuple):
    """The machine's nodes and units.

    A position is the number of a unit in the order in which the placement allocates units.

    Attributes:
        rows: `KernelNode` records.
        node: the node of each position.
        interval: time of work between two checkpoints (s), by a job's number of nodes.
        free: free positions of nodes that are up, as a bit set.
        busy: how long ended jobs held each position (s).
        down: total past downtime of each node (s) for failures and for maintenance, shape (2, nodes).
        together: at index k, the smallest number of nodes that together have k units.
    """

    rows: Rows
    node: Ints
    interval: Floats
    free: Ints
    busy: Floats
    down: Floats
    together: Ints


class PlannedRow:
    """The record of a maintenance window; times in seconds.

    ``which`` is the number of its node set.
    """

    announced: float
    begin: float
    end: float
    which: int


class LevelRow:
    """The record of a level: a range of latest ends of jobs, to which maintenance closes the same units.

    Attributes:
        begin: jobs of the next lower level end at this time (s) at the latest.
        open: number of free units that are not closed at this level; -1: not counted yet.
        beside: how many of these are not reserved for the first queued job; -1: not counted yet.
    """

    begin: float
    open: int
    beside: int


class PlanCounts:
    """The record of counts that belong to `Plans`.

    ``next`` is the next maintenance window to announce, and ``more`` is whether windows are still to be generated.
    ``steps``, ``windows`` and ``levels`` are lengths of lists. ``reserved`` counts the reserved units; -1 means not
    counted yet.
    """

    next: int
    more: int
    steps: int
    windows: int
    levels: int
    reserved: int


class Plans(NamedTuple):
    """Maintenance, and work arrays for starting jobs around it; times in seconds.

    Attributes:
        coming: `PlannedRow` records of maintenance not yet announced, sorted by time of announcement.
        sets: bit sets of positions; node set k begins at word k * (words per set).
        position: the position of each unit.
        step_time, step_set, step_kind: time, node set and kind of each start and end of announced maintenance, sorted
            by time, then in the order of announcement.
        windows: `PlannedRow` records of announced maintenance that has not ended, by start.
        levels, level_closed: `LevelRow` records, and bit sets of the positions closed at each level.
        open, reserved, taken: bit sets of the positions that are open to a job, reserved for the first job in the
            queue, or taken by a starting job.
        end_time, end_slot: latest end and slot of each running job, sorted by latest end.
        counts: `PlanCounts`.
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
    """The record of a running job; times in seconds.

    Attributes:
        low, high: in the bit set of its units, the first word with a unit, and the word after the last one.
        finish, in_time: when its work ends, and whether that is within its walltime.
        dumped: number of checkpoints if nothing fails.
        serial: number of jobs started before it.
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
    """The running jobs, and the upcoming repairs.

    Each running job has a slot: its index in the first arrays, which another job may use after it. A position is the
    number of a unit in the order of allocation.

    Attributes:
        job, until: row of the workload in each slot, and when its walltime ends (s).
        rows: `SlotRow` of each slot.
        held: bit sets of positions; slot s begins at word s * (words per slot).
        spare: unused slots.
        end_time, end_slot: a heap of the times at which jobs end.
        planned_time, planned_units, planned_slot: end of walltime, number of units and slot of each running job, sorted
            by end of walltime.
        repair_time, repair_node: a heap of the times at which nodes are repaired.
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
    """The state and times of each job of the workload.

    The arrays have shape (jobs,); times are in seconds. ``attempt`` counts earlier attempts. ``fruitless`` counts the
    most recent attempts in a row that saved no work. ``saved``, ``walltime``, ``came``, ``start`` and ``end`` belong to
    the current or last attempt; ``came`` is when the job joined the queue for it. ``waited`` and ``ran`` are sums over
    attempts.
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
    """The log of ended attempts, if nodes can fail; times in seconds.

    Fields from ``useful`` on are in unit-seconds. ``words`` has a bit set of units (in the order of allocation) for
    each attempt, or for each job if nodes cannot fail; its shape is (rows, words).
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
    """The record of a run's progress.

    Attributes:
        next_job, next_outage: next row of the workload and of the outages.
        running, repairs, hopes, struck, rows: lengths of lists and of the log.
        free: number of free units.
        started, submitted: numbers of jobs started and submitted so far.
        idle_outages, idle_notices, moved: used to detect a stalled run.
        first, extra, shadow: the job with the reservation (-1: none), the number of units that it leaves free when it
            starts, and its reserved start (s).
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
    """Work arrays for lists of jobs.

    Attributes:
        fresh: jobs that join the queue.
        chosen: jobs that start.
        struck: running jobs that are interrupted, by index in the arrays of running jobs.
        hopes: jobs that may never finish, because failures may interrupt them too often.
        needed: for each job in `hopes`, how long (s) it must run until its first checkpoint is complete.
    """

    fresh: Ints
    chosen: Ints
    struck: Ints
    hopes: Ints
    needed: Floats


class State(NamedTuple):
    """The kernel's state of a run, before its start or between two steps."""

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
    """Return the state of a run at time 0, without outages.

    The log has space for the attempts of all jobs and some more.

    Args:
        node_of: the node of each position, shape (units,). A position is the number of a unit in the order of
            allocation; a node's positions are adjacent.
        interval: time of work between two checkpoints (s), by a job's number of nodes.
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
    # Two large blocks: allocating many small arrays for each run is slow.
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
    """Return a bit set of the positions at which ``chosen`` is true.

    A position is the number of a unit in the order of allocation. ``chosen`` has shape (units,).
    """
    words = words_of(chosen.size)
    bits = np.zeros(words * WORD, dtype=np.int64)
    bits[: chosen.size] = chosen
    made: Ints = (bits.reshape(words, WORD) << np.arange(WORD)).sum(axis=1)
    return made


def make_plans(units: int, words: int) -> Plans:
    """Return the kernel's record of maintenance at time 0, before any is announced.

    Args:
        units: size of the machine; 0 if there is no maintenance.
        words: length of a bit set of the machine's units.
    """
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
    return kind._make(
        np.zeros(count, dtype=np.float64 if hint == Floats else np.int64) for hint in kind.__annotations__.values()
    )
