"""docs/explanation/design.md: its layers, files and diagram are those of the code."""

import ast
import re
import runpy
from pathlib import Path

import pytest

from pipistrelle.server.engine.jobs import LIFE

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = "docs/explanation/design.md"


def life_diagram() -> str:
    """Return the life of a job as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> SUBMITTED: submit"]
    for state, steps in LIFE.items():
        lines += [f"    {state} --> {following}: {step}" for step, following in steps.items()]
        if not steps:
            lines.append(f"    {state} --> [*]")
    return "\n".join(lines) + "\n"


def test_the_diagram_is_drawn_from_the_table(section):
    """The diagram of a job's life is what server/engine/jobs.py says; if this fails, paste ``life_diagram()``."""
    shown = re.search(r"^```mermaid\n(.*?)^```$", section(PAGE, "A job's life"), flags=re.MULTILINE | re.DOTALL)

    assert shown is not None
    assert shown[1] == life_diagram()


def test_the_layers_are_those_of_the_layer_test(section, table):
    """Each layer's row lists what tests/test_layers.py lets it import."""
    layers = runpy.run_path(str(ROOT / "tests" / "test_layers.py"))["LAYERS"]
    rows = {row[0].strip("`"): set(re.findall(r"`(\w+)`", row[1])) for row in table(section(PAGE, "Layers"))}

    assert rows == layers


def test_the_files_answer_questions(section, table):
    """Each row of the map, at most 15, is a question, and links the file that it names."""
    rows = table(section(PAGE, "Where to find what"))
    assert len(rows) <= 15
    for question, link in rows:
        match = re.fullmatch(r"\[(.+)\]\(\.\./\.\./(.+)\)", link)
        assert question.endswith("?")
        assert match is not None
        assert match[1] == match[2]
        assert (ROOT / match[1]).is_file()


def methods() -> dict[str, dict[str, ast.FunctionDef]]:
    """Return {class: {method: its syntax}} of the server."""
    return {
        one.name: {part.name: part for part in one.body if isinstance(part, ast.FunctionDef)}
        for path in (ROOT / "server").rglob("*.py")
        for one in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(one, ast.ClassDef)
    }


def in_a_table(part: ast.FunctionDef, key: str, method: str) -> bool:
    """Return whether a function contains a dictionary that maps a name to a method."""
    return any(
        isinstance(name, ast.Name) and name.id == key and isinstance(value, ast.Attribute) and value.attr == method
        for table in ast.walk(part)
        if isinstance(table, ast.Dict)
        for name, value in zip(table.keys, table.values, strict=True)
    )


@pytest.mark.parametrize("way", ["A job's way through the code", "A failure's way through the code"])
def test_each_arrow_is_a_call(section, way):
    """The first of two methods of the server calls the second, or the second's class puts it into a table."""
    shown = re.search(r"^```mermaid\nflowchart TD\n(.*?)^```$", section(PAGE, way), flags=re.MULTILINE | re.DOTALL)
    assert shown is not None
    known = methods()
    for line in shown[1].splitlines():
        arrow = re.fullmatch(r"    (\w+)\.(\w+) (?:-- (\w+) )?--> (\w+)\.(\w+)", line)
        assert arrow is not None, line
        caller, call, key, called, method = arrow.groups()
        assert method in known[called], line
        if key is None:
            names = {node.attr for node in ast.walk(known[caller][call]) if isinstance(node, ast.Attribute)}
            assert method in names, line
        else:
            assert any(in_a_table(part, key, method) for part in known[called].values()), line
