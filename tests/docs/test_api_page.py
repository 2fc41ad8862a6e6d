"""docs/reference/api.md: its names can be imported, have their docstrings' text, and are all that pages use."""

import ast
import re
import sys
from pathlib import Path

from tests.conftest import load_program

ROOT = Path(__file__).resolve().parent.parent.parent


def maker():
    """Return the program that writes the page."""
    return load_program("docs/make_api.py")


def test_the_page_is_what_the_docstrings_say():
    """It is written anew with `python docs/make_api.py > docs/reference/api.md`."""
    assert (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8") == maker().page()


def test_everything_on_the_page_has_something_said_of_it():
    """No name is without a docstring, and none stands twice."""
    rows = re.findall(r"^\| (`[\w.]+`)? ?\| `(\w+)` \| (.*) \|$", maker().page(), flags=re.MULTILINE)
    module, seen = "", set()
    for named, name, told in rows:
        module = named or module
        assert told, name
        assert (module, name) not in seen
        seen.add((module, name))
    assert len(seen) == sum(len(names) for _, some in maker().SECTIONS.values() for names in some.values())


def test_all_that_the_pages_import_is_on_it():
    """Whatever an example imports of ours is one of these names, or one of these modules."""
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
