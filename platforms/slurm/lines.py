"""Lines of Slurm's configuration files.

They have keys and values, comments, continuations and included files. The files are slurm.conf, gres.conf and
topology.conf. A line is one or more ``Key=Value``; a value with blanks is quoted. ``#`` begins a comment, unless a
backslash precedes it. A line that ends in a backslash continues on the next one. Keys are case-insensitive.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.protocol.base.errors import legible, printable

#: a function that reads the file that a line includes: (path in the line, file with the line) -> (name, text)
Fetch = Callable[[str, str], tuple[str, str]]
#: bounds of a configuration: characters, lines after inclusion, and files within files
LONGEST: Final = 2 * 1024 * 1024
MOST_LINES: Final = 50_000
DEEPEST: Final = 10
#: the most files that a configuration includes
MOST_FILES: Final = 1000
#: most characters of a value in a message
WORD: Final = 100

_PAIR: Final = re.compile(r"([A-Za-z0-9_.]+)\s*([-+*/]?=)\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"']\S*)|(?=\s|$))")
_INCLUDE: Final = re.compile(r"include\s+(.+)", re.IGNORECASE)
_COMMENT: Final = re.compile(r"(?<!\\)#.*")


class ConfPair(NamedTuple):
    """A key and its value, as written in the file."""

    key: str
    value: str


class ConfLine(NamedTuple):
    """A line of key-value pairs.

    ``where`` is its file and line number, such as ``slurm.conf:12``.
    """

    where: str
    pairs: tuple[ConfPair, ...]


def read_lines(
    text: str, name: str, fetch: Fetch | None = None, fault: type[PlatformError] = PlatformError
) -> list[ConfLine]:
    """Return the lines with ``Key=Value`` of a configuration file.

    Lines of files that it includes are among them.

    Args:
        name: the file's name in messages.
        fetch: reads included files; None: ``Include`` is refused.
        fault: the class of errors.

    Raises:
        PlatformError: with file and line, if a line is malformed, files include each other, or a limit is exceeded.
    """
    return list(_lines(text, name, fetch, fault, (name,), [0, 0, 0]))


def _lines(
    text: str, name: str, fetch: Fetch | None, fault: type[PlatformError], chain: tuple[str, ...], sizes: list[int]
) -> Iterator[ConfLine]:
    sizes[0] += len(text)
    if sizes[0] > LONGEST or "\0" in text:
        what = "is a binary file" if "\0" in text else f"has more than {LONGEST // 2**20} MiB with its included files"
        raise fault(f"the configuration {what}", where=printable(name))
    for number, line in _joined(text):
        sizes[1] += 1
        where = f"{printable(name)}:{number}"
        if sizes[1] > MOST_LINES:
            raise fault("the configuration is too long", where=where, expected=f"at most {MOST_LINES:,} lines")
        found = _INCLUDE.fullmatch(line)
        if found is None:
            yield ConfLine(where, tuple(_pairs(line, where, fault)))
            continue
        path = found[1].strip().strip('"')
        if fetch is None:
            raise fault("this file cannot include others", where=where, found=f"'{legible(path, WORD)}'")
        if len(chain) > DEEPEST:
            raise fault("files include one another too deep", where=where, expected=f"at most {DEEPEST} levels")
        sizes[2] += 1
        if sizes[2] > MOST_FILES:
            raise fault("the file includes too many files", where=where, expected=f"at most {MOST_FILES:,}")
        try:
            inner, content = fetch(path, name)
        except PlatformError as error:
            raise error.at(where, fault) from None
        if inner in chain:
            raise fault("the file includes itself", where=where, found=f"'{legible(path, WORD)}'")
        yield from _lines(content, inner, fetch, fault, (*chain, inner), sizes)


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line, without comments.

    Lines that continue it are joined to it. Joined lines have the number of the first of them.
    """
    held, first = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = _COMMENT.sub("", raw).rstrip()
        first = first or number
        if line.endswith("\\"):
            held += line[:-1]
            continue
        whole = (held + line).strip().replace("\\#", "#")
        if whole:
            yield first, whole
        held, first = "", 0
    if held.strip():
        yield first, held.strip()


def _pairs(line: str, where: str, fault: type[PlatformError]) -> Iterator[ConfPair]:
    at = 0
    while at < len(line):
        found = _PAIR.match(line, at)
        if found is None or (found.end() < len(line) and not line[found.end()].isspace()):
            hint = "Quote a value with blanks, and write lists without blanks."
            raise fault(
                "this is no KEY=VALUE",
                where=where,
                expected="KEY=VALUE ...",
                found=f"'{legible(line[at:], WORD)}'",
                hint=hint,
            )
        if found[2] != "=":
            raise fault(f"{found[1]}{found[2]} is not supported", where=where, expected=f"{found[1]}=VALUE")
        yield ConfPair(found[1], next((group for group in found.groups()[2:] if group is not None), ""))
        at = found.end()
        while at < len(line) and line[at].isspace():
            at += 1
