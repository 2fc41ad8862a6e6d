"""Numbers that independent programs got for real logs: every digit that they print."""

from functools import cache
from pathlib import Path

import pytest

from pipistrelle.runs.execution.run import run_in_process
from pipistrelle.runs.inputs.named import load_workload
from pipistrelle.traces.workload import Workload

#: (log, platform, jobs that can be simulated, jobs that cannot, by reason)
KTH = (
    "KTH-SP2-1996-2.1-cln.swf.gz",
    "kth-sp2",
    28_467,
    {"run time zero or missing": 8, "no size": 1},
)
GRIZZLY = ("LANL-Grizzly-2018-01.swf", "grizzly", 774, dict[str, int]())
THETA = ("ALCF-Theta-2022.swf.gz", "theta", 23_911, dict[str, int]())
Trace = tuple[str, str, int, dict[str, int]]

#: (trace, policy, mean wait (s), mean bounded slowdown, makespan (s) if it was printed)
PUBLISHED = [
    (KTH, "fcfs", "353949.932", "6818.3216", 29_379_608),
    (KTH, "easy", "6837.485", "92.7299", 29_363_626),
    (KTH, "easy-sjbf", "5906.126", "69.4245", 29_363_626),
    (GRIZZLY, "fcfs", "123633.395", "1572.2073", 2_493_109),
    (GRIZZLY, "easy", "32359.820", "154.5747", 2_487_442),
    (GRIZZLY, "easy-sjbf", "28885.129", "128.1728", 2_486_042),
    (THETA, "easy", "43817.656", "115.8396", None),
]


@cache
def log(path: Path) -> Workload:
    """Return a log, read once."""
    return load_workload(str(path))


@pytest.mark.parametrize(
    ("trace", "policy", "wait", "slowdown", "makespan"), PUBLISHED, ids=[f"{row[0][1]}-{row[1]}" for row in PUBLISHED]
)
def test_a_real_log_gives_the_published_numbers(
    traces_dir: Path, trace: Trace, policy: str, wait: str, slowdown: str, makespan: int | None
) -> None:
    """Mean wait, mean bounded slowdown (tau 10 s) and makespan agree to the last printed digit; every job runs."""
    name, platform, jobs, dropped = trace
    summary = run_in_process(log(traces_dir / name), policy, platform=platform).summary

    assert (summary.reason, summary.jobs, summary.rejected, summary.unfinished) == ("completed", jobs, 0, 0)
    assert summary.dropped == dropped
    assert (f"{summary.mean_wait:.3f}", f"{summary.mean_bounded_slowdown:.4f}") == (wait, slowdown)
    if makespan is not None:
        assert summary.makespan == makespan
