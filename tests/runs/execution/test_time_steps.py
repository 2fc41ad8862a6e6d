"""Paper 002's time steps: a scheduler that polls errs the more the longer its step, and a small step converges."""

from pathlib import Path
from types import ModuleType

import pytest
from tests.conftest import load_program

from pipistrelle.runs.inputs.named import load_workload, platform_for


@pytest.fixture(scope="module")
def time_steps() -> ModuleType:
    """Return the benchmark that makes the study."""
    return load_program("benchmarks/time_steps.py")


def test_the_error_grows_with_the_step_and_a_small_step_converges(traces_dir: Path, time_steps: ModuleType) -> None:
    """A week of KTH: the log is in whole seconds, so that a step of 1 s is exact; longer ones err more and more."""
    workload = load_workload(str(traces_dir / "KTH-SP2-1996-2.1-cln.swf.gz"))
    week = time_steps.week_of(workload, 20)

    events, *polled = time_steps.study(platform_for(workload), week, "easy", (1.0, 5.0, 10.0, 30.0, 60.0))

    distances = [error.absolute for error in polled]
    assert distances[0] == 0.0
    assert distances == sorted(distances)
    assert all(error.absolute > 0.5 * error.step for error in polled[1:])
    assert events.asked <= polled[0].asked  # a scheduler that does not poll is not asked about each event
