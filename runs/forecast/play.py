"""Run a Slurm controller from a live cluster's state.

The run ends when the cluster's pending jobs have started.
"""

import heapq
from collections.abc import Callable, Collection
from math import inf
from typing import Final

from msgspec import Struct

from pipistrelle.runs.forecast.start import Primed
from pipistrelle.schedulers.slurm.cluster.jobs import COMPLETED, PENDING, RUNNING, SlurmJob

#: number of scheduler intervals without an event after which no more events are expected
_PATIENCE: Final = 10

#: reasons of jobs that never start
_NEVER: Final = frozenset({"DependencyNeverSatisfied", "PartitionNodeLimit", "PartitionTimeLimit"})

#: returns how long a job runs in all (s) by its id and record; inf: until it is killed at its limit
Runtimes = Callable[[str, SlurmJob], float]


class Start(Struct, frozen=True):
    """The start of a job (s of simulated time), and its nodes as a bit mask."""

    time: float
    nodes: int


class ForecastRun(Struct):
    """The result of a run.

    It has the first start of each pending job or task, by id, and why jobs had to wait.
    """

    starts: dict[str, Start]
    reasons: dict[str, str]


def play(start: Primed, now: int, runtimes: Runtimes, wanted: Collection[str], until: float) -> ForecastRun:
    """Run the controller and return when each wanted job starts.

    Args:
        now: the moment of the forecast (s); the controller is in the state of that moment.
        runtimes: returns the run time of a job (s).
        wanted: ids of jobs and tasks; the controller runs until all have started.
        until: time (s) at which the controller stops in any case.
    """
    daemon, controller = start.daemon, start.controller
    ends: list[tuple[float, int, SlurmJob, int]] = []

    def begin(job: SlurmJob) -> None:
        runtime = runtimes(job.ids[0], job)
        if runtime < inf:
            heapq.heappush(ends, (max(float(now), job.start + runtime), job.serial, job, job.restarts))

    for job in controller.running_jobs():
        begin(job)
    parameters, answers = daemon.parameters, controller.config.answers
    interval = max(every for every in (parameters.bf_interval, daemon.interval or 0, 30.0) if every < inf)
    first = now + min(parameters.bf_interval, interval) + 1
    left = set(wanted)
    played = ForecastRun({}, {})
    last_event = checked = float(now)
    while left:
        if last_event > checked:
            checked = last_event
            if not any(_may_start(job) for job in controller.pending.values()):
                break
        due, end = daemon.next_time(), ends[0][0] if ends else inf
        time = min(due, end)
        if not played.reasons and time > first:
            played.reasons = {name: job.reason for name, job in start.records.items() if job.state == PENDING}
        if time > until:
            break
        if not controller.running and not ends and time > max(last_event, _last_gate(start)) + _PATIENCE * interval:
            break
        if due <= end:
            actions = daemon.advance(due)
            for job in actions.started:
                begin(job)
                name = job.ids[0]
                if name not in played.starts:
                    played.starts[name] = Start(float(int(due)), job.nodes)
                    left.discard(name)
            if actions.started or actions.killed:
                last_event = due
        else:
            _, _, job, incarnation = heapq.heappop(ends)
            if job.state == RUNNING and job.restarts == incarnation:
                daemon.catch_up(end)
                daemon.ended(job, COMPLETED, end, end + answers.delay(job.nodes.bit_count()))
                last_event = end
    return played


def _may_start(job: SlurmJob) -> bool:
    return job.priority > 0 and job.reason not in _NEVER


def _last_gate(start: Primed) -> float:
    """Return the last time (s) that may hold back a pending job; 0 if there is none.

    It is the begin time of a pending job or the end of a reservation.
    """
    gates = [float(job.begin) for job in start.controller.pending.values()]
    gates += [float(one.end) for one in start.controller.reservations.all]
    return max(gates, default=0.0)
