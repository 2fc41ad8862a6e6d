"""The modules of a page as one script, so that the page needs no other file.

Each module becomes a function whose arguments are what it imports and whose result is what it exports; a constant holds
the result. Modules stand in the order of their dependencies.

The source may use a small part of the language's modules, so that lines can be read one by one::

    import {one, other} from "./path.js";
    export function name(...) {     export async function     export class     export const name = ...

Other forms, circles and names that are not there raise ValueError. Comments on lines of their own are left out.
"""

import posixpath
import re
from collections.abc import Callable, Iterator
from typing import Final

_IMPORT: Final = re.compile(r'import \{(\w+(?:, \w+)*)\} from "(\.[^"]*\.js)";')
_EXPORT: Final = re.compile(r"export ((?:async function|function|class|const(?! \w+ = [\w.]+,)) (\w+)\b.*)")
#: what no line of a module may have but in the forms above
_REFUSED: Final = re.compile(r"^\s*(?:import|export)\b|\bimport\s*[(.]")


def bundle(entry: str, read: Callable[[str], str]) -> str:
    """Return one script that runs a module after all that it imports.

    Parameters
    ----------
    entry
        the path of the module, with slashes.
    read
        returns the source of a module, given its path.

    Raises
    ------
    ValueError
        when a module uses another form of import or export, a name that is not exported, or imports itself.
    """
    bundled: dict[str, tuple[str, ...]] = {}
    script = ['"use strict";', *_bundle(entry, read, bundled, ())]
    return "\n".join(script) + "\n"


def _bundle(
    path: str, read: Callable[[str], str], bundled: dict[str, tuple[str, ...]], within: tuple[str, ...]
) -> Iterator[str]:
    """Yield the lines of the modules that a module needs, unless they are bundled already, and then its own."""
    if path in within:
        raise ValueError(f"{path} imports itself: {' -> '.join([*within, path])}")
    taken, given, exported = [], [], []
    body = []
    for number, line in _code(path, read(path)):
        if imported := _IMPORT.fullmatch(line):
            other = posixpath.normpath(posixpath.join(posixpath.dirname(path), imported[2]))
            if other not in bundled:
                yield from _bundle(other, read, bundled, (*within, path))
            if missing := set(imported[1].split(", ")) - set(bundled[other]):
                raise ValueError(f"{path}, line {number}: {other} does not export {', '.join(sorted(missing))}")
            taken.append(f"{{{imported[1]}}}")
            given.append(_constant(other))
        elif (found := _EXPORT.fullmatch(line)) and not _REFUSED.search(found[1]):
            body.append(found[1])
            exported.append(found[2])
        elif _REFUSED.search(line):
            raise ValueError(f"{path}, line {number}: write imports and exports as bundle.py says, not {line!r}")
        else:
            body.append(line)
    bundled[path] = tuple(exported)
    yield f"const {_constant(path)} = (({', '.join(taken)}) => {{"
    yield from body
    yield f"return {{{', '.join(exported)}}};"
    yield f"}})({', '.join(given)});"


def _code(path: str, source: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a module with their numbers, without empty ones and comments on lines of their own."""
    inside = False
    for number, line in enumerate(source.splitlines(), 1):
        text = line.strip()
        if line.count("`") % 2:
            raise ValueError(f"{path}, line {number}: a template of several lines; bundle.py reads line by line")
        opens = text.startswith("/*") and (text.endswith("*/") or "*/" not in text)
        if not (inside or opens or not text or text.startswith("//")):
            yield number, line
        inside = (inside or opens) and not text.endswith("*/")


def _constant(path: str) -> str:
    return "$" + re.sub(r"\W", "_", path.removesuffix(".js"))
