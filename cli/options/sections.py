"""Commands whose help has sections, calls a number a number, and names what is near a misspelt choice."""

from collections.abc import Callable
from copy import copy
from typing import Any, Final, TypeVar

import click

from pipistrelle.cli.options.fields import together

_C = TypeVar("_C", bound=Callable[..., Any])

INPUTS: Final = "Inputs"
MACHINE: Final = "Machine"
FAILURES: Final = "Failures and maintenance"
SCHEDULER: Final = "Scheduler and its parts"
CONNECTION: Final = "Connection"
OUTPUTS: Final = "Outputs"
#: the order in the help; what belongs to none comes last
_ORDER: Final = (INPUTS, MACHINE, FAILURES, SCHEDULER, CONNECTION, OUTPUTS)
_REST: Final = "Other options"
_SECTION: Final = "pipistrelle_section"


def in_section(title: str, *adders: Callable[[Any], Any]) -> Callable[[_C], _C]:
    """Return what adds what each of these adds, in a section of the help."""

    def add(function: _C) -> _C:
        before = len(getattr(function, "__click_params__", ()))
        together(*adders)(function)
        options = vars(function)["__click_params__"]
        for place in range(before, len(options)):
            options[place] = copy(options[place])  # another command may have it elsewhere
            vars(options[place])[_SECTION] = title
        return function

    return add


def sections(command: click.Command, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
    """Return {title: options, each as its names and its text}, in the order of the help."""
    found: dict[str, list[tuple[str, str]]] = {}
    for param in command.get_params(ctx):
        record = None if isinstance(param, click.Argument) else param.get_help_record(ctx)
        if record is not None:
            found.setdefault(vars(param).get(_SECTION, _REST), []).append(record)
    if found.keys() == {_REST}:
        return {"Options": found[_REST]}
    return {title: found[title] for title in (*_ORDER, _REST) if title in found}


class Command(click.Command):
    """A command whose help has its options in sections, if any of them is in one."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        for param in self.params:
            if param.metavar is None and isinstance(param.type, click.types.IntParamType | click.types.FloatParamType):
                param.metavar = "NUMBER"

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, section by section."""
        for title, records in sections(self, ctx).items():
            with formatter.section(title):
                formatter.write_dl(records)


class Group(click.Group):
    """A group of such commands."""

    command_class = Command
