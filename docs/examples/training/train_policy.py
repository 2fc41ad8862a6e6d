"""Train a small policy on parts of the demo workload, and test it on the whole: python train_policy.py"""

import numpy as np
from environment import JOB_FEATURES, SchedulingEnv

from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import run

SEEN = 64
WIDTH = len(JOB_FEATURES)


def episode(env, weights, **how):
    """Run an episode that starts jobs with the highest score first.

    Return the reward and the summary of the episode.
    """
    observation, info = env.reset(**how)
    paid, over = 0.0, False
    while not over:
        scores = observation[: SEEN * WIDTH].reshape(SEEN, WIDTH)[:, 1:4] @ weights  # features size, walltime and wait
        scores[~info["action_mask"][:-1]] = -np.inf
        observation, reward, ended, stalled, info = env.step(int(np.argmax(scores)))
        paid, over = paid + reward, ended or stalled
    return paid, info["summary"]


def train(env, rounds=4, tries=8, best=3):
    """Return weights found by the cross-entropy method.

    Each round draws random weights. The next round draws near the best of them.
    """
    chance = np.random.default_rng(1)
    mean, spread = np.zeros(3), np.ones(3)
    for number in range(rounds):
        drawn = mean + spread * chance.standard_normal((tries, 3))
        paid = [episode(env, weights, seed=number)[0] for weights in drawn]  # one seed: all weights get the same jobs
        chosen = drawn[np.argsort(paid)[-best:]]
        mean, spread = chosen.mean(axis=0), chosen.std(axis=0) + 0.05
    return mean


if __name__ == "__main__":
    weights = train(SchedulingEnv({"workload": "demo"}, queue=SEEN, jobs=400))
    _, summary = episode(SchedulingEnv({"workload": "demo"}, queue=SEEN), weights)
    sjf = run(RunSpec(workload=("demo",), scheduler="fcfs", order="sjf")).summary
    print(f"weights of size, walltime and wait: {', '.join(f'{weight:.2f}' for weight in weights)}")
    print(f"mean wait: {summary.mean_wait / 3600:.1f} h, of sjf {sjf.mean_wait / 3600:.1f} h")
