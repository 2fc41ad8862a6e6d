"""The minimal scheduler of docs/tutorials/write-your-scheduler.md is as short and complete as the page says."""

import ast
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
MINIMAL = ROOT / "docs" / "examples" / "minimal_scheduler.py"


def test_it_is_short_and_imports_nothing_of_ours() -> None:
    """It has at most 25 lines, and imports only pyzmq and sys."""
    text = MINIMAL.read_text(encoding="utf-8")
    imports = [alias.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import) for alias in node.names]

    assert len(text.splitlines()) <= 25
    assert sorted(imports) == ["sys", "zmq"]
    assert "from " not in text


@pytest.mark.slow
def test_it_finishes_every_job(tmp_path: Path) -> None:
    """As the scheduler of `pipistrelle run` it completes all jobs of the bundled workload, as `fcfs` does."""
    summaries = []
    for name, scheduler in {"minimal": ["python", str(MINIMAL), "{endpoint}"], "fcfs": ["fcfs"]}.items():
        command = ["pipistrelle.cli", "run", "--strict", "--out", str(tmp_path / name), "--scheduler", *scheduler]
        command = [sys.executable if word == "python" else word for word in command]
        run = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, check=False)
        assert (run.returncode, run.stderr) == (0, "")
        summaries.append(msgspec.json.decode((tmp_path / name / "out_summary.json").read_bytes()))
        del summaries[-1]["results_sha256"], summaries[-1]["sha256"]  # each chooses its own units and gives reasons

    assert summaries[0]["unfinished"] == summaries[0]["rejected"] == 0
    assert summaries[0]["completed"] + summaries[0]["killed_at_walltime"] == summaries[0]["jobs"] == 5000
    assert summaries[0] == summaries[1]


def test_the_class_decides_as_easy_does(tmp_path: Path) -> None:
    """The policy on the page decides as `easy` does; maintenance ends none of its jobs."""
    example = f"{ROOT / 'docs' / 'examples' / 'considerate.py'}:Considerate"
    maintained = ("--maintenance", "@5d +12h all weekly announced 3d")
    for name, scheduler, more in (("page", example, ()), ("easy", "easy", ()), ("maintained", example, maintained)):
        words = ["pipistrelle.cli", "run", "--in-process", "--strict", "--out", str(tmp_path / name), *more]
        command = [sys.executable, "-m", *words, "--scheduler", scheduler]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (run.returncode, run.stderr) == (0, "")
    jobs = [(tmp_path / name / "out_jobs.csv").read_bytes() for name in ("page", "easy")]
    summary = msgspec.json.decode((tmp_path / "maintained" / "out_summary.json").read_bytes())

    assert jobs[0] == jobs[1]
    assert summary["reliability"]["interrupted_attempts"] == 0
    assert summary["jobs"] == summary["completed"] + summary["killed_at_walltime"] == 5000
