"""What the command line tells of itself: sections, kinds of values, near misses, and the package's own name."""

import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

import pipistrelle
from pipistrelle.cli.main import cli
from pipistrelle.protocol.fields import package_version

ALL = ["Inputs", "Machine", "Failures and maintenance", "Scheduler and its parts", "Connection", "Outputs"]


def commands(group: click.Group = cli, path: str = "pipistrelle") -> Iterator[tuple[str, click.Command]]:
    """Yield each command with its whole name."""
    for name in group.list_commands(click.Context(group)):
        found = group.get_command(click.Context(group), name)
        assert found is not None
        yield f"{path} {name}", found
        if isinstance(found, click.Group):
            yield from commands(found, f"{path} {name}")


def help_of(name: str, command: click.Command) -> str:
    """Return what ``--help`` prints."""
    return command.get_help(click.Context(command, info_name=name, terminal_width=80))


def titles(text: str) -> list[str]:
    """Return the headings of a help."""
    return [line.removesuffix(":") for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]


@pytest.mark.parametrize(("name", "command"), list(commands()), ids=[name for name, _ in commands()])
def test_help_speaks_of_numbers_and_fits(name: str, command: click.Command) -> None:
    """No kind of value is called as a program calls it, and no line is wider than 80 columns."""
    text = help_of(name, command)

    assert not [word for word in ("INTEGER", "FLOAT", "RANGE") if word in text]
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("run", ALL),
        (
            "serve",
            ALL,
        ),
        ("batsim", ["Inputs", "Machine", "Scheduler and its parts", "Connection", "Outputs"]),
        ("schedule", ["Scheduler and its parts", "Connection"]),
        ("convert", []),
    ],
)
def test_help_has_sections(name: str, expected: list[str]) -> None:
    """In one order; what belongs to none comes last, and short helps have one list."""
    found = titles(help_of(name, dict(commands())[f"pipistrelle {name}"]))

    assert found == ([*expected, "Other options"] if expected else ["Options"])


def test_a_schedulers_name_is_enough(shell):
    """``run fcfs`` is ``run --scheduler fcfs``; a file of that name is a description all the same."""
    words = ("-w", "seven-jobs", "--in-process")
    shell.run("run", "fcfs", *words, "-o", "a").ok()
    shell.run("run", *words, "--scheduler", "fcfs", "-o", "b").ok()
    assert shell.files("a") == shell.files("b")

    shell.run("run", "fcfs", "--scheduler", "easy").failed(2, "two schedulers: 'fcfs'")
    shell.write("fcfs", 'scheduler = "filler"\nworkload = "seven-jobs"\n')
    assert "filler" in shell.run("run", "fcfs", "--in-process", "-o", "c").ok().out


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (("run", "--dialect", "batsin"), "batsim"),
        (("run", "--requeue", "nevr"), "never"),
        (("run", "esy"), "easy"),
        (("yield", "--checkpoint", "dali", "--nodes", "2", "--mtbf", "1y", "--dump", "1min"), "daly"),
        (("list", "platfroms"), "platforms"),
        (("rum",), "run"),
        (("run", "--schedular", "easy"), "--scheduler"),
    ],
)
def test_a_misspelt_word_is_not_far(shell, words, near):
    """The closest of what there is stands in the message."""
    told = shell.run(*words).failed(2).err

    assert f"Did you mean '{near}'?" in told or f"Did you mean {near}" in told or f"({near}" in told, told


def test_the_package_runs_and_has_a_version():
    """``python -m pipistrelle`` is the command; ``pipistrelle.__version__`` is what ``--version`` prints."""
    words = [sys.executable, "-m", "pipistrelle", "--version"]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout

    assert pipistrelle.__version__ == package_version()
    assert told.startswith(f"pipistrelle {pipistrelle.__version__} ")
    with pytest.raises(AttributeError, match="has no attribute 'versoin'"):
        pipistrelle.versoin  # noqa: B018 - it is looked up
