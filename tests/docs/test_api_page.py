"""docs/reference/api.md: it has every public name with its docstring's text, and all that pages use."""

import ast
import re
from pathlib import Path

from tests.conftest import load_program

import pipistrelle

ROOT = Path(__file__).resolve().parent.parent.parent
#: pages about the inside of Pipistrelle may name its modules, but import nothing from them
INSIDE = re.compile(r"\bfrom pipistrelle\.\w")


def maker():
    """Return the program that writes the page."""
    return load_program("docs/make_api.py")


def test_the_page_has_the_docstrings():
    """If this fails, run `python docs/make_api.py > docs/reference/api.md`."""
    assert (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8") == maker().page()


def test_every_public_name_is_on_the_page_once():
    """The sections have each name of ``pipistrelle.__all__`` once, and no other."""
    names = [name for _, some in maker().SECTIONS.values() for name in some.split()]

    assert sorted(names) == pipistrelle.__all__


def test_every_line_of_the_page_says_something():
    """Each name and each member has the first line of a docstring."""
    rows = re.findall(r"^\| `([\w.()]+)` \| (.*) \|$", maker().page(), flags=re.MULTILINE)

    assert len(rows) > len(pipistrelle.__all__)
    assert [name for name, told in rows if not told] == []


def test_pages_import_only_the_package():
    """Examples import ``pipistrelle`` itself, and use public names of it."""
    used = set()
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for block in re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            assert not INSIDE.search(block), page
            for node in ast.walk(ast.parse(block)):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "pp":
                    used.add(node.attr)

    assert used - set(pipistrelle.__all__) == set()
    assert {"run", "study", "Sjf"} <= used


def test_examples_in_files_import_only_the_package():
    """The schedulers of the documentation import nothing from inside the package."""
    for path in (ROOT / "docs" / "examples").glob("*.py"):
        assert not INSIDE.search(path.read_text(encoding="utf-8")), path
