"""Combine the JavaScript modules of a page into one script.

Each module becomes a function that takes its imports and returns its exports. A constant holds the returned exports.
Modules are in order of their dependencies.

Only these forms of imports and exports are supported, so that the code can be read line by line::

    import {one, other} from "./path.js";
    export function name(...) {     export async function     export class     export const name = ...

Other forms, import cycles and missing names raise ValueError. Comments on lines of their own are removed.
"""

import posixpath
import re
from collections.abc import Callable, Iterator
from typing import Final

_IMPORT: Final = re.compile(r'import \{(\w+(?:, \w+)*)\} from "(\.[^"]*\.js)";')
_EXPORT: Final = re.compile(r"export ((?:async function|function|class|const(?! \w+ = [\w.]+,)) (\w+)\b.*)")
#: import and export lines, which must have one of the forms above
_REFUSED: Final = re.compile(r"^\s*(?:import|export)\b|\bimport\s*[(.]")


def bundle(entry: str, read: Callable[[str], str]) -> str:
    """Return one script that runs a module after all modules that it imports.

    Args:
        read: returns the source of a module, given its path.

    Raises:
        ValueError: a module uses an unsupported form, imports a name that is not exported, or imports itself.
    """
    bundled: dict[str, tuple[str, ...]] = {}
    script = ['"use strict";', *_bundle(entry, read, bundled, ())]
    return "\n".join(script) + "\n"


def _bundle(
    path: str, read: Callable[[str], str], bundled: dict[str, tuple[str, ...]], within: tuple[str, ...]
) -> Iterator[str]:
    """Yield the script lines of a module, after those of modules that it imports.

    ``path`` is the module; imported modules in ``bundled`` are left out.
    """
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
            raise ValueError(
                f"{path}, line {number}: unsupported import or export {line!r}; see the forms in bundle.py"
            )
        else:
            body.append(line)
    bundled[path] = tuple(exported)
    yield f"const {_constant(path)} = (({', '.join(taken)}) => {{"
    yield from body
    yield f"return {{{', '.join(exported)}}};"
    yield f"}})({', '.join(given)});"


def _code(path: str, source: str) -> Iterator[tuple[int, str]]:
    """Yield (number, text) of each line of a JavaScript module.

    Empty lines and comment lines are left out.
    """
    inside = False
    for number, line in enumerate(source.splitlines(), 1):
        text = line.strip()
        if line.count("`") % 2:
            raise ValueError(f"{path}, line {number}: a template over several lines; put it on one line")
        opens = text.startswith("/*") and (text.endswith("*/") or "*/" not in text)
        if not (inside or opens or not text or text.startswith("//")):
            yield number, line
        inside = (inside or opens) and not text.endswith("*/")


def _constant(path: str) -> str:
    return "$" + re.sub(r"\W", "_", path.removesuffix(".js"))
