"""Read TOML texts, with errors that name the line, and write TOML values."""

import json
import re
from typing import Any, Final

from pipistrelle.protocol.base.errors import PipistrelleError, printable, shown

#: the longest text (characters) and the most parts of a dotted key; the parser's time grows faster than these
MOST_CHARACTERS: Final = 2 * 1024 * 1024
MOST_PARTS: Final = 16
_PART: Final = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_TOO_DEEP: Final = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{MOST_PARTS}}}")
_POSITION: Final = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL)


def read_toml(text: str, where: str, error: type[PipistrelleError], *, manual: str, hint: str) -> dict[str, Any]:
    """Return the contents of a TOML text.

    Args:
        where: the name of the text in messages.
        error: the class of errors.
        manual: a sentence for errors that says where the format is documented.
        hint: advice for texts that are not TOML.

    Raises:
        PipistrelleError: of class ``error``, with line and column if the parser gives them.
    """
    import tomllib  # many runs read no file

    if len(text) > MOST_CHARACTERS:
        most = f"at most {MOST_CHARACTERS:,} characters"
        raise error("the file is too long for TOML", where=where, expected=most, found=f"{len(text):,}")
    if (deep := _TOO_DEEP.search(text)) is not None:
        place = f"{where}, line {text.count(chr(10), 0, deep.start()) + 1}"
        raise error("a key has too many parts", where=place, expected=f"at most {MOST_PARTS}", found=shown(deep[0]))
    try:
        text.encode()
        return tomllib.loads(text)
    except UnicodeEncodeError as fault:
        raise error("the text is not Unicode", where=where, hint="Save the file as UTF-8.") from fault
    except RecursionError:
        raise error("arrays or tables are nested too deep", where=where, hint=manual) from None
    except ValueError as fault:
        found = _POSITION.fullmatch(str(fault))
        if found is None:  # this error is not tomllib's own: int() refuses numbers of thousands of digits
            raise error("a number is too long", where=where, hint=manual) from None
        said, line, column = found.groups()
        place = f"line {line}, column {column}" if line else "end of the text"
        what = f"this is not TOML: {said[:1].lower()}{printable(said[1:])}"
        raise error(what, where=f"{where}, {place}", hint=hint) from None


def toml_value(value: object) -> str:
    """Return a boolean, a string, a number or a tuple of these as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, str):
        # A JSON string is also a TOML basic string, except that TOML wants DEL escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
