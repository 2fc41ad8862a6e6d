"""Runs that are killed at seeded points and resumed: a few of each kind in benchmarks/kill_points.py."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_runs_killed_at_fifty_points_resume_to_the_same_bytes(project_root: Path) -> None:
    """Server, scheduler or both are killed at a step, a notice, during a snapshot, at the end, or while resuming."""
    if not hasattr(os, "pidfd_open"):
        pytest.skip("there are no descriptors of processes")
    command = [sys.executable, project_root / "benchmarks" / "kill_points.py", "--steady"]
    done = subprocess.run([*command, "--points", "50", "--jobs", "300"], capture_output=True, text=True, check=False)
    assert "50 points, 0 wrong" in done.stdout, done
    assert done.returncode == 0
