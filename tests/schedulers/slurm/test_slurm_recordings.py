"""Our decisions against recordings of the real slurmctld, where these are present."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
#: {recording: least share of backfill's outcomes that are equal}
PASSES = {"a": 0.995, "b": 0.995, "c": 0.995, "d": 0.995, "f": 0.995}


@pytest.fixture(scope="module")
def passes() -> ModuleType:
    """Return the benchmark that compares passes."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import slurm_passes
    finally:
        sys.path.pop(0)
    return slurm_passes


@pytest.fixture(scope="module")
def runs() -> ModuleType:
    """Return the benchmark that compares whole runs."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import slurm_runs
    finally:
        sys.path.pop(0)
    return slurm_runs


@pytest.mark.parametrize("name", [pytest.param(one, marks=() if one == "d" else pytest.mark.slow) for one in PASSES])
def test_passes_decide_as_slurmctld_did(name: str, passes: ModuleType, slurm22_dir: Path) -> None:
    """Main passes, backfill, priorities and nodes of starts are equal from the state before each pass."""
    player = passes.Player(slurm22_dir / name)
    player.play()
    shares = player.shares()
    assert shares["main passes"] >= 0.99
    assert shares["outcomes"] >= PASSES[name]
    assert shares["priorities"] >= 0.995
    assert shares["starts"] >= 0.99


@pytest.mark.parametrize("name", [pytest.param(one, marks=() if one == "d" else pytest.mark.slow) for one in "abcdf"])
def test_whole_runs_start_jobs_at_the_same_second(name: str, runs: ModuleType, slurm22_dir: Path) -> None:
    """At least 95 % of the starts are at the same second on the same nodes; mean waits are within 1.5 %."""
    folder = slurm22_dir / name
    same, count, worst = runs.compare(folder, runs.play(folder, model=False), 0)
    assert same >= 0.95 * count
    assert worst <= 0.015


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a", "b", "c", "f"])
def test_whole_runs_with_the_model_of_delays(name: str, runs: ModuleType, slurm22_dir: Path) -> None:
    """Without the recorded times, 80 % of the starts are equal, and mean waits are within 1.5 %."""
    folder = slurm22_dir / name
    same, count, worst = runs.compare(folder, runs.play(folder, model=True), 0)
    assert same >= 0.8 * count
    assert worst <= 0.015
