"""A Gymnasium environment for learning a scheduler; each step is a decision of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import log1p
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.fields import package_version
from pipistrelle.protocol.messages import Reply
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.runs.description.policy import PolicySpec
from pipistrelle.runs.description.setup import Inputs, load_inputs, load_setup
from pipistrelle.runs.description.spec_file import convert_spec
from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.schedulers.placement.lowest import LowestIds
from pipistrelle.schedulers.placement.pickers import picked
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.order import Order
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.server.engine.jobs import NEVER_RAN, Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.errors import RunError
from pipistrelle.server.outputs.metrics import TAU, Summary
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import Simulation
from pipistrelle.server.transport.in_process import InProcessTransport
from pipistrelle.traces.transforms.cut import from_zero, keep

try:
    import gymnasium
    from gymnasium import spaces
except ImportError:
    raise PipistrelleError(
        "learning to schedule needs Gymnasium", hint="Install it with: pip install 'pipistrelle[gym]'"
    ) from None


Observation = NDArray[np.float32]
#: what an observation contains: features per queued job, and features of the machine
JOB_FEATURES: Final = ("there", "size", "walltime", "wait", "fits")
MACHINE_FEATURES: Final = ("free", "queue")
#: longest times, observed as 1 on a log scale (s)
_LONGEST_S: Final = 30 * 86400.0
_MOST_WAITING: Final = 10_000
_HOUR_S: Final = 3600.0


#: name of the environment in Gymnasium, once this module is imported
ENVIRONMENT: Final = "pipistrelle/Scheduling-v0"
#: options that the environment sets itself: scheduler, protocol and seed
_DECIDED: Final = {*PolicySpec.__struct_encode_fields__, "dialect", "batsim", "seed"}


class _Outside:
    """A policy without decisions of its own, because the agent makes them."""

    name = "agent"

    def __init__(self) -> None:
        self.order: Order = Fcfs()

    def decide(self, view: View) -> None:
        """Make no decision."""


class Dispatcher:
    """A run that stops whenever a job could start; jobs get the lowest free units.

    Args:
        seen: number of queued jobs, by submission, from which the agent can choose.
        observers: receive every event.
    """

    def __init__(self, setup: Setup, seen: int, observers: Sequence[Observer] = ()) -> None:
        self._runtime = Runtime(_Outside(), package_version())
        self._transport = InProcessTransport(self._runtime)
        hello, welcome = self._transport.greet("", "")
        self._simulation = Simulation("", hello, welcome, setup, observers=observers)
        self._reply: Reply | None = None
        self._seen = seen
        self._placement = LowestIds()
        #: whether the run is over
        self.over = False
        self.wait()

    @property
    def view(self) -> View:
        """Return the scheduler's view of machine and queue."""
        view = self._runtime.view
        assert view is not None, "the run has begun"
        return view

    @property
    def waiting(self) -> list[SchedulerJob]:
        """Return the first ``seen`` queued jobs, by submission."""
        return list(islice(self.view.waiting, self._seen))

    @property
    def has_choice(self) -> bool:
        """Return whether one of the `waiting` jobs can start now."""
        return any(map(self.fits, self.waiting))

    def units_for(self, job: SchedulerJob) -> NodeSet | None:
        """Return the units on which a job can start now, or None."""
        view = self.view
        if job.size > view.free.count:
            return None
        return picked(self._placement, job, view.open_to(job), view.machine)

    def fits(self, job: SchedulerJob) -> bool:
        """Return whether a job can start now."""
        view = self.view
        if job.size > view.free.count:
            return False
        return (view.plain and not job.by_nodes) or self.units_for(job) is not None

    def start(self, job: SchedulerJob) -> None:
        """Start a job for which `fits` is true."""
        view = self.view
        units = self.units_for(job)
        assert units is not None, f"{job.id} does not fit"
        view.free.remove(units)
        view.start(job, units)

    def wait(self) -> None:
        """Advance until a queued job could start, or the run is over.

        Raises:
            RunError: the run stalls.
        """
        engine = self._simulation.engine
        while not self.over:
            if self._reply is not None:
                reply, self._reply = self._reply, None
                engine.apply(Reply(reply.reply_to, reply.now, self.view.decisions))
            notice = engine.advance()
            if notice is None:
                self.over = True
                self._runtime.answer(engine.end("completed"))
                engine.close()
                return
            self._reply = self._runtime.answer(notice)
            if self._runtime.view is not None and self.has_choice:
                return

    def summary(self) -> Summary:
        """Return the metrics of the run so far."""
        return self._simulation.metrics.summary(self._simulation.engine.cluster.running.values())


def observed(dispatcher: Dispatcher, queue: int, mask: NDArray[np.bool_]) -> Observation:
    """Return an observation of ``queue`` jobs and the machine.

    All values are from 0 to 1. The shape is (queue * features + 2,). ``mask`` tells which of these jobs can start now.
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
    """Sums the rewards of jobs as they end.

    ``kind`` is ``wait`` or ``bounded_slowdown``.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._count = 1
        self._sum = 0.0
        #: number of jobs that have not ended
        self.left = 0

    def begin(self, jobs: int) -> None:
        """Begin an episode of ``jobs`` jobs."""
        self._count, self._sum, self.left = max(jobs, 1), 0.0, jobs

    def ended(self, now: float, job: Job) -> None:
        """Subtract a job's wait or slowdown from the reward.

        Each attempt of a requeued job counts.
        """
        if job.attempt is None or not job.attempt.retried:
            self.left -= 1
        if job.state in NEVER_RAN:
            return
        wait, run = job.start - job.submit, job.end - job.start
        cost = wait / _HOUR_S if self._kind == "wait" else max(1.0, (wait + run) / max(run, TAU))
        self._sum -= cost / self._count

    def take(self) -> float:
        """Return the reward since the last call of this method."""
        paid, self._sum = self._sum, 0.0
        return paid


class TrainingError(PipistrelleError):
    """An argument of the environment is wrong."""


class SchedulingEnv(gymnasium.Env[Observation, np.int64]):
    """A run in which an agent chooses the next job to start.

    There is a step whenever a queued job could start. The action is the queue position (by submission) of the job to
    start on the lowest free units. The last action lets time advance, as does a position without a job that fits.

    An observation has `JOB_FEATURES` of the first ``queue`` jobs, then `MACHINE_FEATURES`, all from 0 to 1. Sizes and
    free units are shares of the machine; times and the queue's length are on a log scale. ``info["action_mask"]`` says
    which actions are possible.

    The rewards of an episode add up to minus its mean wait (hours), or minus its mean bounded slowdown (of attempts).
    An episode in which no job can start any more is truncated, with a reward of -1 per unfinished job.
    ``info["summary"]`` has the metrics of a finished episode.

    Args:
        run: options of `pipistrelle run` by name, such as ``{"workload": "demo"}``, except those of the scheduler.
        queue: number of queued jobs that the agent sees.
        jobs: consecutive jobs per episode, from a random position or ``first`` in the options of `reset`; None: all.
        reward: ``wait`` or ``bounded_slowdown``.

    Raises:
        PipistrelleError: the run is not possible, or has options of a scheduler.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - Gymnasium's own

    def __init__(
        self,
        run: Mapping[str, Any] | None = None,
        *,
        queue: int = 16,
        jobs: int | None = None,
        reward: Literal["wait", "bounded_slowdown"] = "wait",
    ) -> None:
        told = {} if run is None else dict(run)
        if said := [name for name in told if name in _DECIDED]:
            what = f"'{said[0]}' is no option: the agent decides, and `reset` has the seed"
            raise TrainingError(what, where="SchedulingEnv")
        if queue < 1 or (jobs is not None and jobs < 1):
            raise TrainingError("an agent sees a job at least, and an episode has one", where="SchedulingEnv")
        self._spec = convert_spec(told, "SchedulingEnv")
        self._inputs = load_inputs(self._spec)
        self._jobs = jobs
        self._queue = queue
        self._paid = Rewards(reward)
        self._dispatcher: Dispatcher | None = None
        size = queue * len(JOB_FEATURES) + len(MACHINE_FEATURES)
        self.observation_space = spaces.Box(0.0, 1.0, (size,), np.float32)
        self.action_space = spaces.Discrete(queue + 1)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode; each episode draws its own failures."""
        super().reset(seed=seed)
        setup = self._setup(None if options is None else options.get("first"))
        self._paid.begin(setup.jobs)
        self._dispatcher = Dispatcher(setup, self._queue, [self._paid])
        return self._observed()

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Start the job at this queue position, or let time advance."""
        dispatcher = self._dispatcher
        assert dispatcher is not None, "reset comes before step"
        stalled = False
        waiting = dispatcher.waiting
        starts = action < len(waiting) and dispatcher.fits(waiting[int(action)])
        if starts:
            dispatcher.start(waiting[int(action)])
        if not (starts and dispatcher.has_choice):
            try:
                dispatcher.wait()
            except RunError:
                stalled = True
        observation, info = self._observed()
        paid = self._paid.take() - (self._paid.left if stalled else 0.0)
        if dispatcher.over or stalled:
            info["summary"] = dispatcher.summary()
        return observation, paid, dispatcher.over and not stalled, stalled, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions have an effect, shape (queue + 1,).

        These are the starts of the jobs that fit, and the last action: start no job.
        """
        dispatcher = self._dispatcher
        assert dispatcher is not None, "reset comes first"
        mask = np.zeros(self._queue + 1, dtype=np.bool_)
        mask[-1] = True
        for place, job in enumerate(dispatcher.waiting):
            mask[place] = dispatcher.fits(job)
        return mask

    def _setup(self, first: int | None) -> Setup:
        trace, machine = self._inputs
        if self._jobs is not None:
            last = max(len(trace) - self._jobs, 0)
            place = int(self.np_random.integers(last + 1)) if first is None else min(first, last)
            trace = from_zero(keep(trace, np.arange(place, min(place + self._jobs, len(trace)))))
        setup = load_setup(self._spec, Inputs(workload=trace, machine=machine))
        if (happens := setup.reliability) is None:
            return setup
        return replace(setup, reliability=replace(happens, seed=int(self.np_random.integers(2**53))))

    def _observed(self) -> tuple[Observation, dict[str, Any]]:
        dispatcher, mask = self._dispatcher, self.action_masks()
        assert dispatcher is not None
        return observed(dispatcher, self._queue, mask), {"action_mask": mask}


gymnasium.register(ENVIRONMENT, entry_point=f"{__name__}:{SchedulingEnv.__name__}")
