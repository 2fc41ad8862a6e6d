"""The arrays of a plan: free units over time, and the reservations of queued jobs.

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
    """The plan as arrays with spare columns.

    A run of units is a range of consecutive unit numbers. A gap is a run of units that are all free for some time.
    Names in capitals, such as `BEGIN`, are numbers of rows of an array, or of entries of ``counts``.

    Attributes:
        times: times in s, ascending, from now to inf; begins in the past are stored as now.
        gaps: one column per gap. The units from `LOW` to `HIGH` are all free from `BEGIN` to `END`, but not just before
            or after. `BEGIN` and `END` are indices into ``times``. `FRESH` is 1 if some of
            these units were freed and `mark` has not used this yet. An unused column has `BEGIN` at least `NEVER` and
            `END` 0. The row `HOLES` begins with a list of the unused columns, of length `EMPTY`.
        jobs: one column per waiting job. Six rows describe its reservation: `BEGIN` (-1: none), `END`, `LOW`, `HIGH`,
            `RUNS` (first column of its runs of units) and `COUNT` (number of runs). `SIZE` is the number of units that
            the job needs (0: no job). `MARKED` is 1 if the job must be planned again. `EARLY` is an upper bound of how
            many of its units are free just before its start.
        lengths: durations of the waiting jobs, s.
        runs: one column per run of units: its lowest and its highest unit.
        scratch: working space, meaningless between two calls; at least as many columns as times, gaps and jobs.
        counts: numbers that describe the arrays. `TIMES`: number of times. `GAPS`: columns of ``gaps`` in use or in the
            list of unused ones. `EMPTY`: length of that list. `JOBS`: columns of ``jobs``. `USED`: columns of ``runs``
            in use. `TURN`: position at which `place_all` continues. `MANY_GAPS` and `MANY_TIMES`: numbers of gaps and
            times from which the arrays need tidying. `LOOKS`: how many reservations were computed.
    """

    times: NDArray[np.float64]
    gaps: Ints
    jobs: Ints
    lengths: NDArray[np.float64]
    runs: Ints
    scratch: Ints
    counts: Ints
