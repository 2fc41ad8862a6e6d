"""The arrays that hold a plan: free units over time, and the reservations of queued jobs.

`pipistrelle.schedulers.plan.gaps` has the functions that read and change them.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
#: (lowest unit, highest unit), ascending
Runs = Sequence[tuple[int, int]]

# Lines of gaps and of jobs
BEGIN: Final = 0
END: Final = 1
LOW: Final = 2
HIGH: Final = 3
# Lines of gaps
FRESH: Final = 4
HOLES: Final = 5
GAP_LINES: Final = 6
# Lines of jobs
RUNS: Final = 4
COUNT: Final = 5
SIZE: Final = 6
MARKED: Final = 7
EARLY: Final = 8
JOB_LINES: Final = 9
SCRATCH_LINES: Final = 9
# Entries of counts
TIMES: Final = 0
GAPS: Final = 1
EMPTY: Final = 2
JOBS: Final = 3
USED: Final = 4
TURN: Final = 5
MANY_GAPS: Final = 6
MANY_TIMES: Final = 7
LOOKS: Final = 8
COUNTS: Final = 9
#: earliest begin of a column without a gap
NEVER: Final = 2**40
#: results of `place_all`: all jobs are placed; the book needs tidying or more room
DONE: Final = -1
UNTIDY: Final = -2


class Book(NamedTuple):
    """The plan as arrays with spare columns; all functions of this module use it.

    Attributes:
        times: times in s, ascending, from now to inf; earlier begins count as now.
        gaps: one column per gap. A gap is a run of units that are all free from `BEGIN` to `END`, but not just before
            or after. The other lines are the gap's lowest unit `LOW`, its highest unit `HIGH`, and `FRESH` (1 if some
            of its units were freed). A column without a gap has `BEGIN` at least `NEVER` and `END` 0; the first `EMPTY`
            entries of line `HOLES` are the numbers of these columns.
        jobs: one column per waiting job. Six lines describe its reservation: `BEGIN` (-1: none), `END`, `LOW`, `HIGH`,
            `RUNS` (first column of its runs of units) and `COUNT` (number of runs). The other lines are `SIZE` (0: no
            job), `MARKED` (1 if a change may move the job) and `EARLY` (at most this many of its units are free just
            before its start).
        lengths: durations of the waiting jobs, s.
        runs: one column per run of units: lowest and highest.
        scratch: working space, meaningless between two calls; at least as many columns as times, gaps and jobs.
        counts: number of `TIMES`, of columns of `GAPS`, of `EMPTY` ones among these, of columns of `JOBS`, and of runs
            (`USED`); the next `TURN` in `place_all`; numbers of gaps (`MANY_GAPS`) and times (`MANY_TIMES`) from which
            the arrays need tidying; how often a job was placed (`LOOKS`).
    """

    times: NDArray[np.float64]
    gaps: Ints
    jobs: Ints
    lengths: NDArray[np.float64]
    runs: Ints
    scratch: Ints
    counts: Ints
