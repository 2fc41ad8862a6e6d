"""Commands whose help has sections, or shows the common options only."""

from collections.abc import Callable, Sequence
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
#: order in the help; options without a section come last
_ORDER: Final = (INPUTS, MACHINE, FAILURES, SCHEDULER, CONNECTION, OUTPUTS)
_REST: Final = "Other options"
_SECTION: Final = "pipistrelle_section"
_ALL: Final = "pipistrelle.help_all"


def in_section(title: str, *adders: Callable[[Any], Any]) -> Callable[[_C], _C]:
    """Return a decorator that adds options to a command.

    The help of the command lists them under ``title``. ``adders`` are decorators, each of which adds some options.
    """

    def add(function: _C) -> _C:
        before = len(getattr(function, "__click_params__", ()))
        together(*adders)(function)
        options = vars(function)["__click_params__"]
        for place in range(before, len(options)):
            options[place] = copy(options[place])  # another command may use it in another section
            vars(options[place])[_SECTION] = title
        return function

    return add


def sections(command: click.Command, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
    """Return {section title: [(option names, help text)]}, in the order of the help."""
    found: dict[str, list[tuple[str, str]]] = {}
    for param in command.get_params(ctx):
        record = None if isinstance(param, click.Argument) else param.get_help_record(ctx)
        if record is not None:
            found.setdefault(vars(param).get(_SECTION, _REST), []).append(record)
    if found.keys() == {_REST}:
        return {"Options": found[_REST]}
    return {title: found[title] for title in (*_ORDER, _REST) if title in found}


class Command(click.Command):
    """A command whose help lists options in sections.

    Attributes:
        common: names of the options that ``--help`` shows; ``--help-all`` shows all options. Empty: both show all.
    """

    def __init__(self, *args: Any, common: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.common = common
        for param in self.params:
            if param.metavar is None and isinstance(param.type, click.types.IntParamType | click.types.FloatParamType):
                param.metavar = "NUMBER"
        if common:
            text = "Show all options and exit."
            settings = {"is_flag": True, "is_eager": True, "expose_value": False, "help": text}
            self.params.append(click.Option(["--help-all"], callback=_print_all, **settings))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, section by section, or only the common ones."""
        found = sections(self, ctx)
        if self.common and _ALL not in ctx.meta:
            by_name = {param.name: param for param in self.params}
            shown = [*(by_name[name] for name in (*self.common, "help_all")), self.get_help_option(ctx)]
            records = [param.get_help_record(ctx) for param in shown if param is not None]
            found = {"Common options": [record for record in records if record is not None]}
        for title, records_of in found.items():
            with formatter.section(title):
                formatter.write_dl(records_of)


def _print_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()
