"""A scheduler to be learned: an environment of Gymnasium whose steps are the decisions of a run."""

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
#: what is observed of a job that waits, and of the machine
JOB_FEATURES: Final = ("there", "size", "walltime", "wait", "fits")
MACHINE_FEATURES: Final = ("free", "queue")
#: times that are observed as 1, on a log scale (s)
_LONGEST_S: Final = 30 * 86400.0
_MOST_WAITING: Final = 10_000
_HOUR_S: Final = 3600.0


#: its name in Gymnasium, once this module is imported
ENVIRONMENT: Final = "pipistrelle/Scheduling-v0"
#: options that say who decides, or how one speaks with them
_DECIDED: Final = {*PolicySpec.__struct_encode_fields__, "dialect", "batsim", "seed"}


class _Outside:
    """A policy that leaves all decisions to somebody else."""

    name = "agent"

    def __init__(self) -> None:
        self.order: Order = Fcfs()

    def decide(self, view: View) -> None:
        """Decide nothing."""


class Dispatcher:
    """Goes on with a run until somebody is to say which job starts; jobs get the free units with the lowest numbers.

    Parameters
    ----------
    setup
        the run.
    seen
        how many of the jobs that wait somebody looks at, first come first.
    observers
        told of all that happens.
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
        """What is known of machine and queue."""
        view = self._runtime.view
        assert view is not None, "the run has begun"
        return view

    @property
    def waiting(self) -> list[SchedulerJob]:
        """The jobs that wait, first come first, as many as are seen."""
        return list(islice(self.view.waiting, self._seen))

    @property
    def has_choice(self) -> bool:
        """Whether one of them can start now."""
        return any(map(self.fits, self.waiting))

    def units_for(self, job: SchedulerJob) -> NodeSet | None:
        """Return the units on which a job can start now, None if there are too few, or it fits on none."""
        view = self.view
        if job.size > view.free.count:
            return None
        return picked(self._placement, job, view.open_to(job), view.machine)

    def fits(self, job: SchedulerJob) -> bool:
        """Tell whether a job can start now."""
        view = self.view
        if job.size > view.free.count:
            return False
        return (view.plain and not job.by_nodes) or self.units_for(job) is not None

    def start(self, job: SchedulerJob) -> None:
        """Start a job that fits."""
        view = self.view
        units = self.units_for(job)
        assert units is not None, f"{job.id} does not fit"
        view.free.remove(units)
        view.start(job, units)

    def wait(self) -> None:
        """Let time go on until a job that waits could start, or the run is over.

        Raises
        ------
        RunError
            when the run stalls.
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
        """Return the figures of the run so far."""
        return self._simulation.metrics.summary(self._simulation.engine.cluster.running.values())


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


class TrainingError(PipistrelleError):
    """An environment that cannot be."""


class SchedulingEnv(gymnasium.Env[Observation, np.int64]):
    """A run in which an agent says which job starts next; times are simulated, the engine is that of every run.

    Whenever a job that waits could start, there is a step. The action is the place of the job in the queue, first come
    first, that starts now on the free units with the lowest numbers; the last action, or that of a job which is not
    there or does not fit, lets time go on until something could start again.

    An observation has, of each of the first ``queue`` jobs, `JOB_FEATURES`, and then `MACHINE_FEATURES`
    , all 0 to 1: whether there is such a job, its size and the free units
    as shares of the machine, times and the queue's length on a log scale, whether it fits. ``info["action_mask"]``
    tells which actions do something.

    The reward of a step is what it adds to the episode's mean wait (hours), or mean bounded slowdown, with a minus: the
    sum over an episode is minus that mean; of slowdowns, where jobs come back, one for each attempt. An episode that
    stalls is truncated, with a reward of -1 for each job that was left. ``info["summary"]`` has an ended episode's
    figures.

    Parameters
    ----------
    run
        options of the run by their names on the command line, as ``{"workload": "demo"}``, but for the scheduler.
    queue
        how many jobs the agent sees.
    jobs
        how many jobs an episode has, in succession, from a place of chance; None: all, from the first. ``first`` in the
        options of `reset` is the place.
    reward
        ``wait`` or ``bounded_slowdown``.

    Raises
    ------
    PipistrelleError
        if the run cannot be, or says who decides.
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
        """Begin an episode; failures are drawn anew in each."""
        super().reset(seed=seed)
        setup = self._setup(None if options is None else options.get("first"))
        self._paid.begin(setup.jobs)
        self._dispatcher = Dispatcher(setup, self._queue, [self._paid])
        return self._observed()

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Start the job at this place of the queue, or let time go on."""
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
        """Return which actions do something, shape (queue + 1,): jobs that fit, and to wait."""
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
