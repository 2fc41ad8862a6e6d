"""Every error a user can meet, in one shape: what, where, expected, found, what to do next.

The base class lives in the lowest layer so that each layer can derive its own; the command line alone turns an error
into text on the terminal and an exit code.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, TypeVar

_E = TypeVar("_E", bound="PipistrelleError")


class PipistrelleError(Exception):
    """Something a user can put right; any other exception is a bug of ours.

    Parameters
    ----------
    what
        what is wrong, a clause without a final full stop.
    where
        the file, line, field, endpoint or JSON path concerned.
    expected, found
        what the rule asks for and what stands there instead.
    hint
        what to do next, a sentence.
    """

    #: exit code of the command line: 2 is "the input is wrong".
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
        """Return the same as an error of this kind about another place: for those who know where a text stands."""
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
    """A platform, workload or option that cannot be used."""


@contextmanager
def said_of(option: str) -> Iterator[None]:
    """Name the option in the errors raised within."""
    try:
        yield
    except PipistrelleError as error:
        raise error.at(option, InputError) from None


class ProtocolError(PipistrelleError):
    """A rule of the protocol was broken; see the two derived classes for by whom."""

    exit_code = 4


class LocalProtocolError(ProtocolError):
    """This side tried to send what the protocol does not allow now; the fault is in the calling code."""


class RemoteProtocolError(ProtocolError):
    """The peer sent what the protocol does not allow; the session is over, the peer's program must be mended."""


#: characters of a value in a message, which stays one line, whatever a file holds
_SHOWN = 60
#: a longer list than this helps nobody
_MOST_NAMED = 40


def did_you_mean(name: str, known: list[str]) -> str:
    """Return a sentence that names the closest known name, or all the known ones; nothing if these are too many."""
    from difflib import get_close_matches  # for errors alone

    close = get_close_matches(name, known, n=1)
    if close:
        return f"Did you mean '{close[0]}'?"
    if len(known) > _MOST_NAMED:
        return ""
    return f"Known: {', '.join(known)}." if known else "None is known."


def printable(text: str, stand_in: str = "?") -> str:
    """Return a text of a peer or a file for a message: what could steer a terminal is replaced by ``stand_in``."""
    return "".join(c if c.isprintable() else stand_in for c in text)


def cut(text: str, length: int) -> str:
    """Return a text of a peer or a file for a message without its middle if it is longer than ``length``."""
    if len(text) <= length:
        return text
    return f"{text[: length - length // 4]} ... {text[-(length // 4) :]}"


def legible(text: str, length: int) -> str:
    """Return a text of a peer or a file for a message: not much longer than ``length``, and fit for a terminal."""
    return printable(cut(text, length))


def quoted(text: object) -> str:
    """Return text from a file for a message: printable, quoted, and cut if it is long."""
    quoted = repr(str(text))
    return quoted if len(quoted) <= _SHOWN else f"{quoted[:_SHOWN]}...'"


def shown(value: object) -> str:
    """Return a value of a TOML file for a message: as TOML would write it, on one line, cut if it is long."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "an array"
    if isinstance(value, int):
        # Python refuses to write out integers of thousands of digits.
        return str(value) if value.bit_length() < 128 else f"a number of about {value.bit_length() * 3 // 10} digits"
    if isinstance(value, float):
        return repr(value)
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
