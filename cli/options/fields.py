"""Options made from the fields of a struct."""

import math
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import click
from msgspec import Meta, Struct
from msgspec.structs import FieldInfo, fields

from pipistrelle.cli.terminal.guard import FilledPath
from pipistrelle.protocol.base.errors import did_you_mean
from pipistrelle.protocol.base.lengths import seconds_of

_C = TypeVar("_C", bound=Callable[..., Any])
if TYPE_CHECKING:
    from pipistrelle.cli.options.names import Complete

    _Choice = click.Choice[str]
    _TimeType = click.ParamType[Any]
else:
    _Choice = click.Choice  # before click 8.2 they take no type
    _TimeType = click.ParamType


class PositiveNumber(click.FloatRange):
    """Type of options whose value is a finite number above zero.

    click's own type accepts NaN and infinity.
    """

    name = "number"

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse the number; raise a usage error if it is not valid."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


class TimeOfRun(_TimeType):
    """Type of options whose value is a simulated time.

    Examples are 3600 (s), 36h and 12:30:00.
    """

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse the time as seconds; raise a usage error if it is not valid."""
        try:
            return value if isinstance(value, float) else seconds_of(str(value).removesuffix(" s"))
        except ValueError as error:
            self.fail(f"'{value}' is not a time: {error}.", param, ctx)


class MomentOfRun(_TimeType):
    """Type of options whose value is a simulated time or a date.

    Times are as in `TimeOfRun`. Dates are in the log's time zone.
    """

    name = "time or date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | datetime:
        """Parse the time as seconds, or the date; raise a usage error if it is neither."""
        if isinstance(value, float | datetime):
            return value
        try:
            return seconds_of(str(value).removesuffix(" s"))
        except ValueError as error:
            with suppress(ValueError):
                return datetime.fromisoformat(str(value).strip())
            self.fail(
                f"'{value}' is neither a time ({error}) nor a date such as 1996-09-23 or 1996-09-23T14:00.", param, ctx
            )


class ShareNumber(_TimeType):
    """Type of options whose value is a share between 0 and 1, such as 12.5% or 0.125."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse the share; raise a usage error if it is not valid."""
        text = str(value)
        try:
            number = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
        except ValueError:
            number = -1.0
        if not 0 < number < 1:
            self.fail(f"'{text}' is not a share between 0 and 1, such as 12.5% or 0.125.", param, ctx)
        return number


class SvgFile(FilledPath):
    """Type of options that name the .svg file to which a picture is written."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, dir_okay=False)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """Return the path; raise a usage error if it is no .svg file."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if path.suffix != ".svg":
            raise click.UsageError(f"--picture draws SVG: name an .svg file, not '{path.name}'.", ctx)
        return path


class Choice(_Choice):
    """Type of options whose value is one of several words.

    The error for a misspelt word suggests the closest one.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the word; raise a usage error for an unknown one."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            hint = did_you_mean(str(value), list(self.choices))
            near = f" {hint}" if hint.startswith("Did") else ""  # the message lists all choices
            raise click.BadParameter(f"{error.message}{near}", ctx, param) from None


def options_of(
    form: type[Struct],
    texts: Mapping[str, str],
    kinds: Mapping[str, Any] | None = None,
    names: Mapping[str, str] | None = None,
    completions: "Mapping[str, Complete] | None" = None,
) -> list[click.Option]:
    """Return one command-line option for each field of a struct that ``texts`` names.

    Args:
        form: the struct; its fields give the options' names, types, ranges, choices and defaults.
        texts: {field: "HELP", "METAVAR\\tHELP" or "METAVAR\\tHELP\\tDEFAULT"}, in the order of the options.
        kinds: {field: click type or callback}, if the field's type does not determine it.
        names: {field: second option name}; for a field that is true by default, the option that makes it false.
        completions: {field: shell completion of its values}.
    """
    hints = get_type_hints(form, include_extras=True)
    known = {one.name: one for one in fields(form)}
    return [
        _option(
            known[name],
            hints[name],
            text,
            (kinds or {}).get(name),
            (names or {}).get(name),
            shell_complete=(completions or {}).get(name),
        )
        for name, text in texts.items()
    ]


def added(options: list[click.Option]) -> Callable[[_C], _C]:
    """Return a decorator that adds options to a command or to its function."""

    def add(function: _C) -> _C:
        made: Any = function
        if isinstance(made, click.Command):
            made.params += options
            return function
        made.__click_params__ = [*getattr(function, "__click_params__", []), *reversed(options)]
        return function

    return add


def together(*adders: Callable[[Any], Any]) -> Callable[[_C], _C]:
    """Return a decorator that applies several decorators, each of which adds options.

    The help of the command lists the options in the order of ``adders``.
    """

    def add(function: _C) -> _C:
        for one in reversed(adders):
            function = one(function)
        return function

    return add


def _option(field: FieldInfo, hint: Any, text: str, kind: Any, other: str | None, **settings: Any) -> click.Option:
    metavar, help_text, shown = (["", text, ""] if "\t" not in text else [*text.split("\t"), ""])[:3]
    settings |= {"help": help_text, "metavar": metavar or None, "required": field.required}
    if shown:
        settings["show_default"] = shown
    declared = sorted(filter(None, [f"--{field.encode_name}", other]), key=lambda name: name.startswith("--"))
    optional, plain, limits = _taken_apart(hint)
    if plain is bool:
        if optional:
            return click.Option([f"{declared[0]}/--no-{field.encode_name}"], default=None, **settings)
        if field.default is True:
            return click.Option([f"--{field.encode_name}/{other}"], default=True, **settings)
        return click.Option(declared, is_flag=True, **settings)
    settings["multiple"] = get_origin(plain) in (tuple, dict)
    if isinstance(kind, click.ParamType):
        settings["type"] = kind
    elif kind is not None:
        settings["callback"] = kind
    elif get_origin(plain) is dict:
        least = _taken_apart(get_args(plain)[1])[2]
        settings["callback"] = _named_numbers(-math.inf if least is None else float(least.ge or 0))
    elif get_origin(plain) is Literal:
        settings["type"] = Choice(get_args(plain))
    elif plain is float and limits is not None:
        settings["type"] = PositiveNumber() if limits.gt is not None else click.FloatRange(limits.ge, limits.le)
    elif plain is int:
        settings["type"] = int if limits is None else click.IntRange(_whole(limits.ge), _whole(limits.le))
    if not (settings["multiple"] or field.required or field.default is None):
        settings["default"] = field.default
    return click.Option(declared, **settings)


def _whole(bound: float | None) -> int | None:
    return None if bound is None else int(bound)


def _taken_apart(hint: Any) -> tuple[bool, Any, Meta | None]:
    """Return whether a type allows None, the type without None, and its limits.

    The limits are those of its values; None if there are none.
    """
    optional, limits = False, None
    while (origin := get_origin(hint)) is Annotated or NoneType in get_args(hint):
        if origin is Annotated:
            hint, *told = get_args(hint)
            limits = next((one for one in told if isinstance(one, Meta)), limits)
        else:
            optional, (hint,) = True, [one for one in get_args(hint) if one is not NoneType]
    return optional, hint, limits


def _named_numbers(least: float) -> Callable[..., dict[str, float]]:
    """Return a callback that parses NAME=NUMBER; numbers are at least ``least``."""

    def read(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, float]:
        found = {}
        for text in texts:
            name, sign, digits = text.rpartition("=")
            try:
                number = float(digits)
            except ValueError:
                number = math.nan
            if not sign or not name or not math.isfinite(number) or number < least:
                rule = f" not below {least:g}" if least > -math.inf else ""
                raise click.BadParameter(f"'{text}' is not NAME=NUMBER with a finite number{rule}.", ctx, param)
            found[name] = number
        return found

    return read
