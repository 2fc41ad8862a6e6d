"""docs/tutorials/compare-schedulers.ipynb has the code of its page, which tests/docs/test_examples.py runs."""

import json
import re
from pathlib import Path

from tests.conftest import load_program

TUTORIALS = Path(__file__).resolve().parent.parent.parent / "docs" / "tutorials"
PAGE = TUTORIALS / "compare-schedulers.md"
NOTEBOOK = TUTORIALS / "compare-schedulers.ipynb"


def test_the_notebook_is_made_from_its_page():
    """If this fails, run `python docs/make_notebook.py > docs/tutorials/compare-schedulers.ipynb`."""
    made = load_program("docs/make_notebook.py").notebook(PAGE.read_text(encoding="utf-8"))

    assert json.loads(NOTEBOOK.read_text(encoding="utf-8")) == made


def test_the_notebook_has_all_code_of_the_page():
    """Each Python block is a cell, in order; the block of a file writes the file."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]

    assert [text.removeprefix("%%writefile predicting.py\n").strip() for text in code] == [
        one.strip() for one in blocks
    ]
    assert sum(text.startswith("%%writefile") for text in code) == 1


def test_the_notebook_has_the_form_that_jupyter_reads():
    """Version 4.5 of the format: each cell has a unique id, metadata and its source; code has no outputs."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))

    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    for cell in notebook["cells"]:
        wanted = {"cell_type", "id", "metadata", "source"}
        wanted |= {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert set(cell) == wanted
