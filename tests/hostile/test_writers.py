"""Commands that are killed while they write: each file is as before, or whole."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from pipistrelle.cli.main import cli
from pipistrelle.cli.run.batsim import command as batsim

#: parameters that name files and folders to read
READ = {
    *("spec_file", "outages", "config", "curve", "clients", "server_key", "runs", "run", "study", "place", "traces"),
    *("file", "lives", "session", "platform", "workload"),
}
#: folders of `resume` and of a case: they are read, and those of a run or a case also written
BOTH = {"resume folder"}
#: files and folders that other tests or no tests kill: the recorder needs a real slurmctld (tests/runs/recorder)
ELSEWHERE = {"serve timings", "serve record", "slurm record out", "slurm record reservations", "slurm check folder"}


@pytest.fixture
def writers(monkeypatch: pytest.MonkeyPatch, project_root: Path) -> Any:
    """Return the benchmark, as a module."""
    if not hasattr(os, "pidfd_open"):
        pytest.skip("there are no descriptors of processes")
    monkeypatch.syspath_prepend(project_root / "benchmarks")
    import hostile_writers  # type: ignore[import-not-found]

    return hostile_writers


def commands(group: click.Command, name: str, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    """Yield all commands with their names."""
    if not isinstance(group, click.Group):
        yield name, group
        return
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        assert command is not None
        yield from commands(command, f"{name} {word}".strip(), context)


def test_every_parameter_that_names_a_file_is_known(writers: Any) -> None:
    """A new option that writes a file must come with a command that is killed while it writes."""
    parameters = {
        f"{name} {parameter.name}"
        for name, command in [*commands(cli, "", click.Context(cli)), ("pipistrelle-batsim", batsim)]
        for parameter in command.params
        if isinstance(parameter.type, click.Path) and parameter.name not in READ
    }
    killed = {writer.option for writer in writers.WRITERS}

    assert parameters - BOTH - ELSEWHERE <= killed
    assert len(parameters) > 30


def kill(project_root: Path, *words: str) -> str:
    """Return the last line of the benchmark."""
    command = [sys.executable, project_root / "benchmarks" / "hostile_writers.py", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("command", ["workload convert"])
def test_a_killed_command_leaves_the_old_file_or_the_new_one(writers: Any, project_root: Path, command: str) -> None:
    """Wherever the kill strikes since the first file was opened; the same command then gives the new files."""
    assert kill(project_root, "--kills", "2", "--only", command) == "2 kills, 0 wrong"


@pytest.mark.slow
def test_all_commands_that_write_files_are_killed(writers: Any, project_root: Path) -> None:
    """Two hundred kills, and each command several times."""
    assert kill(project_root, "--kills", "200") == "200 kills, 0 wrong"
