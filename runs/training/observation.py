"""What an agent sees of a run, and what it is paid."""

from math import log1p
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.runs.training.dispatcher import Dispatcher
from pipistrelle.server.engine.jobs import NEVER_RAN, Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.outputs.metrics import TAU

Observation = NDArray[np.float32]
#: what is observed of a job that waits, and of the machine
JOB_FEATURES: Final = ("there", "size", "walltime", "wait", "fits")
MACHINE_FEATURES: Final = ("free", "queue")
#: times that are observed as 1, on a log scale (s)
_LONGEST_S: Final = 30 * 86400.0
_MOST_WAITING: Final = 10_000
_HOUR_S: Final = 3600.0


def observed(dispatcher: Dispatcher, queue: int, mask: NDArray[np.bool_]) -> Observation:
    """Return what is seen of the first ``queue`` jobs and of the machine, shape (queue * features + 2,), 0 to 1.

    ``mask`` tells which of these jobs fit.
    """
    view, width = dispatcher.view, len(JOB_FEATURES)
    found = np.zeros(queue * width + len(MACHINE_FEATURES), dtype=np.float32)
    for place, job in enumerate(dispatcher.waiting):
        found[place * width : (place + 1) * width] = (
            1.0,
            job.size / view.units,
            _shown(job.walltime, _LONGEST_S),
            _shown(view.now - job.submit, _LONGEST_S),
            mask[place],
        )
    found[-2:] = view.free.count / view.units, _shown(len(view.waiting), _MOST_WAITING)
    return np.clip(found, 0.0, 1.0)


def _shown(value: float, largest: float) -> float:
    return log1p(min(max(value, 0.0), largest)) / log1p(largest)


class Rewards(Observer):
    """What an episode's jobs add to the reward as they end: ``kind`` is that of the environment."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._count = 1
        self._sum = 0.0
        #: jobs that have not ended
        self.left = 0

    def begin(self, jobs: int) -> None:
        """Begin an episode of so many jobs."""
        self._count, self._sum, self.left = max(jobs, 1), 0.0, jobs

    def ended(self, now: float, job: Job) -> None:
        """Count a job's wait, or its slowdown; one that comes back counts with each attempt."""
        if job.attempt is None or not job.attempt.retried:
            self.left -= 1
        if job.state in NEVER_RAN:
            return
        wait, run = job.start - job.submit, job.end - job.start
        cost = wait / _HOUR_S if self._kind == "wait" else max(1.0, (wait + run) / max(run, TAU))
        self._sum -= cost / self._count

    def take(self) -> float:
        """Return what has come since it was last asked."""
        paid, self._sum = self._sum, 0.0
        return paid
