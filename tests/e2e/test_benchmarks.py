"""The benchmarks as commands with wrong input."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent.parent / "benchmarks"
#: the benchmarks whose argument is a file that they read, or let the package read
READERS = sorted(
    path.name
    for path in BENCHMARKS.glob("*.py")
    if "from started import" in path.read_text("utf-8") and path.name != "compare_batsim.py"
)


def test_those_that_read_files_are_known() -> None:
    """The list of the test below is complete."""
    assert {"in_process.py", "titan_month.py", "foreign.py"} <= {*READERS}


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one in READERS[:2] else pytest.mark.slow) for one in READERS]
)
def test_a_file_that_is_not_there_is_one_line(name: str, tmp_path: Path) -> None:
    """No traceback, whether the benchmark or a command of the package reads the file; nothing else is printed."""
    words = [sys.executable, str(BENCHMARKS / name), str(tmp_path / "nothing.swf")]

    done = subprocess.run(words, check=False, capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith(f"{name}: ")] == done.stderr.splitlines()[-1:]
