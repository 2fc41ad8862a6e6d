"""docs/reference/cli.md: every command and exit code, as the code has them."""

import re
from collections.abc import Iterator, Mapping

import click

import pipistrelle.cli.main  # noqa: F401 - with all errors of all layers
from pipistrelle.cli.doors import GROUPS, Door
from pipistrelle.cli.main import cli
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.schedulers.policy import errors as scheduler_errors
from pipistrelle.server import errors as server_errors

PAGE = "docs/reference/cli.md"
NAME = re.compile(r"\[?`([\w -]+)`")


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


def purpose(name: str) -> str:
    """Return the line of the table of commands."""
    doors: Mapping[str, Door] = {word: door for group in GROUPS.values() for word, door in group.items()}
    *groups, last = name.split()
    for word in groups:
        doors = doors[word].doors or {}
    return doors[last].purpose


def test_the_overview_is_that_of_the_help(section, table):
    """The table at the top has every command, in the order and words of the help."""
    rows = [(match[1], row[1]) for row in table(section(PAGE, "Command line")) if (match := NAME.match(row[0]))]

    assert rows == [(name, purpose(name)) for name, _ in commands()]


def error_codes(kind: type[PipistrelleError] = PipistrelleError) -> set[int]:
    """Return the exit codes of an error and of all derived from it."""
    return {kind.exit_code}.union(*(error_codes(derived) for derived in kind.__subclasses__()))


def test_every_exit_code_is_documented(section, table):
    """The codes on the page are success, difference, those of all our errors, of a bug and of too little memory."""
    assert server_errors.RunError in PipistrelleError.__subclasses__()
    assert scheduler_errors.SchedulerError.exit_code == server_errors.SchedulerFailed.exit_code

    codes = [int(row[0]) for row in table(section(PAGE, "Exit codes"))]

    assert codes == sorted(codes)
    assert set(codes) == {0, 1, 70, 71} | error_codes()
