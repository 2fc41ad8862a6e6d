"""The memory of a run does not grow with its length: benchmarks/soak.py, short."""

import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.outputs.metrics import Metrics


def test_two_processes_hold_no_more_after_many_round_trips(
    monkeypatch: pytest.MonkeyPatch, project_root: Path, tmp_path: Path
) -> None:
    """Memory and descriptors of both processes are measured from outside while the run continues."""
    if not Path("/proc/self/statm").is_file():
        pytest.skip("nobody tells what a process holds")
    monkeypatch.syspath_prepend(project_root / "benchmarks")
    import soak  # type: ignore[import-not-found]

    round_trips, _, looks = soak.soak(3000, "easy", tmp_path)
    assert round_trips >= 3000
    lines, fine = soak.figures([look for look in looks if look.done])
    assert fine, lines


def test_the_figures_of_jobs_take_their_memory_at_once() -> None:
    """Neither each job's end nor the summary allocates much more."""
    jobs = 20_000
    job: Any = SimpleNamespace(attempt=None, taken=None, state="COMPLETED_SUCCESSFULLY", submit=0.0, start=3.0, end=9.0)
    job.alloc = NodeSet.interval(0, 3)
    metrics = Metrics(jobs=jobs)
    metrics.begins(0.0, 4)
    tracemalloc.start()
    try:
        for _ in range(jobs):
            metrics.ended(9.0, job)
        assert tracemalloc.get_traced_memory()[1] < jobs
        summary = metrics.summary()
        assert tracemalloc.get_traced_memory()[1] < 100 * jobs
    finally:
        tracemalloc.stop()
    assert (summary.completed, summary.mean_wait, summary.max_turnaround, summary.computing) == (jobs, 3, 9, 24 * jobs)
