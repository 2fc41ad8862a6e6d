"""Match the jobs of a run with the jobs of its log, on the run's clock."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.runs.folders.run_jobs import Floats, Ints, ReportError, RunJobs
from pipistrelle.server.setup.recorded import starts_of
from pipistrelle.traces.transforms.start import AFTERWARDS
from pipistrelle.traces.workload import Workload

#: ignore smaller differences between times (s), because outputs have six decimals
SAME: Final = 2e-6


@dataclass(frozen=True, eq=False)
class Beside:
    """The jobs of a run whose real starts are in its log.

    Times are in seconds after the run's time 0.

    Attributes:
        places: the jobs' indices in the run's columns, shape (jobs,), by submission.
        start, end: real times from the log, shape (jobs,).
        not_in_log, not_in_run, unrecorded: number of jobs only in the run, only in the log, and in both but without a
            start in the log.
    """

    run: RunJobs
    places: NDArray[np.intp]
    start: Floats
    end: Floats
    not_in_log: int
    not_in_run: int
    unrecorded: int

    def __len__(self) -> int:
        return len(self.places)

    @property
    def submit(self) -> Floats:
        """Return the submit times in the run (s), shape (jobs,)."""
        return self.run.submit[self.places]

    @property
    def size(self) -> Ints:
        """Return the requested units, shape (jobs,)."""
        return self.run.size[self.places]

    @property
    def simulated(self) -> Floats:
        """Return the simulated waits until the first start (s), shape (jobs,)."""
        return self.run.start[self.places] - self.submit

    @property
    def real(self) -> Floats:
        """Return the real waits since submission (s), shape (jobs,).

        A wait is negative if a job started before the run's submit time.
        """
        return self.start - self.submit


def beside(run: RunJobs, log: Workload) -> Beside:
    """Match the jobs of a run with the jobs of its log.

    The time 0 of the run may differ from the log's, as after ``--from``.

    Raises:
        ReportError: if the log has no starts, or its jobs or submit times differ from the run's.
    """
    starts = starts_of(log)
    if np.isnan(starts).all():
        raise ReportError(
            "the log has no start times",
            where=log.source,
            expected="wait times (SWF's field 3), or dates of starts (sacct, PBS, Maui)",
        )
    if len(run.workloads) != 1:
        raise ReportError("the run has several workloads", where=str(run.folder), expected="one, from one log")
    rows = {name: row for row, name in enumerate(log.ids)}
    found = [(place, rows.get(name.partition("!")[2], -1)) for place, name in enumerate(run.ids)]
    both = np.array([pair for pair in found if pair[1] >= 0], dtype=np.intp).reshape(-1, 2)
    places, at = both[:, 0], both[:, 1]
    if not len(both):
        raise ReportError(
            "the run and the log have no job in common",
            where=f"{run.folder} and {log.source}",
            hint="Name the log that the run was of.",
        )
    apart = np.round(log.submit[at] - run.submit[places], 6)
    values, counts = np.unique(apart, return_counts=True)
    zero = float(values[int(counts.argmax())])
    moved = int((apart > zero + SAME).sum())
    if moved > len(apart) // 2 or int(counts.max()) * 2 < len(apart) - int((apart < zero - SAME).sum()):
        raise ReportError(
            "most jobs were submitted at other times in the run than in the log",
            where=f"{run.folder} and {log.source}",
            expected="the log that the run was of, or one with another time 0",
            found=f"{int(counts.max()):,} of {len(apart):,} jobs at the same",
        )
    early = (run.submit[places] <= AFTERWARDS + SAME) & (apart <= zero)  # jobs queued or running at time 0 with --warm
    known = ~np.isnan(starts[at]) & ((np.abs(apart - zero) <= SAME) | early)
    at, places = at[known], places[known]
    return Beside(
        run=run,
        places=places,
        start=starts[at] - zero,
        end=starts[at] - zero + np.maximum(np.nan_to_num(log.runtime[at]), 0.0),
        not_in_log=len(run) - len(both),
        not_in_run=len(log) - len(both),
        unrecorded=len(both) - len(at),
    )
