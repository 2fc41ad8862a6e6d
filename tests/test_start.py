"""What a command imports: no more than it needs, for each run pays for it twice, once in either process."""

import ast
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("protocol", "platforms", "traces", "server", "schedulers", "studies")
#: what help never needs: numbers, sockets, the log, tables, and what simulates
HEAVY = {"numpy", "zmq", "loguru", "rich", "asyncio", "tomllib", "importlib.metadata", "pipistrelle.server.engine"}


def imported_by(*words: str) -> set[str]:
    """Return the modules that a process of Python with these arguments has imported at its end."""
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


@pytest.mark.parametrize("name", ["", "run", "serve", "schedule", "batsim", "explain", "convert", "outages"])
def test_help_imports_nothing_heavy(name: str) -> None:
    """Help is there before numpy, ZeroMQ, the log or the engine would be."""
    assert not imported_by(command(*([name] if name else []), "--help")) & HEAVY


@pytest.mark.parametrize(
    "package", ["pipistrelle.cli.schedule", "pipistrelle.cli.run", *(f"pipistrelle.{name}" for name in PACKAGES)]
)
def test_an_import_alone_imports_nothing_heavy(package: str) -> None:
    """A package, and a command's module, imports what it offers when that is asked for."""
    assert not imported_by(f"import {package}") & HEAVY


def test_a_scheduler_needs_nothing_of_the_server(tmp_path: Path) -> None:
    """A policy is made, and its runtime, without the engine, workloads, ZeroMQ's library, the log or tables."""
    words = ("schedule", "easy", "--connect", str(tmp_path), "--hello-timeout", "0.01")
    found = imported_by(f"try:\n    {command(*words)}\nexcept SystemExit:\n    pass")

    assert {"pipistrelle.schedulers.policy.runtime", "pipistrelle.schedulers.wire.native"} <= found
    assert not found & {"zmq", "loguru", "rich", "asyncio", "pipistrelle.traces.workload"}
    assert not {name for name in found if name.startswith(("pipistrelle.server", "pipistrelle.schedulers.maui"))}


def test_a_plain_run_needs_no_failures_and_no_second_dialect(tmp_path: Path) -> None:
    """A run of a workload without failures imports neither their models nor what speaks Batsim's dialect."""
    found = imported_by(command("run", "-w", "seven-jobs", "--in-process", "--out", str(tmp_path / "out")))

    assert "pipistrelle.server.engine.engine" in found
    assert not found & {"zmq", "loguru", "asyncio", "rich.progress", "numpy.random"}
    assert "pipistrelle.platforms.failures.models" not in found
    assert not {name for name in found if name.startswith(("pipistrelle.server.batsim", "pipistrelle.protocol.batsim"))}


@pytest.mark.parametrize("package", PACKAGES)
def test_what_is_imported_on_first_use_is_what_type_checkers_see(package: str) -> None:
    """Each public name is the one that the imports for type checkers in the package's ``__init__`` say it is."""
    module = import_module(f"pipistrelle.{package}")
    told = {}
    for node in ast.walk(ast.parse((ROOT / package / "__init__.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("pipistrelle."):
            told.update({alias.name: node.module for alias in node.names})
    del told["import_on_first_use"]

    assert {*told} == {*module.__all__}
    for name, home in told.items():
        wanted = import_module(f"{home}.{name}") if home == module.__name__ else getattr(import_module(home), name)
        assert getattr(module, name) is wanted
        assert name in dir(module)


def test_a_function_named_as_its_module_stays_a_function() -> None:
    """`pipistrelle.traces.load` is the function, however the module of that name was imported before."""
    program = (
        "import pipistrelle.traces.load, pipistrelle.traces.clean\n"
        "from pipistrelle.traces import clean, load\n"
        "assert callable(load) and callable(clean) and pipistrelle.traces.load is load\n"
    )

    assert "pipistrelle.traces.logs.swf" not in imported_by(program)


def test_an_unknown_name_is_no_attribute() -> None:
    """A package says which name it lacks, as any module does."""
    with pytest.raises(AttributeError, match=r"^module 'pipistrelle\.traces' has no attribute 'laod'$"):
        _ = import_module("pipistrelle.traces").laod


def test_a_policy_of_the_users_own_finds_the_log_set_up(tmp_path: Path) -> None:
    """What a policy says with loguru looks as all that the commands say, though they import it only when needed."""
    path = tmp_path / "mine.py"
    path.write_text("from loguru import logger\nlogger.info('quiet')\nlogger.warning('loud')\n", encoding="utf-8")
    words = [sys.executable, "-m", "pipistrelle.cli", "run", "-w", "seven-jobs", "--scheduler", f"{path}:Mine"]
    done = subprocess.run([*words, "--in-process"], capture_output=True, text=True, check=False)

    assert done.stderr.startswith("WARNING: loud\npipistrelle: ")
    assert "quiet" not in done.stderr


def test_the_wish_for_no_threads_is_over_when_numpy_is_there() -> None:
    """numpy starts no threads; neither a child nor a policy finds a changed environment."""
    program = (
        "import os\n"
        "from pipistrelle.cli.console import import_numpy\n"
        "before = dict(os.environ)\n"
        "import_numpy()\n"
        "assert dict(os.environ) == before\n"
    )

    assert "numpy" in imported_by(program)
