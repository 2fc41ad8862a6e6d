"""TOML texts: read with errors that say what is wrong and where, written so that they are read as the same."""

import json
import re
from typing import Any, Final

from pipistrelle.protocol.base.errors import PipistrelleError, printable

_POSITION: Final = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL)


def read_toml(text: str, where: str, error: type[PipistrelleError], *, manual: str, hint: str) -> dict[str, Any]:
    """Return what a TOML text says.

    Parameters
    ----------
    where
        what the text is called in messages.
    error
        what is raised.
    manual, hint
        sentences for its messages: where the format is described, and what those who write no TOML mostly lack.

    Raises
    ------
    PipistrelleError
        of the given class, if the text is no TOML, with line and column where the parser gives them.
    """
    import tomllib  # for many runs no file is read

    try:
        text.encode()
        return tomllib.loads(text)
    except UnicodeEncodeError as fault:
        raise error("the text is not Unicode", where=where, hint="Save the file as UTF-8.") from fault
    except RecursionError:
        raise error("arrays or tables are nested too deep", where=where, hint=manual) from None
    except ValueError as fault:
        found = _POSITION.fullmatch(str(fault))
        if found is None:  # the one complaint of tomllib's that is not its own: int() on thousands of digits
            raise error("a number is too long", where=where, hint=manual) from None
        said, line, column = found.groups()
        place = f"line {line}, column {column}" if line else "end of the text"
        what = f"this is not TOML: {said[:1].lower()}{printable(said[1:])}"
        raise error(what, where=f"{where}, {place}", hint=hint) from None


def toml_value(value: object) -> str:
    """Return a truth value, a text, a number or a tuple of these as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, str):
        # A JSON string is a TOML basic string, but for DEL, which TOML wants escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
