"""Paper 002's time steps: a scheduler that polls errs the more the longer its step, and a small step converges."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pipistrelle.studies.inputs.named import load_workload, platform_for


@pytest.fixture(scope="module")
def time_steps(project_root: Path) -> ModuleType:
    """Return the benchmark that makes the study."""
    spec = importlib.util.spec_from_file_location("time_steps", project_root / "benchmarks" / "time_steps.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["time_steps"] = module
    spec.loader.exec_module(module)
    return module


def test_the_error_grows_with_the_step_and_a_small_step_converges(traces_dir: Path, time_steps: ModuleType) -> None:
    """A week of KTH: the log is in whole seconds, so that a step of 1 s is exact; longer ones err more and more."""
    workload = load_workload(str(traces_dir / "KTH-SP2-1996-2.1-cln.swf.gz"))
    week = time_steps.week_of(workload, 20)

    events, *polled = time_steps.study(platform_for(workload), week, "easy", (1.0, 5.0, 10.0, 30.0, 60.0))

    distances = [error.absolute for error in polled]
    assert distances[0] == 0.0
    assert distances == sorted(distances)
    assert all(error.absolute > 0.5 * error.step for error in polled[1:])
    assert events.asked == polled[0].asked  # no step is taken at which nothing happens
