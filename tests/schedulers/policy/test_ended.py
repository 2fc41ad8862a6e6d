"""`view.ended`: policies that learn run times see the end of each job once, also if they poll."""

from typing import Any

import numpy as np
import pytest

from pipistrelle.platforms.description import homogeneous
from pipistrelle.protocol.events import SimulationBeginsData
from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.schedulers.policy.jobs import EndedJob, SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.runtime.polling import Polling
from pipistrelle.schedulers.runtime.runtime import Runtime, view_of
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import simulate
from pipistrelle.server.transport.in_process import InProcessTransport
from pipistrelle.traces.generator import generate


class Learner:
    """Starts what fits, and keeps what it learns."""

    name = "learner"
    order = Fcfs()

    def __init__(self) -> None:
        self.learnt: dict[str, tuple[float, str]] = {}
        self.when: dict[str, float] = {}

    def decide(self, view: View) -> None:
        """Keep the run time and the state of each job that ended; start what fits."""
        for job, end, state in view.ended:
            assert job.id not in self.learnt
            self.learnt[job.id] = end - job.start, state
            self.when[job.id] = view.now
        for job in list(view.waiting):
            if view.fits(job):
                view.start(job)

    def state(self) -> dict[str, Any]:
        """Return nothing: the tests restore no learner."""
        return {}

    def restore(self, state: dict[str, Any], view: View) -> None:
        """Restore nothing."""


class Ends(Observer):
    """Keeps the run time and the state of each job."""

    def __init__(self) -> None:
        self.ends: dict[str, tuple[float, str]] = {}

    def ended(self, now: float, job: Job) -> None:
        """Keep it."""
        self.ends[job.id] = now - job.start, job.state


@pytest.mark.parametrize("step", [None, 1800.0], ids=["every event", "every half hour"])
def test_each_end_is_seen_once_with_its_time_and_state(step: float | None) -> None:
    """Run times are those of the server, although a polling policy hears of them later."""
    learner, ends = Learner(), Ends()
    result = simulate(
        Setup.of(homogeneous(32, "m"), generate(jobs=120, units=32, seed=4), strict=True),
        InProcessTransport(Runtime(learner if step is None else Polling(learner, step))),
        clock=lambda: 0.0,
        observers=[ends],
    )
    assert result.failure is None
    last = max(learner.when.values())

    assert len(ends.ends) == 120
    assert learner.learnt == {name: end for name, end in ends.ends.items() if name in learner.learnt}
    assert len(learner.learnt) >= 60
    assert {state for _, state in learner.learnt.values()} == {
        "COMPLETED_SUCCESSFULLY",
        "COMPLETED_WALLTIME_REACHED",
    }
    if step is not None:
        assert all(time % step == 0 for time in learner.when.values())
    assert last > 0


def test_ends_that_a_polling_policy_has_not_heard_of_are_saved() -> None:
    """The state of polling has them, and a restored one passes them on."""
    job = SchedulerJob("w0!1", 0, 2, 60.0, 0.0, start=5.0)
    polling = Polling(Learner(), 10.0)
    polling._ended = [EndedJob(job, 9.0, "COMPLETED_SUCCESSFULLY")]
    state = polling.state()
    again = Polling(Learner(), 10.0)
    again.restore(state, view_of(SimulationBeginsData(4), Fcfs()))
    (ended,) = again._ended

    assert (ended.job.id, ended.end - ended.job.start, ended.state) == ("w0!1", 4.0, "COMPLETED_SUCCESSFULLY")
    assert np.isnan(ended.job.expected_end)
