"""Runs that are killed at seeded points, and go on: benchmarks/kill_points.py, some of each of its ways."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_fifty_kill_points(project_root: Path) -> None:
    """Server, scheduler, both; at a step, at a notice, in the middle of a snapshot, at the end, when it goes on."""
    if not hasattr(os, "pidfd_open"):
        pytest.skip("there are no descriptors of processes")
    command = [sys.executable, project_root / "benchmarks" / "kill_points.py", "--steady"]
    done = subprocess.run([*command, "--points", "50", "--jobs", "300"], capture_output=True, text=True, check=False)
    assert "50 points, 0 wrong" in done.stdout, done
    assert done.returncode == 0
