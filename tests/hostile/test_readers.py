"""Damaged and hostile files: each reader answers as documented, in bounded time and memory."""

import subprocess
import sys
from pathlib import Path

import pytest


def damage(project_root: Path, *words: str, benchmark: str = "hostile_readers") -> str:
    """Return the last line of the benchmark."""
    command = [sys.executable, project_root / "benchmarks" / f"{benchmark}.py", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("reader", ["SWF"])
def test_damaged_files_are_refused_with_one_message(project_root: Path, reader: str) -> None:
    """No traceback, no hang, no long message; a file may also stay valid."""
    assert damage(project_root, "--files", "3", "--only", reader) == "3 files, 0 wrong"


@pytest.mark.slow
def test_damaged_files_of_all_readers_are_refused(project_root: Path) -> None:
    """Some of each kind that a command reads."""
    assert damage(project_root, "--files", "145", "--seed", "7") == "145 files, 0 wrong"


@pytest.mark.parametrize("place", ["link", "pipe"])
def test_files_in_other_places_are_refused_or_read(project_root: Path, place: str) -> None:
    """A topology.conf beside a slurm.conf that leads out of the folder is not quoted, and no pipe is waited for."""
    words = ("--only", "topology.conf", "--place", place)
    assert damage(project_root, *words, benchmark="hostile_places") == "1 files, 0 wrong"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reader", "shape"),
    [
        ("Maui trace", "lines"),
        ("gres.conf", "lines"),
        ("Philly", "lists"),
        ("summary of a run", "objects"),
        ("Slurm events", "elements of a list"),
        ("sacct", "includes"),
        ("Maui resources of a run", "renumbered"),
        ("queue of squeue", "long word"),
        ("recorded log", "lines"),
    ],
)
def test_long_files_are_answered_in_bounded_time_and_memory(project_root: Path, reader: str, shape: str) -> None:
    """Blank lines without end, deep nesting, long words in quotes, and 500,000 rows that cannot be read."""
    words = ("--only", reader, "--shape", shape)
    assert damage(project_root, *words, benchmark="hostile_sizes") == "1 files, 0 wrong"
