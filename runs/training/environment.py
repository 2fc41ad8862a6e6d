"""A scheduler to be learned: an environment of Gymnasium whose steps are the decisions of a run."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.runs.description.policy import PolicySpec
from pipistrelle.runs.description.setup import Inputs, load_inputs, load_setup
from pipistrelle.runs.description.spec_file import convert_spec
from pipistrelle.runs.training.dispatcher import Dispatcher
from pipistrelle.runs.training.observation import JOB_FEATURES, MACHINE_FEATURES, Observation, Rewards, observed
from pipistrelle.server.errors import RunError
from pipistrelle.server.setup.setup import Setup
from pipistrelle.traces.transforms.cut import from_zero, keep

try:
    import gymnasium
    from gymnasium import spaces
except ImportError:
    raise PipistrelleError(
        "learning to schedule needs Gymnasium", hint="Install it with: pip install 'pipistrelle[gym]'"
    ) from None

#: its name in Gymnasium, once this module is imported
ENVIRONMENT: Final = "pipistrelle/Scheduling-v0"
#: options that say who decides, or how one speaks with them
_DECIDED: Final = {*PolicySpec.__struct_encode_fields__, "dialect", "batsim", "seed"}


class TrainingError(PipistrelleError):
    """An environment that cannot be."""


class SchedulingEnv(gymnasium.Env[Observation, np.int64]):
    """A run in which an agent says which job starts next; times are simulated, the engine is that of every run.

    Whenever a job that waits could start, there is a step. The action is the place of the job in the queue, first come
    first, that starts now on the free units with the lowest numbers; the last action, or that of a job which is not
    there or does not fit, lets time go on until something could start again.

    An observation has, of each of the first ``queue`` jobs, `JOB_FEATURES`, and then `MACHINE_FEATURES`
    (`pipistrelle.runs.training.observation`), all 0 to 1: whether there is such a job, its size and the free units
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
