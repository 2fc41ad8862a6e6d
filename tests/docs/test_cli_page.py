"""docs/reference/cli.md: every command, option, default and exit code, as the code has them."""

import re
from collections.abc import Iterator

import click
import pytest

import pipistrelle.cli.main  # noqa: F401 - with all errors of all layers
from pipistrelle.cli.main import COMMANDS, cli
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.schedulers.policy import errors as scheduler_errors
from pipistrelle.server import errors as server_errors

PAGE = "docs/reference/cli.md"
SHARED = "Options of run and serve"


def commands(group: click.Group = cli, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield every command that does something, with its full name."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


def options(command: click.Command) -> dict[str, click.Option]:
    """Return a command's options by their long names."""
    found = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    return {max(option.opts, key=len): option for option in found}


@pytest.fixture
def documented(section, table):
    """Return a function from a command's name to {long option: its row}, with what run and serve share."""

    def rows(name: str) -> dict[str, list[str]]:
        text = section(PAGE, f"`pipistrelle {name}`")
        if name in {"run", "serve"}:
            text += section(PAGE, SHARED)
        by_name = {}
        for row in table(text):
            names = re.findall(r"`(-[\w-]+)`", row[0])
            by_name[next(name for name in names if name.startswith("--"))] = row
        return by_name

    return rows


@pytest.mark.parametrize(("name", "command"), list(commands()), ids=[name for name, _ in commands()])
def test_every_option_is_documented(name, command, documented):
    """A command's options and those on the page are the same, with their short forms and opposites."""
    ours, theirs = options(command), documented(name)

    assert set(ours) == set(theirs)
    for long, option in ours.items():
        names = re.findall(r"`(-[\w-]+)`", theirs[long][0])
        assert sorted(names) == sorted([*option.opts, *option.secondary_opts]), long


@pytest.mark.parametrize(("name", "command"), list(commands()), ids=[name for name, _ in commands()])
def test_every_default_is_documented(name, command, documented):
    """A default that is a value stands on the page, and what is required is called so."""
    for long, option in options(command).items():
        cell = documented(name)[long][1].strip("`")
        if option.required:
            assert cell == "required", long
        elif option.is_flag and not option.secondary_opts:
            assert cell == "off", long
        elif option.default is True:
            assert cell == "on", long
        elif isinstance(option.default, int | float):
            assert float(cell) == option.default, long
        elif isinstance(option.default, str):
            assert cell == option.default, long


def test_every_command_is_in_the_overview(section, table):
    """The table at the head names every command, and the group's own options are beside it."""
    text = section(PAGE, "Command line")
    named = {match[1] for row in table(text) if (match := re.match(r"\[`([\w -]+)`\]", row[0]))}

    assert named == {name for name, _ in commands()}
    for option in options(cli).values():
        assert all(f"`{name}`" in text for name in option.opts)
    assert {name.split()[0] for name, _ in commands()} == set(COMMANDS)


def error_codes(kind: type[PipistrelleError] = PipistrelleError) -> set[int]:
    """Return the exit codes of an error and of all derived from it."""
    return {kind.exit_code}.union(*(error_codes(derived) for derived in kind.__subclasses__()))


def test_every_exit_code_is_documented(section, table):
    """The codes on the page are success and difference, those of all our errors, of a bug and of no memory."""
    assert server_errors.RunError in PipistrelleError.__subclasses__()
    assert scheduler_errors.SchedulerError.exit_code == server_errors.SchedulerFailed.exit_code

    codes = [int(row[0]) for row in table(section(PAGE, "Exit codes"))]

    assert codes == sorted(codes)
    assert set(codes) == {0, 1, 70, 71} | error_codes()
