"""Read a maui.cfg: lines, indices, comments, continuations, and warnings by line."""

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from pipistrelle.protocol.base.errors import PipistrelleError, did_you_mean, legible, printable
from pipistrelle.protocol.base.whole import without_waiting
from pipistrelle.schedulers.maui.config.attributes import (
    CREDENTIAL_ATTRIBUTES,
    STANDING_ATTRIBUTES,
    BadValue,
    NotSupported,
    WithoutEffect,
    credential_attribute,
    read_value,
    standing_attribute,
)
from pipistrelle.schedulers.maui.config.parameters import ALIASES, OLD_QOS, PARAMETERS, Kind, Parameter, Support, Value
from pipistrelle.schedulers.maui.config.settings import KINDS, PERIODS, Credential, MauiSettings, Standing

_LINE: Final = re.compile(r"([^\s\[\]=]+)\s*(?:\[([^\]]*)\])?(?:\s+(.*)|)$")
_ATTRIBUTE: Final = re.compile(r"([^\s=]+)\s*=\s*(?:'([^']*)'|\"([^\"]*)\"|(\S*))")
_QUOTED_OR_COMMENT: Final = re.compile(r"\"[^\"]*\"|'[^']*'|#")
#: the longest file (bytes); how many unknown words get a suggestion, which takes long to find
_LONGEST: Final = 1024 * 1024
_MOST_HINTS: Final = 100
#: most characters of a word of the file in a message
_WORD: Final = 100
#: attributes without effect on weekly standing reservations, and on permanent ones
_OF_DAYS: Final = ("DAYS",)
_OF_PERIODS: Final = ("STARTTIME", "ENDTIME", "DAYS", "DEPTH")
#: values without effect
_NOTHING: Final = ("0", "NONE", "[NONE]")
_CFG: Final = {f"{kind}CFG": kind for kind in KINDS}
#: parameters that index stacks, not partitions
_STACKED: Final = ("RESERVATIONDEPTH", "RESERVATIONQOSLIST")


class MauiConfigError(PipistrelleError):
    """A maui.cfg cannot be used."""


class ConfigWarning(NamedTuple):
    """A warning about a setting without effect: line (from 1), name and reason.

    ``decides`` is True if Maui itself might decide differently, because Pipistrelle does not know or support the
    setting.
    """

    where: str
    line: int
    name: str
    why: str
    decides: bool = True

    def __str__(self) -> str:
        return f"{self.where}:{self.line}: {self.why}"


def read_maui_config(path: Path, *, strict: bool = True) -> tuple[MauiSettings, list[ConfigWarning]]:
    """Return the settings in a maui.cfg, and warnings about settings without effect.

    Warnings are about unknown and unsupported parameters and attributes.

    Raises:
        MauiConfigError: with file and line, if the file cannot be read or a value is wrong; if ``strict`` also for the
            first warning about something that would change decisions.
    """
    try:
        with open(path, "rb", opener=without_waiting) as file:
            content = file.read(_LONGEST + 1)
    except OSError as error:
        raise MauiConfigError(
            f"cannot read the Maui configuration ({error.strerror or error})", where=printable(str(path))
        ) from error
    if len(content) > _LONGEST:
        raise _too_long(printable(str(path)))
    return parse_maui_config(content.decode("utf-8", errors="replace"), where=printable(str(path)), strict=strict)


def parse_maui_config(
    text: str, *, where: str = "maui.cfg", strict: bool = True
) -> tuple[MauiSettings, list[ConfigWarning]]:
    """Parse the text of a maui.cfg as in `read_maui_config`; ``where`` is its name."""
    if len(text) > _LONGEST:
        raise _too_long(where)
    reader = _Reader(where)
    for number, line in _logical_lines(text):
        reader.line(number, line)
    reader.check_standing()
    refused = [warning for warning in reader.warnings if warning.decides] if strict else []
    if refused:
        first, more = refused[0], len(refused) - 1
        raise MauiConfigError(
            first.why.rstrip("."),
            where=f"{first.where}:{first.line}",
            hint=f"{more} similar lines follow. " * (more > 0) + "With --lenient-config such a line is a warning.",
        )
    return reader.settings(), reader.warnings


def _too_long(where: str) -> MauiConfigError:
    return MauiConfigError("the Maui configuration is too long", where=where, expected=f"at most {_LONGEST:,} bytes")


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each setting of a maui.cfg as (number of its first line, text).

    Comments are removed, and continued lines are joined.
    """
    begun, number_begun = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        code = _without_comment(line).rstrip()
        number_begun = number_begun or number
        if code.endswith("\\"):
            begun += code[:-1] + " "
            continue
        if whole := (begun + code).strip():
            yield number_begun, whole
        begun, number_begun = "", 0
    if begun.strip():
        yield number_begun, begun.strip()


def _without_comment(line: str) -> str:
    """Return a line without its comment, which begins at the first # outside quotes."""
    found = next((one for one in _QUOTED_OR_COMMENT.finditer(line) if one[0] == "#"), None)
    return line if found is None else line[: found.start()]


class _Reader:
    """A parser that collects settings line by line; later values replace earlier ones."""

    def __init__(self, where: str) -> None:
        self._where = where
        self.warnings: list[ConfigWarning] = []
        self._values: dict[str, Value] = {}
        self._credentials: dict[str, dict[str, Credential]] = {kind: {} for kind in KINDS}
        self._system = Credential()
        self._standing: dict[str, Standing] = {}
        #: {standing reservation: {attribute: its last line}}
        self._standing_lines: dict[str, dict[str, int]] = {}
        self._depths: dict[str, int] = {}
        self._lists: dict[str, frozenset[str] | None] = {}

    def settings(self) -> MauiSettings:
        depths = self._depths or {"0": 1}
        stacks = {stack: (depths.get(stack, 1), self._lists.get(stack)) for stack in sorted({*depths, *self._lists})}
        return MauiSettings(self._values, self._credentials, self._system, stacks, tuple(self._standing.values()))

    def line(self, number: int, text: str) -> None:
        """Parse the setting ``text``, which begins on line ``number`` of the file."""
        match = _LINE.match(text)
        if match is None:
            raise self._wrong(
                number, "this is not a line of a maui.cfg", "PARAMETER VALUE or PARAMETER[INDEX] VALUE", text
            )
        raw, index, rest = match[1], match[2], (match[3] or "").strip()
        name = ALIASES.get(raw.upper(), raw.upper())
        parameter = PARAMETERS.get(name)
        if parameter is None:
            self._warn(number, raw, self._unknown(f"parameter '{legible(raw, _WORD)}'", name, PARAMETERS))
        elif parameter.support in (Support.IDLE, Support.NO):
            decides = parameter.support is Support.NO and rest.upper() not in _NOTHING
            self._warn(number, raw, f"parameter {name} is not supported: {parameter.meaning}", decides=decides)
        elif parameter.support is Support.YES:
            if not rest:
                raise self._wrong(number, f"{name} has no value", None, None)
            self._supported(number, parameter, index, rest)

    def check_standing(self) -> None:
        """Check each standing reservation, once all lines are read.

        Attributes without effect give warnings. Times outside the reservation's period raise MauiConfigError.
        """
        for index, lines in self._standing_lines.items():
            standing, name = self._standing[index], f"SRCFG[{legible(index, _WORD)}]"
            length = PERIODS.get(standing.period)
            for attribute in _OF_DAYS if standing.period == "WEEK" else _OF_PERIODS if length is None else ():
                if attribute in lines:
                    why = f"attribute {attribute} of {name} has no effect with PERIOD={standing.period}"
                    self._warn(lines[attribute], attribute, why, decides=False)
            for attribute, time in (("STARTTIME", standing.start), ("ENDTIME", standing.end)):
                # A reservation may end exactly at the end of its period: 24:00:00 is valid.
                if (
                    length is not None
                    and time is not None
                    and (time > length or (time, attribute) == (length, "STARTTIME"))
                ):
                    what = f"the value of {attribute} of {name} is wrong"
                    expected = f"a time within the {standing.period.lower()}, from 0 to {length:g} s"
                    raise self._wrong(lines[attribute], what, expected, f"{time:g} s")
        self.warnings.sort(key=lambda warning: warning.line)

    def _supported(self, number: int, parameter: Parameter, index: str | None, rest: str) -> None:
        name = parameter.name
        if parameter.kind is Kind.ATTRIBUTES:
            if not (index or "").strip() and name != "SYSCFG":
                raise self._wrong(number, f"{name} needs a name", f"{name}[NAME] ATTRIBUTE=VALUE ...", rest)
            self._attributes(number, name, index or "", rest)
        elif name in OLD_QOS:
            self._attributes(number, "QOSCFG", index or "0", f"{OLD_QOS[name]}={rest}")
        elif name in _STACKED:
            value = self._value(number, parameter, rest)
            if isinstance(value, tuple):
                self._lists[index or "0"] = None if "ALL" in value else frozenset(value)
            else:
                self._depths[index or "0"] = int(value)
        elif name == "FSPOLICY" and rest.endswith("%"):
            counted = rest.removesuffix("%")
            self._values[name] = self._value(number, parameter, counted)
            why = "usage is counted in percent of the usage, not of the capacity"
            self._warn(number, name, f"{name} {legible(rest, _WORD)} is not supported: {why}; {counted} is used")
        elif index not in (None, "0"):
            self._warn(number, name, f"{name}[{legible(index or '', _WORD)}]: the machine is one partition, index 0")
        else:
            if name == "FSPOLICY" and rest.upper() == "PSDEDICATED":
                why = "FSPOLICY PSDEDICATED is unknown in Maui, too, and counts nothing"
                self._warn(number, name, f"{why}; DEDICATEDPS counts processors x seconds", decides=False)
            try:
                self._values[name] = self._value(number, parameter, rest)
            except NotSupported as error:
                self._warn(number, name, f"{name} {legible(rest, _WORD)} is not supported: {error}")

    def _value(self, number: int, parameter: Parameter, text: str) -> Value:
        try:
            return read_value(parameter, text)
        except BadValue as error:
            raise self._wrong(number, f"the value of {parameter.name} is wrong", error.expected, text) from error

    def _attributes(self, number: int, name: str, index: str, rest: str) -> None:
        at = 0
        while at < len(rest):
            match = _ATTRIBUTE.match(rest, at)
            if match is None:
                raise self._wrong(number, f"this is not an attribute of {name}", "ATTRIBUTE=VALUE", rest[at:])
            attribute = match[1].upper()
            value = next((group for group in match.groups()[1:] if group is not None), "")
            self._attribute(number, name, index, attribute, value)
            at = match.end()
            while at < len(rest) and rest[at].isspace():
                at += 1

    def _attribute(self, number: int, name: str, index: str, attribute: str, value: str) -> None:
        where = f"{name}[{legible(index, _WORD)}]" if index else name
        known = STANDING_ATTRIBUTES if name == "SRCFG" else CREDENTIAL_ATTRIBUTES
        try:
            if name == "SRCFG":
                standing = self._standing.get(index, Standing(index))
                standing = replace(standing, where=f"{self._where}:{number}") if attribute == "HOSTLIST" else standing
                self._standing[index] = standing_attribute(standing, attribute, value)
                self._standing_lines.setdefault(index, {})[attribute] = number
            elif name == "SYSCFG":
                self._system = credential_attribute(self._system, "SYS", attribute, value)
            else:
                kind = _CFG[name]
                credential = self._credentials[kind].get(index, Credential())
                self._credentials[kind][index] = credential_attribute(credential, kind, attribute, value)
        except KeyError:
            self._warn(
                number, attribute, self._unknown(f"attribute {legible(attribute, _WORD)} of {where}", attribute, known)
            )
        except NotSupported as error:
            why = f"attribute {legible(attribute, _WORD)} of {where} is not supported: {error}"
            self._warn(number, attribute, why, decides=not isinstance(error, WithoutEffect))
        except BadValue as error:
            what = f"the value of {legible(attribute, _WORD)} of {where} is wrong"
            raise self._wrong(number, what, error.expected, value) from error

    def _unknown(self, what: str, name: str, known: Collection[str]) -> str:
        hint = did_you_mean(name, sorted(known)) if len(self.warnings) < _MOST_HINTS else ""
        return f"unknown {what}. {hint}".rstrip()

    def _warn(self, number: int, name: str, why: str, *, decides: bool = True) -> None:
        self.warnings.append(ConfigWarning(self._where, number, name, why, decides))

    def _wrong(self, number: int, what: str, expected: str | None, found: str | None) -> MauiConfigError:
        shown = None if found is None else f"'{legible(found, _WORD)}'"
        return MauiConfigError(what, where=f"{self._where}:{number}", expected=expected, found=shown)
