"""How commands start: help loads nothing heavy, and a command loads what it needs when it runs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

#: what help never needs: numpy, sockets, the log, tables and the simulator
HEAVY = {"numpy", "zmq", "loguru", "rich", "asyncio", "pipistrelle.server.engine"}


def imported_by(*words: str) -> set[str]:
    """Return the modules that a Python process with these arguments has imported at its end."""
    program = "\n".join(
        [
            "import atexit, json, sys",
            "atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))",
            *words,
        ]
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr.splitlines()[-1]))


def command(*words: str) -> str:
    """Return the statements that run a command."""
    return f"from pipistrelle.cli.main import main; main({list(words)!r})"


@pytest.mark.parametrize("name", ["", "run", "serve", "schedule", "explain job", "workload convert", "failures fit"])
def test_help_imports_nothing_heavy(name: str) -> None:
    """Help is printed without importing numpy, ZeroMQ, the log or the engine."""
    assert not imported_by(command(*name.split(), "--help")) & HEAVY


def test_help_of_pipistrelle_batsim_imports_nothing_heavy() -> None:
    """The program prints its help as fast as the commands do."""
    program = "import sys; sys.argv[1:] = ['--help']; from pipistrelle.cli.__main__ import batsim; batsim()"

    assert not imported_by(program) & HEAVY


def test_a_run_in_one_process_imports_no_tables_and_no_sockets(tmp_path: Path) -> None:
    """Without a table of results and without another process, a run needs neither rich nor what connects processes."""
    words = ["run", "-w", "seven-jobs", "--scheduler", "easy", "--in-process", "--quiet", "-o", str(tmp_path / "out")]
    spared = {"rich", "subprocess", "pipistrelle.protocol.sockets", "pipistrelle.runs.execution.child"}

    assert not imported_by(command(*words)) & spared


def test_the_end_of_a_command_collects_no_garbage() -> None:
    """Objects are exempt from the interpreter's last collection, which would take as long as a small run."""
    program = f"import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count() > 0)); {command('--version')}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "True"


def test_a_policy_of_the_users_own_finds_the_log_set_up(tmp_path: Path) -> None:
    """A policy that logs with loguru gets the format of the commands, although they import loguru only when needed."""
    path = tmp_path / "mine.py"
    path.write_text("from loguru import logger\nlogger.info('quiet')\nlogger.warning('loud')\n", encoding="utf-8")
    words = [sys.executable, "-m", "pipistrelle.cli", "run", "-w", "seven-jobs", "--scheduler", f"{path}:Mine"]
    done = subprocess.run([*words, "--in-process"], capture_output=True, text=True, check=False)

    assert done.stderr.startswith("WARNING: loud\npipistrelle: ")
    assert "quiet" not in done.stderr


def test_the_thread_limit_ends_after_numpy_is_imported() -> None:
    """numpy starts no threads; neither a child nor a policy finds a changed environment."""
    program = (
        "import os\n"
        "from pipistrelle.cli.terminal.console import import_numpy\n"
        "before = dict(os.environ)\n"
        "import_numpy()\n"
        "assert dict(os.environ) == before\n"
    )

    assert "numpy" in imported_by(program)
