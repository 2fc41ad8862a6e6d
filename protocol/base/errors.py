"""Errors that a user can correct.

All have the same fields: what, where, expected, found and hint. Each layer derives its own classes. Only the command
line turns an error into terminal text and an exit code.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, TypeVar

_E = TypeVar("_E", bound="PipistrelleError")


class PipistrelleError(Exception):
    """An error that the user can correct; any other exception is a bug in Pipistrelle.

    Args:
        what: what is wrong, as a clause without a full stop.
        where: the file, line, field, endpoint or JSON path.
        expected, found: what the rule requires and what the input has.
        hint: what to do next, as a sentence.
    """

    #: exit code of the command line: 2 means that the input is wrong
    exit_code: ClassVar[int] = 2

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        expected: str | None = None,
        found: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.what = what
        self.where = where
        self.expected = expected
        self.found = found
        self.hint = hint
        super().__init__(str(self))

    def at(self, where: str | None, kind: type[_E]) -> _E:
        """Return this error as an error of class ``kind`` with another ``where``."""
        return kind(self.what, where=where, expected=self.expected, found=self.found, hint=self.hint)

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        rule = ", ".join(
            part
            for part in (
                f"expected {self.expected}" if self.expected else "",
                f"found {self.found}" if self.found else "",
            )
            if part
        )
        if rule:
            text = f"{text}: {rule}"
        text = text if text.endswith((".", "?", "!")) else f"{text}."
        return f"{text} {self.hint}" if self.hint else text


class InputError(PipistrelleError):
    """A platform, workload or option cannot be used."""


@contextmanager
def said_of(option: str) -> Iterator[None]:
    """Add the name of an option to each error raised inside this ``with`` block."""
    try:
        yield
    except PipistrelleError as error:
        raise error.at(option, InputError) from None


class ProtocolError(PipistrelleError):
    """A rule of the protocol was broken; each derived class blames one side."""

    exit_code = 4


class LocalProtocolError(ProtocolError):
    """This side tried to send a forbidden message, which is a bug in the caller."""


class RemoteProtocolError(ProtocolError):
    """The peer sent a message that the protocol forbids; the session is over."""


#: maximum number of characters of a value in a message
_SHOWN = 60
#: maximum number of names listed in a message
_MOST_NAMED = 40


def did_you_mean(name: str, known: list[str]) -> str:
    """Return a sentence that suggests the closest known name.

    If no name is close, the sentence lists all known names; if there are more than 40, the result is "".
    """
    from difflib import get_close_matches  # needed only for errors

    close = get_close_matches(name, known, n=1)
    if close:
        return f"Did you mean '{close[0]}'?"
    if len(known) > _MOST_NAMED:
        return ""
    return f"Known: {', '.join(known)}." if known else "No name is known."


def printable(text: str, stand_in: str = "?") -> str:
    """Return the text with control characters replaced by ``stand_in``."""
    return text if text.isprintable() else "".join(c if c.isprintable() else stand_in for c in text)


def cut(text: str, length: int) -> str:
    """Return the text; if longer than ``length`` characters, leave its middle out."""
    if len(text) <= length:
        return text
    return f"{text[: length - length // 4]} ... {text[-(length // 4) :]}"


def legible(text: str, length: int) -> str:
    """Return the text cut to about ``length`` characters, all of them printable."""
    return printable(cut(text, length))


def quoted(text: object) -> str:
    """Return the text quoted, printable, and cut if it is long."""
    quoted = repr(str(text))
    return quoted if len(quoted) <= _SHOWN else f"{quoted[:_SHOWN]}...'"


def shown(value: object) -> str:
    """Return a value in TOML syntax, on one line, shortened if it is long."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "an array"
    if isinstance(value, int):
        # Python refuses to print integers of thousands of digits.
        return str(value) if value.bit_length() < 128 else f"a number of about {value.bit_length() * 3 // 10} digits"
    if isinstance(value, float):
        return repr(value)
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
