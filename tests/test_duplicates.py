"""Repeated code as a test: no two places in the source share six or more equal lines."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: equal lines in a row that count as repeated code
LEAST = 6
#: {two files, or one file twice: why they may share lines}
ALLOWED: dict[tuple[str, str], str] = {
    ("schedulers/policy/waiting.py", "schedulers/waiting/ranked.py"): "an interface, and a class that has it",
}

Line = tuple[int, str]


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield every statement below a node."""
    for field in ("body", "orelse", "handlers", "finalbody", "cases"):
        for child in getattr(node, field, ()):
            yield child
            yield from statements(child)


def code_lines(text: str) -> list[Line]:
    """Return (number, text) of the lines that count: no blanks, comments, docstrings, imports or lone punctuation."""
    skipped: set[int] = set()
    for node in statements(ast.parse(text)):
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if docstring or isinstance(node, ast.Import | ast.ImportFrom):
            skipped.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if number not in skipped)
    return [(number, line) for number, line in lines if re.search(r"\w", line) and not line.startswith("#")]


def repeated(files: dict[str, list[Line]]) -> Iterator[tuple[tuple[str, int, int], tuple[str, int, int]]]:
    """Yield pairs of places, each as (file, first index, last index + 1), that share `LEAST` lines or more."""
    places: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for name, lines in files.items():
        texts = [text for _, text in lines]
        for begin in range(len(texts) - LEAST + 1):
            places[tuple(texts[begin : begin + LEAST])].append((name, begin))
    starts = {pair for found in places.values() for pair in combinations(found, 2)}
    for (one, begin), (other, place) in sorted(starts):
        if ((one, begin - 1), (other, place - 1)) in starts:
            continue
        length = LEAST
        while ((one, begin + length - LEAST + 1), (other, place + length - LEAST + 1)) in starts:
            length += 1
        if one != other or begin + length <= place:  # lines may repeat within themselves
            yield (one, begin, begin + length), (other, place, place + length)


def source_lines() -> dict[str, list[Line]]:
    """Return {file: its lines that count} of all layers."""
    paths = [path for top in ROOT.glob("*/__init__.py") for path in sorted(top.parent.rglob("*.py"))]
    return {path.relative_to(ROOT).as_posix(): code_lines(path.read_text(encoding="utf-8")) for path in paths}


def test_no_code_is_repeated() -> None:
    """No two places share six or more equal lines, except those listed above; each exception is needed."""
    files = source_lines()
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for pair in repeated(files):
        named = [f"{name}:{files[name][begin][0]}-{files[name][end - 1][0]}" for name, begin, end in pair]
        found[pair[0][0], pair[1][0]].append(" ~ ".join(named))

    assert [line for pair, lines in sorted(found.items()) if pair not in ALLOWED for line in lines] == []
    assert {pair for pair in ALLOWED if pair not in found} == set()


def test_repeated_lines_are_found_despite_comments_between() -> None:
    """Comments, blank lines, docstrings and imports do not hide repeated code; five lines are too few."""
    lines = [f"value_{number} = {number}" for number in range(LEAST)]
    plain, loose = "\n".join(lines), "\n\n# why\nimport os\n".join(lines)
    other = '"""Other."""\n' + loose

    assert len(list(repeated({"a": code_lines(plain), "b": code_lines(other)}))) == 1
    assert not list(repeated({"a": code_lines(plain), "b": code_lines("\n".join(lines[1:]))}))
