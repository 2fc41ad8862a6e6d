"""docs/reference/api.md: its names can be imported, have their docstrings' text, and cover all that pages use."""

import ast
import re
import sys
from pathlib import Path

from tests.conftest import load_program

ROOT = Path(__file__).resolve().parent.parent.parent


def maker():
    """Return the program that writes the page."""
    return load_program("docs/make_api.py")


def test_the_page_has_the_docstrings():
    """If this fails, run `python docs/make_api.py > docs/reference/api.md`."""
    assert (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8") == maker().page()


def test_every_name_on_the_page_has_a_docstring():
    """Every name has a docstring, and none is listed twice."""
    rows = re.findall(r"^\| (`[\w.]+`)? ?\| `(\w+)` \| (.*) \|$", maker().page(), flags=re.MULTILINE)
    module, seen = "", set()
    for named, name, told in rows:
        module = named or module
        assert told, name
        assert (module, name) not in seen
        seen.add((module, name))
    assert len(seen) == sum(len(names) for _, some in maker().SECTIONS.values() for names in some.values())


def test_all_that_the_pages_import_is_on_it():
    """Every name and module of ours that an example imports is on the page."""
    listed = {module: names for _, some in maker().SECTIONS.values() for module, names in some.items()}
    known = {f"{module}.{name}" for module, names in listed.items() for name in names} | set(listed)
    used = set()
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for block in re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            for node in ast.walk(ast.parse(block)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pipistrelle"):
                    used |= {f"{node.module}.{alias.name}" for alias in node.names}

    assert used - known == set()
    assert "pipistrelle.runs.execution.run.run" in used
    assert sys.modules.get("make_api") is None
