"""A study's table that is made up: waits known as a formula, replicas that share their luck."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

REPAIRS = {"1min": 60.0, "1h": 3600.0, "1d": 86400.0, "5d": 432000.0, "13d": 1123200.0, "20d": 1728000.0}


def true_wait(factor: float, seconds: float) -> float:
    """Return the mean wait (s) that replicas scatter about."""
    return 1000.0 * factor**0.5 + factor * seconds / 864.0


@pytest.fixture(scope="session")
def make_trials(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that writes a study's folder with this many replicas of each cell, and returns it."""

    def make(replicas=8, *, policies=("easy-slices", "easy"), factors=(1, 2, 4), noise=0.05, told=True, **more) -> Path:
        rows = []
        for policy in policies:
            for factor in factors:
                for repair, seconds in REPAIRS.items():
                    for replica in range(replicas):
                        luck = float(np.exp(noise * np.random.Generator(np.random.PCG64(replica)).normal()))
                        wait = true_wait(factor, seconds) * luck * (1.05 if policy == "easy" else 1.0)
                        rows.append(
                            {
                                "point": 0,
                                "policy": policy,
                                "workload": "demo",
                                "reliability_factor": factor,
                                "repair": repair,
                                "repair_seconds": seconds,
                                "replica": replica,
                                "seed": 1000 + replica,
                                "engine": "reference",
                                "mean_wait": wait,
                                "utilisation": 0.8,
                                "jobs": 100,
                                "jobs_1": 50,
                                "jobs_2_15": 30,
                                "jobs_16_up": 20,
                                "mean_wait_1": wait / 2,
                                "mean_wait_2_15": wait,
                                "mean_wait_16_up": 2.2 * wait / (1.1 if policy == "easy" else 1.0),
                            }
                            | more
                        )
        metadata = {"pipistrelle": json.dumps({"varied": ["policy", "reliability_factor", "repair"]})} if told else {}
        folder = tmp_path_factory.mktemp("study")
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        parquet.write_table(pyarrow.table(columns, metadata=metadata), folder / "trials.parquet")
        return folder

    return make
