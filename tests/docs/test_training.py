"""The Gymnasium environment: it follows the rules, its runs are those of the engine, and an agent can learn in it."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gymnasium")

import gymnasium
from gymnasium.utils.env_checker import check_env

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import run
from pipistrelle.runs.inputs.steps import Filter

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples" / "training"
sys.path.insert(0, str(EXAMPLES))
from environment import ENVIRONMENT, SchedulingEnv  # noqa: E402

FAILING = {"platform": "demo", "failures": "exponential,mtbf=60d", "repair": "1h"}


@pytest.mark.parametrize(
    "how", [{}, {"run": FAILING, "reward": "bounded_slowdown", "queue": 4}], ids=["plain", "failing"]
)
def test_gymnasiums_checker_finds_no_errors(how):
    """Gymnasium's own checker, including its warnings."""
    check_env(gymnasium.make(ENVIRONMENT, jobs=30, **how).unwrapped)


def first_that_fits(info):
    """Return the first action that has an effect."""
    return int(np.argmax(info["action_mask"]))


@pytest.mark.parametrize("reward", ["wait", "bounded_slowdown"])
def test_taking_the_first_job_that_fits_is_firstfit(reward):
    """The run has the figures of that policy; the rewards add up to minus the mean."""
    env = SchedulingEnv({"transform": [{"step": "filter", "first": 300}]}, queue=300, reward=reward)
    _, info = env.reset()
    paid, over = 0.0, False
    while not over:
        assert info["action_mask"].tolist() == env.action_masks().tolist()
        _, more, over, stalled, info = env.step(first_that_fits(info))
        paid += more
        assert not stalled
    told = info["summary"]
    policy = run(RunSpec(scheduler="filler", transform=(Filter(first=300),))).summary

    assert told.mean_wait == policy.mean_wait
    assert told.mean_bounded_slowdown == policy.mean_bounded_slowdown
    assert told.utilisation == policy.utilisation
    mean = told.mean_wait / 3600 if reward == "wait" else told.mean_bounded_slowdown
    assert paid == pytest.approx(-mean)


def test_episodes_depend_on_their_seeds():
    """Equal seeds have equal jobs and failures; time advances after an action without effect."""
    env = SchedulingEnv(FAILING, jobs=40)

    def waits(seed):
        _, info = env.reset(seed=seed)
        over = False
        while not over:
            _, _, over, _, info = env.step(first_that_fits(info))
        return info["summary"].mean_wait

    found = [waits(seed) for seed in (1, 2, 1)]
    assert found[0] == found[2] != found[1]

    env.reset(seed=1, options={"first": 0})
    before = env.step(16)[0]
    assert before.shape == env.observation_space.shape


def test_invalid_agents_are_rejected():
    """An agent that does not decide, or observes nothing, gets an error."""
    with pytest.raises(PipistrelleError, match="'scheduler' is no option: the agent decides"):
        SchedulingEnv({"scheduler": "easy"})
    with pytest.raises(PipistrelleError, match="sees a job at least"):
        SchedulingEnv(queue=0)
    with pytest.raises(PipistrelleError, match="unknown key 'workloda'"):
        SchedulingEnv({"workloda": "demo"})


def test_the_example_beats_sjf(capsys):
    """A policy of three weights, trained for seconds on pieces of the demo, has a lower wait on all of it."""
    learned = runpy.run_path(str(EXAMPLES / "train_policy.py"))
    weights = learned["train"](SchedulingEnv(queue=64, jobs=200), rounds=3, tries=6)
    first = 1500
    trained = learned["episode"](SchedulingEnv(queue=64, jobs=first), weights, options={"first": 0})[1]
    sjf = run(RunSpec(scheduler="fcfs", order="sjf", transform=(Filter(first=first),))).summary

    assert trained.mean_wait < sjf.mean_wait / 2
