"""Commands that are killed while they write: each file is as before, or whole."""

import inspect
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import pytest

import pipistrelle
from pipistrelle.cli.main import cli
from pipistrelle.cli.run.batsim import command as batsim

#: options of runs that name files and folders to read, in all commands
READ = {"spec_file", "outages", "config", "curve", "clients", "server_key", "slurm_prefix"}
#: parameters that name files and folders to read, with their commands
ONLY_READ = {
    *("compare runs", "report runs", "explain queue run", "explain slurm run", "explain placement run"),
    *("explain order run", "explain accuracy run", "explain titan lives", "study run study", "study summary place"),
    *("study compare place", "study break-even place", "study plot place", "study papers traces"),
    *("workload fill platform", "workload fill workload", "failures show file", "failures fit file"),
    *("check replay session", "slurm record reservations", "slurm record accounting"),
    *("slurm check folder", "resume folder"),
}
#: parameters of commands that are killed with others of theirs: `serve` writes as `run` does
ELSEWHERE = {"serve timings", "serve record"}
#: arguments of public functions that are read, or are no path; `run_spec` writes the folder of its RunOptions
PATHS_READ = {
    *("Study.read path", "load_node_rows folder", "open path", "open_study path", "read_maui_config path"),
    *("Run folder", "Forecast out", "RunOptions out"),
}
#: names of arguments that may be paths
PATH_NAMES = {"out", "path", "file", "folder", "record", "page", "as_csv", "picture", "output", "target"}


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


def leaves() -> dict[str, click.Command]:
    """Return {name: command} of all commands of all programs that are not groups."""
    return {**dict(commands(cli, "", click.Context(cli))), "pipistrelle-batsim": batsim}


def test_every_program_is_known(project_root: Path) -> None:
    """A new program must be added to the commands above."""
    scripts = tomllib.loads((project_root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert scripts.keys() == {"pipistrelle", "pipistrelle-batsim"}


def test_every_command_is_killed_or_writes_nothing(writers: Any) -> None:
    """A new command must be added to the list of those that are killed, or to those that are seen to write nothing."""
    killed = {writer.command for writer in writers.WRITERS if not writer.command.startswith("python")}
    assert killed | writers.SILENT.keys() == leaves().keys()
    assert not killed & writers.SILENT.keys()


def test_every_parameter_that_names_a_file_is_known(writers: Any) -> None:
    """A new option that writes a file must come with a command that is killed while it writes."""
    parameters = {
        f"{name} {parameter.name}"
        for name, command in leaves().items()
        for parameter in command.params
        if isinstance(parameter.type, click.Path) and parameter.name not in READ
    }
    killed = {writer.option for writer in writers.WRITERS if writer.words[0] != "python"}

    assert parameters - ONLY_READ - ELSEWHERE == killed
    assert parameters >= ONLY_READ | ELSEWHERE
    assert not ONLY_READ & killed


def test_every_option_that_says_it_writes_names_a_path() -> None:
    """So that the test above finds it: a text would not be recognised as a file."""
    for name, command in leaves().items():
        for option in command.params:
            if not isinstance(option, click.Option) or option.is_flag or isinstance(option.type, click.Choice):
                continue
            if re.match(r"(Also )?[Ww]rite ", option.help or "") is None:
                continue
            assert isinstance(option.type, click.Path), f"{name} {option.name}"


def arguments() -> Iterator[str]:
    """Yield the arguments of the public functions, classes and methods of the Python API, with their names."""
    for name in pipistrelle.__all__:
        found = getattr(pipistrelle, name)
        own = {name: found}
        if inspect.isclass(found):
            own |= {f"{name}.{word}": getattr(found, word) for word in vars(found) if word[0] != "_"}
        for whole, function in own.items():
            with suppress(TypeError, ValueError):  # a value, or a function in C
                yield from (f"{whole} {parameter}" for parameter in inspect.signature(function).parameters)


def test_every_public_function_that_writes_a_file_is_killed(writers: Any) -> None:
    """A new argument that names a file must come with a call that is killed while it writes."""
    found = {argument for argument in arguments() if argument.rpartition(" ")[2] in PATH_NAMES}
    killed = {writer.option.removeprefix("python ") for writer in writers.WRITERS if writer.words[0] == "python"}
    assert found - PATHS_READ == killed - {"run_spec options"}


@pytest.mark.parametrize("command", ["validate", "help", "schedule"])
def test_commands_without_outputs_write_no_file(writers: Any, tmp_path: Path, command: str) -> None:
    """No file in the working directory appears or changes."""
    writers.prepare(tmp_path)
    assert writers.silent(tmp_path, command) == ""


@pytest.mark.slow
def test_all_commands_without_outputs_write_no_file(writers: Any, tmp_path: Path) -> None:
    """Nor in the folders of runs and studies that they read."""
    writers.made(tmp_path)
    assert [text for name in writers.SILENT if (text := writers.silent(tmp_path, name))] == []


def test_a_file_that_nobody_declared_is_found(writers: Any, tmp_path: Path) -> None:
    """The undisturbed command must write exactly the files that are checked after kills."""
    writers.prepare(tmp_path)
    words = ("workload", "filter", "made.swf", "--first", "40", "-o", "x.swf")
    for files, wrong in (
        (("x.swf",), ""),
        ((), "also writes ['x.swf']"),
        (("x.swf", "y.swf"), "does not write ['y.swf']"),
    ):
        writing = writers.Writing(tmp_path, writers.Writer("workload filter output", words, files))
        assert writing.whole() == wrong
        (tmp_path / "x.swf").unlink()


def disturb(project_root: Path, *words: str) -> str:
    """Return the last line of the benchmark; skip if it cannot mount a small disk."""
    command = [sys.executable, project_root / "benchmarks" / "hostile_writers.py", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "cannot be mounted here" in done.stderr:
        pytest.skip("a small file system cannot be mounted here (that needs root)")
    assert done.returncode == 0, done
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("command", ["workload convert"])
def test_a_killed_command_leaves_the_old_file_or_the_new_one(writers: Any, project_root: Path, command: str) -> None:
    """Wherever the kill strikes since the first file was opened; the same command then gives the new files."""
    assert disturb(project_root, "--kills", "2", "--only", command) == "2 kills, 0 wrong"


@pytest.mark.slow
def test_all_commands_that_write_files_are_killed(writers: Any, project_root: Path) -> None:
    """Two hundred kills, and each command several times."""
    assert disturb(project_root, "--kills", "200") == "200 kills, 0 wrong"


@pytest.mark.slow
def test_full_disks_and_few_descriptors_spoil_no_file(writers: Any, project_root: Path) -> None:
    """Exit code 6 or 71 with one message; old files are kept, and tables end with whole lines."""
    words = ("--kills", "0", "--full", "80", "--descriptors", "80")
    assert disturb(project_root, *words) == "80 full, 80 descriptors, 0 wrong"
